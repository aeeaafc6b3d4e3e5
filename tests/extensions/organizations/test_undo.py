"""*This wasn't me* takes back what a thief accepted and sent in organizations, and keeps what was there before."""

import pytest

from tests.support.links import follow
from tests.support.users import MALLORY, NEW_EMAIL


@pytest.fixture
def bobs_organization(alice, bob, client, owner, acme):
    """The path of Bob's organization, which Alice joined by an invitation."""
    session = bob.open_session(client)
    id = session.post("/organizations", json={"name": "Theirs", "slug": "theirs"}).json["id"]
    path = f"/organizations/{id}"
    invitation_id = session.post(f"{path}/invitations", json={"email": alice.email, "role": "admin"}).json[
        "id"
    ]
    assert owner.post(f"/user/invitations/{invitation_id}").status_code == 200
    return path


@pytest.fixture
def undo(owner, outbox, alice, client):
    """Change Alice's email as a thief does, and return the function that follows the link to her old mailbox."""

    def undo():
        assert owner.put("/user", json={"email": MALLORY}).status_code == 200
        follow(client, "email_change", outbox.last(MALLORY).token)
        token = outbox.last(alice.email).token
        return follow(client, "undo", token)

    return undo


def roles_of_alice(database):
    return {
        (row.slug, row.role)
        for row in database.all(
            "SELECT o.slug, m.role FROM memberships AS m JOIN organizations AS o ON o.id = m.organization_id"
            " JOIN users AS u ON u.id = m.user_id WHERE u.email = 'alice@example.com'"
        )
    }


def test_what_was_accepted_and_sent_lately_is_gone_and_the_founder_stays(
    owner, acme, bobs_organization, undo, database
):
    body = {"email": NEW_EMAIL, "role": "admin"}
    for path in (acme, bobs_organization):
        assert owner.post(f"{path}/invitations", json=body | {"role": "member"}).status_code == 201
    undo()
    assert roles_of_alice(database) == {("acme", "owner")}
    assert database.count("organization_invitations") == 0
    statement = "SELECT details -> 'removed' AS removed FROM audit_log WHERE action = 'change_undone'"
    assert database.value(statement) == ["membership theirs"]
    assert database.count("audit_log", "action = 'membership_removed'") == 1


def test_what_was_accepted_before_stays(bobs_organization, undo, database):
    database.run("UPDATE memberships SET created_at = created_at - interval '8 days'")
    undo()
    assert roles_of_alice(database) == {("acme", "owner"), ("theirs", "admin")}


def test_last_owner_stays(bob, client, bobs_organization, undo, database):
    database.run("DELETE FROM memberships WHERE user_id = %(id)s", id=bob.id)
    database.run("UPDATE memberships SET role = 'owner'")
    undo()
    assert roles_of_alice(database) == {("acme", "owner"), ("theirs", "owner")}
