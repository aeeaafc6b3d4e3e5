"""Attacks on challenges for passkeys that a browser makes by itself, and on what a failed sign-in tells the browser."""

import pytest

from auth.delivery import janitor
from auth.flows.passkeys.assertions import accepted_ids
from tests.support import security_keys
from tests.support.admin_keys import make_admin_key
from tests.support.answers import ANYTHING, assert_error
from tests.support.api_keys import make_key, token_of
from tests.support.audit import timeline_texts
from tests.support.authenticator import ES256, Authenticator, Key, encode
from tests.support.cases import cases
from tests.support.factors import challenge, enrol, verify
from tests.support.factors import set_up as set_up_app
from tests.support.links import hand_in
from tests.support.passkeys import begin_unasked, make_unasked, register, sign_in, sign_in_response
from tests.support.server import at_once
from tests.support.users import NEW_PASSWORD, session_of

FAILED = (400, "webauthn_verification_failed")
UNKNOWN = (400, "webauthn_challenge_not_found")
VERIFY = "/passkeys/registration/verify"
UNSEEN = {"is_present": False, "is_verified": False}
GONE, WRONG = (
    "credential: no passkey has this id",
    "credential: Could not verify authentication signature",
)


def answer(begun, **changes):
    """The body that answers a challenge, as when nobody is present."""
    credential = Authenticator().create(begun["options"], **UNSEEN | changes)
    return {"challenge_id": begun["challenge_id"], "credential": credential}


class TestChallenges:
    def test_no_other_door_takes_the_answer(self, laptop, database):
        begun = begin_unasked(laptop)
        body, key = answer(begun), security_keys.enrol(laptop)
        key_body = {"type": "create", "credential_response": body["credential"]}
        for path, sent in (
            ("/passkeys/authentication/verify", body),
            ("/reauthenticate", body),
            (f"/factors/{key}/verify", {"challenge_id": body["challenge_id"], "webauthn": key_body}),
        ):
            assert_error(laptop.post(path, json=sent), *UNKNOWN)
        assert database.count("factors", "verified_at IS NOT NULL OR factor_type = 'passkey'") == 0
        assert laptop.post(VERIFY, json=body).json["status"] == "unverified"

    def test_answer_is_to_its_own_challenge(self, laptop, database):
        body, other = answer(begin_unasked(laptop)), begin_unasked(laptop)
        sent = body | {"challenge_id": other["challenge_id"]}
        assert_error(laptop.post(VERIFY, json=sent), *FAILED, details=ANYTHING)
        assert database.count("factors") == 0

    def test_challenge_makes_one_of_twenty_at_once(self, server, laptop, database):
        session = laptop.on(server)
        begun = begin_unasked(session)
        bodies = [answer(begun) for _ in range(20)]
        answers = at_once(20, lambda number: session.post(VERIFY, json=bodies[number]))
        assert sorted(each.status_code for each in answers) == [200] + 19 * [400]
        assert database.count("factors") == 1

    def test_used_and_unused_ones_have_one_limit_also_at_once(self, server, laptop, database):
        session = laptop.on(server)
        for _ in range(8):
            make_unasked(session)
        bodies = [answer(begin_unasked(session)) for _ in range(5)]
        answers = at_once(5, lambda number: session.post(VERIFY, json=bodies[number]))
        assert sorted(each.status_code for each in answers) == [200, 200, 422, 422, 422]
        assert database.count("factors") == 10
        response = session.post("/passkeys/registration/options", json={"mediation": "conditional"})
        assert_error(response, 422, "too_many_passkeys")

    def test_what_an_older_session_has_begun_ends_with_the_first_passkey(self, alice, laptop, database):
        """The passkey does not end Mallory's session, whose password was the proof for these."""
        thief = alice.open_session()
        app = enrol(thief)
        app_challenge, begun = challenge(thief, app), begin_unasked(thief)
        asked = thief.post("/passkeys/registration/options", json={}).json
        register(laptop)
        assert verify(thief, app, challenge_id=app_challenge).status_code == 403
        for body in (answer(begun), answer(asked, is_present=True, is_verified=True)):
            assert thief.post(VERIFY, json=body).status_code == 403
        assert database.count("factors", "verified_at IS NOT NULL") == 1
        assert database.count("factors", "factor_type = 'passkey'") == 1


def test_one_made_in_a_session_of_an_administrative_key_is_the_keys(
    client, alice, parts, service_role, database
):
    """A promotion removes it, also after its first use."""
    body = {"type": "magiclink", "email": alice.email}
    headers = make_admin_key(parts, "links").headers
    token = client.post("/admin/generate_link", json=body, headers=headers).json["hashed_token"]
    response = client.post("/verify", json={"type": "magiclink", "token_hash": token})
    authenticator, _ = make_unasked(session_of(client, response))
    sign_in(client, authenticator)
    promoted = client.put(f"/admin/users/{alice.id}", json={"role": "admin"}, headers=service_role)
    assert promoted.status_code == 200
    assert database.count("factors") == 0


class TestNewPassword:
    """Mallory knows the old one, and her browser has made a passkey."""

    @staticmethod
    def change(client, alice, outbox, service_role):
        response = alice.open_session().put("/user", json={"password": NEW_PASSWORD})
        assert response.status_code == 200

    @staticmethod
    def recover(client, alice, outbox, service_role):
        client.post("/recover", json={"email": alice.email})
        response = hand_in(client, "recovery", outbox.last(alice.email, "recovery").token)
        owner = session_of(client, response)
        assert owner.put("/user", json={"password": NEW_PASSWORD}).status_code == 200

    @staticmethod
    def reset(client, alice, outbox, service_role):
        path = f"/admin/users/{alice.id}"
        assert client.put(path, json={"password": NEW_PASSWORD}, headers=service_role).status_code == 200

    @staticmethod
    def hand_over(client, alice, outbox, service_role):
        body = {"type": "recovery", "email": alice.email}
        link = client.post("/admin/generate_link", json=body, headers=service_role).json
        body = {"type": "recovery", "token_hash": link["hashed_token"]}
        assert client.post("/verify", json=body).status_code == 200

    @pytest.mark.parametrize("way", ["change", "recover", "reset", "hand_over"])
    def test_takes_what_the_old_one_made(self, client, alice, laptop, outbox, service_role, database, way):
        authenticator, _ = make_unasked(laptop)
        getattr(self, way)(client, alice, outbox, service_role)
        assert database.count("factors") == 0
        assert_error(sign_in_response(client, authenticator), *FAILED, details=GONE)
        response = client.get(f"/admin/users/{alice.id}/timeline", headers=service_role)
        removed = "passkey removed: Passkey (not used before the password was changed)"
        assert [text for text in timeline_texts(response) if text.startswith(removed)]

    def test_leaves_what_a_factor_made(self, client, laptop, database):
        _, session = set_up_app(laptop)
        make_unasked(session)
        assert session.put("/user", json={"password": NEW_PASSWORD}).status_code == 200
        assert database.count("factors", "verified_at IS NULL") == 1


class TestRaces:
    """The first use has found the passkey, and waits for its user."""

    LOCK = "WITH owner AS (SELECT id FROM users WHERE id = %s FOR UPDATE) "

    def test_first_use_after_a_removal_is_nothing(self, app, alice, laptop, outbox, database):
        authenticator, _ = make_unasked(laptop)
        statement = f"{self.LOCK} DELETE FROM factors USING owner WHERE user_id = owner.id"
        with database.locked("users", alice.id, statement) as lock:
            future = lock.start(lambda: sign_in_response(app.test_client(), authenticator))
        assert_error(future.result(), *FAILED, details=WRONG)
        assert database.count("sessions", "aal = 'aal2'") == 0
        assert database.count("users", "first_factor_at IS NOT NULL") == 0
        assert database.count("audit_log", "action = 'passkey_verified'") == 0
        assert outbox.kinds() == [("passkey_added", alice.email)]

    def test_first_use_after_a_ban_is_nothing(self, app, alice, laptop, database):
        authenticator, _ = make_unasked(laptop)
        statement = (
            f"{self.LOCK} UPDATE users SET banned_until = 'infinity' FROM owner WHERE users.id = owner.id"
        )
        with database.locked("users", alice.id, statement) as lock:
            future = lock.start(lambda: sign_in_response(app.test_client(), authenticator))
        assert_error(future.result(), 403, "user_banned")
        assert database.count("factors", "verified_at IS NULL") == 1

    def test_first_use_on_the_last_day_keeps_it(self, app, alice, laptop, parts, database):
        """The janitor leaves what an act holds."""
        authenticator, _ = make_unasked(laptop)
        database.run("UPDATE factors SET created_at = created_at - interval '31 days'")
        with database.locked("users", alice.id, f"{self.LOCK} SELECT id FROM owner") as lock:
            future = lock.start(lambda: sign_in_response(app.test_client(), authenticator))
            janitor.clean(parts.db)
        assert future.result().status_code == 200
        janitor.clean(parts.db)
        assert database.count("factors", "verified_at IS NOT NULL") == 1

    def test_enrolment_that_waits_for_a_first_use_needs_the_passkey(self, app, alice, laptop, database):
        """Two sessions that have the password alone."""
        make_unasked(laptop)
        thief = alice.open_session()
        thief_app = enrol(thief)
        challenge_id = challenge(thief, thief_app)
        statement = (
            f"{self.LOCK} UPDATE factors SET verified_at = now() FROM owner WHERE factor_type = 'passkey'"
        )
        with database.locked("users", alice.id, statement) as lock:
            future = lock.start(
                lambda: verify(thief.on(app.test_client()), thief_app, challenge_id=challenge_id)
            )
        assert future.result().status_code == 403
        assert database.count("factors", "factor_type = 'totp' AND verified_at IS NOT NULL") == 0


def test_api_key_lives_beside_a_passkey_and_ends_with_an_app(make_app, alice, database):
    client = make_app(AUTH_API_KEYS="true").test_client()
    session = alice.open_session(client)
    _, key = make_key(session)
    register(session)
    assert token_of(client, key)
    set_up_app(session)
    assert database.count("api_keys") == 0


class TestUnknownPasskeys:
    """The browser deletes a passkey that is called unknown."""

    @cases("handle", [None, b"0" * 16, b"another"])
    def test_wrong_signature_is_never_called_unknown(self, client, laptop, database, handle):
        """Whoever's user the answer names."""
        database.run("DELETE FROM factors")
        authenticator, _ = make_unasked(laptop)
        changes = {"key": Key(ES256), "user_handle": handle or authenticator.passkeys[0].user_handle}
        assert_error(sign_in_response(client, authenticator, **changes), *FAILED, details=WRONG)

    @cases(
        "changes",
        [{"is_verified": False}, {"origin": "https://evil.example"}, {"challenge": encode(b"0" * 32)}],
    )
    def test_answer_that_fails_otherwise_is_not_called_unknown(self, client, laptop, database, changes):
        authenticator, _ = make_unasked(laptop)
        database.run("DELETE FROM factors")
        response = sign_in_response(client, authenticator, **changes)
        assert_error(response, *FAILED, details=ANYTHING)
        assert response.json["details"] != GONE
        assert_error(sign_in_response(client, authenticator), *FAILED, details=GONE)

    def test_passkey_that_the_user_has_is_kept_whatever_was_removed(self, alice, laptop, parts):
        """Such as one that the link of a notice has brought back since, or that a planted cookie names."""
        authenticator, passkey = register(laptop)
        id = encode(authenticator.passkeys[0].id)
        assert accepted_ids(parts.db, alice.id, except_id=passkey["id"]) == [id]

    def test_security_key_is_kept_with_the_passkeys(self, client, alice, laptop, parts):
        """It has the same user handle, and may offer itself where a passkey is asked for."""
        key, _, _ = security_keys.set_up(laptop)
        assert accepted_ids(parts.db, alice.id) == [encode(key.passkeys[0].id)]
        key.is_verified = True
        assert_error(sign_in_response(client, key), *FAILED, details=WRONG)
