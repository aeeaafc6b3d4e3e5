"""The walkthrough of the specification: the code that its requests run, and the reading budget for it.

`pytest -s tests/system/test_walkthrough.py` prints the figures of each request and of all.
"""

import functools
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support import budgets
from tests.support.deliverers import deliver_due
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.fake_provider import FakeProvider
from tests.support.http_target import HttpTarget
from tests.support.links import BROWSER, PHONE, SITE, Outbox, path
from tests.support.oauth import Service
from tests.support.users import PASSWORD, register
from tests.support.walkthrough import ROOT, Meter, Reach

NEW_PASSWORD = "Another-Horse-2"
# One for all tests: the threads that hash passwords keep it.
METER = Meter()
# The results of the first test in this process, for the others.
REACHED: dict[str, Reach] = {}
pytest_plugins = ["tests.support.oauth_fixtures"]


class Story:
    """The specification's service, played once from beginning to end; names differ from play to play."""

    def __init__(self, service: Service, outbox: Outbox, meter: Meter, number: int) -> None:
        self._service, self._outbox, self._meter = service, outbox, meter
        self._client = service.client
        self._number = number
        self.reached: dict[str, Reach] = defaultdict(Reach)

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        with self._meter.measure() as reach:
            yield
        self.reached[name] |= reach

    def _ask(
        self, name: str, status: int = 200, target: str = "", *, bearer: str = "", **options: Any
    ) -> Any:
        """Send a request, named by its method, route and perhaps a word, and return the response."""
        method, route, *_ = name.split()
        if bearer:
            options["headers"] = {"Authorization": f"Bearer {bearer}"}
        with self._step(name):
            response = self._client.open(target or route, method=method, **options)
        assert response.status_code == status, (name, response.text)
        return response

    def _admin(self, name: str, target: str = "", **body: Any) -> Any:
        return self._ask(name, target=target, bearer=SERVICE_ROLE_KEY, json=body).json

    def _address(self, name: str) -> str:
        return f"{name}{self._number}@example.com"

    def _open(self, link: str) -> None:
        """Open a link as a program does."""
        answer = self._ask("GET /verify", 303, f"{link}&redirect_to={SITE}")
        assert "#access_token=" in answer.headers["Location"]

    def _press(self, link: str) -> None:
        """Open a link in a browser, and press the button of its page."""
        page = self._ask("GET /verify in a browser", 200, link, headers=BROWSER)
        fields = dict(
            re.findall(r'<input type="hidden" name="(token|type|form_token)" value="([^"]*)"', page.text)
        )
        headers = BROWSER | {"Sec-Fetch-Site": "same-origin"}
        answer = self._ask("POST /verify from the page", 303, "/verify", data=fields, headers=headers)
        assert "#access_token=" in answer.headers["Location"]

    def play(self, target: HttpTarget) -> None:
        # The worker asks the database once a second. On a slow machine, each play would be the first to do so.
        self._client.get("/health")
        for route in ("/health", "/settings", "/openapi.yaml"):
            self._ask(f"GET {route}")
        self._admin("POST /admin/webhooks", url=f"{target.url}/{self._number}")
        self._password()
        self._messages()
        self._provider()
        self._administration()
        with self._step("delivery"):
            while deliver_due(self._service.parts):
                pass
        assert target.requests

    def _password(self) -> None:
        """Sign up, confirm, sign in, refresh, read and change the profile, and sign out."""
        email = self._address("dora")
        credentials = {"email": email, "password": PASSWORD}
        self._ask("POST /signup", 201, json={**credentials, "data": {"name": "Dora"}})
        self._ask("POST /token password", 403, "/token?grant_type=password", json=credentials)
        self._press(path("signup", self._outbox.last(email).token))
        signed_in = self._ask(
            "POST /token password", 200, "/token?grant_type=password", json=credentials
        ).json
        wrong = credentials | {"password": NEW_PASSWORD}
        self._ask("POST /token password", 401, "/token?grant_type=password", json=wrong)
        self._ask("GET /user", 401)
        token = self._ask(
            "POST /token refresh_token",
            200,
            "/token?grant_type=refresh_token",
            json={"refresh_token": signed_in["refresh_token"]},
        ).json["access_token"]
        self._ask("GET /user", bearer=token)
        for change in (
            {"data": {"name": "D."}},
            {"password": NEW_PASSWORD},
            {"email": self._address("dorothea")},
            {"phone": f"{PHONE[:-2]}{self._number:02}"},
        ):
            self._ask("PUT /user", bearer=token, json=change)
        self._ask("POST /logout", bearer=token)
        self._ask(
            "POST /token refresh_token",
            400,
            "/token?grant_type=refresh_token",
            json={"refresh_token": signed_in["refresh_token"]},
        )

    def _messages(self) -> None:
        """Sign in by a magic link and by SMS."""
        email, phone = self._address("erin"), f"{PHONE[:-2]}{self._number + 50:02}"
        self._ask("POST /magiclink", json={"email": email, "create_user": True})
        self._open(path("magiclink", self._outbox.last(email).token))
        self._ask("POST /otp", json={"phone": phone, "create_user": True})
        code = self._outbox.last(phone).code
        self._ask("POST /verify", json={"type": "sms", "phone": phone, "token": code})

    def _provider(self) -> None:
        browser = self._service.browser()
        with self._step("GET /authorize"):
            callback = self._service.return_url(browser, "acme")
        with self._step("GET /callback"):
            page = browser.visit(callback)
        assert "access_token=" in page.url, page.trail

    def _administration(self) -> None:
        """An administrator signs in; users are created, changed, listed, invited, and sent links."""
        carol = register(self._client, {}, self._address("carol"), role="admin")
        credentials = {"email": carol.email, "password": PASSWORD}
        token = self._ask("POST /login-admin", json=credentials).json["access_token"]
        new_user: dict[str, Any] = {
            "email": self._address("frank"),
            "password": PASSWORD,
            "email_confirm": True,
        }
        user = self._admin("POST /admin/users", **new_user)
        self._ask(
            "GET /admin/users", target="/admin/users?role=admin&sort=created_at&order=desc", bearer=token
        )
        changes: list[dict[str, Any]] = [
            {"user_metadata": {"name": "Frank"}, "app_metadata": {"team": "blue"}},
            {"ban_duration": "24h"},
            {"ban_duration": None, "password": NEW_PASSWORD, "phone_confirmed_at": None},
        ]
        for change in changes:
            self._admin("PUT /admin/users/<id>", f"/admin/users/{user['id']}", **change)
        link = self._admin("POST /admin/generate_link", type="magiclink", email=new_user["email"])
        self._open(path("magiclink", link["hashed_token"]))
        invited_email = self._address("grace")
        self._admin("POST /admin/invite", email=invited_email, data={"first_name": "Grace"})
        self._open(path("invite", self._outbox.last(invited_email).token))


@pytest.fixture
def reached(make_service: Callable[..., Service], acme: FakeProvider, database: Any) -> dict[str, Reach]:
    """The code that every play but the first reaches: the first fills caches and prepares statements. On a slow machine,
    some plays connect again, or find locks of other tests, whose waits GET /health counts.
    """
    if REACHED:
        return REACHED
    plays = []
    with METER.installed(), HttpTarget() as target:
        service = make_service(
            AUTH_RATE_LIMITS_ENABLED="true", AUTH_WEBHOOK_PRIVATE_NETWORKS="true", AUTH_API_KEYS=None
        )
        outbox = Outbox(service.parts, database)
        for number in range(6):
            acme.person = {"sub": str(number), "email": f"heidi{number}@example.com", "email_verified": True}
            story = Story(service, outbox, METER, number)
            story.play(target)
            plays.append(story.reached)
    _, *later_plays = plays
    reached = {
        name: functools.reduce(operator.and_, [play[name] for play in later_plays]) for name in later_plays[0]
    }
    REACHED.update(reached, all=functools.reduce(operator.or_, reached.values()))
    return REACHED


def test_story_of_the_specification_reaches_no_further_than_its_budgets(reached):
    for name, reach in reached.items():
        figures = budgets.figures(reach.measured).items()
        print(f"{name:28}", "  ".join(f"{number:5} {figure}" for figure, number in figures if number))
    of_story = [name for name, budget in budgets.read().items() if "functions" in budget]
    budgets.check({name: reached[name].measured for name in of_story})


def test_architecture_page_follows_a_log_in_through_what_it_runs(reached):
    page = (ROOT / "docs" / "architecture.md").read_text()
    names = re.findall(r"^((?:auth|sql)/\S+\.py:\w+) ", page, re.MULTILINE)
    functions = reached["POST /token password"].functions
    assert len(names) == 10
    assert {*names} - {f"{function.path}:{function.name}" for function in functions} == set()


def test_meter_sees_views_hashing_deliveries_and_triggers(reached):
    """Hashing runs in threads, and triggers in SQL."""
    names = {f"{function.path}:{function.name}" for function in reached["all"].functions}
    assert {
        "auth/api/sign_in.py:token",
        "auth/extensions/webhooks/events.py:send",
        "sql/pool.py:_wait",
    } - names == set()
