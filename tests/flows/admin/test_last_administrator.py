"""The last administrator stays, unless the service role key or the command line removes the user."""

import pytest

from tests.support.answers import assert_error
from tests.support.pages import Visitor
from tests.support.server import at_once
from tests.support.users import register

ADMINISTRATORS = "SELECT count(*) FROM users WHERE role = 'admin'"


@pytest.fixture
def dave(client, service_role):
    """A second administrator."""
    return register(client, service_role, "dave@example.com", "admin")


def test_last_administrator_cannot_delete_the_own_account_by_the_api_or_the_page(app, carol, database):
    session = carol.open_session()
    assert_error(session.delete("/user"), 409, "last_administrator")
    assert session.get("/user").status_code == 200
    assert database.value("SELECT reason FROM audit_log ORDER BY at DESC LIMIT 1") == "last_administrator"
    visitor = Visitor(app).signed_in_as(carol)
    visitor.visit("/account/delete")
    page = visitor.submit(confirmed="yes")
    assert (page.status, "You’re the last administrator." in page.text) == (409, True)
    assert database.value(ADMINISTRATORS) == 1


def test_administrator_leaves_where_there_is_another_that_is_not_banned(
    carol, dave, client, service_role, database
):
    client.put(f"/admin/users/{dave.id}", json={"ban_duration": "1h"}, headers=service_role)
    assert_error(carol.sign_in().delete("/user"), 409, "last_administrator")
    client.put(f"/admin/users/{dave.id}", json={"ban_duration": "none"}, headers=service_role)
    assert carol.sign_in().delete("/user").status_code == 200
    assert database.value(ADMINISTRATORS) == 1


def test_one_of_two_administrators_remains_when_both_leave_and_attack_each_other(
    server, carol, dave, database
):
    sessions = {carol: carol.sign_in(), dave: dave.sign_in()}

    def leave_or_attack(number: int):
        person, other = (carol, dave) if number % 2 else (dave, carol)
        session = sessions[person].on(server)
        if number % 5 == 0:
            return session.put(
                f"/admin/users/{other.id}", json={"role": "authenticated", "ban_duration": "1h"}
            )
        if number % 5 == 1:
            return session.delete(f"/admin/users/{other.id}", json={})
        return session.delete("/user")

    answers = at_once(50, leave_or_attack)
    assert sorted(answer.status_code for answer in answers).count(200) == 1
    assert {answer.status_code for answer in answers} <= {200, 401, 403, 409}
    assert database.value(ADMINISTRATORS) == 1


def test_service_role_key_removes_the_last_administrator(carol, client, service_role, database):
    assert client.delete(f"/admin/users/{carol.id}", headers=service_role, json={}).status_code == 200
    assert database.value(ADMINISTRATORS) == 0
