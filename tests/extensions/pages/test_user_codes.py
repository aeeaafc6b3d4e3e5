"""/device: what comes before the code of a device, what a wrong one costs, and what the user is shown."""

import re

import pytest

from tests.support.devices import begin, make_television
from tests.support.links import SITE
from tests.support.openid import assert_refused, grant
from tests.support.pages import Visitor, words
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.devices"]

WARNING = "Only continue if you started this on a device in front of you."
WRONG = "This code is wrong or has expired."
AGE_PROOFS = (
    "UPDATE sessions SET created_at = created_at - interval '16 minutes', reauthenticated_at = NULL,"
    " factor_proved_at = NULL"
)


@pytest.fixture
def browser(app, alice):
    return Visitor(app).with_session_of(alice)


def wrong_code(device) -> str:
    """Return a code that no device has."""
    return "".join("C" if letter == "B" else "B" for letter in device.codes["user_code"].replace("-", ""))


def is_asked(page) -> bool:
    return f"{SITE}/device/consent?" in page.url and "Allow</button>" in page.text


class TestBefore:
    def test_visitor_signs_in_first_then_types_the_code_then_decides(self, visitor, alice, device):
        visitor.visit(device.codes["verification_uri_complete"])
        assert visitor.page.url.startswith(f"{SITE}/sign-in?next=device%3Fuser_code")
        visitor.submit(email=alice.email, password=PASSWORD)
        # The code is filled in, but not entered.
        assert visitor.page.url.startswith(f"{SITE}/device?user_code=")
        assert f'value="{device.codes["user_code"]}"' in visitor.page.text
        assert WARNING in words(visitor.page)
        assert_refused(device.poll(), "authorization_pending")
        assert is_asked(visitor.press("device"))
        visitor.press("device/consent", action="approve")
        assert device.poll().status_code == 200

    def test_proof_is_at_most_fifteen_minutes_old_for_the_code_and_for_the_decision(
        self, browser, device, database
    ):
        database.run(AGE_PROOFS)
        assert browser.visit("/device").url.startswith(f"{SITE}/account/confirm?next=device")
        browser.press("account/confirm", current_password=PASSWORD)
        assert browser.page.url == f"{SITE}/device"
        device.enter(browser)
        database.run(AGE_PROOFS)
        assert (
            "/account/confirm?next=device%2Fconsent" in browser.press("device/consent", action="approve").url
        )
        assert database.count("oauth_grants") == 0
        browser.press("account/confirm", current_password=PASSWORD)
        assert is_asked(browser.page)

    def test_neither_an_earlier_grant_nor_skipped_consent_skips_the_question(
        self, client, browser, alice, database
    ):
        television = make_television(database, skip_consent=True)
        grant(database, alice.id, television.id)
        device = begin(client, television)
        assert is_asked(device.enter(browser))
        assert_refused(device.poll(), "authorization_pending")


class TestCode:
    @pytest.mark.parametrize("spelling", ["{a}{b}", " {a} {b} ", "{a}.{b}"])
    def test_case_and_separators_do_not_matter(self, browser, device, spelling):
        first, second = device.codes["user_code"].split("-")
        browser.visit("/device")
        for typed in (spelling.format(a=first, b=second), spelling.format(a=first, b=second).lower()):
            browser.visit("/device")
            assert is_asked(browser.press("device", user_code=typed))

    def test_first_entry_binds_a_code_to_that_users_session(self, app, alice, bob, device, browser):
        device.enter(browser)
        others = [Visitor(app).with_session_of(person) for person in (bob, alice)]
        for other in others:
            device.enter(other)
            assert WRONG in words(other.page)
            assert other.visit(browser.page.url).status == 404
        assert is_asked(device.enter(browser))
        browser.press("device/consent", action="approve")
        assert WRONG in words(device.enter(browser))
        assert device.poll().status_code == 200

    def test_expired_or_denied_code_is_wrong(self, client, browser, device, television, database):
        database.run("UPDATE oauth_requests SET code_expires_at = now()")
        assert WRONG in words(device.enter(browser))
        second = begin(client, television)
        second.decide(browser, "deny")
        assert WRONG in words(second.enter(browser))

    def test_wrong_codes_count_and_are_refused_from_that_network_alone(self, app, alice, device, database):
        visitor = Visitor(app).with_session_of(alice)
        database.run(
            "INSERT INTO known_networks (user_id, network, passed_at) VALUES (%(id)s, '192.0.2.1', now())",
            id=alice.id,
        )
        for attempt in range(1, 21):
            visitor.visit("/device")
            assert WRONG in words(visitor.press("device", user_code=wrong_code(device))), attempt
        # The right one is refused like a wrong one.
        page = device.enter(visitor)
        assert (page.status, "Too many attempts" in words(page)) == (429, True)
        assert int(page.headers["Retry-After"]) > 3600
        assert_refused(device.poll(), "authorization_pending")
        other_browser = Visitor(app).with_session_of(alice)
        other_browser.client.environ_base["REMOTE_ADDR"] = "192.0.2.1"
        assert is_asked(device.enter(other_browser))

    def test_link_with_a_code_tells_nothing_about_it(self, browser, device):
        texts = [
            browser.visit(f"/device?user_code={code}").text.replace(code, "")
            for code in (device.codes["user_code"], "BBBB-BBBB")
        ]
        assert len({re.sub('form_token" value="[0-9a-f]+', "", text) for text in texts}) == 1


class TestDecision:
    def test_decision_is_made_once(self, browser, device):
        device.enter(browser)
        consent_url = browser.page.url
        browser.press("device/consent", action="approve")
        assert browser.visit(consent_url).status == 404
        browser.visit("/device")
        assert (
            browser.send("/device/consent", request=consent_url.partition("=")[2], action="deny").status
            == 404
        )
        assert device.poll().status_code == 200

    def test_user_whom_the_application_does_not_admit_cannot_allow_it(self, client, browser, alice, database):
        device = begin(client, make_television(database, allowed_roles=["editor"]))
        device.enter(browser)
        assert (browser.page.status, "You can’t use Television" in words(browser.page)) == (403, True)
        browser.send("/device/consent", request=browser.page.url.partition("=")[2], action="approve")
        assert_refused(device.poll(), "access_denied")
        assert database.count("oauth_grants") == 0

    def test_form_of_another_site_decides_nothing(self, browser, device):
        device.enter(browser)
        form = {
            "request": browser.page.url.partition("=")[2],
            "action": "approve",
            "form_token": "0" * 64,
        }
        assert browser.post(f"{SITE}/device/consent", form).status == 403
        assert_refused(device.poll(), "authorization_pending")
