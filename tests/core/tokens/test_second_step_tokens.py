"""Access tokens of sessions that lack a second step: only this service accepts them, and only for that step."""

import json
import re
import uuid

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from auth.core.tokens.derived_keys import derive
from auth.core.tokens.signing_keys import second_step_key
from auth.web.context import EXTENSION
from auth.web.declarations import Level, route_of
from tests.core.tokens.test_access_tokens import encode, hmac_signed
from tests.source.test_contract import guard_of
from tests.support import passkeys, security_keys
from tests.support.answers import LOW, assert_error, assert_ok
from tests.support.contract import routes
from tests.support.environment import secret
from tests.support.factors import challenge, enrol, raised, set_up, verify
from tests.support.links import VERIFIER, WITH_CHALLENGE, follow, fragment, hand_in, query, type_in
from tests.support.server import at_once
from tests.support.users import Session, session_of

FULL, STEP = "authenticated", "second_step"  # audiences
INACTIVE = {"active": False}


def audience(session: Session) -> str:
    """Return the audience of an access token, whose key and claims must fit it."""
    header, claims = jwt.get_unverified_header(session.access_token), session.claims
    keys = session.client.get("/.well-known/jwks.json").json["keys"]
    is_published = header["kid"] in {key["kid"] for key in keys}
    fits = {FULL: ("ES256", True, None), STEP: ("HS256", False, "aal2")}
    assert (header["alg"], is_published, claims.get("next_aal")) == fits[claims["aud"]]
    assert header["typ"] == "JWT"
    assert session.user["aud"] == FULL
    return claims["aud"]


def introspect(session, service_role):
    body = {"token": session.access_token}
    return session.client.post("/introspect", json=body, headers=service_role)


def remove_factors(person, service_role):
    """Remove all of a user's factors as an operator."""
    path = f"/admin/users/{person.id}/factors"
    for factor in person.client.get(path, headers=service_role).json:
        assert person.client.delete(f"{path}/{factor['id']}", headers=service_role).status_code == 200


class TestSessionsThatLackAStep:
    @pytest.mark.parametrize(
        ("add_factor", "expected"),
        [
            (None, FULL),
            (enrol, FULL),
            (passkeys.register, FULL),
            (set_up, STEP),
            (security_keys.set_up, STEP),
        ],
        ids=["nothing", "unverified app", "passkey", "app", "security key"],
    )
    def test_audience_follows_the_factors_of_the_user(self, alice, add_factor, expected):
        if add_factor:
            add_factor(alice.open_session())
        session = alice.sign_in()
        assert session.claims["aal"] == "aal1"
        assert [audience(each) for each in (session, session.refreshed())] == [expected] * 2

    def test_every_way_to_sign_in_gives_the_same_audience(self, client, alice, outbox):
        app, _ = set_up(alice.open_session())

        def send(path, kind, **more):
            client.post(path, json={"email": alice.email, **more})
            return outbox.last(alice.email, kind)

        link = follow(client, "magiclink", send("/magiclink", "magiclink", **WITH_CHALLENGE).token)
        exchange = {"auth_code": query(link)["code"], "code_verifier": VERIFIER}
        ways = {
            "authorization code": client.post("/token?grant_type=pkce", json=exchange),
            "code": type_in(client, "email", alice.email, send("/magiclink", "magiclink").code),
            "recovery": hand_in(client, "recovery", send("/recover", "recovery").token),
        }
        sessions = {way: session_of(client, response) for way, response in ways.items()}
        tokens = fragment(follow(client, "magiclink", send("/magiclink", "magiclink").token))
        by_link = Session(client, tokens["access_token"], tokens["refresh_token"], sessions["code"].user)
        for way, session in (sessions | {"link": by_link}).items():
            assert (way, audience(session)) == (way, STEP)
        assert audience(raised(by_link, app)) == FULL

    def test_mfa_tokens_full_gives_the_full_audience(self, make_app, alice, service_role):
        app, _ = set_up(alice.open_session())
        lacking = alice.sign_in()
        client = make_app(AUTH_MFA_TOKENS="full").test_client()
        session = alice.sign_in(client=client)
        assert (audience(session), session.claims["aal"]) == (FULL, "aal1")
        assert introspect(session, service_role).json["aal"] == "aal1"
        # The changed setting does not complete tokens from before.
        assert_ok(introspect(lacking.on(client), service_role), INACTIVE)
        assert_error(lacking.on(client).get("/sessions"), *LOW)
        assert_error(session.delete("/user"), *LOW)
        assert raised(session, app).claims["aal"] == "aal2"


class TestEndOfTheStep:
    def test_answer_to_the_step_has_the_full_audience(self, client, alice):
        key, key_id, session = security_keys.set_up(alice.open_session())
        app, session = set_up(session)
        authenticator, _ = passkeys.register(session)
        code = session.post("/factors/recovery-codes", json={}).json["codes"][0]
        low = alice.sign_in()
        assert audience(low) == STEP
        by_app = raised(alice.sign_in(), app)
        sessions = [by_app, by_app.refreshed(), passkeys.sign_in(client, authenticator)]
        for response in (
            low.post("/factors/recovery-codes/verify", json={"code": code}),
            alice.sign_in().post("/reauthenticate", json=passkeys.assertion(client, authenticator)),
            security_keys.verify(alice.sign_in(), key_id, key),
        ):
            sessions.append(session_of(client, response))
        for session in sessions:
            assert (session.claims["aal"], audience(session)) == ("aal2", FULL)
        # The token from before keeps its audience.
        assert_error(low.get("/sessions"), *LOW)
        assert sessions[3].get("/sessions").status_code == 200

    def test_first_app_enrolled_elsewhere_ends_the_session_after_a_passkey_too(
        self, client, alice, service_role
    ):
        authenticator, _ = passkeys.register(alice.open_session())
        session = alice.sign_in()
        set_up(passkeys.sign_in(client, authenticator))
        # A service that verifies tokens itself accepts this one until it expires; we do not.
        assert audience(session) == FULL
        assert_error(session.get("/sessions"), 401, "session_not_found")
        assert_error(session.put("/user", json={"data": {"x": 1}}), 401, "session_not_found")
        assert_ok(introspect(session, service_role), INACTIVE)
        assert_error(session.refresh(), 400, "refresh_token_not_found")

    def test_refreshes_beside_the_first_app_get_the_token_of_before_or_none(self, server, client, alice):
        authenticator, _ = passkeys.register(alice.open_session())
        other = passkeys.sign_in(client, authenticator)
        app, session = enrol(other), alice.sign_in()

        def enrol_or_refresh(number: int):
            return raised(other, app) if number == 0 else session.on(server).refresh()

        answers = at_once(50, enrol_or_refresh)[1:]
        assert {answer.status_code for answer in answers} <= {200, 400}
        good = [session_of(server, answer) for answer in answers if answer.status_code == 200]
        assert {audience(each) for each in good} <= {FULL}
        assert {each.on(server).refresh().status_code for each in (*good, session)} == {400}

    def test_concurrent_refreshes_follow_the_removal_of_the_factors(
        self, server, client, alice, service_role
    ):
        set_up(alice.open_session())
        session = alice.sign_in()
        assert audience(session) == STEP

        def change_or_refresh(number: int):
            if number == 0:
                return remove_factors(alice, service_role)
            return session_of(server, session.on(server).refresh())

        racers = at_once(50, change_or_refresh)[1:]
        assert {audience(racer) for racer in racers} <= {STEP, FULL}
        assert len({racer.refresh_token for racer in racers}) == 1
        # Whatever the race gave: a refresh that begins after the change knows of it.
        late_sessions = at_once(
            50, lambda number: session_of(server, racers[number % 49].on(server).refresh())
        )
        assert {audience(racer) for racer in late_sessions} == {FULL}

    def test_sign_in_that_waits_for_the_first_verification_lacks_the_step(self, alice, database):
        session = alice.open_session()
        app = enrol(session)
        challenge_id = challenge(session, app)
        with database.locked("users", alice.id) as lock:
            verification = lock.start(lambda: verify(session, app, challenge_id=challenge_id))
            sign_in = lock.start(alice.sign_in)
        assert verification.result().status_code == 200
        assert audience(sign_in.result()) == STEP


# The level accepts the session; the kind of change decides: see docs/security.md, "Who may change what".
DECIDED_BY_CHANGE = {
    ("put", "/user"),
    ("delete", "/user/identities/{identity_id}"),
    ("delete", "/factors/{factor_id}"),
    ("delete", "/passkeys/{passkey_id}"),
    ("delete", "/user/api_keys/{api_key_id}"),
}


@pytest.mark.parametrize("has_factor", [True, False], ids=["with the factor", "once it is removed"])
def test_level_of_each_route_decides_whether_the_token_is_accepted(make_app, alice, service_role, has_factor):
    provider = {f"AUTH_PROVIDER_GOOGLE_CLIENT_{name}": "of-these-tests" for name in ("ID", "SECRET")}
    client = make_app(AUTH_API_KEYS="true", AUTH_SSO="true", **provider).test_client()
    factor, _ = set_up(alice.open_session())
    guarded_routes = [
        route
        for route in routes(client.application)
        if guard_of(route[2]) not in (None, "client", "client_token") and not route[1].startswith("/dev/")
    ]
    sessions = [alice.open_session() for _ in guarded_routes]
    if not has_factor:
        remove_factors(alice, service_role)
    differences = []
    for session, (method, path, view) in zip(sessions, guarded_routes, strict=True):
        ids = {"factor_id": factor.id, "session_id": session.id}
        names = re.findall("{(.+?)}", path)
        target = path.format_map({name: ids.get(name, str(uuid.uuid4())) for name in names})
        # A global log-out would end the sessions of the other requests.
        suffixes = {"/logout": "?scope=local", "/user/identities/authorize": "?provider=google"}
        target += suffixes.get(path, "")
        response = client.open(target, method=method, headers=session.authorization, json={})
        level = route_of(view).level
        # To enrol another factor takes one. The removal of a factor that is gone, or of an API key of a
        # user without a factor, needs no level.
        removals = ("/factors/{factor_id}", "/user/api_keys/{api_key_id}")
        accepts = (level is Level.SESSION and (method, path) not in DECIDED_BY_CHANGE) or (
            not has_factor and (level is Level.ENROL or path in removals)
        )
        if (response.status_code == 403 and response.json["error_code"] == "insufficient_aal") is accepts:
            differences.append((method, path, level, response.status_code, response.json))
        assert response.status_code != 401, path
    assert differences == []


class TestKeys:
    @pytest.fixture
    def sessions(self, alice):
        """A session that lacks a step, and one that does not."""
        full = set_up(alice.open_session())[1]
        return alice.sign_in(), full

    @pytest.fixture
    def step_key(self, app):
        secret_keys = app.extensions[EXTENSION].settings.secret_key
        return second_step_key(derive(secret_keys, "second step")[0])

    def test_old_secret_key_verifies_while_it_is_rotated(self, make_app, alice):
        old, new = secret("old"), secret("new")
        before, during, afterwards = (
            make_app(AUTH_SECRET_KEY=keys).test_client() for keys in (old, f"{new},{old}", new)
        )
        set_up(alice.open_session())
        low = alice.sign_in(client=before)
        assert low.on(during).get("/user").status_code == 200
        assert_error(low.on(during).get("/sessions"), *LOW)
        assert_error(low.on(afterwards).get("/user"), 401, "bad_jwt")
        assert low.on(during).refreshed().on(afterwards).get("/user").status_code == 200

    def test_altered_token_is_refused(self, client, sessions, service_role):
        session, full = sessions
        step_header = jwt.get_unverified_header(session.access_token)
        full_header = jwt.get_unverified_header(full.access_token)
        jwk, *_ = client.get("/.well-known/jwks.json").json["keys"]
        pem = jwt.PyJWK(jwk).key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        signature = session.access_token.rpartition(".")[2]
        payloads = [session.claims, session.claims | {"aud": FULL}, full.claims]
        header, unsigned = encode(step_header), encode(step_header | {"alg": "none"})
        jwk_header = encode(step_header | {"kid": jwk["kid"]})
        step_kid_header = encode(full_header | {"kid": step_header["kid"]})
        forged = {
            "alg none": [f"{unsigned}.{encode(claims)}." for claims in payloads],
            "other claims": [f"{header}.{encode(claims)}.{signature}" for claims in payloads[1:]],
            "kid of the published key": [f"{jwk_header}.{encode(claims)}.{signature}" for claims in payloads],
            "kid of the step": [f"{step_kid_header}.{full.access_token.partition('.')[2]}"],
            "keyed with public data": [
                hmac_signed(forged_header | {"alg": "HS256"}, encode(claims), data)
                for claims in payloads
                for data in (json.dumps(jwk).encode(), step_header["kid"].encode(), pem, b"")
                for forged_header in (step_header, {"typ": "JWT", "kid": jwk["kid"]})
            ],
        }
        for name, tokens in forged.items():
            for token in tokens:
                response = client.get("/user", headers={"Authorization": f"Bearer {token}"})
                assert (name, response.status_code, response.json["error_code"]) == (name, 401, "bad_jwt")
                inactive = client.post("/introspect", json={"token": token}, headers=service_role)
                assert (name, inactive.json) == (name, INACTIVE)

    def test_each_key_signs_for_its_audience_only(self, client, sessions, step_key, state_dir):
        (jwk,) = json.loads((state_dir / "jwt_keys.json").read_text())["keys"]
        full_key = jwt.PyJWK(jwk, "ES256").key
        for key, algorithm, kid, own_audience in (
            (step_key.signing_key, "HS256", step_key.kid, STEP),
            (full_key, "ES256", jwk["kid"], FULL),
        ):
            for claimed_audience in (FULL, STEP):
                claims = sessions[0].claims | {"aud": claimed_audience}
                token = jwt.encode(claims, key, algorithm, {"typ": "JWT", "kid": kid})
                response = client.get("/user", headers={"Authorization": f"Bearer {token}"})
                assert (claimed_audience, response.status_code) == (
                    claimed_audience,
                    200 if claimed_audience == own_audience else 401,
                )

    def test_service_role_is_not_read_from_a_token_of_the_step(self, make_app, step_key):
        client = make_app(AUTH_SERVICE_ROLE_JWT="true").test_client()
        token = jwt.encode({"role": "service_role"}, step_key.signing_key, "HS256", {"kid": step_key.kid})
        response = client.get("/admin/users", headers={"Authorization": f"Bearer {token}"})
        assert_error(response, 401, "bad_jwt")
