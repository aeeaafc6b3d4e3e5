"""Runs the blocks of docs/postgrest.md with the rules of PostgREST 16.1, instead of its program."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import psycopg2
import psycopg2.errors
import pytest
from psycopg2.extensions import make_dsn

from tests.support import factors
from tests.support.commands import run_command
from tests.support.local_server import Handler, LocalServer
from tests.support.openid import make_client, tokens_of
from tests.support.processes import CHECKOUT
from tests.support.reverse_proxies import Nginx
from tests.support.users import Person, Session, register

PAGE = (CHECKOUT / "docs/postgrest.md").read_text()
BLOCKS = re.findall(r"^( *)```(\w+)\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)


def block(language: str) -> str:
    (text,) = (text for _, name, text in BLOCKS if name == language)
    return text


class Rest(NamedTuple):
    """PostgREST's handling of a request for the notes, with the settings of the page (src/library/PostgREST)."""

    settings: dict[str, str]
    keys: Path
    database: Any

    def answer(self, authorization: str | None) -> tuple[int, Any]:
        try:
            claims = self._verified(authorization.partition(" ")[2]) if authorization else {}
        except jwt.PyJWTError as error:
            return 401, str(error)
        role = claims.get("role", self.settings["db-anon-role"])
        try:
            with self.database, self.database.cursor() as cursor:
                cursor.execute("SELECT set_config('role', %s, true)", [role])
                claims_with_role = json.dumps(claims | {"role": role})
                cursor.execute("SELECT set_config('request.jwt.claims', %s, true)", [claims_with_role])
                cursor.execute(f"SELECT text FROM {self.settings['db-schemas']}.notes ORDER BY text")
                return 200, [text for (text,) in cursor.fetchall()]
        except psycopg2.errors.InvalidParameterValue as error:
            return 401, error.diag.message_primary
        except psycopg2.errors.InsufficientPrivilege as error:
            return 403 if claims else 401, error.diag.message_primary

    def _verified(self, token: str) -> dict[str, Any]:
        # PostgREST refuses a kid that the file lacks, and the algorithm of another key. It does not check iss.
        kid = jwt.get_unverified_header(token)["kid"]
        try:
            key = jwt.PyJWKSet.from_json(self.keys.read_text())[kid]
        except KeyError:
            raise jwt.InvalidKeyError("No suitable key was found to decode the JWT") from None
        audience = self.settings.get("jwt-aud")
        checks: Any = {"audience": audience, "options": {"verify_aud": audience is not None}, "leeway": 30}
        return jwt.decode(token, key, algorithms=[key.algorithm_name], **checks)


@pytest.fixture
def owner(new_database) -> Iterator[Any]:
    """A connection of the owner of a database with the tables and roles of the page."""
    with closing(psycopg2.connect(new_database(block("sql")))) as owner:
        owner.autocommit = True
        with owner.cursor() as cursor:
            cursor.execute("CREATE ROLE editor NOLOGIN")
            yield owner
            cursor.execute("DROP OWNED BY anon, authenticated, admin, authenticator, editor")
            cursor.execute("DROP ROLE authenticator, admin, authenticated, anon, editor")


@pytest.fixture
def rest(owner, app, tmp_path) -> Iterator[Rest]:
    settings = dict(re.findall(r'^([\w-]+) = "(.*)"$', block("ini"), re.MULTILINE))
    assert settings["jwt-secret"] == "@/etc/postgrest/jwks.json"
    app.extensions["latchkey"].openid_keys.make_first()
    result = run_command(app, *re.findall(r"^latchkey (.*) >", block("sh"))[0].split())
    (tmp_path / "jwks.json").write_text(result.output)
    with closing(psycopg2.connect(make_dsn(owner.dsn, user="authenticator"))) as connection:
        yield Rest(settings, tmp_path / "jwks.json", connection)


@pytest.fixture
def write(owner) -> Callable[[Person], None]:
    def write(author: Person) -> None:
        with owner.cursor() as cursor:
            cursor.execute("INSERT INTO api.notes VALUES (%s, %s)", [author.id, f"of {author.email}"])

    return write


def bearer(session: Session) -> str:
    return f"Bearer {session.access_token}"


def test_users_read_their_own_notes_by_the_role_of_their_token(rest, write, alice, bob, client, service_role):
    admin = register(client, service_role, "root@example.com", "admin")
    for person in (alice, bob, admin):
        write(person)
        assert rest.answer(bearer(person.open_session())) == (200, [f"of {person.email}"])


def test_tokens_for_others_are_refused_by_the_audience_and_half_sessions_by_the_key(
    rest, write, alice, client, database
):
    write(alice)
    tokens = tokens_of(client, database, make_client(database), alice, "openid")
    for token in (tokens["access_token"], tokens["id_token"]):
        assert rest.answer(f"Bearer {token}") == (401, "Audience doesn't match")
    # Without the audience, PostgREST accepts them, as the page says.
    open_rest = rest._replace(settings=rest.settings.copy())
    assert open_rest.settings.pop("jwt-aud") == "authenticated"
    assert open_rest.answer(f"Bearer {tokens['access_token']}")[0] == 403  # as the role anon
    factors.set_up(alice.open_session())
    half = alice.sign_in()
    assert half.claims["aud"] == "second_step"
    assert rest.answer(bearer(half)) == (401, "No suitable key was found to decode the JWT")


def test_proxy_drops_the_anon_key_and_passes_the_tokens_of_users_on(rest, write, alice, target, tmp_path):
    write(alice)

    class Served(Handler):
        def do_GET(self) -> None:
            status, body = rest.answer(self.headers.get("Authorization"))
            self.reply(status, {"Content-Type": "application/json"}, json.dumps([self.path, body]).encode())

    with LocalServer(Served) as server:
        port = server.url.rpartition(":")[2]

        class Gateway(Nginx):
            """The shipped file with the blocks of the page."""

            def _documented(self, language: str) -> list[str]:
                return [text.replace("3000", port) for _, name, text in BLOCKS if name == language]

        with Gateway(tmp_path, target.url.removeprefix("http://")) as proxy, proxy.client() as browser:
            answers = [
                browser.get("/rest/v1/notes", headers={"apikey": "anon", "Authorization": authorization})
                for authorization in ("Bearer anon", bearer(alice.open_session()), "Bearer other")
            ]
    assert [(answer.status_code, answer.json()) for answer in answers] == [
        (401, ["/notes", "permission denied for table notes"]),
        (200, ["/notes", [f"of {alice.email}"]]),
        (401, ["/notes", "Not enough segments"]),
    ]
