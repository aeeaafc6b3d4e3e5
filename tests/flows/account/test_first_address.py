"""Who may add the first address of a user who has only a passkey or a provider.

Mallory has a session of Dora, who has no address to which a notice could go.
"""

import pytest

from tests.support.answers import A_SENTENCE, assert_error
from tests.support.links import PHONE, Outbox
from tests.support.passkeys import register
from tests.support.passkeys import sign_in as sign_in_by_passkey
from tests.support.users import MALLORY, sign_up_anonymously

pytest_plugins = ["tests.support.oauth_fixtures"]


def age(database, **intervals):
    interval = f"make_interval({', '.join(f'{name} => {number}' for name, number in intervals.items())})"
    for table, columns in {
        "users": ("created_at", "converted_at", "first_factor_at"),
        "identities": ("created_at", "updated_at"),
        "factors": ("created_at", "verified_at"),
        "sessions": ("created_at", "reauthenticated_at", "factor_proved_at"),
    }.items():
        assignments = ", ".join(f"{column} = {column} - {interval}" for column in columns)
        database.run(f"UPDATE {table} SET {assignments}")
    database.run(
        "UPDATE sessions SET amr = jsonb_set(amr, '{0,timestamp}', to_jsonb(((amr -> 0 ->> 'timestamp')"
        f"::bigint - extract(epoch FROM {interval})::bigint))) WHERE amr IS NOT NULL"
    )


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


@pytest.fixture(params=["passkey", "provider"])
def sign_in(request, service, database):
    """Signs Dora in, whose user is a month old."""
    if request.param == "passkey":
        authenticator, _row = register(sign_up_anonymously(service.client))
        age(database, days=30)
        return lambda: sign_in_by_passkey(service.client, authenticator)
    service.sign_in("acme")
    age(database, days=30)
    return lambda: service.session(service.sign_in("acme"))


@pytest.mark.parametrize("address", [{"email": MALLORY}, {"phone": PHONE}])
def test_first_address_needs_the_passkey_or_provider(sign_in, outbox, database, address):
    stolen = sign_in()
    age(database, mins=16)
    response = stolen.put("/user", json=address)
    assert_error(response, 400, "reauthentication_needed", details=A_SENTENCE)
    assert outbox.sent() == []
    assert sign_in().put("/user", json=address).status_code == 200


def test_first_addresses_that_wait_for_the_first_passkey_need_a_proof_then(service, database):
    """The passkey makes the anonymous user permanent while the requests wait for the user's row."""
    session = sign_up_anonymously(service.client)
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")

    def add_phone():
        return session.on(service.app.test_client()).put("/user", json={"phone": PHONE})

    statement = "UPDATE users SET converted_at = now() WHERE id = %s"
    with database.locked("users", session.user["id"], statement) as lock:
        futures = [lock.start(add_phone) for _ in range(5)]
    assert {future.result().json["error_code"] for future in futures} == {"reauthentication_needed"}
    assert database.value("SELECT new_phone FROM users") is None
