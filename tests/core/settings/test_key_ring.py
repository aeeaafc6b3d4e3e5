"""A running process rereads its keys, and uses a new key when its time has come."""

import json
import time

import jwt
import pytest
import structlog

from auth.core.settings import state
from auth.core.tokens import signing_keys
from auth.core.tokens.derived_keys import format_time
from auth.core.tokens.jws import InvalidAccessToken
from auth.core.tokens.refresh_tokens import InvalidRefreshToken
from auth.delivery import janitor
from tests.support.apps import new_app
from tests.support.environment import secret
from tests.support.users import issue_token

NEW = secret("new")
SESSION_ID = "0190a5b4-6d7e-7c3a-9f00-0123456789ab"


def at(seconds):
    """Return the time in `seconds` from now, in the format of key files."""
    return format_time(time.time() + seconds)


@pytest.fixture
def directory(tmp_path):
    for name in ("secret_key", "service_role_key"):
        state.make_once(tmp_path / name, state.new_secret)
    state.make_once(tmp_path / "jwt_keys.json", signing_keys.new_jwk_set)
    return tmp_path


@pytest.fixture
def service(environment, directory, database):
    without_keys = {name: value for name, value in environment.items() if name != "AUTH_SERVICE_ROLE_KEY"}
    log = structlog.get_config()
    app = new_app(without_keys | {"AUTH_STATE_DIR": str(directory)})
    yield app
    structlog.configure(**log)
    app.extensions["latchkey"].db.close()


@pytest.fixture
def service_parts(service):
    """The parts of the service."""
    return service.extensions["latchkey"]


@pytest.fixture
def write(directory, service_parts):
    """Replace a file of keys, which the service reads again."""

    def write(name, text):
        (directory / name).write_text(text)
        service_parts.key_ring.refresh()

    return write


@pytest.fixture
def rotate(directory, write):
    """Put a new secret key before the old one, to be used in `seconds` from now."""
    old = (directory / "secret_key").read_text().strip()
    return lambda seconds: write("secret_key", f"{NEW}@{at(seconds)},{old}\n")


@pytest.fixture
def add_keys(directory, write):
    """Add a key that is used in these seconds before the keys of the file for each of `times`; return all."""

    def add(*times):
        old = json.loads((directory / "jwt_keys.json").read_text())["keys"]
        new = [json.loads(signing_keys.new_jwk_set())["keys"][0] for _ in times]
        jwks = [jwk | {"active_from": at(seconds)} for jwk, seconds in zip(new, times, strict=True)] + old
        write("jwt_keys.json", json.dumps({"keys": jwks}))
        return jwks

    return add


def signed_token(service, **options):
    """Return a token that the service signs, and its key id."""
    names = ("email", "phone", "app_metadata", "user_metadata", "role", "is_anonymous")
    user = dict.fromkeys(names) | {"id": SESSION_ID}
    token = issue_token(service, user, SESSION_ID, 0, **options)
    return token, jwt.get_unverified_header(token).get("kid")


class TestSigningKeys:
    def test_new_key_is_published_first_and_signs_when_its_time_has_come(self, service, add_keys, write):
        new, old = add_keys(60)
        published = service.test_client().get("/.well-known/jwks.json").json["keys"]
        assert [key["kid"] for key in published] == [new["kid"], old["kid"]]
        assert not any("active_from" in key for key in published)
        assert signed_token(service)[1] == old["kid"]
        # A bare array is a set too.
        write("jwt_keys.json", json.dumps([new | {"active_from": at(-60)}, old]))
        assert signed_token(service)[1] == new["kid"]

    def test_old_keys_verify_until_they_are_removed(self, service, service_parts, add_keys, write):
        old_token = signed_token(service)[0]
        new, _old = add_keys(-60)
        assert service_parts.access_tokens.claims(old_token)
        write("jwt_keys.json", json.dumps([new]))
        with pytest.raises(InvalidAccessToken, match="unknown kid"):
            service_parts.access_tokens.claims(old_token)


class TestSecretKeys:
    def test_new_secret_is_accepted_first_and_used_when_its_time_has_come(self, service_parts, rotate):
        tokens = service_parts.refresh_tokens
        old = tokens.make(SESSION_ID, 7)
        rotate(60)
        assert tokens.make(SESSION_ID, 7) == old
        rotate(-60)
        new = tokens.make(SESSION_ID, 7)
        assert new != old
        assert tokens.read(new) == tokens.read(old)
        rotate(60)
        assert tokens.read(new) == tokens.read(old)

    def test_code_from_before_the_rotation_is_accepted_once(self, parts, client, outbox, database, alice):
        ring = parts.key_ring
        before = ring.settings.secret_key
        client.post("/magiclink", json={"email": alice.email})
        body = {"type": "magiclink", "email": alice.email, "token": outbox.last().code}
        try:
            parts.codes.use((f"{NEW}@{at(-60)}", *before))
            assert client.post("/verify", json=body).status_code == 200
            assert client.post("/verify", json=body).status_code == 403
        finally:
            parts.codes.use(before)

    @pytest.mark.usefixtures("no_openid_keys")
    def test_waiting_message_is_resealed(self, parts, client, outbox, database, alice):
        before = parts.key_ring.settings.secret_key
        client.post("/magiclink", json={"email": alice.email})
        statement = "SELECT secret FROM outbox WHERE outcome IS NULL AND secret IS NOT NULL"
        sealed, link = database.value(statement), outbox.last().token
        try:
            parts.key_ring.sealer.use((f"{NEW}@{at(-60)}", *before))
            janitor.keep_house(parts.settings, parts.db, parts.sealer)
            resealed = database.value(statement)
            assert bytes(resealed)[:4] == parts.sealer.newest != bytes(sealed)[:4]
            assert outbox.last().token == link
        finally:
            parts.sealer.use(before)


class TestFiles:
    def test_content_of_a_key_file_is_never_taken_for_a_path(self, tmp_path):
        keys, other = tmp_path / "jwt_keys.json", tmp_path / "other.json"
        keys.write_text(signing_keys.new_jwk_set())
        for content in (str(keys), "-----BEGIN EC PRIVATE KEY-----"):
            other.write_text(content)
            with pytest.raises(ValueError, match="is not a valid JWK Set"):
                signing_keys.parse_jwk_set(str(other))

    @pytest.mark.parametrize(
        ("name", "text"),
        [("secret_key", ""), ("secret_key", NEW), ("service_role_key", NEW), ("jwt_keys.json", '{"keys": ')],
    )
    def test_file_that_is_broken_or_of_another_deployment_changes_nothing(
        self, service_parts, directory, write, name, text, capfd
    ):
        token = service_parts.refresh_tokens.make(SESSION_ID, 7)
        for _ in range(2):
            write(name, text)
        assert service_parts.refresh_tokens.read(token)
        lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
        (problem,) = [line["reason"] for line in lines if line["event"] == "keys_not_read_again"]
        assert problem.startswith(f"{directory / name}: ")

    def test_service_role_key_is_replaced_without_a_restart(self, service, directory, write):
        client = service.test_client()
        old = (directory / "service_role_key").read_text().strip()
        for text, expected in ((f"{NEW},{old}", [200, 200]), (NEW, [401, 200])):
            write("service_role_key", text)
            headers = ({"apikey": key} for key in (old, NEW))
            assert [client.get("/admin/users", headers=each).status_code for each in headers] == expected

    def test_secret_that_was_removed_is_refused(self, service_parts, write, rotate):
        old = service_parts.refresh_tokens.make(SESSION_ID, 7)
        rotate(-60)
        write("secret_key", NEW)
        with pytest.raises(InvalidRefreshToken):
            service_parts.refresh_tokens.read(old)
