"""The page of an invitation: the question, and what it says where there is nothing to answer any more."""

import re
from urllib.parse import urlencode, urlsplit

import pytest

from tests.support.checked_rows import statements_run
from tests.support.links import SITE, single
from tests.support.page_tour import google
from tests.support.pages import Visitor, unsigned, words
from tests.support.server import at_once
from tests.support.users import PASSWORD

PATH = "/organizations/acme/join"
CONSENT = f"oauth/consent?authorization_id={'a' * 43}"
# Acme has a provider for its domain, and requires it.
OWN_SIGN_IN = """
    INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret, enabled, disabled_at,
                                    organization_id)
    SELECT id, 'custom:acme', 'Acme', 'https://login.acme.example', 'x', 'x', false, to_timestamp(0), id
      FROM organizations;
    UPDATE identity_providers SET is_on = true;
    INSERT INTO identity_provider_domains (domain, provider_id) SELECT 'example.com', id FROM identity_providers;
    UPDATE organizations SET needs_own_provider = true;
"""
# The domain may be another customer's.
OTHERS = """
    INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret, enabled)
    VALUES (gen_random_uuid(), 'custom:globex', 'Globex', 'https://login.globex.example', 'x', 'x', true);
"""
NEW = "new@example.com"
APPLICATION = "https://nimbus.example"
NONE = (
    "There’s no invitation for bob@example.com here. It may have ended, or gone to another address."
    " Use another account"
)


@pytest.fixture
def settings():
    return {"AUTH_ORGANIZATIONS": "users", "AUTH_BRAND_NAME": "Nimbus", "AUTH_SITE_URL": APPLICATION}


@pytest.fixture
def client(make_app, settings):
    return make_app(**settings).test_client()


def bare(page):
    """Return the whole body of a page, without the token of its forms and its short name."""
    text = re.sub(r'name="form_token" value="[^"]+"', "", page.text)
    return text.replace(page.url.partition("/organizations/")[2].partition("/join")[0], "SLUG")


def continues(visitor, host="Nimbus"):
    """Press the button that leads on, and return the URL that it leads to."""
    assert f"Continue to {host}" in words(visitor.page)
    return visitor.press("sign-in/continue").url


class TestQuestion:
    def test_invited_user_joins_and_continues_to_the_application(self, invite, bob, browse, database):
        invite(bob.email, "admin")
        visitor = browse(bob)
        visitor.visit("/account")
        assert "You’re invited as admin." in words(visitor.page)
        visitor.visit(visitor.link_to("organizations/acme/join"))
        text = words(visitor.page)
        assert "Join Acme as admin?" in text
        assert "Its owners and admins will see your name and email address" in text
        visitor.press("organizations/acme/join", action="approve")
        assert visitor.page.status == 200
        assert words(visitor.page).endswith("You’re now a member of Acme Continue to Nimbus")
        assert database.value("SELECT role FROM memberships WHERE added_by = 'invitation'") == "admin"
        # Reloading sends nothing again.
        before = database.everything("memberships", "audit_log")
        visitor.visit(visitor.page.url)
        assert "You’re now a member of Acme" in words(visitor.page)
        assert database.everything("memberships", "audit_log") == before
        assert 'href="../../account/organizations/acme">Open' in visitor.page.text
        assert continues(visitor) == APPLICATION

    def test_invited_user_declines_and_continues_to_the_application(self, invite, bob, browse, database):
        invite(bob.email)
        visitor = browse(bob)
        visitor.visit(PATH)
        visitor.press("organizations/acme/join", action="deny")
        assert visitor.page.status == 200
        assert "Invitation declined If you change your mind, ask for a new invitation." in words(visitor.page)
        assert (database.count("memberships"), database.count("organization_invitations")) == (1, 0)
        assert continues(visitor) == APPLICATION
        # Later, or from the mail, there is none.
        assert visitor.visit(PATH).status == 404
        invite(bob.email)
        visitor.visit(PATH)
        assert "Join Acme as member?" in words(visitor.page)

    def test_without_an_application_the_account_is_next(self, make_app, invite, bob):
        invite(bob.email)
        visitor = Visitor(make_app(AUTH_ORGANIZATIONS="users")).with_session_of(bob)
        visitor.visit(PATH)
        visitor.press("organizations/acme/join", action="approve")
        assert words(visitor.page).endswith("You’re now a member of Acme Your account")
        assert visitor.visit(visitor.link_to("account")).url == f"{SITE}/account"

    @pytest.mark.parametrize("action", ["approve", "deny"])
    def test_destination_outlives_the_sign_in_and_the_answer(
        self, invite, bob, browse, make_app, settings, action
    ):
        invite(bob.email)
        app = make_app(**settings, AUTH_REDIRECT_ALLOW_LIST="https://wiki.example/**")
        visitor = Visitor(app)
        visitor.visit(f"{PATH}?redirect_to=https://wiki.example/start")
        visitor.press("sign-in", email=bob.email, password=PASSWORD)
        assert "Join Acme as member?" in words(visitor.page)
        visitor.press("organizations/acme/join", action=action)
        assert continues(visitor, "wiki.example").partition("#")[0] == "https://wiki.example/start"

    def test_invited_person_who_is_signed_in_with_another_account_comes_back(
        self, invite, bob, mallory, browse, database
    ):
        invite(bob.email)
        visitor = browse(mallory)
        visitor.visit(PATH)
        assert "There’s no invitation for mallory@example.com here." in words(visitor.page)
        visitor.press("sign-out")
        assert unsigned(visitor.page) == f"{SITE}/sign-in?next=organizations%2Facme%2Fjoin"
        assert "to see your invitation" in words(visitor.page)
        visitor.press("sign-in", email=bob.email, password=PASSWORD)
        assert "Join Acme as member?" in words(visitor.page)
        # From the question, too.
        visitor.press("sign-out")
        assert unsigned(visitor.page) == f"{SITE}/sign-in?next=organizations%2Facme%2Fjoin"
        assert database.count("memberships") == 1

    def test_page_after_the_invitation_outlives_a_sign_in_and_another_account(
        self, invite, bob, mallory, browse
    ):
        invite(bob.email)
        visitor = browse()
        visitor.visit(f"{PATH}?next=email")
        assert "to see your invitation" in words(visitor.page)
        visitor.press("sign-in", email=mallory.email, password=PASSWORD)
        assert visitor.page.url == f"{SITE}{PATH}?next=email"
        visitor.press("sign-out")
        assert unsigned(visitor.page).endswith("/sign-in?next=organizations%2Facme%2Fjoin%3Fnext%3Demail")
        visitor.press("sign-in", email=bob.email, password=PASSWORD)
        visitor.press("organizations/acme/join", action="approve")
        assert visitor.press("sign-in/continue").url == f"{SITE}/account/email"

    def test_twice_invited_user_finds_the_new_role_at_the_link_of_both_mails(
        self, invite, bob, browse, database
    ):
        assert invite(bob.email) == invite(bob.email, "admin")
        visitor = browse(bob)
        visitor.visit(PATH)
        assert "Join Acme as admin?" in words(visitor.page)
        visitor.press("organizations/acme/join", action="approve")
        assert database.count("memberships", "role = 'admin'") == 1
        visitor.visit(PATH)
        assert words(visitor.page).endswith("You’re already a member of Acme Continue to Nimbus")


class TestStrangerWithoutAccount:
    """An invited person who has no account yet: from the link in the mail to the membership."""

    @pytest.mark.parametrize("is_closed", [True, False])
    def test_code_leads_to_the_invitation(self, make_app, settings, invite, mails, database, is_closed):
        invite(NEW)
        visitor = Visitor(make_app(**settings, AUTH_DISABLE_SIGNUP=str(is_closed).lower()))
        visitor.visit(PATH)
        text = words(visitor.page)
        assert "Sign in to Nimbus to see your invitation" in text
        hint = (
            "New here? Enter the address that the invitation was sent to and choose “Send me a code instead”."
        )
        assert (hint in visitor.page.text) == is_closed
        assert ("Create an account" in visitor.page.text) == (not is_closed)
        visitor.press("sign-in/code", email=NEW)
        assert "It expires in ten minutes. You’ll see your invitation next." in words(visitor.page)
        visitor.press("sign-in/verify", code=mails.last(NEW, "magiclink").code)
        visitor.press("organizations/acme/join", action="approve")
        assert "You’re now a member of Acme" in words(visitor.page)
        assert database.count("memberships", "added_by = 'invitation'") == 1
        assert continues(visitor) == APPLICATION

    def test_sign_up_with_a_password_leads_to_the_invitation(self, client, invite, mails, database):
        invite(NEW)
        visitor = Visitor(client.application)
        visitor.visit(PATH)
        visitor.visit(visitor.link_to("sign-up"))
        assert "Create your account to see your invitation" in words(visitor.page)
        visitor.press("sign-up", email=NEW, password=PASSWORD)
        assert "to confirm your email. You’ll see your invitation next." in words(visitor.page)
        visitor.press("sign-up/verify", code=mails.last(NEW, "signup").code)
        visitor.press("organizations/acme/join", action="approve")
        assert database.count("memberships", "added_by = 'invitation'") == 1
        assert continues(visitor) == APPLICATION

    @pytest.mark.parametrize("is_closed", [True, False])
    def test_provider_leads_to_the_invitation(self, make_app, settings, invite, database, is_closed):
        invite(NEW)
        with google() as provider:
            provider.person = {"sub": "1", "email": NEW, "email_verified": True}
            changes = {
                "AUTH_DISABLE_SIGNUP": str(is_closed).lower(),
                "AUTH_PROVIDER_GOOGLE_LINK_BY_EMAIL": "true",
            }
            changes |= settings | provider.settings("google")
            visitor = Visitor(make_app(**changes))
            visitor.visit(PATH)
            visitor.visit(visitor.link_to("authorize?provider=google"))
        assert "Join Acme as member?" in words(visitor.page)
        visitor.press("organizations/acme/join", action="approve")
        assert database.count("memberships", "added_by = 'invitation'") == 1
        assert continues(visitor) == APPLICATION

    def test_pages_that_lead_elsewhere_do_not_mention_an_invitation(self, client):
        visitor = Visitor(client.application)
        for query in ("", "?next=organizations/acme", "?next=organizations/acme/join/x", "?next=account"):
            for path in ("/sign-in", "/sign-up"):
                assert "invit" not in visitor.visit(path + query).text


class TestNoInvitation:
    """For every short name alike: who may not know it does not learn whether an organization exists."""

    WAYS = ("withdrawn", "declined", "expired", "taken", "of another address", "ended", "existing")

    def make(self, way, acme, owner, invite, bob, client, database):
        """Have Acme in a state in which Bob has no invitation."""
        if way in ("existing", "of another address"):
            return invite(NEW) if way == "of another address" else None
        path = f"/user/invitations/{invite(bob.email)}"
        session = bob.open_session(client)
        return {
            "withdrawn": lambda: owner.delete(f"{acme}/invitations/{path.rpartition('/')[2]}"),
            "declined": lambda: session.delete(path),
            "expired": lambda: database.run("UPDATE organization_invitations SET expires_at = now()"),
            "taken": lambda: (session.post(path), session.delete(f"{acme}/members/{bob.id}")),
            "ended": lambda: owner.delete(acme, json={}),
        }[way]()

    @pytest.mark.parametrize("way", WAYS)
    def test_page_is_the_same_as_for_an_unknown_organization(
        self, acme, owner, invite, bob, client, browse, database, way
    ):
        self.make(way, acme, owner, invite, bob, client, database)
        visitor = browse(bob)
        seen, unknown = (visitor.visit(f"/organizations/{slug}/join") for slug in ("acme", "nowhere"))
        assert (seen.status, unknown.status) == (404, 404)
        assert bare(seen) == bare(unknown)
        assert NONE in words(seen)
        assert continues(visitor) == APPLICATION

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("action", ["approve", "deny"])
    def test_answer_to_an_invitation_that_has_gone_shows_the_same_page(
        self, acme, owner, invite, bob, client, browse, database, way, action
    ):
        self.make(way, acme, owner, invite, bob, client, database)
        visitor, before = browse(bob), database.everything("memberships", "organization_invitations")
        shown = visitor.visit(PATH)
        answers = [visitor.send(f"/organizations/{slug}/join", action=action) for slug in ("acme", "nowhere")]
        assert [each.status for each in answers] == [404, 404]
        assert bare(answers[0]) == bare(answers[1]) == bare(shown)
        assert database.everything("memberships", "organization_invitations") == before

    def test_account_with_an_unproved_address_is_told_to_confirm_it(
        self, invite, bob, browse, database, mails
    ):
        invite(bob.email)
        database.run(
            "UPDATE users SET email_confirmed_at = NULL, email_proved = false WHERE email = %(email)s",
            email=bob.email,
        )
        visitor = browse(bob)
        seen, unknown = (visitor.visit(f"/organizations/{slug}/join") for slug in ("acme", "nowhere"))
        assert (seen.status, unknown.status, bare(seen)) == (404, 404, bare(unknown))
        visitor.visit(PATH)
        assert "Confirm your email address Invitations are for confirmed addresses" in words(visitor.page)
        assert "bob@example.com isn’t confirmed yet. Sign in with a code to confirm it." in words(
            visitor.page
        )
        assert "Sign out and use a code" in words(visitor.page)
        visitor.press("sign-out")
        visitor.press("sign-in/code", email=bob.email)
        visitor.press("sign-in/verify", code=mails.last(bob.email, "magiclink").code)
        # This first proof took the password that came before it.
        visitor.press("new-password", password="Another-Horse-2")
        assert "Join Acme as member?" in words(visitor.page)

    def test_account_without_an_email_is_told_to_add_one(self, acme, bob, browse, database):
        database.run(
            "UPDATE users SET email = NULL, email_confirmed_at = NULL, email_proved = false, phone = '15555550100'"
            " WHERE id = %(id)s",
            id=bob.id,
        )
        visitor = browse(bob)
        seen, unknown = (visitor.visit(f"/organizations/{slug}/join") for slug in ("acme", "nowhere"))
        assert (seen.status, unknown.status, bare(seen)) == (404, 404, bare(unknown))
        assert "this account doesn’t have one. Add an email address Use another account" in words(seen)
        assert visitor.link_to("account/email") == f"{SITE}/account/email"

    def test_page_costs_the_same_statements_for_every_short_name(self, invite, bob, browse):
        invite(NEW)
        visitor, costs = browse(bob), []
        visitor.visit(PATH)
        for slug in ("acme", "nowhere"):
            before = statements_run()
            visitor.visit(f"/organizations/{slug}/join")
            costs.append(statements_run() - before)
        assert costs[0] == costs[1]


class TestMember:
    def test_member_is_told_so_and_asked_nothing(self, acme, join, bob, browse, database):
        join(bob, acme)
        # A node of 0.7 invites members, too.
        database.run(
            """INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)
               SELECT gen_random_uuid(), id, 'bob@example.com', 'admin', now() + interval '1 day'
                 FROM organizations"""
        )
        visitor = browse(bob)
        visitor.visit(PATH)
        assert visitor.page.status == 200
        assert words(visitor.page).endswith("You’re already a member of Acme Continue to Nimbus")
        assert "You’re invited" not in visitor.visit("/account").text
        visitor.visit(PATH)
        for action in ("approve", "deny"):
            visitor.send(PATH, action=action)
            assert visitor.page.url == f"{SITE}{PATH}"
            assert "You’re already a member of Acme" in words(visitor.page)
        assert database.value("SELECT role FROM memberships WHERE user_id = %(id)s", id=bob.id) == "member"
        assert visitor.visit(visitor.link_to("account/organizations/acme")).status == 200

    def test_second_of_two_presses_shows_the_membership(self, invite, bob, browse, database):
        invite(bob.email)
        visitors = [browse(bob) for _ in range(6)]
        for visitor in visitors:
            visitor.visit(PATH)
        pages = at_once(6, lambda number: visitors[number].press("organizations/acme/join", action="approve"))
        assert [page.status for page in pages] == [200] * 6
        assert all("member of Acme" in words(page) for page in pages)
        assert (
            database.count("audit_log", "action = 'membership_added' AND details ->> 'role' = 'member'") == 1
        )

    def test_new_member_without_the_second_step_is_led_to_it(self, invite, bob, browse, database):
        invite(bob.email)
        database.run("UPDATE organizations SET level = 'aal2'")
        visitor = browse(bob)
        visitor.visit(PATH)
        visitor.press("organizations/acme/join", action="approve")
        text = words(visitor.page)
        assert "You’re now a member of Acme Acme asks for a second step. Complete the second step" in text
        assert "Continue to Nimbus" in text
        visitor.visit(visitor.link_to("second-step?next=organizations%2Facme%2Fjoin"))
        assert unsigned(visitor.page).endswith("?next=organizations%2Facme%2Fjoin%3Fthen%3Dsite")
        assert "Two-step verification" in words(visitor.page)

    def test_member_whose_session_lacks_the_own_sign_in_is_led_to_it(self, acme, join, bob, browse, database):
        join(bob, acme)
        database.run(OWN_SIGN_IN)
        visitor = browse(bob)
        visitor.visit(f"{PATH}?{urlencode({'next': CONSENT})}")
        text = words(visitor.page)
        assert "You’re already a member of Acme Acme asks you to sign in with your company’s account." in text
        assert "Sign in with your company Acme Continue to Nimbus" in text
        # It comes back to this page, which goes on to the application.
        query = single(urlsplit(visitor.link_to("account/company?next=")).query)
        assert query == {"next": f"organizations/acme/join?{urlencode({'next': CONSENT})}"}

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE identity_provider_domains SET domain = 'elsewhere.example'",
            "UPDATE identity_provider_domains SET provider_id = (SELECT id FROM identity_providers WHERE name = 'Globex')",
            "UPDATE identity_providers SET is_on = false",
            "UPDATE users SET role = 'admin' WHERE email = 'bob@example.com'",
        ],
    )
    def test_member_whom_the_own_sign_in_does_not_serve_is_led_to_an_owner(
        self, acme, join, bob, browse, database, change
    ):
        join(bob, acme)
        database.run(OWN_SIGN_IN + OTHERS + change)
        visitor = browse(bob)
        for path in (PATH, "/account"):
            text = words(visitor.visit(path))
            assert "Acme asks you to sign in with your company’s account. This account can’t do that" in text
            assert "ask one of the organization’s owners." in text
            assert "account/company?next" not in visitor.page.text

    def test_way_back_of_the_page_outlives_a_sign_in(self, invite, bob, client):
        invite(bob.email)
        path = f"{PATH}?{urlencode({'next': CONSENT, 'redirect_to': APPLICATION})}"
        visitor = Visitor(client.application)
        visitor.visit(path)
        visitor.press("sign-in", email=bob.email, password=PASSWORD)
        assert "Join Acme as member?" in words(visitor.page)
        assert single(urlsplit(visitor.page.url).query) == {"next": CONSENT, "redirect_to": APPLICATION}

    @pytest.mark.parametrize("has_passkeys", [True, False])
    def test_second_step_without_authenticator_apps_is_a_passkey_if_there_are_any(
        self, make_app, settings, acme, join, bob, database, has_passkeys
    ):
        join(bob, acme)
        database.run("UPDATE organizations SET level = 'aal2'")
        app = make_app(**settings, AUTH_MFA_ENABLED="false", AUTH_PASSKEYS_ENABLED=str(has_passkeys).lower())
        visitor = Visitor(app).with_session_of(bob)
        for path, next_page in ((PATH, "organizations%2Facme%2Fjoin"), ("/account", "organizations%2Facme")):
            assert "Acme asks for a second step." in words(visitor.visit(path))
            link = f"account/passkeys/new?next={next_page}"
            assert (link in visitor.page.text) is has_passkeys
            assert ("Add a passkey Acme" in words(visitor.page)) is has_passkeys
