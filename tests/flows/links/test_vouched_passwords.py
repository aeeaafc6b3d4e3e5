"""Passwords of unconfirmed users that an operator or an import has set, and vouches for.

The code that POST /resend sends keeps them, and removes what a stranger set.
"""

import json

import pytest

from tests.support.answers import assert_error, assert_ok
from tests.support.commands import run_command
from tests.support.links import ON_ITS_WAY, hand_in, type_in
from tests.support.users import DAVE, MALLORYS_PASSWORD, NEW_EMAIL, PASSWORD, session_of, sign_in

LAX = {"AUTH_EMAIL_CONFIRM_REQUIRED": "false", "AUTH_PHONE_CONFIRM_REQUIRED": "false"}


@pytest.fixture
def admin(client, service_role):
    """Request as an operator, and return the user."""

    def request(method, path="", **body):
        answer = client.open(f"/admin/users{path}", method=method, json=body, headers=service_role)
        assert answer.status_code == 200
        return answer.json

    return request


def prove(client, outbox, address=DAVE):
    assert_ok(client.post("/resend", json={"type": "signup", "email": address}), ON_ITS_WAY)
    return session_of(client, type_in(client, "signup", address, outbox.last(address, "signup").code))


def test_code_confirms_a_user_whom_an_operator_made_and_keeps_the_password(client, admin, outbox):
    admin("POST", email=DAVE, password=PASSWORD)
    assert_error(sign_in(client, DAVE), 403, "email_not_confirmed")
    prove(client, outbox)
    assert sign_in(client, DAVE).status_code == 200


def test_code_confirms_an_imported_user_and_keeps_the_password(app, client, tmp_path, outbox, parts):
    record = {"email": DAVE, "email_verified": False, "password_hash": parts.passwords.hash(PASSWORD)}
    file = tmp_path / "users.json"
    file.write_text(json.dumps([record]))
    assert run_command(app, "users", "import", str(file)).exit_code == 0
    prove(client, outbox)
    assert sign_in(client, DAVE).status_code == 200


@pytest.mark.parametrize("moment", ["before", "after", "before and after"])
def test_sign_up_of_a_stranger_does_not_replace_the_operators_password(client, admin, outbox, moment):
    stranger = {"email": DAVE, "password": MALLORYS_PASSWORD}
    earlier_message = None
    if moment == "after":
        admin("POST", email=DAVE, password=PASSWORD)
    else:
        client.post("/signup", json=stranger)
        earlier_message = outbox.last(DAVE)
        admin("PUT", f"/{admin('GET')['data'][0]['id']}", password=PASSWORD)
    if moment != "before":
        client.post("/signup", json=stranger)
    if earlier_message:
        assert_error(hand_in(client, "signup", earlier_message.token), 403, "otp_expired")
    prove(client, outbox)
    assert sign_in(client, DAVE).status_code == 200
    assert_error(sign_in(client, DAVE, MALLORYS_PASSWORD), 401, "invalid_credentials")


@pytest.mark.parametrize("change", ["password", "address"])
def test_operator_vouches_no_more_once_a_user_changes_the_password_or_the_address_changes(
    make_app, client, admin, outbox, change
):
    """Another person may prove the address while the first person still knows the password."""
    user, address = admin("POST", email=DAVE, password=PASSWORD), DAVE
    if change == "password":
        lax = make_app(**LAX).test_client()
        mallory = session_of(lax, sign_in(lax, DAVE))
        response = mallory.put("/user", json={"password": MALLORYS_PASSWORD, "current_password": PASSWORD})
        assert response.status_code == 200
    else:
        address = NEW_EMAIL
        admin("PUT", f"/{user['id']}", email=NEW_EMAIL)
    prove(client, outbox, address)
    for password in (PASSWORD, MALLORYS_PASSWORD):
        assert_error(sign_in(client, address, password), 401, "invalid_credentials")


def test_password_of_a_link_is_kept_by_the_code_and_that_of_a_stranger_is_gone(client, service_role, outbox):
    client.post("/signup", json={"email": DAVE, "password": MALLORYS_PASSWORD})
    body = {"type": "signup", "email": DAVE, "password": PASSWORD}
    assert client.post("/admin/generate_link", json=body, headers=service_role).status_code == 200
    client.post("/signup", json={"email": DAVE, "password": MALLORYS_PASSWORD})
    prove(client, outbox)
    assert sign_in(client, DAVE).status_code == 200
    assert_error(sign_in(client, DAVE, MALLORYS_PASSWORD), 401, "invalid_credentials")
