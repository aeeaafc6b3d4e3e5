"""Pages without the database, over a limit, or requested by a program: each shows what to do next."""

import json

import pytest

from tests.support.cast import PASSWORD
from tests.support.factors import set_up
from tests.support.forwarder import Forwarder
from tests.support.links import PHONE, SITE, path
from tests.support.pages import Visitor

AWAY = "answer at the moment. Try again shortly."
DAVE = "dave@example.com"
KNOWN = {"password": PASSWORD}


@pytest.fixture
def forwarder(database_url):
    with Forwarder(database_url) as forwarder:
        yield forwarder


@pytest.fixture
def visitor(make_app, forwarder) -> Visitor:
    return Visitor(make_app(fresh=True, DATABASE_URL=forwarder.database_url))


class TestWithoutDatabase:
    @pytest.mark.parametrize(
        ("where", "action"),
        [
            ("/sign-in", "sign-in"),
            ("/sign-in", "sign-in/code"),
            ("/sign-up", "sign-up"),
            ("/forgot-password", "forgot-password"),
        ],
    )
    def test_form_comes_back_with_what_was_typed_and_works_later(self, visitor, forwarder, where, action):
        visitor.visit(where)
        forwarder.close()
        page = visitor.press(action, email=DAVE, password=PASSWORD)
        assert (page.status, page.headers["Retry-After"]) == (503, "2")
        assert AWAY in page.text
        assert f'value="{DAVE}"' in page.text
        assert PASSWORD not in page.text
        forwarder.open()
        assert visitor.press(action, email=DAVE, password=PASSWORD).status in (200, 403)

    def test_code_is_still_good_afterwards(self, visitor, forwarder, outbox):
        visitor.visit("/sign-up")
        visitor.press("sign-up", email=DAVE, password=PASSWORD)
        forwarder.close()
        page = visitor.press("sign-up/verify", code=outbox.last(DAVE).code)
        assert (page.status, AWAY in page.text) == (503, True)
        forwarder.open()
        assert visitor.press("sign-up/verify", code=outbox.last(DAVE).code).url.endswith("/account")

    def test_account_and_link_offer_another_try(self, visitor, forwarder, alice, client, outbox):
        client.post("/recover", json={"email": alice.email})
        link = path("recovery", outbox.last(alice.email).token)
        visitor.signed_in_as(alice).visit("/account/name")
        forwarder.close()
        for page in (
            visitor.press("account/name", name="Al"),
            visitor.visit("/account"),
            visitor.visit(link),
        ):
            assert (page.status, AWAY in page.text) == (503, True)
        assert 'href="">Try again</a>' in page.text
        assert outbox.last(alice.email).token not in page.text
        forwarder.open()
        assert alice.email in visitor.visit("/account").text

    def test_program_gets_the_envelope(self, visitor, forwarder):
        visitor.visit("/sign-in")
        forwarder.close()
        visitor.accept = "application/json"
        for page in (
            visitor.press("sign-in", email=DAVE, password=PASSWORD),
            visitor.visit("/verify?token=x&type=signup"),
        ):
            assert (page.status, json.loads(page.text)["error_code"]) == (503, "service_unavailable")


class TestLimits:
    """The pages and the API count the same requests."""

    @pytest.mark.parametrize(
        ("limit", "url", "where", "action", "fields", "said"),
        [
            ("LOGIN", "/token?grant_type=password", "/sign-in", "sign-in", KNOWN, "or try a code instead."),
            ("SIGNUP", "/signup", "/sign-up", "sign-up", KNOWN, "Too many tries. Come back in an hour."),
            ("RECOVER", "/recover", "/forgot-password", "forgot-password", {}, "Come back in an hour."),
            ("RECOVER", "/otp", "/sign-in", "sign-in/code", {}, "an hour, or use your password."),
        ],
    )
    def test_request_to_the_api_counts_for_the_page(self, make_app, limit, url, where, action, fields, said):
        app = make_app(AUTH_RATE_LIMITS_ENABLED="true", **{f"AUTH_RATE_LIMIT_{limit}": "1 per hour"})
        app.test_client().post(url, json={"email": DAVE, **fields})
        visitor = Visitor(app)
        visitor.visit(where)
        page = visitor.press(action, email="erin@example.com", **fields)
        assert (page.status, int(page.headers["Retry-After"]) > 3500) == (429, True)
        assert "Come back in an hour" in page.text
        assert said in page.text

    def test_wait_of_a_day_is_shown_in_hours(self, make_app, alice):
        limit = {"AUTH_RATE_LIMIT_LOGIN_FAILURES": "1 per 2 days"}
        visitor = Visitor(make_app(AUTH_RATE_LIMITS_ENABLED="true", **limit))
        visitor.visit("/sign-in")
        visitor.press("sign-in", email=alice.email, password="Wrong-Horse-1")
        page = visitor.press("sign-in", email=alice.email, password=PASSWORD)
        assert "Come back in 48 hours, or try a code instead." in page.text

    def test_code_can_still_be_entered_after_asking_for_too_many(self, make_app, alice, outbox):
        """The forms that request another code are next to the field for the code that was sent before."""
        visitor = Visitor(
            make_app(
                AUTH_RATE_LIMITS_ENABLED="true",
                AUTH_RATE_LIMIT_RECOVER="1 per hour",
                AUTH_RATE_LIMIT_ADDRESS_CHANGES="1 per hour",
            )
        )
        visitor.visit("/sign-in")
        visitor.press("sign-in/code", email=alice.email)
        assert visitor.press("sign-in/code").status == 429
        assert visitor.press("sign-in/verify", code=outbox.last(alice.email).code).url == f"{SITE}/account"
        visitor.visit("/account/phone")
        visitor.press("account/phone", phone=PHONE)
        assert visitor.press("account/phone").status == 429
        code = outbox.last(PHONE).code
        assert visitor.press("account/phone/verify", code=code).url == f"{SITE}/account?done=phone"

    def test_code_of_a_proof_can_still_be_entered_too(self, make_app, alice, outbox, database):
        visitor = Visitor(make_app(AUTH_RATE_LIMITS_ENABLED="true")).signed_in_as(alice)
        database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
        visitor.visit("/account/delete")
        visitor.press("account/confirm/code")
        page = visitor.press("account/confirm/code")
        assert (page.status, "another code yet. Ask again in a minute." in page.text) == (429, True)
        page = visitor.press("account/confirm", nonce=outbox.last(alice.email, "reauthentication").code)
        assert page.url == f"{SITE}/account/delete"

    def test_codes_of_pages_and_of_the_api_are_counted_together(self, make_app, outbox):
        app = make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_VERIFY="1 per hour")
        visitor = Visitor(app)
        visitor.visit("/sign-up")
        visitor.press("sign-up", email=DAVE, password=PASSWORD)
        sent = outbox.last(DAVE)
        visitor.press("sign-up/verify", code=sent.wrong_code)
        body = {"type": "signup", "email": DAVE, "token": sent.code}
        assert app.test_client().post("/verify", json=body).status_code == 429

    def test_form_of_another_site_does_not_use_up_a_limit(self, make_app, alice):
        visitor = Visitor(make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_LOGIN="1 per hour"))
        visitor.be_at("https://evil.example/")
        assert visitor.post(f"{SITE}/sign-in", {"email": alice.email, "password": "x"}).status == 403
        visitor.visit("/sign-in")
        assert visitor.press("sign-in", email=alice.email, password=PASSWORD).status == 200


@pytest.mark.parametrize("code", ["nonsense", "over_request_rate_limit", "weak_length", "other"])
def test_error_of_a_redirect_that_no_text_fits_has_a_general_one(visitor, code):
    assert "Something went wrong. Please try again" in visitor.visit(f"/sign-in?error_code={code}").text


def test_account_shows_the_error_of_a_provider_that_was_not_connected(visitor, alice):
    page = visitor.signed_in_as(alice).visit("/account?error_code=identity_already_exists")
    assert "is already connected to someone else" in page.text


def test_browser_gets_a_page_for_an_error_of_a_link_or_form(client, visitor):
    visitor.visit("/sign-in")
    for page in (
        visitor.visit("/verify"),
        visitor.visit("/authorize?provider=nobody"),
        visitor.post(f"{SITE}/preferences", {"language": "de"}),
        visitor.post(f"{SITE}/verify", {"token": "x", "type": "signup"}),
    ):
        assert (page.status in (400, 403), page.headers["Content-Type"]) == (True, "text/html; charset=utf-8")
        assert 'role="alert"' in page.text
    again = visitor.visit("/sign-in/code")
    assert (again.status, "POST" in again.headers["Allow"], "Page not found" in again.text) == (
        405,
        True,
        True,
    )
    assert client.get("/verify").json["error_code"] == "validation_failed"
    for accept in ("application/json, text/html;q=0.5", "text/html;q=0, */*"):
        for where in ("/nowhere", "/sign-in/code", "/sign-in?next=a&next=b", "/account"):
            assert client.get(where, headers={"Accept": accept}).is_json, (accept, where)
    assert client.get("/user", headers={"Accept": "text/html"}).json["error_code"] == "no_authorization"


class TestStories:
    """Each story that succeeds in another test also fails with a next step."""

    @pytest.fixture
    def visitor(self, app) -> Visitor:
        return Visitor(app)

    def test_used_and_expired_invitations_lead_on(self, visitor, client, service_role, outbox, database):
        client.post("/admin/invite", json={"email": DAVE}, headers=service_role)
        link = path("invite", outbox.last(DAVE).token)
        visitor.visit(link)
        database.run("UPDATE one_time_tokens SET expires_at = now()")
        for page in (visitor.submit(), visitor.visit(link)):
            assert (page.status, "ask for another invitation" in page.text) == (403, True)
            assert 'href="sign-in"' in page.text

    @pytest.mark.parametrize("path", ["/account", "/account/name", "/sign-in"])
    def test_user_who_is_banned_meanwhile_is_asked_to_sign_in(self, visitor, alice, database, path):
        visitor.signed_in_as(alice)
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert "Sign in to" in visitor.visit(path).text
        assert (
            "This account is blocked." in visitor.press("sign-in", email=alice.email, password=PASSWORD).text
        )

    def test_banned_user_is_told_so_after_the_right_code(self, visitor, alice, outbox, database):
        visitor.visit("/sign-in")
        visitor.press("sign-in/code", email=alice.email)
        database.run("UPDATE users SET banned_until = 'infinity'")
        page = visitor.press("sign-in/verify", code=outbox.last(alice.email).code)
        assert (page.status, "This account is blocked." in page.text) == (403, True)

    def test_form_of_a_deleted_user_leads_to_the_sign_in(self, visitor, alice, database):
        visitor.signed_in_as(alice).visit("/account/name")
        database.run("DELETE FROM users")
        assert visitor.press("account/name", name="Al").url == f"{SITE}/sign-in?error_code=session_expired"
        assert "Your session has ended." in visitor.page.text

    def test_second_step_shows_when_to_try_again(self, make_app, alice):
        app = set_up(alice.sign_in())[0]
        visitor = Visitor(make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_VERIFY="2 per hour"))
        visitor.visit("/sign-in")
        visitor.press("sign-in", email=alice.email, password=PASSWORD)
        for _ in range(2):
            visitor.press("second-step", code=app.wrong_code())
        page = visitor.press("second-step", code=app.code())
        assert (page.status, "Come back in an hour." in page.text) == (429, True)

    def test_second_step_that_another_site_opens_often_does_not_use_up_the_limit(self, make_app, alice):
        app = set_up(alice.sign_in())[0]
        visitor = Visitor(make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_VERIFY="2 per hour"))
        visitor.visit("/sign-in")
        visitor.press("sign-in", email=alice.email, password=PASSWORD)
        form = visitor.page.forms[0].fields
        for _ in range(2):
            visitor.visit("/account")
        assert visitor.page.url.startswith(f"{SITE}/second-step")
        assert (visitor.page.status, 'href="">Try again</a>' in visitor.page.text) == (429, True)
        assert visitor.post(f"{SITE}/second-step", form | {"code": app.code()}).url == f"{SITE}/account"

    def test_code_of_a_message_that_came_a_moment_ago_is_not_sent_again(self, make_app, alice, outbox):
        visitor = Visitor(make_app(AUTH_RATE_LIMITS_ENABLED="true"))
        visitor.visit("/sign-in")
        visitor.press("sign-in/code", email=alice.email)
        assert visitor.press("sign-in/code").status == 200
        assert len(outbox.sent(alice.email)) == 1
        assert visitor.press("sign-in/verify", code=outbox.last(alice.email).code).url == f"{SITE}/account"
