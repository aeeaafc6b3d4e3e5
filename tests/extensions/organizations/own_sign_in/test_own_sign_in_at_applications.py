"""Applications and an organization that requires its own sign-in: the browser's session decides."""

from urllib.parse import urlsplit

import pytest

from auth.delivery import janitor
from tests.support.links import single
from tests.support.openid import assert_refused, claims_of, make_client
from tests.support.pages import words

SCOPE = "openid organization organizations"
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.fixture
def require(database):
    return lambda: database.run("UPDATE organizations SET needs_own_provider = true")


@pytest.fixture
def claims_everywhere(client, application):
    """Yield the claims of a session in its access token, ID token, userinfo and introspection."""

    def claims_everywhere(answer):
        token = answer["access_token"]
        yield claims_of(token)
        yield claims_of(answer["id_token"])
        yield application.userinfo(token).json
        yield application.client.post(client, "/introspect", token=token).json

    return claims_everywhere


def assert_ended(application, database, answer) -> None:
    """Assert that a session for an organization gives nothing, for good."""
    assert application.userinfo(answer["access_token"]).status_code == 401
    introspection = application.client.post(
        application.http, "/introspect", token=answer["access_token"]
    ).json
    assert introspection == {"active": False}
    for _ in range(2):
        assert_refused(application.refresh(answer["refresh_token"]), "invalid_grant")
        database.run("UPDATE organizations SET needs_own_provider = false")
    reasons = database.all("SELECT end_reason FROM sessions WHERE organization_id IS NOT NULL")
    assert reasons == [("access_lost",)]


def test_session_that_the_provider_opened_gives_the_membership_everywhere(
    on, require, application, claims_everywhere, acme
):
    require()
    answer = application.tokens(on, scope=SCOPE)
    id = acme.rpartition("/")[2]
    for _ in range(2):
        for claims in claims_everywhere(answer):
            assert claims["organization"] == {"id": id, "slug": "acme", "role": "owner"}
            assert claims["organizations"] == {id: "owner"}
        answer = application.refresh(answer["refresh_token"]).json


def test_session_of_a_password_gives_the_membership_nowhere(
    on, require, application, browse, alice, claims_everywhere, provider
):
    require()
    visitor = browse(alice)
    page = application.begin(visitor, scope=SCOPE)
    assert (page.status, "One more step to use Wiki" in words(page)) == (403, True)
    answer = application.tokens(visitor, scope="openid organizations")
    for _ in range(2):
        assert ["organizations" in claims for claims in claims_everywhere(answer)] == [False] * 4
        answer = application.refresh(answer["refresh_token"]).json
    # The same once the user has allowed the scope in a session that the provider opened.
    application.tokens(on, scope=SCOPE)
    answer = application.returned(application.begin(visitor, scope=SCOPE, prompt="none"))
    assert answer["error"] == "access_denied"


def test_page_of_a_member_with_a_password_leads_to_the_own_sign_in(
    on, require, application, browse, alice, provider
):
    require()
    visitor = browse(alice)
    page = application.begin(visitor, scope=SCOPE)
    assert "Acme asks you to sign in with your company’s account." in words(page)
    assert "second step" not in words(page)
    # It comes back to this page.
    link = visitor.link_to("account/company?next=oauth%2Fconsent")
    assert page.url.endswith(single(urlsplit(link).query)["next"])


def test_member_comes_back_from_the_own_sign_in_to_the_page_of_consent(
    on, require, application, join, browse, bob, acme, customers, provider, database
):
    join(bob, acme)
    require()
    database.run(
        "UPDATE oauth_clients SET is_blocked = true, admits_members = true, organization_id = %(id)s",
        id=acme.rpartition("/")[2],
    )
    visitor = browse(bob)
    for scope in ("openid", SCOPE):
        page = application.begin(visitor, scope=scope)
        assert (page.status, "Wiki is for members of Acme ." in words(page)) == (403, True)
    customers.acme.be("9", bob.email)
    visitor.visit(visitor.link_to("account/company?next=oauth%2Fconsent"))
    page = visitor.press("account/company")
    assert (page.status, "You’ll use it as a member of Acme ." in words(page)) == (200, True)
    answer = application.redeem(application.returned(visitor.submit(action="approve"))["code"]).json
    assert claims_of(answer["access_token"])["organization"]["slug"] == "acme"


def test_invited_user_comes_back_from_the_own_sign_in_to_the_invitation_and_then_to_the_application(
    on, require, application, invite, browse, bob, acme, customers
):
    invite(bob.email)
    require()
    visitor = browse(bob)
    asks = application.begin(visitor, scope=SCOPE).url
    visitor.visit(visitor.link_to("organizations/acme/join?next=oauth%2Fconsent"))
    visitor.press("organizations/acme/join", action="approve")
    assert "You’re now a member of Acme Acme asks you to sign in with" in words(visitor.page)
    customers.acme.be("9", bob.email)
    visitor.visit(visitor.link_to("account/company?next=organizations%2Facme%2Fjoin%3Fnext%3Doauth"))
    page = visitor.press("account/company")
    assert words(page).endswith("You’re already a member of Acme Continue to Wiki")
    page = visitor.press("sign-in/continue")
    assert (page.url, "You’ll use it as a member of Acme ." in words(page)) == (asks, True)


def test_organization_whose_provider_is_off_offers_no_way_that_leads_nowhere(
    on, require, application, browse, alice, database
):
    require()
    database.run("UPDATE identity_providers SET is_on = false")
    page = application.begin(browse(alice), scope=SCOPE)
    assert (page.status, "Acme asks you to sign in with your company’s account." in words(page)) == (
        403,
        True,
    )
    assert ("account/company" in page.text, "Use another account" in words(page)) == (False, True)


def test_code_of_a_password_gives_nothing_once_the_own_sign_in_is_required(
    on, require, application, browse, alice, database
):
    code = application.code(browse(alice), scope=SCOPE)
    require()
    assert_refused(application.redeem(code), "access_denied")
    assert database.count("sessions", "grant_id IS NOT NULL") == 0


@pytest.mark.parametrize("way", ["requirement", "provider off"])
def test_session_ends_once_it_lacks_the_own_sign_in(on, require, application, browse, alice, database, way):
    if way == "provider off":
        require()
    answer = application.tokens(browse(alice) if way == "requirement" else on, scope=SCOPE)
    require()
    if way == "provider off":
        database.run("UPDATE identity_providers SET is_on = false")
    assert_ended(application, database, answer)


def test_application_of_members_alone_admits_the_session_of_the_provider_alone(
    on, require, application, browse, alice, acme, database
):
    require()
    database.run(
        "UPDATE oauth_clients SET is_blocked = true, admits_members = true, organization_id = %(id)s",
        id=acme.rpartition("/")[2],
    )
    assert application.begin(browse(alice), scope="openid").status == 403
    answer = application.tokens(on, scope="openid")
    assert application.refresh(answer["refresh_token"]).status_code == 200
    database.run("UPDATE identity_providers SET is_on = false")
    assert_refused(application.refresh(answer["refresh_token"]), "invalid_grant")


@pytest.mark.parametrize("way", ["provider", "password"])
def test_device_gets_what_the_session_of_its_browser_has(
    on, require, browse, alice, client, database, way, acme
):
    require()
    television = make_client(database, grant_types=[DEVICE_CODE])
    codes = television.post(client, "/oauth/device_authorization", scope="openid organization").json
    visitor = on if way == "provider" else browse(alice)
    database.run("UPDATE sessions SET reauthenticated_at = now()")
    visitor.visit(f"/device?user_code={codes['user_code']}")
    page = visitor.submit(user_code=codes["user_code"])
    assert page.status == (200 if way == "provider" else 403)
    assert ("Acme asks you to sign in with your company’s account." in words(page)) is (way == "password")
    visitor.submit(action="approve")
    form = {"grant_type": DEVICE_CODE, "device_code": codes["device_code"]}
    answer = television.post(client, "/oauth/token", **form)
    if way == "password":
        return assert_refused(answer, "access_denied")
    assert claims_of(answer.json["access_token"])["organization"]["slug"] == "acme"


def test_device_code_that_waits_gives_nothing_once_the_own_sign_in_is_required(
    on, require, browse, alice, client, database
):
    television = make_client(database, grant_types=[DEVICE_CODE])
    codes = television.post(client, "/oauth/device_authorization", scope="openid organization").json
    visitor = browse(alice)
    database.run("UPDATE sessions SET reauthenticated_at = now()")
    visitor.visit(f"/device?user_code={codes['user_code']}")
    visitor.submit(user_code=codes["user_code"])
    visitor.submit(action="approve")
    require()
    form = {"grant_type": DEVICE_CODE, "device_code": codes["device_code"]}
    assert_refused(television.post(client, "/oauth/token", **form), "access_denied")
    assert database.count("sessions", "grant_id IS NOT NULL") == 0


def test_deleted_provider_ends_the_sessions_for_the_memberships_that_it_added(
    on, application, browse, bob, join, acme, provider, database, client, service_role
):
    join(bob, acme)
    database.run(
        "UPDATE memberships SET added_by = 'provider', provider_id = %(id)s WHERE role = 'member'",
        id=provider,
    )
    answer = application.tokens(browse(bob), scope=SCOPE)
    path = f"/organizations/acme/providers/{provider}"
    assert client.delete(path, json={}, headers=service_role).status_code == 204
    assert_ended(application, database, answer)
    assert database.count("sessions", "user_id = %(id)s AND grant_id IS NULL AND ended_at IS NULL", id=bob.id)


def test_session_of_an_application_ends_with_the_provider_that_opened_its_browser(
    on, application, database, service
):
    answer = application.tokens(on)
    # The sessions of many users end late, or those after an interruption.
    database.run("UPDATE identity_providers SET is_on = false")
    assert application.userinfo(answer["access_token"]).status_code == 401
    janitor.keep_house(service.parts.settings, service.parts.db, service.parts.sealer)
    assert application.userinfo(answer["access_token"]).status_code == 401
    assert_refused(application.refresh(answer["refresh_token"]), "invalid_grant")
