"""What becomes of an employee whom one provider of the organization made, and who has moved to another."""

import pytest

from tests.support.own_providers import DOMAIN
from tests.support.users import PASSWORD, Person

CAROL = "carol@example.com"


@pytest.fixture
def employee(on, customers, service, provider):
    """The session of Carol, whom the provider made."""
    customers.acme.be("10", CAROL)
    return service.signed_in(f"custom:{provider}")


@pytest.fixture
def second(employee, sign_in, provider, customers, database):
    """The id of the company's new provider, which has the domain now, and where Carol is."""
    assert sign_in.change(provider, domains=[]).status_code == 200
    answer = sign_in.connect(customers.globex, domains=[DOMAIN], member_role="member")
    assert answer.status_code == 201, answer.text
    id = answer.json["id"]
    database.run("UPDATE identity_providers SET tried_at = now(), is_on = true WHERE id = %(id)s", id=id)
    customers.globex.be("77", CAROL)
    return id


@pytest.mark.parametrize("adds", [True, False])
def test_employees_who_have_moved_to_the_companys_new_provider_stay_when_the_old_one_is_deleted(
    employee, sign_in, provider, second, service, database, browse, acme, adds
):
    user_id = employee.get("/user").json["id"]
    visitor = browse(Person(service.client, user_id, CAROL))
    visitor.visit("/account/company")
    visitor.press("account/company")
    session = service.signed_in(f"custom:{second}")
    if not adds:
        database.run("UPDATE identity_providers SET member_role = NULL WHERE id = %(id)s", id=second)
    answer = sign_in.owner.delete(f"{acme}/providers/{provider}", json={"current_password": PASSWORD})
    assert answer.status_code == 204, answer.text
    members = database.all("SELECT provider_id::text FROM memberships WHERE user_id = %(id)s", id=user_id)
    assert members == ([(second,)] if adds else [])
    assert database.count("identities", f"provider = 'sso:{second}'") == adds
    assert session.refresh().status_code == (200 if adds else 400)
    assert ("access_token" in service.sign_in(f"custom:{second}").url) == adds


def test_what_the_provider_of_an_ended_organization_opened_is_over_before_the_janitor_comes(
    employee, alice, owner, acme, database
):
    """The deletion of the last user ends an organization without an act on its provider."""
    own = alice.open_session()
    database.run("UPDATE organizations SET ended_at = now()")
    assert database.value("SELECT is_on FROM identity_providers")
    assert [employee.refresh().status_code, own.refresh().status_code] == [400, 200]


def test_owners_test_of_a_provider_that_is_off_lasts_until_the_operator_disables_it(
    tried, provider, client, service_role, database
):
    is_live = "provider_term IS NOT NULL AND end_of(s) IS NULL"
    count = f"SELECT count(*) FROM sessions AS s WHERE {is_live}"
    assert (database.value(count), database.value("SELECT is_on FROM identity_providers")) == (1, False)
    path = f"/admin/custom-providers/custom:{provider}"
    assert client.put(path, json={"name": "Other"}, headers=service_role).status_code == 200
    assert database.value(count) == 1
    assert client.put(path, json={"enabled": False}, headers=service_role).status_code == 200
    assert database.value("SELECT is_blocked FROM identity_providers")
    assert database.value(count) == 0


@pytest.mark.parametrize("path", ["/otp", "/signup"])
def test_strangers_request_makes_no_moved_account_of_an_employee_whom_the_provider_made(
    on, customers, service, provider, sign_in, acme, path
):
    """A stranger asks for a code for the address, or signs up with it, before the employee first comes."""
    email = "dora@example.com"
    body = {"email": email} | ({"password": PASSWORD} if path == "/signup" else {})
    assert service.client.post(path, json=body).status_code in (200, 201)
    customers.acme.be("11", email)
    user_id = service.signed_in(f"custom:{provider}").get("/user").json["id"]
    assert sign_in.owner.delete(f"{acme}/members/{user_id}").status_code == 204
    page = service.sign_in(f"custom:{provider}")
    assert "access_token" in page.url, page.url
