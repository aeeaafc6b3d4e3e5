"""How old a sign-in at an organization's provider may be: it counts from there, and *Sign in again* asks there."""

import time
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.answers import assert_error
from tests.support.own_providers import ALICE, PATH
from tests.support.pages import words
from tests.support.users import PASSWORD

ASKS = "Acme asks you to sign in again."
TITLE = "Sign in again to open Acme"
HOUR = 3_600


@pytest.fixture
def age(database):
    """Return a function that makes all sessions, and what they say of their provider, older by SQL."""

    def age(seconds):
        database.run(
            "UPDATE sessions SET created_at = created_at - make_interval(secs => %(seconds)s),"
            " reauthenticated_at = reauthenticated_at - make_interval(secs => %(seconds)s),"
            " amr = (SELECT jsonb_agg(each || jsonb_build_object('timestamp', (each ->> 'timestamp')::bigint - %(seconds)s))"
            "          FROM jsonb_array_elements(amr) AS each)",
            seconds=seconds,
        )

    return age


@pytest.fixture
def require(database):
    def require(*, own_provider=True):
        database.run(
            "UPDATE organizations SET max_age = '1 hour', needs_own_provider = %(needs)s", needs=own_provider
        )

    return require


def asked(customers):
    """The last authorization request that the provider got, but for the flow."""
    sent = customers.acme.provider.requests
    parameters = next(each.parameters for each in reversed(sent) if each.path == "/authorize")
    return {name: parameters[name] for name in ("prompt", "max_age") if name in parameters}


def is_member(visitor):
    return visitor.visit(PATH).status == 200


def sign_in_again(visitor):
    """Follow the button of the account to the company, and press."""
    visitor.visit("/account")
    assert ASKS in words(visitor.page)
    visitor.visit(visitor.link_to("account/company?next=organizations%2Facme"))
    return visitor.press("account/company")


@pytest.mark.parametrize("own_provider", [True, False])
def test_member_of_the_company_signs_in_again_there_and_comes_back(
    on, require, age, customers, database, own_provider
):
    require(own_provider=own_provider)
    assert is_member(on)
    age(HOUR + 1)
    page = on.visit(PATH)
    assert (page.status, TITLE in words(page)) == (403, True)
    customers.acme.be("1", ALICE, auth_time=int(time.time()))
    page = sign_in_again(on)
    assert asked(customers) == {"prompt": "login", "max_age": "0"}
    assert (page.status, urlsplit(page.url).path) == (200, PATH)
    assert is_member(on)


def test_provider_is_not_asked_again_by_a_session_that_it_did_not_open(on, require, browse, alice, customers):
    require()
    visitor = browse(alice)
    visitor.visit("/account")
    visitor.visit(visitor.link_to("account/company?next=organizations%2Facme"))
    visitor.press("account/company")
    assert asked(customers) == {}
    assert is_member(visitor)


def test_session_is_as_old_as_the_sign_in_at_the_provider(on, require, customers, browse, alice):
    require()
    customers.acme.be("1", ALICE, auth_time=int(time.time()) - HOUR - 1)
    visitor = browse(alice)
    visitor.visit("/account/company?next=organizations%2Facme")
    page = visitor.press("account/company")
    assert (page.status, TITLE in words(page)) == (403, True)
    # A provider that does not ask again ends nothing, and goes round in no circle.
    page = sign_in_again(visitor)
    assert (page.status, TITLE in words(page)) == (403, True)
    # The company has just let the user in, who now proves to be there.
    visitor.visit("/account/confirm")
    visitor.submit(current_password=PASSWORD)
    assert is_member(visitor)


@pytest.mark.parametrize("own_provider", [True, False])
def test_time_of_the_provider_that_is_ahead_of_ours_makes_no_session_younger(
    on, require, customers, browse, alice, age, own_provider
):
    require(own_provider=own_provider)
    customers.acme.be("1", ALICE, auth_time=int(time.time()) + 3 * HOUR)
    visitor = browse(alice)
    visitor.visit("/account/company?next=organizations%2Facme")
    visitor.press("account/company")
    assert is_member(visitor)
    age(HOUR + 1)
    assert not is_member(visitor)


def test_proof_here_is_no_sign_in_at_the_required_provider(on, require, age, database):
    require()
    age(HOUR + 1)
    on.visit("/account/confirm")
    on.submit(current_password=PASSWORD)
    assert database.count("sessions", "reauthenticated_at > now() - interval '1 minute'") == 1
    assert not is_member(on)
    # Where the organization requires none of its providers, the proof counts.
    require(own_provider=False)
    assert is_member(on)


def test_second_step_here_is_no_sign_in_at_the_required_provider(on, require, age, database):
    require()
    age(HOUR + 1)
    database.run("UPDATE sessions SET aal = 'aal2', reauthenticated_at = now(), factor_proved_at = now()")
    assert not is_member(on)


def test_application_that_our_pages_opened_has_the_age_of_the_provider(
    on, require, age, database, client, alice, acme, provider
):
    """An API session that a browser opened: its own begin is later."""
    require()
    session = alice.open_session(client)
    database.run(
        "UPDATE sessions AS s SET amr = other.amr, opened_by = other.id, reauthenticated_at = now()"
        "  FROM sessions AS other WHERE s.id = %(id)s AND other.amr::text LIKE '%%sso:%%'",
        id=session.id,
    )
    session = session.refreshed()
    assert session.claims["organizations"]
    age(HOUR + 1)
    database.run("UPDATE sessions SET created_at = now(), reauthenticated_at = now()")
    late = session.refreshed()
    assert "organizations" not in late.claims
    response = late.get(acme)
    details = "sign in again, with one of `providers`: the last sign-in is older than `max_age`"
    members = {"max_age": HOUR, "providers": [f"sso:{provider}"]}
    assert_error(response, 403, "reauthentication_needed", details=details, **members)


def test_member_whom_the_provider_signs_in_no_more_is_told_whom_to_ask(on, require, age, database, alice):
    require()
    age(HOUR + 1)
    database.run("UPDATE users SET email = 'alice@other.example' WHERE id = %(id)s", id=alice.id)
    page = on.visit(PATH)
    assert (page.status, "ask one of the organization’s owners" in words(page)) == (403, True)
    assert "account/company" not in page.text


def test_owner_sets_both_at_once_in_a_session_that_meets_both(
    on, age, database, alice, client, acme, provider
):
    session = alice.open_session(client)
    body = {"requires": {"own_provider": True, "max_age": HOUR}, "current_password": PASSWORD}
    assert_error(
        session.put(acme, json=body), 403, "organization_sign_in_needed", providers=[f"sso:{provider}"]
    )
    database.run(
        "UPDATE sessions AS s SET amr = other.amr FROM sessions AS other"
        " WHERE s.id = %(id)s AND other.amr::text LIKE '%%sso:%%'",
        id=session.id,
    )
    session = session.refreshed()
    age(HOUR + 1)
    session = session.refreshed()
    assert session.put(acme, json=body).status_code == 403
    assert database.all("SELECT needs_own_provider, max_age FROM organizations") == [(False, None)]
    age(-HOUR)
    response = session.refreshed().put(acme, json=body)
    assert response.json["requires"] == {"aal": "aal1", "providers": [f"sso:{provider}"], "max_age": HOUR}


def test_page_of_the_company_keeps_its_query_for_the_button(on, require, age):
    require()
    age(HOUR + 1)
    on.visit("/account")
    url = urlsplit(on.link_to("account/company"))
    assert parse_qs(url.query) == {"next": ["organizations/acme"]}


def test_owner_in_an_old_session_of_the_provider_is_led_there_before_requiring_it(on, require, age, database):
    require(own_provider=False)
    age(HOUR + 1)
    database.run("UPDATE sessions SET reauthenticated_at = now()")
    page = on.visit(f"{PATH}/sign-in/requirement")
    assert "in this session, you’d lock yourself out" in words(page)
    assert on.link_to("account/company?next=organizations%2Facme%2Fsign-in%2Frequirement")


def test_page_counts_from_the_sign_in_at_the_required_provider(on, require, age, acme, join, bob, database):
    """A session that a password opened is young, but its membership does not count."""
    page = "/account/organizations/acme/requirement/age"
    join(bob, acme)
    require()
    assert "1 hour 1 of 2 members would have to sign in again now." in words(on.visit(page))
    database.run("UPDATE organizations SET max_age = '1 day'")
    age(HOUR + 1)
    database.run("UPDATE sessions SET reauthenticated_at = now()")
    assert "1 hour 2 of 2 members would have to sign in again now." in words(on.visit(page))
    require(own_provider=False)
    assert "would have to sign in again now" not in words(on.visit(page))
