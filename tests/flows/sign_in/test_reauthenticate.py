"""GET /reauthenticate sends a code for a sensitive change; POST /reauthenticate takes it, or the password."""

import pytest

from tests.support import passkeys
from tests.support.answers import A_SENTENCE, A_TIMESTAMP, NEEDED, assert_error, assert_ok
from tests.support.cases import cases
from tests.support.factors import raised, set_up
from tests.support.full_queue import full_queue
from tests.support.links import ON_ITS_WAY, OTHER_PHONE, PHONE, counted, hand_in, type_in
from tests.support.users import NEW_PASSWORD, PASSWORD, session_of

FACTOR_NEEDED = (
    "give factor_code from an authenticator app, a passkey, or verify a factor again: a user with a factor needs"
    " one used in this session in the last 15 minutes"
)
DONE = {"message": "Reauthenticated", "timestamp": A_TIMESTAMP}


@pytest.fixture
def session(alice, database):
    session = alice.open_session()
    grow_old(database)
    return session


def grow_old(database):
    database.run("UPDATE sessions SET created_at = created_at - interval '1 day'")


@pytest.fixture
def nonce(session, outbox):
    assert_ok(session.get("/reauthenticate"), ON_ITS_WAY)
    return outbox.last().code


COUNT_ONE_MAIL = (
    "INSERT INTO failure_counts (kind, count, key, expires_at, seconds)"
    " VALUES ('mail', 1, 'mail 3600', now() + interval '1 hour', 3600)"
)
MOVED_EMAIL = "moved@example.com"


@pytest.mark.parametrize("proof", ["nonce", "current_password"])
def test_proof_and_quota_are_given_once_if_an_address_changes_meanwhile(
    make_app, alice, database, proof, outbox
):
    session = alice.open_session(make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client())
    grow_old(database)
    session.get("/reauthenticate")
    credential = {"nonce": outbox.last().code, "current_password": PASSWORD}[proof]
    database.run("DELETE FROM failure_counts")
    database.run(COUNT_ONE_MAIL)
    body = {"email": "new@example.com", proof: credential}
    # Between the proof and the act, a request for a message waits for the count of all messages.
    with database.locked(
        "failure_counts", "mail", "SELECT FROM failure_counts WHERE kind = %s FOR UPDATE"
    ) as lock:
        future = lock.start(lambda: session.put("/user", json=body))
        database.run("UPDATE users SET email = %(email)s WHERE id = %(id)s", email=MOVED_EMAIL, id=alice.id)
    answer = future.result()
    assert (answer.status_code, answer.json["email"], answer.json["new_email"]) == (
        200,
        MOVED_EMAIL,
        body["email"],
    )
    assert [each.kind for each in outbox.sent(body["email"])] == ["email_change"]
    assert database.value("SELECT count FROM failure_counts WHERE kind = 'mail'") == 2


def change(session, **body):
    return session.put("/user", json={"password": NEW_PASSWORD} | body)


def assert_not_valid(response):
    assert_error(response, 400, "reauthentication_not_valid", details=A_SENTENCE)


class TestCode:
    @pytest.mark.parametrize(
        "state",
        [
            "phone = NULL",
            "phone = %(phone)s, phone_confirmed_at = now()",
            "new_email = 'mallory@example.com', new_phone = %(phone)s",
        ],
        ids=["email", "email and phone", "pending addresses"],
    )
    def test_code_is_mailed_to_the_confirmed_email_without_a_link(
        self, session, alice, outbox, database, state
    ):
        database.run(f"UPDATE users SET {state}", phone=PHONE)
        assert_ok(session.get("/reauthenticate"), ON_ITS_WAY)
        (message,) = outbox.sent()
        assert (message.kind, message.channel, message.to) == ("reauthentication", "email", alice.email)
        assert (message.token, message.lifetime) == (None, 3600)
        assert (len(message.code), message.code.isdecimal()) == (6, True)

    def test_code_is_sent_by_sms_when_only_the_phone_is_confirmed(self, session, outbox, database):
        database.run("UPDATE users SET phone = %(phone)s, email_confirmed_at = NULL", phone=PHONE)
        assert_error(session.get("/reauthenticate"), 422, "validation_failed")
        assert (outbox.sent(), database.count("outbox")) == ([], 0)
        database.run("UPDATE users SET phone_confirmed_at = now()")
        assert_ok(session.get("/reauthenticate"), ON_ITS_WAY)
        (message,) = outbox.sent()
        assert (message.channel, message.to, message.token, message.lifetime) == ("sms", PHONE, None, 600)
        assert change(session, nonce=message.code).status_code == 200


class TestNonce:
    @pytest.mark.parametrize(
        "body", [{"password": NEW_PASSWORD}, {"email": "new@example.com"}, {"phone": PHONE}]
    )
    def test_nonce_allows_a_change_once(self, session, nonce, alice, outbox, body):
        assert_error(session.put("/user", json=body), *NEEDED, details=A_SENTENCE)
        assert len(outbox.sent()) == 1
        assert session.put("/user", json=body | {"nonce": nonce}).status_code == 200
        assert len(outbox.sent()) == 2
        assert alice.try_to_sign_in(NEW_PASSWORD).status_code == (200 if "password" in body else 401)
        assert_not_valid(session.put("/user", json={"password": "Third-Horse-1", "nonce": nonce}))
        assert alice.try_to_sign_in("Third-Horse-1").status_code == 401

    def test_refusal_by_the_hashing_queue_does_not_spend_the_nonce(self, session, nonce, parts, alice):
        with full_queue(parts.passwords):
            assert_error(change(session, nonce=nonce), 503, "service_unavailable")
        assert alice.try_to_sign_in().status_code == 200
        assert change(session, nonce=nonce).status_code == 200

    def test_newest_nonce_works_until_five_wrong_tries(self, session, nonce, outbox, alice, database):
        session.get("/reauthenticate")
        assert_not_valid(change(session, nonce=nonce))
        for _ in range(4):
            assert_not_valid(change(session, nonce=outbox.last().wrong_code))
        assert_not_valid(change(session, nonce=outbox.last().code))
        assert alice.try_to_sign_in().status_code == 200
        assert counted(database, f"code {alice.email} 127.0.0.1") == 5
        session.get("/reauthenticate")
        assert change(session, nonce=outbox.last().code).status_code == 200

    def test_malformed_nonce_is_refused(self, session, alice):
        for malformed in ("", "x", "12345", "1234567", "12345\uff16", " 123456", "123 456"):
            assert_not_valid(change(session, nonce=malformed))
        for nonce in (123456, True, ["123456"]):
            response = change(session, nonce=nonce)
            assert_error(response, 400, "validation_failed", details="nonce: must be a string")
        assert alice.try_to_sign_in().status_code == 200

    def test_nonce_of_another_user_is_refused(self, session, nonce, bob, database, outbox):
        bobs_session = bob.open_session()
        grow_old(database)
        bobs_session.get("/reauthenticate")
        bobs_nonce = outbox.last(bob.email).code
        assert_not_valid(change(session, nonce=bobs_nonce))
        assert_not_valid(change(bobs_session, nonce=nonce))
        assert change(bobs_session, nonce=bobs_nonce).status_code == 200

    def test_nonce_does_not_sign_in(self, client, session, nonce, alice, database):
        # Four tries of five: as a code of the types that have one for an email.
        for type in ("magiclink", "email", "signup", "recovery"):
            assert_error(type_in(client, type, alice.email, nonce), 403, "otp_expired")
        for type in ("magiclink", "invite", "email_change", "sms", "phone_change"):
            assert_error(hand_in(client, type, nonce), 403, "otp_expired")
        response = type_in(client, "reauthentication", alice.email, nonce)
        assert_error(response, 400, "validation_failed", details=A_SENTENCE)
        assert database.count("sessions") == 1
        assert change(session, nonce=nonce).status_code == 200

    @pytest.mark.parametrize("body", [{"password": "Third-Horse-1"}, {"email": "new@example.com"}])
    def test_nonce_is_void_after_a_change_of_password_or_email(
        self, client, session, nonce, outbox, database, body
    ):
        assert session.put("/user", json=body | {"current_password": PASSWORD}).status_code == 200
        if "email" in body:
            assert hand_in(client, "email_change", outbox.last("new@example.com").token).status_code == 200
        grow_old(database)
        assert_not_valid(change(session, nonce=nonce))

    def test_wrong_password_is_refused_even_with_a_nonce(self, session, nonce, alice):
        response = change(session, nonce=nonce, current_password="Wrong-Horse-1")
        assert_error(response, 400, "current_password_invalid", details=A_SENTENCE)
        assert alice.try_to_sign_in().status_code == 200


def test_setting_always_needs_a_nonce_and_accepts_no_recorded_proof(make_app, alice, outbox):
    session = alice.sign_in(client=make_app(AUTH_REAUTHENTICATION_AGE="always").test_client())
    session.post("/reauthenticate", json={"current_password": PASSWORD})
    assert_error(change(session), *NEEDED, details=A_SENTENCE)
    session.get("/reauthenticate")
    assert change(session, nonce=outbox.last().code).status_code == 200


class TestRecording:
    """POST /reauthenticate is a proof for 15 minutes, only in this session."""

    def pass_time(self, database, seconds):
        database.run(
            "UPDATE sessions SET reauthenticated_at = reauthenticated_at - make_interval(secs => %(seconds)s)",
            seconds=seconds,
        )

    def test_reauthentication_is_a_proof_for_15_minutes_in_its_session(self, session, alice, database):
        other = alice.open_session()
        grow_old(database)
        session.post("/reauthenticate", json={"current_password": PASSWORD})
        assert_error(other.put("/user", json={"phone": PHONE}), *NEEDED, details=A_SENTENCE)
        self.pass_time(database, 890)
        session = session.refreshed()
        assert session.put("/user", json={"phone": PHONE}).status_code == 200
        self.pass_time(database, 10)
        assert_error(session.put("/user", json={"phone": OTHER_PHONE}), *NEEDED, details=A_SENTENCE)
        assert change(session).status_code == 200

    @cases(
        ("body", "code"),
        [
            ({}, "validation_failed"),
            ({"nonce": None, "current_password": None}, "validation_failed"),
            ({"nonce": "000000x"}, "reauthentication_not_valid"),
            ({"current_password": "Wrong-Horse-1"}, "current_password_invalid"),
        ],
    )
    def test_wrong_credential_records_nothing_in_any_session(self, session, alice, database, body, code):
        for each in (session, alice.open_session()):
            assert_error(each.post("/reauthenticate", json=body), 400, code, details=A_SENTENCE)
        assert database.count("sessions", "reauthenticated_at IS NOT NULL") == 0


class TestFactor:
    """The password and the mailbox prove nothing of a user with a factor, in a session at `aal2`."""

    @pytest.fixture
    def owner(self, alice, database):
        """The app of Alice, and a session that has used it 16 minutes ago. She has just signed in."""
        app, session = set_up(alice.open_session())
        session.post("/factors/recovery-codes")
        self.pass_time(database, 901)
        return app, session

    def pass_time(self, database, seconds):
        database.run(
            "UPDATE sessions SET factor_proved_at = factor_proved_at - make_interval(secs => %(seconds)s)",
            seconds=seconds,
        )
        database.run("UPDATE factors SET last_step = NULL")

    @pytest.mark.parametrize("proof", ["factor_code", "app", "recovery code", "passkey"])
    def test_each_use_of_a_factor_is_a_proof_for_15_minutes(self, owner, alice, database, proof):
        app, session = owner
        if proof == "passkey":
            session = raised(session, app)
            authenticator = passkeys.register(session)[0]
            self.pass_time(database, 901)
            body = passkeys.assertion(session.client, authenticator)
            session = session_of(session.client, session.post("/reauthenticate", json=body))
        elif proof == "factor_code":
            assert_ok(session.post("/reauthenticate", json={"factor_code": app.code()}), DONE)
        elif proof == "app":
            session = raised(session, app)
        else:
            raised(session, app)
            code = session.post("/factors/recovery-codes/regenerate").json["codes"][0]
            self.pass_time(database, 901)
            session = session_of(
                session.client, session.post("/factors/recovery-codes/verify", json={"code": code})
            )
        self.pass_time(database, 890)
        assert session.put("/user", json={"phone": PHONE}).status_code == 200
        self.pass_time(database, 11)
        assert_error(session.put("/user", json={"password": NEW_PASSWORD}), *NEEDED, details=FACTOR_NEEDED)

    def test_factor_used_in_another_session_is_no_proof(self, owner, alice):
        app, session = owner
        raised(alice.sign_in(), app)
        assert_error(session.put("/user", json={"password": NEW_PASSWORD}), *NEEDED, details=FACTOR_NEEDED)
