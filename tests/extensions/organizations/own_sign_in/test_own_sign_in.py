"""Signing in with an organization's own provider: *Test sign-in*, *On*, the requirement, and who joins."""

from urllib.parse import unquote, urlsplit

import pytest

from auth.delivery import janitor
from tests.support.admin_keys import make_admin_key
from tests.support.answers import ANYTHING, assert_error
from tests.support.commands import run_command
from tests.support.fake_provider import Answer
from tests.support.links import SITE
from tests.support.oauth import assert_failed
from tests.support.own_providers import ALICE, DOMAIN, PATH
from tests.support.pages import unsigned, words
from tests.support.users import PASSWORD

BOB = "bob@example.com"


class TestOfOwners:
    def test_press_signs_in_the_owner_who_presses_and_nobody_else(
        self, tried, provider, service, customers, database, alice
    ):
        assert unsigned(tried.page) == f"{SITE}{PATH}/sign-in"
        amr = database.value("SELECT amr FROM sessions ORDER BY created_at DESC LIMIT 1")
        assert (amr[-1]["method"], amr[-1]["provider"]) == ("oauth", f"sso:{provider}")
        assert database.value("SELECT tried_at IS NOT NULL AND NOT is_on FROM identity_providers")
        row = database.one("SELECT user_id::text, subject FROM identities WHERE provider LIKE 'sso:%%'")
        assert row == (alice.id, "1")
        # It is off for everybody else, and for her without the press.
        for email in (ALICE, "eve@example.com"):
            customers.acme.be("1", email)
            assert "is turned off" in words(service.sign_in(f"custom:{provider}"))
        assert database.count("users") == 1

    @pytest.mark.parametrize("email", [BOB, "eve@example.com"])
    def test_provider_that_claims_somebody_else_signs_in_nobody(
        self, press, alice, bob, customers, database, email, provider
    ):
        customers.acme.be("1", email)
        before = database.count("sessions")
        visitor = press(alice)
        assert "error_code=pressed.user_sso_conflict" in visitor.page.url
        assert "signed you in to a different account." in words(visitor.page)
        # URLs are in the history of the browser, and in logs.
        assert email not in unquote(visitor.page.url)
        assert email not in visitor.page.text
        assert database.count("sessions") == before + 1  # that of her browser
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0
        assert database.value("SELECT tried_at FROM identity_providers") is None
        assert database.count("users") == 2

    def test_flow_of_another_browser_signs_in_nobody(
        self, browse, alice, provider, service, customers, database
    ):
        visitor, path = browse(alice), f"{PATH[1:]}/sign-in/providers/{provider}/test"
        visitor.visit(f"/{path}")
        page = visitor.submit(stop=service.is_callback)
        thief = service.browser()
        thief.visit(page.url)
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0

    def test_press_needs_a_fresh_proof(self, browse, alice, provider, database, customers):
        visitor, path = browse(alice), f"{PATH[1:]}/sign-in/providers/{provider}/test"
        visitor.visit(f"/{path}")
        database.run(
            "UPDATE sessions SET created_at = created_at - interval '1 hour', reauthenticated_at = NULL"
        )
        visitor.press(path)
        assert "/authorize" not in customers.acme.provider.paths()
        assert database.count("oauth_flows") == 0

    def test_member_who_is_no_owner_tests_nothing(
        self, acme, join, bob, browse, provider, customers, database
    ):
        join(bob, acme, "admin")
        visitor, path = browse(bob), f"{PATH[1:]}/sign-in/providers/{provider}/test"
        assert visitor.visit(f"/{path}").status == 404
        customers.acme.provider.requests.clear()
        visitor.visit("/account/organizations/new")
        assert visitor.send(f"/{path}").status == 404
        # Any member could have us fetch the document otherwise.
        assert customers.acme.provider.paths() == []
        assert database.count("oauth_flows") == 0

    def test_administrator_of_the_service_leaves_it_to_another_owner(
        self, press, alice, provider, database, customers
    ):
        database.run("UPDATE users SET role = 'admin'")
        press(alice)
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0
        assert database.count("oauth_flows") == 0

    def test_owner_with_an_address_of_another_domain_is_refused(self, press, alice, provider, database):
        database.run("UPDATE users SET email = 'alice@other.example'")
        press(alice)
        assert database.count("oauth_flows") == 0

    @pytest.mark.parametrize("changes", [{"client_id": "x", "client_secret": "y"}, {"client_secret": "y"}])
    def test_other_client_or_secret_is_tested_again(
        self, tried, sign_in, provider, database, changes, press, alice
    ):
        assert sign_in.change(provider, **changes).status_code == 200
        press(alice, "on", tried)
        assert database.value("SELECT is_on FROM identity_providers") is False

    def test_another_document_of_the_issuer_is_tested_again(
        self, tried, sign_in, provider, customers, database, press, alice
    ):
        changes = {"discovery_url": customers.acme.other_document(), "client_secret": "another"}
        assert sign_in.change(provider, **changes).status_code == 200
        press(alice, "on", tried)
        assert database.value("SELECT is_on FROM identity_providers") is False

    @pytest.mark.parametrize("changes", [{"client_id": "x", "client_secret": "y"}, {"client_secret": "y"}])
    def test_provider_is_not_turned_on_by_a_change_that_must_be_tested(
        self, tried, owner, sign_in, provider, database, changes
    ):
        database.run(
            "UPDATE sessions SET amr = jsonb_build_array(jsonb_build_object('method', 'oauth', 'timestamp', 1,"
            f" 'provider', 'sso:{provider}'))"
        )
        response = sign_in.change(provider, owner.refreshed(), enabled=True, **changes)
        assert_error(response, 403, "provider_not_tried")
        assert database.value("SELECT is_on FROM identity_providers") is False

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE memberships SET role = 'admin'",
            "DELETE FROM memberships",
            "UPDATE organizations SET ended_at = now()",
            "DELETE FROM identity_provider_domains",
            "UPDATE users SET email_confirmed_at = NULL, email = 'eve@example.com'",
            "UPDATE users SET role = 'admin'",
            "UPDATE users SET banned_until = now() + interval '1 day'",
        ],
    )
    def test_user_who_may_no_longer_try_the_provider_is_not_signed_in(
        self, alice, browse, provider, service, customers, database, change
    ):
        visitor, path = browse(alice), f"{PATH[1:]}/sign-in/providers/{provider}/test"
        visitor.visit(f"/{path}")
        page = visitor.submit(stop=service.is_callback)
        database.run(change)
        before = database.count("sessions")
        assert "error" in visitor.visit(page.url).url
        assert database.count("sessions") == before
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0
        assert database.value("SELECT tried_at FROM identity_providers") is None

    def test_press_admits_no_issuer_that_came_after_it(
        self, alice, browse, sign_in, provider, service, customers, database
    ):
        visitor, path = browse(alice), f"{PATH[1:]}/sign-in/providers/{provider}/test"
        visitor.visit(f"/{path}")
        page = visitor.submit(stop=service.is_callback)
        other = customers.globex
        fields = {"issuer": other.provider.url, "client_id": other.provider.client_id}
        response = sign_in.change(provider, **fields, client_secret=other.body()["client_secret"])
        assert response.status_code == 200
        database.run("UPDATE identity_providers SET is_on = true")
        other.be("9", ALICE)
        assert "error_code=bad_oauth_state" in visitor.visit(page.url).url
        assert_failed(service.sign_in(f"custom:{provider}"), "user_sso_conflict")
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0


class TestOn:
    def test_only_a_session_that_the_provider_opened_turns_the_provider_on(
        self, tried, press, alice, sign_in, provider, database
    ):
        assert_error(sign_in.change(provider, enabled=True), 403, "provider_not_tried")
        press(alice, "on")
        assert database.value("SELECT is_on FROM identity_providers") is False
        press(alice, "on", tried)
        assert database.value("SELECT is_on FROM identity_providers") is True

    def test_employee_signs_in_and_joins(self, on, provider, service, customers, acme):
        customers.acme.be("2", "dave@example.com")
        session = service.signed_in(f"custom:{provider}")
        assert session.claims["organizations"] == {acme.rpartition("/")[2]: "member"}
        (organization,) = session.get("/user").json["organizations"]
        assert (organization["slug"], organization["role"]) == ("acme", "member")

    def test_removed_employee_is_added_again(self, on, provider, service, customers, acme, owner, database):
        customers.acme.be("2", "dave@example.com")
        user = service.signed_in(f"custom:{provider}").get("/user").json
        assert owner.delete(f"{acme}/members/{user['id']}").status_code == 204
        assert "organizations" in service.signed_in(f"custom:{provider}").claims
        assert database.value("SELECT added_by FROM memberships WHERE role = 'member'") == "provider"

    def test_provider_without_a_role_adds_nobody(self, on, provider, sign_in, service, customers):
        sign_in.change(provider, member_role=None)
        customers.acme.be("2", "dave@example.com")
        assert "organizations" not in service.signed_in(f"custom:{provider}").claims

    def test_employee_with_fifty_memberships_signs_in_without_joining(
        self, on, provider, service, customers, database
    ):
        customers.acme.be("2", "dave@example.com")
        service.signed_in(f"custom:{provider}")
        database.run(
            "WITH made AS (INSERT INTO organizations (id, slug, name) SELECT gen_random_uuid(), 'o' || n, 'O'"
            " FROM generate_series(1, 50) AS n RETURNING id) INSERT INTO memberships (user_id, organization_id,"
            " role, added_by) SELECT u.id, made.id, 'member', 'invitation' FROM made, users AS u"
            " WHERE u.email = 'dave@example.com'"
        )
        database.run("DELETE FROM memberships AS m WHERE m.provider_id IS NOT NULL")
        assert len(service.signed_in(f"custom:{provider}").claims["organizations"]) == 50

    def test_member_with_a_password_is_signed_in_only_after_pressing_move(
        self, on, provider, service, customers, bob, database, acme, join, press
    ):
        join(bob, acme)
        customers.acme.be("2", BOB)
        assert_failed(service.sign_in(f"custom:{provider}"), "user_sso_conflict")
        press(bob, "move")
        assert database.count("identities", "subject = '2'") == 1
        assert service.signed_in(f"custom:{provider}").claims["email"] == BOB

    def test_administrator_of_the_service_is_never_signed_in(self, on, provider, service, customers, carol):
        customers.acme.be("3", carol.email)
        assert_failed(service.sign_in(f"custom:{provider}"), "user_sso_conflict")

    def test_lost_domain_signs_in_nobody(self, on, provider, service, customers, owner, acme):
        assert owner.delete(f"{acme}/domains/{DOMAIN}").status_code == 204
        customers.acme.be("2", "dave@example.com")
        assert_failed(service.sign_in(f"custom:{provider}"), "bad_oauth_callback", "server_error")

    def test_silent_provider_keeps_nobody_else_waiting(self, on, provider, client, customers, bob):
        customers.acme.provider.instead["/token"] = Answer(behaviour="silence")
        assert bob.try_to_sign_in(client=client).status_code == 200


class TestRequirement:
    def test_other_sessions_are_no_members_and_name_the_provider(
        self, on, press, owner, acme, provider, database, service, customers, alice
    ):
        assert_error(
            owner.put(acme, json={"requires": {"own_provider": True}}),
            403,
            "organization_sign_in_needed",
            providers=[f"sso:{provider}"],
        )
        on.visit(f"{PATH}/sign-in/requirement")
        on.press(f"{PATH[1:]}/sign-in/requirement")
        assert database.value("SELECT needs_own_provider FROM organizations") is True
        name = f"sso:{provider}"
        assert_error(owner.get(acme), 403, "organization_sign_in_needed", providers=[name])
        (organization,) = owner.get("/user").json["organizations"]
        assert (organization["requires"], "role" in organization) == (
            {"aal": "aal1", "providers": [name]},
            False,
        )
        renewed = owner.refreshed()
        assert "organizations" not in renewed.claims
        customers.acme.be("1", ALICE)
        session = service.signed_in(f"custom:{provider}")
        assert session.claims["organizations"] == {acme.rpartition("/")[2]: "owner"}
        assert session.get(acme).json["requires"]["providers"] == [name]
        assert session.refreshed().claims["organizations"]

    def test_provider_of_another_organization_does_not_count(
        self, on, acme, owner, bob, service, customers, database
    ):
        # A session of another organization's provider does not meet the requirement.
        database.run("UPDATE organizations SET needs_own_provider = true")
        database.run(
            "UPDATE sessions SET amr = jsonb_build_array(jsonb_build_object('method', 'oauth', 'timestamp', 1,"
            " 'provider', 'sso:3f0c5bd4-0a55-4d8e-9d92-5ddf13ed0a01'))"
        )
        assert "organizations" not in owner.refreshed().claims

    def test_page_of_the_move_says_that_the_user_joins(self, on, acme, join, bob, browse):
        visitor = browse(bob)
        page = visitor.visit("/account/company")
        assert "your company can open this account, and you join Acme . Your other ways" in words(page)
        assert "undo" not in words(page)
        join(bob, acme)
        page = visitor.visit("/account/company")
        assert "your company can open this account. Your other ways" in words(page)

    def test_url_of_the_move_in_the_last_release_leads_to_its_page(self, on, browse, bob, mallory, provider):
        for person in (bob, mallory):
            visitor = browse(person)
            for slug in ("acme", "nobody"):
                visitor.visit(f"/account/organizations/{slug}/sign-in/providers/{provider}/move")
                assert visitor.page.url == f"{SITE}/account/company?next=organizations%2F{slug}"

    def test_owner_who_moves_reads_what_every_user_reads(
        self, on, owner, acme, press, browse, alice, customers
    ):
        before = owner.get(f"{acme}/audit").json["data"]
        customers.acme.provider.client_secret, secret = "another", customers.acme.provider.client_secret
        page = press(alice, "move", browse(alice)).page
        customers.acme.provider.client_secret = secret
        assert urlsplit(page.url).path == "/account/company"
        assert "The provider didn’t sign you in." in words(page)
        assert "client secret" not in words(page)
        assert owner.get(f"{acme}/audit").json["data"] == before

    def test_button_moves_a_member_with_a_password(
        self, on, join, bob, acme, provider, customers, press, browse, database
    ):
        join(bob, acme)
        database.run("UPDATE organizations SET needs_own_provider = true")
        customers.acme.be("2", BOB)
        visitor = browse(bob)
        assert "Acme asks you to sign in with your company’s account." in words(visitor.visit("/account"))
        visitor.visit(visitor.link_to("account/company"))
        visitor.press("account/company")
        assert unsigned(visitor.page) == f"{SITE}/account?done=company"
        assert visitor.visit(PATH).status == 200

    def test_operator_lifts_the_requirement_and_disables_the_provider(
        self, on, acme, owner, client, service_role, provider, database
    ):
        database.run("UPDATE organizations SET needs_own_provider = true")
        body = {"requires": {"own_provider": False}}
        assert client.put(acme, json=body, headers=service_role).json["requires"] == {"aal": "aal1"}
        assert owner.get(acme).status_code == 200
        path = f"/admin/custom-providers/{provider}"
        assert client.put(path, json={"enabled": False}, headers=service_role).json["enabled"] is False
        assert database.count("memberships") == 1

    @pytest.mark.parametrize("door", ["key", "service role", "command"])
    def test_operator_cannot_require_own_sign_in_while_no_provider_is_on(
        self, provider, acme, owner, service, service_role, database, door
    ):
        body, details = (
            {"requires": {"own_provider": True}},
            "requires.own_provider: needs a provider that is on, with a domain",
        )
        if door == "command":
            result = run_command(service.app, "organizations", "require", "acme", "own-sign-in")
            assert (result.exit_code, details in result.output) == (2, True)
        else:
            key = make_admin_key(service.parts, "organizations:write").headers
            response = service.client.put(acme, json=body, headers=key if door == "key" else service_role)
            assert_error(response, 400, "validation_failed", details=details)
        assert_error(owner.put(acme, json=body), 403, "organization_sign_in_needed", providers=[])
        assert database.value("SELECT needs_own_provider FROM organizations") is False
        assert owner.get(acme).status_code == 200
        database.run("UPDATE identity_providers SET is_on = true")
        assert service.client.put(acme, json=body, headers=service_role).status_code == 200

    @pytest.mark.parametrize("door", ["owner", "page", "service role", "command"])
    def test_nobody_requires_own_sign_in_once_the_last_domain_is_given_up(
        self, on, provider, acme, owner, service, service_role, customers, database, door
    ):
        customers.acme.be("1", ALICE)
        session = service.signed_in(f"custom:{provider}")
        proof = {"current_password": PASSWORD}
        assert session.delete(f"{acme}/domains/{DOMAIN}", json=proof).status_code == 204
        body = {"requires": {"own_provider": True}}
        details = "requires.own_provider: needs a provider that is on, with a domain"
        if door == "command":
            result = run_command(service.app, "organizations", "require", "acme", "own-sign-in")
            assert (result.exit_code, details in result.output) == (2, True)
        elif door == "page":
            on.visit(f"{PATH}/sign-in/requirement")
            on.send(f"{PATH}/sign-in/requirement", own_provider="true")
            assert on.page.status == 400
            assert "An identity provider must be on, with a domain" in words(on.page)
        else:
            response = (
                session.put(acme, json=body | proof)
                if door == "owner"
                else service.client.put(acme, json=body, headers=service_role)
            )
            assert_error(response, 400, "validation_failed", details=details)
        assert database.value("SELECT needs_own_provider FROM organizations") is False
        assert owner.get(acme).status_code == 200

    def test_owner_keeps_the_last_way_in_that_is_required(
        self, on, provider, sign_in, acme, owner, service, service_role, customers, database
    ):
        """Without it, no session would be left in which an owner could undo that."""
        customers.acme.be("1", ALICE)
        session = service.signed_in(f"custom:{provider}")
        path, proof = f"{acme}/providers/{provider}", {"current_password": PASSWORD}
        response = session.put(acme, json={"requires": {"own_provider": True}} | proof)
        assert response.status_code == 200, response.text
        for refused in (
            sign_in.change(provider, session, enabled=False),
            sign_in.change(provider, session, domains=[]),
            session.delete(path, json=proof),
            session.delete(f"{acme}/domains/{DOMAIN}", json=proof),
        ):
            assert_error(refused, 409, "own_sign_in_required")
        page = on.visit(f"{PATH}/sign-in/providers/{provider}/off")
        assert page.status == 200
        on.press(f"{PATH[1:]}/sign-in/providers/{provider}/off")
        assert "Stop requiring it first" in words(on.page)
        assert "access_token" in service.sign_in(f"custom:{provider}").url
        assert database.value("SELECT proved_at IS NOT NULL FROM organization_domains")
        # A change that keeps a way in is allowed, and so is any of the operator.
        assert sign_in.change(provider, session, name="Acme Inc.").status_code == 200
        answer = service.client.put(path, json={"enabled": False}, headers=service_role)
        assert (answer.status_code, answer.json["enabled"]) == (200, False)

    @pytest.mark.parametrize("end", ["off", "domain"])
    def test_owner_who_lifts_the_requirement_first_may_remove_the_last_way_in(
        self, on, provider, sign_in, acme, service, customers, database, end
    ):
        customers.acme.be("1", ALICE)
        session = service.signed_in(f"custom:{provider}")
        proof = {"current_password": PASSWORD}
        for requires in (True, False):
            body = {"requires": {"own_provider": requires}} | proof
            assert session.put(acme, json=body).status_code == 200
        if end == "off":
            assert sign_in.change(provider, enabled=False).status_code == 200
        else:
            assert sign_in.owner.delete(f"{acme}/domains/{DOMAIN}", json=proof).status_code == 204
        assert "access_token" not in service.sign_in(f"custom:{provider}").url

    def test_disabled_provider_counts_for_nobody_where_it_is_required(self, on, acme, owner, database):
        database.run("UPDATE organizations SET needs_own_provider = true")
        database.run("UPDATE identity_providers SET is_on = false, disabled_at = now()")
        assert_error(owner.get(acme), 403, "organization_sign_in_needed", providers=[])


def test_key_of_a_program_ends_no_organization_with_a_provider_and_deletes_none(
    on, provider, service, acme, database
):
    key = make_admin_key(service.parts, "organizations:write")
    response = service.client.delete(acme, json={}, headers=key.headers)
    assert_error(response, 403, "insufficient_permissions", details=ANYTHING)
    for path in (f"{acme}/providers/{provider}", f"{acme}/domains/{DOMAIN}"):
        response = service.client.delete(path, json={}, headers=key.headers)
        assert_error(response, 403, "insufficient_scope", details=ANYTHING)
    assert database.value("SELECT is_on FROM identity_providers")
    assert database.count("organizations", "ended_at IS NULL") == 1


@pytest.mark.parametrize("is_on", [True, False])
def test_key_for_providers_gives_and_takes_no_domain(on, provider, service, customers, database, is_on):
    customers.acme.be("7", "eve@example.com")
    key = make_admin_key(service.parts, "providers").headers
    path = f"/admin/custom-providers/custom:{provider}"
    database.run("UPDATE identity_providers SET is_on = %(is_on)s", is_on=is_on)
    for domains in ([], ["other.example"], [DOMAIN, "other.example"]):
        response = service.client.put(path, json={"domains": domains}, headers=key)
        assert_error(response, 403, "insufficient_permissions", details="domains: must be absent")
    assert database.all("SELECT domain FROM identity_provider_domains") == [(DOMAIN,)]


def test_key_turns_an_organizations_provider_off_for_its_owners_too(
    on, provider, service, sign_in, alice, customers, database, client, service_role
):
    key = make_admin_key(service.parts, "providers").headers
    path = f"/admin/custom-providers/{provider}"
    answer = client.put(path, json={"enabled": False}, headers=key).json
    assert (answer["enabled"], answer["is_blocked"]) == (False, True)
    session = alice.open_session(client)
    assert_error(sign_in.change(provider, session, enabled=True), 403, "sso_provider_disabled")
    assert client.put(path, json={"enabled": True}, headers=key).status_code == 403
    assert database.count("memberships") == 1
    notices = "SELECT variables ->> 'change' FROM outbox WHERE kind = 'organization_sign_in'"
    assert [change for (change,) in database.all(notices)][-1] == "off"
    assert client.put(path, json={"enabled": True}, headers=service_role).json["enabled"] is True


def test_deleted_provider_takes_the_memberships_that_it_added_but_the_last_owners(
    on, provider, service, customers, owner, acme, database, service_role
):
    for subject, email in (("2", "dave@example.com"), ("3", "erin@example.com")):
        customers.acme.be(subject, email)
        service.signed_in(f"custom:{provider}")
    database.run(
        "UPDATE memberships AS m SET role = 'owner' FROM users AS u WHERE u.id = m.user_id AND u.email LIKE 'dave%%'"
    )
    database.run("UPDATE memberships SET role = 'member' WHERE added_by = 'founder'")
    path = f"/organizations/acme/providers/{provider}"
    assert service.client.delete(path, json={}, headers=service_role).status_code == 204
    rows = database.all(
        "SELECT u.email, m.role FROM memberships AS m JOIN users AS u ON u.id = m.user_id ORDER BY 1"
    )
    assert rows == [(ALICE, "member"), ("dave@example.com", "owner")]
    assert database.count("memberships", "provider_id IS NOT NULL") == 0


def test_key_that_may_delete_users_deletes_no_only_owner_whose_provider_signs_in_others(
    on, provider, service, customers, alice, database, sign_in
):
    sign_in.change(provider, member_role=None)
    customers.acme.be("7", "eve@example.com")
    service.sign_in(f"custom:{provider}")
    assert database.count("memberships") == 1
    key = make_admin_key(service.parts, "users:write")
    path = f"/admin/users/{alice.id}"
    response = service.client.delete(path, headers=key.headers)
    assert_error(response, 403, "insufficient_permissions", details="providers: must be deleted first")
    janitor.keep_house(service.parts.settings, service.parts.db, service.parts.sealer)
    assert database.count("users", "id = %(id)s", id=alice.id) == 1
    assert database.count("identities", "provider LIKE 'sso:%%'") == 2
    assert sign_in.change(provider, enabled=False).status_code == 200
    # Its provider would be deleted with the organization.
    assert service.client.delete(path, headers=key.headers).status_code == 403
    session, proof = alice.open_session(service.client), {"current_password": PASSWORD}
    assert session.delete(f"{sign_in.path}/providers/{provider}", json=proof).status_code == 204
    assert service.client.delete(path, headers=key.headers).status_code == 200
