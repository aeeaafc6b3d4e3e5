"""Pages without the database, over a limit, or requested by a program: each shows what to do next."""

import re
from urllib.parse import urljoin

import pytest

from auth.core.text.catalogues import built_in
from auth.html.forms import token_of
from auth.rules.ends import SIZES
from tests.support.answers import NO_ID
from tests.support.cases import cases
from tests.support.factors import set_up
from tests.support.forwarder import Forwarder
from tests.support.links import PHONE, SITE, later, path
from tests.support.pages import Visitor, unsigned, words
from tests.support.users import DAVE, PASSWORD

AWAY = "available right now. Try again shortly."
FIELDS = {"password": PASSWORD}


@pytest.fixture
def forwarder(database_url):
    with Forwarder(database_url) as forwarder:
        yield forwarder


class TestWithoutDatabase:
    @pytest.fixture
    def app(self, make_app, forwarder):
        return make_app(fresh=True, DATABASE_URL=forwarder.database_url)

    @pytest.mark.parametrize(
        ("url", "action"),
        [("/sign-in", "sign-in"), ("/sign-in", "sign-in/code"), ("/sign-up", "sign-up")],
    )
    def test_form_comes_back_with_what_was_typed_and_works_later(self, visitor, forwarder, url, action):
        visitor.visit(url)
        forwarder.close()
        page = visitor.press(action, email=DAVE, password=PASSWORD)
        assert (page.status, page.headers["Retry-After"]) == (503, "2")
        assert AWAY in page.text
        assert f'value="{DAVE}"' in page.text
        assert PASSWORD not in page.text
        forwarder.open()
        assert visitor.press(action, email=DAVE, password=PASSWORD).status in (200, 403)

    def test_code_stays_good_and_pages_offer_another_try(self, visitor, forwarder, alice, client, outbox):
        client.post("/recover", json={"email": alice.email})
        token = outbox.last(alice.email).token
        visitor.visit("/sign-in")
        visitor.press("sign-in/code", email=alice.email)
        code = outbox.last(alice.email, "magiclink").code
        forwarder.close()
        waiting_page = visitor.page
        page = visitor.press("sign-in/verify", code=code)
        assert (page.status, AWAY in page.text, 'href="">Try again</a>' in page.text) == (503, True, False)
        forwarder.open()
        visitor.visit(waiting_page.url)
        assert visitor.press("sign-in/verify", code=code).url.endswith("/account")
        forwarder.close()
        for page in (visitor.visit("/account"), visitor.visit(path("recovery", token))):
            assert (page.status, AWAY in page.text) == (503, True)
        assert 'href="">Try again</a>' in page.text
        assert token not in page.text
        forwarder.open()
        assert alice.email in visitor.visit("/account").text


class TestLimits:
    """The pages and the API count the same requests."""

    def test_wrong_passwords_are_limited_and_show_when_to_come_back(self, make_app, alice):
        limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_LOGIN_FAILURES": "1 per 2 days"}
        visitor = Visitor(make_app(**limits))
        visitor.visit("/sign-in")
        visitor.press("sign-in", email=alice.email, password="Wrong-Horse-1")
        page = visitor.press("sign-in", email=alice.email, password=PASSWORD)
        assert (page.status, "Retry-After" in page.headers) == (429, True)
        assert "Try again in 48 hours, or sign in with a code." in page.text

    def test_second_step_says_when_to_come_back_and_which_other_ways_there_are(self, make_app, alice):
        app = make_app(AUTH_RATE_LIMITS_ENABLED="true")
        codes = set_up(alice.open_session())[0]
        visitor = Visitor(app).signed_in_as(alice)
        pages = [visitor.press("second-step", code=codes.wrong_code()) for _ in range(25)]
        limited = next(page for page in pages if page.status == 429)
        assert re.search(r"Too many wrong codes\. Try again in [^.]+\.<", limited.text)
        assert "Other ways to sign in Sign out and sign in with a code we send you" in words(limited)

    def test_code_can_still_be_entered_after_asking_for_too_many(self, make_app, alice, outbox):
        """The forms that request another code are next to the field for the code that was sent before."""
        limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_RECOVER": "1 per hour"}
        visitor = Visitor(make_app(**limits))
        visitor.visit("/sign-in")
        visitor.press("sign-in/code", email=alice.email)
        assert visitor.press("sign-in/code").status == 429
        assert visitor.press("sign-in/verify", code=outbox.last(alice.email).code).url == f"{SITE}/account"


class TestStories:
    """Each story that succeeds in another test also fails with a next step."""

    @cases(
        ("url", "action", "fields"),
        [
            ("/account/email", "account/email", {"email": "new@example.com"}),
            ("/account", "sessions/end-others", {}),
            ("/new-password", "new-password", FIELDS),
            ("/second-step", "second-step", {"code": "123456"}),
        ],
    )
    def test_form_of_a_user_leads_on_without_the_database_and_after_the_end_of_the_session(
        self, make_app, forwarder, alice, database, url, action, fields
    ):
        database.run("DELETE FROM factors")
        if url == "/second-step":
            set_up(alice.open_session())
        app = make_app(DATABASE_URL=forwarder.database_url)
        visitor = Visitor(app).with_session_of(alice)
        alice.open_session()
        form = visitor.visit(url)
        forwarder.close()
        page = visitor.press(action, **fields)
        assert (page.status, AWAY in page.text) == (503, True)
        assert '">Your account</a>' in page.text
        forwarder.open()
        visitor.page = form
        database.run("UPDATE sessions SET ended_at = now(), end_reason = 'banned' WHERE ended_at IS NULL")
        page = visitor.press(action, **fields)
        assert (unsigned(page), page.status) == (f"{SITE}/sign-in?error_code=session_expired", 200)
        assert "Your session has ended. Please sign in again." in page.text

    def test_sign_in_page_says_what_ended_the_session(self, visitor, database, alice):
        visitor.with_session_of(alice)
        texts = built_in("pages")["en"]
        others = {reason for reason, size in SIZES.items() if size == "others"}
        explained = {name.removeprefix("ended.") for name in texts if name.startswith("ended.")}
        assert others | {"recovered", "ended_by_user", "promoted"} == explained
        for reason in SIZES:
            database.run("UPDATE sessions SET ended_at = now(), end_reason = %(reason)s", reason=reason)
            text = texts[f"ended.{reason}"] if reason in explained else texts["errors.session_expired"]
            assert text in visitor.visit("/account").text
            assert (text in visitor.visit("/sign-in").text) == (reason in explained)

    def test_end_of_another_browsers_session_is_not_explained(self, app, alice, database):
        alice.open_session()
        database.run("UPDATE sessions SET ended_at = now(), end_reason = 'factor_added'")
        other = Visitor(app)
        other.visit("/sign-in")
        page = other.visit(f"/sign-in?{other.result_query(error_code='session_expired')}")
        assert ("signed out" in page.text, "Your session has ended." in page.text) == (False, True)

    def test_form_without_a_cookie_gets_a_page_that_says_so(self, visitor):
        visitor.visit("/sign-in")
        visitor.cookies = []
        page = visitor.press("sign-in", email=DAVE, **FIELDS)
        assert (page.status, "Your browser didn’t send a cookie" in words(page)) == (403, True)

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
        for _ in range(2):
            wrong = visitor.post(f"{SITE}/second-step", form | {"code": app.wrong_code()})
            assert "That code is wrong." in wrong.text
        page = visitor.post(f"{SITE}/second-step", form | {"code": app.code()})
        assert (page.status, "Try again in an hour." in page.text) == (429, True)

    @cases("address", ["alice@example.com", "nobody@example.com", PHONE])
    def test_next_code_has_to_be_waited_for_and_pages_say_how_long(
        self, make_app, alice, database, outbox, address
    ):
        """This does not depend on whether the address has a user."""
        visitor = Visitor(make_app(AUTH_RATE_LIMITS_ENABLED="true"))
        visitor.visit("/sign-in")
        visitor.press("sign-in/code", email=address)
        pages = []
        for action in ("sign-in/verify", "sign-in/code", "sign-in/verify"):
            page = visitor.press(action, **({"code": "000000"} if "verify" in action else {}))
            assert "You can request another code in a minute." in page.text
            assert int(page.text.partition('data-again-in="')[2].partition('"')[0]) in range(50, 61)
            pages.append((page.status, "send a new code yet. Try again in a minute." in page.text))
        assert pages == [(403, False), (200, True), (403, False)]
        later(database, mins=1)
        assert visitor.press("sign-in/code").status == 200
        assert len(outbox.sent(address)) == (2 if address == alice.email else 0)


@pytest.mark.parametrize(
    ("is_signed_in", "path", "link", "target"),
    [
        (False, "/nothing", "Sign in", "/sign-in"),
        (True, "/nothing", "Your account", "/account"),
        (True, "/console/nothing", "Back to the console", "/console"),
    ],
)
def test_unknown_address_leads_to_where_its_visitor_can_go(app, carol, is_signed_in, path, link, target):
    visitor = Visitor(app).with_session_of(carol) if is_signed_in else Visitor(app)
    page = visitor.visit(path)
    assert page.status == 404
    match = re.search(rf'<a class="button" href="([^"]+)">{link}</a>', page.text)
    assert match
    assert urljoin(page.url, match[1]) == SITE + target
    assert visitor.visit(target).status == 200


class TestNamedFault:
    """A page names the fault that happened. It only asks for the request's ID after a failure of ours."""

    UNKNOWN_FAULT = "tell us this ID"
    WRONG_QUERIES = (
        "",
        "provider=google&provider=x&token=1&token=2&type=signup&next=1&next=2&redirect_to=1&redirect_to=2",
        "provider=%00&token=%00&type=%00&next=%00&redirect_to=%00&code_challenge=%00&kind=%00&id=%00",
        "provider=google&token=z&type=z&next=z&redirect_to=javascript:1&code_challenge=z&kind=z&id=z&page=0&done=z",
    )

    @pytest.fixture
    def session(self, whole_app, alice):
        """The cookie of a browser that is signed in."""
        cookie = Visitor(whole_app).with_session_of(alice).session_cookie
        assert cookie
        return cookie.value

    @pytest.fixture
    def request_all(self, whole_app, session):
        """Send a request of two browsers to each route, and return the pages with their paths."""
        client = whole_app.test_client(use_cookies=False)
        rules = [
            rule for rule in whole_app.url_map.iter_rules() if not rule.rule.startswith(("/docs", "/static"))
        ]

        def ask(method, **options):
            for rule in rules:
                for cookies in ("", f"latchkey={session}; __Host-latchkey={session}"):
                    path = re.sub("<[^>]+>", NO_ID, rule.rule)
                    headers = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin", "Cookie": cookies}
                    if method in rule.methods:
                        answer = client.open(path, method=method, headers=headers, **options)
                        if answer.mimetype == "text/html":
                            yield path, answer

        return ask

    @cases(
        ("status", "text", "options"),
        [
            (413, "What you entered is too long.", {"data": {"name": "x" * 70_000}}),
            (
                415,
                "didn’t send this form as it should",
                {"data": {"name": "x"}, "content_type": "multipart/form-data"},
            ),
            (415, "didn’t send this form as it should", {"data": "name=x", "content_type": "text/plain"}),
        ],
    )
    def test_form_that_cannot_be_read_is_named(self, request_all, status, text, options):
        answers = [*request_all("POST", **options)]
        assert len(answers) > 100
        assert {answer.status_code for _, answer in answers} == {status}
        paths = [
            path for path, answer in answers if text not in answer.text and not path.startswith("/console")
        ]
        assert paths == []
        assert [path for path, answer in answers if self.UNKNOWN_FAULT in answer.text] == []

    @cases("query", WRONG_QUERIES)
    def test_link_that_is_wrong_is_named(self, request_all, query):
        answers = [*request_all("GET", query_string=query)]
        assert {200, 400} <= {answer.status_code for _, answer in answers}
        assert [path for path, answer in answers if self.UNKNOWN_FAULT in answer.text] == []
        pages = [answer for path, answer in answers if path == "/authorize"]
        assert all(
            "Something in this link isn’t right." in answer.text or "provider" in answer.text
            for answer in pages
        )

    def test_malformed_values_of_forms_are_named(self, request_all, session):
        names = (
            "email password code name kind id provider phone next user_code challenge_id credential action slug role"
            " scopes"
        )
        form = dict.fromkeys(names.split(), "z" * 300) | {"form_token": token_of(session)}
        answers = [*request_all("POST", data=form)]
        assert {400} <= {answer.status_code for _, answer in answers}
        assert [path for path, answer in answers if self.UNKNOWN_FAULT in answer.text] == []
