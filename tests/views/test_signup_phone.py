"""POST /signup by phone: registration by phone and password, confirmed by a code."""

import pytest

from tests.support.answers import (
    A_SENTENCE,
    A_TIMESTAMP,
    A_UUID,
    assert_error,
    assert_ok,
    identity,
    token_response,
    user,
)
from tests.support.cases import cases
from tests.support.cast import PASSWORD, session_of
from tests.support.links import ON_ITS_WAY, OTHER_PHONE, PHONE, assert_signed_in, later, type_in

NEW = "Another-Horse-1"
DAVE = {"phone": PHONE, "password": PASSWORD}


def signed_up(phone=PHONE, **changes):
    """Return the expected user object of an unconfirmed sign-up by phone."""
    waiting = {
        "email": None,
        "email_confirmed_at": None,
        "phone": phone,
        "confirmed_at": None,
        "confirmation_sent_at": A_TIMESTAMP,
        "app_metadata": {},
        "identities": [identity("phone", phone)],
    }
    return user("") | waiting | changes


def confirmed(phone=PHONE, **changes):
    """Return the expected user object after confirmation and sign-in."""
    signed_in = {
        "phone_confirmed_at": A_TIMESTAMP,
        "confirmed_at": A_TIMESTAMP,
        "last_sign_in_at": A_TIMESTAMP,
        "app_metadata": {"provider": "phone", "providers": ["phone"]},
        "identities": [identity("phone", phone, last_sign_in_at=A_TIMESTAMP)],
    }
    return signed_up(phone) | signed_in | changes


def sign_in(client, phone=PHONE, password=PASSWORD):
    return client.post("/token?grant_type=password", json={"phone": phone, "password": password})


def test_phone_sign_up_creates_an_unconfirmed_user(client, service_role, database):
    response = client.post("/signup", json=DAVE | {"data": {"name": "Dave"}})
    assert_ok(response, signed_up(user_metadata={"name": "Dave"}), 201)
    kept = client.get(f"/admin/users/{response.json['id']}", headers=service_role)
    assert_ok(kept, response.json | {"app_metadata": {"provider": "phone", "providers": ["phone"]}})
    assert database.one("SELECT made_by, phone_proved FROM users") == ("signup", False)


def test_phone_sign_up_sends_a_code_without_a_link(client, outbox):
    client.post("/signup", json=DAVE)
    (message,) = outbox.sent()
    assert (message.kind, message.channel, message.to, message.token, message.lifetime) == (
        "signup",
        "sms",
        PHONE,
        None,
        600,
    )
    assert len(message.code) == 6


def test_phone_sign_up_does_not_sign_in(client, database):
    assert "access_token" not in client.post("/signup", json=DAVE).json
    assert database.count("sessions") == 0
    assert_error(sign_in(client), 403, "phone_not_confirmed")


def test_code_confirms_the_phone_and_signs_in(client, outbox):
    made = client.post("/signup", json=DAVE).json
    assert_signed_in(client, type_in(client, "sms", PHONE, outbox.last().code), confirmed(id=made["id"]))


def test_password_signs_in_after_confirmation(client, outbox):
    client.post("/signup", json=DAVE)
    type_in(client, "sms", PHONE, outbox.last().code)
    assert sign_in(client).status_code == 200


@pytest.mark.parametrize(
    "type", ["signup", "magiclink", "email", "phone_change", "invite", "recovery", "email_change"]
)
def test_sign_up_code_is_refused_for_other_types(client, outbox, database, type):
    client.post("/signup", json=DAVE)
    assert_error(type_in(client, type, PHONE, outbox.last().code), 403, "otp_expired")
    assert database.value("SELECT phone_confirmed_at FROM users") is None
    assert type_in(client, "sms", PHONE, outbox.last().code).status_code == 200


def test_code_expires_after_ten_minutes(client, outbox, database):
    client.post("/signup", json=DAVE)
    later(database, secs=600)
    assert_error(type_in(client, "sms", PHONE, outbox.last().code), 403, "otp_expired")
    assert database.value("SELECT phone_confirmed_at FROM users") is None


@pytest.mark.parametrize("spelling", ["+49 170 1234567", "+49 (170) 123-45.67"])
def test_spellings_of_a_number_have_one_user(client, outbox, database, spelling):
    assert_ok(client.post("/signup", json=DAVE | {"phone": spelling}), signed_up(), 201)
    assert type_in(client, "sms", spelling, outbox.last(PHONE).code).status_code == 200
    assert sign_in(client, spelling).status_code == 200


def test_response_contains_no_email(client, database):
    assert client.post("/signup", json=DAVE).json["email"] is None
    assert database.all("SELECT provider, identity_data FROM identities") == [
        ("phone", {"sub": database.value("SELECT id::text FROM users"), "phone": PHONE})
    ]


class TestTakenNumber:
    @pytest.fixture
    def phil(self, client, service_role):
        body = {
            "email": "phil@example.com",
            "phone": PHONE,
            "phone_confirm": True,
            "email_confirm": True,
            "password": PASSWORD,
        }
        return client.post("/admin/users", json=body, headers=service_role).json

    def test_taken_number_gets_the_same_response_as_a_free_one_without_effect(
        self, client, phil, outbox, database
    ):
        before = database.everything("users", "identities", "sessions", "one_time_tokens")
        taken = client.post("/signup", json=DAVE | {"password": NEW, "data": {"name": "Mallory"}})
        assert_ok(taken, signed_up(user_metadata={"name": "Mallory"}), 201)
        assert taken.json["id"] != phil["id"]
        assert database.everything("users", "identities", "sessions", "one_time_tokens") == before
        assert (outbox.sent(), outbox.suppressed()) == ([], 1)
        free = client.post("/signup", json=DAVE | {"phone": OTHER_PHONE})
        assert list(free.json) == list(taken.json)
        assert_error(sign_in(client, password=NEW), 401, "invalid_credentials")

    def test_taken_number_costs_the_same_statements_and_hashes_as_a_free_one(
        self, client, phil, parts, hashes
    ):
        work = []
        for phone in (PHONE, OTHER_PHONE):
            statements, before = parts.db.statements_run, hashes.count
            client.post("/signup", json=DAVE | {"phone": phone})
            work.append((parts.db.statements_run - statements, hashes.count - before))
        assert work[0] == work[1]
        assert work[0][1] == 1

    @pytest.mark.parametrize("setting", ["AUTH_AUTOCONFIRM=true", "AUTH_PHONE_CONFIRM_REQUIRED=false"])
    def test_taken_number_is_409_when_settings_reveal_it_anyway(self, make_app, phil, database, setting):
        client = make_app(**dict([setting.split("=")])).test_client()
        before = database.everything("users", "identities", "sessions", "one_time_tokens")
        assert_error(client.post("/signup", json=DAVE), 409, "user_already_exists")
        assert database.everything("users", "identities", "sessions", "one_time_tokens") == before

    def test_pending_change_to_a_number_does_not_reserve_it(self, client, alice, outbox):
        alice.sign_in().put("/user", json={"phone": PHONE})
        client.post("/signup", json=DAVE)
        assert type_in(client, "sms", PHONE, outbox.last(kind="signup").code).status_code == 200
        phone_change = outbox.last(kind="phone_change").code
        assert_error(type_in(client, "phone_change", PHONE, phone_change), 403, "otp_expired")


class TestSquatting:
    """Mallory signs up with Dave's number, and Dave requests a code to sign in."""

    def test_messages_identify_the_code_that_confirms_the_sign_up(self, client, outbox):
        client.post("/signup", json=DAVE)
        client.post("/otp", json={"phone": PHONE})
        client.post("/resend", json={"type": "sms", "phone": PHONE})
        assert [message.kind for message in outbox.sent(PHONE)] == ["signup", "sms", "signup"]

    def test_sign_in_code_removes_the_password_of_the_sign_up(self, client, outbox):
        client.post("/signup", json=DAVE)
        client.post("/resend", json={"type": "sms", "phone": PHONE})
        client.post("/otp", json={"phone": PHONE})
        assert type_in(client, "sms", PHONE, outbox.last(PHONE).code).status_code == 200
        assert_error(sign_in(client), 401, "invalid_credentials")


class TestRepeatedSignUp:
    def test_newest_code_confirms_its_own_password_and_data(self, client, outbox, database):
        first = client.post("/signup", json=DAVE | {"data": {"name": "Mallory"}}).json
        old = outbox.last().code
        client.post("/signup", json=DAVE | {"password": NEW})
        assert_error(type_in(client, "sms", PHONE, old), 403, "otp_expired")
        assert_signed_in(client, type_in(client, "sms", PHONE, outbox.last().code), confirmed(id=first["id"]))
        assert_error(sign_in(client), 401, "invalid_credentials")
        assert sign_in(client, password=NEW).status_code == 200

    @pytest.mark.parametrize(
        "change",
        [
            "phone_confirmed_at = now()",
            "last_sign_in_at = now()",
            "email = 'x@example.com', email_confirmed_at = now()",
            "made_by = 'administrator'",
        ],
    )
    def test_used_sign_up_is_not_replaced(self, client, database, outbox, change):
        client.post("/signup", json=DAVE)
        database.run(f"UPDATE users SET {change}")
        before = database.everything("users", "identities", "one_time_tokens")
        assert_ok(client.post("/signup", json=DAVE | {"password": NEW}), signed_up(), 201)
        assert database.everything("users", "identities", "one_time_tokens") == before
        assert len(outbox.sent()) == 1

    def test_user_created_by_a_code_is_not_replaced(self, client, outbox, database):
        client.post("/otp", json={"phone": PHONE})
        before = database.everything("users", "identities", "one_time_tokens")
        assert_ok(client.post("/signup", json=DAVE), signed_up(), 201)
        assert database.everything("users", "identities", "one_time_tokens") == before
        type_in(client, "sms", PHONE, outbox.last().code)
        assert_error(sign_in(client), 401, "invalid_credentials")


class TestSettings:
    def test_autoconfirm_signs_in_at_once(self, make_app, outbox, database):
        client = make_app(AUTH_AUTOCONFIRM="true").test_client()
        response = client.post("/signup", json=DAVE)
        expected = confirmed(confirmation_sent_at=None)
        assert_ok(response, expected | {"app_metadata": {}} | token_response(expected), 201)
        assert session_of(client, sign_in(client)).get("/user").json["phone_confirmed_at"]
        assert database.value("SELECT phone_proved FROM users") is False
        assert outbox.sent() == []

    def test_unconfirmed_user_signs_in_when_confirmation_is_not_required(self, make_app, outbox):
        client = make_app(AUTH_PHONE_CONFIRM_REQUIRED="false").test_client()
        assert_ok(client.post("/signup", json=DAVE), signed_up(), 201)
        assert session_of(client, sign_in(client)).get("/user").json["phone_confirmed_at"] is None
        assert (
            type_in(client, "sms", PHONE, outbox.last().code).json["user"]["phone_confirmed_at"]
            == A_TIMESTAMP
        )

    def test_disabled_sign_up_is_refused(self, make_app, database):
        client = make_app(AUTH_DISABLE_SIGNUP="true").test_client()
        assert_error(client.post("/signup", json=DAVE), 403, "signup_disabled")
        assert (database.count("users"), database.count("outbox")) == (0, 0)

    def test_sign_up_by_phone_is_refused_when_phones_are_disabled(self, make_app, database):
        client = make_app(AUTH_PHONE_ENABLED="false").test_client()
        assert_error(client.post("/signup", json=DAVE), 400, "phone_provider_disabled")
        assert (database.count("users"), database.count("outbox")) == (0, 0)


@cases(
    ("body", "status", "error_code"),
    [
        ({"phone": PHONE}, 400, "validation_failed"),
        ({"password": PASSWORD}, 400, "validation_failed"),
        (DAVE | {"email": "dave@example.com"}, 400, "validation_failed"),
        (DAVE | {"phone": "0170 1234567"}, 400, "validation_failed"),
        (DAVE | {"phone": 491701234567}, 400, "validation_failed"),
        (DAVE | {"phone": "+49170123456x"}, 400, "validation_failed"),
        (DAVE | {"phone": "+49\n1701234567"}, 400, "validation_failed"),
        (DAVE | {"data": "x"}, 400, "validation_failed"),
    ],
)
def test_invalid_body_is_refused(client, database, body, status, error_code):
    assert_error(client.post("/signup", json=body), status, error_code, details=A_SENTENCE)
    assert (database.count("users"), database.count("outbox")) == (0, 0)


@pytest.mark.parametrize("password", ["short", "alllowercase1!", PHONE])
def test_weak_password_is_422(client, database, password):
    response = client.post("/signup", json=DAVE | {"password": password})
    assert (response.status_code, response.json["error_code"]) == (422, "weak_password")
    assert (database.count("users"), database.count("outbox")) == (0, 0)


def test_phone_user_can_add_an_email_later(client, outbox):
    client.post("/signup", json=DAVE)
    session = session_of(client, type_in(client, "sms", PHONE, outbox.last().code))
    assert session.put("/user", json={"email": "dave@example.com"}).json["new_email"] == "dave@example.com"
    response = type_in(client, "email_change", "dave@example.com", outbox.last("dave@example.com").code)
    both = [identity("phone", PHONE, last_sign_in_at=A_TIMESTAMP), identity("email", "dave@example.com")]
    expected = confirmed(email="dave@example.com", email_confirmed_at=A_TIMESTAMP, identities=both)
    assert_signed_in(
        client, response, expected | {"app_metadata": {"provider": "phone", "providers": ["phone", "email"]}}
    )
    notices = [("email_change", "dave@example.com"), ("email_changed", PHONE)]
    assert outbox.kinds() == [("signup", PHONE), *notices]


def test_resend_needs_no_password(client, outbox):
    client.post("/signup", json=DAVE)
    assert_ok(client.post("/resend", json={"type": "sms", "phone": PHONE}), ON_ITS_WAY)
    assert type_in(client, "sms", PHONE, outbox.last().code).json["user"]["id"] == A_UUID
