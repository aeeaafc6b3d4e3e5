"""A worker caches the tokens that it has verified, and believes none longer than its key, its session and its `exp`."""

import dataclasses
import json
import random
import tracemalloc
import uuid

import pytest

from auth.core.tokens import client_tokens
from auth.core.tokens.access_tokens import CACHED_CALLERS, CACHED_PAYLOADS
from auth.core.tokens.signing_keys import new_jwk
from auth.core.tokens.token_cache import TokenCache
from tests.support.api_keys import make_key, token_of
from tests.support.openid import bearer, claims_of, make_client, tokens_of
from tests.support.server import at_once

ROUTES = {"session": "/user", "key": "/user", "application": "/oauth/userinfo"}
GOOD = dict.fromkeys(ROUTES, (200, True))
REFUSED = dict.fromkeys(ROUTES, (401, False))


@pytest.fixture
def client(fresh_app):
    return fresh_app.test_client()


@pytest.fixture
def fresh_app(make_app):
    return make_app(fresh=True, AUTH_API_KEYS="true")


@pytest.fixture
def parts(fresh_app):
    return fresh_app.extensions["latchkey"]


@pytest.fixture
def tokens(client, alice, database):
    """A token of each kind that a worker caches."""
    session = alice.open_session(client)
    return {
        "session": session.access_token,
        "key": token_of(client, make_key(session)[1]),
        "application": tokens_of(client, database, make_client(database), alice)["access_token"],
    }


@pytest.fixture
def answers(client, service_role):
    """Return for each token the status of a request with it, and whether an introspection calls it active."""

    def answers(tokens):
        def is_active(token):
            return client.post("/introspect", json={"token": token}, headers=service_role).json["active"]

        return {
            kind: (client.get(ROUTES[kind], headers=bearer(token)).status_code, is_active(token))
            for kind, token in tokens.items()
        }

    return answers


class TestCachedToken:
    @pytest.fixture(autouse=True)
    def _cached(self, answers, tokens):
        assert answers(tokens) == answers(tokens) == GOOD

    def test_cached_token_is_refused_when_its_session_or_key_has_ended(self, answers, tokens, database):
        database.run("UPDATE sessions SET ended_at = now(), end_reason = 'logout'; DELETE FROM api_keys")
        assert answers(tokens) == REFUSED

    @pytest.mark.parametrize("keeps_kid", [False, True])
    def test_cached_token_is_refused_when_its_signing_key_has_gone(self, answers, tokens, parts, keeps_kid):
        (key,) = parts.access_tokens.keys
        jwk = new_jwk("ES256") | ({"kid": key.kid} if keeps_kid else {})
        parts.key_ring.use(dataclasses.replace(parts.settings, jwt_keys=json.dumps({"keys": [jwk]})))
        assert answers(tokens) == REFUSED

    def test_cached_token_is_believed_while_another_key_is_added(self, answers, tokens, parts):
        jwks = [
            new_jwk("ES256"),
            *json.loads((parts.settings.state_dir / "jwt_keys.json").read_text())["keys"],
        ]
        parts.key_ring.use(dataclasses.replace(parts.settings, jwt_keys=json.dumps({"keys": jwks})))
        assert answers(tokens) == answers(tokens) == GOOD


def test_cached_token_is_refused_from_its_exp_on(answers, tokens, parts, database):
    def second():
        return database.value("SELECT floor(extract(epoch FROM clock_timestamp()))::bigint")

    exp = second() + 3
    brief = {
        kind: parts.access_tokens.sign(claims_of(token) | {"exp": exp}) for kind, token in tokens.items()
    }
    lifetime = exp - claims_of(tokens["application"])["iat"]
    claims = {
        name: value
        for name, value in claims_of(tokens["application"]).items()
        if name not in ("iss", "iat", "exp", "jti")
    }
    brief["application"] = parts.client_tokens.issue(claims, issued_at=exp - lifetime, lifetime=lifetime)
    seen = []
    while second() < exp:
        seen.append(answers(brief))
    # The last ones may have been asked as the second passed.
    assert GOOD in seen
    assert answers(brief) == REFUSED


def test_caller_of_one_kind_of_token_is_never_taken_for_another(client, tokens):
    statuses = {
        (kind, route): client.get(route, headers=bearer(token)).status_code
        for kind, token in tokens.items()
        for route in ("/user", "/sessions", "/oauth/userinfo")
        for _ in range(2)
    }
    accepted = {pair for pair, status in statuses.items() if status == 200}
    assert accepted == {
        ("session", "/user"),
        ("session", "/sessions"),
        ("key", "/user"),
        ("application", "/oauth/userinfo"),
    }


def test_claims_of_an_introspection_are_a_copy(parts, tokens):
    parts.access_tokens.claims(tokens["session"])["app_metadata"]["role"] = "admin"
    assert parts.access_tokens.claims(tokens["session"]) == claims_of(tokens["session"])


class TestTokenCache:
    def test_the_tokens_that_were_used_last_are_kept(self):
        asked = []

        def read(token):
            asked.append(token)
            return token.upper()

        cache = TokenCache(read, 3)
        for token in "abcadabcb":
            assert cache(token) == token.upper()
        assert "".join(asked) == "abcdbc"

    def test_error_is_raised_again_and_takes_no_place(self):
        tried = []

        def refuse(token):
            tried.append(token)
            raise ValueError(token)

        cache = TokenCache(refuse, 3)
        for _ in range(2):
            with pytest.raises(ValueError, match=r"^x$"):
                cache("x")
        assert (tried, len(cache._values)) == (["x", "x"], 0)

    def test_any_text_can_be_asked_for(self):
        cache = TokenCache(str.upper, 3)
        for text in ("", "\0", "é", "\ud800", "?", "x" * 30_000):
            assert cache(text) == cache(text) == text.upper()

    def test_many_threads_get_the_value_of_their_token(self):
        cache = TokenCache(str.upper, 5)

        def ask(number):
            chance = random.Random(number)
            tokens = [chance.choice("abcdefghij") for _ in range(3000)]
            return all(cache(token) == token.upper() for token in tokens)

        assert all(at_once(8, ask))
        assert len(cache._values) <= 5

    @pytest.mark.parametrize(
        ("kind", "most_mib"),
        [("session", 3), ("session of a provider", 4), ("application", 2), ("payload", 2)],
    )
    def test_full_cache_takes_bounded_memory(self, parts, kind, most_mib):
        """It is a worker's, so it counts as often as there are workers. The length of a token does not count."""
        of_client = {"client_id": str(uuid.uuid4()), "scope": "openid email profile"}

        def claims(number):
            ids = {"sub": str(uuid.uuid4()), "session_id": str(uuid.uuid4())}
            by_provider = [{"method": "oauth", "timestamp": 10**9 + number, "provider": "google"}]
            of_session = {"aal": "aal1", "amr": by_provider if kind == "session of a provider" else []}
            times = {"iat": 1, "exp": 10**9 + number}
            return json.loads(json.dumps(ids | of_client | of_session | times | {"aud": "x"}))

        session_caller = (lambda number: parts.access_tokens.caller_of(claims(number)), CACHED_CALLERS)
        read, most = {
            "session": session_caller,
            "session of a provider": session_caller,
            "application": (
                lambda number: parts.client_tokens.caller_of(claims(number)),
                client_tokens.CACHED_CALLERS,
            ),
            "payload": (lambda number: f"{number}{'x' * 700}", CACHED_PAYLOADS),
        }[kind]
        cache = TokenCache(lambda token: read(int(token.split()[0])), most)
        tracemalloc.start()
        try:
            for number in range(most + 100):
                cache(f"{number} {'x' * 9000}")
            size, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(cache._values) == most
        assert size < most_mib * 1024 * 1024
