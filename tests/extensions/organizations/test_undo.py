"""*This wasn't me* takes back what a thief accepted and sent in organizations, and keeps what was there before."""

import pytest

from tests.support.links import follow
from tests.support.users import MALLORY, NEW_EMAIL


@pytest.fixture
def hers(alice, bob, client, owner, acme):
    """Bob's organization, in which Alice is by invitation."""
    theirs = bob.open_session(client)
    path = f"/organizations/{theirs.post('/organizations', json={'name': 'Theirs', 'slug': 'theirs'}).json['id']}"
    invited = theirs.post(f"{path}/invitations", json={"email": alice.email, "role": "admin"}).json["id"]
    assert owner.post(f"/user/invitations/{invited}").status_code == 200
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


def roles(database):
    return {
        (row.slug, row.role)
        for row in database.all(
            "SELECT o.slug, m.role FROM memberships AS m JOIN organizations AS o ON o.id = m.organization_id"
            " JOIN users AS u ON u.id = m.user_id WHERE u.email = 'alice@example.com'"
        )
    }


def test_what_was_accepted_and_sent_lately_is_gone_and_the_founder_stays(owner, acme, hers, undo, database):
    invited = {"email": NEW_EMAIL, "role": "admin"}
    for path in (acme, hers):
        assert owner.post(f"{path}/invitations", json=invited | {"role": "member"}).status_code == 201
    undo()
    assert roles(database) == {("acme", "owner")}
    assert database.count("organization_invitations") == 0
    done = "SELECT details -> 'removed' AS removed FROM audit_log WHERE action = 'change_undone'"
    assert database.value(done) == ["membership theirs"]
    assert database.count("audit_log", "action = 'membership_removed'") == 1


def test_what_was_accepted_before_stays(hers, undo, database):
    database.run("UPDATE memberships SET created_at = created_at - interval '8 days'")
    undo()
    assert roles(database) == {("acme", "owner"), ("theirs", "admin")}


def test_last_owner_stays(bob, client, hers, undo, database):
    database.run("DELETE FROM memberships WHERE user_id = %(id)s", id=bob.id)
    database.run("UPDATE memberships SET role = 'owner'")
    undo()
    assert roles(database) == {("acme", "owner"), ("theirs", "owner")}
