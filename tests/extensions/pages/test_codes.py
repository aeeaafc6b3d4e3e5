"""Codes that our pages ask for work for ten minutes, in the browser that requested them (ASVS 6.5.5, 6.6.2)."""

from typing import Any

import pytest

from tests.support.answers import assert_error
from tests.support.checked_rows import statements_run
from tests.support.links import PHONE, SITE, counted, hand_in, later, type_in
from tests.support.pages import Visitor, unsigned, words
from tests.support.users import DAVE, MALLORYS_PASSWORD, PASSWORD

WRONG = "This code is wrong, no longer valid, or was requested in another browser."
# For each page that asks for a code: the form's action, the type of verification, and where its code leads.
PAGES = {
    "sign-in": ("sign-in/code", "magiclink", "account"),
    "forgot-password": ("forgot-password", "recovery", "new-password"),
    "sign-up": ("sign-up", "signup", "account"),
}


@pytest.fixture
def request_code(outbox):
    """Request a code on a page, and return its message."""

    def request_code(visitor: Visitor, page: str, address: str, password: str = PASSWORD) -> Any:
        visitor.visit(f"/{page}")
        fields = {"password": password} if page == "sign-up" else {}
        visitor.press(PAGES[page][0], email=address, **fields)
        assert "Check your" in visitor.page.text
        return outbox.last(address)

    return request_code


def address_of(page: str) -> str:
    return DAVE if page == "sign-up" else "alice@example.com"


def assert_refused(visitor: Visitor, page: str, address: str, code: str) -> None:
    visitor.visit("/sign-in")
    assert WRONG in words(visitor.type_code(page, address, code))
    assert visitor.session_cookie is None


@pytest.mark.usefixtures("alice")
class TestBrowser:
    @pytest.mark.parametrize("page", list(PAGES))
    def test_code_works_only_in_the_browser_that_requested_it(
        self, app, visitor, client, bob, database, request_code, page
    ):
        address, (_, type, leads_to) = address_of(page), PAGES[page]
        message = request_code(visitor, page, address)
        waiting_page, mallory = visitor.page, Visitor(app)
        assert_refused(mallory, page, address, message.code)
        request_code(mallory, "sign-in", bob.email)
        for path in PAGES:
            assert_refused(mallory, path, address, message.code)
        for each in (type, "email"):
            assert_error(type_in(client, each, address, message.code), 403, "otp_expired")
        # Others cannot use up its tries.
        is_for_address = "subject IN (SELECT id::text FROM one_time_tokens WHERE target = %(to)s)"
        assert database.value(f"SELECT count(*) FROM failure_counts WHERE {is_for_address}", to=address) == 0
        visitor.page = waiting_page
        assert visitor.press(f"{page}/verify", code=message.code).url == f"{SITE}/{leads_to}"

    def test_code_by_sms_works_only_in_the_browser_that_requested_it(
        self, app, visitor, client, database, request_code
    ):
        database.run("UPDATE users SET phone = %(phone)s, phone_confirmed_at = now()", phone=PHONE)
        message = request_code(visitor, "sign-in", PHONE)
        waiting_page = visitor.page
        assert_refused(Visitor(app), "sign-in", PHONE, message.code)
        assert_error(type_in(client, "sms", PHONE, message.code), 403, "otp_expired")
        visitor.page = waiting_page
        assert visitor.press("sign-in/verify", code=message.code).url == f"{SITE}/account"

    def test_api_refuses_a_pages_code_as_a_wrong_one_for_the_same_work(
        self, visitor, client, parts, database, request_code
    ):
        message = request_code(visitor, "sign-in", "alice@example.com")
        answers = []
        for code in (message.code, message.wrong_code):
            before = statements_run()
            answer = type_in(client, "magiclink", message.to, code)
            answers.append((answer.status_code, answer.text, statements_run() - before))
        assert answers[0] == answers[1]
        assert counted(database, f"code {message.to}") == 2

    def test_strangers_request_on_a_page_does_not_void_a_code(self, app, visitor, request_code):
        message = request_code(visitor, "sign-in", "alice@example.com")
        for page in ("sign-in", "forgot-password"):
            request_code(Visitor(app), page, "alice@example.com")
        assert visitor.press("sign-in/verify", code=message.code).url == f"{SITE}/account"

    def test_code_requested_at_the_api_works_on_a_page(self, visitor, client, outbox):
        client.post("/magiclink", json={"email": "alice@example.com"})
        visitor.visit("/sign-in")
        code = outbox.last().code
        visitor.type_code("sign-in", "alice@example.com", code)
        assert visitor.page.url == f"{SITE}/account"


@pytest.mark.usefixtures("alice")
def test_twenty_tries_a_day_are_those_of_all_browsers(app, visitor, client, outbox, request_code):
    """More browsers do not give more guesses."""
    for number in range(20):
        if number % 4 == 0:
            mallory = Visitor(app)
            message = request_code(mallory, "sign-in", "alice@example.com")
        mallory.press("sign-in/verify", code=message.wrong_code)
    message = request_code(visitor, "sign-in", "alice@example.com")
    assert WRONG in words(visitor.press("sign-in/verify", code=message.code))
    client.post("/magiclink", json={"email": message.to})
    assert type_in(client, "magiclink", message.to, outbox.last().code).status_code == 403
    assert hand_in(client, "magiclink", message.token).status_code == 200


@pytest.mark.usefixtures("alice")
class TestLifetime:
    @pytest.mark.parametrize("page", list(PAGES))
    def test_code_expires_after_ten_minutes_and_its_link_after_an_hour(
        self, visitor, client, database, request_code, page
    ):
        message = request_code(visitor, page, address_of(page))
        later(database, mins=10)
        assert WRONG in words(visitor.press(f"{page}/verify", code=message.code))
        later(database, mins=49)
        assert hand_in(client, PAGES[page][1], message.token).status_code == 200

    def test_mail_and_page_tell_the_lifetimes(self, visitor, client, mailbox, request_code):
        request_code(visitor, "sign-in", "alice@example.com")
        assert "It expires in ten minutes." in words(visitor.page)
        client.post("/magiclink", json={"email": "alice@example.com"})
        page, api = (letter.text for letter in mailbox.messages())
        code, link = "code expires in 10 minutes (", "link expires in 1 hour ("
        assert (code in page, link in page, code in api) == (True, True, False)


class TestAccount:
    @pytest.fixture
    def browsers(self, app, alice):
        """Two browsers of Alice."""
        return [Visitor(app).signed_in_as(alice) for _ in range(2)]

    def test_new_phone_is_confirmed_in_the_browser_that_requested_its_code(
        self, browsers, client, outbox, database
    ):
        visitor, other = browsers
        visitor.visit("/account/phone")
        visitor.submit(phone=PHONE)
        code = outbox.last(PHONE).code
        assert_error(type_in(client, "phone_change", PHONE, code), 403, "otp_expired")
        other.visit("/account")
        assert WRONG in words(other.type_code("account/phone", PHONE, code))
        lifetime = "extract(epoch FROM code_expires_at - created_at)::int"
        assert database.value(f"SELECT {lifetime} FROM one_time_tokens") == 600
        assert unsigned(visitor.press("verify", code=code)) == f"{SITE}/account?done=phone"

    def test_proof_by_code_is_given_in_the_browser_that_requested_it(self, browsers, alice, outbox, database):
        visitor, other = browsers
        visitor.visit("/account/confirm?next=email")
        visitor.press("account/confirm/code")
        message = outbox.last(alice.email)
        assert message.lifetime == 600
        session = alice.sign_in()
        response = session.post("/reauthenticate", json={"nonce": message.code})
        assert_error(response, 400, "reauthentication_not_valid", details=response.json["details"])
        other.visit("/account/confirm")
        assert WRONG in words(other.send("/account/confirm", nonce=message.code))
        assert visitor.submit(nonce=message.code).url == f"{SITE}/account/email"
        session.get("/reauthenticate")
        other.visit("/account/confirm")
        other.send("/account/confirm", nonce=outbox.last(alice.email).code, next="email")
        assert other.page.url == f"{SITE}/account/email"


class TestTwoSignUps:
    """The owner and a stranger sign up with one address, on our pages."""

    @pytest.mark.parametrize(
        ("address", "way", "order"),
        [(DAVE, "code", 1), (PHONE, "resent code", -1), (DAVE, "code of the API", -1)],
    )
    def test_owner_chooses_the_password(
        self, app, visitor, client, outbox, database, request_code, address, way, order
    ):
        mallory, kind = Visitor(app), "phone" if address == PHONE else "email"
        codes = {}
        for person, password in [(visitor, PASSWORD), (mallory, MALLORYS_PASSWORD)][::order]:
            codes[id(person)] = request_code(person, "sign-up", address, password).code
        code, mallorys_code = codes[id(visitor)], codes[id(mallory)]
        assert WRONG in words(visitor.press("sign-up/verify", code=mallorys_code))
        if way == "resent code":
            visitor.press("sign-up/code")
            code = outbox.last(address).code
        elif way == "code of the API":
            client.post(
                "/signup", json={kind: address, "password": MALLORYS_PASSWORD, "data": {"name": "Mallory"}}
            )
            code = outbox.last(address).code
        page = visitor.press("sign-up/verify", code=code)
        assert unsigned(page) == f"{SITE}/new-password?done=password_removed"
        assert database.one("SELECT password_hash, user_metadata FROM users") == (None, {})
        visitor.submit(password="Fresh-Horse-2")
        passwords = {"Fresh-Horse-2": 200, PASSWORD: 401, MALLORYS_PASSWORD: 401}
        for password, status in passwords.items():
            body = {kind: address, "password": password}
            assert client.post("/token?grant_type=password", json=body).status_code == status
        mallory.press("sign-up/verify", code=mallorys_code)
        assert mallory.session_cookie is None

    @pytest.mark.parametrize(
        ("page", "address", "is_resent"), [("sign-in", DAVE, True), ("forgot-password", PHONE, False)]
    )
    def test_owner_who_waits_for_another_code_keeps_nothing_of_a_strangers_sign_up(
        self, visitor, client, outbox, database, page, address, is_resent
    ):
        """Nothing was sent before: the stranger's code is the first, and the page asks for one."""
        kind = "phone" if address == PHONE else "email"
        visitor.visit(f"/{page}")
        visitor.press(PAGES[page][0], email=address)
        assert outbox.sent() == []
        stranger = {kind: address, "password": MALLORYS_PASSWORD}
        assert client.post("/signup", json=stranger | {"data": {"name": "Mallory"}}).status_code == 201
        if is_resent:
            client.post("/resend", json={"type": "signup" if kind == "email" else "sms", kind: address})
        page_after = visitor.press(f"{page}/verify", code=outbox.last(address, "signup").code)
        assert unsigned(page_after) == f"{SITE}/new-password?done=password_removed"
        assert database.one("SELECT password_hash, user_metadata FROM users") == (None, {})
        response = client.post("/token?grant_type=password", json=stranger)
        assert_error(response, 401, "invalid_credentials")
        visitor.submit(password="Fresh-Horse-2")
        answer = client.post("/token?grant_type=password", json=stranger | {"password": "Fresh-Horse-2"})
        assert answer.status_code == 200
