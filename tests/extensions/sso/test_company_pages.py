"""The doors of a company's employees: /sign-in/company, and the pages that lead there."""

import re
from datetime import UTC, datetime
from types import SimpleNamespace
from urllib.parse import urlencode, urlsplit

import pytest

from auth.delivery.rendering import load_templates
from tests.support import factors
from tests.support.cases import cases
from tests.support.checked_rows import statements_run
from tests.support.customers import SsoService
from tests.support.links import SITE, single
from tests.support.oauth import APPLICATION
from tests.support.pages import Visitor, unsigned, words
from tests.support.passkeys import register as register_passkey
from tests.support.users import PASSWORD, register

ZOE, BOB = "zoe@acme.example", "bob@acme.example"
WRITTEN = ("users", "outbox", "one_time_tokens", "sessions", "oauth_flows", "identities")
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
HERE = {"redirect_to": APPLICATION, "code_challenge": CHALLENGE}


@pytest.fixture
def visitor(sso) -> Visitor:
    return Visitor(sso.app)


@pytest.fixture
def bob(sso, service_role, acme):
    """Bob, who had an account with a password before Acme connected. Zoe is signed in at Acme's provider."""
    acme.be("7", ZOE)
    return register(sso.client, service_role, BOB)


def path_of(page) -> str:
    return page.url.removeprefix(SITE).partition("?")[0]


class TestButton:
    @cases("path", ["/sign-in", "/sign-up"])
    def test_sign_in_with_the_company_asks_for_the_address_and_leads_back(self, sso, acme, path):
        acme.be("7", ZOE)
        visitor = Visitor(sso.app)
        visitor.visit(f"{path}?redirect_to={APPLICATION}&code_challenge={CHALLENGE}")
        page = visitor.visit(visitor.link_to("sign-in/company"))
        assert "Sign in with your company" in words(page)
        page = visitor.press("sign-in/company", email="Zoe@Acme.example")
        assert re.fullmatch(re.escape(APPLICATION) + r"\?code=[\w-]+", page.url)
        assert (
            acme.provider.parameters("/authorize")["redirect_uri"] == f"{SITE}/providers/{acme.id}/callback"
        )

    def test_employee_of_a_company_is_offered_no_passkey(self, make_app, service_role, acme):
        """It would sign in without the company."""
        service = SsoService(make_app(AUTH_SSO="true", AUTH_PASSKEY_OFFER="auto"), service_role)
        service.add(acme)
        acme.be("7", ZOE)
        visitor = Visitor(service.app)
        visitor.visit("/sign-in/company")
        assert visitor.press("sign-in/company", email=ZOE).url == f"{SITE}/account"
        # Nor by the page itself.
        assert visitor.visit("/account/passkeys/offer").url == f"{SITE}/account"

    def test_button_says_that_it_was_used_last_and_is_absent_without_the_setting(
        self, visitor, acme, make_app
    ):
        assert "Sign in with your company Last used" not in words(visitor.visit("/sign-in"))
        acme.be("7", ZOE)
        visitor.visit("/sign-in/company")
        visitor.press("sign-in/company", email=ZOE)
        visitor.press("sign-out")
        assert "Sign in with your company Last used" in words(visitor.visit("/sign-in"))
        without = Visitor(make_app())
        for path in ("/sign-in", "/sign-up"):
            assert "company" not in without.visit(path).text
        assert without.visit("/sign-in/company").status == 404

    def test_domain_with_a_typing_error_is_named_and_the_address_stays(self, visitor, database):
        visitor.visit("/sign-in/company")
        page = visitor.press("sign-in/company", email="zoe@Acme.exmaple")
        assert page.status == 404
        assert "No company has connected Acme.exmaple here. Check the address" in words(page)
        assert 'value="zoe@Acme.exmaple"' in page.text
        assert visitor.link("Sign in another way") == f"{SITE}/sign-in"
        assert database.count("oauth_flows") == 0

    @cases("change", [{"enabled": False}, {"domains": ["other.example"]}])
    def test_provider_that_is_off_or_has_lost_the_domain_connects_nothing(
        self, sso, acme, service_role, database, change
    ):
        sso.change(acme, enabled=True, domains=["acme.example"])
        assert sso.change(acme, **change).status_code == 200
        visitor = Visitor(sso.app)
        visitor.visit("/sign-in/company")
        assert "No company has connected acme.example" in words(visitor.press("sign-in/company", email=ZOE))
        visitor.visit("/sign-in")
        assert path_of(visitor.press("sign-in/code", email=ZOE)) == "/sign-in/code"

    def test_get_request_and_prefilled_field_lead_to_no_provider(self, visitor, acme, database):
        for path in (
            "/sign-in/company",
            f"/sign-in/company?email={ZOE}",
            f"/sign-in/company?login_hint={ZOE}",
        ):
            assert visitor.visit(path).url == f"{SITE}{path}"
        typed = visitor.typed(ZOE, has_asked=False)
        assert "acme.example signs in with its company" in words(
            visitor.visit(f"/sign-in/company?typed={typed}")
        )
        assert database.count("oauth_flows") == 0
        assert "/authorize" not in acme.provider.paths()


class TestCompanyPage:
    @cases("email", [ZOE, BOB])
    @cases("door", ["code", "sign-up"])
    def test_code_and_sign_up_of_a_connected_domain_lead_to_the_company_and_write_nothing(
        self, sso, bob, acme, database, email, door
    ):
        before, visitor = database.everything(*WRITTEN), Visitor(sso.app)
        if door == "code":
            visitor.visit("/sign-in")
            page = visitor.press("sign-in/code", email=email)
        else:
            visitor.visit("/sign-up")
            page = visitor.press("sign-up", email=email, password="weak")
        assert path_of(page) == "/sign-in/company"
        assert email not in page.url
        assert "acme.example signs in with its company" in words(page)
        assert f"Sign in with your company {acme.host}" in words(page)
        assert database.everything(*WRITTEN) == before
        # Another browser learns nothing from the URL.
        assert "acme.example" not in Visitor(sso.app).visit(page.url).text

    def test_button_signs_in_whom_the_provider_knows(self, sso, bob, visitor, acme, database):
        visitor.visit(f"/sign-in?redirect_to={APPLICATION}&code_challenge={CHALLENGE}")
        visitor.press("sign-in/code", email=ZOE)
        page = visitor.press("sign-in/company")
        assert page.url.startswith(f"{APPLICATION}?code=")
        assert database.value("SELECT count(*) FROM users WHERE email = %(email)s", email=ZOE) == 1

    def test_sign_up_that_is_closed_leads_employees_to_their_company(self, make_app, sso, acme, database):
        acme.be("7", ZOE)
        visitor = Visitor(make_app(AUTH_SSO="true", AUTH_DISABLE_SIGNUP="true"))
        visitor.visit("/sign-up")
        assert path_of(visitor.press("sign-up", email=ZOE, password=PASSWORD)) == "/sign-in/company"
        visitor.press("sign-in/company")
        assert database.value("SELECT email FROM users") == ZOE

    def test_password_and_code_instead_are_not_led_to_the_company(self, bob, visitor, outbox):
        visitor.visit("/sign-in")
        visitor.press("sign-in/code", email=BOB)
        page = visitor.visit(visitor.link("Use a password or a code instead"))
        assert f'value="{BOB}"' in page.text
        # The way stays, also on the page to sign up.
        visitor.visit(visitor.link("Create an account"))
        assert path_of(visitor.press("sign-up", email=ZOE, password=PASSWORD)) == "/sign-up/code"
        visitor.visit("/sign-in?way=password")
        assert path_of(visitor.press("sign-in/code", email=BOB)) == "/sign-in/code"
        assert outbox.last(BOB, "magiclink").code
        assert path_of(visitor.press("sign-in/code")) == "/sign-in/code"
        visitor.visit("/sign-in?way=password")
        assert visitor.press("sign-in", email=BOB, password="Wrong-Horse-1").status == 403
        assert path_of(visitor.press("sign-in", email=BOB, password=PASSWORD)) == "/account"

    def test_recovery_and_the_api_are_never_led_to_the_company(self, sso, bob, visitor, outbox):
        visitor.visit("/forgot-password")
        assert path_of(visitor.press("forgot-password", email=BOB)) == "/forgot-password/code"
        assert outbox.last(BOB, "recovery").code
        for path, body in (("/otp", {"create_user": False}), ("/signup", {"password": PASSWORD})):
            answer = sso.client.post(path, json={"email": "dave@acme.example", **body})
            assert answer.status_code in (200, 201), answer.text
        assert outbox.last("dave@acme.example", "signup").code


class TestRule12:
    """The same answer, statements and windows for addresses with and without a user."""

    @pytest.mark.parametrize("domain", ["acme.example", "example.com"])
    @pytest.mark.parametrize("path", ["sign-in/company", "sign-in/code", "sign-up"])
    def test_addresses_with_and_without_a_user_are_alike(
        self, sso, service_role, acme, database, domain, path
    ):
        register(sso.client, service_role, f"bob@{domain}")
        seen = []
        for name in ("bob", "zoe"):
            database.run("DELETE FROM request_counts")
            visitor = Visitor(sso.app)
            page = visitor.visit(f"/{'sign-in' if path == 'sign-in/code' else path}")
            before = statements_run()
            fields = {"email": f"{name}@{domain}"} | ({"password": PASSWORD} if path == "sign-up" else {})
            form = next(f for f in page.forms if path in (f.action, *f.targets) or f.action.endswith(path))
            page = visitor.post(f"{SITE}/{path}", form.fields | fields, stop=lambda url: SITE not in url)
            count = statements_run() - before
            windows = database.all("SELECT * FROM request_counts")
            body = re.sub(r"[0-9a-f]{64}|[0-9a-f-]{36}|\b(bob|zoe)\b|\d+ seconds", "", page.text)
            seen.append((path_of(page), page.status, body, count, len(windows)))
        assert seen[0] == seen[1]


class TestWhoHadAnAccount:
    @pytest.fixture
    def conflict(self, visitor, bob, acme):
        """Return a function that brings Bob back from his company, to the page that asks for his own way."""
        acme.be("9", BOB)

        def conflict(query=f"redirect_to={APPLICATION}&code_challenge={CHALLENGE}"):
            visitor.visit(f"/sign-in?{query}")
            return visitor.submit(email=BOB)

        return conflict

    def test_own_way_in_once_and_the_press_moves_the_account_and_lead_back(
        self, conflict, visitor, acme, database, bob, outbox
    ):
        page = conflict()
        assert path_of(page) == "/sign-in"
        assert f"You already have an account for {BOB} . Sign in once as before" in words(page)
        assert f'value="{BOB}"' in page.text
        assert "Sign in with your company" not in words(page).replace("your company signs you in", "")
        assert visitor.session_cookie is None
        page = visitor.press("sign-in", password=PASSWORD)
        assert path_of(page) == "/account/company"
        assert "your company can open this account. Your other ways to sign in stay." in words(page)
        assert "Only your administrator can undo this." in words(page)
        assert f"Sign in with your company {acme.host}" in words(page)
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0
        page = visitor.press("account/company")
        assert re.fullmatch(re.escape(APPLICATION) + r"\?code=[\w-]+", page.url)
        row = database.one("SELECT user_id::text, subject FROM identities WHERE provider LIKE 'sso:%%'")
        assert row == (bob.id, "9")
        assert "identity_linked" in [each.kind for each in outbox.sent(BOB)]
        # The next morning, the company alone.
        visitor.cookies = []
        visitor.visit("/sign-in")
        assert visitor.submit(email=BOB).url == f"{SITE}/account"

    def test_mailed_code_and_second_step_lead_to_the_move_too(
        self, conflict, visitor, sso, bob, outbox, database
    ):
        app, _ = factors.set_up(bob.sign_in(client=sso.client))
        database.run("UPDATE factors SET last_step = NULL")
        conflict()
        visitor.press("sign-in/code", email=BOB)
        page = visitor.press("sign-in/verify", code=outbox.last(BOB, "magiclink").code)
        assert path_of(page) == "/second-step"
        page = visitor.press("second-step", code=app.code())
        assert path_of(page) == "/account/company"
        page = visitor.press("account/company")
        # The company's session needs the second step again.
        assert path_of(page) == "/second-step"
        assert database.count("identities", "provider LIKE 'sso:%%'") == 1

    def test_failed_password_keeps_the_reason_and_a_second_press_the_way_back(
        self, conflict, visitor, database
    ):
        conflict()
        page = visitor.press("sign-in", email=BOB, password="Wrong-Horse-1")
        assert page.status == 403
        assert f"You already have an account for {BOB} . Sign in once as before" in words(page)
        assert "That email and password don’t match." in words(page)
        assert "sign-in/company" not in page.text
        # From the page of the company, which the user opens again.
        way = urlencode({"next": f"account/company?{urlencode(HERE)}"})
        visitor.visit(f"/sign-in/company?{way}")
        page = visitor.press("sign-in/company", email=BOB)
        assert "You already have an account" in words(page)
        assert single(urlsplit(page.url).query)["next"] == f"account/company?{urlencode(HERE)}"
        visitor.press("sign-in", password=PASSWORD)
        assert visitor.press("account/company").url.startswith(f"{APPLICATION}?code=")

    def test_address_of_another_browser_is_not_said_after_a_failed_password(self, sso, conflict):
        page = conflict()
        typed = single(urlsplit(page.url).query)["typed"]
        other = Visitor(sso.app)
        other.visit("/sign-in?way=password")
        page = other.press("sign-in", email=ZOE, password="Wrong-Horse-1", conflict=typed)
        assert page.status == 403
        assert "You already have an account" not in words(page)
        assert BOB not in page.text

    def test_link_to_the_page_shows_it_after_a_sign_in(self, sso, bob, acme, service_role, visitor, database):
        body = {"type": "magiclink", "email": BOB, "redirect_to": f"{SITE}/account/company"}
        link = sso.client.post("/admin/generate_link", json=body, headers=service_role).json["action_link"]
        visitor.visit(link)
        visitor.submit()
        assert path_of(visitor.page) == "/account/company"
        assert "People at acme.example sign in with their company." in words(visitor.page)
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0

    @cases("times", [1, 30, 400])
    def test_way_back_that_repeats_the_page_is_followed_once(self, visitor, sso, times):
        nested = "account/company?next=" * times + f"oauth/consent?authorization_id={'a' * 43}"
        shown, refused = (400, 400) if times == 400 else (200, 403)  # too long
        before = statements_run()
        assert visitor.visit(f"/sign-in?{urlencode({'next': nested})}").status == shown
        visitor.visit("/sign-in")
        page = visitor.press("sign-in", email="eve@example.com", password="Wrong-Horse-1", next=nested)
        assert page.status == refused
        assert statements_run() - before < 20

    def test_not_now_leads_on_without_a_move(self, conflict, visitor, database):
        conflict()
        visitor.press("sign-in", password=PASSWORD)
        page = visitor.visit(visitor.link("Not now"))
        assert "Continue as bob@acme.example" in words(page)
        assert visitor.press("sign-in/continue").url.startswith(f"{APPLICATION}?code=")
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0

    def test_move_without_an_application_ends_on_the_account_page_and_says_so(self, conflict, visitor):
        conflict("")
        visitor.press("sign-in", password=PASSWORD)
        page = visitor.press("account/company")
        assert unsigned(page) == f"{SITE}/account?done=company"
        assert "Your company now signs you in." in words(page)

    def test_application_of_the_api_gets_the_error(self, sso, bob, acme):
        acme.be("9", BOB)
        page = sso.sign_in(acme.identifier, redirect_to=APPLICATION)
        assert page.url.startswith(f"{APPLICATION}#error=access_denied&error_code=user_sso_conflict")

    def test_administrator_is_told_another_reason_and_cannot_move(
        self, conflict, visitor, database, sso, acme
    ):
        database.run("UPDATE users SET role = 'admin'")
        page = conflict()
        assert "Administrators can’t sign in with a company." in words(page)
        assert path_of(page) == "/sign-in"
        assert "company" not in page.url
        database.run("UPDATE users SET role = 'authenticated'")
        conflict()
        visitor.press("sign-in", password=PASSWORD)
        database.run("UPDATE users SET role = 'admin'")
        acme.provider.requests.clear()
        visitor.press("account/company")
        assert acme.provider.paths() == []
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0

    def test_press_needs_a_fresh_proof_and_keeps_the_way_back(self, conflict, visitor, database, acme):
        conflict()
        visitor.press("sign-in", password=PASSWORD)
        acme.provider.requests.clear()
        database.run("UPDATE sessions SET created_at = created_at - interval '1 hour'")
        page = visitor.press("account/company")
        assert path_of(page) == "/account/confirm"
        assert acme.provider.paths() == []
        page = visitor.press("account/confirm", current_password=PASSWORD)
        assert path_of(page) == "/account/company"
        assert visitor.press("account/company").url.startswith(f"{APPLICATION}?code=")

    @cases("end", ["off", "domain", "issuer"])
    def test_provider_that_changed_at_the_press_moves_nobody(
        self, sso, acme, globex, service_role, database, end
    ):
        database.run(
            "DELETE FROM users; UPDATE identity_provider_domains SET domain = 'acme.example' WHERE provider_id = %(id)s",
            id=acme.id,
        )
        sso.change(acme, enabled=True)
        register(sso.client, service_role, BOB)
        visitor = Visitor(sso.app)
        acme.be("9", BOB)
        visitor.visit("/sign-in")
        visitor.submit(email=BOB)
        visitor.press("sign-in", password=PASSWORD)
        page = visitor.submit(stop=sso.is_callback)
        assert sso.is_callback(page.url)
        change = {
            "off": "UPDATE identity_providers SET enabled = false WHERE id = %(id)s",
            "domain": "UPDATE identity_provider_domains SET domain = 'x.example' WHERE provider_id = %(id)s",
            "issuer": "UPDATE identity_providers SET issuer = 'https://other.example', updated_at = now()"
            " WHERE id = %(id)s",
        }
        database.run(change[end], id=acme.id)
        page = visitor.visit(page.url)
        assert path_of(page) == "/account/company"
        assert page.status == (200 if end == "issuer" else 404)
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0
        database.run(
            "UPDATE identity_providers SET issuer = %(url)s WHERE id = %(id)s",
            url=acme.provider.url,
            id=acme.id,
        )

    def test_other_subject_of_the_provider_is_not_signed_in_and_the_page_says_so(
        self, conflict, visitor, acme, database
    ):
        conflict()
        visitor.press("sign-in", password=PASSWORD)
        acme.be("13", "eve@acme.example")
        page = visitor.press("account/company")
        assert path_of(page) == "/account/company"
        assert "Your company signed in a different account." in words(page)
        assert database.count("users") == 1
        acme.be("9", BOB)
        assert visitor.press("account/company").url.startswith(f"{APPLICATION}?code=")

    def test_session_that_ended_meanwhile_is_not_moved(self, conflict, visitor, sso, database):
        conflict()
        visitor.press("sign-in", password=PASSWORD)
        page = visitor.submit(stop=sso.is_callback)
        database.run("UPDATE sessions SET ended_at = now(), end_reason = 'logout'")
        page = visitor.visit(page.url)
        assert path_of(page) == "/sign-in"
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0
        # After another sign-in the press comes again, and the way back is kept.
        visitor.visit(f"{page.url}&way=password")
        visitor.press("sign-in", email=BOB, password=PASSWORD)
        assert visitor.press("account/company").url.startswith(f"{APPLICATION}?code=")

    def test_session_that_lacks_a_passkey_added_meanwhile_is_not_moved(
        self, conflict, visitor, sso, bob, database
    ):
        """The passkey ends no session. Whoever has that of a thief adds no way to sign in without it."""
        conflict()
        visitor.press("sign-in", password=PASSWORD)
        page = visitor.submit(stop=sso.is_callback)
        register_passkey(bob.open_session())
        page = visitor.visit(page.url)
        assert path_of(page) == "/second-step"
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0
        assert database.count("sessions", "method = 'oauth'") == 0

    def test_address_that_changed_meanwhile_moves_nobody(self, conflict, visitor, sso, database):
        conflict()
        visitor.press("sign-in", password=PASSWORD)
        page = visitor.submit(stop=sso.is_callback)
        database.run("UPDATE users SET email = 'bob@elsewhere.example'")
        page = visitor.visit(page.url)
        assert path_of(page) in ("/account", "/account/company", "/sign-in")
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0
        assert database.count("users") == 1

    def test_press_of_another_browser_moves_nobody(self, conflict, visitor, sso, database):
        conflict()
        visitor.press("sign-in", password=PASSWORD)
        page = visitor.submit(stop=sso.is_callback)
        thief = Visitor(sso.app)
        assert "error_code=bad_oauth_state" in thief.visit(page.url).url
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0
        assert thief.session_cookie is None

    def test_user_who_has_moved_signs_in_there_without_a_proof(self, conflict, visitor, database, acme):
        conflict("")
        visitor.press("sign-in", password=PASSWORD)
        visitor.press("account/company")
        database.run(
            "UPDATE sessions SET created_at = created_at - interval '1 hour', reauthenticated_at = NULL"
        )
        page = visitor.visit("/account/company")
        assert "Sign in with your company" in words(page)
        assert "Move" not in words(page)
        assert unsigned(visitor.press("account/company")) == f"{SITE}/account"

    def test_page_says_that_no_company_has_connected_the_domain_and_goes_on_to_the_application(
        self, acme, bob, visitor, database
    ):
        database.run("UPDATE identity_providers SET enabled = false")
        destination = urlencode(HERE)
        visitor.with_session_of(bob)
        page = visitor.visit(f"/account/company?{destination}")
        assert page.status == 404
        assert "No company has connected the domain of your email address here." in words(page)
        assert "Use another account" in words(page)
        assert "Continue as bob@acme.example" in words(visitor.visit(visitor.link("Continue")))
        assert visitor.press("sign-in/continue").url.startswith(f"{APPLICATION}?code=")
        assert database.count("oauth_flows") == 0

    def test_administrator_reads_that_a_company_signs_in_no_administrator(
        self, acme, visitor, carol, database
    ):
        database.run("UPDATE users SET email = 'carol@acme.example' WHERE id = %(id)s", id=carol.id)
        page = visitor.with_session_of(carol).visit("/account/company")
        assert page.status == 404
        assert "This is an administrator’s account." in words(page)
        assert database.count("oauth_flows") == 0

    def test_next_page_with_a_foreign_way_back_is_refused(self, visitor, bob):
        page = visitor.with_session_of(bob).visit(
            "/sign-in?next=account/company%3Fredirect_to%3Dhttps%3A%2F%2Fevil.example%2F"
        )
        assert "evil.example" not in page.text


class TestName:
    """Users read the name that its owner gave the provider."""

    @pytest.mark.parametrize(
        ("name", "shown"), [("Acme Login", "Acme Login"), ("login at evil.example", "SSO")]
    )
    def test_notice_and_the_users_additions_name_the_provider_unless_the_name_looks_like_a_link(
        self, sso, bob, acme, visitor, outbox, database, name, shown
    ):
        database.run("UPDATE identity_providers SET name = %(name)s WHERE id = %(id)s", name=name, id=acme.id)
        acme.be("9", BOB)
        visitor.with_session_of(bob).visit("/account/company")
        visitor.press("account/company")
        message = outbox.last(BOB, "identity_linked")
        row = {"id": "5", "channel": message.channel, "kind": message.kind, "recipient": BOB}
        moment = {"expires_at": None, "created_at": datetime.now(UTC), "variables": message.variables}
        mail = load_templates(sso.parts.settings).render(SimpleNamespace(**row, **moment), {})
        assert f"account with {shown}." in mail.text
        assert f"{shown} {BOB}" in words(visitor.visit("/account/changes"))


class TestOffer:
    def test_account_page_offers_the_move_until_the_user_has_moved(self, bob, acme, visitor):
        acme.be("9", BOB)
        page = visitor.with_session_of(bob).visit("/account")
        assert f"acme.example Sign in with your company at {acme.host} . Move" in words(page)
        visitor.visit(visitor.link_to("account/company"))
        visitor.press("account/company")
        assert "account/company" not in visitor.visit("/account").text

    def test_offer_is_one_statement_of_the_account_page(self, sso, bob, make_app):
        counts = []
        for app in (sso.app, make_app(AUTH_CONSOLE="true", AUTH_API_KEYS="true")):
            visitor = Visitor(app).with_session_of(bob)
            visitor.visit("/account")
            before = statements_run()
            visitor.visit("/account")
            counts.append(statements_run() - before)
        assert counts == [counts[1] + 1, counts[1]]

    @cases("change", ["email_proved = false", "email = 'bob@elsewhere.example'", "role = 'admin'"])
    def test_nothing_is_offered_to_others(self, sso, service_role, acme, database, change):
        database.run("DELETE FROM users")
        bob = register(sso.client, service_role, BOB)
        visitor = Visitor(sso.app).with_session_of(bob)
        database.run(f"UPDATE users SET {change}")
        assert "account/company" not in visitor.visit("/account").text
        page = visitor.visit("/account/company")
        assert page.status == 404
        assert "Use another account" in words(page)
