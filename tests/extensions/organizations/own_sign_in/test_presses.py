"""A press of *Test sign-in* or *Move*: it lets the issuer in by its own flow, and by nothing else."""

import pytest

from auth.delivery import janitor
from tests.support import passkeys
from tests.support.answers import assert_error
from tests.support.commands import run_command
from tests.support.oauth import assert_failed
from tests.support.own_providers import ALICE, page_of_press
from tests.support.pages import Visitor, words
from tests.support.users import PASSWORD, Person

IS_AT_A_PROVIDER = "provider LIKE 'sso:%%'"
NEW_PASSWORD = {"password": "Another-Horse-2", "current_password": PASSWORD}

CAROL = "carol@example.com"


@pytest.fixture
def leave_at_provider(browse, service, provider):
    """Return a browser in which a person has pressed, and waits at the provider; and the URL of its return."""

    def leave_at_provider(person, action="move"):
        visitor = browse(person)
        visitor.visit(f"/{page_of_press(action, provider)}")
        return visitor, visitor.submit(stop=service.is_callback).url

    return leave_at_provider


@pytest.fixture
def member(on, join, bob, acme, customers):
    """The session of Bob, a member, at whose provider he is signed in."""
    session = join(bob, acme)
    customers.acme.be("9", bob.email)
    return session


def test_cancelled_press_gives_the_issuer_nothing_later(
    member, leave_at_provider, bob, provider, service, database, acme
):
    leave_at_provider(bob)
    assert database.count("identity_provider_adoptions") == 0
    assert_failed(service.sign_in(f"custom:{provider}"), "user_sso_conflict")
    database.run("UPDATE oauth_flows SET expires_at = expires_at - interval '1 day'")
    janitor.keep_house(service.parts.settings, service.parts.db, service.parts.sealer)
    assert_failed(service.sign_in(f"custom:{provider}"), "user_sso_conflict")
    assert database.count("identities", f"{IS_AT_A_PROVIDER} AND subject = '9'") == 0


@pytest.mark.parametrize("end", ["password", "session"])
def test_press_is_void_once_the_user_changes_the_password_or_signs_out(
    member, leave_at_provider, bob, database, end
):
    visitor, url = leave_at_provider(bob)
    ends = {
        "password": lambda: member.put("/user", json=NEW_PASSWORD).status_code,
        "session": lambda: member.post("/logout?scope=global").status_code,
    }
    assert ends[end]() in (200, 204)
    before = database.count("sessions")
    assert "error" in visitor.visit(url).url
    assert database.count("sessions") == before
    assert database.count("identities", f"{IS_AT_A_PROVIDER} AND subject = '9'") == 0


@pytest.mark.parametrize("action", ["move", "test"])
def test_cancelled_press_leaves_the_identity_that_was_there(
    on, leave_at_provider, alice, service, provider, database, action
):
    leave_at_provider(alice, action)
    assert database.one(f"SELECT user_id::text, subject FROM identities WHERE {IS_AT_A_PROVIDER}") == (
        alice.id,
        "1",
    )


def test_completed_press_replaces_an_identity_and_both_are_in_the_log(
    on, press, alice, customers, database, outbox
):
    customers.acme.be("1b", ALICE)
    press(alice)
    identities = database.all(f"SELECT user_id::text, subject FROM identities WHERE {IS_AT_A_PROVIDER}")
    assert identities == [(alice.id, "1b")]
    rows = database.all("SELECT action FROM audit_log WHERE action LIKE 'identity%%' ORDER BY 1")
    assert [action for (action,) in rows] == ["identity_linked", "identity_linked", "identity_unlinked"]
    assert "identity_linked" in [each.kind for each in outbox.sent(ALICE)]


@pytest.mark.parametrize("way", ["completed", "cancelled", "moved by the operator"])
@pytest.mark.parametrize("change", ["off", "deleted"])
def test_turning_an_issuer_off_ends_what_it_opened(
    member, press, leave_at_provider, bob, provider, service, customers, sign_in, service_role, way, change
):
    press(bob, "move")
    session = service.signed_in(f"custom:{provider}")
    if way == "cancelled":
        leave_at_provider(bob)
    elif way == "moved by the operator":
        assert run_command(service.app, "providers", "adopt", provider, bob.email).exit_code == 0
    if change == "off":
        assert sign_in.change(provider, enabled=False).status_code == 200
    else:
        path = f"/admin/custom-providers/custom:{provider}"
        assert service.client.delete(path, json={}, headers=service_role).status_code == 204
    assert session.refresh().status_code == 400
    assert session.get("/user").status_code in (401, 403)


def test_turning_an_issuer_off_takes_back_what_nobody_has_used(
    member, leave_at_provider, bob, provider, service, sign_in, database
):
    visitor, url = leave_at_provider(bob)
    assert run_command(service.app, "providers", "adopt", provider, bob.email).exit_code == 0
    assert sign_in.change(provider, enabled=False).status_code == 200
    assert database.count("identity_provider_adoptions") == 0
    database.run("UPDATE identity_providers SET is_on = true")
    assert "error" in visitor.visit(url).url
    assert_failed(service.sign_in(f"custom:{provider}"), "user_sso_conflict")


def test_disabling_an_issuer_that_is_off_takes_back_what_nobody_has_used(
    member, bob, provider, service, service_role, database
):
    database.run("UPDATE identity_providers SET is_on = false")
    assert run_command(service.app, "providers", "adopt", provider, bob.email).exit_code == 0
    path = f"/admin/custom-providers/custom:{provider}"
    # Another change of a provider that is off keeps it.
    assert service.client.put(path, json={"name": "Acme"}, headers=service_role).status_code == 200
    assert database.count("identity_provider_adoptions") == 1
    assert service.client.put(path, json={"enabled": False}, headers=service_role).status_code == 200
    assert database.count("identity_provider_adoptions") == 0
    assert service.client.put(path, json={"enabled": True}, headers=service_role).status_code == 200
    assert_failed(service.sign_in(f"custom:{provider}"), "user_sso_conflict")


def test_provider_that_is_on_is_not_moved_to_an_issuer_that_nobody_tested(
    on, provider, sign_in, customers, database
):
    # Its users have left, or were deleted.
    database.run(f"DELETE FROM identities WHERE {IS_AT_A_PROVIDER}")
    fields = {"issuer": customers.globex.provider.url, "client_secret": "another"}
    for changes in (fields, fields | {"enabled": True}):
        assert_error(sign_in.change(provider, **changes), 403, "provider_not_tried")
    assert database.value("SELECT issuer FROM identity_providers") == customers.acme.provider.url
    assert sign_in.change(provider, **fields, enabled=False).status_code == 200
    assert database.value("SELECT tried_at FROM identity_providers") is None


class TestWhoHasLeft:
    """An employee whom the provider made, and who has left, may remove the identity."""

    @pytest.fixture
    def of_issuer(self, on, customers, provider, service, acme, database):
        """The session that the provider opened for its employee, who has left since."""
        customers.acme.be("9", CAROL)
        session = service.signed_in(f"custom:{provider}")
        user_id = session.get("/user").json["id"]
        assert session.delete(f"{acme}/members/{user_id}").status_code == 204
        return session

    @pytest.fixture
    def employee(self, of_issuer, service):
        return Person(service.client, of_issuer.get("/user").json["id"], CAROL)

    @pytest.fixture
    def own_session(self, employee, service):
        """A session by mail."""
        return employee.open_session()

    @pytest.fixture
    def id(self, of_issuer, database):
        return database.value("SELECT id FROM identities WHERE subject = '9'")

    def test_user_who_has_left_removes_the_identity_and_is_rid_of_the_issuer(
        self, of_issuer, own_session, id, provider, service, database
    ):
        response = own_session.open(f"/user/identities/{id}", "DELETE", json={})
        assert response.status_code == 200, response.text
        assert_failed(service.sign_in(f"custom:{provider}"), "user_sso_conflict")
        assert of_issuer.refresh().status_code == 400
        assert own_session.get("/user").status_code == 200
        assert database.count("audit_log", "action = 'identity_unlinked'") == 1

    def test_user_who_has_left_removes_the_identity_on_the_account_page(
        self, employee, id, service, database
    ):
        visitor = Visitor(service.app).with_session_of(employee)
        visitor.visit("/account")
        page = visitor.visit(visitor.link_to(f"account/remove?kind=identity&id={id}"))
        assert "Acme-Idp" in words(page)
        assert "We’ll also sign out your other devices." in words(page)
        visitor.press("account/remove")
        assert database.count("identities", "subject = '9'") == 0

    def test_session_that_the_issuer_opened_does_not_remove_the_identity(self, of_issuer, id, database):
        response = of_issuer.open(f"/user/identities/{id}", "DELETE", json={})
        assert_error(response, 404, "manual_linking_disabled")
        assert database.count("identities", "subject = '9'") == 1

    def test_identity_that_is_the_last_way_to_sign_in_is_not_removed(self, own_session, id, database):
        database.run(
            "UPDATE users SET email_proved = false, email_confirmed_at = NULL WHERE email = %(email)s",
            email=CAROL,
        )
        response = own_session.open(f"/user/identities/{id}", "DELETE", json={})
        assert_error(response, 422, "single_identity_not_deletable")

    def test_member_does_not_remove_the_identity(self, member, press, browse, bob, database):
        press(bob, "move")
        id = database.value("SELECT id FROM identities WHERE subject = '9'")
        response = member.open(f"/user/identities/{id}", "DELETE", json={"current_password": PASSWORD})
        assert_error(response, 404, "manual_linking_disabled")
        assert str(id) not in browse(bob).visit("/account").text


def test_press_in_a_session_of_an_administrative_key_links_no_way_to_sign_in(
    member, browse, press, bob, provider, service, service_role, database
):
    visitor = browse(bob)
    # As if a link of the key had opened Bob's sessions.
    database.run("UPDATE sessions SET by_key = true WHERE user_id = %(id)s", id=bob.id)
    press(bob, "move", visitor)
    passkeys.register(service.signed_in(f"custom:{provider}"))
    response = service.client.put(f"/admin/users/{bob.id}", json={"role": "admin"}, headers=service_role)
    assert response.status_code == 200, response.text
    assert {way["type"] for way in response.json["ways_to_sign_in"]} == {"email", "password"}
