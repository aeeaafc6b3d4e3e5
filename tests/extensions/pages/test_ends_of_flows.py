"""Flows that begin on our pages end inside the application, which tests/system/browser/pages/test_flow_stories.py plays in Chromium."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.support.cases import cases
from tests.support.links import CHALLENGE, VERIFIER, Outbox, path
from tests.support.pages import Visitor, words
from tests.support.server import at_once
from tests.support.tables import Rows
from tests.support.users import ALICE, DAVE, PASSWORD

APP = "https://app.example.com"
LOGIN = f"{APP}/login"
SETTINGS = {
    "AUTH_SITE_URL": APP,
    "AUTH_SITE_LOGIN_URL": LOGIN,
    "AUTH_REDIRECT_ALLOW_LIST": "https://other.example.com",
}
NEW_PASSWORD = "Fresh-Horse-2"
AWAITED = "site_expected_until > now()"


def request_of(redirect_to: str = f"{APP}/callback", **query: str) -> str:
    """Return the path of an application's request for a sign-in."""
    return f"/sign-in?{urlencode({'redirect_to': redirect_to, 'code_challenge': CHALLENGE} | query)}"


@dataclass
class Flow:
    visitor: Visitor
    client: Any
    outbox: Outbox
    service_role: dict[str, str]
    database: Rows
    app: Any

    def invite(self) -> None:
        self.client.post("/admin/invite", json={"email": DAVE}, headers=self.service_role)
        self.visitor.visit(path("invite", self.outbox.last(DAVE, "invite").token))
        self.visitor.submit()

    def is_awaited(self) -> bool:
        return self.database.count("browser_sessions", AWAITED) == 1

    def is_answered(self) -> bool:
        """Whether a request of the application gets a code, not a question."""
        page = self.visitor.visit(request_of())
        if not page.url.startswith(f"{APP}/callback?code="):
            return False
        code = parse_qs(urlsplit(page.url).query)["code"][0]
        body = {"auth_code": code, "code_verifier": VERIFIER}
        assert self.client.post("/token?grant_type=pkce", json=body).status_code == 200
        return True

    def asks(self) -> bool:
        return "Continue as" in words(self.visitor.visit(request_of()))


@pytest.fixture
def app(make_app):
    return make_app(**SETTINGS)


@pytest.fixture
def flow(app, client, outbox, service_role, database, alice) -> Flow:
    return Flow(Visitor(app), client, outbox, service_role, database, app)


@pytest.fixture
def invited_flow(flow) -> Flow:
    """After an invitation, at the application's login."""
    flow.invite()
    assert flow.visitor.submit(password=NEW_PASSWORD).url == LOGIN
    return flow


def invitation(flow: Flow) -> None:
    flow.invite()
    flow.visitor.submit(password=NEW_PASSWORD)


def recovery_by_code(flow: Flow) -> None:
    flow.visitor.visit("/forgot-password")
    flow.visitor.submit(email=ALICE)
    flow.visitor.submit(code=flow.outbox.last(ALICE).code)
    flow.visitor.submit(password=NEW_PASSWORD)


def sign_up_by_link(flow: Flow) -> None:
    flow.visitor.visit("/sign-up")
    flow.visitor.submit(email=DAVE, password=PASSWORD)
    flow.visitor.visit(path("signup", flow.outbox.last(DAVE).token))
    flow.visitor.submit()


@pytest.mark.parametrize("walk", [invitation, recovery_by_code, sign_up_by_link])
def test_flow_ends_at_the_login_of_the_application_whose_request_is_answered_once(
    flow, walk: Callable[[Flow], None]
):
    walk(flow)
    assert flow.visitor.page.url == LOGIN
    assert flow.is_answered()
    assert flow.asks()


def test_site_without_a_login_of_its_own_is_where_flows_end(make_app, flow):
    flow.visitor = Visitor(make_app(AUTH_SITE_URL=f"{APP}/start"))
    invitation(flow)
    assert flow.visitor.page.url == f"{APP}/start"
    assert flow.is_answered()


class TestQuestion:
    """Opened in any other way, the page asks "Continue as …", and the waiting application still gets its answer."""

    @cases(
        "sign_in",
        [
            f"/sign-in?{urlencode({'redirect_to': f'{APP}/callback'})}",
            request_of("https://other.example.com"),
        ],
    )
    def test_request_without_a_challenge_or_of_another_origin_is_asked(self, invited_flow, sign_in):
        assert "Continue as" in words(invited_flow.visitor.visit(sign_in))
        assert invited_flow.is_awaited()

    def test_request_after_ten_minutes_is_asked(self, invited_flow):
        seconds_left = "SELECT extract(epoch FROM site_expected_until - now()) FROM browser_sessions"
        assert 590 < invited_flow.database.value(seconds_left) <= 600
        invited_flow.database.run("UPDATE browser_sessions SET site_expected_until = now()")
        assert invited_flow.asks()

    def test_other_browser_of_the_user_is_asked(self, invited_flow):
        other = Visitor(invited_flow.app)
        other.visit("/sign-in")
        other.submit(email=DAVE, password=NEW_PASSWORD)
        assert "Continue as" in words(other.visit(request_of()))
        assert invited_flow.is_answered()

    def test_user_who_signs_in_to_the_same_browser_is_asked(self, invited_flow):
        invited_flow.visitor.visit("/sign-out")
        invited_flow.visitor.submit()
        invited_flow.visitor.visit("/sign-in")
        invited_flow.visitor.submit(email=ALICE, password=PASSWORD)
        assert f"Continue as {ALICE}" in words(invited_flow.visitor.visit(request_of()))

    def test_two_tabs_share_one_answer(self, invited_flow):
        headers = {"Cookie": "; ".join(f"{each.name}={each.value}" for each in invited_flow.visitor.cookies)}
        headers["Accept"] = "text/html"
        client = invited_flow.app.test_client(use_cookies=False)
        pages = at_once(20, lambda _: client.get(request_of(), headers=headers))
        assert sum("/callback?code=" in page.text for page in pages) == 1
        assert sum("Continue as" in page.text for page in pages) == 19
        assert invited_flow.database.count("authorization_codes") == 1


class TestAttacks:
    """A page of another site sends the browser of a signed-in user to /sign-in."""

    @pytest.fixture
    def signed_in_flow(self, flow, alice) -> Flow:
        flow.visitor.with_session_of(alice).be_at("https://evil.example/")
        return flow

    @cases(
        "start",
        ["/sign-in?then=site", "/sign-in?then=site&next=account", "/sign-up?then=site", "/join?then=site"],
    )
    def test_no_get_request_lets_the_application_sign_in_unasked(self, signed_in_flow, start):
        signed_in_flow.visitor.visit(start)
        assert not signed_in_flow.is_awaited()
        assert signed_in_flow.asks()

    def test_challenge_of_another_page_gets_a_code_that_only_the_application_sees(self, invited_flow):
        invited_flow.visitor.be_at("https://evil.example/")
        page = invited_flow.visitor.visit(request_of(code_challenge="A" * 43))
        assert page.url.startswith(f"{APP}/callback?code=")
        code = parse_qs(urlsplit(page.url).query)["code"][0]
        body = {"auth_code": code, "code_verifier": VERIFIER}
        assert invited_flow.client.post("/token?grant_type=pkce", json=body).status_code == 400
        assert invited_flow.asks()
