"""The notice of a sign-in from a network and a browser that are both new to the user."""

import pytest

from tests.support.factors import raised, set_up
from tests.support.links import PHONE, WITH_CHALLENGE, hand_in, type_in
from tests.support.pages import Visitor
from tests.support.services import ELSEWHERE, HOME, OFFICE, at
from tests.support.users import PASSWORD, WRONG_PASSWORD, session_of

pytest_plugins = ["tests.support.oauth_fixtures"]
NOTICE = "new_sign_in"
# The user agent of the user's browser, which the thief's proxy forwards.
FIREFOX = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}


def log_in(client, person, place, password=PASSWORD, path="/token?grant_type=password"):
    body = {"email": person.email, "password": password}
    return client.post(path, json=body, headers=FIREFOX, **at(place))


def notified_addresses(outbox):
    return [message.to for message in outbox.sent(kind=NOTICE)]


@pytest.fixture
def alice_at_home(client, alice):
    """A user who has signed in at home, by an application."""
    assert log_in(client, alice, HOME).status_code == 200
    return alice


@pytest.mark.parametrize("path", ["/token?grant_type=password", "/login-admin"])
def test_user_is_told_once_of_a_network_and_of_no_wrong_password(client, carol, outbox, path):
    outcomes = []
    for place, password in [(HOME, PASSWORD), (HOME, PASSWORD), (ELSEWHERE, WRONG_PASSWORD),
                            (ELSEWHERE, PASSWORD), (ELSEWHERE, PASSWORD), (HOME, PASSWORD)]:  # fmt: skip
        outcomes.append(
            (log_in(client, carol, place, password, path).status_code, len(notified_addresses(outbox)))
        )
    assert outcomes == [(200, 0), (200, 0), (401, 0), (200, 1), (200, 1), (200, 1)]
    (message,) = outbox.sent(carol.email)
    assert (message.channel, bool(message.token), message.variables["lacks_step"]) == ("email", True, False)


def test_notice_and_session_are_one_transaction(client, alice_at_home, outbox, database):
    sessions = database.count("sessions")
    database.run("ALTER TABLE outbox ADD CONSTRAINT full_table CHECK (kind <> 'new_sign_in')")
    try:
        assert log_in(client, alice_at_home, ELSEWHERE).status_code == 500
    finally:
        database.run("ALTER TABLE outbox DROP CONSTRAINT full_table")
    assert (database.count("sessions"), notified_addresses(outbox)) == (sessions, [])
    assert log_in(client, alice_at_home, ELSEWHERE).status_code == 200
    assert notified_addresses(outbox) == [alice_at_home.email]


def test_notice_is_a_setting(make_app, alice_at_home, outbox):
    client = make_app(AUTH_NOTIFY_SIGN_IN="false").test_client()
    assert log_in(client, alice_at_home, ELSEWHERE).status_code == 200
    assert outbox.kinds() == []


class TestBrowser:
    @pytest.fixture
    def browser(self, app, alice):
        return Visitor(app).signed_in_as(alice)

    def sign_in_at(self, browser, person, place):
        """Sign in elsewhere, once the cookie of the last session is gone."""
        browser.cookies = [cookie for cookie in browser.cookies if cookie.name != "latchkey"]
        browser.client.environ_base["REMOTE_ADDR"] = place
        browser.signed_in_as(person)

    def test_browser_that_signed_in_before_is_known_elsewhere_but_not_to_another_user(
        self, browser, alice, bob, outbox
    ):
        self.sign_in_at(browser, alice, ELSEWHERE)
        assert notified_addresses(outbox) == []
        assert bob.try_to_sign_in().status_code == 200
        self.sign_in_at(browser, bob, ELSEWHERE)
        self.sign_in_at(browser, bob, OFFICE)
        assert notified_addresses(outbox) == [bob.email]

    def test_cookie_that_the_service_did_not_set_is_not_known(self, app, browser, alice, outbox):
        cookie = browser.cookie("latchkey_known").value
        for number, value in enumerate(["A" * 43, "x", "", cookie]):
            stranger = Visitor(app)
            stranger.plant("latchkey_known", value)
            self.sign_in_at(stranger, alice, f"192.0.2.{number}")
        (message,) = outbox.sent(kind=NOTICE)[:1]
        assert (message.to, len(outbox.sent(kind=NOTICE))) == (alice.email, 2)
        assert outbox.sent(kind=NOTICE)[1].variables["times"] == 2


class TestMessages:
    def test_sign_in_by_a_message_to_the_same_address_is_not_told(self, client, alice_at_home, outbox):
        client.post("/magiclink", json={"email": alice_at_home.email})
        client.environ_base["REMOTE_ADDR"] = ELSEWHERE
        answer = hand_in(client, "magiclink", outbox.last(alice_at_home.email, "magiclink").token)
        assert (answer.status_code, notified_addresses(outbox)) == (200, [])
        assert (log_in(client, alice_at_home, ELSEWHERE).status_code, notified_addresses(outbox)) == (200, [])

    def test_sign_in_by_sms_is_told_by_email(self, client, alice_at_home, outbox, database):
        database.run(
            "UPDATE users SET phone = %(phone)s, phone_confirmed_at = now(), phone_proved = true", phone=PHONE
        )
        client.post("/otp", json={"phone": PHONE})
        client.environ_base["REMOTE_ADDR"] = ELSEWHERE
        assert type_in(client, "sms", PHONE, outbox.last(PHONE).code).status_code == 200
        assert notified_addresses(outbox) == [alice_at_home.email]


def test_sign_in_that_stops_at_the_second_step_is_told_and_makes_no_network_known(
    client, alice_at_home, outbox
):
    app, _ = set_up(alice_at_home.sign_in())
    before = len(outbox.sent())
    sessions = [session_of(client, log_in(client, alice_at_home, place)) for place in (ELSEWHERE, ELSEWHERE)]
    (message,) = outbox.sent()[before:]
    assert (message.kind, message.variables["lacks_step"], message.variables["times"]) == (NOTICE, True, 2)
    client.environ_base["REMOTE_ADDR"] = ELSEWHERE
    assert raised(sessions[1], app).claims["aal"] == "aal2"
    assert (log_in(client, alice_at_home, ELSEWHERE).status_code, len(outbox.sent())) == (200, before + 1)


@pytest.mark.parametrize("query", [{}, WITH_CHALLENGE], ids=["tokens", "code"])
def test_notice_says_that_the_step_which_all_users_need_is_missing(
    make_service, google, outbox, database, query
):
    service = make_service(AUTH_MFA_REQUIRED="all")
    google.person = {"sub": "dave-at-google", "email": "dave@example.com", "email_verified": True}
    service.sign_in("google")
    database.run("UPDATE known_networks SET network = %(network)s", network=HOME)
    service.sign_in("google", **query)
    (message,) = outbox.sent(kind=NOTICE)
    assert message.variables["lacks_step"] is True


@pytest.mark.parametrize("query", [{}, WITH_CHALLENGE], ids=["tokens", "code"])
def test_sign_in_by_a_provider_from_a_new_network_is_told(service, google, outbox, database, query):
    google.person = {"sub": "dave-at-google", "email": "dave@example.com", "email_verified": True}
    service.signed_in("google")
    assert outbox.kinds() == []
    database.run("UPDATE known_networks SET network = %(network)s", network=HOME)
    page = service.sign_in("google", **query)
    assert ("error" not in page.url, notified_addresses(outbox)) == (True, ["dave@example.com"])
    service.sign_in("google", **query)
    assert len(outbox.sent()) == 1
