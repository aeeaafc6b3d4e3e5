"""API keys: /user/api_keys, POST /token with grant_type=api_key, and what their access tokens open."""

import re

import pytest

from auth.core.tokens import api_keys
from auth.core.tokens.jws import InvalidAccessToken
from tests.support.answers import (
    A_SENTENCE,
    A_TIMESTAMP,
    A_UUID,
    AN_ACCESS_TOKEN,
    ANYTHING,
    assert_error,
    assert_ok,
)
from tests.support.api_keys import ROUTE, bearer, claims_of, make_key, token_of, use
from tests.support.elapsed import assert_left
from tests.support.links import hand_in
from tests.support.server import at_once
from tests.support.services import ELSEWHERE, HOME, at
from tests.support.users import PASSWORD

NEWEST = "the-secret-key-that-took-over-lately"
A_KEY = r"lk_[0-9a-f]{32}[0-9A-Za-z]{33}"
LISTED = {
    **{"id": A_UUID, "name": "CI", "prefix": ANYTHING, "scopes": [], "created_at": A_TIMESTAMP},
    **{"expires_at": None, "last_used_on": None},
}


@pytest.fixture
def client(make_app):
    return make_app(AUTH_API_KEYS="true", AUTH_RATE_LIMITS_ENABLED="true").test_client()


@pytest.fixture
def session(alice, client):
    return alice.open_session(client)


@pytest.fixture
def introspect(client, service_role):
    return lambda token: client.post("/introspect", json={"token": token}, headers=service_role).json


def is_live(client, key, token):
    """Whether a key gives a token, and an older token still opens GET /user; both or neither."""
    answers = use(client, key).status_code, client.get("/user", **bearer(token)).status_code
    assert answers in {(200, 200), (401, 401), (403, 403), (401, 403)}, answers
    return answers == (200, 200)


class TestKeys:
    def test_key_is_shown_once_listed_and_removed(self, session, client, database, outbox, alice):
        body = {"name": "CI", "expires_in": 86_400, "scopes": ["reports.read", "a:b"]}
        response = session.post(ROUTE, json=body)
        entry = response.json
        key = entry.pop("key")
        assert (response.status_code, re.fullmatch(A_KEY, key) is not None) == (201, True)
        assert entry == LISTED | {"scopes": body["scopes"], "expires_at": A_TIMESTAMP}
        assert key.startswith(entry["prefix"])
        assert session.get(ROUTE).json == [entry]
        (row,) = database.all("SELECT key_mac FROM api_keys")
        assert key[-33:].encode() not in bytes(row.key_mac)
        response = session.delete(f"{ROUTE}/{entry['id']}")
        assert (response.status_code, response.data, session.get(ROUTE).json) == (204, b"", [])
        assert_error(session.delete(f"{ROUTE}/{entry['id']}"), 404, "api_key_not_found")
        kinds = [(message.kind, message.to, bool(message.token)) for message in outbox.sent()]
        assert kinds == [("api_key_added", alice.email, True), ("api_key_removed", alice.email, True)]
        rows = database.all("SELECT details FROM audit_log WHERE starts_with(action, 'api') ORDER BY at")
        details = {"api_key": "CI", "api_key_id": entry["id"]}
        assert [row.details for row in rows] == [details | {"scopes": "reports.read a:b"}, details]
        assert not any(key[-33:] in str(row) for row in database.all("SELECT * FROM audit_log"))

    def test_keys_of_others_are_neither_listed_nor_removed(self, session, client, bob, database):
        key_id, _ = make_key(bob.open_session(client))
        assert session.get(ROUTE).json == []
        for id in (key_id, key_id.upper(), "x", "%00"):
            assert_error(session.delete(f"{ROUTE}/{id}"), 404, "api_key_not_found")
        assert database.count("api_keys") == 1

    def test_concurrent_additions_stop_at_twenty(self, make_app, alice, database):
        session = alice.open_session(make_app(AUTH_API_KEYS="true").test_client())
        for _ in range(15):
            make_key(session)
        statuses = at_once(10, lambda _: session.post(ROUTE, json={"name": "CI"}).status_code)
        assert (sorted(statuses), database.count("api_keys")) == ([201] * 5 + [422] * 5, 20)
        assert_error(session.post(ROUTE, json={"name": "CI"}), 422, "too_many_api_keys")
        notices = "SELECT sum(coalesce((variables ->> 'times')::integer, 1)) FROM outbox WHERE kind = 'api_key_added'"
        assert database.value(notices) == 20


class TestTokens:
    def test_token_has_the_users_claims_and_no_session(self, session, client, alice, database):
        id, key = make_key(session, scopes=["b", "a"])
        response = use(client, key)
        assert response.json == {
            "access_token": AN_ACCESS_TOKEN,
            "token_type": "bearer",
            "expires_in": 600,
            "expires_at": ANYTHING,
            "scope": "b a",
        }
        claims = claims_of(response.json["access_token"])
        session_claims = {name: value for name, value in session.claims.items() if name != "session_id"}
        key_claims = {"api_key_id": id, "scope": "b a", "iat": ANYTHING, "exp": response.json["expires_at"]}
        amr = [{"method": "api_key", "timestamp": claims["iat"]}]
        assert claims == session_claims | key_claims | {"jti": A_UUID, "amr": amr}
        assert claims["exp"] - claims["iat"] == 600
        assert_ok(client.get("/user", **bearer(response.json["access_token"])), session.get("/user").json)
        assert database.count("sessions") == 1

    def test_day_of_the_last_use_is_kept_and_recorded_once(self, session, client, database, alice):
        _, key = make_key(session)
        for _ in range(3):
            use(client, key)
        rows = database.all(
            "SELECT (at AT TIME ZONE 'UTC')::date::text AS day, user_id, actor, actor_id"
            "  FROM audit_log WHERE action = 'api_key_used'"
        )
        by_day = {row.day: row[1:] for row in rows}  # two if midnight came between the uses
        assert len(by_day) == len(rows)
        assert set(by_day.values()) == {(alice.id, "user", alice.id)}
        assert session.get(ROUTE).json[0]["last_used_on"] == max(by_day)
        assert database.count("outbox", "channel = 'webhook'") == 0

    def test_token_and_key_end_with_the_expiry_of_the_key(self, session, client, database, introspect):
        _, key = make_key(session, expires_in=3600)
        token = token_of(client, key)
        database.run("UPDATE api_keys SET expires_at = now() + interval '100 seconds'")
        assert_left(use(client, key).json["expires_in"], of=100)
        database.run("UPDATE api_keys SET expires_at = now()")
        assert not is_live(client, key, token)
        assert introspect(key) == introspect(token) == {"active": False}

    def test_mistyped_key_is_told_apart_from_a_wrong_one(self, session, client):
        _, key = make_key(session)
        other = "a" if key[40] != "a" else "b"
        for mistyped in (key[:-1], f"{key}x", key[:40] + other + key[41:], "", "lk_"):
            assert_error(use(client, mistyped), 400, "validation_failed", details=A_SENTENCE)
        assert_error(use(client, _with_another_secret(key)), 401, "invalid_credentials")

    def test_administrative_key_is_refused_with_the_prefix_of_the_right_one(self, client):
        _, key = api_keys.new_key(api_keys.ADMIN_PREFIX)
        needed = "api_key: must be a user's key (lk_…), not mistyped"
        assert_error(use(client, key), 400, "validation_failed", details=needed)

    def test_unknown_removed_expired_and_wrong_keys_look_alike(self, session, client, database):
        id, removed = make_key(session)
        session.delete(f"{ROUTE}/{id}")
        _, expired = make_key(session, expires_in=60)
        database.run("UPDATE api_keys SET expires_at = now()")
        _, good = make_key(session)
        answers = {
            use(client, key).data for key in (removed, expired, _with_another_secret(good), _unknown_key())
        }
        assert len(answers) == 1

    def test_guesses_are_counted_by_key_and_network(self, session, client, database, alice):
        _, key = make_key(session)
        wrong = _with_another_secret(key)
        statuses = at_once(50, lambda _: use(client, wrong, **at(ELSEWHERE)).status_code)
        assert sorted(statuses) == [401] * 10 + [429] * 40
        # There the right key is refused too, but not elsewhere: knowing its id must not lock it.
        response = use(client, key, **at(ELSEWHERE))
        assert_error(response, 429, "over_request_rate_limit")
        assert 0 < int(response.headers["Retry-After"]) <= 900
        assert use(client, key, **at(HOME)).status_code == 200
        is_guess = "action = 'sign_in_refused' AND reason = 'invalid_credentials' AND user_id = %(id)s"
        assert database.value(f"SELECT sum(count) FROM audit_log WHERE {is_guess}", id=alice.id) == 10

    def test_right_key_uses_up_no_tries(self, session, client):
        _, key = make_key(session)
        assert at_once(30, lambda _: use(client, key).status_code) == [200] * 30

    def test_requests_of_a_network_are_limited(self, make_app, alice):
        limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_API_KEYS": "3 per minute"}
        client = make_app(AUTH_API_KEYS="true", **limits).test_client()
        keys = [_unknown_key() for _ in range(4)]
        assert [use(client, key).status_code for key in keys] == [401, 401, 401, 429]

    def test_key_moves_to_the_newest_secret_at_its_next_use(self, make_app, alice, database, state_dir):
        secret = (state_dir / "secret_key").read_text().strip()
        client = make_app(AUTH_API_KEYS="true").test_client()
        _, key = make_key(alice.open_session(client))
        rotated = {"AUTH_API_KEYS": "true", "AUTH_SECRET_KEY": f"{NEWEST},{secret}"}
        before = database.value("SELECT key_mac FROM api_keys")
        assert use(make_app(**rotated).test_client(), key).status_code == 200
        assert bytes(database.value("SELECT key_mac FROM api_keys")) != bytes(before)
        newest = make_app(AUTH_API_KEYS="true", AUTH_SECRET_KEY=NEWEST).test_client()
        assert use(newest, key).status_code == 200


class TestEnd:
    """The end of a key ends its tokens at once."""

    @pytest.fixture
    def key(self, session):
        return make_key(session)[1]

    @pytest.fixture
    def token(self, client, key):
        return token_of(client, key)

    @pytest.mark.parametrize("end", ["removal", "ban", "deletion", "recent change", "password"])
    def test_end_of_a_key_races_with_its_use(self, session, client, service_role, alice, database, end):
        id, key = make_key(session)
        user = f"/admin/users/{alice.id}"
        ends = {
            "removal": lambda: session.delete(f"{ROUTE}/{id}"),
            "ban": lambda: client.put(user, json={"ban_duration": "1h"}, headers=service_role),
            "deletion": lambda: client.delete(user, json={}, headers=service_role),
            "recent change": lambda: session.put("/user", json={"remove": [id]}),
            "password": lambda: client.put(user, json={"password": "Another-Horse-2"}, headers=service_role),
        }
        answers = at_once(50, lambda number: ends[end]() if number == 25 else use(client, key))
        assert answers[25].status_code in (200, 204)
        assert {answer.status_code for answer in answers} <= {200, 204, 401, 403, 429}
        answers[25:26] = []
        tokens = [answer.json["access_token"] for answer in answers if answer.status_code == 200]
        statuses = {client.get("/user", **bearer(token)).status_code for token in tokens}
        assert statuses <= {401, 403}
        assert database.count("api_keys") == 0

    def test_first_proof_of_the_address_ends_the_key(self, make_app, database, outbox):
        settings = {"AUTH_EMAIL_CONFIRM_REQUIRED": "false", "AUTH_API_KEYS": "true"}
        client = make_app(**settings).test_client()
        mallory = {"email": "victim@example.com", "password": PASSWORD}
        client.post("/signup", json=mallory)
        signed_in = client.post("/token?grant_type=password", json=mallory).json
        response = client.post(ROUTE, json={"name": "CI"}, **bearer(signed_in["access_token"]))
        key = response.json["key"]
        token = token_of(client, key)
        client.post("/magiclink", json={"email": "victim@example.com"})
        hand_in(client, "magiclink", outbox.last("victim@example.com", "magiclink").token)
        assert not is_live(client, key, token)


class TestElsewhere:
    def test_token_opens_get_user_only(self, client, app, carol, service_role, database):
        """The user is an administrator. The test calls every route with every method."""
        _, key = make_key(carol.open_session(client))
        token = token_of(client, key)
        before, opened = database.everything(), set()
        for rule in client.application.url_map.iter_rules():
            path = re.sub(r"<[^>]+>", carol.id, rule.rule)
            for method in rule.methods - {"OPTIONS", "HEAD"}:
                with_token = client.open(path, method=method, **bearer(token))
                without_token = client.open(path, method=method)
                if _outcome(with_token) != _outcome(without_token) and with_token.status_code < 400:
                    opened.add((method, rule.rule))
        # Without a token too, these two answer differently each time.
        assert opened - {("GET", "/health"), ("POST", "/passkeys/authentication/options")} == {
            ("GET", "/user")
        }
        assert {name: rows for name, rows in database.everything().items() if name not in _COUNTS} == {
            name: rows for name, rows in before.items() if name not in _COUNTS
        }

    @pytest.mark.parametrize("use", ["form", "refresh", "apikey", "id_token"])
    def test_token_is_no_other_credential(self, session, client, use):
        _, key = make_key(session)
        token = token_of(client, key)
        responses = {
            "form": lambda: client.post("/oauth/userinfo", data={"access_token": token}),
            "refresh": lambda: client.post("/token?grant_type=refresh_token", json={"refresh_token": token}),
            "apikey": lambda: client.get("/admin/users", headers={"apikey": token}),
            "id_token": lambda: client.post(
                "/token?grant_type=id_token", json={"provider": "google", "id_token": token}
            ),
        }
        assert responses[use]().status_code in (400, 401)
        with pytest.raises(InvalidAccessToken):
            client.application.extensions["latchkey"].client_tokens.read_hint(token)

    def test_key_itself_opens_nothing(self, session, client):
        _, key = make_key(session)
        for headers in ({"Authorization": f"Bearer {key}"}, {"apikey": key}):
            for path in ("/user", "/admin/users", "/oauth/userinfo", "/console"):
                assert client.get(path, headers=headers).status_code in (302, 303, 401)
        # Whether a key exists changes nothing.
        for credential in (key, "lk_", f"{key[:-1]}x"):
            message = "This is an API key: exchange it at POST /token?grant_type=api_key for an access token"
            assert_error(client.get("/user", **bearer(credential)), 401, "bad_jwt", message)

    def test_introspection_answers_for_key_and_token(self, session, client, introspect, alice, database):
        id, key = make_key(session, scopes=["read"], expires_in=3600)
        token = token_of(client, key)
        before = database.everything()
        assert introspect(token) == {"active": True} | claims_of(token)
        of_key = {"active": True, "sub": alice.id, "api_key_id": id, "scope": "read"}
        assert introspect(key) == of_key | {"iat": ANYTHING, "exp": ANYTHING}
        assert introspect(_with_another_secret(key)) == introspect(_unknown_key()) == {"active": False}
        assert database.everything() == before

    def test_key_and_token_open_nothing_by_default(self, make_app, session, client, service_role):
        _, key = make_key(session)
        token = token_of(client, key)
        default_client = make_app().test_client()
        assert_error(use(default_client, key), 400, "unsupported_grant_type", details=A_SENTENCE)
        assert_error(default_client.get("/user", **bearer(token)), 401, "bad_jwt")
        for credential in (key, token):
            response = default_client.post("/introspect", json={"token": credential}, headers=service_role)
            assert response.json == {"active": False}


# The counts and refusals of requests.
_COUNTS = {
    "request_counts",
    "failure_counts",
    "audit_log",
    "oauth_flows",
    "factor_challenges",
    "oauth_clients",
}


def _outcome(response):
    return response.status_code, response.json if response.is_json else None


def _with_another_secret(key):
    """Return a key with the same id."""
    _, other = api_keys.new_key()
    body = key[:35] + other[35:-6]
    return body + api_keys._checksum(body)


def _unknown_key():
    return api_keys.new_key()[1]
