"""Nodes of the previous release, which know no members, refuse what only members may use: their own statements and rules
run on the database of this one.
"""

import importlib.util

import psycopg2
import pytest

from auth.core.settings.constants import statement_constants
from auth.rules import clients
from auth.web.context import EXTENSION
from sql import load_statements
from tests.support import oldest_release, previous_release
from tests.support.openid import bearer, make_client, tokens_of

MEMBERS_ALONE = "UPDATE oauth_clients SET is_blocked = true, admits_members = true, organization_id = %(id)s"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return oldest_release.unpack(tmp_path_factory.mktemp("previous"), previous_release.COMMIT)


@pytest.fixture
def run(files, client):
    """Run a statement of a node of the previous release, and return its rows."""
    statements = load_statements(files / "sql")
    constants = statement_constants(client.application.extensions[EXTENSION].settings)

    def run(database, name, /, **parameters):
        statement = statements[name]
        given = {each: (constants | parameters).get(each) for each in statement.parameters}
        read = database.all if statement.returns else database.run
        return read(statement.direct, **given)

    return run


@pytest.fixture
def client(make_app):
    return make_app(AUTH_ORGANIZATIONS="users").test_client()


@pytest.fixture
def acme(alice) -> str:
    """The id of Alice's organisation."""
    return alice.open_session().post("/organizations", json={"name": "Acme", "slug": "acme"}).json["id"]


@pytest.fixture
def application(database):
    return make_client(database)


@pytest.fixture
def tokens(client, database, application, alice, acme):
    """Return the tokens of Alice, for Acme."""
    return tokens_of(client, database, application, alice, organization_id=acme)


@pytest.fixture
def session(tokens, database):
    return database.one(
        "SELECT id::text, user_id::text, organization_id FROM sessions WHERE grant_id IS NOT NULL"
    )


class TestClientThatAdmitsMembersAlone:
    @pytest.fixture(autouse=True)
    def admits_members_alone(self, session, database):
        database.run(MEMBERS_ALONE, id=session.organization_id)

    def test_is_used_here(self, client, application, tokens):
        assert application.refresh(client, tokens["refresh_token"]).status_code == 200

    def test_is_blocked_for_them(self, run, database, application, session, alice):
        own = {"session_id": session.id, "client_id": application.id}
        found = {
            "select_client": {"id": application.id},
            "lock_client_session": own,
            "select_client_caller": own | {"user_id": alice.id},
        }
        for name, parameters in found.items():
            (row,) = run(database, name, **parameters)
            assert row.is_blocked is True, name
        known = clients.Client(is_blocked=row.is_blocked, resources=frozenset(row.resources))
        assert clients.may_use(row, known, None) is False
        (known,) = run(database, "select_client", id=application.id)
        assert clients.problem_of_credentials(known, "none", None) == "blocked"
        assert [row.is_blocked for row in run(database, "list_clients", page_offset=0)] == [True]

    def test_cannot_be_unblocked_by_them(self, run, database, application):
        (row,) = database.all("SELECT * FROM oauth_clients")
        with pytest.raises(psycopg2.errors.CheckViolation):
            run(database, "write_client", **row._asdict() | {"is_blocked": False})

    def test_stays_what_it_is_when_they_change_it(self, run, database, application, client, tokens):
        (row,) = run(database, "select_client", id=application.id)
        run(database, "write_client", **row._asdict() | {"name": "Another"})
        assert database.value("SELECT name FROM oauth_clients") == "Another"
        assert application.refresh(client, tokens["refresh_token"]).status_code == 200

    def test_their_end_of_lost_access_opens_nothing(self, run, database, application):
        assert run(database, "has_lost_access", client_id=application.id)[0].is_so is True


class TestSessionForAnOrganisation:
    def test_they_do_not_know_its_refresh_token(self, files, tokens, client):
        path = files / "auth" / "core" / "tokens" / "refresh_tokens.py"
        spec = importlib.util.spec_from_file_location("previous_refresh_tokens", path)
        assert spec
        assert spec.loader
        theirs = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(theirs)
        secret_key = client.application.extensions[EXTENSION].settings.secret_key
        for kind in (theirs.RefreshTokens, theirs.ClientRefreshTokens):
            with pytest.raises(theirs.InvalidRefreshToken):
                kind(secret_key).read(tokens["refresh_token"])

    def test_its_refresh_token_stays_good_here(self, client, application, tokens):
        renewed = application.refresh(client, tokens["refresh_token"])
        assert renewed.status_code == 200
        assert client.get("/oauth/userinfo", headers=bearer(renewed.json["access_token"])).status_code == 200

    def test_of_others_they_read_as_before(self, files, client, database, application, alice):
        other = tokens_of(client, database, application, alice)
        read = client.application.extensions[EXTENSION].client_refresh_tokens.read
        assert read(other["refresh_token"]).counter == 0
