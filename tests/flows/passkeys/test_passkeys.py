"""Passkeys: registering, signing in, listing, renaming, removing, and attacks on each."""

import pytest

from tests.support.answers import (
    A_SENTENCE,
    A_TIMESTAMP,
    A_UUID,
    ANYTHING,
    LOW,
    NEEDED,
    assert_error,
    assert_ok,
    token_response,
)
from tests.support.audit import timeline_texts
from tests.support.authenticator import ES256, ES384, Authenticator, Key, encode
from tests.support.cases import cases
from tests.support.passkeys import assertion, register, register_response, sign_in, sign_in_response
from tests.support.server import at_once
from tests.support.users import session_of, sign_up_anonymously

FAILED = (400, "webauthn_verification_failed")
UNKNOWN = (400, "webauthn_challenge_not_found")
EXPIRED = (400, "webauthn_challenge_expired")
NOT_FOUND = (404, "webauthn_credential_not_found")
OPTIONS, VERIFY = "/passkeys/registration/options", "/passkeys/registration/verify"
SIGN_IN = "/passkeys/authentication/verify"
A_RANDOM_ID = "0f6d8c62-9a4c-4d4e-8a4e-2f8f5d2c7b11"


@pytest.fixture
def authenticator(laptop):
    return register(laptop)[0]


@pytest.fixture
def passkey_session(client, authenticator):
    return sign_in(client, authenticator)


@pytest.fixture
def entry(passkey_session):
    return passkey_session.get("/passkeys").json[0]


def grow_old(database):
    database.run(
        "UPDATE sessions SET created_at = created_at - interval '901 seconds', reauthenticated_at = NULL,"
        " factor_proved_at = NULL, first_passkey_at = first_passkey_at - interval '901 seconds'"
    )


def begin_registration(session, **options):
    answer = session.post(OPTIONS, json={}).json
    credential = Authenticator().create(answer["options"], **options)
    return {"challenge_id": answer["challenge_id"], "credential": credential}


def assert_wrong_signature(response):
    assert_error(response, *FAILED, details="credential: Could not verify authentication signature")


def assert_unknown(response):
    assert_error(response, *FAILED, details="credential: no passkey has this id")


class TestRegistration:
    def test_first_passkey_signs_in_and_leaves_the_other_sessions(self, client, alice, laptop, database):
        phone = alice.open_session()
        authenticator, passkey = register(laptop)
        named = {"friendly_name": "Passkey", "status": "verified"}
        assert passkey == {"id": A_UUID, **named, "created_at": A_TIMESTAMP}
        assert phone.refreshed().get("/user").json["id"] == alice.id
        response = sign_in_response(client, authenticator)
        user = laptop.get("/user").json
        assert_ok(response, token_response(user | {"last_sign_in_at": A_TIMESTAMP}))
        session = session_of(client, response)
        assert session.user["id"] == alice.id
        assert session.claims["aal"] == "aal2"
        assert session.claims["amr"] == [{"method": "webauthn", "timestamp": ANYTHING}]
        assert session.refreshed().claims["aal"] == "aal2"
        assert session.get("/passkeys").json == [passkey | {"last_used_at": A_TIMESTAMP}]
        assert "factors" not in session.user
        assert database.count("factor_challenges") == 0

    def test_first_passkey_of_an_anonymous_user_needs_no_proof_and_converts_it(self, make_app, database):
        client = make_app(AUTH_ANONYMOUS_ENABLED="true").test_client()
        visitor = sign_up_anonymously(client)
        database.run("INSERT INTO sessions (user_id, method) SELECT id, 'anonymous' FROM users")
        grow_old(database)
        authenticator, _ = register(visitor)
        assert visitor.get("/user").json["is_anonymous"] is False
        assert database.count("sessions", "end_reason = 'address_proved'") == 1
        session = sign_in(client, authenticator)
        assert (session.user["id"], session.user["is_anonymous"]) == (visitor.user["id"], False)
        response = session.delete(f"/passkeys/{session.get('/passkeys').json[0]['id']}")
        assert_error(response, 422, "single_identity_not_deletable")

    def test_options_exclude_passkeys_that_the_user_has(self, passkey_session, authenticator):
        options = passkey_session.post(OPTIONS, json={}).json["options"]
        ids = [credential["id"] for credential in options["excludeCredentials"]]
        assert ids == [encode(authenticator.passkeys[0].id)]
        assert options["user"]["name"] == "alice@example.com"

    @cases("changes", [{"origin": "https://evil.example"}, {"is_verified": False}, {"algorithm": ES384}])
    def test_registration_with_a_foreign_part_is_refused(self, laptop, database, changes):
        assert_error(register_response(laptop, Authenticator(), **changes), *FAILED, details=A_SENTENCE)
        assert database.count("factors") == 0

    def test_second_passkey_cannot_be_added_at_aal1(self, alice, laptop, database):
        """For example with a stolen password, a stolen session, or a registration that began before the first."""
        body = begin_registration(laptop)
        register(laptop)
        assert_error(alice.open_session().post(OPTIONS, json={}), *LOW)
        grow_old(database)
        assert_error(laptop.post(OPTIONS, json={}), *LOW)
        assert_error(laptop.post(VERIFY, json=body), *LOW)
        assert database.count("factors") == 1

    def test_session_of_the_first_passkey_manages_passkeys_for_15_minutes(self, laptop, database):
        register(laptop)
        second = register(laptop)[1]
        path = f"/passkeys/{second['id']}"
        assert laptop.patch(path, json={"friendly_name": "Key"}).status_code == 200
        assert laptop.refreshed().claims["aal"] == "aal1"
        assert laptop.delete(path).status_code == 200
        grow_old(database)
        (first,) = laptop.get("/passkeys").json
        assert_error(laptop.delete(f"/passkeys/{first['id']}"), *LOW)

    def test_only_the_first_factor_ever_lets_its_session_manage_passkeys(self, alice, laptop, database):
        first = register(laptop)[1]
        assert laptop.delete(f"/passkeys/{first['id']}").status_code == 200
        register(laptop)
        assert_error(laptop.post(OPTIONS, json={}), *LOW)
        assert_error(alice.open_session().post(OPTIONS, json={}), *LOW)
        assert database.count("sessions", "first_passkey_at IS NOT NULL") == 0

    def test_token_that_lacks_the_second_step_gains_nothing_by_the_first_passkey(self, make_app, alice):
        session = alice.sign_in(client=make_app(AUTH_MFA_REQUIRED="all").test_client())
        register(session)
        assert_error(session.post("/factors/recovery-codes"), *LOW)
        assert_error(session.get("/sessions"), *LOW)

    def test_challenge_is_of_one_session_and_for_one_use(self, client, alice, mallory, laptop, database):
        body = begin_registration(laptop)
        for session in (mallory.open_session(), alice.open_session()):
            assert_error(session.post(VERIFY, json=body), *UNKNOWN)
        assert_error(client.post(SIGN_IN, json=body), *UNKNOWN)
        assert laptop.post(VERIFY, json=body).status_code == 200
        database.run("DELETE FROM factors")
        assert_error(laptop.post(VERIFY, json=body), *UNKNOWN)

    def test_expired_challenge_is_refused(self, client, laptop, database):
        expire = "UPDATE factor_challenges SET expires_at = now()"
        body = begin_registration(laptop)
        database.run(expire)
        assert_error(laptop.post(VERIFY, json=body), *EXPIRED)
        body = assertion(client, register(laptop)[0])
        database.run(expire)
        assert_error(client.post(SIGN_IN, json=body), *EXPIRED)

    def test_registered_credential_cannot_be_registered_again(self, authenticator, mallory):
        session = mallory.open_session()
        body = begin_registration(session, credential_id=authenticator.passkeys[0].id)
        assert_error(session.post(VERIFY, json=body), 409, "webauthn_credential_exists")


class TestSignIn:
    def test_options_do_not_name_a_user(self, client):
        body = {"gotrue_meta_security": {"captcha_token": None}}
        response = client.post("/passkeys/authentication/options", json=body)
        options = {
            "challenge": ANYTHING,
            "timeout": 300_000,
            "rpId": "localhost",
            "allowCredentials": [],
            "userVerification": "required",
        }
        assert_ok(response, {"challenge_id": A_UUID, "options": options, "expires_at": ANYTHING})

    @cases(
        "changes",
        [
            *({"origin": "https://evil.example"}, {"is_verified": False}, {"key": Key(ES256)}),
            {"user_handle": bytes(16)},
        ],
    )
    def test_assertion_with_a_foreign_part_is_refused(self, client, authenticator, database, changes):
        sessions = database.count("sessions")
        response = sign_in_response(client, authenticator, **changes)
        assert_error(response, *FAILED, details=A_SENTENCE)
        assert (database.count("sessions"), database.count("outbox", "kind = 'auth.login'")) == (sessions, 0)
        assert sign_in(client, authenticator)

    def test_passkey_without_its_user_is_named_as_such_whether_or_not_it_is_known(
        self, client, authenticator, database
    ):
        details = "credential: it has no userHandle: ask the browser without allowCredentials"
        sessions = database.count("sessions")
        for _ in range(2):
            response = sign_in_response(client, authenticator, user_handle=None)
            assert_error(response, *FAILED, details=details)
            database.run("DELETE FROM factors")
        assert database.count("sessions") == sessions

    def test_only_an_id_that_no_passkey_has_is_called_unknown(
        self, client, authenticator, mallory, database, service_role
    ):
        """A browser forgets it for good, so a wrong signature of a known one must not look like that."""
        assert_wrong_signature(sign_in_response(client, authenticator, key=Key(ES256)))
        database.run("DELETE FROM factors")
        assert_unknown(sign_in_response(client, authenticator))
        other, _ = register(mallory.open_session())
        client.delete(f"/admin/users/{mallory.id}", headers=service_role)
        assert_unknown(sign_in_response(client, other))
        assert_error(sign_in_response(client, other, is_verified=False), *FAILED, details=A_SENTENCE)
        # One of another service on the domain is not ours to forget.
        for handle in (b"x", b"0" * 15, b"0" * 17, b"0" * 64):
            assert_wrong_signature(sign_in_response(client, other, user_handle=handle))

    def test_passkey_does_not_sign_in_as_another_user(self, client, authenticator, mallory):
        """The attacker sends the victim's user handle, or the victim's credential id with the own key."""
        mallorys, _ = register(mallory.open_session())
        alices_passkey = authenticator.passkeys[0]
        for changes in ({"user_handle": alices_passkey.user_handle}, {"credential_id": alices_passkey.id}):
            assert_wrong_signature(sign_in_response(client, mallorys, **changes))

    def test_assertion_signs_in_once_and_does_not_register(self, client, laptop, authenticator):
        body = assertion(client, authenticator)
        assert_error(laptop.post(VERIFY, json=body), *UNKNOWN)
        assert_error(client.post(SIGN_IN, json=body | {"challenge_id": A_RANDOM_ID}), *UNKNOWN)
        assert client.post(SIGN_IN, json=body).status_code == 200
        assert_error(client.post(SIGN_IN, json=body), *UNKNOWN)
        other_challenge = client.post("/passkeys/authentication/options", json={}).json["challenge_id"]
        response = client.post(SIGN_IN, json=body | {"challenge_id": other_challenge})
        assert_error(response, *FAILED, details=A_SENTENCE)

    def test_one_of_50_concurrent_requests_with_one_challenge_signs_in(self, server, authenticator, database):
        body, sessions = assertion(server, authenticator), database.count("sessions")
        answers = at_once(50, lambda _: server.post(SIGN_IN, json=body))
        assert sorted(answer.status_code for answer in answers) == [200, *[400] * 49]
        assert database.count("sessions") == sessions + 1

    def test_fallen_counter_is_refused_and_audited(self, client, alice, laptop, authenticator, service_role):
        sign_in(client, authenticator, counter=7)
        details = "credential: its counter went down, so it may be a copy"
        for counter in (7, 6, 0):
            response = sign_in_response(client, authenticator, counter=counter)
            assert_error(response, *FAILED, details=details)
        assert sign_in(client, authenticator, counter=8)
        timeline = client.get(f"/admin/users/{alice.id}/timeline", headers=service_role)
        sentences = " ".join(timeline_texts(timeline))
        assert "passkey refused as a possible copy, because its counter went down: Passkey" in sentences
        assert "signed in with a passkey" in sentences

    @pytest.mark.parametrize("is_known", [True, False])
    def test_copies_of_a_synced_passkey_count_apart(self, client, alice, laptop, database, is_known):
        authenticator, _ = register(laptop, is_synced=is_known)
        if not is_known:
            database.run("UPDATE factors SET backup_eligible = NULL")
        for counter in (7, 3, 8, 4):
            assert sign_in(client, authenticator, counter=counter).user["id"] == alice.id
        condition = "action = 'passkey_counter_fell' AND details ->> 'is_synced' = 'true'"
        assert database.count("audit_log", condition) == 2

    def test_banned_user_is_refused(self, client, authenticator, database):
        sessions = database.count("sessions")
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert_error(sign_in_response(client, authenticator), 403, "user_banned")
        assert_wrong_signature(sign_in_response(client, authenticator, key=Key(ES256)))
        assert database.count("sessions") == sessions

    def test_disabled_passkeys_are_refused(self, make_app, alice):
        session = alice.sign_in(client=make_app(AUTH_PASSKEYS_ENABLED="false").test_client())
        for path in (OPTIONS, VERIFY, SIGN_IN):
            assert_error(session.post(path, json={}), 404, "passkey_disabled")
        assert_ok(session.get("/passkeys"), [])

    def test_disabled_passkey_proves_its_user_who_removes_it(self, make_app, alice, authenticator, database):
        client = make_app(AUTH_PASSKEYS_ENABLED="false").test_client()
        session = alice.sign_in(client=client)
        (passkey,) = session.get("/passkeys").json
        path = f"/passkeys/{passkey['id']}"
        assert_error(session.delete(path, json={}), *LOW)
        raised = session_of(client, session.post("/reauthenticate", json=assertion(client, authenticator)))
        assert raised.claims["aal"] == "aal2"
        assert raised.delete(path, json={}).status_code == 200
        assert database.count("factors") == 0


class TestReauthentication:
    def test_passkey_is_a_proof_and_raises_the_session(self, client, alice, authenticator, database):
        session = alice.open_session()
        grow_old(database)
        response = session.post("/reauthenticate", json=assertion(client, authenticator))
        raised = session_of(client, response)
        assert (response.json["message"], raised.id) == ("Reauthenticated", session.id)
        assert [method["method"] for method in raised.claims["amr"]] == ["password", "webauthn"]
        assert raised.post(OPTIONS, json={}).status_code == 200
        # The tokens from before may be a thief's.
        assert_error(session.post(OPTIONS, json={}), *LOW)
        assert session.refresh().status_code == 400

    def test_passkey_of_another_user_does_not_count_as_a_proof(self, client, laptop, mallory, database):
        mallorys_authenticator, _ = register(mallory.open_session())
        grow_old(database)
        assert_wrong_signature(laptop.post("/reauthenticate", json=assertion(client, mallorys_authenticator)))
        assert_error(laptop.post(OPTIONS, json={}), *NEEDED, details=A_SENTENCE)
        response = laptop.post("/reauthenticate", json={"challenge_id": A_RANDOM_ID})
        assert_error(
            response, 400, "validation_failed", details="challenge_id: must be given with credential"
        )


class TestManagement:
    def test_user_renames_a_passkey(self, passkey_session, entry):
        path = f"/passkeys/{entry['id']}"
        expected = entry | {"friendly_name": "Work laptop"}
        assert_ok(passkey_session.patch(path, json={"friendly_name": "Work laptop"}), expected)
        assert passkey_session.get("/passkeys").json == [expected]
        for name in ("", " ", "\u200d", "\u3164", "a\u202eb", "a\nb", "x" * 121):
            response = passkey_session.patch(path, json={"friendly_name": name})
            limits = "friendly_name: must be 1 to 120 visible characters"
            assert_error(response, 400, "validation_failed", details=limits)

    def test_user_removes_a_passkey(self, client, alice, authenticator, passkey_session, entry, outbox):
        assert_ok(passkey_session.delete(f"/passkeys/{entry['id']}"), {"id": entry["id"]})
        assert_unknown(sign_in_response(client, authenticator))
        # Its level came from the passkey.
        assert passkey_session.refreshed().claims["aal"] == "aal1"
        assert passkey_session.get("/passkeys").json == []
        assert outbox.kinds() == [("passkey_added", alice.email), ("passkey_removed", alice.email)]

    def test_passkey_of_another_user_is_not_found(self, entry, mallory):
        session = mallory.open_session()
        for id in (entry["id"], A_RANDOM_ID, "nonsense"):
            assert_error(session.patch(f"/passkeys/{id}", json={"friendly_name": "Mine"}), *NOT_FOUND)
            assert_error(session.delete(f"/passkeys/{id}"), *NOT_FOUND)
        assert session.get("/passkeys").json == []

    def test_administrator_lists_and_removes_passkeys(
        self, client, alice, authenticator, service_role, outbox
    ):
        path = f"/admin/users/{alice.id}/passkeys"
        (entry,) = client.get(path, headers=service_role).json
        named = {"friendly_name": "Passkey", "status": "verified"}
        assert entry == {"id": A_UUID, **named, "created_at": A_TIMESTAMP}
        passkey_path = f"{path}/{entry['id']}"
        assert_ok(client.delete(passkey_path, headers=service_role), {"id": entry["id"]})
        assert_error(client.delete(passkey_path, headers=service_role), *NOT_FOUND)
        assert_ok(client.get(path, headers=service_role), [])
        assert outbox.last().kind == "passkey_removed"

    def test_sign_in_during_a_removal_leaves_no_aal2(
        self, server, passkey_session, entry, authenticator, database
    ):
        body, server_session = assertion(server, authenticator), passkey_session.on(server)
        requests = (
            lambda: server_session.delete(f"/passkeys/{entry['id']}"),
            lambda: server.post(SIGN_IN, json=body),
        )
        assert at_once(2, lambda number: requests[number]())[0].status_code == 200
        assert database.count("sessions", "aal = 'aal2' AND ended_at IS NULL") == 0
