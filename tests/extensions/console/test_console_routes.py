"""Every route of the console, from the URL map, for each kind of caller: the response, and what changes."""

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest
from werkzeug.test import TestResponse

from auth.html import forms
from tests.support.answered_forms import answers_to_forms, check_answers
from tests.support.api_keys import insert_key
from tests.support.authenticator import Authenticator
from tests.support.contract import console_routes
from tests.support.factors import App, set_up
from tests.support.pages import Visitor, without_signature, words
from tests.support.passkeys import register as register_passkey
from tests.support.users import Session

PUBLIC_URL = "https://auth.example.com"
# The HTML of an email, in a sandbox without scripts: see test_messages.py.
FRAME = "/console/messages/preview/html"
# The changes of an action, or the messages of a page.
TABLES = (
    *("users", "identities", "factors", "webhooks", "outbox", "one_time_tokens", "audit_log"),
    *("oauth_clients", "oauth_grants", "admin_keys"),
)
# A value for each field of the actions' forms.
FIELDS = {
    "email": "new@example.com",
    "phone": "",
    "ban_duration": "1h",
    "user_metadata": '{"a": 1}',
    "app_metadata": '{"b": 2}',
    "url": "http://127.0.0.1:9/new",
    "user_created": "yes",
    "event": "user.created",
    "description": "New",
    "client_name": "New",
    "token_endpoint_auth_method": "client_secret_basic",
    "redirect_uris": "https://app.example.com/callback",
    "authorization_code": "yes",
    "require_pkce": "yes",
    "id_token_signed_response_alg": "RS256",
    "name": "Nightly report",
    "users_read": "yes",
    "days": "90",
}
# The state that an action needs to have an effect.
NEEDS = {
    "unban": "UPDATE users SET banned_until = now() + interval '1 day' WHERE role <> 'admin'",
    "invite-again": "UPDATE users SET invited_at = now(), password_hash = NULL, email_confirmed_at = NULL WHERE role <> 'admin'",
    "unlock": "INSERT INTO failure_counts SELECT 'user ' || id, 1, now() + interval '1 hour', 'user', id FROM users",
    "end-old-secret": "UPDATE oauth_clients SET previous_secret_hash = '', previous_secret_expires_at = now() + interval '1 hour'",
    "enable": "UPDATE webhooks SET disabled_at = now(), disabled_reason = 'gone'",
}
READY = "UPDATE users SET banned_until = NULL; UPDATE webhooks SET disabled_at = NULL, disabled_reason = NULL; UPDATE factors SET last_step = NULL"
# Fields of single actions.
FIELDS_BY_ACTION = {
    "create": {"email": "made@example.com"},
    "invite": {"email": "invited@example.com"},
    "invite-list": {"emails": "first@example.com second@example.com"},
}


class Console:
    """The routes of one application with ids that exist, requested without following redirects."""

    def __init__(self, app: Any, ids: Mapping[str, str], database: Any) -> None:
        self.app, self._database = app, database
        routes = [(method, path.format(**ids)) for method, path, _view in console_routes(app)]
        self.forms = sorted(path for method, path in routes if method == "post")
        self.pages = sorted({path for method, path in routes if method == "get"} - set(self.forms))
        assert len(self.forms) > 10
        assert len(self.pages) > 2

    def open(self, method: str, path: str, cookie: str | None, **options: Any) -> TestResponse:
        headers = {"Accept": "text/html"} | options.pop("headers", {})
        headers |= {"Cookie": f"__Host-latchkey={cookie}"} if cookie else {}
        client = self.app.test_client(use_cookies=False)
        return client.open(path, method=method, base_url=PUBLIC_URL, headers=headers, **options)

    def walk(
        self, cookie: str | None, step: int = 1, **options: Any
    ) -> Iterator[tuple[str, str, TestResponse]]:
        """Yield the responses of pages, confirmations and actions, with valid forms; check that nothing changed.

        `step` leaves out actions, where the guard of all routes answers.
        """
        before = self._database.everything(*TABLES)
        forms = self.forms[::step]
        for path in (*self.pages, *forms):
            yield "get", path, self.open("get", path, cookie, **options)
        for path in forms:
            yield "post", path, self.post(path, cookie, **options)
        assert self._database.everything(*TABLES) == before

    def post(self, path: str, cookie: str | None, **options: Any) -> TestResponse:
        token = {"form_token": forms.token_of(cookie)} if cookie else {}
        return self.open("post", path, cookie, data=FIELDS | token, **options)


@pytest.fixture
def set_up_by_carol(carol) -> tuple[App, Session]:
    return set_up(carol.open_session())


@pytest.fixture
def app_of_carol(set_up_by_carol) -> App:
    return set_up_by_carol[0]


@pytest.fixture
def passkey_of_carol(set_up_by_carol) -> Authenticator:
    return register_passkey(set_up_by_carol[1])[0]


@pytest.fixture
def console(make_app, ids, database) -> Console:
    return Console(make_app(AUTH_BASE_URL=PUBLIC_URL, AUTH_WEBHOOK_PRIVATE_NETWORKS="true"), ids, database)


def signed_in(console: Console, person: Any, codes: App | None = None) -> str:
    """Sign in on the pages, with the second step if there are codes, and return the cookie."""
    visitor = Visitor(console.app, PUBLIC_URL).signed_in_as(person)
    if codes:
        visitor.visit("/second-step")
        visitor.press("second-step", code=codes.code())
    assert visitor.session_cookie
    return visitor.session_cookie.value


def test_browser_is_not_redirected_between_sign_in_and_console(console):
    for _method, path, answer in console.walk(None):
        target = f"{'../' * (path.count('/') - 1)}sign-in?next={quote(path[1:], safe='')}"
        assert (answer.status_code, answer.location) == (303, target), path


def test_user_is_refused_and_an_administrator_sent_to_set_up_a_second_factor(
    console, mallory, carol, database
):
    for _method, path, answer in console.walk(signed_in(console, mallory)):
        assert (answer.status_code, "You don’t have access" in answer.text) == (403, True), path
        assert "alice@example.com" not in answer.text, path
    cookie = signed_in(console, carol)
    for _method, path, answer in console.walk(cookie):
        assert "account/confirm?by=code&next=console" in answer.location, path
    database.run("UPDATE sessions SET code_given_at = now()")
    for _method, path, answer in console.walk(cookie):
        assert (answer.status_code, "Set up two-step verification" in answer.text) == (403, True), path
        assert "alice@example.com" not in answer.text, path


def test_administrator_is_asked_for_the_second_step(console, carol, app_of_carol):
    for _method, path, answer in console.walk(signed_in(console, carol)):
        assert (answer.status_code, "second-step?next=console" in answer.location) == (303, True), path


def test_administrator_sees_all_pages_and_no_other_site_frames_or_reads_them(console, carol, app_of_carol):
    cookie = signed_in(console, carol, app_of_carol)
    for path in {*console.pages, *console.forms} - {FRAME}:
        answer = console.open("get", path, cookie, headers={"Origin": "null"})
        assert answer.status_code == 200, path
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'"), path
        assert ("frame-ancestors 'none'" in policy, "'unsafe-inline'" in policy) == (True, False), path
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin", path
        assert not [name for name, _ in answer.headers.items() if name.startswith("Access-Control-")], path
        assert not re.search(r"<script(?! src=)|\son\w+=|\sstyle=|javascript:", answer.text), path


def test_stale_administrator_sees_pages_and_is_asked_for_a_proof_before_actions(
    console, carol, app_of_carol, database
):
    cookie = signed_in(console, carol, app_of_carol)
    database.run(
        "UPDATE sessions SET created_at = created_at - interval '20 minutes',"
        " reauthenticated_at = reauthenticated_at - interval '20 minutes'"
    )
    for _method, path, answer in console.walk(cookie):
        if path in console.pages:
            assert answer.status_code == 200, path
        else:
            confirm = f"{'../' * (path.count('/') - 1)}account/confirm?next={quote(path[1:], safe='')}"
            assert (answer.status_code, answer.location) == (303, confirm)


ENDS = {
    "demoted": ("UPDATE users SET role = 'authenticated' WHERE role = 'admin'", 403),
    "banned": ("UPDATE users SET banned_until = now() + interval '1 hour' WHERE role = 'admin'", 303),
    "deleted": ("DELETE FROM users WHERE role = 'admin'", 303),
    "signed out": ("UPDATE sessions SET ended_at = now(), end_reason = 'logout'", 303),
}


@pytest.mark.parametrize("end", ENDS)
def test_old_cookie_opens_nothing_once_its_administrator_has_lost_access(
    console, carol, app_of_carol, database, end
):
    statement, status = ENDS[end]
    cookie = signed_in(console, carol, app_of_carol)
    assert console.open("get", "/console", cookie).status_code == 200
    database.run(statement)
    for _method, path, answer in console.walk(cookie, step=1 if end == "demoted" else 6):
        assert answer.status_code == status, path
        location = without_signature(answer.location or "")
        assert status == 403 or "sign-in?error_code=session_expired&next=console" in location, path


def test_form_of_another_page_or_site_is_refused_and_not_shown_again(
    console, carol, app_of_carol, passkey_of_carol, database
):
    cookie = signed_in(console, carol, app_of_carol)
    before = database.everything(*TABLES, "factor_challenges")
    for path in console.forms:
        token = {"form_token": forms.token_of(cookie)}
        sandboxed = {"Origin": "null", "Sec-Fetch-Site": "cross-site"}
        sibling = {"Origin": "https://www.example.com", "Sec-Fetch-Site": "same-site"}
        answers = [
            console.open("post", path, cookie, data=FIELDS),
            console.open("post", path, cookie, data=FIELDS | {"form_token": forms.token_of("another")}),
            console.open("post", path, cookie, data=FIELDS | token, headers=sandboxed),
            console.open("post", path, cookie, data=FIELDS | token, headers=sibling),
            console.open("post", path, cookie),
        ]
        assert [answer.status_code for answer in answers] == [403] * 5, path
        assert not [answer for answer in answers if FIELDS["email"] in answer.text], path
        assert console.open("post", path, cookie, json=FIELDS | token).status_code == 403, path
    assert database.everything(*TABLES, "factor_challenges") == before


def test_action_that_needs_a_factor_is_refused_without_one_and_with_a_wrong_one(
    console, carol, app_of_carol, ids, database
):
    cookie = signed_in(console, carol, app_of_carol)
    before = database.everything(*TABLES)
    chosen = {"query_string": {"id": ids["user_id"]}}
    pages = {path: chosen if "/chosen/" in path else {} for path in console.forms}
    paths = [
        path
        for path, options in pages.items()
        if "factor_code" in console.open("get", path, cookie, **options).text
    ]
    assert {path.rpartition("/")[2] for path in paths} >= {"remove", "addresses", "delete"}
    token = {"form_token": forms.token_of(cookie)}
    for path in paths:
        assert console.post(path, cookie).status_code == 400, path
        wrong = FIELDS | token | {"factor_code": app_of_carol.wrong_code(), "ids": ids["user_id"]}
        assert console.open("post", path, cookie, data=wrong).status_code == 422, path
        database.run("DELETE FROM failure_counts")
    assert database.everything(*TABLES) == before


def test_wrong_field_does_not_cost_a_code(console, carol, app_of_carol, ids):
    cookie = signed_in(console, carol, app_of_carol)
    token = {"form_token": forms.token_of(cookie), "factor_code": app_of_carol.code(1)}
    for path, wrong in (
        (f"/console/users/{ids['user_id']}/addresses", {"email": "nonsense"}),
        (f"/console/webhooks/{ids['webhook_id']}/change", {"description": "No event"}),
    ):
        assert console.open("post", path, cookie, data=token | wrong).status_code == 400, path
    remove = f"/console/users/{ids['user_id']}/factors/{ids['factor_id']}/remove"
    assert console.open("post", remove, cookie, data=token).status_code == 303


def test_each_action_and_the_challenges_of_confirmations_are_limited_per_administrator(
    console, make_app, carol, app_of_carol, passkey_of_carol, ids, database
):
    limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_CONSOLE": "1 per hour"}
    console.app = make_app(AUTH_BASE_URL=PUBLIC_URL, **limits)
    cookie = signed_in(console, carol, app_of_carol)
    user = f"/console/users/{ids['user_id']}"
    # A form without the token is not counted.
    assert console.open("post", f"{user}/ban", cookie, data=FIELDS).status_code == 403
    assert console.post(f"{user}/ban", cookie).status_code == 303
    response = console.post(f"{user}/ban", cookie)
    assert (response.status_code, "Retry-After" in response.headers) == (429, True)
    assert console.post(f"{user}/unban", cookie).status_code == 303
    database.run("DELETE FROM factor_challenges; DELETE FROM request_counts")
    assert [console.open("get", f"{user}/delete", cookie).status_code for _ in range(3)] == [200, 429, 429]
    assert [console.post(f"{user}/delete", cookie).status_code for _ in range(3)] == [400, 429, 429]
    assert database.count("factor_challenges") == 2
    assert database.count("users", "email = 'alice@example.com'") == 1


def test_disabled_console_has_no_routes(console, make_app, carol, app_of_carol):
    cookie = signed_in(console, carol, app_of_carol)
    for name in ("AUTH_CONSOLE", "AUTH_PAGES"):
        app = make_app(AUTH_BASE_URL=PUBLIC_URL, **{name: "false"})
        assert not list(console_routes(app))
        console.app = app
        for method, path, answer in console.walk(cookie, step=6):
            assert answer.status_code == 404, (method, path)


def in_order(path: str) -> tuple[bool, int, str]:
    """Return a key that sorts what a thing owns before the thing, and what deletes last."""
    return path.endswith("/delete"), -path.count("/"), path


class TestSuccess:
    @pytest.fixture
    def app(self, make_app):
        return make_app(AUTH_API_KEYS="true")

    def test_every_form_of_the_console_redirects_or_shows_a_secret_once(
        self, app, armed, codes, ids, alice, database
    ):
        insert_key(database, alice.id)
        ids["api_key_id"] = database.value("SELECT id::text FROM api_keys")
        rules = [path for method, path, _view in console_routes(app) if method == "post"]
        with answers_to_forms(app) as answers:
            for rule in sorted(rules, key=in_order):
                path, name = rule.format(**ids), rule.rpartition("/")[2].format(**ids)
                database.run(f"{READY}; {NEEDS.get(name, '')}")
                chosen = f"?id={alice.id}" if "/chosen/" in path else ""
                page = armed.visit(path + chosen)
                assert page.status == 200, path
                title = html.unescape(page.text.partition("<title>")[2].partition("</title>")[0])
                assert re.fullmatch(r"[^<>{}]+ · localhost:8000", title), (path, title)
                code = {"factor_code": codes.code(1)} if "factor_code" in page.text else {}
                armed.press(name, **FIELDS | FIELDS_BY_ACTION.get(name, {}) | code)
                assert armed.page.status == 200, f"{path}: {words(armed.page)}"
        check_answers(app, answers, of_console=True)
