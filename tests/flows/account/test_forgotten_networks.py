"""What takes an account back forgets the networks and browsers that somebody else's session made known."""

import pytest

from sql import queries
from tests.support.factors import set_up
from tests.support.links import follow, hand_in
from tests.support.pages import Visitor
from tests.support.services import ELSEWHERE, HOME, OFFICE, at
from tests.support.users import PASSWORD, session_of, sign_up_anonymously

NEW_PASSWORD = "Another-Horse-2"
THIEF = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}


@pytest.fixture
def client(make_app):
    client = make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_ANONYMOUS_ENABLED="true").test_client()
    client.environ_base["REMOTE_ADDR"] = OFFICE
    return client


@pytest.fixture
def admin(client, alice, service_role):
    return lambda **body: client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)


@pytest.fixture
def known(database):
    """The networks where users have passed every step; browsers have one name."""
    return lambda: {
        row.network.partition(" ")[0]
        for row in database.all("SELECT network FROM known_networks WHERE passed_at IS NOT NULL")
    }


@pytest.fixture
def thief(client, alice, known):
    """A browser elsewhere in which a thief of the password has signed in, also by the API."""
    assert log_in(client, HOME).status_code == 200
    browser = Visitor(client.application)
    browser.client.environ_base["REMOTE_ADDR"] = ELSEWHERE
    browser.signed_in_as(alice)
    assert known() == {HOME, ELSEWHERE, "browser"}
    return browser


def log_in(client, place, password=PASSWORD):
    body = {"email": "alice@example.com", "password": password}
    return client.post("/token?grant_type=password", json=body, headers=THIEF, **at(place))


def recover(client, outbox, admin):
    client.post("/recover", json={"email": "alice@example.com"})
    link = outbox.last("alice@example.com", "recovery").token
    session = session_of(client, hand_in(client, "recovery", link))
    assert session.put("/user", json={"password": NEW_PASSWORD}).status_code == 200


def undo(client, outbox, admin):
    follow(client, "undo", outbox.last("alice@example.com", "new_sign_in").token)


ACTS = {
    # The link and the new password prove the network where they were used.
    "recovery": (recover, {OFFICE}),
    "this was not me": (undo, set()),
    "ban that is lifted": (
        lambda _c, _o, admin: [admin(ban_duration="1h"), admin(ban_duration="none")],
        set(),
    ),
    "operator's password": (lambda _c, _o, admin: admin(password=NEW_PASSWORD), set()),
    "operator's address": (lambda _c, _o, admin: admin(email="new@example.com", email_confirm=True), set()),
    "promotion": (lambda _c, _o, admin: admin(role="admin"), set()),
}


@pytest.mark.parametrize("act", ACTS)
def test_network_and_browser_of_a_thief_are_forgotten(thief, client, outbox, admin, known, act):
    perform, left = ACTS[act]
    perform(client, outbox, admin)
    assert known() == left


ORDINARY = {
    "password": lambda own: own.put("/user", json={"password": NEW_PASSWORD}),
    "first factor": set_up,
    "sign out everywhere": lambda own: own.post("/logout?scope=global"),
}


@pytest.mark.parametrize("act", ORDINARY)
def test_ordinary_change_forgets_nothing(thief, client, known, act):
    own = session_of(client, log_in(client, HOME))
    client.environ_base["REMOTE_ADDR"] = HOME
    ORDINARY[act](own)
    assert known() == {HOME, ELSEWHERE, "browser"}


def test_sign_in_of_the_thief_after_a_recovery_is_told_and_counts_as_a_strangers(
    thief, client, alice, outbox, admin, database
):
    recover(client, outbox, admin)
    database.run("DELETE FROM failure_counts")
    assert log_in(client, ELSEWHERE, "wrong").status_code == 401
    # From a known network, only the network counts.
    assert database.count("failure_counts", "kind = 'account'") == 1
    assert log_in(client, OFFICE, "wrong").status_code == 401
    assert database.value("SELECT count FROM failure_counts WHERE kind = 'account'") == 1
    thief.cookies = [cookie for cookie in thief.cookies if cookie.name == "latchkey_known"]
    database.run("DELETE FROM outbox")
    assert log_in(client, OFFICE, NEW_PASSWORD).status_code == 200
    assert outbox.kinds() == []
    thief.visit("/sign-in")
    thief.submit(email=alice.email, password=NEW_PASSWORD)
    assert thief.session_cookie
    assert outbox.kinds() == [("new_sign_in", alice.email)]


def test_link_still_lets_the_owner_in_where_a_thief_guesses(thief, client, outbox, admin, database, known):
    """The three networks where a link was used keep tries of their own."""
    recover(client, outbox, admin)
    assert database.count("known_networks", f"network = '{OFFICE}' AND mail_proved_at IS NOT NULL") == 1
    for number in range(12):
        log_in(client, f"192.0.2.{number}", "wrong")
    assert log_in(client, OFFICE, NEW_PASSWORD).status_code == 200


def test_owner_of_an_address_forgets_the_network_of_the_anonymous_session_that_asked(client, outbox, known):
    client.environ_base["REMOTE_ADDR"] = ELSEWHERE
    stranger = sign_up_anonymously(client)
    assert stranger.put("/user", json={"email": "dave@example.com"}).status_code == 200
    assert known() == {ELSEWHERE}
    client.environ_base["REMOTE_ADDR"] = HOME
    follow(client, "email_change", outbox.last("dave@example.com", "email_change").token)
    assert known() == set()


def test_network_of_an_anonymous_user_who_proves_an_address_there_stays_known(client, outbox, known):
    client.environ_base["REMOTE_ADDR"] = HOME
    own = sign_up_anonymously(client)
    assert own.put("/user", json={"email": "dave@example.com"}).status_code == 200
    follow(client, "email_change", outbox.last("dave@example.com", "email_change").token)
    assert known() == {HOME}


@pytest.mark.parametrize("first", ["act", "browser"])
def test_browser_of_a_session_that_ends_meanwhile_is_forgotten(
    thief, alice, parts, database, known, admin, first
):
    """A sign-in makes its browser known after its act, perhaps while another act takes the account back."""
    session_id = database.value("SELECT session_id::text FROM browser_sessions")
    calls = {
        "act": lambda: admin(password=NEW_PASSWORD).status_code,
        "browser": lambda: queries.know_browser(parts.db, session_id=session_id, browser="browser other"),
    }
    with database.locked("users", alice.id) as lock:
        results = [lock.start(calls[name]) for name in sorted(calls, key=lambda name: name != first)]
    [result.result() for result in results]
    assert known() == set()
