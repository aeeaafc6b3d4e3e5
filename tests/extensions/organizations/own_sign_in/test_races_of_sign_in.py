"""An organization's sign-in at the moment in which its end, domain or provider changes."""

import pytest

from tests.support.answers import assert_error
from tests.support.own_providers import DOMAIN, PATH, SignIn
from tests.support.server import at_once
from tests.support.users import PASSWORD

EMPLOYEES = 11
BY_EMPLOYEES = "user_id IN (SELECT id FROM users WHERE email LIKE 'dave%%')"


@pytest.fixture
def provider(provider, database) -> str:
    """The id of Acme's provider, which is on."""
    database.run("UPDATE identity_providers SET is_on = true")
    return provider


@pytest.fixture
def while_employees_return(provider, service, customers):
    """Do something at the moment in which employees come back from the provider; return its result."""
    returns = []
    for number in range(EMPLOYEES):
        customers.acme.be(str(number), f"dave{number}@example.com")
        browser = service.browser()
        returns.append((browser, service.return_url(browser, f"custom:{provider}")))

    def race(action):
        def run(number):
            # The action comes in the middle, after some of the employees.
            if number == EMPLOYEES // 2:
                return action()
            browser, url = returns[number if number < EMPLOYEES // 2 else number - 1]
            return browser.visit(url).url

        return at_once(EMPLOYEES + 1, run)[EMPLOYEES // 2]

    return race


@pytest.mark.parametrize("action", ["end", "disable", "delete"])
def test_sign_in_leaves_no_session_when_its_provider_goes_meanwhile(
    while_employees_return, provider, acme, owner, sign_in, database, action
):
    actions = {
        "end": lambda: owner.delete(acme, json={}).status_code,
        "disable": lambda: sign_in.change(provider, enabled=False).status_code,
        "delete": lambda: owner.delete(f"{acme}/providers/{provider}", json={}).status_code,
    }
    assert while_employees_return(actions[action]) == (200 if action == "disable" else 204)
    assert database.count("sessions", f"ended_at IS NULL AND {BY_EMPLOYEES}") == 0
    assert database.count("identity_providers", "is_on") == 0
    if action == "delete":
        assert database.count("identities", "provider LIKE 'sso:%%'") == 0
        assert database.count("memberships", BY_EMPLOYEES) == 0


def test_nobody_joins_an_organization_that_ends_with_its_last_owner_meanwhile(
    provider, service, customers, owner, database
):
    customers.acme.be("9", "dave@example.com")
    browser = service.browser()
    url = service.return_url(browser, f"custom:{provider}")
    organization_id = database.value("SELECT id::text FROM organizations")
    with database.locked("organizations", organization_id) as lock:
        deletion = lock.start(lambda: owner.delete("/user", json={}).status_code)
        sign_in = lock.start(lambda: browser.visit(url).status)
    assert (deletion.result(), sign_in.result()) == (200, 200)
    assert database.value("SELECT ended_at IS NOT NULL FROM organizations")
    assert database.count("memberships", BY_EMPLOYEES) == 0
    assert database.count("audit_log", "action = 'membership_added' AND details ->> 'role' = 'member'") == 0


def test_nobody_is_signed_in_after_the_domain_was_given_up(while_employees_return, acme, owner, database):
    assert while_employees_return(lambda: owner.delete(f"{acme}/domains/{DOMAIN}").status_code) == 204
    lost_at = "(SELECT at FROM audit_log WHERE action = 'domain_lost')"
    assert database.count("sessions", f"{BY_EMPLOYEES} AND created_at > {lost_at}") == 0
    assert database.count("identity_provider_domains") == 0


def test_of_two_customers_who_prove_one_domain_one_gets_it(sign_in, bob, client, names, database):
    session = bob.open_session(client)
    globex = session.post("/organizations", json={"name": "Globex"}).json
    rivals = [sign_in, SignIn(session, f"/organizations/{globex['id']}", names)]
    for rival in rivals:
        rival.name(DOMAIN)
    database.run("UPDATE organization_domains SET token = 'of-both'")
    names.texts[f"_latchkey.{DOMAIN}"] = "latchkey=of-both"

    def prove(number):
        rival = rivals[number % 2]
        return rival.owner.post(f"{rival.path}/domains/{DOMAIN}").status_code

    answers = at_once(8, prove)
    assert {answers[0], answers[1]} == {200, 400}
    assert answers == answers[:2] * 4
    assert database.count("organization_domains", "proved_at IS NOT NULL") == 1
    assert database.count("audit_log", "action = 'domain_proved'") == 1


def test_domain_that_is_given_up_while_a_provider_gets_it_is_nobodys(
    sign_in, provider, acme, owner, database
):
    assert sign_in.prove("acme.example").status_code == 200
    requests = [
        lambda: sign_in.change(provider, domains=[DOMAIN, "acme.example"]).status_code,
        lambda: owner.delete(f"{acme}/domains/acme.example").status_code,
    ]
    changed, removed = at_once(2, lambda number: requests[number]())
    assert (changed in (200, 422), removed) == (True, 204)
    assert database.count("identity_provider_domains", "domain = 'acme.example'") == 0


def test_domain_that_is_lost_while_the_operator_changes_its_provider_stays_lost(
    provider, client, service_role, database
):
    path = f"/admin/custom-providers/custom:{provider}"
    with database.locked("identity_providers", provider) as lock:
        request = lock.start(lambda: client.put(path, json={"name": "Acme"}, headers=service_role))
        database.run("DELETE FROM identity_provider_domains")
    assert_error(request.result(), 409, "validation_failed")
    assert database.count("identity_provider_domains") == 0


def test_member_who_leaves_and_is_added_again_outlives_the_provider_that_goes_meanwhile(
    provider, acme, owner, join, bob, client, service_role, database
):
    session = join(bob, acme)
    database.run(
        "UPDATE memberships SET added_by = 'provider', provider_id = %(id)s WHERE role = 'member'",
        id=provider,
    )
    path = f"{acme}/providers/{provider}"
    with database.locked("users", bob.id) as lock:
        leaving = lock.start(lambda: session.delete(f"{acme}/members/{bob.id}").status_code)
        member, body = f"{acme}/members/{bob.id}", {"role": "admin"}
        joining = lock.start(lambda: client.put(member, json=body, headers=service_role).status_code)
        # The deletion has listed Bob, whom the provider added.
        deletion = lock.start(lambda: client.delete(path, json={}, headers=service_role).status_code)
    assert (leaving.result(), joining.result(), deletion.result()) == (204, 200, 204)
    memberships = database.all("SELECT role, added_by, provider_id FROM memberships WHERE role <> 'owner'")
    assert memberships == [("admin", "administrator", None)]
    assert database.count("identity_providers") == 0
    assert database.count("audit_log", "action = 'membership_removed'") == 1


@pytest.mark.parametrize("is_lost", [True, False])
def test_own_sign_in_is_not_required_of_a_provider_that_goes_meanwhile(
    provider, acme, client, service_role, database, is_lost
):
    body = {"requires": {"own_provider": True}}
    disable = "UPDATE identity_providers SET is_on = %s, disabled_at = now()"
    with database.locked("identity_providers", not is_lost, disable) as lock:
        request = lock.start(lambda: client.put(acme, json=body, headers=service_role).status_code)
    assert request.result() == (400 if is_lost else 200)
    assert database.value("SELECT needs_own_provider FROM organizations") is not is_lost


def test_owner_does_not_turn_on_what_the_operator_disables_meanwhile(
    tried, sign_in, provider, alice, client, service_role, database
):
    session = alice.open_session(client)
    database.run("UPDATE identity_providers SET is_on = false")
    database.run(
        "UPDATE sessions SET amr = (SELECT amr FROM sessions WHERE amr::text LIKE '%%sso:%%' LIMIT 1)"
    )
    session = session.refreshed()
    path = f"/admin/custom-providers/{provider}"

    def change(number):
        if number == 1:
            return client.put(path, json={"enabled": False}, headers=service_role).status_code
        return sign_in.change(provider, session, enabled=True).status_code

    answers = at_once(4, change)
    # The operator is told if an owner's change came in between, and disables it again.
    assert answers[1] in (200, 409)
    if answers[1] == 409:
        assert change(1) == 200
    assert database.value("SELECT is_blocked AND NOT is_on FROM identity_providers")
    assert change(0) in (401, 403)


def test_owner_does_not_delete_what_the_operator_disables_meanwhile(
    provider, service, customers, owner, acme, database
):
    customers.acme.be("7", "eve@example.com")
    service.signed_in(f"custom:{provider}")
    eve = database.value("SELECT id::text FROM users WHERE email = 'eve@example.com'")
    with database.locked("users", eve) as lock:
        path = f"{acme}/providers/{provider}"
        deletion = lock.start(lambda: owner.delete(path, json={"current_password": PASSWORD}))
        assert not database.value("SELECT is_on FROM identity_providers")
        database.run("UPDATE identity_providers SET is_blocked = true")
    assert_error(deletion.result(), 409, "validation_failed")
    assert database.value("SELECT is_blocked AND NOT is_on FROM identity_providers")


@pytest.mark.parametrize("first", ["change", "test"])
@pytest.mark.parametrize("changes", [{"client_id": "x", "client_secret": "y"}, {"client_secret": "y"}])
def test_client_and_secret_that_come_during_a_test_are_not_tested(
    browse, alice, sign_in, provider, service, database, first, changes
):
    database.run("UPDATE identity_providers SET is_on = false")
    visitor = browse(alice)
    visitor.visit(f"{PATH}/sign-in/providers/{provider}/test")
    page = visitor.submit(stop=service.is_callback)
    acts = {
        "test": lambda: visitor.visit(page.url).url,
        # Of another owner, as far as the provider can tell.
        "change": lambda: sign_in.change(provider, **changes).status_code,
    }
    with database.locked("identity_providers", provider) as lock:
        # The provider's answer is here before either of them has the lock.
        results = {name: lock.start(acts[name]) for name in sorted(acts, key=lambda name: name != first)}
    assert results["change"].result() == 200
    assert results["test"].result().endswith(f"{PATH}/sign-in")
    assert database.count("identities", "provider LIKE 'sso:%%'") == 1
    assert database.value("SELECT tried_at FROM identity_providers") is None
    assert_error(sign_in.change(provider, enabled=True), 403, "provider_not_tried")


def test_test_counts_although_another_owner_waits_to_change_nothing(
    browse, alice, sign_in, provider, service, database
):
    database.run("UPDATE identity_providers SET is_on = false")
    visitor = browse(alice)
    visitor.visit(f"{PATH}/sign-in/providers/{provider}/test")
    page = visitor.submit(stop=service.is_callback)
    with database.locked("identity_providers", provider) as lock:
        test = lock.start(lambda: visitor.visit(page.url).url)
        change = lock.start(lambda: sign_in.change(provider, name="Acme Inc.").status_code)
    assert (test.result().endswith(f"{PATH}/sign-in"), change.result()) == (True, 200)
    assert database.value("SELECT tried_at IS NOT NULL FROM identity_providers")


@pytest.mark.parametrize("first", ["employee", "owner"])
def test_employee_who_joins_while_the_owner_invites_her_has_no_invitation_left(
    provider, acme, owner, service, customers, database, first
):
    customers.acme.be("2", "dave@example.com")
    browser = service.browser()
    url = service.return_url(browser, f"custom:{provider}")
    body = {"email": "dave@example.com", "role": "admin"}
    requests = {
        "employee": lambda: browser.visit(url).status,
        "owner": lambda: owner.post(f"{acme}/invitations", json=body).status_code,
    }
    second = next(each for each in requests if each != first)
    with database.locked("organizations", acme.rpartition("/")[2]) as lock:
        answers = {each: lock.start(requests[each]) for each in (first, second)}
    assert answers["owner"].result() == (409 if first == "employee" else 201)
    assert answers["employee"].result() == 200
    memberships = database.all("SELECT role, added_by FROM memberships WHERE role <> 'owner'")
    assert memberships == [("member", "provider")]
    assert database.count("organization_invitations") == 0
