"""A role, or a setting of a client, that excludes a user ends that user's sessions at the client."""

import pytest

from tests.support.openid import REDIRECT_URI, bearer, granted_code, make_client, tokens_of
from tests.support.server import at_once

EDITOR = {"app_metadata": {"roles": ["editor"]}}
# How a role changes from `authenticated`, or from the list of EDITOR.
CHANGES = {
    "role": lambda put: put({"role": "staff"}),
    "list of roles": lambda put: put({"app_metadata": {"roles": []}}),
}


@pytest.fixture
def narrow(client, service_role, app_client):
    """Change by the API who may use the client."""

    def narrow(*roles: str) -> None:
        path, body = f"/admin/oauth/clients/{app_client.id}", {"allowed_roles": roles}
        assert client.put(path, json=body, headers=service_role).status_code == 200

    return narrow


@pytest.fixture
def put(client, service_role, alice):
    def put(body):
        response = client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)
        assert response.status_code == 200, response.text

    return put


def reasons(database) -> list[str | None]:
    rows = database.all("SELECT end_reason FROM sessions WHERE grant_id IS NOT NULL")
    return [row.end_reason for row in rows]


class TestRole:
    @pytest.mark.parametrize("change", CHANGES)
    def test_change_that_no_longer_admits_a_user_ends_the_sessions_for_good(
        self, client, database, alice, put, app_client, change
    ):
        put(EDITOR)
        role = "authenticated" if change == "role" else "editor"
        database.run("UPDATE oauth_clients SET allowed_roles = ARRAY[%(role)s]", role=role)
        other = make_client(database)
        tokens, other_tokens = (tokens_of(client, database, each, alice) for each in (app_client, other))
        code = granted_code(database, app_client, alice.open_session())

        CHANGES[change](put)
        assert sorted(reasons(database), key=str) == [None, "access_lost"]
        put(EDITOR | {"role": "authenticated"})
        assert app_client.refresh(client, tokens["refresh_token"]).json["error"] == "invalid_grant"
        assert app_client.redeem(client, code, redirect_uri=REDIRECT_URI).status_code == 400
        assert other.refresh(client, other_tokens["refresh_token"]).status_code == 200
        assert alice.sign_in().get("/user").status_code == 200

    def test_change_that_admits_as_before_ends_nothing(self, client, database, alice, put, app_client):
        database.run("UPDATE oauth_clients SET allowed_roles = '{authenticated,staff,editor}'")
        tokens_of(client, database, app_client, alice)
        put({"role": "staff"})
        put(EDITOR | {"role": "other"})
        put({"role": "staff"})
        put({"user_metadata": {}})
        assert reasons(database) == [None]


class TestClient:
    def test_change_that_no_longer_admits_a_user_ends_the_sessions_for_good(
        self, client, database, alice, bob, put, app_client, narrow
    ):
        put(EDITOR)
        tokens, _kept = (tokens_of(client, database, app_client, each) for each in (bob, alice))
        narrow("editor")
        assert sorted(reasons(database), key=str) == [None, "access_lost"]
        narrow()
        assert app_client.refresh(client, tokens["refresh_token"]).json["error"] == "invalid_grant"
        assert database.count("oauth_grants") == 2

    def test_a_thousand_users_end_in_batches_and_are_refused_before(
        self, client, database, alice, app_client, narrow
    ):
        database.insert_many(
            "INSERT INTO users (email, made_by)"
            " SELECT 'user' || n || '@example.com', 'signup' FROM generate_series(1, 999) AS n"
        )
        database.insert_many(
            f"""
            INSERT INTO oauth_grants (user_id, client_id, scopes)
            SELECT id, '{app_client.id}', '{{openid}}' FROM users WHERE email LIKE 'user%'
            """
        )
        database.insert_many(
            """
            INSERT INTO sessions (user_id, method, grant_id, scopes, auth_time)
            SELECT user_id, 'oauth_client', id, scopes, now() FROM oauth_grants
            """
        )
        tokens = tokens_of(client, database, app_client, alice)
        headers = bearer(tokens["access_token"])
        assert client.get("/oauth/userinfo", headers=headers).status_code == 200
        # Alice's session is in the second of two batches.
        with database.locked("users", alice.id) as lock:
            request = lock.start(lambda: narrow("staff"))
            assert reasons(database).count("access_lost") == 500
            assert client.get("/oauth/userinfo", headers=headers).status_code == 401
        request.result()
        assert reasons(database) == ["access_lost"] * 1000

    @pytest.mark.parametrize("way", ["client", "role"])
    def test_session_that_an_interrupted_change_has_not_ended_does_not_come_back(
        self, client, database, alice, put, app_client, narrow, way
    ):
        tokens = tokens_of(client, database, app_client, alice)
        database.run("UPDATE oauth_clients SET allowed_roles = '{staff}'")
        assert reasons(database) == [None]
        if way == "client":
            narrow("staff", "authenticated")
        else:
            put({"role": "staff"})
        assert reasons(database) == ["access_lost"]
        assert app_client.refresh(client, tokens["refresh_token"]).json["error"] == "invalid_grant"

    def test_session_does_not_survive_concurrent_changes_of_the_client(
        self, client, database, alice, app_client, narrow
    ):
        tokens_of(client, database, app_client, alice)
        at_once(20, lambda number: narrow("staff" if number % 2 else "authenticated"))
        assert reasons(database) == ["access_lost"]


class TestResource:
    ONE, OTHER = "https://api.example.com/", "https://payroll.example.com/"

    def test_resource_that_is_taken_from_a_client_ends_its_sessions_for_good(
        self, client, database, alice, service_role, app_client
    ):
        path = f"/admin/oauth/clients/{app_client.id}"

        def give(*resources):
            response = client.put(path, json={"resources": resources}, headers=service_role)
            assert response.status_code == 200, response.text

        give(self.ONE, self.OTHER)
        tokens = {
            resource: tokens_of(client, database, app_client, alice, resource=resource)
            for resource in (self.ONE, self.OTHER, None)
        }
        code = granted_code(database, app_client, alice.open_session(), resource=self.ONE)
        give(self.OTHER)
        for _ in range(2):
            response = app_client.refresh(client, tokens[self.ONE]["refresh_token"])
            assert (response.status_code, response.json["error"]) == (400, "invalid_grant")
            response = app_client.redeem(client, code, redirect_uri=REDIRECT_URI)
            assert response.status_code == 400
            # The resource comes back.
            give(self.ONE, self.OTHER)
        for resource in (self.OTHER, None):
            assert app_client.refresh(client, tokens[resource]["refresh_token"]).status_code == 200
        assert sorted(map(str, reasons(database))) == ["None", "None", "access_lost"]
