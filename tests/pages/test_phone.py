"""Signing in, signing up and recovering by phone on the pages, without a browser."""

import pytest

from tests.support.cast import PASSWORD
from tests.support.links import OTHER_PHONE, PHONE, SITE, later
from tests.support.pages import Visitor

TYPED = "+49 (170) 123-4567"


@pytest.fixture
def visitor(app) -> Visitor:
    return Visitor(app)


@pytest.fixture
def dave(client, outbox) -> str:
    """The confirmed phone of a user with a password and without an email."""
    client.post("/signup", json={"phone": PHONE, "password": PASSWORD})
    client.post("/verify", json={"type": "sms", "phone": PHONE, "token": outbox.last(PHONE).code})
    return PHONE


class TestSignIn:
    def test_one_field_takes_email_and_phone(self, visitor, app, dave, alice):
        assert "Email or phone" in visitor.visit("/sign-in").text
        assert visitor.submit(email=TYPED, password=PASSWORD).url == f"{SITE}/account"
        assert Visitor(app).signed_in_as(alice).session_cookie

    def test_wrong_password_and_unknown_number_show_the_same_page(self, visitor, dave):
        pages = []
        for phone in (PHONE, OTHER_PHONE):
            visitor.visit("/sign-in")
            pages.append(visitor.submit(email=phone, password="Wrong-Horse-1"))
        assert pages[0].status == pages[1].status == 403
        assert "That phone number and password don" in pages[0].text
        assert pages[0].text.replace(PHONE, OTHER_PHONE) == pages[1].text

    def test_number_without_its_country_is_refused_with_an_example(self, visitor):
        visitor.visit("/sign-in")
        page = visitor.submit(email="0170 1234567", password=PASSWORD)
        assert page.status == 400
        assert "with its country code" in page.text
        assert page.text.count('aria-invalid="true"') == 1

    def test_code_by_sms_signs_in(self, visitor, dave, outbox):
        visitor.visit("/sign-in")
        page = visitor.send("/sign-in/code", email=TYPED)
        assert ("Check your phone" in page.text, "…567" in page.text) == (True, True)
        sent = outbox.last(PHONE, "sms")
        assert "This code is wrong" in visitor.submit(code=sent.wrong_code).text
        assert visitor.submit(code=sent.code).url == f"{SITE}/account"

    def test_unknown_number_gets_the_same_page_no_sms_and_no_user(self, visitor, dave, outbox, database):
        sent, texts = len(outbox.sent()), []
        for phone in (PHONE, OTHER_PHONE):
            visitor.visit("/sign-in")
            texts.append(visitor.send("/sign-in/code", email=phone).text)
        assert texts[0].replace(PHONE, OTHER_PHONE).replace("…567", "…321") == texts[1]
        assert len(outbox.sent()) == sent + 1
        assert database.count("users") == 1


class TestSignUp:
    def test_code_of_the_sms_confirms_the_number_and_signs_in(self, visitor, outbox, database):
        visitor.visit("/sign-up")
        assert "confirm your number" in visitor.submit(email=TYPED, password=PASSWORD).text
        sent = outbox.last(PHONE, "signup")
        assert visitor.submit(code=sent.code).url == f"{SITE}/account"
        assert database.value("SELECT phone FROM users WHERE phone_confirmed_at IS NOT NULL") == PHONE

    def test_taken_number_gets_the_same_page(self, visitor, dave):
        pages = []
        for phone in (PHONE, OTHER_PHONE):
            visitor.visit("/sign-up")
            pages.append(visitor.submit(email=phone, password=PASSWORD))
        assert pages[0].status == pages[1].status == 200
        assert pages[0].text.replace(PHONE, OTHER_PHONE).replace("…567", "…321") == pages[1].text

    def test_unconfirmed_number_is_asked_for_its_code_or_another_one(self, visitor, outbox, database):
        visitor.visit("/sign-up")
        visitor.submit(email=PHONE, password=PASSWORD)
        visitor.visit("/sign-in")
        page = visitor.submit(email=TYPED, password=PASSWORD)
        assert (page.status, "Confirm your phone number first" in page.text) == (403, True)
        later(database, mins=2)
        visitor.press("sign-up/code")
        assert [message.kind for message in outbox.sent(PHONE)] == ["signup", "signup"]
        code = outbox.last(PHONE).code
        assert visitor.press("sign-up/verify", code=code).url == f"{SITE}/account"

    def test_password_that_is_the_number_is_refused(self, visitor):
        visitor.visit("/sign-up")
        assert visitor.submit(email=PHONE, password=PHONE).status == 422

    def test_country_without_sms_is_refused_as_a_new_number(self, make_app, alice, database):
        visitor = Visitor(make_app(AUTH_SMS_COUNTRIES="+1")).signed_in_as(alice)
        page = visitor.send("/account/phone", phone=PHONE)
        assert (page.status, "send an SMS to this country" in page.text) == (400, True)
        assert database.count("outbox", "channel = 'sms'") == 0

    def test_country_without_sms_is_reported(self, make_app):
        visitor = Visitor(make_app(AUTH_SMS_COUNTRIES="+1"))
        visitor.visit("/sign-up")
        page = visitor.submit(email=PHONE, password=PASSWORD)
        assert "send an SMS to this country." in page.text


class TestForgottenPassword:
    def test_code_of_the_sms_leads_to_a_new_password(self, visitor, dave, outbox, client):
        visitor.visit("/forgot-password")
        visitor.submit(email=TYPED)
        assert visitor.submit(code=outbox.last(PHONE, "sms").code).url == f"{SITE}/new-password"
        assert visitor.submit(password="Fresh-Horse-2").url == f"{SITE}/account?done=password"
        body = {"phone": PHONE, "password": "Fresh-Horse-2"}
        assert client.post("/token?grant_type=password", json=body).status_code == 200

    def test_expired_code_is_replaced_by_one_button(self, visitor, dave, outbox, database):
        visitor.visit("/forgot-password")
        visitor.submit(email=PHONE)
        later(database, mins=11)
        assert "no longer works" in visitor.submit(code=outbox.last(PHONE, "sms").code).text
        visitor.press("forgot-password")
        assert visitor.submit(code=outbox.last(PHONE, "sms").code).url == f"{SITE}/new-password"


@pytest.mark.parametrize(
    ("settings", "label", "said"),
    [
        ({"AUTH_SMS_PROVIDER": "none"}, ">Email<", "Enter an email address"),
        ({"AUTH_EMAIL_ENABLED": "false"}, ">Phone<", "Enter a phone number"),
    ],
)
def test_field_names_what_can_sign_in(make_app, settings, label, said):
    visitor = Visitor(make_app(**settings))
    for path in ("/sign-in", "/sign-up", "/forgot-password"):
        assert label in visitor.visit(path).text
        assert said in visitor.submit(email="12", password=PASSWORD).text


def test_service_without_addresses_asks_for_none(make_app):
    visitor = Visitor(make_app(AUTH_EMAIL_ENABLED="false", AUTH_SMS_PROVIDER="none"))
    page = visitor.visit("/sign-in")
    assert "Sign in with a passkey" in page.text
    assert 'name="email"' not in page.text
    assert visitor.visit("/sign-up").url == f"{SITE}/sign-in"
