"""The pages of the account: each item, and the proof that sensitive ones require."""

import json

import pytest

from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.cast import PASSWORD
from tests.support.links import SITE
from tests.support.pages import Visitor


@pytest.fixture
def visitor(app, alice) -> Visitor:
    """Alice's browser, in which she is signed in."""
    return Visitor(app).with_session_of(alice)


@pytest.fixture
def later_visitor(visitor, database) -> Visitor:
    """The same, twenty minutes later."""
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
    return visitor


def test_account_shows_email_password_and_devices(app, alice):
    page = Visitor(app).signed_in_as(alice).visit("/account")
    assert page.status == 200
    assert alice.email in page.text
    assert "Firefox on Linux" in page.text
    assert "This device" in page.text


def test_account_is_for_signed_in_browsers_only(app):
    for path in ("/account", "/account/data", "/account/email", "/account/delete", "/new-password"):
        assert Visitor(app).visit(path).url == f"{SITE}/sign-in?error_code=session_expired"


def test_access_token_does_not_open_the_account(client, alice):
    response = client.get("/account", headers=alice.open_session().authorization)
    assert_error(response, 401, "session_not_found", "Your session has ended. Please sign in again.")


def test_name_is_saved_and_shown(visitor):
    visitor.visit("/account/name")
    page = visitor.submit(name="Alice <Liddell>")
    assert page.url == f"{SITE}/account?done=name"
    assert "Alice &lt;Liddell&gt;" in page.text
    assert "Your name is saved." in page.text


def test_unknown_outcome_is_not_shown(visitor):
    assert 'class="success"' not in visitor.visit("/account?done=call-555-0100").text


def test_email_is_changed_by_the_code_and_the_session_stays(visitor, outbox, alice, database):
    visitor.visit("/account/email")
    visitor.submit(email="new@example.com")
    sent = outbox.last("new@example.com")
    assert "This code is wrong" in visitor.submit(code=sent.wrong_code).text
    assert visitor.submit(code=sent.code).url == f"{SITE}/account?done=email"
    assert "new@example.com" in visitor.page.text
    assert database.value("SELECT email FROM users") == "new@example.com"


def test_taken_email_is_refused(visitor, bob):
    visitor.visit("/account/email")
    assert "This email belongs to another account." in visitor.submit(email=bob.email).text


def test_phone_is_added_by_the_code(visitor, outbox, database):
    visitor.visit("/account/phone")
    assert "Enter a phone number" in visitor.submit(phone="12").text
    visitor.submit(phone="+49 170 1234567")
    visitor.submit(code=outbox.last("+491701234567").code)
    assert visitor.page.url == f"{SITE}/account?done=phone"


class TestProof:
    @pytest.mark.parametrize(
        ("path", "next_page"),
        [
            ("/account/email", "email"),
            ("/account/phone", "phone"),
            ("/account/delete", "delete"),
            ("/new-password", "new-password"),
        ],
    )
    def test_sensitive_pages_ask_for_it_and_go_on(self, later_visitor, path, next_page):
        assert later_visitor.visit(path).url == f"{SITE}/account/confirm?next={next_page}"
        assert "That is not your password." in later_visitor.submit(current_password="Wrong-Horse-1").text
        assert later_visitor.submit(current_password=PASSWORD).url == f"{SITE}{path}"

    def test_code_is_a_proof_too(self, later_visitor, alice, outbox):
        later_visitor.visit("/account/email")
        later_visitor.submit(number=1)
        sent = outbox.last(alice.email, "reauthentication")
        assert "This code is wrong" in later_visitor.submit(nonce=sent.wrong_code).text
        assert later_visitor.submit(nonce=sent.code).url == f"{SITE}/account/email"

    def test_form_that_was_open_for_too_long_asks_for_it(self, visitor, database):
        visitor.visit("/account/email")
        database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
        assert visitor.submit(email="new@example.com").url == f"{SITE}/account/confirm?next=email"
        assert database.value("SELECT new_email FROM users") is None

    @pytest.mark.parametrize(
        ("path", "fields", "said"),
        [
            ("email", {"email": "new@example.com"}, "new@example.com"),
            ("two-step", {}, "<svg"),
            ("delete", {"confirmed": "yes"}, "Your account is deleted"),
        ],
    )
    def test_proof_counts_for_five_minutes_where_each_change_asks_for_one(
        self, make_app, alice, database, path, fields, said
    ):
        visitor = Visitor(make_app(AUTH_REAUTHENTICATION_AGE="always")).signed_in_as(alice)
        visitor.visit(f"/account/{path}")
        database.run("UPDATE sessions SET created_at = created_at - interval '6 minutes'")
        assert visitor.submit(**fields).url == f"{SITE}/account/confirm?next={path}"
        assert visitor.submit(current_password=PASSWORD).url == f"{SITE}/account/{path}"
        assert said not in visitor.page.text
        assert said in visitor.submit(**fields).text

    def test_other_targets_lead_to_the_account(self, visitor):
        visitor.visit("/account/confirm?next=https://evil.example")
        assert visitor.submit(current_password=PASSWORD).url == f"{SITE}/account"


class TestDevices:
    def test_another_session_is_ended(self, visitor, alice):
        laptop = alice.open_session()
        page = visitor.visit("/account")
        visitor.submit(
            number=next(n for n, form in enumerate(page.forms) if form.fields.get("id") == laptop.id)
        )
        assert visitor.page.url.startswith(f"{SITE}/account?done=device")
        assert laptop.get("/user").json["error_code"] == "session_not_found"

    def test_all_other_sessions_are_ended(self, visitor, alice):
        laptop = alice.open_session()
        visitor.visit("/account")
        visitor.send("/account/sessions/end-others")
        assert visitor.page.url.startswith(f"{SITE}/account?done=devices")
        assert laptop.get("/user").status_code == 401

    def test_session_of_another_user_is_not_ended(self, visitor, bob):
        session = bob.open_session()
        visitor.visit("/account")
        visitor.send("/account/sessions/end", id=session.id)
        assert session.get("/user").status_code == 200

    def test_signing_out_forgets_the_browser(self, visitor):
        visitor.visit("/account")
        assert "You are signed out" in visitor.submit().text
        assert visitor.session_cookie is None
        assert visitor.visit("/account").url.startswith(f"{SITE}/sign-in")


class TestData:
    def test_download_has_user_and_sessions_without_secrets(self, visitor, alice):
        page = visitor.visit("/account/data")
        assert page.headers["Content-Disposition"] == 'attachment; filename="account.json"'
        data = json.loads(page.text)
        assert data["user"]["email"] == alice.email
        assert len(data["sessions"]) == 1
        assert "password" not in page.text.replace('"method": "password"', "")

    def test_deletion_needs_a_tick_and_is_for_good(self, visitor, database):
        visitor.visit("/account/delete")
        assert "Tick the box" in visitor.submit().text
        assert "Your account is deleted" in visitor.submit(confirmed="yes").text
        assert database.count("users") == 0
        assert visitor.session_cookie is None


class TestForms:
    @cases(
        "path",
        ["/account/name", "/account/email", "/account/delete", "/account/sessions/end-others", "/sign-out"],
    )
    def test_form_of_another_site_changes_nothing(self, visitor, database, path):
        before = database.everything()
        visitor.be_at("https://evil.example/")
        fields = {"name": "x", "email": "x@example.com", "confirmed": "yes"}
        assert visitor.post(f"{SITE}{path}", fields).status in (200, 403)
        assert database.everything() == before

    @pytest.mark.parametrize(
        ("site", "is_kept"), [("same-site", False), (None, False), ("same-origin", True)]
    )
    def test_form_with_a_wrong_token_comes_back_without_the_values_of_other_sites(
        self, app, visitor, site, is_kept
    ):
        headers = {"Cookie": f"latchkey={visitor.session_cookie.value}", "Accept": "text/html"}
        headers |= {"Sec-Fetch-Site": site} if site else {}
        form = {"name": "Mallory", "form_token": "old"}
        page = app.test_client(use_cookies=False).post("/account/name", data=form, headers=headers)
        assert (page.status_code, "Mallory" in page.text) == (403, is_kept)

    @pytest.mark.parametrize("path", ["/sign-out", "/account/sessions/end-others", "/account/two-step"])
    def test_request_without_a_form_changes_nothing(self, app, visitor, database, path):
        before, cookie = database.everything(), f"latchkey={visitor.session_cookie.value}"
        # As fetch() of a sibling host sends it: the cookie is not Strict, and there is no preflight.
        headers = {"Cookie": cookie, "Sec-Fetch-Site": "same-site"}
        assert app.test_client(use_cookies=False).post(path, headers=headers).status_code == 403
        assert database.everything() == before
