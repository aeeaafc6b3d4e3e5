"""The offer of a passkey after a sign-in: to whom, once in a browser, and what its answers do."""

import html
import json
from urllib.parse import urlencode

import pytest

from tests.support.authenticator import Authenticator, encode
from tests.support.cases import cases
from tests.support.factors import set_up
from tests.support.links import CHALLENGE, SITE
from tests.support.openid_flow import allow, make_application
from tests.support.pages import Visitor, unsigned, words
from tests.support.passkeys import make_unasked, register, sign_in_response
from tests.support.users import PASSWORD
from tests.support.users import register as register_person

APPLICATION = "https://app.example.com/signed-in"
WITH_APPLICATION = urlencode({"redirect_to": APPLICATION, "code_challenge": CHALLENGE})
OFFER = f"{SITE}/account/passkeys/offer"
DECLINE = "account/passkeys/offer/decline"


@pytest.fixture
def app(make_app):
    return make_app(AUTH_PASSKEY_OFFER="auto", AUTH_REDIRECT_ALLOW_LIST="https://app.example.com/**")


def sign_in(visitor, email="alice@example.com", query=""):
    visitor.visit(f"/sign-in?{query}")
    return visitor.submit(email=email, password=PASSWORD)


def upgrade_options(page):
    return json.loads(html.unescape(page.text.partition('data-upgrade="')[2].partition('"')[0]))


def is_offer(page):
    return page.url.partition("?")[0] == OFFER


class TestWhom:
    def test_password_leads_to_the_offer_and_not_now_to_the_account(self, visitor, alice):
        page = sign_in(visitor)
        assert is_offer(page)
        assert "Sign in faster next time A passkey lets you sign in with your fingerprint" in words(page)
        assert visitor.press(DECLINE).url == f"{SITE}/account"

    def test_answer_is_remembered_in_this_browser_for_90_days(self, visitor, app, alice, mallory):
        page = sign_in(visitor)
        sent = {"Cookie": "; ".join(f"{each.name}={each.value}" for each in visitor.cookies)}
        fields = {"form_token": page.forms[0].fields["form_token"]}
        answer = visitor.client.post(f"/{DECLINE}", data=fields, headers=sent)
        cookie = next(each for each in answer.headers.getlist("Set-Cookie") if "offered" in each)
        assert cookie.startswith("latchkey_offered=1; ")
        assert {"HttpOnly", "Max-Age=7776000", "SameSite=Lax"} <= set(cookie.split("; "))
        visitor.press(DECLINE)
        visitor.press("sign-out")
        assert sign_in(visitor).url == f"{SITE}/account"
        visitor.press("sign-out")
        # Another user of this browser, and Alice in another one.
        assert sign_in(visitor, mallory.email).url == f"{SITE}/account"
        assert is_offer(sign_in(Visitor(app)))

    def test_mailed_code_leads_to_the_offer(self, visitor, alice, outbox):
        visitor.visit("/sign-in")
        visitor.press("sign-in/code", email=alice.email)
        assert is_offer(visitor.press("sign-in/verify", code=outbox.last(alice.email).code))

    def test_sign_up_and_new_password_do_not(self, visitor, app, alice, outbox):
        visitor.visit("/sign-up")
        visitor.submit(email="bob@example.com", password=PASSWORD)
        page = visitor.press("sign-up/verify", code=outbox.last("bob@example.com").code)
        assert not is_offer(page)
        other = Visitor(app)
        other.visit("/forgot-password")
        other.press("forgot-password", email=alice.email)
        page = other.press("forgot-password/verify", code=outbox.last(alice.email).code)
        assert page.url.startswith(f"{SITE}/new-password")

    @cases("add", [lambda session: register(session), lambda session: make_unasked(session)])
    def test_user_with_a_passkey_used_or_not_is_not_asked(self, visitor, alice, database, add):
        add(alice.open_session())
        assert not is_offer(sign_in(visitor))
        database.run("DELETE FROM factors")
        visitor.cookies.clear()
        assert is_offer(sign_in(visitor))

    def test_user_with_an_app_is_asked_for_that(self, visitor, alice):
        app, _ = set_up(alice.open_session())
        assert sign_in(visitor).url.startswith(f"{SITE}/second-step")
        assert visitor.press("second-step", code=app.code()).url == f"{SITE}/account"

    def test_administrator_is_not_asked(self, visitor, client, service_role):
        register_person(client, service_role, "root@example.com", role="admin")
        assert not is_offer(sign_in(visitor, "root@example.com"))

    def test_way_to_another_page_of_ours_has_no_offer(self, visitor, alice):
        assert sign_in(visitor, query="next=email").url == f"{SITE}/account/email"

    def test_way_to_an_application_has_the_offer_once_its_user_has_allowed_it(
        self, visitor, app, alice, mallory, database
    ):
        application = make_application(visitor.client, database)
        application.begin(visitor)
        page = visitor.submit(email=alice.email, password=PASSWORD)
        assert page.url.startswith(f"{SITE}/oauth/consent")
        assert "code" in application.returned(allow(visitor))
        other = Visitor(app)
        application.begin(other)
        page = other.submit(email=alice.email, password=PASSWORD)
        assert is_offer(page)
        # A user who has not allowed it is asked for that alone.
        third = Visitor(app)
        application.begin(third)
        assert not is_offer(third.submit(email=mallory.email, password=PASSWORD))
        credential = json.dumps(Authenticator().create(other.passkey_options))
        page = other.press("account/passkeys/offer", credential=credential)
        assert "code" in application.returned(page)
        assert database.count("factors", "verified_at IS NOT NULL") == 1

    def test_not_now_on_the_way_to_an_application_leads_there(self, visitor, app, alice, database):
        application = make_application(visitor.client, database)
        application.begin(visitor)
        visitor.submit(email=alice.email, password=PASSWORD)
        allow(visitor)
        other = Visitor(app)
        application.begin(other)
        other.submit(email=alice.email, password=PASSWORD)
        assert "code" in application.returned(other.press(DECLINE))

    def test_wrong_password_says_nothing_of_passkeys(self, visitor, alice):
        """An offer would tell a stranger that the user has none."""
        visitor.visit("/sign-in")
        page = visitor.submit(email=alice.email, password="wrong")
        assert (page.url, "faster" in page.text) == (f"{SITE}/sign-in", False)

    @cases(
        ("setting", "offers", "upgrades"),
        [("off", False, False), ("button", True, False), ("auto", True, True)],
    )
    def test_setting_decides(self, make_app, alice, setting, offers, upgrades):
        page = sign_in(Visitor(make_app(AUTH_PASSKEY_OFFER=setting)))
        assert (is_offer(page), "data-upgrade=" in page.text) == (offers, upgrades)

    @cases(
        ("setting", "query", "offers"),
        [("off", "", False), ("auto", "?next=email", False), ("auto", "", True)],
    )
    def test_page_asks_whom_a_sign_in_would_not_ask_no_more_by_its_url(
        self, make_app, alice, setting, query, offers
    ):
        """A page of another site may send the browser there, which then makes a passkey unasked."""
        visitor = Visitor(make_app(AUTH_PASSKEY_OFFER=setting)).signed_in_as(alice)
        page = visitor.visit(f"/account/passkeys/offer{query}")
        assert (is_offer(page), "data-upgrade=" in page.text) == (offers, offers)

    def test_sign_in_goes_on_when_the_passkeys_cannot_be_read(self, visitor, alice, database):
        database.run("ALTER TABLE factors RENAME COLUMN transports TO mislaid")
        try:
            page = sign_in(visitor, query=WITH_APPLICATION)
        finally:
            database.run("ALTER TABLE factors RENAME COLUMN mislaid TO transports")
        assert page.url.startswith(f"{APPLICATION}?code=")

    def test_without_passkeys_there_is_no_offer(self, make_app, alice):
        visitor = Visitor(make_app(AUTH_PASSKEY_OFFER="auto", AUTH_PASSKEYS_ENABLED="false"))
        assert sign_in(visitor).url == f"{SITE}/account"

    def test_second_step_of_an_old_app_suggests_no_recovery_because_of_an_unused_passkey(
        self, visitor, client, alice, database
    ):
        _, session = set_up(alice.open_session())
        hint = "Didn’t set this up?"
        assert hint in sign_in(visitor).text
        database.run(
            "UPDATE factors SET created_at = created_at - interval '8 days',"
            " verified_at = verified_at - interval '8 days'"
        )
        make_unasked(session)
        assert hint not in visitor.visit("/second-step").text

    def test_answer_to_an_older_sign_in_is_refused(self, visitor, alice, database):
        """For who has copied the cookie: the password was typed more than 15 minutes ago."""
        sign_in(visitor)
        credential = Authenticator().create(visitor.passkey_options)
        visitor.press(DECLINE)
        visitor.cookies = [each for each in visitor.cookies if each.name != "latchkey_offered"]
        database.run("UPDATE sessions SET created_at = created_at - interval '901 seconds'")
        assert not is_offer(visitor.visit("/account/passkeys/offer"))
        database.run("UPDATE sessions SET ended_at = now(), end_reason = 'logout'")
        visitor.visit("/sign-in")
        visitor.send("/account/passkeys/offer", challenge_id="x", credential=json.dumps(credential))
        assert database.count("factors") == 0


class TestAnswers:
    @pytest.fixture
    def offer(self, visitor, alice):
        return sign_in(visitor, query=WITH_APPLICATION)

    def test_not_now_leads_to_the_application(self, visitor, offer):
        assert "code_challenge" in offer.url
        assert visitor.press(DECLINE).url.startswith(f"{APPLICATION}?code=")

    def test_button_adds_a_factor_and_leads_on(self, visitor, client, alice, offer, database):
        phone, authenticator = alice.open_session(), Authenticator()
        credential = json.dumps(authenticator.create(visitor.passkey_options))
        page = visitor.press("account/passkeys/offer", credential=credential)
        assert page.url.startswith(f"{APPLICATION}?code=")
        assert database.count("factors", "verified_at IS NOT NULL") == 1
        assert database.count("sessions", "aal = 'aal2'") >= 1
        assert phone.get("/user").status_code == 200
        # The answer is remembered, as *Not now* is.
        assert "latchkey_offered" in {each.name for each in visitor.cookies}

    def test_passkey_of_the_browser_is_no_factor_and_leads_on(self, visitor, client, offer, outbox, database):
        options, authenticator = upgrade_options(offer), Authenticator()
        credential = authenticator.create(options, is_present=False, is_verified=False)
        number = next(n for n, form in enumerate(offer.forms) if n and "credential" in form.fields)
        page = visitor.submit(number=number, credential=json.dumps(credential))
        assert page.url.startswith(f"{APPLICATION}?code=")
        assert database.count("factors", "verified_at IS NULL") == 1
        assert database.count("sessions", "aal = 'aal2'") == 0
        assert outbox.last(kind="passkey_added").variables["how"] == "by_browser"
        visitor.visit("/account")
        assert "not used yet" in words(visitor.page)
        # Not that a passkey must be added.
        assert "Off Your passkey counts once you’ve signed in with it." in words(visitor.page)

    def test_its_answer_to_the_buttons_challenge_is_refused(self, visitor, offer, database):
        """A page could send `mediation` itself."""
        credential = Authenticator().create(visitor.passkey_options, is_present=False, is_verified=False)
        visitor.press("account/passkeys/offer", credential=json.dumps(credential))
        assert visitor.page.status == 400
        assert "That passkey or security key didn’t work." in words(visitor.page)
        # The browser makes no other one, or the page would try for ever.
        assert "data-upgrade" not in visitor.page.text
        assert database.count("factors") == 0

    def test_page_of_the_account_takes_only_what_its_user_made(self, visitor, offer, database):
        credential = Authenticator().create(upgrade_options(offer), is_present=False, is_verified=False)
        (form,) = [form for form in offer.forms[1:] if "credential" in form.fields]
        sent = {"challenge_id": form.fields["challenge_id"], "credential": json.dumps(credential)}
        page = visitor.send("/account/passkeys", **sent)
        assert page.status == 400
        assert database.count("factors") == 0
        assert database.count("sessions", "aal = 'aal2'") == 0

    def test_answer_is_of_one_browser(self, app, offer, mallory, database):
        """Not for another user's session, nor for another one of the same user."""
        credential = Authenticator().create(upgrade_options(offer), is_present=False, is_verified=False)
        (form,) = [form for form in offer.forms[1:] if "credential" in form.fields]
        sent = {"challenge_id": form.fields["challenge_id"], "credential": json.dumps(credential)}
        for email in (mallory.email, "alice@example.com"):
            other = Visitor(app)
            sign_in(other, email)
            assert other.send("/account/passkeys/offer", **sent).status == 400
        assert database.count("factors") == 0

    @cases("url", ["https://evil.example/x", "//evil.example", "javascript:alert(1)"])
    def test_answer_leads_nowhere_else(self, visitor, offer, url):
        visitor.visit(offer.url)
        assert visitor.send(f"/{DECLINE}", redirect_to=url).status == 400
        assert visitor.visit(f"{OFFER}?{urlencode({'redirect_to': url})}").status == 400

    def test_getting_the_page_again_goes_on_only_by_a_button(self, visitor, offer):
        """Another site may send the browser there."""
        visitor.press(DECLINE)
        page = visitor.visit(offer.url)
        assert page.url.startswith(f"{SITE}/sign-in?")
        assert "Continue as" in words(page)

    def test_form_of_another_site_is_refused(self, visitor, offer, database):
        for path in ("/account/passkeys/offer", f"/{DECLINE}"):
            page = visitor.post(
                f"{SITE}{path}", {"form_token": "0" * 64, "challenge_id": "x", "credential": "{}"}
            )
            assert page.status == 403
        assert database.count("factors") == 0

    def test_reloads_leave_five_challenges_of_a_kind(self, visitor, offer, database):
        for _ in range(7):
            visitor.visit(offer.url)
        purposes = "purpose IN ('passkey_registration', 'passkey_upgrade')"
        assert database.count("factor_challenges", purposes) == 10

    def test_page_beyond_the_limit_writes_no_challenge(self, make_app, visitor, offer, database):
        app = make_app(
            AUTH_PASSKEY_OFFER="auto",
            AUTH_REDIRECT_ALLOW_LIST="https://app.example.com/**",
            AUTH_RATE_LIMITS_ENABLED="true",
            AUTH_RATE_LIMIT_USER_CHANGES="2 per hour",
            AUTH_RATE_LIMIT_VERIFY="2 per hour",
        )
        visitor.go_on_at(app)
        database.run("DELETE FROM factor_challenges")
        assert [visitor.visit(offer.url).status for _ in range(4)] == [200, 200, 429, 429]
        assert database.count("factor_challenges") == 4


class TestSignals:
    def signals(self, page):
        return json.loads(html.unescape(page.text.partition('data-signals="')[2].partition('"')[0]))

    def test_account_names_the_credentials_and_the_address(self, visitor, alice):
        authenticator, _ = make_unasked(alice.open_session())
        visitor.signed_in_as(alice)
        signals = self.signals(visitor.visit("/account"))
        id, handle = (
            encode(each) for each in (authenticator.passkeys[0].id, authenticator.passkeys[0].user_handle)
        )
        user = {"rpId": "localhost", "userId": handle}
        assert signals == {
            "signalAllAcceptedCredentials": {**user, "allAcceptedCredentialIds": [id]},
            "signalCurrentUserDetails": {**user, "name": alice.email, "displayName": alice.email},
        }
        page = visitor.remove("passkey")
        assert unsigned(page).startswith(f"{SITE}/account?done=passkey_removed")
        assert self.signals(page)["signalAllAcceptedCredentials"]["allAcceptedCredentialIds"] == []

    def test_account_names_nothing_while_passkeys_are_off(self, make_app, alice):
        make_unasked(alice.open_session())
        page = Visitor(make_app(AUTH_PASSKEYS_ENABLED="false")).with_session_of(alice).visit("/account")
        assert (page.status, "data-signals" in page.text) == (200, False)

    def test_only_the_browser_that_removes_an_old_passkey_forgets_it_at_once(
        self, app, visitor, client, alice, database
    ):
        """The link of the notice asks for it, if a thief was the one who removed it."""
        authenticator, _ = register(alice.open_session())
        database.run("UPDATE factors SET verified_at = now() - interval '8 days'")
        id = encode(authenticator.passkeys[0].id)
        others = Visitor(app).with_session_of(alice)
        visitor.visit("/sign-in")
        visitor.press("sign-in/passkey")
        visitor.press(
            "sign-in/passkey/verify", credential=json.dumps(authenticator.get(visitor.passkey_options))
        )
        visitor.visit("/account")
        page = visitor.remove("passkey")
        accepted = "signalAllAcceptedCredentials", "allAcceptedCredentialIds"
        assert self.signals(page)[accepted[0]][accepted[1]] == []
        assert self.signals(others.visit("/account"))[accepted[0]][accepted[1]] == [id]
        # There, the sign-in page says that it is gone, but does not delete it.
        visitor.press("sign-out")
        visitor.visit("/sign-in")
        visitor.press("sign-in/passkey")
        credential = json.dumps(authenticator.get(visitor.passkey_options))
        page = visitor.press("sign-in/passkey/verify", credential=credential)
        assert "That passkey no longer works here. Choose another way." in words(page)
        assert "data-signals" not in page.text

    def test_failed_sign_in_names_an_unknown_passkey_alone(self, visitor, app, client, alice, database):
        authenticator, _ = register(alice.open_session())

        def fail(**changes):
            visitor.visit("/sign-in")
            visitor.press("sign-in/passkey")
            credential = authenticator.get(visitor.passkey_options, **changes)
            return visitor.press("sign-in/passkey/verify", credential=json.dumps(credential))

        page = fail(is_verified=False)
        assert (page.status, "data-signals" in page.text) == (400, False)
        page = fail(user_handle=b"0" * 16)
        assert (page.status, "data-signals" in page.text) == (400, False)
        database.run("DELETE FROM factors")
        page = fail()
        assert "That passkey no longer works here." in words(page)
        id = encode(authenticator.passkeys[0].id)
        assert self.signals(page) == {"signalUnknownCredential": {"rpId": "localhost", "credentialId": id}}
        assert sign_in_response(client, authenticator).status_code == 400
