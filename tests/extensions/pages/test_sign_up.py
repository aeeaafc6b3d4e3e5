"""The pages for signing up, for codes by mail or SMS and for forgotten passwords, without a browser."""

import json

import pytest

from tests.support.cases import cases
from tests.support.links import PHONE, SITE, later
from tests.support.pages import Visitor, unsigned, words
from tests.support.users import DAVE, PASSWORD, sign_in

NEW_PASSWORD = "Fresh-Horse-2"
TYPED_PHONE = "+49 (170) 123-4567"
PASSWORD_REMOVED = "For your security we didn’t keep the password from your sign\u2011up. Choose one now, or keep signing in with codes."


@pytest.fixture
def dave(client, service_role) -> None:
    """A user with a password, an email and a phone."""
    body = {"email": DAVE, "phone": PHONE, "email_confirm": True, "phone_confirm": True}
    response = client.post("/admin/users", json=body | {"password": PASSWORD}, headers=service_role)
    assert response.status_code in (200, 201), response.text


class TestSignUp:
    def test_easy_password_is_named_while_it_is_chosen_and_refused_and_leaves_no_trace(
        self, visitor, database, capfd
    ):
        email, before = "dave-1@example.com", database.everything("users", "one_time_tokens", "outbox")
        for password, sentence in (
            (
                "Passw0rd-1",
                "This password is too common. Adding digits or symbols doesn’t help. Choose another one.",
            ),
            ("Summer-2026", "Seasons, months and weekdays are easy to guess, even with numbers and symbols."),
            ("Dave-1@Example.com", "Your own email or phone number is easy to guess."),
            (PASSWORD, None),
            # The list of rules shows the missing ones.
            ("Kx-9", None),
        ):
            visitor.visit("/sign-up")
            answer = json.loads(visitor.send("/new-password/common", password=password, email=email).text)
            assert (answer["problem"] or "").startswith(sentence or "")
            assert bool(answer["problem"]) is bool(sentence)
            if sentence:
                visitor.visit("/sign-up")
                page = visitor.submit(email=email, password=password)
                assert (page.status, sentence in words(page)) == (422, True)
            assert password not in capfd.readouterr().err
        assert visitor.post(f"{SITE}/new-password/common", {"password": PASSWORD}).status == 403
        assert database.everything("users", "one_time_tokens", "outbox") == before

    @cases(
        ("setting", "path", "status"), [("DISABLE_SIGNUP", "/sign-up", 403), ("AUTOCONFIRM", "/account", 200)]
    )
    def test_disabled_sign_up_says_so_and_autoconfirm_sign_in_at_once(self, make_app, setting, path, status):
        visitor = Visitor(make_app(**{f"AUTH_{setting}": "true"}))
        assert ("Create an account" in visitor.visit("/sign-in").text) is (status == 200)
        visitor.visit("/sign-up")
        page = visitor.submit(email=DAVE, password=PASSWORD)
        assert (page.url, page.status) == (f"{SITE}{path}", status)


class TestTypedAddress:
    def test_code_page_leads_back_to_correct_the_address(self, visitor):
        visitor.visit("/sign-in")
        visitor.press("sign-in/code", email="dvae@example.com")
        assert ">dvae@example.com</bdi>" in visitor.page.text
        form = visitor.visit(visitor.link("Change") or "")
        assert form.url.partition("?")[0] == f"{SITE}/sign-in"
        assert 'value="dvae@example.com"' in form.text

    def test_forgot_password_keeps_the_address_and_no_url_has_it(self, visitor):
        visitor.visit(f"/sign-in?redirect_to={SITE}/start")
        page = visitor.press("sign-in/address", email=DAVE, password=PASSWORD)
        assert ("Forgot your password?" in page.text, f'value="{DAVE}"' in page.text) == (True, True)
        assert (PASSWORD in page.text, page.forms[0].fields["redirect_to"]) == (False, f"{SITE}/start")
        assert "Check your inbox" in visitor.press("forgot-password").text
        assert DAVE not in str(visitor.requests)


def test_code_of_a_phone_leads_to_a_new_one_once(app, visitor, dave, outbox, client, database):
    visitor.visit("/forgot-password")
    visitor.submit(email=TYPED_PHONE)
    later(database, mins=70)
    late = visitor.submit(code=outbox.last(PHONE).code)
    assert unsigned(late) == f"{SITE}/forgot-password?error_code=insufficient_permissions"
    visitor.press("forgot-password", email=TYPED_PHONE)
    code = outbox.last(PHONE).code
    assert visitor.submit(code=code).url == f"{SITE}/new-password"
    other = Visitor(app)
    other.visit("/forgot-password")
    other.submit(email="nobody@example.com")
    assert "This code is wrong" in other.submit(email=TYPED_PHONE, code=code).text
    assert "This is your current password." in visitor.submit(password=PASSWORD).text
    assert unsigned(visitor.submit(password=NEW_PASSWORD)) == f"{SITE}/account?done=password"
    assert sign_in(client, DAVE, NEW_PASSWORD).status_code == 200


@pytest.mark.parametrize("way", ["sign-in/code", "forgot-password"])
def test_page_says_that_another_proof_has_removed_the_password(visitor, outbox, way):
    visitor.visit("/sign-up")
    visitor.submit(email=DAVE, password=PASSWORD)
    visitor.visit("/sign-in" if way == "sign-in/code" else "/forgot-password")
    visitor.press(way, email=DAVE)
    page = visitor.submit(code=outbox.last(DAVE).code)
    assert unsigned(page) == f"{SITE}/new-password?done=password_removed"
    assert PASSWORD_REMOVED in words(page)
    assert ("Continue without a password" in page.text, "Not now" in page.text) == (True, False)
    # Later, or for another browser, the page says nothing of a sign-up.
    assert PASSWORD_REMOVED not in words(visitor.visit("/new-password"))
