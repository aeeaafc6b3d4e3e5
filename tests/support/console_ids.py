"""An object of each kind in the console, for conftest.py of its tests."""

import pytest

from tests.support.factors import set_up
from tests.support.openid import allow, insert_client


@pytest.fixture
def ids(alice, carol, hooks, database) -> dict[str, str]:
    """Ids for the variables of all routes."""
    session = alice.open_session()
    webhook = hooks.register("http://127.0.0.1:9/old")
    client_id = insert_client(database)
    allow(database, alice.id, client_id)
    failed = (
        "INSERT INTO outbox (id, user_id, channel, kind, recipient, outcome, finished_at, last_error, variables)"
        " VALUES (gen_random_uuid(), %(user_id)s, %(channel)s, %(kind)s, %(recipient)s, 'failed', now(), 'no',"
        ' \'{"event_id": "1", "timestamp": "2026-01-31T12:00:00Z", "data": {}}\')'
        " RETURNING id"
    )
    bulk = "INSERT INTO bulk_acts (user_id, act, targets, options) VALUES (%(by)s, 'end-sessions', %(of)s, '{}') RETURNING id"
    provider = (
        "INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret)"
        " VALUES (gen_random_uuid(), 'custom:acme', 'Acme', 'https://login.acme.example', 'latchkey', '') RETURNING id"
    )
    key = (
        "INSERT INTO admin_keys (id, name, key_mac, scopes)"
        " VALUES (gen_random_uuid(), 'billing', '', '{users:read}') RETURNING id"
    )
    organization = (
        "WITH made AS (INSERT INTO organizations (id, slug, name) VALUES (gen_random_uuid(), 'initech', 'Initech') RETURNING id)"
        " INSERT INTO memberships (user_id, organization_id, role, added_by)"
        " SELECT %(owner)s, id, 'owner', 'founder' FROM made RETURNING organization_id"
    )
    invitation = (
        "INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)"
        " SELECT gen_random_uuid(), id, 'invited@example.com', 'member', now() + interval '1 day' FROM organizations RETURNING id"
    )
    to_alice = {"user_id": alice.id, "channel": "email", "kind": "magiclink", "recipient": alice.email}
    event = {"user_id": alice.id, "channel": "webhook", "kind": "user.created", "recipient": webhook["id"]}
    return {
        "user_id": alice.id,
        "factor_id": set_up(session)[0].id,
        "session_id": alice.sign_in().id,
        "webhook_id": webhook["id"],
        "client_id": client_id,
        "bulk_id": database.value(bulk, by=carol.id, of=[alice.id]),
        "provider_id": database.value(provider),
        "admin_key_id": database.value(key),
        "organization_id": database.value(organization, owner=alice.id),
        "invitation_id": database.value(invitation),
        "message_id": database.value(failed, **to_alice),
        "delivery_id": database.value(failed, **event),
    }
