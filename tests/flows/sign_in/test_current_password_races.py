"""The current password is the caller's, also if another user gets the caller's address meanwhile."""

from collections.abc import Callable
from contextlib import contextmanager
from threading import Thread

import pytest

from auth.core.passwords.hashing import Passwords
from tests.support.answers import A_SENTENCE, assert_error
from tests.support.users import MALLORYS_PASSWORD, NEW_EMAIL, NEW_PASSWORD, PASSWORD

PROOF = {"current_password": MALLORYS_PASSWORD}


@pytest.fixture
def while_queued(monkeypatch):
    """Have a function run, in a thread, while the next request waits for its turn to hash."""
    queue, functions = Passwords.queue, list[Callable[[], None]]()

    @contextmanager
    def queue_after_functions(passwords):
        if functions:
            thread = Thread(target=functions.pop())
            thread.start()
            thread.join()
        with queue(passwords):
            yield

    monkeypatch.setattr(Passwords, "queue", queue_after_functions)
    return functions.append


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/reauthenticate", {}),
        ("POST", "/factors", {"factor_type": "totp", "friendly_name": "Mallory's"}),
        ("PUT", "/user", {"password": NEW_PASSWORD}),
        ("DELETE", "/user", {}),
    ],
)
def test_password_of_the_next_holder_of_the_address_proves_nothing(
    client, alice, database, outbox, while_queued, method, path, body
):
    session = alice.open_session(client)
    assert session.put("/user", json={"email": NEW_EMAIL}).status_code == 200
    link = outbox.last(NEW_EMAIL)
    database.run("UPDATE sessions SET created_at = now() - interval '25 hours', reauthenticated_at = NULL")

    def change_hands():
        proved = client.post("/verify", json={"type": "email_change", "token_hash": link.token})
        sign_up = {"email": alice.email, "password": MALLORYS_PASSWORD}
        assert (proved.status_code, client.post("/signup", json=sign_up).status_code) == (200, 201)

    while_queued(change_hands)
    response = session.open(path, method=method, json=body | PROOF)
    assert_error(response, 400, "current_password_invalid", details=A_SENTENCE)
    assert (database.count("factors"), alice.try_to_sign_in(PASSWORD, client).status_code) == (0, 401)
    body = {"email": NEW_EMAIL, "password": PASSWORD}
    assert client.post("/token?grant_type=password", json=body).status_code == 200
