"""The present address, set again while another one is pending, withdraws the change and voids what was sent for it."""

from typing import Any

import pytest

from auth.delivery.deliverer import Deliverer
from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok
from tests.support.factors import set_up
from tests.support.links import OTHER_PHONE, PHONE, assert_dead, type_in
from tests.support.outbox import Recorder
from tests.support.users import NEW_EMAIL, NEW_PASSWORD, register, sign_up_anonymously

PRESENT = {"email": "alice@example.com", "phone": PHONE}
PENDING = {"email": NEW_EMAIL, "phone": OTHER_PHONE}
# Spellings of the present address, which count as the same.
SPELLINGS = [
    ("email", PRESENT["email"]),
    ("email", "Alice@EXAMPLE.com"),
    ("phone", PHONE),
    ("phone", "+49 (170) 123-4567"),
]
DOORS = ["user", "user of the dialect", "operator", "operator of the dialect"]


@pytest.fixture
def session(client, service_role, alice):
    """A session of Alice's, who has an email and a phone."""
    body = {"phone": PHONE, "phone_confirm": True}
    assert client.put(f"/admin/users/{alice.id}", json=body, headers=service_role).status_code == 200
    return alice.open_session()


@pytest.fixture
def ask(session):
    """Ask for another address of each kind, or of those that are named, one at a time."""

    def ask(*kinds):
        for kind in kinds or PENDING:
            response = session.put("/user", json={kind: PENDING[kind]})
            assert (response.status_code, response.json[f"new_{kind}"]) == (200, PENDING[kind])

    return ask


@pytest.fixture
def put(client, service_role, session, alice):
    """Set members of Alice's user by one of the doors."""

    def put(door, body):
        if "phone" in body and door.endswith("dialect"):
            body = body | {"phone": body["phone"].removeprefix("+")}
        prefix = "/auth/v1" if door.endswith("dialect") else ""
        if door.startswith("user"):
            return session.put(f"{prefix}/user", json=body)
        return client.put(f"{prefix}/admin/users/{alice.id}", json=body, headers=service_role)

    return put


@pytest.fixture
def deliver(parts):
    """Send what waits in the outbox, and return the recipients."""

    def deliver():
        sent = Recorder()
        Deliverer(parts.settings, parts.db, parts.sealer, {"email": sent, "sms": sent}).deliver_due()
        return sent.recipients

    return deliver


@pytest.fixture
def left(database, alice):
    """Alice's pending changes, and the purposes of her valid links and codes."""

    def left():
        columns = "new_email, email_change_sent_at, new_phone, phone_change_sent_at"
        pending = database.one(f"SELECT {columns} FROM users WHERE id = %(id)s", id=alice.id)
        live = "SELECT purpose FROM one_time_tokens WHERE spent_at IS NULL AND purpose <> 'undo' AND user_id = %(id)s ORDER BY purpose"
        return (*pending,), [row.purpose for row in database.all(live, id=alice.id)]

    return left


NOTHING: Any = ((None, None, None, None), [])


def assert_void(client, outbox, kind):
    """Assert that nothing that was sent for a pending change works, and that nothing more is sent."""
    address = PENDING[kind]
    sent = outbox.last(address, f"{kind}_change")
    assert_error(type_in(client, f"{kind}_change", address, sent.code), 403, "otp_expired")
    if kind == "email":
        assert_dead(client, "email_change", sent.token)
    before = outbox.kinds()
    assert client.post("/resend", json={"type": f"{kind}_change", kind: address}).status_code == 200
    assert outbox.kinds() == before


class TestDoors:
    @pytest.mark.parametrize("door", DOORS)
    @pytest.mark.parametrize("kind", PENDING)
    def test_present_address_withdraws_the_change_and_voids_its_link_and_code(
        self, client, session, alice, ask, put, outbox, left, kind, door
    ):
        other = alice.open_session()
        before = session.get("/user").json
        ask(kind)
        response = put(door, {kind: PRESENT[kind]})
        assert response.status_code == 200
        if not door.endswith("dialect"):
            assert_ok(response, before | {"updated_at": A_TIMESTAMP})
        assert response.json.get(f"new_{kind}") is None
        assert f"{kind}_change_sent_at" not in response.json or not response.json[f"{kind}_change_sent_at"]
        assert left() == NOTHING
        assert_void(client, outbox, kind)
        # Nothing else has changed: no user was signed out or notified.
        assert_ok(other.get("/user"), before | {"updated_at": A_TIMESTAMP})
        assert outbox.kinds() == [(f"{kind}_change", PENDING[kind])]

    @pytest.mark.parametrize("door", ["user", "operator"])
    @pytest.mark.parametrize(("kind", "spelling"), SPELLINGS)
    def test_addresses_are_compared_in_canonical_form(self, ask, put, left, kind, spelling, door):
        ask(kind)
        assert put(door, {kind: spelling}).json[f"new_{kind}"] is None
        assert left() == NOTHING

    @pytest.mark.parametrize("door", ["user", "operator"])
    @pytest.mark.parametrize("kind", PENDING)
    def test_message_that_waits_is_not_sent(self, ask, put, deliver, database, kind, door):
        ask()
        put(door, {kind: PRESENT[kind]})
        (other,) = PENDING.keys() - {kind}
        assert deliver() == [PENDING[other]]
        withdrawn = "SELECT outcome, secret FROM outbox WHERE kind = %(kind)s"
        assert database.one(withdrawn, kind=f"{kind}_change") == ("void", None)

    @pytest.mark.parametrize("door", ["user", "operator"])
    def test_both_changes_are_withdrawn_at_once_and_recorded(
        self, client, ask, put, outbox, left, database, door
    ):
        ask()
        response = put(door, PRESENT)
        assert (response.status_code, left()) == (200, NOTHING)
        for kind in PENDING:
            assert_void(client, outbox, kind)
        recorded = (
            "SELECT action, details, actor FROM audit_log WHERE action LIKE '%%_withdrawn' ORDER BY action"
        )
        details = {f"new_{kind}": address for kind, address in PENDING.items()}
        actor = "service_role" if door == "operator" else "user"
        assert database.all(recorded) == [
            ("email_change_withdrawn", details, actor),
            ("phone_change_withdrawn", details, actor),
        ]

    @pytest.mark.parametrize("door", ["user", "operator"])
    def test_present_address_without_a_pending_change_is_recorded_as_no_withdrawal(
        self, put, left, database, door
    ):
        assert put(door, PRESENT).status_code == 200
        assert left() == NOTHING
        assert database.count("audit_log", "action LIKE '%%_withdrawn'") == 0


class TestUser:
    @pytest.mark.parametrize("kind", PENDING)
    def test_change_of_the_other_address_begins_in_the_same_request(
        self, client, session, outbox, left, kind
    ):
        (other,) = PENDING.keys() - {kind}
        session.put("/user", json={kind: PENDING[kind]})
        response = session.put("/user", json={kind: PRESENT[kind], other: PENDING[other]})
        assert (response.json[f"new_{kind}"], response.json[f"new_{other}"]) == (None, PENDING[other])
        assert left()[1] == [f"{other}_change"]
        assert_void(client, outbox, kind)
        code = outbox.last(PENDING[other]).code
        assert type_in(client, f"{other}_change", PENDING[other], code).status_code == 200

    def test_links_of_changes_that_were_replaced_end_too(self, client, session, ask, outbox):
        ask("email")
        first = outbox.last(NEW_EMAIL)
        session.put("/user", json={"email": "second@example.com"})
        session.put("/user", json={"email": PRESENT["email"]})
        # A new request for the first address does not bring its old link back.
        ask("email")
        assert_dead(client, "email_change", first.token)

    def test_other_links_and_codes_go_on_working(self, client, session, ask, alice, outbox):
        client.post("/magiclink", json={"email": alice.email})
        ask()
        session.put("/user", json=PRESENT)
        code = outbox.last(alice.email, "magiclink").code
        assert type_in(client, "magiclink", alice.email, code).status_code == 200

    def test_change_of_another_user_to_the_same_address_stays(
        self, client, session, ask, bob, outbox, service_role
    ):
        ask("email")
        bob.open_session().put("/user", json={"email": NEW_EMAIL})
        session.put("/user", json={"email": PRESENT["email"]})
        code = outbox.last(NEW_EMAIL).code
        assert type_in(client, "email_change", NEW_EMAIL, code).json["user"]["id"] == bob.id

    def test_link_that_an_administrator_generated_ends_too(self, client, session, service_role, alice):
        body = {"type": "email_change", "email": alice.email, "new_email": NEW_EMAIL}
        link = client.post("/admin/generate_link", json=body, headers=service_role).json["hashed_token"]
        assert session.put("/user", json={"email": alice.email}).json["new_email"] is None
        assert_dead(client, "email_change", link)

    @pytest.mark.parametrize("kind", PENDING)
    def test_withdrawal_needs_no_proof_but_the_next_change_does(self, session, ask, left, database, kind):
        ask(kind)
        database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
        assert session.put("/user", json={kind: PRESENT[kind]}).status_code == 200
        assert left() == NOTHING
        response = session.put("/user", json={kind: PENDING[kind]})
        assert_error(response, 400, "reauthentication_needed", details=A_SENTENCE)

    def test_session_below_the_users_factor_withdraws_nothing(self, session, alice, left):
        _factor, raised = set_up(session)
        raised.put("/user", json={"email": NEW_EMAIL})
        session = alice.open_session()
        before = left()
        assert before[0][0] == NEW_EMAIL
        assert_error(session.put("/user", json={"email": alice.email}), 403, "insufficient_aal")
        assert left() == before
        assert raised.put("/user", json={"email": alice.email}).status_code == 200
        assert left() == NOTHING

    def test_refused_change_withdraws_nothing(self, session, ask, bob, left):
        ask()
        before = left()
        assert_error(session.put("/user", json={"phone": PHONE, "email": bob.email}), 409, "email_exists")
        assert left() == before

    @pytest.mark.parametrize(
        ("kind", "setting"),
        [("email", {"AUTH_EMAIL_ENABLED": "false"}), ("phone", {"AUTH_SMS_COUNTRIES": "+44"})],
    )
    def test_address_whose_kind_was_disabled_meanwhile_can_be_kept(
        self, make_app, session, ask, left, kind, setting
    ):
        ask(kind)
        now = session.on(make_app(**setting).test_client())
        assert now.put("/user", json={kind: PRESENT[kind]}).status_code == 200
        assert left() == NOTHING
        assert now.put("/user", json={kind: PENDING[kind]}).status_code == 400

    def test_request_of_an_anonymous_user_is_no_withdrawal(self, make_app, database):
        session = sign_up_anonymously(make_app(AUTH_ANONYMOUS_ENABLED="true").test_client())
        for _ in range(2):
            assert session.put("/user", json={"email": NEW_EMAIL}).json["new_email"] == NEW_EMAIL
        assert database.count("one_time_tokens", "purpose = 'email_change'") == 2

    def test_new_password_in_the_same_request_is_set(self, client, session, ask, alice, left, outbox):
        ask("email")
        body = {"email": alice.email, "password": NEW_PASSWORD}
        assert session.put("/user", json=body).json["new_email"] is None
        assert left() == NOTHING
        assert_void(client, outbox, "email")
        assert alice.try_to_sign_in(NEW_PASSWORD).status_code == 200


class TestOperator:
    def test_null_withdraws_the_first_phone_of_a_user_without_one(
        self, client, service_role, bob, database, outbox
    ):
        session = bob.open_session()
        session.put("/user", json={"phone": OTHER_PHONE})
        response = client.put(f"/admin/users/{bob.id}", json={"phone": None}, headers=service_role)
        assert (response.status_code, response.json["phone"], response.json["new_phone"]) == (200, None, None)
        assert_void(client, outbox, "phone")
        assert session.get("/user").status_code == 200

    def test_administrator_cannot_withdraw_the_change_of_another(
        self, client, service_role, app, database, outbox
    ):
        admins = [register(client, service_role, f"admin{number}@example.com", "admin") for number in (1, 2)]
        one, other = (admin.open_session() for admin in admins)
        database.run("UPDATE users SET new_email = 'new@example.com' WHERE id = %(id)s", id=admins[0].id)
        body = {"email": admins[0].email}
        assert_error(other.put(f"/admin/users/{admins[0].id}", json=body), 403, "insufficient_permissions")
        assert one.get("/user").json["new_email"] == NEW_EMAIL
