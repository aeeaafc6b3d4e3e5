"""The first address of a user who has only a passkey or a provider: who may add it.

Mallory has a session of Dora, who has no address to which a notice could go.
"""

import pytest

from tests.support.answers import A_SENTENCE, assert_error
from tests.support.links import PHONE, Outbox, type_in
from tests.support.passkeys import assertion, register
from tests.support.passkeys import sign_in as sign_in_by_passkey
from tests.support.users import MALLORY, Session, session_of, sign_up_anonymously

pytest_plugins = ["tests.support.oauth_fixtures"]


class Dora:
    def __init__(self, service, database):
        self.service, self.client, self.database = service, service.client, database

    def age(self, **intervals):
        interval = f"make_interval({', '.join(f'{name} => {number}' for name, number in intervals.items())})"
        for table, columns in {
            "users": ("created_at", "converted_at", "first_factor_at"),
            "identities": ("created_at", "updated_at"),
            "factors": ("created_at", "verified_at"),
            "sessions": ("created_at", "reauthenticated_at", "factor_proved_at"),
        }.items():
            moved = ", ".join(f"{column} = {column} - {interval}" for column in columns)
            self.database.run(f"UPDATE {table} SET {moved}")
        self.database.run(
            "UPDATE sessions SET amr = jsonb_set(amr, '{0,timestamp}', to_jsonb(((amr -> 0 ->> 'timestamp')"
            f"::bigint - extract(epoch FROM {interval})::bigint))) WHERE amr IS NOT NULL"
        )

    def addresses(self):
        return tuple(self.database.one("SELECT email, phone FROM users"))

    def add_address(self, session, outbox, address=MALLORY):
        kind = "email" if "@" in address else "phone"
        assert session.put("/user", json={kind: address}).status_code == 200
        code = outbox.last(address, f"{kind}_change").code
        return type_in(self.client, f"{kind}_change", address, code)


class WithPasskey(Dora):
    def __init__(self, service, database):
        super().__init__(service, database)
        session = sign_up_anonymously(self.client)
        self.authenticator, _row = register(session)
        self.age(days=30)

    def sign_in(self):
        return sign_in_by_passkey(self.client, self.authenticator)

    def prove(self, session):
        return session.post("/reauthenticate", json=assertion(self.client, self.authenticator))


class WithProvider(Dora):
    def __init__(self, service, database):
        super().__init__(service, database)
        service.sign_in("acme")
        self.age(days=30)

    def sign_in(self):
        session = self.service.session(self.service.sign_in("acme"))
        user = session.get("/user").json
        return Session(self.client, session.access_token, session.refresh_token, user)


@pytest.fixture(autouse=True)
def person(acme):
    acme.person = {"sub": "dora", "name": "Dora"}


@pytest.fixture
def service(make_service, app):
    """The service with all providers, whose users may be anonymous."""
    return make_service(AUTH_ANONYMOUS_ENABLED="true")


@pytest.fixture
def outbox(service, database):
    return Outbox(service.parts, database)


@pytest.fixture(params=[WithPasskey, WithProvider])
def dora(request, service, database):
    return request.param(service, database)


@pytest.mark.parametrize("address", [{"email": MALLORY}, {"phone": PHONE}])
def test_first_address_needs_the_passkey_or_provider(dora, outbox, address):
    stolen = dora.sign_in()
    dora.age(mins=16)
    refused = stolen.put("/user", json=address)
    assert_error(refused, 400, "reauthentication_needed", details=A_SENTENCE)
    assert outbox.sent() == []
    assert dora.sign_in().put("/user", json=address).status_code == 200


def test_passkey_proves_a_session_for_the_first_address(service, database, outbox):
    dora = WithPasskey(service, database)
    session = dora.sign_in()
    dora.age(mins=16)
    proved = session_of(dora.client, dora.prove(session))
    assert proved.id == session.id
    dora.add_address(proved, outbox)
    assert dora.addresses() == (MALLORY, None)


def test_first_addresses_that_wait_for_the_first_passkey_need_a_proof_then(service, database):
    """The passkey makes the anonymous user permanent while the requests wait for the user's row."""
    session = sign_up_anonymously(service.client)
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")

    def add_phone():
        return session.on(service.app.test_client()).put("/user", json={"phone": PHONE})

    converting = "UPDATE users SET converted_at = now() WHERE id = %s"
    with database.locked("users", session.user["id"], converting) as lock:
        asked = [lock.start(add_phone) for _ in range(5)]
    assert {future.result().json["error_code"] for future in asked} == {"reauthentication_needed"}
    assert database.value("SELECT new_phone FROM users") is None
