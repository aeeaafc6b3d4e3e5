"""Passkeys: registering, signing in, listing, renaming, removing, and attacks on each."""

import pytest

from auth.context import EXTENSION
from tests.support.answers import (
    A_SENTENCE,
    A_TIMESTAMP,
    A_UUID,
    ANYTHING,
    assert_error,
    assert_ok,
    token_response,
)
from tests.support.audit import story
from tests.support.authenticator import ES256, ES384, Authenticator, Key, encode
from tests.support.cases import cases
from tests.support.cast import PASSWORD, Session, session_of, sign_up_anonymously
from tests.support.links import Outbox, press
from tests.support.passkeys import assertion, register, register_response, sign_in, sign_in_response
from tests.support.server import at_once

FAILED = (400, "webauthn_verification_failed")
UNKNOWN = (400, "webauthn_challenge_not_found")
WRONG_SIGNATURE = "credential: Could not verify authentication signature"
LEVEL = (403, "insufficient_aal")


@pytest.fixture
def laptop(alice):
    """A session of Alice."""
    return alice.open_session()


@pytest.fixture
def authenticator(laptop):
    """Alice's, with a passkey."""
    return register(laptop)[0]


@pytest.fixture
def passkey(client, authenticator):
    """A session of Alice that began with her passkey."""
    return sign_in(client, authenticator)


def grow_old(database, seconds=901):
    database.run(
        "UPDATE sessions SET created_at = created_at - %(by)s * interval '1 second', reauthenticated_at = NULL,"
        " factor_proved_at = NULL",
        by=seconds,
    )


class TestRegistration:
    def test_first_passkey_makes_an_anonymous_user_permanent(self, make_app, database):
        client = make_app(AUTH_ANONYMOUS_ENABLED="true").test_client()
        visitor = sign_up_anonymously(client)
        database.run("INSERT INTO sessions (user_id, method) SELECT id, 'anonymous' FROM users")
        authenticator, _ = register(visitor)
        assert visitor.get("/user").json["is_anonymous"] is False
        assert database.count("sessions", "end_reason = 'address_proved'") == 1
        assert sign_in(client, authenticator).user["id"] == visitor.user["id"]

    def test_first_passkey_ends_the_other_sessions(self, alice, laptop):
        others = alice.open_session()
        register(laptop)
        assert_error(others.get("/user"), 401, "session_not_found")
        assert laptop.get("/user").status_code == 200

    def test_user_registers_a_passkey_and_signs_in_with_it(self, client, alice, laptop, database):
        authenticator, passkey = register(laptop)
        assert passkey == {"id": A_UUID, "friendly_name": "Passkey", "created_at": A_TIMESTAMP}

        session = sign_in(client, authenticator)
        assert session.user["id"] == alice.id
        assert session.claims["aal"] == "aal2"
        assert session.claims["amr"] == [{"method": "webauthn", "timestamp": ANYTHING}]
        assert session.refreshed().claims["aal"] == "aal2"
        assert session.get("/passkeys").json == [passkey | {"last_used_at": A_TIMESTAMP}]
        assert "factors" not in session.user
        assert database.count("factor_challenges") == 0

    def test_options_exclude_passkeys_that_the_user_has(self, passkey, authenticator):
        options = passkey.post("/passkeys/registration/options", json={}).json["options"]
        assert [credential["id"] for credential in options["excludeCredentials"]] == [
            encode(authenticator.passkeys[0].id)
        ]
        assert options["user"]["name"] == "alice@example.com"

    @pytest.mark.parametrize(
        "changes",
        [
            {"origin": "https://evil.example"},
            {"rp_id": "evil.example"},
            {"challenge": encode(bytes(64))},
            {"is_verified": False},
            {"algorithm": ES384},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_registration_with_a_foreign_part_is_refused(self, laptop, database, changes):
        assert_error(register_response(laptop, Authenticator(), **changes), *FAILED, details=A_SENTENCE)
        assert database.count("factors") == 0

    def test_session_older_than_15_minutes_needs_a_proof(self, laptop, database):
        grow_old(database)
        refused = laptop.post("/passkeys/registration/options", json={})
        assert_error(refused, 400, "reauthentication_needed", details=A_SENTENCE)
        proved = laptop.post("/passkeys/registration/options", json={"current_password": PASSWORD})
        assert proved.status_code == 200

    def test_second_passkey_cannot_be_added_at_aal1(self, authenticator, alice, laptop, database):
        """As from a stolen password, a stolen session, or a link in a mail."""
        for session in (laptop, alice.sign_in()):
            assert_error(session.post("/passkeys/registration/options", json={}), *LEVEL)
        assert database.count("factors") == 1

    def test_registration_that_began_before_another_needs_aal2(self, laptop, database):
        begun = laptop.post("/passkeys/registration/options", json={}).json
        register(laptop)
        credential = Authenticator().create(begun["options"])
        body = {"challenge_id": begun["challenge_id"], "credential": credential}
        assert_error(laptop.post("/passkeys/registration/verify", json=body), *LEVEL)
        assert database.count("factors") == 1

    def test_challenge_is_of_one_session_and_for_one_use(self, client, alice, mallory, laptop, database):
        begun = laptop.post("/passkeys/registration/options", json={}).json
        credential = Authenticator().create(begun["options"])
        body = {"challenge_id": begun["challenge_id"], "credential": credential}
        for session in (mallory.sign_in(), alice.sign_in()):
            assert_error(session.post("/passkeys/registration/verify", json=body), *UNKNOWN)
        assert_error(client.post("/passkeys/authentication/verify", json=body), *UNKNOWN)
        assert laptop.post("/passkeys/registration/verify", json=body).status_code == 200
        database.run("DELETE FROM factors")
        assert_error(laptop.post("/passkeys/registration/verify", json=body), *UNKNOWN)

    def test_expired_challenge_is_refused(self, laptop, database):
        begun = laptop.post("/passkeys/registration/options", json={}).json
        database.run("UPDATE factor_challenges SET expires_at = now()")
        body = {"challenge_id": begun["challenge_id"], "credential": Authenticator().create(begun["options"])}
        refused = laptop.post("/passkeys/registration/verify", json=body)
        assert_error(refused, 400, "webauthn_challenge_expired")

    def test_registered_credential_cannot_be_registered_again(self, authenticator, mallory):
        session, known = mallory.open_session(), authenticator.passkeys[0]
        begun = session.post("/passkeys/registration/options", json={}).json
        credential = Authenticator().create(begun["options"], credential_id=known.id)
        body = {"challenge_id": begun["challenge_id"], "credential": credential}
        refused = session.post("/passkeys/registration/verify", json=body)
        assert_error(refused, 409, "webauthn_credential_exists")

    def test_number_of_passkeys_is_limited(self, alice, make_app, database):
        client = make_app(AUTH_MFA_MAX_ENROLLED_FACTORS="1").test_client()
        session = sign_in(client, register(alice.sign_in(client=client))[0])
        refused = session.post("/passkeys/registration/options", json={})
        assert_error(refused, 422, "too_many_passkeys")

    def test_user_with_nothing_else_needs_no_proof_for_the_first(self, make_app, database):
        client = make_app(AUTH_ANONYMOUS_ENABLED="true").test_client()
        body = client.post("/signup", json={}).json
        session = Session(client, body["access_token"], body["refresh_token"], body["user"])
        grow_old(database)
        authenticator, _ = register(session)

        back = sign_in(client, authenticator)
        assert (back.user["id"], back.user["is_anonymous"]) == (session.user["id"], False)
        refused = back.delete(f"/passkeys/{back.get('/passkeys').json[0]['id']}")
        assert_error(refused, 422, "single_identity_not_deletable")


class TestSignIn:
    def test_whole_response_is_that_of_every_sign_in(self, client, authenticator, laptop):
        response = sign_in_response(client, authenticator)
        user = laptop.get("/user").json
        assert_ok(response, token_response(user | {"last_sign_in_at": A_TIMESTAMP}))

    def test_options_do_not_name_a_user(self, client, authenticator):
        response = client.post(
            "/passkeys/authentication/options", json={"gotrue_meta_security": {"captcha_token": None}}
        )
        body = {
            "challenge_id": A_UUID,
            "options": {
                "challenge": ANYTHING,
                "timeout": 300_000,
                "rpId": "localhost",
                "allowCredentials": [],
                "userVerification": "required",
            },
            "expires_at": ANYTHING,
        }
        assert_ok(response, body)

    @cases(
        "changes",
        [
            {"origin": "https://evil.example"},
            {"rp_id": "evil.example"},
            {"challenge": encode(bytes(64))},
            {"is_verified": False},
            {"is_present": False},
            {"cross_origin": True},
            {"type": "webauthn.create"},
            {"key": Key(ES256)},
            {"user_handle": None},
            {"user_handle": bytes(16)},
        ],
    )
    def test_assertion_with_a_foreign_part_is_refused(self, client, authenticator, database, changes):
        sessions = database.count("sessions")
        response = sign_in_response(client, authenticator, **changes)
        assert_error(response, *FAILED, details=A_SENTENCE)
        assert (database.count("sessions"), database.count("outbox", "kind = 'auth.login'")) == (sessions, 0)
        assert sign_in(client, authenticator)

    def test_unknown_passkey_is_refused_like_a_wrong_signature(
        self, client, authenticator, mallory, database, service_role
    ):
        database.run("DELETE FROM factors")
        gone = sign_in_response(client, authenticator)
        other, _ = register(mallory.sign_in())
        client.delete(f"/admin/users/{mallory.id}", headers=service_role)
        for response in (gone, sign_in_response(client, other)):
            assert_error(response, *FAILED, details=WRONG_SIGNATURE)

    def test_passkey_does_not_sign_in_as_another_user(self, client, authenticator, mallory):
        """With the victim's user handle, or the victim's credential id and the attacker's key."""
        own, _ = register(mallory.open_session())
        victims = authenticator.passkeys[0]
        for changes in ({"user_handle": victims.user_handle}, {"credential_id": victims.id}):
            response = sign_in_response(client, own, **changes)
            assert_error(response, *FAILED, details=WRONG_SIGNATURE)

    def test_assertion_signs_in_once(self, client, authenticator, database):
        body = assertion(client, authenticator)
        assert client.post("/passkeys/authentication/verify", json=body).status_code == 200
        assert_error(client.post("/passkeys/authentication/verify", json=body), *UNKNOWN)
        other = client.post("/passkeys/authentication/options", json={}).json["challenge_id"]
        replayed = client.post("/passkeys/authentication/verify", json=body | {"challenge_id": other})
        assert_error(replayed, *FAILED, details=A_SENTENCE)

    def test_one_of_50_concurrent_requests_with_one_challenge_signs_in(self, server, authenticator, database):
        bodies = [assertion(server, authenticator)]
        challenge = {"challenge": bodies[0]["challenge_id"]}
        sessions = database.count("sessions")
        answers = at_once(50, lambda _: server.post("/passkeys/authentication/verify", json=bodies[0]))
        assert sorted(answer.status_code for answer in answers) == [200, *[400] * 49], challenge
        assert database.count("sessions") == sessions + 1

    def test_challenge_of_another_operation_is_refused(self, client, laptop, authenticator):
        body = assertion(client, authenticator)
        refused = laptop.post("/passkeys/registration/verify", json=body)
        assert_error(refused, *LEVEL)
        mallory = body | {"challenge_id": A_RANDOM_ID}
        assert_error(client.post("/passkeys/authentication/verify", json=mallory), *UNKNOWN)

    def test_expired_challenge_is_refused(self, client, authenticator, database):
        body = assertion(client, authenticator)
        database.run("UPDATE factor_challenges SET expires_at = now()")
        refused = client.post("/passkeys/authentication/verify", json=body)
        assert_error(refused, 400, "webauthn_challenge_expired")

    def test_fallen_counter_is_refused_and_audited(self, client, alice, laptop, authenticator, service_role):
        sign_in(client, authenticator, counter=7)
        for counter in (7, 6, 0):
            response = sign_in_response(client, authenticator, counter=counter)
            assert_error(
                response, *FAILED, details="credential: its counter has fallen: there may be a copy of it"
            )
        assert sign_in(client, authenticator, counter=8)
        timeline = client.get(f"/admin/users/{alice.id}/timeline", headers=service_role)
        sentences = " ".join(story(timeline))
        assert "passkey refused, whose counter has fallen as that of a copy would: Passkey" in sentences
        assert "signed in by a passkey" in sentences

    def test_authenticator_without_a_counter_signs_in_again_and_again(self, client, laptop):
        authenticator, _ = register(laptop, counts=False)
        for _ in range(2):
            assert sign_in(client, authenticator)

    def test_banned_user_is_refused(self, client, authenticator, database):
        sessions = database.count("sessions")
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert_error(sign_in_response(client, authenticator), 403, "user_banned")
        assert_error(
            sign_in_response(client, authenticator, key=Key(ES256)), *FAILED, details=WRONG_SIGNATURE
        )
        assert database.count("sessions") == sessions

    @cases(
        "body",
        [
            {},
            {"challenge_id": "x", "credential": {}},
            {"challenge_id": "0f6d8c62-9a4c-4d4e-8a4e-2f8f5d2c7b11", "credential": []},
            {"challenge_id": "0f6d8c62-9a4c-4d4e-8a4e-2f8f5d2c7b11", "credential": {"id": "a" * 65_536}},
        ],
    )
    def test_malformed_body_is_refused(self, client, database, body):
        response = client.post("/passkeys/authentication/verify", json=body)
        assert_error(response, 400, "validation_failed", details=A_SENTENCE)

    def test_disabled_passkeys_are_refused(self, make_app, alice):
        client = make_app(AUTH_PASSKEYS_ENABLED="false").test_client()
        session = alice.sign_in(client=client)
        for path in ("registration/options", "registration/verify", "authentication/options"):
            assert_error(session.post(f"/passkeys/{path}", json={}), 404, "passkey_disabled")
        assert_ok(session.get("/passkeys"), [])


A_RANDOM_ID = "0f6d8c62-9a4c-4d4e-8a4e-2f8f5d2c7b11"


class TestReauthentication:
    def test_passkey_is_a_proof_and_raises_the_session(self, client, alice, authenticator, database):
        session = alice.open_session()
        grow_old(database)
        response = session.post("/reauthenticate", json=assertion(client, authenticator))
        raised = session_of(client, response)
        assert (response.json["message"], raised.id) == ("Reauthenticated", session.id)
        assert [method["method"] for method in raised.claims["amr"]] == ["password", "webauthn"]
        assert raised.post("/passkeys/registration/options", json={}).status_code == 200
        # The tokens from before may be a thief's.
        assert_error(session.post("/passkeys/registration/options", json={}), *LEVEL)
        assert session.refresh().status_code == 400

    def test_passkey_of_another_user_does_not_count_as_a_proof(self, client, laptop, mallory, database):
        others, _ = register(mallory.open_session())
        grow_old(database)
        refused = laptop.post("/reauthenticate", json=assertion(client, others))
        assert_error(refused, *FAILED, details=WRONG_SIGNATURE)
        refused = laptop.post("/passkeys/registration/options", json={})
        assert_error(refused, 400, "reauthentication_needed", details=A_SENTENCE)

    def test_challenge_and_credential_belong_together(self, laptop):
        refused = laptop.post("/reauthenticate", json={"challenge_id": A_RANDOM_ID})
        assert_error(refused, 400, "validation_failed", details="challenge_id: must be given with credential")


class TestManagement:
    def test_user_renames_a_passkey(self, passkey):
        (known,) = passkey.get("/passkeys").json
        renamed = known | {"friendly_name": "Work laptop"}
        response = passkey.patch(f"/passkeys/{known['id']}", json={"friendly_name": "Work laptop"})
        assert_ok(response, renamed)
        assert passkey.get("/passkeys").json == [renamed]
        for name in ("", "x" * 121):
            refused = passkey.patch(f"/passkeys/{known['id']}", json={"friendly_name": name})
            assert_error(
                refused, 400, "validation_failed", details="friendly_name: must be 1 to 120 characters"
            )

    def test_user_removes_a_passkey(self, client, alice, authenticator, passkey, outbox):
        (known,) = passkey.get("/passkeys").json
        assert_ok(passkey.delete(f"/passkeys/{known['id']}"), {"id": known["id"]})
        assert_error(sign_in_response(client, authenticator), *FAILED, details=WRONG_SIGNATURE)
        # Its level came from the passkey.
        assert passkey.refreshed().claims["aal"] == "aal1"
        assert passkey.get("/passkeys").json == []
        assert outbox.kinds() == [("passkey_added", alice.email), ("passkey_removed", alice.email)]

    def test_removal_needs_aal2_and_a_proof(self, client, alice, authenticator, passkey, database):
        (known,) = passkey.get("/passkeys").json
        assert_error(alice.sign_in().delete(f"/passkeys/{known['id']}"), *LEVEL)
        grow_old(database)
        refused = passkey.delete(f"/passkeys/{known['id']}")
        assert_error(refused, 400, "reauthentication_needed", details=A_SENTENCE)
        assert database.count("factors") == 1

    def test_link_in_a_mail_does_not_replace_passkeys(
        self, client, alice, authenticator, passkey, outbox, database
    ):
        (known,) = passkey.get("/passkeys").json
        database.run("UPDATE factors SET verified_at = verified_at - interval '8 days'")
        client.post("/recover", json={"email": alice.email})
        sent = outbox.last(kind="recovery")
        session = session_of(
            client, client.post("/verify", json={"type": "recovery", "token_hash": sent.token})
        )
        assert session.claims["aal"] == "aal1"
        assert_error(session.delete(f"/passkeys/{known['id']}"), *LEVEL)
        assert_error(session.patch(f"/passkeys/{known['id']}", json={"friendly_name": "x"}), *LEVEL)
        assert_error(session.post("/passkeys/registration/options", json={}), *LEVEL)

    def test_passkey_of_another_user_is_not_found(self, passkey, mallory):
        (known,) = passkey.get("/passkeys").json
        session = mallory.sign_in()
        not_found = (404, "webauthn_credential_not_found")
        for id in (known["id"], A_RANDOM_ID, "nonsense"):
            assert_error(session.patch(f"/passkeys/{id}", json={"friendly_name": "Mine"}), *not_found)
            assert_error(session.delete(f"/passkeys/{id}"), *not_found)
        assert session.get("/passkeys").json == []

    def test_administrator_lists_and_removes_passkeys(
        self, client, alice, authenticator, service_role, outbox
    ):
        path = f"/admin/users/{alice.id}/passkeys"
        (known,) = client.get(path, headers=service_role).json
        assert known == {"id": A_UUID, "friendly_name": "Passkey", "created_at": A_TIMESTAMP}
        removed = client.delete(f"{path}/{known['id']}", headers=service_role)
        assert_ok(removed, {"id": known["id"]})
        assert_error(
            client.delete(f"{path}/{known['id']}", headers=service_role), 404, "webauthn_credential_not_found"
        )
        assert_ok(client.get(path, headers=service_role), [])
        assert outbox.last().kind == "passkey_removed"

    def test_removal_and_sign_in_at_once_leave_no_session_at_aal2(
        self, server, passkey, authenticator, database
    ):
        (known,) = passkey.get("/passkeys").json
        body = assertion(server, authenticator)
        on_server = passkey.on(server)

        def act(number):
            if number:
                return server.post("/passkeys/authentication/verify", json=body).status_code
            return on_server.delete(f"/passkeys/{known['id']}").status_code

        assert at_once(2, act)[0] == 200
        assert database.count("sessions", "aal = 'aal2' AND ended_at IS NULL") == 0


def test_first_proof_of_an_address_removes_the_passkey_of_a_stranger(make_app, database):
    client = make_app(AUTH_AUTOCONFIRM="true").test_client()
    body = client.post("/signup", json={"email": "victim@example.com", "password": PASSWORD}).json
    strangers = Session(client, body["access_token"], body["refresh_token"], body["user"])
    authenticator, _ = register(strangers)
    client.post("/magiclink", json={"email": "victim@example.com"})
    link = Outbox(client.application.extensions[EXTENSION], database).last(kind="magiclink")
    verified = client.post("/verify", json={"type": "magiclink", "token_hash": link.token})

    assert (verified.status_code, database.count("factors")) == (200, 0)
    assert_error(sign_in_response(client, authenticator), *FAILED, details=WRONG_SIGNATURE)


def test_notice_of_a_new_passkey_undoes_it(client, alice, authenticator, outbox, database):
    notice = outbox.last(kind="passkey_added")
    assert (notice.to, notice.lifetime) == (alice.email, 7 * 86_400)
    press(client, "undo", notice.token)
    assert database.count("factors") == 0
    assert_error(sign_in_response(client, authenticator), *FAILED, details=WRONG_SIGNATURE)


def test_recovery_lists_a_new_passkey_and_removes_it(client, alice, authenticator, outbox):
    client.post("/recover", json={"email": alice.email})
    link = outbox.last(kind="recovery")
    response = client.post("/verify", json={"type": "recovery", "token_hash": link.token})
    (change,) = response.json["recent_changes"]
    assert change == {"id": A_UUID, "type": "passkey", "added_at": A_TIMESTAMP, "label": "Passkey"}
    session = session_of(client, response)
    assert session.put("/user", json={"remove": [change["id"]]}).status_code == 200
    assert_error(sign_in_response(client, authenticator), *FAILED, details=WRONG_SIGNATURE)
