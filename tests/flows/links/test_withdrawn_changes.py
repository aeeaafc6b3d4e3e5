"""The present address, set again while another one is pending, withdraws the change and voids what was sent for it."""

from typing import Any

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok
from tests.support.factors import set_up
from tests.support.links import OTHER_PHONE, PHONE, assert_dead, type_in
from tests.support.users import NEW_EMAIL

PRESENT = {"email": "alice@example.com", "phone": PHONE}
PENDING = {"email": NEW_EMAIL, "phone": OTHER_PHONE}
# Other spellings of the present addresses, which count as the same.
OTHER_SPELLINGS = {"email": "Alice@EXAMPLE.com", "phone": "+49 (170) 123-4567"}


@pytest.fixture
def session(client, service_role, alice):
    """A session of Alice's, who has an email and a phone."""
    body = {"phone": PHONE, "phone_confirm": True}
    assert client.put(f"/admin/users/{alice.id}", json=body, headers=service_role).status_code == 200
    return alice.open_session()


@pytest.fixture
def ask(session):
    """Ask for another address of each kind, or of the kinds that are named, one at a time."""

    def ask(*kinds):
        for kind in kinds or PENDING:
            response = session.put("/user", json={kind: PENDING[kind]})
            assert (response.status_code, response.json[f"new_{kind}"]) == (200, PENDING[kind])

    return ask


@pytest.fixture(params=["user", "operator"])
def door(request):
    return request.param


@pytest.fixture
def put(client, service_role, session, alice, door):
    """Set members of Alice's user by one of the doors."""

    def put(body):
        if door == "user":
            return session.put("/user", json=body)
        return client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)

    return put


@pytest.fixture
def pending_changes(database, alice):
    """Return a function that returns Alice's pending changes, and the purposes of her valid links and codes."""

    def pending_changes():
        columns = "new_email, email_change_sent_at, new_phone, phone_change_sent_at"
        columns_of_user = database.one(f"SELECT {columns} FROM users WHERE id = %(id)s", id=alice.id)
        statement = "SELECT purpose FROM one_time_tokens WHERE spent_at IS NULL AND purpose <> 'undo' AND user_id = %(id)s ORDER BY purpose"
        return (*columns_of_user,), [row.purpose for row in database.all(statement, id=alice.id)]

    return pending_changes


NOTHING: Any = ((None, None, None, None), [])


def assert_void(client, outbox, kind):
    """Assert that nothing that was sent for a pending change works, and that nothing more is sent."""
    address = PENDING[kind]
    message = outbox.last(address, f"{kind}_change")
    assert_error(type_in(client, f"{kind}_change", address, message.code), 403, "otp_expired")
    if kind == "email":
        assert_dead(client, "email_change", message.token)
    before = outbox.kinds()
    assert client.post("/resend", json={"type": f"{kind}_change", kind: address}).status_code == 200
    assert outbox.kinds() == before


class TestDoors:
    @pytest.mark.parametrize(
        "addresses", [PRESENT, OTHER_SPELLINGS], ids=["same spelling", "another spelling"]
    )
    @pytest.mark.parametrize("kind", PENDING)
    def test_present_address_withdraws_the_change_and_voids_its_link_and_code(
        self, client, session, alice, ask, put, outbox, pending_changes, kind, addresses
    ):
        other = alice.open_session()
        before = session.get("/user").json
        ask(kind)
        assert_ok(put({kind: addresses[kind]}), before | {"updated_at": A_TIMESTAMP})
        assert pending_changes() == NOTHING
        assert_void(client, outbox, kind)
        # Nothing else has changed: no user was signed out or notified.
        assert_ok(other.get("/user"), before | {"updated_at": A_TIMESTAMP})
        assert outbox.kinds() == [(f"{kind}_change", PENDING[kind])]

    def test_both_changes_are_withdrawn_at_once_and_recorded(self, ask, put, pending_changes, database, door):
        ask()
        assert (put(PRESENT).status_code, pending_changes()) == (200, NOTHING)
        statement = (
            "SELECT action, details, actor FROM audit_log WHERE action LIKE '%%_withdrawn' ORDER BY action"
        )
        details = {f"new_{kind}": address for kind, address in PENDING.items()}
        actor = "service_role" if door == "operator" else "user"
        assert database.all(statement) == [
            ("email_change_withdrawn", details, actor),
            ("phone_change_withdrawn", details, actor),
        ]


class TestUser:
    def test_other_links_and_codes_go_on_working(self, client, session, ask, alice, bob, outbox):
        client.post("/magiclink", json={"email": alice.email})
        ask()
        bob.open_session().put("/user", json={"email": NEW_EMAIL})
        session.put("/user", json=PRESENT)
        code = outbox.last(alice.email, "magiclink").code
        assert type_in(client, "magiclink", alice.email, code).status_code == 200
        code = outbox.last(NEW_EMAIL).code
        assert type_in(client, "email_change", NEW_EMAIL, code).json["user"]["id"] == bob.id

    @pytest.mark.parametrize("kind", PENDING)
    def test_withdrawal_needs_no_proof_but_the_next_change_does(
        self, session, ask, pending_changes, database, kind
    ):
        ask(kind)
        database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
        assert session.put("/user", json={kind: PRESENT[kind]}).status_code == 200
        assert pending_changes() == NOTHING
        response = session.put("/user", json={kind: PENDING[kind]})
        assert_error(response, 400, "reauthentication_needed", details=A_SENTENCE)

    def test_session_below_the_users_factor_withdraws_nothing(self, session, alice, pending_changes):
        _factor, raised = set_up(session)
        raised.put("/user", json={"email": NEW_EMAIL})
        session = alice.open_session()
        before = pending_changes()
        assert before[0][0] == NEW_EMAIL
        assert_error(session.put("/user", json={"email": alice.email}), 403, "insufficient_aal")
        assert pending_changes() == before
        assert raised.put("/user", json={"email": alice.email}).status_code == 200
        assert pending_changes() == NOTHING

    def test_refused_change_withdraws_nothing(self, session, ask, bob, pending_changes):
        ask()
        before = pending_changes()
        assert_error(session.put("/user", json={"phone": PHONE, "email": bob.email}), 409, "email_exists")
        assert pending_changes() == before


def test_null_withdraws_the_first_phone_of_a_user_without_one(client, service_role, bob, database, outbox):
    session = bob.open_session()
    session.put("/user", json={"phone": OTHER_PHONE})
    response = client.put(f"/admin/users/{bob.id}", json={"phone": None}, headers=service_role)
    assert (response.status_code, response.json["phone"], response.json["new_phone"]) == (200, None, None)
    assert_void(client, outbox, "phone")
    assert session.get("/user").status_code == 200
