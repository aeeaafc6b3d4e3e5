"""Back-channel logout: an application is told that a user's session at it has ended."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from tests.support.answers import assert_error
from tests.support.deliverers import deliver_due
from tests.support.http_target import HttpTarget
from tests.support.openid import allow, bearer, claims_of, make_client, tokens_of

EVENT = "http://schemas.openid.net/event/backchannel-logout"
MEMBERS = {"iss", "aud", "sub", "sid", "iat", "exp", "jti", "events"}


@pytest.fixture
def client(make_app):
    """A service that may reach this machine."""
    return make_app(AUTH_WEBHOOK_PRIVATE_NETWORKS="true").test_client()


@pytest.fixture
def deliver(client):
    return lambda: deliver_due(client.application.extensions["latchkey"])


@pytest.fixture
def wiki(database, target):
    return make_client(database, name="Wiki", backchannel_logout_uri=f"{target.url}/logout?of=wiki")


@pytest.fixture
def tokens(client, database, wiki, alice):
    return tokens_of(client, database, wiki, alice)


def logout_tokens(target: HttpTarget) -> list[str]:
    """Return the logout tokens. Each was the only field of a form."""
    tokens = []
    for posted in target.requests:
        assert posted.path == "/logout?of=wiki"
        assert posted.headers["content-type"] == "application/x-www-form-urlencoded"
        (name, (token,)) = next(iter(parse_qs(posted.body.decode(), strict_parsing=True).items()))
        assert name == "logout_token"
        tokens.append(token)
    return tokens


def outcomes(database: Any) -> list[str | None]:
    return [row.outcome for row in database.all("SELECT outcome FROM outbox WHERE channel = 'logout'")]


def let_time_pass(database: Any, minutes: int) -> None:
    """Age the outbox by some minutes, and make its messages due."""
    for column in ("created_at", "expires_at", "next_attempt_at"):
        database.run(
            f"UPDATE outbox SET {column} = {column} - make_interval(mins => %(minutes)s)", minutes=minutes
        )


# Requests of a user, an administrator or an application that end a session at the application.
ENDS = {
    "sign-out everywhere": lambda session, admin, wiki, tokens: session.post("/logout?scope=global"),
    "lost role": lambda session, admin, wiki, tokens: admin(
        "PUT", "/oauth/clients/{wiki}", {"allowed_roles": ["staff"]}
    ),
    "removed application": lambda session, admin, wiki, tokens: session.delete(
        f"/user/oauth/grants?client_id={wiki.id}"
    ),
    "deleted user": lambda session, admin, wiki, tokens: session.delete("/user", json={}),
    "deleted application": lambda session, admin, wiki, tokens: admin("DELETE", "/oauth/clients/{wiki}"),
    "revocation": lambda session, admin, wiki, tokens: wiki.post(
        session.client, "/oauth/revoke", token=tokens["refresh_token"]
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_application_is_told_once_of_a_session_that_an_act_ends(
    client, database, alice, wiki, tokens, target, deliver, service_role, end
):
    def admin(method: str, path: str, body: Any = None) -> Any:
        full_path = path.format(user=alice.id, wiki=wiki.id)
        return client.open(f"/admin{full_path}", method=method, json=body, headers=service_role)

    session = alice.open_session(client)
    assert outcomes(database) == []
    assert ENDS[end](session, admin, wiki, tokens).status_code in (200, 204)
    deliver()
    (token,) = logout_tokens(target)
    keys = KeySet.import_key_set(client.get("/.well-known/jwks.json").json)
    decoded, id_token = jwt.decode(token, keys, algorithms=["RS256"]), claims_of(tokens["id_token"])
    assert (decoded.header["typ"], {*decoded.claims}) == ("logout+jwt", MEMBERS)
    same = {name: id_token[name] for name in ("iss", "aud", "sub", "sid")}
    assert same.items() <= decoded.claims.items()
    assert (decoded.claims["exp"] - decoded.claims["iat"], decoded.claims["events"]) == (120, {EVENT: {}})
    # It contains no id of a session, and it is no other kind of token.
    assert claims_of(tokens["access_token"])["session_id"] not in str(decoded.claims)
    for path in ("/user", "/oauth/userinfo"):
        assert client.get(path, headers=bearer(token)).status_code == 401
    assert (deliver(), outcomes(database)) == (0, ["sent"])


def test_application_that_is_down_for_twenty_minutes_gets_a_token_of_that_moment(
    client, database, alice, tokens, target, deliver
):
    target.status = 503
    alice.open_session(client).post("/logout?scope=global")
    deliver()
    let_time_pass(database, 20)
    target.status = 204
    deliver()
    first, second = map(claims_of, logout_tokens(target))
    assert first["jti"] != second["jti"]
    assert second["exp"] > datetime.now(UTC).timestamp() + 100
    assert outcomes(database) == ["sent"]


@pytest.mark.parametrize(
    ("status", "outcome"), [(200, "sent"), (204, "sent"), (400, "failed"), (404, None), (302, None)]
)
def test_reply_decides_whether_the_application_is_told_again(
    client, database, alice, tokens, target, deliver, status, outcome
):
    target.status, target.headers = status, {"Location": f"{target.url}/elsewhere"}
    alice.open_session(client).post("/logout?scope=global")
    deliver()
    assert (outcomes(database), len(logout_tokens(target))) == ([outcome], 1)
    let_time_pass(database, 61)
    deliver()
    assert (outcomes(database), len(logout_tokens(target))) == ([outcome or "expired"], 1)


def test_address_that_became_private_is_not_reached(make_app, database, alice, wiki, target):
    client = make_app(AUTH_WEBHOOK_PRIVATE_NETWORKS="false").test_client()
    tokens_of(client, database, wiki, alice)
    alice.open_session(client).post("/logout?scope=global")
    deliver_due(client.application.extensions["latchkey"])
    assert (target.requests, outcomes(database)) == ([], [None])


def test_nobody_else_is_told(client, database, alice, bob, wiki, tokens, target, deliver):
    silent = make_client(database)
    tokens_of(client, database, silent, alice)
    # Without an ID token there is no sid.
    tokens_of(client, database, wiki, alice, "email")
    others = tokens_of(client, database, wiki, bob)
    expired = allow(database, bob.id, wiki.id)
    database.run("DELETE FROM sessions WHERE id = %(id)s", id=expired)
    alice.open_session(client).post("/logout?scope=global")
    deliver()
    assert [claims_of(token)["sub"] for token in logout_tokens(target)] == [alice.id]
    assert wiki.refresh(client, others["refresh_token"]).status_code == 200


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("http://127.0.0.1/logout", "must not be in a private network unless AUTH_WEBHOOK_PRIVATE_NETWORKS is true"),
        ("javascript:alert(1)", "must be an http or https URL"),
    ],
)  # fmt: skip
def test_logout_uri_is_guarded_like_the_url_of_a_webhook(make_app, service_role, uri, problem):
    client = make_app(AUTH_WEBHOOK_PRIVATE_NETWORKS="false").test_client()
    body = {"redirect_uris": ["https://wiki.example.com/callback"], "backchannel_logout_uri": uri}
    response = client.post("/admin/oauth/clients", json=body, headers=service_role)
    assert_error(response, 400, "validation_failed", f"invalid backchannel_logout_uri '{uri}': it {problem}")


def test_only_an_administrator_names_the_uri(make_app, client, database, service_role):
    uri = "https://93.184.216.34/logout"
    body = {"redirect_uris": ["https://wiki.example.com/callback"], "backchannel_logout_uri": uri}
    registering = make_app(AUTH_OAUTH_DYNAMIC_REGISTRATION="true").test_client()
    assert "backchannel_logout_uri" not in registering.post("/oauth/clients/register", json=body).json
    application = client.post("/admin/oauth/clients", json=body, headers=service_role).json
    assert application["backchannel_logout_uri"] == uri
    path = f"/admin/oauth/clients/{application['client_id']}"
    cleared = client.put(path, json={"backchannel_logout_uri": ""}, headers=service_role).json
    assert "backchannel_logout_uri" not in cleared
    metadata = client.get("/.well-known/openid-configuration").json
    assert metadata["backchannel_logout_supported"] is True
    assert metadata["backchannel_logout_session_supported"] is True
