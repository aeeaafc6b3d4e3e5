"""What was added recently, and removing addresses, on the pages of the account."""

import pytest

from tests.support.factors import set_up
from tests.support.links import PHONE, SITE
from tests.support.pages import Visitor


@pytest.fixture
def visitor(app, alice) -> Visitor:
    """Alice's browser, in which she is signed in."""
    return Visitor(app).with_session_of(alice)


@pytest.fixture
def with_phone(visitor, outbox) -> Visitor:
    """The same, with a phone that was just added."""
    visitor.visit("/account/phone")
    visitor.submit(phone=PHONE)
    visitor.submit(code=outbox.last(PHONE).code)
    return visitor


def age_proof(database) -> None:
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")


class TestAddresses:
    def test_email_can_be_removed_while_a_phone_remains(self, with_phone, alice, outbox, database):
        laptop = alice.open_session()
        with_phone.visit("/account/email")
        assert with_phone.press("account/email/remove").url == f"{SITE}/account?done=email_removed"
        assert database.one("SELECT email, phone FROM users") == (None, PHONE)
        assert outbox.last(alice.email, "email_changed").token
        assert laptop.get("/user").status_code == 401

    def test_phone_is_removed(self, with_phone, alice, database):
        with_phone.visit("/account/phone")
        assert with_phone.press("account/phone/remove").url == f"{SITE}/account?done=phone_removed"
        assert database.one("SELECT email, phone FROM users") == (alice.email, None)

    def test_last_way_to_sign_in_stays(self, visitor, alice, database):
        visitor.visit("/account/email")
        page = visitor.press("account/email/remove")
        assert "This is your last way to sign in." in page.text
        assert database.value("SELECT email FROM users") == alice.email
        assert "account/phone/remove" not in visitor.visit("/account/phone").text

    def test_removal_from_an_old_page_asks_for_a_proof(self, with_phone, database):
        with_phone.visit("/account/email")
        age_proof(database)
        assert with_phone.press("account/email/remove").url.startswith(f"{SITE}/account/confirm")
        assert database.value("SELECT email FROM users")


class TestChanges:
    def test_nothing_was_added_to_a_new_account(self, visitor):
        assert "Nothing added in the last seven days" in visitor.visit("/account").text
        assert "Nothing was added" in visitor.visit("/account/changes").text

    def test_addition_is_shown_and_removed_with_all_other_sessions(self, with_phone, alice, database):
        thief = alice.open_session()
        assert "One thing added" in with_phone.visit("/account").text
        assert PHONE in with_phone.visit("/account/changes").text
        page = with_phone.press("account/changes")
        assert page.url == f"{SITE}/account/changes?done=removed"
        assert "all other devices are signed out" in page.text
        assert database.value("SELECT phone FROM users") is None
        assert thief.get("/user").status_code == 401

    def test_removal_asks_for_a_proof_and_leads_back(self, with_phone, database):
        with_phone.visit("/account/changes")
        age_proof(database)
        assert with_phone.press("account/changes").url == f"{SITE}/account/confirm?next=changes"
        assert database.value("SELECT phone FROM users") == PHONE

    def test_ids_of_other_users_and_of_older_ways_are_refused(self, visitor, bob, database):
        visitor.visit("/account/changes")
        for identity in database.all("SELECT id FROM identities"):
            assert visitor.send("/account/changes", id=str(identity.id)).status == 400
        assert visitor.send("/account/changes", id="x").status == 404
        assert database.count("identities") == 2

    def test_owner_removes_the_factor_of_a_thief_and_chooses_a_password(self, app, alice, outbox, database):
        set_up(alice.sign_in(), "Mallory's")
        owner = Visitor(app)
        owner.visit("/forgot-password")
        owner.submit(email=alice.email)
        page = owner.submit(code=outbox.last(alice.email, "recovery").code)
        assert "Not set up by you?" in page.text
        assert "Mallory&#39;s" in owner.visit("/account/changes").text
        owner.press("account/changes")
        assert database.count("factors") == 0
        assert owner.visit("/new-password").url == f"{SITE}/new-password"

    def test_password_leads_the_owner_of_a_new_factor_to_a_recovery(self, app, alice, database):
        set_up(alice.sign_in(), "Mallory's")
        owner = Visitor(app).signed_in_as(alice)
        assert owner.link("Forgot your password?") == f"{SITE}/forgot-password"
        owner.visit("/account/changes")
        assert owner.press("account/changes").url.startswith(f"{SITE}/second-step")
        assert database.count("factors") == 1

    def test_older_factor_is_not_offered_for_removal(self, app, alice, outbox, database):
        set_up(alice.sign_in(), "Old")
        database.run("UPDATE factors SET verified_at = now() - interval '8 days'")
        owner = Visitor(app)
        owner.visit("/forgot-password")
        owner.submit(email=alice.email)
        page = owner.submit(code=outbox.last(alice.email, "recovery").code)
        assert "One more step" in page.text
        assert "Not set up by you?" not in page.text


def test_download_has_the_activity_but_not_where_administrators_work(app, alice, client, service_role):
    headers = service_role | {"User-Agent": "Console of the operator"}
    client.put(f"/admin/users/{alice.id}", json={"user_metadata": {"plan": "gold"}}, headers=headers)
    alice.try_to_sign_in("Wrong-Horse-1")
    page = Visitor(app).signed_in_as(alice).visit("/account/data")
    assert '"action": "sign_in_refused"' in page.text
    assert '"by": "you"' in page.text
    assert '"by": "administrator"' in page.text
    assert "Console of the operator" not in page.text
