"""POST /otp by phone: a code to sign in by SMS. test_magiclink.py tests POST /otp by mail."""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.links import ON_ITS_WAY, PHONE, WITH_CHALLENGE, assert_signed_in, later, type_in
from tests.support.users import PASSWORD


def phone_user(phone, **changes):
    expected = {
        "email": None,
        "email_confirmed_at": None,
        "phone": phone,
        "phone_confirmed_at": A_TIMESTAMP,
        "confirmed_at": A_TIMESTAMP,
        "last_sign_in_at": A_TIMESTAMP,
        "app_metadata": {"provider": "phone", "providers": ["phone"]},
        "identities": [identity("phone", phone, last_sign_in_at=A_TIMESTAMP)],
    }
    return user("") | expected | changes


@pytest.fixture
def phil_id(client, service_role):
    """The id of a user with a confirmed phone."""
    body = {"email": "phil@example.com", "phone": PHONE, "phone_confirm": True, "email_confirm": True}
    return client.post("/admin/users", json=body, headers=service_role).json["id"]


@pytest.fixture
def ask(client, outbox):
    def ask(phone=PHONE, **body):
        assert_ok(client.post("/otp", json={"phone": phone} | body), ON_ITS_WAY)
        return outbox.last(kind="sms")

    return ask


class TestCode:
    @pytest.mark.parametrize("spelling", [PHONE, "+49-170-1234567", "+49 (170) 123.45.67", f" {PHONE}"])
    def test_known_number_is_sent_a_code_that_signs_in(self, client, phil_id, ask, outbox, spelling):
        message = ask(spelling)
        assert outbox.sent() == [message]
        assert (message.channel, message.to, message.token, message.lifetime) == ("sms", PHONE, None, 600)
        assert (len(message.code), message.code.isdecimal()) == (6, True)
        identities = [
            identity("email", "phil@example.com"),
            identity("phone", PHONE, last_sign_in_at=A_TIMESTAMP),
        ]
        expected = {"email": "phil@example.com", "email_confirmed_at": A_TIMESTAMP, "identities": identities}
        expected["app_metadata"] = {"provider": "email", "providers": ["email", "phone"]}
        response = type_in(client, "sms", spelling.strip(), message.code)
        assert_signed_in(client, response, phone_user(PHONE, id=phil_id, **expected))

    # A code challenge is ignored, as there is no link.
    @pytest.mark.parametrize("body", [{}, WITH_CHALLENGE, {"create_user": True, "data": {"name": "Dave"}}])
    def test_unknown_number_is_sent_a_code_that_creates_a_user(self, client, ask, database, body):
        message = ask(**body)
        row = database.one("SELECT made_by, email, password_hash, phone_confirmed_at FROM users")
        assert row == ("message", None, None, None)
        expected = phone_user(PHONE, user_metadata=body.get("data", {}), confirmation_sent_at=A_TIMESTAMP)
        assert_signed_in(client, type_in(client, "sms", PHONE, message.code), expected)

    def test_only_the_newest_code_works_for_ten_minutes(self, client, phil_id, ask, database):
        first, second = ask(), ask()
        assert_error(type_in(client, "sms", PHONE, first.code), 403, "otp_expired")
        later(database, secs=540)
        assert type_in(client, "sms", PHONE, second.code).status_code == 200
        assert_error(type_in(client, "sms", PHONE, second.code), 403, "otp_expired")
        assert database.count("sessions") == 1


class TestRefusals:
    @pytest.fixture
    def assert_refused(self, alice, database):
        """Assert that each request for an SMS to a number is refused."""

        def assert_refused(client, phone, error_code, details):
            for path, body in (
                ("/otp", {}),
                ("/resend", {"type": "sms"}),
                ("/signup", {"password": PASSWORD}),
            ):
                response = client.post(path, json={"phone": phone} | body)
                assert_error(response, 400, error_code, details=details)
            change = alice.sign_in(client=client).put("/user", json={"phone": phone})
            assert_error(change, 400, error_code, details=details)
            assert database.count("outbox") == 0

        return assert_refused

    def test_number_of_no_country_gets_no_sms_and_its_user_signs_in_by_password(
        self, client, service_role, assert_refused
    ):
        body = {"phone": "+5215512345678", "password": PASSWORD}
        new_user = {"email": "phil@example.com", "phone_confirm": True} | body
        assert client.post("/admin/users", json=new_user, headers=service_role).status_code == 200
        details = "phone: must be as long as the numbers of its country"
        assert_refused(client, body["phone"], "validation_failed", details)
        assert client.post("/token?grant_type=password", json=body).status_code == 200

    @pytest.mark.parametrize(
        ("settings", "error_code", "details"),
        [
            ({"AUTH_PHONE_ENABLED": "false"}, "phone_provider_disabled", None),
            ({"AUTH_SMS_PROVIDER": "none"}, "phone_provider_disabled", None),
            ({"AUTH_BASE_URL": "https://auth.example.com"}, "phone_provider_disabled", None),
            ({"AUTH_SMS_COUNTRIES": "+1,+44"}, "validation_failed", "phone: must begin with +1, +44"),
        ],
        ids=str,
    )
    def test_request_is_refused_when_no_sms_can_be_sent(
        self, make_app, phil_id, assert_refused, settings, error_code, details
    ):
        client = make_app(**settings).test_client()
        is_by_country = "AUTH_SMS_COUNTRIES" in settings
        assert client.get("/settings").json["external_phone_enabled"] is is_by_country
        assert_refused(client, PHONE, error_code, details)
        log_in = client.post("/token?grant_type=password", json={"phone": PHONE, "password": PASSWORD})
        assert log_in.json["error_code"] == ("invalid_credentials" if is_by_country else error_code)
        response = client.post("/otp", json={"phone": "+447700900123"})
        assert response.status_code == (200 if is_by_country else 400)
