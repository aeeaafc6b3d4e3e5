"""Attacks on /sign-in/company and /account/company: strangers' links, hostile providers, and changes before a press."""

import re

import pytest

from tests.support.cases import cases
from tests.support.links import SITE
from tests.support.oauth import APPLICATION
from tests.support.pages import Visitor, unsigned, words
from tests.support.users import PASSWORD, register, sign_up_anonymously

BOB, EVE = "bob@acme.example", "eve@acme.example"
IS_AT_A_PROVIDER = "provider LIKE 'sso:%%'"
NESTED = "account/company?next=" * 380  # as many as fit into a request line


@pytest.fixture
def bob(sso, service_role, acme):
    """Bob, who had an account with a password before Acme connected, and is signed in at Acme's provider."""
    acme.be("9", BOB)
    return register(sso.client, service_role, BOB)


@pytest.fixture
def visitor(sso, bob) -> Visitor:
    """Bob's browser."""
    return Visitor(sso.app).with_session_of(bob)


@pytest.fixture
def at_provider(visitor, sso):
    """Return the URL of the return from the provider, after Bob's press of *Sign in with your company*."""
    visitor.visit(f"/account/company?redirect_to={APPLICATION}")
    page = visitor.submit(stop=sso.is_callback)
    assert sso.is_callback(page.url)
    return page.url


class TestLinks:
    @cases(
        "path", ["/sign-in", "/sign-in/company", "/sign-up", "/second-step", "/account/confirm", "/nowhere"]
    )
    def test_page_that_names_itself_again_and_again_is_answered(self, sso, visitor, path):
        for browser in (visitor, Visitor(sso.app)):
            for after in (NESTED, "account/company?next=oauth/consent?authorization_id=%00"):
                assert browser.visit(f"{path}?next={after}").status in (200, 400, 404)

    def test_second_failure_keeps_the_way_back_to_the_application(self, sso, bob, acme):
        visitor, back = Visitor(sso.app), f"redirect_to={APPLICATION}"
        visitor.visit(f"/sign-in/company?{back}")
        first = visitor.press("sign-in/company", email=BOB).url
        visitor.visit(first.replace("/sign-in?", "/sign-in/company?"))
        second = visitor.press("sign-in/company", email=BOB)
        way_back = re.findall("next=[^&]+", first)
        assert way_back == re.findall("next=[^&]+", second.url) != []
        visitor.press("sign-in", email=BOB, password=PASSWORD)
        assert visitor.press("account/company").url.startswith(f"{APPLICATION}#access_token=")

    @cases("query", ["", f"redirect_to={APPLICATION}", "next=email", "next=account/company%3Fnext=account"])
    def test_user_whom_no_company_signs_in_goes_on(self, visitor, database, query):
        database.run("UPDATE users SET email = 'bob@elsewhere.example'")
        page = visitor.visit(f"/account/company?{query}")
        # A link may name the page twice, but what it names is shorter each time.
        for _ in range(query.count("account/company") + 1):
            assert page.status == 404
            assert "No company has connected the domain" in words(page)
            page = visitor.visit(visitor.link("Continue"))
        assert page.status == 200
        assert not page.url.startswith(f"{SITE}/account/company")


class TestTypedAddress:
    def test_address_of_another_browser_leads_nowhere(self, sso, visitor, acme, database):
        typed = visitor.typed(BOB, has_asked=False)
        thief = Visitor(sso.app)
        page = thief.visit(f"/sign-in/company?typed={typed}")
        assert "acme.example" not in page.text
        page = thief.send("/sign-in/company", typed=typed)
        assert page.url == f"{SITE}/sign-in/company"
        assert "/authorize" not in acme.provider.paths()
        assert database.count("oauth_flows") == 0

    def test_phone_number_is_of_no_company(self, sso):
        visitor = Visitor(sso.app)
        typed = visitor.typed("+4917612345678", has_asked=False)
        visitor.visit(f"/sign-in/company?typed={typed}")
        assert visitor.send("/sign-in/company", typed=typed).status == 404


class TestMove:
    def test_page_asks_for_a_proof_before_it_offers_the_button(self, visitor, database):
        database.run("UPDATE sessions SET created_at = created_at - interval '1 hour'")
        page = visitor.visit(f"/account/company?redirect_to={APPLICATION}")
        assert page.url.startswith(f"{SITE}/account/confirm?")
        page = visitor.press("account/confirm", current_password=PASSWORD)
        assert page.url.startswith(f"{SITE}/account/company?")

    def test_anonymous_user_is_offered_nothing(self, make_app, acme, sso, database):
        app = make_app(AUTH_SSO="true", AUTH_ANONYMOUS_ENABLED="true")
        session = sign_up_anonymously(app.test_client())

        class Anonymous:
            open_session = staticmethod(lambda: session)

        page = Visitor(app).with_session_of(Anonymous).visit("/account/company")
        assert page.status == 404
        assert "No company has connected the domain" in words(page)
        assert "/authorize" not in acme.provider.paths()

    @cases(
        ("table", "change"),
        [
            (
                "identity_providers",
                "UPDATE identity_providers SET enabled = false, is_on = false WHERE id = %s",
            ),
            (
                "identity_providers",
                "WITH provider AS (SELECT id FROM identity_providers WHERE id = %s FOR UPDATE)"
                " UPDATE identity_provider_domains AS d SET domain = 'x.example' FROM provider"
                " WHERE d.provider_id = provider.id",
            ),
            ("users", "UPDATE users SET email = 'bob@elsewhere.example' WHERE id = %s"),
            ("users", "UPDATE users SET role = 'admin' WHERE id = %s"),
        ],
    )
    def test_press_waits_for_a_change_and_begins_nothing_after_it(
        self, sso, bob, acme, database, table, change
    ):
        visitor = Visitor(sso.app).with_session_of(bob)
        visitor.visit("/account/company")
        with database.locked(table, bob.id if table == "users" else acme.id, change) as lock:
            future = lock.start(lambda: visitor.submit(stop=lambda url: not url.startswith(SITE)))
        assert future.result().url.startswith(SITE)
        assert database.count("oauth_flows") == 0
        database.run("UPDATE users SET email = 'bob@acme.example', role = 'authenticated'")
        database.run("UPDATE identity_providers SET enabled = true")
        database.run(
            "UPDATE identity_provider_domains SET domain = 'acme.example' WHERE domain = 'x.example'"
        )

    def test_company_that_is_off_is_not_offered(self, sso, visitor, acme, database):
        assert "account/company" in visitor.visit("/account").text
        database.run("UPDATE identity_providers SET enabled = false, is_on = false")
        assert "account/company" not in visitor.visit("/account").text
        page = visitor.visit("/account/company")
        assert page.status == 404
        assert "No company has connected the domain" in words(page)

    @cases(
        "meanwhile",
        [
            "UPDATE users SET banned_until = now() + interval '1 day'",
            "UPDATE users SET role = 'admin'",
            "DELETE FROM users",
            "DELETE FROM identity_provider_domains; DELETE FROM identity_providers",
            "UPDATE users SET email = 'bob2@acme.example'",
            "UPDATE sessions SET ended_at = now(), end_reason = 'logout'",
        ],
    )
    def test_return_moves_nobody_after_what_changed_meanwhile(
        self, visitor, at_provider, database, meanwhile
    ):
        database.run(meanwhile)
        users = database.count("users")
        page = visitor.visit(at_provider)
        assert (page.status, page.url.startswith(SITE)) == (200, True)
        assert database.count("identities", IS_AT_A_PROVIDER) == 0
        assert database.count("users") == users
        assert database.count("outbox", "kind = 'identity_linked'") == 0

    @pytest.mark.parametrize("is_linked", [True, False])
    def test_other_user_whom_the_provider_knows_is_not_signed_in(
        self, sso, visitor, service_role, acme, database, is_linked
    ):
        """Eve is another user with an address of the company, moved or not."""
        acme.be("13", EVE)
        if is_linked:
            assert sso.sign_in(acme.identifier, redirect_to=APPLICATION).url.startswith(
                f"{APPLICATION}#access"
            )
        else:
            register(sso.client, service_role, EVE)
        before = database.everything("identities", "users", "sessions")
        visitor.visit("/account/company?next=email")
        page = visitor.press("account/company")
        assert page.url.startswith(f"{SITE}/account/company?next=email&")
        assert "Your company signed in a different account." in words(page)
        assert database.everything("identities", "users", "sessions") == before

    def test_second_account_there_replaces_the_first_only_after_a_proof(
        self, sso, visitor, acme, database, bob
    ):
        visitor.visit("/account/company")
        assert unsigned(visitor.press("account/company")) == f"{SITE}/account?done=company"
        acme.be("9b", BOB)
        subject = f"SELECT subject FROM identities WHERE {IS_AT_A_PROVIDER}"
        # Without a proof, it is a sign-in, which another subject fails.
        database.run(
            "UPDATE sessions SET created_at = created_at - interval '1 hour', reauthenticated_at = NULL"
        )
        visitor.visit("/account/company")
        visitor.press("account/company")
        assert database.value(subject) == "9"
        other = Visitor(sso.app).with_session_of(bob)
        other.visit("/account/company")
        other.press("account/company")
        assert database.value(subject) == "9b"
        assert database.count("identities", IS_AT_A_PROVIDER) == 1


def test_mailed_link_to_the_page_of_the_company_does_not_say_that_anything_moved(sso, bob, outbox, database):
    url = f"/otp?redirect_to={SITE}/account/company"
    assert sso.client.post(url, json={"email": BOB, "create_user": False}).status_code == 200
    visitor = Visitor(sso.app)
    visitor.visit(f"/verify?token={outbox.last(BOB, 'magiclink').token}&type=magiclink")
    page = visitor.submit()
    assert page.url == f"{SITE}/account/company"
    assert "Your company now signs you in" not in words(page)
    assert database.count("identities", IS_AT_A_PROVIDER) == 0


def test_administrator_signs_in_as_before_after_the_refusal(sso, bob, acme, database):
    database.run("UPDATE users SET role = 'admin'")
    visitor = Visitor(sso.app)
    visitor.visit("/sign-in")
    visitor.submit(email=BOB)
    acme.provider.requests.clear()
    page = visitor.press("sign-in", email=BOB, password=PASSWORD)
    assert page.url == f"{SITE}/account"
    assert acme.provider.paths() == []


def test_reason_of_a_failure_shows_no_name_that_looks_like_a_link(sso, acme, database):
    database.run("UPDATE identity_providers SET name = 'Ask at evil.example' WHERE id = %(id)s", id=acme.id)
    acme.be("7", "zoe@elsewhere.example")
    visitor = Visitor(sso.app)
    visitor.visit("/sign-in/company")
    page = visitor.press("sign-in/company", email="zoe@acme.example")
    assert "SSO sent us an address at elsewhere.example" in words(page)
    assert "evil.example" not in page.text
