"""The nine places that delete users: the last owner of others is refused, or cannot be among them."""

import pytest

from tests.support.answers import assert_error


@pytest.fixture
def with_member(acme, join, bob):
    join(bob, acme)
    return acme


def test_last_owner_cannot_delete_the_account(owner, with_member, database):
    assert_error(owner.delete("/user", json={}), 409, "last_owner")
    assert database.count("users") == 2


def test_service_role_key_may_leave_members_without_an_owner(
    owner, with_member, client, service_role, database
):
    deleted = client.delete(f"/admin/users/{owner.user['id']}", headers=service_role)
    assert deleted.status_code == 200
    assert database.all("SELECT role FROM memberships")[0].role == "member"
    assert database.count("organizations", "ended_at IS NULL") == 1


@pytest.mark.parametrize("made_by", ["signup", "message", "anonymous"])
def test_user_whom_others_may_delete_is_nobodys_owner(acme, bob, client, service_role, database, made_by):
    """A sign-up that gives way, one that is declined, replaced, never used or abandoned."""
    database.run(
        "UPDATE users SET made_by = %(made_by)s, email_proved = false, email_confirmed_at = NULL WHERE id = %(id)s",
        made_by=made_by,
        id=bob.id,
    )
    added = client.put(f"{acme}/members/{bob.id}", json={"role": "owner"}, headers=service_role)
    assert_error(added, 403, "email_not_confirmed")
    created = client.post("/organizations", json={"name": "Other", "owner": bob.id}, headers=service_role)
    assert_error(created, 403, "email_not_confirmed")
    assert database.count("memberships", "user_id = %(id)s", id=bob.id) == 0


def test_banned_owner_does_not_count_as_another(owner, with_member, bob, client, service_role, database):
    assert (
        client.put(
            f"{with_member}/members/{bob.id}", json={"role": "owner"}, headers=service_role
        ).status_code
        == 200
    )
    database.run("UPDATE users SET banned_until = 'infinity' WHERE id = %(id)s", id=bob.id)
    assert_error(owner.delete(f"{with_member}/members/{owner.user['id']}"), 409, "last_owner")


def test_janitor_removes_what_an_end_has_left(owner, with_member, client, database, app):
    from auth.delivery import janitor
    from auth.web.context import EXTENSION

    assert owner.delete(with_member, json={}).status_code == 204
    parts = app.extensions[EXTENSION]
    janitor.keep_house(parts.db, parts.sealer)
    assert database.count("memberships") == database.count("organizations") == 0
    assert owner.post("/organizations", json={"name": "Acme", "slug": "acme"}).status_code == 201
