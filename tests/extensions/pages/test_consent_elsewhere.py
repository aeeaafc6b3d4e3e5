"""Requests of applications whose users sign in by the link of a mail: late, or in another browser."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.cases import cases
from tests.support.links import SITE, later, path
from tests.support.openid import authorize_path, insert_client
from tests.support.pages import Visitor, words

NATIVE, GRAFANA = "com.example.app:/callback", "https://grafana.example.com"


@pytest.fixture
def desktop(app) -> Visitor:
    return Visitor(app)


@pytest.fixture
def phone(app) -> Visitor:
    return Visitor(app)


@pytest.fixture
def request_link(desktop, alice, outbox):
    """Let an application sign Alice in, who asks for a link, and return the link."""

    def request_link(client_id: str, page: str = "sign-in", **parameters: str) -> str:
        desktop.visit(authorize_path(client_id, **parameters))
        if page == "forgot-password":
            desktop.press("sign-in/address", email=alice.email)
        desktop.press("forgot-password" if page == "forgot-password" else "sign-in/code", email=alice.email)
        message: Any = outbox.last(alice.email)
        return path(message.kind, message.token, redirect_to=message.variables["redirect_to"])

    return request_link


def confirm(visitor: Visitor, link: str) -> None:
    """Open a link, and press its button."""
    visitor.visit(link)
    visitor.press("verify")


def test_request_waits_as_long_as_the_link_that_signs_its_user_in(desktop, request_link, database):
    link = request_link(insert_client(database))
    later(database, mins=59)
    database.run("UPDATE oauth_requests SET expires_at = expires_at - interval '59 minutes'")
    confirm(desktop, link)
    assert "Grafana wants to:" in words(desktop.page)


@cases(
    ("columns", "url"),
    [({"uri": "https://grafana.example.com/home"}, "https://grafana.example.com/home"), ({}, GRAFANA)],
)
def test_browser_that_opens_the_link_of_another_is_led_to_the_application(
    desktop, phone, request_link, database, columns, url
):
    confirm(phone, request_link(insert_client(database, **columns)))
    assert phone.page.url.startswith(f"{SITE}/oauth/consent?")
    assert f'<a href="{url}" class="button">' in phone.page.text
    assert "Go to Grafana" in words(phone.page)
    assert "oauth/consent" not in [form.action for form in phone.page.forms]
    assert (phone.cookie("latchkey_authorize"), desktop.session_cookie) == (None, None)
    assert database.count("oauth_grants") == 0


@cases(
    ("columns", "parameters"),
    [
        ({"is_dynamic": True, "uri": "https://evil.example/"}, {}),
        ({"redirect_uri": NATIVE}, {"redirect_uri": NATIVE}),
    ],
)
def test_page_leads_to_no_website_that_a_stranger_chose_and_to_none_of_a_program(
    phone, request_link, database, columns, parameters
):
    confirm(phone, request_link(insert_client(database, **columns), **parameters))
    assert "You’re signed in" in words(phone.page)
    assert phone.link("Your account") == f"{SITE}/account"
    assert "Go to" not in phone.page.text


def test_new_password_of_another_browser_leads_to_the_application(phone, request_link, database):
    confirm(phone, request_link(insert_client(database), "forgot-password"))
    assert phone.page.url.startswith(f"{SITE}/new-password?next=oauth%2Fconsent")
    phone.submit(password="Fresh-Horse-2")
    assert "Go to Grafana" in words(phone.page)


def test_browser_that_is_not_signed_in_learns_nothing_of_a_request(desktop, phone, database):
    desktop.visit(authorize_path(insert_client(database)))
    page = phone.visit(f"/{parse_qs(urlsplit(desktop.page.url).query)['next'][0]}")
    assert (page.status, "Grafana" in page.text) == (404, False)
