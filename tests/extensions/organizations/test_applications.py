"""Applications that ask for an organization: the scopes `organization`, `organization:acme` and `organizations`."""

import re

import pytest

from tests.support.cases import cases
from tests.support.factors import set_up
from tests.support.openid import assert_refused, claims_of, make_client
from tests.support.openid_flow import allow
from tests.support.pages import Visitor, words
from tests.support.server import at_once

SCOPE = "openid organization"
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.fixture
def introspect(client, application):
    def introspect(answer):
        return application.client.post(client, "/introspect", token=answer["access_token"]).json

    return introspect


def id_of(organization: str) -> str:
    return organization.rpartition("/")[2]


def assert_refresh_refused(application, answer) -> None:
    """Assert that a refresh is refused, and again."""
    for _ in range(2):
        assert_refused(application.refresh(answer["refresh_token"]), "invalid_grant")


class TestScopes:
    def test_only_membership_is_named_on_the_page_and_in_every_token(
        self, alice, acme, application, browser, introspect
    ):
        visitor = browser(alice)
        page = application.begin(visitor, scope=SCOPE)
        assert "You’ll use it as a member of Acme ." in words(page)
        assert "See your organization and your role in it" in words(page)
        answer = application.redeem(application.returned(allow(visitor))["code"]).json
        membership = {"id": id_of(acme), "slug": "acme", "role": "owner"}
        assert answer["scope"] == SCOPE
        for token in ("access_token", "id_token"):
            assert claims_of(answer[token])["organization"] == membership
            assert "organizations" not in claims_of(answer[token])
        assert application.userinfo(answer["access_token"]).json["organization"] == membership
        assert introspect(answer)["organization"] == membership
        refreshed = application.refresh(answer["refresh_token"]).json
        assert claims_of(refreshed["access_token"])["organization"] == membership
        assert claims_of(refreshed["id_token"])["organization"] == membership

    def test_member_of_several_chooses_one_each_time(self, alice, acme, beta, application, browser):
        visitor = browser(alice)
        for organization in (acme, beta, acme):
            page = application.begin(visitor, scope=SCOPE)
            assert page.url.startswith("http://localhost:8000/oauth/consent")
            assert "Choose an organization" in words(page)
            # Without a choice, the page comes again.
            again = visitor.submit(action="approve", organization="")
            assert (again.status, "Choose one of the organizations" in words(again)) == (400, True)
            page = visitor.submit(action="approve", organization=id_of(organization))
            answer = application.redeem(application.returned(page)["code"]).json
            assert claims_of(answer["access_token"])["organization"]["id"] == id_of(organization)

    def test_two_tabs_get_what_was_chosen_in_each(self, alice, acme, beta, application, browser):
        visitor = browser(alice)
        pages = [application.begin(visitor, scope=SCOPE) for _ in range(2)]
        for page, organization in reversed(list(zip(pages, (acme, beta), strict=True))):
            visitor.visit(page.url)
            redirect = visitor.submit(action="approve", organization=id_of(organization))
            answer = application.redeem(application.returned(redirect)["code"]).json
            assert claims_of(answer["id_token"])["organization"]["id"] == id_of(organization)

    def test_choice_that_is_lost_meanwhile_gives_no_other_one(
        self, alice, acme, beta, application, browser, database
    ):
        visitor = browser(alice)
        application.begin(visitor, scope=SCOPE)
        database.run("DELETE FROM memberships WHERE organization_id = %(id)s", id=id_of(beta))
        page = visitor.submit(action="approve", organization=id_of(beta))
        assert "You’ll use it as a member of Acme ." in words(page)
        answer = application.redeem(application.returned(allow(visitor))["code"]).json
        assert claims_of(answer["access_token"])["organization"]["slug"] == "acme"

    def test_short_name_asks_for_one_without_the_choice(self, alice, acme, beta, tokens, application):
        answer = tokens(alice, "openid organization:beta")
        assert answer["scope"] == "openid organization:beta"
        assert claims_of(answer["access_token"])["organization"]["slug"] == "beta"
        narrowed = application.refresh(answer["refresh_token"], scope="organization:beta").json
        assert claims_of(narrowed["access_token"])["organization"]["slug"] == "beta"
        narrowed = application.refresh(answer["refresh_token"], scope="openid").json
        assert "organization" not in claims_of(narrowed["access_token"])

    def test_account_page_lists_what_was_allowed_once(self, alice, acme, tokens, browser):
        for scope in ("openid organization:acme", "openid organization:acme organizations", SCOPE):
            tokens(alice, scope)
        page = browser(alice).visit("/account")
        assert (page.status, words(page).count("See your organization and your role in it")) == (200, 1)

    def test_organizations_says_the_roles_in_all_that_count(self, alice, acme, beta, tokens, introspect):
        answer = tokens(alice, "openid organizations")
        roles = {id_of(acme): "owner", id_of(beta): "owner"}
        for token in ("access_token", "id_token"):
            assert claims_of(answer[token])["organizations"] == roles
        assert introspect(answer)["organizations"] == roles
        assert "organization" not in claims_of(answer["access_token"])

    def test_no_scope_says_nothing(self, alice, acme, tokens):
        answer = tokens(alice, "openid email")
        assert {"organization", "organizations"}.isdisjoint(claims_of(answer["access_token"]))
        assert {"organization", "organizations"}.isdisjoint(claims_of(answer["id_token"]))

    @cases(
        ("scope", "error"),
        [
            ("openid organization:Acme", "invalid_scope"),
            ("openid organization:", "invalid_scope"),
            ("openid organization:acme organization:beta", "invalid_scope"),
        ],
    )
    def test_short_name_of_no_organization_goes_back_as_an_error(
        self, alice, acme, application, browser, scope, error
    ):
        visitor = browser(alice)
        page = application.begin(visitor, scope=scope, prompt="none")
        assert application.returned(page)["error"] == error

    def test_prompt_none_neither_chooses_nor_asks(self, alice, acme, application, browser, tokens, owner):
        tokens(alice)
        visitor = browser(alice)
        answer = application.returned(application.begin(visitor, scope=SCOPE, prompt="none"))
        assert "code" in answer
        assert owner.post("/organizations", json={"name": "Beta", "slug": "beta"}).status_code == 201
        answer = application.returned(application.begin(visitor, scope=SCOPE, prompt="none"))
        assert answer["error"] == "interaction_required"
        tokens(alice, "openid organization:beta")
        page = application.begin(visitor, scope="openid organization:beta", prompt="none")
        assert "code" in application.returned(page)

    def test_metadata_lists_the_scopes_while_the_extension_is_on(self, client, make_app):
        path = "/.well-known/openid-configuration"
        assert {"organization", "organizations"} <= {*client.get(path).json["scopes_supported"]}
        assert {"organization", "organizations"} <= {*client.get(path).json["claims_supported"]}
        metadata = make_app(AUTH_ORGANIZATIONS="off").test_client().get(path).json
        assert {"organization", "organizations"}.isdisjoint(
            metadata["scopes_supported"] + metadata["claims_supported"]
        )


class TestOwnConsentPage:
    def test_interface_offers_the_memberships_and_takes_the_choice(
        self, alice, acme, beta, owner, application, make_app, database
    ):
        app = make_app(AUTH_ORGANIZATIONS="users", AUTH_OAUTH_CONSENT_URL="https://app.example.com/consent")
        visitor = Visitor(app)
        page = application.begin(visitor, scope=SCOPE)
        path = f"/oauth/authorizations/{page.url.rpartition('=')[2]}"
        organizations = owner.get(path).json["organizations"]
        assert [(each["slug"], each["role"]) for each in organizations] == [
            ("acme", "owner"),
            ("beta", "owner"),
        ]
        for organization in ({}, {"organization": owner.user["id"]}):
            refused = owner.post(f"{path}/consent", json={"action": "approve"} | organization)
            assert (refused.status_code, refused.json["error_code"]) == (400, "validation_failed")
        response = owner.post(f"{path}/consent", json={"action": "approve", "organization": id_of(beta)})
        code = application.returned(visitor.visit(response.json["redirect_url"]))["code"]
        claims = claims_of(application.redeem(code).json["access_token"])
        assert claims["organization"]["slug"] == "beta"

    def test_interface_gives_no_other_organization_than_the_chosen_one(
        self, alice, acme, beta, owner, application, make_app, database
    ):
        app = make_app(AUTH_ORGANIZATIONS="users", AUTH_OAUTH_CONSENT_URL="https://app.example.com/consent")
        page = application.begin(Visitor(app), scope=SCOPE)
        path = f"/oauth/authorizations/{page.url.rpartition('=')[2]}"
        assert len(owner.get(path).json["organizations"]) == 2
        database.run("DELETE FROM memberships WHERE organization_id = %(id)s", id=id_of(beta))
        body = {"action": "approve", "organization": id_of(beta)}
        response = owner.post(f"{path}/consent", json=body)
        assert (response.status_code, response.json["error_code"]) == (400, "validation_failed")
        assert database.count("oauth_grants") == 0


class TestAttacks:
    @pytest.mark.parametrize("scope", [SCOPE, "openid organization:acme", "openid organization:nobody"])
    def test_application_that_nobody_allowed_learns_nothing_about_memberships(
        self, alice, bob, carol, acme, beta, join, application, browser, scope
    ):
        join(bob, beta)
        # Members of two, of one and of none.
        for person in (alice, bob, carol):
            visitor = browser(person)
            for changes in ({}, {"max_age": "0"}):
                silent = application.returned(
                    application.begin(visitor, scope=scope, prompt="none", **changes)
                )
                assert silent["error"] == "consent_required"
            application.begin(visitor, scope=scope)
            denied = application.returned(visitor.submit(action="deny"))
            refusal = ("access_denied", "User denied the request")
            assert (denied["error"], denied["error_description"]) == refusal

    @cases("scope", [SCOPE, "openid organization:acme"])
    def test_organization_of_others_gives_a_stranger_nothing(self, bob, acme, application, browser, scope):
        visitor = browser(bob)
        page = application.begin(visitor, scope=scope)
        assert (page.status, "You can’t use Wiki" in words(page), "Acme" in page.text) == (403, True, False)
        # A forged form is refused, too.
        page = visitor.submit(action="approve", organization=id_of(acme))
        assert page.status == 403
        assert application.returned(visitor.submit(action="deny"))["error"] == "access_denied"

    def test_membership_that_does_not_count_in_the_session_gives_nothing(
        self, alice, acme, database, application, browser
    ):
        database.run("UPDATE organizations SET level = 'aal2'")
        page = application.begin(browser(alice), scope=SCOPE)
        assert (page.status, "Acme asks for a second step." in words(page)) == (403, True)

    def test_code_of_a_membership_that_no_longer_counts_gives_nothing(
        self, alice, acme, database, application, browser
    ):
        code = application.code(browser(alice), scope=SCOPE)
        database.run("UPDATE organizations SET level = 'aal2'")
        assert_refused(application.redeem(code), "access_denied")
        assert database.count("sessions", "grant_id IS NOT NULL") == 0

    def test_role_is_that_of_the_token_and_not_of_the_consent(
        self, alice, bob, acme, join, application, browser, owner, introspect
    ):
        join(bob, acme, "admin")
        code = application.code(browser(bob), scope="openid organization organizations")

        def lower(role):
            response = owner.put(f"{acme}/members/{bob.id}", json={"role": role})
            assert response.status_code == 200, response.text

        lower("member")
        answer = application.redeem(code).json
        claims = claims_of(answer["access_token"])
        assert (claims["organization"]["role"], claims["organizations"]) == (
            "member",
            {id_of(acme): "member"},
        )
        lower("billing")
        assert introspect(answer)["organization"]["role"] == "billing"
        assert introspect(answer)["organizations"] == {id_of(acme): "billing"}
        assert application.userinfo(answer["access_token"]).json["organization"]["role"] == "billing"
        refreshed = application.refresh(answer["refresh_token"]).json
        assert claims_of(refreshed["id_token"])["organization"]["role"] == "billing"

    @pytest.mark.parametrize("way", ["removed", "left"])
    def test_lost_membership_ends_the_sessions_for_it_and_no_others(
        self, alice, bob, acme, join, owner, application, tokens, database, introspect, way
    ):
        member = join(bob, acme)
        answer, other = tokens(bob), tokens(bob, "openid organizations")
        code = application.code(Visitor(owner.client.application).with_session_of(bob), scope=SCOPE)
        actor = owner if way == "removed" else member
        assert actor.delete(f"{acme}/members/{bob.id}").status_code == 204
        assert introspect(answer) == {"active": False}
        assert application.userinfo(answer["access_token"]).status_code == 401
        assert_refresh_refused(application, answer)
        assert application.redeem(code).status_code == 400
        assert database.all("SELECT end_reason FROM sessions WHERE organization_id IS NOT NULL") == [
            ("access_lost",)
        ]
        # The map is smaller, and nothing comes back with the membership.
        assert "organizations" not in introspect(other)
        assert "organizations" not in claims_of(application.refresh(other["refresh_token"]).json["id_token"])
        join(bob, acme)
        assert_refresh_refused(application, answer)
        assert member.refreshed().get("/user").status_code == 200

    def test_no_session_outlives_a_removal_at_the_same_moment(
        self, bob, acme, join, owner, application, browser, database
    ):
        join(bob, acme)
        visitor = browser(bob)
        codes = [application.code(visitor, scope=SCOPE) for _ in range(6)]

        def race(number):
            if number == len(codes):
                return owner.delete(f"{acme}/members/{bob.id}")
            return application.redeem(codes[number])

        answers = at_once(len(codes) + 1, race)
        assert {answer.status_code for answer in answers} <= {200, 204, 400}
        assert database.count("sessions", "organization_id IS NOT NULL AND ended_at IS NULL") == 0
        assert database.count("memberships", "user_id = %(id)s", id=bob.id) == 0

    def test_requirement_that_is_raised_ends_the_session_at_its_refresh(
        self, alice, acme, tokens, application, database, introspect
    ):
        answer, other = tokens(alice), tokens(alice, "openid organizations")
        database.run("UPDATE organizations SET level = 'aal2'")
        assert introspect(answer) == {"active": False}
        assert introspect(other)["active"] is True
        assert "organizations" not in introspect(other)
        assert_refused(application.refresh(answer["refresh_token"]), "invalid_grant")
        database.run("UPDATE organizations SET level = 'aal1'")
        assert_refresh_refused(application, answer)
        assert database.all("SELECT end_reason FROM sessions WHERE organization_id IS NOT NULL") == [
            ("access_lost",)
        ]

    def test_refresh_for_another_organization_is_refused(self, alice, acme, beta, tokens, application):
        answer = tokens(alice, "openid organization:acme")
        for scope in ("openid organization:beta", "openid organization", "organizations"):
            assert_refused(application.refresh(answer["refresh_token"], scope=scope), "invalid_scope")

    def test_organization_that_has_ended_ends_its_sessions_and_clients(
        self, alice, acme, owner, tokens, application, database, client, introspect
    ):
        answer = tokens(alice)
        database.run(
            "UPDATE oauth_clients SET is_blocked = true, admits_members = true, organization_id = %(id)s",
            id=id_of(acme),
        )
        assert introspect(answer)["active"] is True
        assert owner.delete(acme, json={}).status_code == 204
        assert introspect(answer) == {"active": False}
        from auth.delivery import janitor

        parts = client.application.extensions["latchkey"]
        janitor.keep_house(parts.settings, parts.db, parts.sealer)
        counts = [database.count(table) for table in ("memberships", "organizations", "oauth_clients")]
        assert counts == [0, 0, 0]
        assert database.count("sessions", "grant_id IS NOT NULL") == 0
        assert database.count("audit_log", "action = 'client_deleted'") == 1

    def test_banned_member_gets_nothing(
        self, alice, bob, acme, join, tokens, application, client, service_role
    ):
        join(bob, acme)
        answer = tokens(bob)
        response = client.put(f"/admin/users/{bob.id}", json={"ban_duration": "24h"}, headers=service_role)
        assert response.status_code == 200
        assert_refresh_refused(application, answer)

    def test_scope_in_a_stored_consent_gives_no_membership(
        self, bob, acme, tokens, application, database, browser
    ):
        tokens(bob, "openid")
        forged_scopes = "scopes = '{openid,organization,organizations,organization:acme}'"
        database.run(f"UPDATE oauth_grants SET {forged_scopes}")
        for scope in (SCOPE, "openid organization:acme"):
            answer = application.returned(application.begin(browser(bob), scope=scope, prompt="none"))
            assert answer["error"] == "access_denied"
        database.run(f"UPDATE sessions SET {forged_scopes} WHERE grant_id IS NOT NULL")
        answer = tokens(bob, "openid organizations")
        assert {"organization", "organizations"}.isdisjoint(claims_of(answer["access_token"]))

    def test_organization_in_a_stored_session_gives_a_stranger_nothing(
        self, bob, acme, tokens, application, database
    ):
        answer = tokens(bob, "openid")
        database.run(
            "UPDATE sessions SET organization_id = %(id)s WHERE grant_id IS NOT NULL", id=id_of(acme)
        )
        assert_refresh_refused(application, answer)
        assert application.userinfo(answer["access_token"]).status_code == 401

    def test_session_gets_the_level_of_its_consent(self, alice, acme, owner, application, database, browser):
        _, raised = set_up(owner)
        database.run("UPDATE organizations SET level = 'aal2'")
        database.run("UPDATE browser_sessions SET session_id = %(id)s", id=raised.id)
        visitor = browser(alice)
        database.run("UPDATE browser_sessions SET session_id = %(id)s", id=raised.id)
        answer = application.tokens(visitor, scope=SCOPE)
        assert claims_of(answer["access_token"])["acr"] == "aal2"
        # A session loses the level with the factor.
        database.run("UPDATE sessions SET aal = 'aal1' WHERE organization_id IS NOT NULL")
        database.run("DELETE FROM factors")
        assert_refresh_refused(application, answer)


@pytest.fixture
def members_only(client, service_role, application, acme):
    """The application, which admits members of Acme alone."""
    path = f"/admin/oauth/clients/{application.client.id}"
    response = client.put(path, json={"organization_id": "acme"}, headers=service_role)
    assert response.status_code == 200, response.text
    assert (response.json["organization_id"], response.json["is_blocked"]) == (id_of(acme), False)
    return application


class TestClientOfAnOrganization:
    def test_application_of_an_organization_admits_its_members_alone(
        self, alice, bob, members_only, tokens, browser, join, acme
    ):
        assert "organization" not in claims_of(tokens(alice, "openid")["access_token"])
        for scope in ("openid", SCOPE):
            page = members_only.begin(browser(bob), scope=scope)
            assert (page.status, "You can’t use Wiki" in words(page)) == (403, True)
        join(bob, acme)
        assert claims_of(tokens(bob)["access_token"])["organization"]["role"] == "member"

    @pytest.mark.parametrize("scope", ["openid", "openid email", SCOPE, "openid organizations"])
    @pytest.mark.parametrize("admits", ["members", "members at aal2", "a role"])
    def test_application_that_nobody_allowed_learns_nothing_about_whom_it_admits(
        self,
        alice,
        bob,
        carol,
        members_only,
        beta,
        join,
        browser,
        client,
        service_role,
        database,
        scope,
        admits,
    ):
        join(bob, beta)
        if admits == "members at aal2":
            database.run("UPDATE organizations SET level = 'aal2' WHERE slug = 'acme'")
        if admits == "a role":
            path, body = f"/admin/oauth/clients/{members_only.client.id}", {"organization_id": None}
            response = client.put(path, json=body | {"allowed_roles": ["admin"]}, headers=service_role)
            assert response.status_code == 200, response.text
        requests: tuple[dict[str, str], ...] = ({}, {"max_age": "0"}, {"prompt": "login"})
        for person in (alice, bob, carol):
            visitor = browser(person)
            for changes in requests[:2]:
                page = members_only.begin(visitor, scope=scope, **changes | {"prompt": "none"})
                silent = members_only.returned(page)
                assert (silent["error"], "code" in silent) == ("consent_required", False), person.email
            for changes in requests:
                members_only.begin(visitor, scope=scope, **changes)
                authorization_id = re.search(r"authorization_id(=|%3D)([\w-]+)", visitor.page.url)
                fields = {"authorization_id": authorization_id and authorization_id[2], "action": "deny"}
                denied = members_only.returned(visitor.send("/oauth/consent", **fields))
                refusal = ("access_denied", "User denied the request")
                assert (denied["error"], denied["error_description"]) == refusal, (person.email, changes)

    def test_application_that_the_user_allowed_learns_that_the_membership_is_lost(
        self, bob, acme, join, owner, members_only, tokens, browser
    ):
        join(bob, acme)
        tokens(bob, "openid")
        visitor = browser(bob)
        assert "code" in members_only.returned(members_only.begin(visitor, scope="openid", prompt="none"))
        assert owner.delete(f"{acme}/members/{bob.id}").status_code == 204
        page = members_only.begin(visitor, scope="openid", prompt="none")
        assert members_only.returned(page)["error"] == "access_denied"
        # A scope that the user has not allowed tells nothing about it.
        page = members_only.begin(visitor, scope="openid email", prompt="none")
        assert members_only.returned(page)["error"] == "consent_required"

    def test_application_that_skips_the_consent_gets_a_code_for_members_and_a_refusal_for_others(
        self, alice, bob, members_only, browser, database
    ):
        database.run("UPDATE oauth_clients SET skip_consent = true")
        for person, outcome in ((alice, "code"), (bob, "error")):
            page = members_only.begin(browser(person), scope="openid", prompt="none")
            answer = members_only.returned(page)
            assert (outcome in answer, answer.get("error")) == (
                True,
                None if person is alice else "access_denied",
            )

    def test_application_of_an_organization_offers_no_other_organization(
        self, alice, beta, members_only, tokens, browser
    ):
        assert claims_of(tokens(alice)["access_token"])["organization"]["slug"] == "acme"
        page = members_only.begin(browser(alice), scope="openid organization:beta")
        assert page.status == 403

    def test_application_of_an_organization_ends_the_sessions_of_a_lost_member(
        self, bob, acme, join, owner, members_only, tokens, introspect
    ):
        join(bob, acme)
        answer = tokens(bob, "openid")
        assert owner.delete(f"{acme}/members/{bob.id}").status_code == 204
        assert introspect(answer) == {"active": False}
        join(bob, acme)
        assert_refresh_refused(members_only, answer)

    def test_setting_the_organization_ends_the_sessions_of_others_for_good(
        self, alice, bob, acme, application, tokens, client, service_role, database
    ):
        answers = [tokens(person, "openid") for person in (alice, bob)]
        path = f"/admin/oauth/clients/{application.client.id}"
        for organization in (id_of(acme), None):
            response = client.put(path, json={"organization_id": organization}, headers=service_role)
            assert response.status_code == 200, response.text
        assert "organization_id" not in response.json
        assert application.refresh(answers[0]["refresh_token"]).status_code == 200
        assert_refresh_refused(application, answers[1])

    def test_application_of_an_organization_can_be_blocked_like_another(
        self, alice, members_only, tokens, client, service_role
    ):
        answer, path = tokens(alice, "openid"), f"/admin/oauth/clients/{members_only.client.id}"
        for is_blocked in (True, False):
            application_object = client.put(path, json={"is_blocked": is_blocked}, headers=service_role).json
            assert (application_object["is_blocked"], "organization_id" in application_object) == (
                is_blocked,
                True,
            )
        assert_refresh_refused(members_only, answer)
        assert "access_token" in tokens(alice, "openid")

    def test_organization_must_exist_and_be_on(self, client, service_role, application, acme, make_app):
        path = f"/admin/oauth/clients/{application.client.id}"
        client_without = make_app(AUTH_ORGANIZATIONS="off").test_client()
        for http, name in ((client, "nobody"), (client, application.client.id), (client_without, "acme")):
            response = http.put(path, json={"organization_id": name}, headers=service_role)
            assert (response.status_code, response.json["error_code"]) == (400, "validation_failed")


class TestOff:
    def test_scopes_are_unknown_while_organizations_are_off(self, alice, acme, application, make_app):
        app = make_app(AUTH_ORGANIZATIONS="off")
        visitor = Visitor(app).with_session_of(alice)
        returned = application.returned(application.begin(visitor, scope="organization organization:acme"))
        assert returned["error"] == "invalid_scope"
        answer = application.tokens(visitor, scope="openid organization organizations")
        assert answer["scope"] == "openid"

    def test_session_that_needs_a_membership_is_refused_while_organizations_are_off(
        self, alice, members_only, tokens, make_app
    ):
        answers = [tokens(alice), tokens(alice, "openid")]
        app = make_app(AUTH_ORGANIZATIONS="off")
        members_only.http = app.test_client()
        assert members_only.userinfo(answers[0]["access_token"]).status_code == 401
        for answer in answers:
            assert_refresh_refused(members_only, answer)
        page = members_only.begin(Visitor(app).with_session_of(alice), scope="openid")
        assert page.status == 403


def test_device_is_used_for_the_organization_that_its_user_chooses(
    alice, acme, beta, client, database, browser
):
    television = make_client(database, grant_types=[DEVICE_CODE])
    codes = television.post(client, "/oauth/device_authorization", scope=SCOPE).json
    visitor = browser(alice)
    database.run("UPDATE sessions SET reauthenticated_at = now()")
    visitor.visit(f"/device?user_code={codes['user_code']}")
    page = visitor.submit(user_code=codes["user_code"])
    assert "Choose an organization" in words(page)
    again = visitor.submit(action="approve", organization="")
    assert (again.status, "Choose one of the organizations" in words(again)) == (400, True)
    visitor.submit(action="approve", organization=id_of(beta))
    form = {"grant_type": DEVICE_CODE, "device_code": codes["device_code"]}
    answer = television.post(client, "/oauth/token", **form).json
    assert claims_of(answer["access_token"])["organization"]["slug"] == "beta"


def test_application_is_told_that_a_lost_membership_has_ended_its_session(
    bob, acme, join, owner, tokens, database
):
    join(bob, acme)
    database.run("UPDATE oauth_clients SET backchannel_logout_uri = 'https://wiki.example.com/logout'")
    tokens(bob), tokens(bob, "openid")
    assert owner.delete(f"{acme}/members/{bob.id}").status_code == 204
    assert database.count("outbox", "channel = 'logout'") == 1
