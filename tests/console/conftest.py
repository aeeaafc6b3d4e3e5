import pytest

from tests.support.factors import set_up
from tests.support.openid import allow, insert_client
from tests.support.pages import Visitor
from tests.support.users import PASSWORD


@pytest.fixture
def operator(app, carol) -> Visitor:
    """The browser of Carol, an administrator, who has just signed in, which is enough on this machine."""
    return Visitor(app).with_session_of(carol)


@pytest.fixture
def codes(app, carol):
    """The authenticator app of Carol, in whose browser `armed` is signed in with it."""
    return set_up(carol.open_session())[0]


@pytest.fixture
def armed(app, carol, codes):
    """The browser of Carol after both steps; codes of later steps remain for acts."""
    visitor = Visitor(app)
    visitor.visit("/sign-in?next=console")
    visitor.submit(email=carol.email, password=PASSWORD)
    visitor.press("second-step", code=codes.code())
    return visitor


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
        "message_id": database.value(failed, **to_alice),
        "delivery_id": database.value(failed, **event),
    }
