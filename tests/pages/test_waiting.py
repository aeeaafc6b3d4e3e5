"""Links that are opened in another browser than the one that asked: no window gains a session by them."""

import json
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from auth.web.forms import SESSION
from tests.support import factors
from tests.support.answers import assert_ok
from tests.support.links import (
    BROWSER,
    CHALLENGE,
    ON_ITS_WAY,
    SITE,
    VERIFIER,
    WITH_CHALLENGE,
    later,
    location,
    path,
    press,
    query,
    type_in,
)
from tests.support.pages import Visitor, words
from tests.support.server import at_once
from tests.support.users import DAVE, NEW_EMAIL, PASSWORD, session_of, sign_in

NOBODY = "nobody@example.com"
APP, NATIVE = "https://app.example.com/in", "myapp://callback"
TO_APP = urlencode({"redirect_to": APP, "code_challenge": CHALLENGE})
# For each page that asks for a link: the form's action, and the type of the link.
PAGES = {
    "sign-in": ("sign-in/code", "magiclink"),
    "forgot-password": ("forgot-password", "recovery"),
    "sign-up": ("sign-up", "signup"),
}
# Those whose waiting window must never go on.
PROVING = ["sign-in", "forgot-password"]
# Where these lead in the browser that opens the link.
HERE = {"sign-in": "account?done=here", "forgot-password": "new-password"}
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile/15E148 Safari/604.1"
USED = "This link was used in another browser. Continue there, or request a new code."
NOT_OPENED = "The link hasn’t been opened yet."
USED_SIGN_UP = "Your email address was confirmed in another browser. Sign in to continue."


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
def ask(outbox):
    """Ask for a link on a page, to which an application has sent the browser, and return the link."""

    def ask(visitor: Visitor, page: str, email: str, password: str = PASSWORD) -> str:
        action, type = PAGES[page]
        visitor.visit(f"/{page}?{TO_APP}")
        visitor.press(action, email=email, **({"password": password} if page == "sign-up" else {}))
        assert "Check your inbox" in visitor.page.text
        return link_of(outbox.last(email, type))

    return ask


def link_of(sent: Any) -> str:
    return path(sent.kind, sent.token, redirect_to=sent.variables["redirect_to"])


def is_used(visitor: Visitor, page: str, email: str) -> bool:
    """What the script of a waiting page is told."""
    return _told(visitor, "/waiting/state", email=email, page=page)


def _told(visitor: Visitor, action: str, **fields: str) -> bool:
    # A page that waits stays open.
    waiting = visitor.page
    answer = json.loads(visitor.send(action, **fields).text)
    visitor.page = waiting
    assert answer.keys() == {"is_used"}
    return answer["is_used"]


def confirm(visitor: Visitor, link: str) -> None:
    """Open a link, and press its button."""
    visitor.visit(link)
    visitor.press("verify")


def sign_in_as_dave(visitor: Visitor) -> None:
    visitor.visit("/sign-in")
    visitor.submit(email=DAVE, password=PASSWORD)


def code_of(page: Any) -> str:
    """The authorization code with which a browser has come back to the application."""
    assert page.url.startswith(f"{APP}?"), page.url
    return parse_qs(urlsplit(page.url).query)["code"][0]


def assert_gets_nothing(visitor: Visitor, page: str, email: str, code: str, told: str) -> None:
    """Let a browser wait, and assert that it is told something and not signed in."""
    for action, fields in (("waiting", {"page": page}), (f"{page}/verify", {"code": code})):
        answer = visitor.send(f"/{action}", email=email, **fields)
        assert (answer.url, told in words(answer)) == (f"{SITE}/{action}", True), words(answer)
        # Or the script would show the page again and again.
        assert "data-waiting" not in answer.text
    assert visitor.session_cookie is None


class TestSignInAndRecovery:
    @pytest.mark.parametrize("page", PROVING)
    def test_browser_that_opens_the_link_is_signed_in_alone(
        self, desktop, phone, alice, ask, outbox, database, page
    ):
        link = ask(desktop, page, alice.email)
        said = words(phone.visit(link))
        assert "requested just now with Firefox on Linux from 127.0.0.1, but not in this browser." in said
        assert "enter the code from this email there" in said
        assert phone.press("verify").url == f"{SITE}/{HERE[page]}"
        assert phone.session_cookie
        assert (database.count("sessions"), database.count("authorization_codes")) == (1, 0)
        assert is_used(desktop, page, alice.email) is True
        assert_gets_nothing(desktop, page, alice.email, outbox.last().code, USED)
        assert database.count("sessions") == 1
        # The code of a used link is not a wrong one.
        assert database.count("failure_counts", "starts_with(key, 'code ') AND count > 0") == 0
        if page == "forgot-password":
            # Not with the application's code either.
            assert phone.submit(password="Fresh-Horse-2").url == f"{SITE}/account?done=password"
            assert database.count("authorization_codes") == 0
        # The cookie of a window that waits is no session.
        desktop.plant(SESSION, desktop.cookie("latchkey_waiting").value)
        assert desktop.visit("/account").url.startswith(f"{SITE}/sign-in?")
        # A new request waits for its own link.
        desktop.visit(f"/{page}")
        desktop.press(PAGES[page][0], email=alice.email)
        assert is_used(desktop, page, alice.email) is False

    @pytest.mark.parametrize("page", PROVING)
    def test_code_goes_on_where_the_link_was_only_looked_at(self, desktop, phone, alice, ask, outbox, page):
        link = ask(desktop, page, alice.email)
        phone.visit(link)
        assert is_used(desktop, page, alice.email) is False
        assert NOT_OPENED in words(desktop.press("waiting"))
        desktop.press(f"{page}/verify", code=outbox.last().code)
        if page == "forgot-password":
            desktop.submit(password="Fresh-Horse-2")
        assert code_of(desktop.page)
        assert "This link no longer works" in phone.visit(link).text
        assert phone.session_cookie is None

    @pytest.mark.parametrize("page", PROVING)
    def test_link_opened_in_the_same_browser_leads_to_the_application(self, desktop, alice, ask, page):
        link = ask(desktop, page, alice.email)
        waiting = desktop.page
        assert "not in this browser" not in desktop.visit(link).text
        desktop.press("verify")
        assert desktop.page.url.startswith(
            f"{SITE}/new-password?redirect_to=" if page == "forgot-password" else f"{APP}?code="
        )
        # The window that waits notices the sign-in of the other one: by its form, whose cookie has changed.
        desktop.page = waiting
        assert f"Continue as {alice.email}" in words(desktop.press("waiting"))
        desktop.visit(f"/sign-in?{TO_APP}")
        desktop.send("/waiting", email=alice.email, page=page, redirect_to=APP, code_challenge=CHALLENGE)
        next_page = "new-password" if page == "forgot-password" else "sign-in"
        assert desktop.page.url.startswith(f"{SITE}/{next_page}?redirect_to=")

    def test_program_gives_the_application_nothing_by_the_link(self, make_app, alice, ask, client, database):
        asking = make_app(AUTH_VERIFY_ON_GET="programs", AUTH_REDIRECT_ALLOW_LIST=APP)
        response = client.get(ask(Visitor(asking), "sign-in", alice.email))
        assert (response.status_code, response.location) == (303, f"{SITE}/account?done=here")
        assert database.count("authorization_codes") == 0


class TestSignUp:
    @pytest.mark.parametrize("way", ["poll", "poll for a second link", "code"])
    def test_waiting_window_signs_in_by_its_password(
        self, client, desktop, phone, ask, outbox, database, way
    ):
        said = words(phone.visit(ask(desktop, "sign-up", DAVE)))
        assert "then return to the window where you signed up." in said
        assert "Signed up just now with Firefox on Linux from 127.0.0.1." in said
        if "second" in way:
            desktop.press("sign-up/code")
            phone.visit(link_of(outbox.last(DAVE)))
        assert "Your email address is confirmed" in words(phone.press("verify"))
        # A stranger's sign-up signs its reader in nowhere.
        assert (phone.session_cookie, database.count("sessions")) == (None, 0)

        assert is_used(desktop, "sign-up", DAVE) is True
        if way == "code":
            desktop.press("sign-up/verify", code=outbox.last().code)
        else:
            desktop.press("waiting")
        body = {"auth_code": code_of(desktop.page), "code_verifier": VERIFIER}
        session = session_of(client, client.post("/token?grant_type=pkce", json=body))
        assert session.user["email"] == DAVE
        assert [method["method"] for method in session.claims["amr"]] == ["password"]
        assert database.count("audit_log", "action = 'signed_in'") == 2
        # Nobody has shown to know the password now.
        changed = session.put("/user", json={"email": NEW_EMAIL})
        assert (changed.status_code, changed.json["error_code"]) == (400, "reauthentication_needed")
        assert desktop.visit("/account/email").url == f"{SITE}/account/confirm?next=email"
        assert desktop.submit(current_password=PASSWORD).url == f"{SITE}/account/email"

    @pytest.mark.parametrize("way", ["link opened here", "code typed here", "signed in on the phone"])
    def test_browser_is_not_let_in_again_after_a_sign_out(self, desktop, phone, ask, outbox, database, way):
        link, code, waiting = ask(desktop, "sign-up", DAVE), outbox.last().code, desktop.page
        leaving = phone if "phone" in way else desktop
        if way == "code typed here":
            desktop.press("sign-up/verify", code=code)
        else:
            confirm(leaving, link)
        if leaving is phone:
            sign_in_as_dave(phone)
        leaving.visit("/account")
        leaving.send("/sign-out", scope="global")
        desktop.page = waiting
        for action, fields in (("waiting", {"page": "sign-up"}), ("sign-up/verify", {"code": code})):
            desktop.visit("/sign-in")
            assert USED_SIGN_UP in words(desktop.send(f"/{action}", email=DAVE, **fields))
        assert desktop.session_cookie is None or not desktop.session_cookie.value
        assert database.count("sessions", "ended_at IS NULL") == 0

    def test_window_that_has_not_asked_does_not_wait(self, desktop, phone, ask):
        ask(desktop, "sign-up", DAVE)
        sign_in_as_dave(phone)
        for visitor, waits in ((phone, False), (desktop, True)):
            for _ in range(2):
                assert "Check your inbox" in words(visitor.page)
                assert ("data-waiting" in visitor.page.text) is waits
                visitor.press("sign-up/verify", code="000000")
        assert "data-waiting" in phone.press("sign-up/code").text

    def test_fifty_polls_open_one_session(self, app, desktop, phone, ask, database):
        link = ask(desktop, "sign-up", DAVE)
        confirm(phone, link)
        form = next(form for form in desktop.page.forms if form.action.endswith("waiting"))
        headers = BROWSER | {
            "Sec-Fetch-Site": "same-origin",
            "Cookie": "; ".join(f"{cookie.name}={cookie.value}" for cookie in desktop.cookies),
        }

        def poll(_: int) -> str:
            browser = app.test_client(use_cookies=False)
            return location(browser.post("/waiting", data=form.fields, headers=headers))

        led = sorted(at_once(50, poll))
        assert (led[0], led[-1].partition("=")[0]) == (led[-2], f"{APP}?code")
        assert database.count("sessions", "opened_by IS NULL") == 1
        # The other windows ask again, with the cookie that the browser has got by then.
        assert USED_SIGN_UP in words(desktop.visit(led[0]))
        sign_in_as_dave(phone)
        assert f"Continue as {DAVE}" in words(phone.visit(led[0]))

    def test_second_step_is_asked_for(self, client, desktop, phone, ask, database, outbox):
        confirm(phone, ask(desktop, "sign-up", DAVE))
        client.post("/otp", json={"email": DAVE})
        code = outbox.last(DAVE, "magiclink").code
        factors.set_up(session_of(client, type_in(client, "email", DAVE, code)))
        assert desktop.press("waiting").url.startswith(f"{SITE}/second-step?redirect_to=")
        assert database.count("authorization_codes") == 0

    def test_only_the_sign_up_whose_link_was_used_goes_on(self, app, desktop, phone, ask, database):
        mallory = Visitor(app)
        ask(mallory, "sign-up", DAVE, password="Mallorys-Horse-1")
        confirm(phone, ask(desktop, "sign-up", DAVE))
        assert is_used(mallory, "sign-up", DAVE) is False
        assert NOT_OPENED in words(mallory.press("waiting"))
        assert mallory.session_cookie is None
        waiting = desktop.page
        assert code_of(desktop.press("waiting"))
        # It goes on for an hour.
        desktop.cookies, desktop.page = [each for each in desktop.cookies if each.name != SESSION], waiting
        database.run("DELETE FROM sessions")
        later(database, hours=1)
        assert NOT_OPENED in words(desktop.press("waiting"))

    @pytest.mark.parametrize(
        "since",
        [
            "UPDATE users SET password_hash = 'another'",
            "UPDATE users SET password_hash = NULL",
            "UPDATE users SET banned_until = 'infinity'",
            "UPDATE users SET email = 'other@example.com'",
        ],
    )
    def test_sign_up_that_sets_no_password_gains_nothing(self, desktop, phone, ask, outbox, database, since):
        confirm(phone, ask(desktop, "sign-up", DAVE))
        database.run(since)
        assert_gets_nothing(desktop, "sign-up", DAVE, outbox.last().code, USED_SIGN_UP)
        assert database.count("sessions") == 0

    def test_browser_that_is_signed_in_meanwhile_is_left_alone(self, desktop, phone, alice, ask):
        phone.visit(ask(desktop, "sign-up", DAVE))
        waiting = desktop.page
        desktop.signed_in_as(alice)
        phone.press("verify")
        known, desktop.page = desktop.session_cookie, waiting
        desktop.visit("/account")
        answer = desktop.send("/waiting", email=DAVE, page="sign-up")
        assert USED_SIGN_UP in words(answer)
        assert desktop.session_cookie == known


@pytest.mark.parametrize("way", ["poll", "code", "link opened here"])
def test_window_that_changes_the_email_goes_on_with_its_session(desktop, phone, alice, outbox, database, way):
    desktop.signed_in_as(alice)
    desktop.visit("/account/email")
    desktop.submit(email=NEW_EMAIL)
    assert NOT_OPENED in words(desktop.press("account/email/waiting"))
    sent = outbox.last(NEW_EMAIL)
    reader = desktop if way == "link opened here" else phone
    waiting, known = desktop.page, desktop.session_cookie
    confirm(reader, link_of(sent))
    if reader is desktop:
        assert desktop.page.url == f"{SITE}/account?done=email_change"
        return
    assert "Return to the window where you changed it." in words(phone.page)
    assert phone.session_cookie is None
    desktop.page = waiting
    assert _told(desktop, "/account/email/waiting/state", email=NEW_EMAIL) is True
    if way == "code":
        desktop.press("account/email/verify", code=sent.code)
    else:
        desktop.press("account/email/waiting")
    assert desktop.page.url == f"{SITE}/account?done=email"
    assert desktop.session_cookie == known
    assert database.count("sessions", "ended_at IS NULL") == 1


class TestStrangers:
    @pytest.mark.parametrize("page", list(PAGES))
    def test_state_is_told_to_the_browser_that_asked_alone(
        self, app, desktop, phone, parts, alice, ask, page
    ):
        email = DAVE if page == "sign-up" else alice.email
        confirm(phone, ask(desktop, page, email))
        mallory = Visitor(app)
        mallory.visit("/sign-in")
        told: list[tuple[Any, ...]] = []
        for address in (email, NOBODY):
            before = parts.db.statements_run
            told.append((is_used(mallory, page, address), parts.db.statements_run - before))
            before, asked = parts.db.statements_run, mallory.page
            told[-1] += (mallory.send(f"/{page}/verify", email=address, code="000000").status,)
            told[-1] += (parts.db.statements_run - before,)
            mallory.page = asked
        assert told[0] == told[1]
        assert told[0][0] is False

    @pytest.mark.parametrize("page", list(PAGES))
    def test_asking_sets_the_same_cookie_for_every_address(self, app, alice, page):
        action, _type = PAGES[page]
        kept = []
        for email in (alice.email, NOBODY):
            visitor = Visitor(app)
            visitor.visit(f"/{page}")
            visitor.press(action, email=email, **({"password": PASSWORD} if page == "sign-up" else {}))
            kept.append([(each.name, each.http_only, each.same_site) for each in visitor.cookies])
            assert is_used(visitor, page, email) is False
        assert kept[0] == kept[1]
        assert ("latchkey_waiting", True, "lax") in kept[0]

    def test_polls_are_limited(self, make_app):
        visitor = Visitor(make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_WAITING="1 per hour"))
        for status in (200, 429):
            visitor.visit("/sign-in")
            assert visitor.send("/waiting/state", email=DAVE, page="sign-in").status == status

    def test_request_of_the_api_binds_no_browser(self, client, alice, database):
        body = {"email": alice.email, "browser_hash": "x", "user_agent": "y", "ip": "192.0.2.1"}
        assert_ok(client.post("/magiclink", json=body), ON_ITS_WAY)
        assert database.value("SELECT browser_hash IS NULL AND host(ip) = '127.0.0.1' FROM one_time_tokens")


class TestApi:
    """Requests with a code challenge, as the official clients send them, have no cookie of ours."""

    @pytest.fixture
    def sent(self, client, alice, outbox):
        """Ask for a link with a browser, and return it."""

        def sent(type: str, user_agent: str = IPHONE, target: str = APP) -> str:
            url = {"magiclink": "/magiclink", "recovery": "/recover", "signup": "/signup"}[type]
            body = {"email": DAVE, "password": PASSWORD} if type == "signup" else {"email": alice.email}
            body |= WITH_CHALLENGE | {"redirect_to": target}
            response = client.post(url, json=body, headers={"User-Agent": user_agent})
            assert response.status_code in (200, 201), response.text
            return outbox.last(body["email"], type).token

        return sent

    @pytest.mark.parametrize("type", ["magiclink", "recovery", "signup"])
    @pytest.mark.parametrize(
        ("user_agent", "target"),
        # A native application asks in a WebView of its own.
        [(BROWSER["User-Agent"], APP), ("node", APP), ("", APP), (IPHONE, NATIVE)],
    )
    def test_link_of_a_like_or_unknown_browser_brings_the_code(
        self, app, sent, database, type, user_agent, target
    ):
        client = app.test_client()
        token = sent(type, user_agent, target)
        assert "not in this browser" not in client.get(path(type, token), headers=BROWSER).text
        assert query(press(client, type, token, redirect_to=target), target).keys() == {"code"}

    @pytest.mark.parametrize("type", ["magiclink", "recovery", "signup"])
    def test_link_of_another_kind_of_browser_brings_the_application_nothing(
        self, phone, sent, outbox, client, database, alice, type
    ):
        said = words(phone.visit(path(type, sent(type))))
        phone.press("verify")
        assert database.count("authorization_codes") == 0
        if type == "signup":
            assert "Your email address is confirmed" in words(phone.page)
            assert (phone.session_cookie, database.count("sessions")) == (None, 0)
            assert sign_in(client, DAVE).status_code == 200
            return
        assert "with Safari on iOS from 127.0.0.1, but not in this browser." in said
        assert "open the link there" in said
        assert phone.page.url == f"{SITE}/{'new-password' if type == 'recovery' else 'account?done=here'}"
        assert database.count("sessions") == 1
        body = {"type": type, "email": alice.email, "token": outbox.last(alice.email, type).code}
        assert client.post("/verify", json=body).json["error_code"] == "otp_expired"

    @pytest.mark.parametrize("type", ["magiclink", "recovery", "signup"])
    def test_user_who_asked_here_gets_the_code_unless_on_a_page(
        self, desktop, phone, alice, ask, sent, database, type
    ):
        phone.visit(path(type, sent(type)))
        assert code_of(phone.press("verify", action="same"))
        # The cookie of the browser that asked on a page decides.
        database.run("DELETE FROM authorization_codes")
        phone.visit(ask(desktop, "sign-in", alice.email))
        phone.send("/verify", **phone.page.forms[0].fields, action="same")
        assert phone.page.url == f"{SITE}/account?done=here"
        assert database.count("authorization_codes") == 0

    @pytest.mark.parametrize("type", ["magiclink", "recovery", "signup"])
    def test_link_brings_the_code_without_pages(self, make_app, client, sent, type):
        phone = Visitor(make_app(AUTH_PAGES="false", AUTH_REDIRECT_ALLOW_LIST=APP))
        phone.visit(path(type, sent(type)))
        assert code_of(phone.press("verify"))
