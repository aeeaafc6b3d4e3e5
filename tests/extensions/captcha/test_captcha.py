"""Captchas: proofs of work, and tokens of a provider, which a stub plays as its documentation says."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs

import altcha.v2 as altcha
import pytest

from auth.extensions.captcha import proofs_of_work, siteverify
from tests.support.admin_keys import make_admin_key
from tests.support.answers import assert_error
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.links import Outbox
from tests.support.server import at_once
from tests.support.users import PASSWORD

NEW = "dave@example.com"
DOORS = {
    "/signup": {"email": NEW, "password": PASSWORD},
    "/recover": {"email": NEW},
    "/resend": {"type": "signup", "email": NEW},
    "/magiclink": {"email": NEW},
    "/otp": {"email": NEW},
}
CHEAP = {"AUTH_CAPTCHA": "altcha", "AUTH_CAPTCHA_COST": "1"}


def solve(challenge: dict[str, Any]) -> str:
    """Solve a challenge by the library of ALTCHA."""
    puzzle = altcha.Challenge.from_dict(challenge)
    solution = altcha.solve_challenge(puzzle)
    assert solution is not None
    return altcha.Payload(puzzle, solution).to_base64()


def proof(client: Any) -> str:
    return solve(client.get("/captcha/challenge").json)


def ask(client: Any, path: str = "/signup", token: object = None, **options: Any) -> Any:
    body = DOORS.get(path, {}) | options.pop("json", {})
    return client.post(path, json=body | {"gotrue_meta_security": {"captcha_token": token}}, **options)


def refusal(codes: str) -> str:
    return f"captcha protection: request disallowed ({codes})"


def assert_refused(response: Any, codes: str) -> None:
    assert_error(response, 400, "captcha_failed", refusal(codes))


def changed(token: str, change: Callable[[dict[str, Any]], object]) -> str:
    payload = json.loads(base64.b64decode(token))
    change(payload)
    return base64.b64encode(json.dumps(payload).encode()).decode()


@pytest.fixture
def derivations(monkeypatch) -> list[str]:
    """The hash functions of the derivations that the service makes."""
    names: list[str] = []
    derive = proofs_of_work.hashlib.pbkdf2_hmac

    def counted(name: str, *rest: Any) -> bytes:
        names.append(name)
        return derive(name, *rest)

    monkeypatch.setattr("auth.extensions.captcha.proofs_of_work.hashlib.pbkdf2_hmac", counted)
    return names


class TestProofsOfWork:
    @pytest.fixture
    def client(self, make_app) -> Any:
        return make_app(**CHEAP).test_client()

    @pytest.mark.parametrize("path", DOORS)
    def test_each_door_of_strangers_asks_and_takes_a_proof_once(self, client, database, path):
        assert_refused(client.post(path, json=DOORS[path]), "no captcha_token found")
        assert (database.count("users"), database.count("outbox")) == (0, 0)
        token = proof(client)
        assert ask(client, path, token).status_code in (200, 201)
        assert_refused(ask(client, path, token), "timeout-or-duplicate")
        assert database.count("outbox") == 1

    def test_a_proof_is_spent_once_by_all_nodes(self, make_app, database):
        nodes = [make_app(fresh=fresh, **CHEAP).test_client() for fresh in (False, True)]
        token = proof(nodes[0])
        answers = at_once(50, lambda number: ask(nodes[number % 2], "/recover", token).status_code)
        assert sorted(answers) == [200] + [400] * 49
        assert database.count("spent_captchas") == 1

    def test_garbage_costs_no_derivation_and_a_wrong_proof_its_challenge(self, client, database, derivations):
        token = proof(client)
        derivations.clear()
        garbage = [
            "x", "!" * 2000, base64.b64encode(b"[" * 3000).decode(), base64.b64encode(b'{"challenge":1}').decode(),
            changed(token, lambda payload: payload["challenge"]["parameters"].update(cost=2)),
            changed(token, lambda payload: payload["challenge"]["parameters"].update(expiresAt=2**40)),
            changed(token, lambda payload: payload["challenge"].update(signature="ü" * 64)),
            changed(token, lambda payload: payload["challenge"].pop("signature")),
            changed(token, lambda payload: payload["solution"].update(counter=2**32)),
            changed(token, lambda payload: payload["solution"].update(counter=True)),
            changed(token, lambda payload: payload["solution"].update(derivedKey="ff" * 32)),
            changed(token, lambda payload: payload.update(solution=None)),
        ]  # fmt: skip
        for each in garbage:
            assert_refused(ask(client, "/recover", each), "invalid-input-response")
        assert (derivations, database.count("spent_captchas")) == ([], 0)
        wrong = changed(token, lambda payload: payload["solution"].update(derivedKey="00" * 32))
        assert_refused(ask(client, "/recover", wrong), "invalid-input-response")
        assert_refused(ask(client, "/recover", token), "timeout-or-duplicate")
        assert derivations == ["sha256"]

    def test_expired_proof_costs_no_derivation(self, client, parts, monkeypatch, derivations):
        monkeypatch.setattr("auth.core.constants.CAPTCHA_LIFETIME", -1)
        token = proof(client)
        derivations.clear()
        assert_refused(ask(client, "/recover", token), "timeout-or-duplicate")
        assert derivations == []

    def test_proof_made_before_a_rotation_of_the_keys_is_taken(self, make_app):
        old, new = (f"{name}-secret-key-with-enough-characters-1234567890" for name in ("old", "new"))
        token = proof(make_app(AUTH_SECRET_KEY=old, **CHEAP).test_client())
        rotated = make_app(AUTH_SECRET_KEY=f"{new},{old}", **CHEAP).test_client()
        assert ask(rotated, "/recover", token).status_code == 200

    def test_administrators_and_the_service_role_key_need_no_captcha_but_other_keys_do(
        self, make_app, carol, alice
    ):
        app = make_app(AUTH_MFA_REQUIRED="none", **CHEAP)
        client, body = app.test_client(), {"email": NEW}
        key = {"apikey": SERVICE_ROLE_KEY}
        statuses = [
            client.post("/recover", json=body, headers=headers).status_code
            for headers in (
                key, make_admin_key(app.extensions["latchkey"], "users:write").headers, carol.open_session(client).authorization, alice.open_session(client).authorization,
                {"Authorization": "Bearer an-anon-key-that-is-ignored"},
            )
        ]  # fmt: skip
        assert statuses == [200, 400, 200, 400, 400]

    def test_setting_names_the_routes_that_ask_and_covers_both_routes_to_the_same_flow(self, make_app):
        client = make_app(AUTH_CAPTCHA_ROUTES="otp,token", **CHEAP).test_client()
        sign_in = {"email": NEW, "password": PASSWORD}
        answers = {path: client.post(path, json=DOORS[path]).status_code for path in DOORS}
        answers |= {
            path: client.post(path, json=sign_in).status_code
            for path in ("/token?grant_type=password", "/login-admin")
        }
        refused = [path for path, status in answers.items() if status == 400]
        assert refused == ["/magiclink", "/otp", "/token?grant_type=password", "/login-admin"]

    def test_anonymous_sign_up_asks(self, make_app):
        client = make_app(AUTH_ANONYMOUS_ENABLED="true", **CHEAP).test_client()
        assert_refused(client.post("/signup", json={"gotrue_meta_security": {}}), "no captcha_token found")
        body = {"gotrue_meta_security": {"captcha_token": proof(client)}}
        assert client.post("/signup", json=body).json["is_anonymous"] is True


def test_captcha_that_is_off_asks_nothing_and_has_no_route(client):
    assert client.get("/captcha/challenge").status_code == 404
    assert ask(client, token="ignored").status_code == 201
    assert client.post("/recover", json={"email": NEW, "gotrue_meta_security": 5}).status_code == 200


RIGHT = {"success": True, "challenge_ts": "2026-11-25T12:00:00Z", "hostname": "auth.example.com"}
USED = {"success": False, "error-codes": ["timeout-or-duplicate"]}


class TestProviders:
    @pytest.fixture(params=["turnstile", "hcaptcha", "url"])
    def kind(self, request) -> str:
        return request.param

    @pytest.fixture
    def make_client(self, make_app, target, monkeypatch) -> Iterator[Callable[..., Any]]:
        def make_client(kind: str = "turnstile", **changes: str) -> Any:
            target.body = json.dumps(RIGHT).encode()
            monkeypatch.setitem(siteverify.URLS, kind, f"{target.url}/siteverify")
            return make_app(
                AUTH_BASE_URL="https://auth.example.com",
                AUTH_SITE_URL="https://www.example.com",
                AUTH_CAPTCHA=f"{target.url}/siteverify" if kind == "url" else kind,
                AUTH_CAPTCHA_SECRET="their-secret",
                **changes,
            ).test_client()

        yield make_client
        siteverify.URLS.pop("url", None)

    def test_token_is_verified_at_the_provider_and_accepted(self, make_client, kind, target, outbox: Outbox):
        assert ask(make_client(kind), token="a-token").status_code == 201
        (request,) = target.requests
        form = {"secret": ["their-secret"], "response": ["a-token"]}
        assert (request.path, parse_qs(request.body.decode())) == ("/siteverify", form)
        assert outbox.last(NEW).code

    def test_clients_address_is_sent_to_the_provider_if_the_operator_wants_it(self, make_client, target):
        ask(make_client(AUTH_CAPTCHA_REMOTE_IP="true"), token="a-token")
        assert parse_qs(target.requests[0].body.decode())["remoteip"] == ["127.0.0.1"]

    @pytest.mark.parametrize(
        ("answer", "codes"),
        [
            (USED, "timeout-or-duplicate"),
            ({"success": False, "error-codes": ["a", "b", 5, "<b>", "c" * 90]}, "a, b"),
            ({"success": False}, "invalid-input-response"),
            ({"success": "true", "hostname": "auth.example.com"}, "invalid-input-response"),
            (RIGHT | {"hostname": "evil.example"}, "hostname-mismatch"),
            (RIGHT | {"hostname": {}}, "hostname-mismatch"),
        ],
    )
    def test_refused_token_does_nothing(self, make_client, target, database, answer, codes):
        client = make_client()
        target.body = json.dumps(answer).encode()
        assert_refused(ask(client, token="a-token"), codes)
        assert (database.count("users"), database.count("outbox")) == (0, 0)

    @pytest.mark.parametrize(
        ("status", "body", "behaviour"),
        [
            (200, b'{"success": false, "error-codes": ["invalid-input-secret"]}', ""),
            (200, b'{"success": false, "error-codes": ["internal-error"]}', ""),
            (200, b"<html>", ""),
            (200, b"[true]", ""),
            (200, b"[" * 100_000, ""),
            (503, json.dumps(RIGHT).encode(), ""),
            (302, b"", ""),
            (200, b"", "hang"),
            (200, b"", "drip body"),
        ],
    )
    def test_provider_that_is_away_admits_nobody(
        self, make_client, target, database, monkeypatch, status, body, behaviour
    ):
        monkeypatch.setattr(siteverify, "_TIMEOUT", 0.3)
        client = make_client()
        target.status, target.body, target.behaviour = status, body, behaviour
        response = ask(client, token="a-token")
        message = "The provider can't be reached; try again shortly"
        assert_error(response, 503, "service_unavailable", message)
        assert response.headers["Retry-After"] == "2"
        assert (database.count("users"), database.count("outbox")) == (0, 0)

    def test_provider_in_a_private_network_is_asked_only_if_the_operator_allows_it(self, make_app, capfd):
        app = make_app(
            AUTH_CAPTCHA="http://10.255.255.1:9/",
            AUTH_CAPTCHA_SECRET="x",
            AUTH_WEBHOOK_PRIVATE_NETWORKS="false",
        )
        assert ask(app.test_client(), token="a-token").status_code == 503
        assert "its address is refused" in capfd.readouterr().err

    def test_provider_without_a_secret_stops_the_start(self, make_app):
        with pytest.raises(Exception, match="AUTH_CAPTCHA_SECRET: Must be set"):
            make_app(AUTH_CAPTCHA="turnstile")
