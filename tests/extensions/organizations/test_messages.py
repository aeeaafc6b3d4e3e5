"""What organizations send: invitations to an address, and notices to members and owners."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from auth.delivery.rendering import load_templates
from tests.support.factors import set_up
from tests.support.links import Outbox


@pytest.fixture
def read(client, database):
    """Return the last message to an address, as it is sent."""
    parts = client.application.extensions["latchkey"]
    templates = load_templates(parts.settings)

    def read(address, kind):
        message = Outbox(parts, database).last(address, kind)
        row = {"id": "5", "channel": message.channel, "kind": kind, "recipient": address}
        moments = {"created_at": datetime.now(UTC), "expires_at": None}
        return templates.render(SimpleNamespace(**row, **moments, variables=message.variables), {})

    return read


def test_invitation_leads_to_the_page_of_the_organization_and_has_no_secret(acme, owner, read, database):
    owner.post(f"{acme}/invitations", json={"email": "new@example.com", "role": "member"})
    mail = read("new@example.com", "organization_invitation")
    assert "Invitation to Acme" in mail.subject
    assert "alice@example.com has invited you to join Acme" in mail.text
    assert "http://localhost:8000/organizations/acme/join" in mail.text
    assert database.all("SELECT FROM one_time_tokens") == []


def test_invitation_by_the_service_role_key_names_nobody(acme, client, read, service_role):
    body = {"email": "new@example.com", "role": "member"}
    assert client.post(f"{acme}/invitations", json=body, headers=service_role).status_code == 201
    assert "You’ve been invited to join Acme" in read("new@example.com", "organization_invitation").text


def test_name_that_looks_like_a_link_is_not_sent(owner, read):
    owner.post("/organizations", json={"name": "evil.example", "slug": "evil"})
    owner.post("/organizations/evil/invitations", json={"email": "new@example.com", "role": "member"})
    mail = read("new@example.com", "organization_invitation")
    for text in (mail.subject, mail.text, mail.html):
        assert "evil.example" not in text


def test_member_is_told_of_a_removal_but_not_of_leaving(acme, owner, join, bob, mallory, read, database):
    join(bob, acme)
    owner.delete(f"{acme}/members/{bob.id}")
    assert "You were removed from Acme" in read(bob.email, "membership_removed").text
    session = join(mallory, acme)
    assert session.delete(f"{acme}/members/{mallory.id}").status_code == 204
    assert database.count("outbox", "kind = 'membership_removed'") == 1


def test_owners_are_told_of_a_new_owner_by_invitation(acme, join, bob, mallory, read, database):
    join(mallory, acme, "admin")
    assert database.count("outbox", "kind = 'organization_owner_added'") == 0
    join(bob, acme, "owner")
    assert "Acme has a new owner" in read("alice@example.com", "organization_owner_added").subject
    assert database.count("outbox", "kind = 'organization_owner_added'") == 1


def test_other_owners_are_told_of_a_new_owner_and_of_a_requirement(acme, owner, join, bob, mallory, read):
    join(bob, acme)
    join(mallory, acme)
    for person in (bob, mallory):
        assert owner.put(f"{acme}/members/{person.id}", json={"role": "owner"}).status_code == 200
    letter = read(bob.email, "organization_owner_added")
    assert "Acme has a new owner" in letter.subject
    assert "http://localhost:8000/account/organizations/acme" in letter.text
    _, session = set_up(owner)
    assert session.put(acme, json={"requires": {"aal": "aal2"}}).status_code == 200
    for person in (bob, mallory):
        assert "now requires two-step verification" in read(person.email, "organization_requirement").text
