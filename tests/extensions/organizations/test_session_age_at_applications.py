"""How old a sign-in may be, at applications: their sessions are as old as `auth_time` says, for ever."""

from datetime import datetime

import pytest

from tests.support.openid import assert_refused, claims_of
from tests.support.openid_flow import allow
from tests.support.pages import words
from tests.support.users import PASSWORD

ONE, ALL = "openid organization offline_access", "openid organizations offline_access"
TOO_OLD = "The sign-in is older than the organization accepts: authorize with prompt=login"


@pytest.fixture
def age(database):
    def age(seconds):
        shift = "make_interval(secs => %(seconds)s)"
        database.run(
            f"UPDATE sessions SET created_at = created_at - {shift}, reauthenticated_at = reauthenticated_at - {shift},"
            f" auth_time = auth_time - {shift}",
            seconds=seconds,
        )

    return age


@pytest.fixture
def require(acme, database):
    """Return a function that sets the requirement by SQL."""
    return lambda max_age="1 hour": database.run(
        "UPDATE organizations SET max_age = %(max_age)s", max_age=max_age
    )


@pytest.fixture
def says(application, client):
    """Return a function that says where an application's tokens say a membership: token, userinfo, introspection."""

    def says(answer):
        token = answer["access_token"]
        introspected = application.client.post(client, "/introspect", token=token).json
        assert introspected["active"]
        places = [claims_of(token), application.userinfo(token).json, introspected]
        return [bool(claims.get("organization") or claims.get("organizations")) for claims in places]

    return says


@pytest.mark.parametrize("seconds", [3_540, 3_601])
def test_token_userinfo_and_introspection_say_the_membership_only_as_long(
    alice, acme, require, age, browse, application, says, seconds, database
):
    require()
    answer = application.tokens(browse(alice), scope=ALL)
    assert says(answer) == [True, True, True]
    age(seconds)
    counts = seconds < 3_600
    # The token that the application has says it until it runs out.
    assert says(answer) == [True, counts, counts]
    refreshed = application.refresh(answer["refresh_token"]).json
    assert says(refreshed) == [counts] * 3
    assert ("organizations" in claims_of(refreshed["id_token"])) == counts
    # A refresh makes it no younger, and ends nothing.
    assert says(application.refresh(refreshed["refresh_token"]).json) == [counts] * 3
    assert database.count("sessions", "ended_at IS NOT NULL") == 0


def test_session_for_one_organization_rests_and_goes_on_once_the_requirement_is_lifted(
    alice, acme, require, age, browse, application, database, client
):
    require()
    answer = application.tokens(browse(alice), scope=ONE)
    age(3_601)
    for _ in range(2):
        assert_refused(application.refresh(answer["refresh_token"]), "invalid_grant", description=TOO_OLD)
    assert application.client.post(client, "/introspect", token=answer["access_token"]).json == {
        "active": False
    }
    assert application.userinfo(answer["access_token"]).status_code == 401
    assert database.count("sessions", "ended_at IS NOT NULL") == 0
    assert database.count("outbox", "kind = 'logout_token'") == 0
    require(None)
    refreshed = application.refresh(answer["refresh_token"]).json
    assert claims_of(refreshed["access_token"])["organization"]["slug"] == "acme"


def test_membership_that_is_lost_still_ends_a_session_that_is_too_old(
    alice, bob, acme, join, require, age, browse, application, database, owner
):
    join(bob, acme)
    require()
    answer = application.tokens(browse(bob), scope=ONE)
    age(3_601)
    database.run("DELETE FROM memberships WHERE user_id = %(id)s", id=bob.id)
    assert_refused(application.refresh(answer["refresh_token"]), "invalid_grant")
    assert database.all("SELECT end_reason FROM sessions WHERE organization_id IS NOT NULL") == [
        ("access_lost",)
    ]


def test_page_of_consent_leads_to_another_sign_in_and_back(alice, acme, require, age, browse, application):
    visitor = browse(alice)
    assert application.tokens(visitor, scope=ONE)
    require()
    age(3_601)
    page = application.begin(visitor, scope=ONE)
    assert (page.status, "Acme asks you to sign in again." in words(page)) == (403, True)
    assert (
        application.returned(application.begin(visitor, scope=ONE, prompt="none"))["error"] == "access_denied"
    )
    application.begin(visitor, scope=ONE)
    visitor.visit(visitor.link_to("account/confirm?next=oauth%2Fconsent"))
    page = visitor.submit(current_password=PASSWORD)
    answer = application.redeem(application.returned(page)["code"]).json
    claims = claims_of(answer["id_token"])
    assert claims["organization"]["slug"] == "acme"
    assert claims["auth_time"] > datetime.now().timestamp() - 60


def test_member_of_two_reads_which_one_asks_for_another_sign_in(
    alice, acme, beta, age, browse, application, database
):
    database.run("UPDATE organizations SET max_age = '1 hour' WHERE slug = 'acme'")
    visitor = browse(alice)
    age(3_601)
    page = application.begin(visitor, scope=ONE)
    assert (page.status, "Acme asks you to sign in again." in words(page)) == (200, True)
    answer = application.redeem(application.returned(allow(visitor))["code"]).json
    assert claims_of(answer["access_token"])["organization"]["slug"] == "beta"


def test_client_for_members_alone_gives_no_code_in_a_session_that_grew_old(
    alice, acme, require, age, browse, application, database
):
    database.run(
        "UPDATE oauth_clients SET is_blocked = true, admits_members = true, organization_id = %(id)s",
        id=acme.rpartition("/")[2],
    )
    require()
    code = application.code(browse(alice), scope="openid")
    age(3_601)
    assert_refused(application.redeem(code), "access_denied")
    assert database.count("sessions", "grant_id IS NOT NULL") == 0


def test_code_of_a_browser_opens_a_session_as_old_as_the_browser(
    alice, acme, require, age, browse, application, says
):
    require()
    visitor = browse(alice)
    age(3_000)
    answer = application.tokens(visitor, scope=ALL)
    assert says(answer) == [True] * 3
    age(601)
    assert says(application.refresh(answer["refresh_token"]).json) == [False] * 3


def test_session_of_an_earlier_release_without_auth_time_counts_as_old(
    alice, acme, require, browse, application, database
):
    answer = application.tokens(browse(alice), scope=ALL)
    database.run("UPDATE sessions SET auth_time = NULL WHERE grant_id IS NOT NULL")
    answer = application.refresh(answer["refresh_token"]).json
    assert claims_of(answer["access_token"])["organizations"]
    require("365 days")
    assert "organizations" not in claims_of(application.refresh(answer["refresh_token"]).json["access_token"])
    assert "organizations" not in application.userinfo(answer["access_token"]).json
