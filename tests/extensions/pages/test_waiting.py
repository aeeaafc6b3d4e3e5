"""Links that are opened in another browser than the one that asked: no window gains a session by them."""

import json
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from auth.html.forms import SESSION
from tests.support import factors
from tests.support.answers import assert_ok
from tests.support.checked_rows import statements_run
from tests.support.links import (
    BROWSER,
    CHALLENGE,
    ON_ITS_WAY,
    SITE,
    WITH_CHALLENGE,
    later,
    path,
    press,
    query,
)
from tests.support.pages import Visitor, unsigned, words
from tests.support.users import DAVE, NEW_EMAIL, PASSWORD

NOBODY = "nobody@example.com"
APP, NATIVE = "https://app.example.com/in", "myapp://callback"
TO_APP = urlencode({"redirect_to": APP, "code_challenge": CHALLENGE})
# For each page that asks for a link: the form's action, and the type of the link.
PAGES = {
    "sign-in": ("sign-in/code", "magiclink"),
    "forgot-password": ("forgot-password", "recovery"),
    "sign-up": ("sign-up", "signup"),
}
# Cases in which the waiting window must never continue.
PROVING = ["sign-in", "forgot-password"]
# The target of each page in the browser that opens the link.
TO_START = urlencode({"redirect_to": APP}, quote_via=quote)
TARGETS = {"forgot-password": f"new-password?{TO_START}&next=here"} | dict.fromkeys(
    ("sign-in", "sign-up"), f"sign-in/here?{TO_START}"
)
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile/15E148 Safari/604.1"
USED = "This link was used in another browser"
OPENED = "I opened the link"
NOT_OPENED = "The link hasn’t been opened yet."
USED_SIGN_UP = f"{USED} Your email address is confirmed. Sign in to continue."


@pytest.fixture
def app(make_app) -> Any:
    return make_app(AUTH_REDIRECT_ALLOW_LIST=f"{APP},{NATIVE}")


@pytest.fixture
def desktop(app) -> Visitor:
    return Visitor(app)


@pytest.fixture
def phone(app) -> Visitor:
    return Visitor(app)


@pytest.fixture
def request_link(outbox):
    """Request a link on a page, to which an application has sent the browser, and return the link."""

    def request_link(visitor: Visitor, page: str, email: str, password: str = PASSWORD) -> str:
        action, type = PAGES[page]
        visitor.visit(f"/{page}?{TO_APP}")
        visitor.press(action, email=email, **({"password": password} if page == "sign-up" else {}))
        assert "Check your inbox" in visitor.page.text
        return link_of(outbox.last(email, type))

    return request_link


def link_of(message: Any) -> str:
    return path(message.kind, message.token, redirect_to=message.variables["redirect_to"])


def test_page_of_a_code_has_one_quiet_line_and_the_rest_behind_a_click(request_link, desktop, alice):
    request_link(desktop, "sign-in", alice.email)
    text = words(desktop.page)
    assert "Continue Didn’t get it? Send a new code" in text
    behind = desktop.page.text.partition("<summary>Still nothing?</summary>")[2].partition("</details>")[0]
    assert ("Check your spam folder" in behind, OPENED in behind) == (True, True)


def is_used(visitor: Visitor, page: str, email: str) -> bool:
    """Return the answer to the script of a waiting page."""
    return _state(visitor, "/waiting/state", typed=visitor.typed(email), page=page)


def _state(visitor: Visitor, action: str, **fields: str) -> bool:
    # A page that waits stays open.
    waiting_page = visitor.page
    answer = json.loads(visitor.send(action, **fields).text)
    visitor.page = waiting_page
    assert answer.keys() == {"is_used"}
    return answer["is_used"]


def confirm(visitor: Visitor, link: str) -> None:
    """Open a link, and press its button."""
    visitor.visit(link)
    visitor.press("verify")


def code_of(page: Any) -> str:
    """Return the authorization code with which a browser has come back to the application."""
    assert page.url.startswith(f"{APP}?"), page.url
    return parse_qs(urlsplit(page.url).query)["code"][0]


def assert_gets_nothing(visitor: Visitor, page: str, email: str, code: str, sentence: str) -> None:
    """Let a browser wait, and assert that it is told something and not signed in."""
    url = f"/{page}/code?typed={visitor.typed(email)}"
    for answer in (visitor.visit(url), visitor.type_code(page, email, code)):
        assert sentence in words(answer), words(answer)
        # Otherwise the script would show the page again and again.
        assert "data-waiting" not in answer.text
    assert visitor.session_cookie is None


class TestSignInAndRecovery:
    @pytest.mark.parametrize("page", PROVING)
    def test_only_the_browser_that_opens_the_link_is_signed_in(
        self, desktop, phone, alice, request_link, outbox, database, page
    ):
        link = request_link(desktop, page, alice.email)
        text = words(phone.visit(link))
        assert "requested just now with Firefox on Linux from 127.0.0.1, but not in this browser." in text
        code = outbox.last().code
        assert f"enter this code there: {code[:3]} {code[3:]}" in text
        assert phone.press("verify").url == f"{SITE}/{TARGETS[page]}"
        assert phone.session_cookie
        assert (database.count("sessions"), database.count("authorization_codes")) == (1, 0)
        assert is_used(desktop, page, alice.email) is True
        assert_gets_nothing(desktop, page, alice.email, outbox.last().code, USED)
        assert database.count("sessions") == 1
        # The code of a used link is not a wrong one.
        assert database.count("failure_counts", "starts_with(key, 'code ') AND count > 0") == 0
        if page == "forgot-password":
            # A new password does not bring the application's code either.
            assert phone.submit(password="Fresh-Horse-2").url == f"{SITE}/sign-in/here?{TO_START}"
            assert database.count("authorization_codes") == 0
        # The cookie of a window that waits is no session.
        desktop.plant(SESSION, desktop.cookie("latchkey_waiting").value)
        assert desktop.visit("/account").url.startswith(f"{SITE}/sign-in?")
        # A new request waits for its own link.
        desktop.visit(f"/{page}")
        desktop.press(PAGES[page][0], email=alice.email)
        assert is_used(desktop, page, alice.email) is False

    @pytest.mark.parametrize("page", list(PAGES))
    def test_code_goes_on_where_the_link_was_only_looked_at(
        self, desktop, phone, alice, request_link, outbox, page
    ):
        email = DAVE if page == "sign-up" else alice.email
        link = request_link(desktop, page, email)
        phone.visit(link)
        assert is_used(desktop, page, email) is False
        assert NOT_OPENED in words(desktop.visit(desktop.link(OPENED) or ""))
        desktop.press(f"{page}/verify", code=outbox.last().code)
        if page == "forgot-password":
            desktop.submit(password="Fresh-Horse-2")
        assert code_of(desktop.page)
        assert "This link no longer works" in phone.visit(link).text
        assert phone.session_cookie is None

    @pytest.mark.parametrize("page", PROVING)
    def test_link_opened_in_the_same_browser_leads_to_the_application(
        self, desktop, alice, request_link, page
    ):
        link = request_link(desktop, page, alice.email)
        waiting_page = desktop.page
        assert "not in this browser" not in desktop.visit(link).text
        desktop.press("verify")
        assert desktop.page.url.startswith(
            f"{SITE}/new-password?redirect_to=" if page == "forgot-password" else f"{APP}?code="
        )
        # The window that waits notices the sign-in of the other one.
        next_page = "new-password" if page == "forgot-password" else "sign-in"
        assert desktop.visit(waiting_page.url).url.startswith(f"{SITE}/{next_page}?redirect_to=")

    def test_program_gives_the_application_nothing_by_the_link(
        self, make_app, alice, request_link, client, database
    ):
        app = make_app(AUTH_VERIFY_ON_GET="programs", AUTH_REDIRECT_ALLOW_LIST=APP)
        response = client.get(request_link(Visitor(app), "sign-in", alice.email))
        assert (response.status_code, response.location) == (303, f"{SITE}/{TARGETS['sign-in']}")
        assert database.count("authorization_codes") == 0


class TestSignInInAnotherTab:
    """The form of a page that waits is old once another tab of its browser has signed in."""

    @pytest.fixture
    def waiting(self, desktop, alice, request_link) -> tuple[Any, dict[str, str]]:
        """The page that waits, and what its script sends."""
        request_link(desktop, "sign-in", alice.email)
        waiting = desktop.page
        fields = {"typed": desktop.typed(alice.email), "page": "sign-in"}
        desktop.visit("/sign-in")
        desktop.submit(email=alice.email, password=PASSWORD)
        assert desktop.session_cookie
        return waiting, fields

    def test_waiting_page_is_told_that_it_is_old_and_nothing_else(self, desktop, waiting):
        desktop.page, fields = waiting
        before = statements_run()
        answer = desktop.send("/waiting/state", **fields)
        assert (answer.status, json.loads(answer.text)) == (200, {"is_used": False, "is_old": True})
        assert statements_run() == before

    def test_another_site_and_a_browser_that_says_no_origin_are_refused(self, app, desktop, waiting):
        desktop.page, fields = waiting
        form = {"form_token": desktop.page.forms[0].fields["form_token"], **fields}
        desktop.be_at("https://evil.example/")
        assert desktop.post(f"{SITE}/waiting/state", form).status == 403
        older = Visitor(app, fetch_metadata=False)
        older.cookies, (older.page, _) = desktop.cookies, waiting
        assert older.send("/waiting/state", **fields).status == 403

    def test_other_forms_of_the_page_are_refused(self, desktop, waiting):
        desktop.page, fields = waiting
        assert desktop.send("/sign-in/verify", **fields, code="000000").status == 403


class TestSignUp:
    def test_only_the_browser_that_opens_the_link_is_signed_in(
        self, client, desktop, phone, request_link, outbox, database
    ):
        request_link(desktop, "sign-up", DAVE)
        desktop.press("sign-up/code")
        link = link_of(outbox.last(DAVE))
        waiting_page = desktop.page
        text, code = words(phone.visit(link)), outbox.last().code
        assert "requested just now with Firefox on Linux from 127.0.0.1, but not in this browser." in text
        assert f"enter this code there: {code[:3]} {code[3:]}" in text
        assert phone.press("verify").url == f"{SITE}/{TARGETS['sign-up']}"
        assert (bool(phone.session_cookie), database.count("sessions")) == (True, 1)
        assert is_used(desktop, "sign-up", DAVE) is True
        assert_gets_nothing(desktop, "sign-up", DAVE, code, USED_SIGN_UP)
        assert (database.count("sessions"), database.count("authorization_codes")) == (1, 0)
        desktop.visit(waiting_page.url)
        assert desktop.visit(desktop.link("Sign in") or "").url.startswith(f"{SITE}/sign-in?redirect_to=")
        assert code_of(desktop.submit(email=DAVE, password=PASSWORD))

    def test_second_step_is_asked_for_where_the_link_is_opened(
        self, client, desktop, phone, alice, request_link
    ):
        factors.set_up(alice.open_session())
        confirm(phone, request_link(desktop, "sign-in", alice.email))
        assert phone.page.url.startswith(f"{SITE}/second-step?next=sign-in%2Fhere&redirect_to=")

    def test_only_the_browser_of_the_sign_up_whose_link_was_used_learns_of_it(
        self, app, desktop, phone, request_link, database
    ):
        mallory = Visitor(app)
        request_link(mallory, "sign-up", DAVE, password="Mallorys-Horse-1")
        waiting_url = mallory.page.url
        confirm(phone, request_link(desktop, "sign-up", DAVE))
        assert is_used(mallory, "sign-up", DAVE) is False
        assert NOT_OPENED in words(mallory.visit(mallory.link(OPENED) or ""))
        assert mallory.session_cookie is None
        # The page lives as long as the link.
        later(database, hours=1)
        assert mallory.visit(waiting_url).url.startswith(f"{SITE}/sign-up?")


def test_window_that_changes_the_email_goes_on_with_its_session(desktop, phone, alice, outbox, database):
    desktop.signed_in_as(alice)
    desktop.visit("/account/email")
    desktop.submit(email=NEW_EMAIL)
    waiting_url = desktop.page.url
    assert NOT_OPENED in words(desktop.visit(desktop.link(OPENED) or ""))
    message = outbox.last(NEW_EMAIL)
    waiting_page, cookie = desktop.page, desktop.session_cookie
    confirm(phone, link_of(message))
    assert "Return to the window where you changed it." in words(phone.page)
    assert phone.session_cookie is None
    desktop.page = waiting_page
    typed = desktop.typed(NEW_EMAIL)
    assert _state(desktop, "/account/email/waiting/state", typed=typed) is True
    desktop.visit(waiting_url)
    assert unsigned(desktop.page) == f"{SITE}/account?done=email"
    assert desktop.session_cookie == cookie
    assert database.count("sessions", "ended_at IS NULL") == 1


class TestReturning:
    """The page that waits for a code is opened again by its URL, as from the history."""

    def test_code_typed_after_the_tab_was_closed_leads_where_the_user_began(
        self, desktop, alice, request_link, outbox
    ):
        request_link(desktop, "forgot-password", alice.email)
        waiting_url, message = desktop.page.url, outbox.last(alice.email)
        desktop.visit("/sign-in")
        for _ in range(2):
            assert "Check your inbox" in words(desktop.visit(waiting_url))
        assert outbox.last(alice.email).token == message.token
        desktop.press("forgot-password/verify", code=message.code)
        desktop.submit(password="Fresh-Horse-2")
        assert code_of(desktop.page)
        # The next page of a used code, for the user whom it has signed in.
        assert desktop.visit(waiting_url).url.startswith(f"{SITE}/new-password?redirect_to=")

    @pytest.mark.parametrize("page", list(PAGES))
    def test_code_page_shows_nothing_in_another_browser(self, desktop, phone, alice, request_link, page):
        email = DAVE if page == "sign-up" else alice.email
        request_link(desktop, page, email)
        waiting_url = desktop.page.url
        phone.typed(NOBODY)
        result = phone.visit(waiting_url)
        assert result.url.startswith(f"{SITE}/{page}?redirect_to=")
        assert (email in result.text, "…@" in result.text) == (False, False)
        assert "This page has expired" in words(result)


class TestStrangers:
    @pytest.mark.parametrize("page", list(PAGES))
    def test_state_is_told_only_to_the_browser_that_requested_the_link(
        self, app, desktop, phone, parts, alice, request_link, page
    ):
        email = DAVE if page == "sign-up" else alice.email
        confirm(phone, request_link(desktop, page, email))
        mallory = Visitor(app)
        mallory.visit("/sign-in")
        results: list[tuple[Any, ...]] = []
        for address in (email, NOBODY):
            before = statements_run()
            results.append((is_used(mallory, page, address), statements_run() - before))
            before, mallorys_page = statements_run(), mallory.page
            results[-1] += (mallory.type_code(page, address, "000000").status,)
            results[-1] += (statements_run() - before,)
            mallory.page = mallorys_page
        assert results[0] == results[1]
        assert results[0][0] is False

    def test_request_of_the_api_binds_no_browser(self, client, alice, database):
        body = {"email": alice.email, "browser_hash": "x", "user_agent": "y", "ip": "192.0.2.1"}
        assert_ok(client.post("/magiclink", json=body), ON_ITS_WAY)
        assert database.value("SELECT browser_hash IS NULL AND host(ip) = '127.0.0.1' FROM one_time_tokens")


class TestApi:
    """Requests with a code challenge, as the official clients send them, have no cookie of ours."""

    @pytest.fixture
    def request_token(self, client, alice, outbox):
        """Request a link with a browser, and return its token."""

        def request_token(type: str, user_agent: str = IPHONE, target: str = APP) -> str:
            url = {"magiclink": "/magiclink", "recovery": "/recover", "signup": "/signup"}[type]
            body = {"email": DAVE, "password": PASSWORD} if type == "signup" else {"email": alice.email}
            body |= WITH_CHALLENGE | {"redirect_to": target}
            response = client.post(url, json=body, headers={"User-Agent": user_agent})
            assert response.status_code in (200, 201), response.text
            return outbox.last(body["email"], type).token

        return request_token

    @pytest.mark.parametrize(
        ("type", "user_agent", "target"),
        [
            *(("magiclink", agent, APP) for agent in (BROWSER["User-Agent"], "node", "")),
            ("recovery", BROWSER["User-Agent"], APP),
            # A native application asks in its own WebView.
            ("signup", IPHONE, NATIVE),
        ],
    )
    def test_link_of_a_like_or_unknown_browser_brings_the_code(
        self, app, request_token, database, type, user_agent, target
    ):
        client = app.test_client()
        token = request_token(type, user_agent, target)
        assert "not in this browser" not in client.get(path(type, token), headers=BROWSER).text
        assert query(press(client, type, token, redirect_to=target), target).keys() == {"code"}

    @pytest.mark.parametrize("type", ["magiclink", "recovery", "signup"])
    def test_link_of_another_kind_of_browser_brings_the_application_nothing(
        self, phone, request_token, outbox, client, database, alice, type
    ):
        text = words(phone.visit(path(type, request_token(type))))
        phone.press("verify")
        assert database.count("authorization_codes") == 0
        assert "with Safari on iOS from 127.0.0.1, but not in this browser." in text
        assert "open the link there" in text
        assert phone.page.url == f"{SITE}/{TARGETS['forgot-password' if type == 'recovery' else 'sign-in']}"
        assert database.count("sessions") == 1
        message = outbox.last(kind=type)
        body = {"type": type, "email": message.to, "token": message.code}
        assert client.post("/verify", json=body).json["error_code"] == "otp_expired"

    def test_user_who_requested_the_link_here_gets_the_code_unless_on_a_page(
        self, desktop, phone, alice, request_link, request_token, database
    ):
        phone.visit(path("magiclink", request_token("magiclink")))
        assert code_of(phone.press("verify", action="same"))
        # The cookie of the browser that asked on a page decides.
        database.run("DELETE FROM authorization_codes")
        phone.visit(request_link(desktop, "sign-in", alice.email))
        phone.send("/verify", **phone.page.forms[0].fields, action="same")
        assert phone.page.url == f"{SITE}/{TARGETS['sign-in']}"
        assert database.count("authorization_codes") == 0

    def test_link_brings_the_code_without_pages(self, make_app, client, request_token):
        phone = Visitor(make_app(AUTH_PAGES="false", AUTH_REDIRECT_ALLOW_LIST=APP))
        phone.visit(path("recovery", request_token("recovery")))
        assert code_of(phone.press("verify"))
