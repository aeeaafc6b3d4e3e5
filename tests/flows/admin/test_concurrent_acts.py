"""Acts of administrators decide about users as the acts before have left them."""

import pytest

from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.users import PASSWORD

SIGNED_UP = "dave@example.com"
PROVE = "UPDATE users SET email_proved = true, email_confirmed_at = now() WHERE id = %s"


@pytest.fixture
def dave_id(client, database):
    """The id of a sign-up that nobody has proved."""
    assert client.post("/signup", json={"email": SIGNED_UP, "password": PASSWORD}).status_code == 201
    return database.value("SELECT id::text FROM users WHERE email = %(email)s", email=SIGNED_UP)


@cases(("method", "path"), [("POST", "/admin/users"), ("PUT", "/admin/users/{alice}")])
def test_user_who_proves_an_address_meanwhile_keeps_it(
    client, service_role, alice, dave_id, database, method, path
):
    body = {"email": SIGNED_UP, "email_confirm": True}
    with database.locked("users", dave_id, PROVE) as lock:
        future = lock.start(
            lambda: client.open(path.format(alice=alice.id), method=method, json=body, headers=service_role)
        )
    assert_error(future.result(), 409, "email_exists")
    assert database.value("SELECT id::text FROM users WHERE email = %(email)s", email=SIGNED_UP) == dave_id
    assert database.value("SELECT email FROM users WHERE id = %(id)s", id=alice.id) == alice.email
