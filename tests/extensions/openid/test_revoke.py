"""POST /oauth/revoke: the end of a client's session, at the client's wish (RFC 7009)."""

import pytest

from tests.support.answers import assert_ok
from tests.support.openid import Client, assert_refused, bearer, make_client, tokens_of

PATH = "/oauth/revoke"


@pytest.fixture
def tokens(client, database, app_client, alice):
    return tokens_of(client, database, app_client, alice)


@pytest.fixture
def is_live(client, tokens):
    return lambda: client.get("/oauth/userinfo", headers=bearer(tokens["access_token"])).status_code == 200


@pytest.mark.parametrize("name", ["access_token", "refresh_token"])
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "none"])
def test_either_token_ends_the_session(client, database, alice, name, method):
    app_client = make_client(database, token_endpoint_auth_method=method)
    tokens, other_tokens = (tokens_of(client, database, app_client, alice) for _ in range(2))
    for _ in range(2):
        assert_ok(app_client.post(client, PATH, token=tokens[name], token_type_hint="x"), {})
    statuses = [
        client.get("/oauth/userinfo", headers=bearer(each["access_token"])).status_code
        for each in (tokens, other_tokens)
    ]
    assert statuses == [401, 200]
    assert_refused(app_client.refresh(client, tokens["refresh_token"]), "invalid_grant")
    end_reason = "SELECT end_reason FROM sessions WHERE ended_at IS NOT NULL"
    assert database.all(end_reason) == [("logout",)]
    statement = "SELECT user_id::text, details ->> 'client_id' FROM audit_log WHERE action = 'session_ended'"
    assert database.all(statement) == [(alice.id, app_client.id)]


def test_token_that_is_not_the_clients_changes_nothing(client, database, alice, app_client, tokens, is_live):
    session, stranger = alice.open_session(), make_client(database)
    forged = client.application.extensions["latchkey"].client_refresh_tokens.make(session.id, 0)
    before = database.everything()
    for token in (*(tokens[name] for name in ("access_token", "refresh_token")), "nonsense", "é", "x" * 56):
        assert_ok(stranger.post(client, PATH, token=token), {})
    for token in (session.access_token, session.refresh_token, forged, tokens["id_token"]):
        assert_ok(app_client.post(client, PATH, token=token), {})
    assert database.everything() == before
    assert is_live()


def test_client_must_authenticate(client, app_client, tokens, is_live):
    for imposter in (Client(app_client.id, "wrong"), Client(app_client.id, None, "none")):
        assert_refused(imposter.post(client, PATH, token=tokens["refresh_token"]), "invalid_client", 401)
    assert_refused(client.post(PATH, data={"token": tokens["refresh_token"]}), "invalid_client", 401)
    assert_refused(app_client.post(client, PATH), "invalid_request", description="token: is required")
    assert is_live()


def test_token_of_client_credentials_cannot_be_revoked(client, database):
    service = make_client(database, grant_types=["client_credentials"])
    token = service.post(client, "/oauth/token", grant_type="client_credentials").json["access_token"]
    assert_refused(service.post(client, PATH, token=token), "unsupported_token_type")
