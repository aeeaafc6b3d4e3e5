"""The pages for signing up and for forgotten passwords, without a browser."""

from urllib.parse import urlencode

import pytest

from tests.support.cast import PASSWORD
from tests.support.links import CHALLENGE, SITE, later, path
from tests.support.pages import Visitor

DAVE = "dave@example.com"


@pytest.fixture
def visitor(app) -> Visitor:
    return Visitor(app)


class TestSignUp:
    def test_code_of_the_mail_confirms_the_address_and_signs_in(self, visitor, outbox, database):
        visitor.visit("/sign-up")
        assert "Check your inbox" in visitor.submit(email=DAVE, password=PASSWORD).text
        code = outbox.last(DAVE).code
        assert visitor.submit(code=f"{code[:3]} {code[3:]}").url == f"{SITE}/account"
        assert database.value("SELECT email_confirmed_at IS NOT NULL FROM users")

    def test_link_of_the_mail_signs_the_browser_in(self, visitor, outbox):
        visitor.visit("/sign-up")
        visitor.submit(email=DAVE, password=PASSWORD)
        sent = outbox.last(DAVE)
        visitor.visit(f"/verify?token={sent.token}&type=signup&redirect_to={sent.variables['redirect_to']}")
        assert visitor.submit().url == f"{SITE}/account"
        assert visitor.cookie("latchkey")

    def test_button_of_the_link_may_lead_to_the_application(self, make_app, outbox):
        """Browsers apply form-action to the redirects of a form too."""
        application = "https://app.example.com/signed-in"
        visitor = Visitor(make_app(AUTH_REDIRECT_ALLOW_LIST=application))
        visitor.visit(f"/sign-up?{urlencode({'redirect_to': application, 'code_challenge': CHALLENGE})}")
        visitor.submit(email=DAVE, password=PASSWORD)
        sent = outbox.last(DAVE)
        page = visitor.visit(path("signup", sent.token, redirect_to=sent.variables["redirect_to"]))
        assert (
            f"form-action 'self' {SITE} https://app.example.com;" in page.headers["Content-Security-Policy"]
        )
        assert visitor.submit().url.startswith(f"{application}?code=")

    def test_taken_address_gets_the_same_page(self, visitor, alice):
        pages = []
        for email in (alice.email, "anne@example.com"):
            visitor.visit("/sign-up")
            pages.append(visitor.submit(email=email, password=PASSWORD))
        assert pages[0].status == pages[1].status == 200
        assert pages[0].text.replace(alice.email, "anne@example.com") == pages[1].text

    @pytest.mark.parametrize(
        ("password", "said"),
        [
            ("Short-1", "at least 8 characters"),
            ("lowercase-only", "needs another kind"),
            ("P@ssw0rd1!", "easy to guess"),
        ],
    )
    def test_weak_password_is_refused_with_its_reason(self, visitor, password, said, database):
        visitor.visit("/sign-up")
        page = visitor.submit(email=DAVE, password=password)
        assert page.status == 422
        assert said in page.text
        assert database.count("users") == 0

    def test_wrong_and_expired_codes_explain_how_to_get_another(self, visitor, outbox, database):
        visitor.visit("/sign-up")
        visitor.submit(email=DAVE, password=PASSWORD)
        sent = outbox.last(DAVE)
        assert "This code is wrong" in visitor.submit(code=sent.wrong_code).text
        later(database, hours=2)
        assert "This code is wrong" in visitor.submit(code=sent.code).text
        assert "Check your inbox" in visitor.submit(number=1).text

    def test_disabled_sign_up_says_so(self, make_app):
        visitor = Visitor(make_app(AUTH_DISABLE_SIGNUP="true"))
        assert "Create an account" not in visitor.visit("/sign-in").text
        visitor.visit("/sign-up")
        assert visitor.submit(email=DAVE, password=PASSWORD).status == 403

    def test_autoconfirm_signs_in_at_once(self, make_app):
        visitor = Visitor(make_app(AUTH_AUTOCONFIRM="true"))
        visitor.visit("/sign-up")
        assert visitor.submit(email=DAVE, password=PASSWORD).url == f"{SITE}/account"


class TestCodeByMail:
    def test_code_signs_in(self, visitor, alice, outbox):
        page = visitor.visit("/sign-in")
        visitor.post(f"{SITE}/sign-in/code", page.forms[0].fields | {"email": alice.email})
        assert visitor.submit(code=outbox.last(alice.email).code).url == f"{SITE}/account"

    def test_unknown_address_gets_the_same_page_and_no_user(self, visitor, alice, database):
        texts = []
        for email in (alice.email, "anne@example.com"):
            page = visitor.visit("/sign-in")
            texts.append(visitor.post(f"{SITE}/sign-in/code", page.forms[0].fields | {"email": email}).text)
        assert texts[0].replace(alice.email, "anne@example.com") == texts[1]
        assert database.count("users") == 1


class TestForgottenPassword:
    def test_code_leads_to_a_new_password(self, visitor, alice, outbox):
        visitor.visit("/forgot-password")
        visitor.submit(email=alice.email)
        visitor.submit(code=outbox.last(alice.email).code)
        assert visitor.page.url == f"{SITE}/new-password"
        assert visitor.submit(password="Fresh-Horse-2").url == f"{SITE}/account?done=password"
        assert alice.try_to_sign_in("Fresh-Horse-2").status_code == 200

    def test_link_leads_to_a_new_password(self, visitor, alice, outbox):
        visitor.visit("/forgot-password")
        visitor.submit(email=alice.email)
        sent = outbox.last(alice.email)
        visitor.visit(f"/verify?token={sent.token}&type=recovery&redirect_to={sent.variables['redirect_to']}")
        assert visitor.submit().url == f"{SITE}/new-password"
        assert "access_token" not in str(visitor.page.trail)

    def test_dead_link_leads_to_another_one(self, visitor):
        assert 'href="forgot-password"' in visitor.visit(f"/verify?token={'x' * 43}&type=recovery").text

    def test_old_and_weak_passwords_are_refused(self, visitor, alice, outbox):
        visitor.visit("/forgot-password")
        visitor.submit(email=alice.email)
        visitor.submit(code=outbox.last(alice.email).code)
        assert "This is your current password." in visitor.submit(password=PASSWORD).text
        assert "too short" in visitor.submit(password="Ab-1").text

    def test_used_code_says_so(self, visitor, alice, outbox, app):
        visitor.visit("/forgot-password")
        visitor.submit(email=alice.email)
        page, code = visitor.page, outbox.last(alice.email).code
        visitor.submit(code=code)
        visitor.page = page
        other = Visitor(app)
        other.visit("/forgot-password")
        other.submit(email="nobody@example.com")
        assert "This code is wrong" in other.submit(email=alice.email, code=code).text
