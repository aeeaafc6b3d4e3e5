"""Whose window an authorization request counts in: that of the signed-in user, else that of the network."""

import secrets

import pytest

from tests.support.answers import challenge
from tests.support.links import SITE
from tests.support.openid import authorize_path, insert_client
from tests.support.openid_flow import make_application
from tests.support.pages import Visitor

MOST = 20


@pytest.fixture
def app(make_app):
    limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_AUTHORIZE": f"{MOST} per hour"}
    return make_app(**limits)


@pytest.fixture
def client_id(database) -> str:
    return insert_client(database)


def statuses(app, browser: Visitor, path: str, times: int) -> list[int]:
    (cookie,) = browser.cookies
    client = app.test_client(use_cookies=False)
    headers = {"Cookie": f"{cookie.name}={cookie.value}"}
    return [client.get(path, headers=headers).status_code for _ in range(times)]


def test_people_of_an_office_have_a_window_each_and_strangers_there_share_one(
    app, client_id, alice, bob, carol
):
    path = authorize_path(client_id)
    stranger = app.test_client()
    assert [stranger.get(path).status_code for _ in range(MOST + 1)] == [302] * MOST + [429]
    for person in (alice, bob, carol):
        assert statuses(app, Visitor(app).with_session_of(person), path, MOST) == [302] * MOST
    # A window is the user's, not the browser's.
    assert statuses(app, Visitor(app).with_session_of(alice), path, 1) == [429]


def test_code_of_an_approved_request_counts_for_its_user(app, client_id, alice, bob):
    path = f"/oauth/continue?authorization_id={'x' * 43}&approval=x"
    for person in (alice, bob):
        assert statuses(app, Visitor(app).with_session_of(person), path, MOST + 1) == [404] * MOST + [429]
    assert app.test_client().get(path).status_code == 404


def test_form_of_another_site_brings_no_session_and_counts_for_its_network(app, database, alice):
    application = make_application(app.test_client(), database)
    query = authorize_path(application.client.id).partition("?")[2]
    client = app.test_client()

    def send():
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return client.post("/oauth/authorize", data=query, headers=headers)

    assert [send().status_code for _ in range(MOST + 1)] == [303] * MOST + [429]
    # The user who comes by a link is served.
    visitor = Visitor(app).with_session_of(alice)
    assert application.begin(visitor).url.startswith(f"{SITE}/oauth/consent?")


def test_session_that_has_ended_counts_for_its_network(app, database, client_id, alice):
    visitor = Visitor(app).with_session_of(alice)
    database.run("UPDATE sessions SET ended_at = now(), end_reason = 'logout'")
    path = authorize_path(client_id)
    assert statuses(app, visitor, path, MOST) == [302] * MOST
    assert app.test_client().get(path).status_code == 429


def test_cookie_of_no_session_counts_for_its_network(app, client_id, alice):
    """A stranger could send another one with each request."""
    (cookie,) = Visitor(app).with_session_of(alice).cookies
    client, path = app.test_client(use_cookies=False), authorize_path(client_id)
    forged = ["", "x", "x" * 43, "x" * 5_000, "%00", f"{cookie.value}; {cookie.name}={cookie.value}"]
    forged += [secrets.token_urlsafe(32) for _ in range(MOST - len(forged))]
    answers = [
        client.get(path, headers={"Cookie": f"{cookie.name}={value}"}).status_code
        for value in (*forged, secrets.token_urlsafe(32))
    ]
    assert answers == [302] * MOST + [429]
    assert statuses(app, Visitor(app).with_session_of(alice), path, MOST + 1) == [302] * MOST + [429]


def test_banned_user_counts_for_the_network(app, client_id, alice, service_role):
    visitor, path = Visitor(app).with_session_of(alice), authorize_path(client_id)
    client = app.test_client()
    ban = client.put(f"/admin/users/{alice.id}", json={"ban_duration": "24h"}, headers=service_role)
    assert ban.status_code == 200
    assert statuses(app, visitor, path, MOST) == [302] * MOST
    assert client.get(path).status_code == 429


def test_head_keeps_no_session_alive(app, database, client_id, alice):
    visitor = Visitor(app).with_session_of(alice)
    database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '1 hour'")
    before = database.everything("sessions")
    (cookie,) = visitor.cookies
    client = app.test_client(use_cookies=False)
    headers = {"Cookie": f"{cookie.name}={cookie.value}"}
    assert client.head(authorize_path(client_id), headers=headers).status_code == 200
    assert database.everything("sessions") == before


def test_page_of_another_origin_reads_the_challenge_of_a_public_resource(app):
    answer = app.test_client().get("/oauth/userinfo", headers={"Origin": "https://inspector.example"})
    assert answer.headers["WWW-Authenticate"] == challenge("no_authorization")
    exposed = answer.headers["Access-Control-Expose-Headers"].split(", ")
    assert (answer.headers["Access-Control-Allow-Origin"], "WWW-Authenticate" in exposed) == ("*", True)
