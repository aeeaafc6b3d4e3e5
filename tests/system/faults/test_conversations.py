"""The connection to Postgres is cut at messages of each kind of conversation."""

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from psycopg2.extensions import parse_dsn

from tests.support.fake_provider import FakeProvider
from tests.support.processes import PATIENT_GUNICORN
from tests.support.tcp_proxy import TcpProxy, postgres_target
from tests.system.faults.clients import ADMIN
from tests.system.faults.conversations import REQUESTS, Stage

# Rows that even a failed request may change: counters, the flow of a callback, the challenge of a passkey, and
# the first key of ID tokens.
USED_UP = {"request_counts", "failure_counts", "oauth_flows", "factor_challenges", "openid_keys"}
LIMITS = ["SIGNUP", "LOGIN", "RECOVER", "INVITE", "INVITE_PER_ADDRESS", "VERIFY", "REFRESH", "LOGOUT"]
LIMITS += ["USER_CHANGES", "ADDRESS_CHANGES", "CLIENT_TOKENS", "CONSOLE"]


class Conversation(TcpProxy):
    """A proxy to Postgres that counts the messages of both sides, and closes the connection at the n-th."""

    def __init__(self, url: str) -> None:
        super().__init__(postgres_target(url))
        parts = parse_dsn(url)
        user = quote(parts["user"], safe="") + (
            f":{quote(parts['password'], safe='')}" if "password" in parts else ""
        )
        # Encrypted messages cannot be counted.
        self.url = (
            f"postgresql://{user}@127.0.0.1:{self.port}/{parts['dbname']}?sslmode=disable&gssencmode=disable"
        )
        self._count_lock = threading.Lock()
        self.said: list[str] = []
        self._cut_at = 0

    def begin(self, cut_at: int = 0) -> None:
        """Count from here, and cut at the message `cut_at`; 0 cuts nothing."""
        with self._count_lock:
            self.said, self._cut_at = [], cut_at

    def lanes(
        self, near: socket.socket, far: socket.socket
    ) -> list[tuple[socket.socket, socket.socket, Callable]]:
        """Return both directions; the first message of a client has no type."""
        return [
            (near, far, lambda source, sink: self._pass_on(source, sink, ">", first_is_typeless=True)),
            (far, near, lambda source, sink: self._pass_on(source, sink, "<", first_is_typeless=False)),
        ]

    def _pass_on(
        self, source: socket.socket, sink: socket.socket, direction: str, first_is_typeless: bool
    ) -> None:
        reader: Any = source.makefile("rb")
        is_typeless = first_is_typeless
        while True:
            type = b"" if is_typeless else reader.read(1)
            length = reader.read(4)
            if len(length) < 4:
                return
            message = type + length + reader.read(int.from_bytes(length, "big") - 4)
            is_typeless = False
            kind = "NOTIFY" if b"NOTIFY outbox" in message else type.decode() or "startup"
            with self._count_lock:
                self.said.append(direction + kind)
                if self._cut_at and len(self.said) >= self._cut_at:
                    return
            sink.sendall(message)


@pytest.fixture(scope="module")
def conversation(database_url) -> Iterator[Conversation]:
    made = Conversation(database_url)
    yield made
    made.close()


@pytest.fixture(scope="module")
def google() -> Iterator[FakeProvider]:
    with FakeProvider("google") as google:
        google.person = {"sub": "alice-there", "email": "alice@example.com", "email_verified": True}
        yield google


@pytest.fixture(scope="module")
def served(serve, conversation, google) -> Iterator[Any]:
    """One worker that uses one connection for consecutive requests; limits are counted but never reached."""
    limits = {f"AUTH_RATE_LIMIT_{name}": "100000 per minute" for name in LIMITS}
    limits["AUTH_RATE_LIMITS_ENABLED"] = "true"
    settings = google.settings() | {
        "DATABASE_URL": conversation.url,
        "AUTH_WORKERS": "1",
        "AUTH_ANONYMOUS_ENABLED": "true",
    }
    settings |= {"AUTH_DEV_INBOX": "true", "AUTH_PROVIDER_GOOGLE_LINK_BY_EMAIL": "true"}
    settings |= {"AUTH_API_KEYS": "true"}
    with serve(PATIENT_GUNICORN, **limits, **settings) as (_, client):
        yield client


@pytest.fixture
def stage(served, database, outbox, google) -> Stage:
    return Stage(served, database, outbox, google)


def rows_of(everything: dict[str, list[Any]]) -> Counter[tuple[str, str]]:
    for factor in everything["factors"]:
        # An act spends its code, even if it fails.
        factor |= dict.fromkeys(("last_step", "last_used_at"))
    return Counter(
        (table, json.dumps(row, sort_keys=True))
        for table, rows in everything.items()
        if table not in USED_UP
        for row in rows
    )


def effect(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> Counter[str]:
    """Return the number of added and removed rows of each table; a changed row counts as both."""
    old, new = rows_of(before), rows_of(after)
    added = Counter(f"+{table}" for table, _ in (new - old).elements())
    return added + Counter(f"-{table}" for table, _ in (old - new).elements())


def attempt(
    stage: Stage, name: str, cut_at: int, conversation: Conversation, *, connects: bool
) -> tuple[Any, Counter[str]]:
    """Send one request, cut its conversation at a message, and return the response and the effect."""
    stage.rows.empty()
    ask = REQUESTS[name](stage)
    before = stage.rows.everything()
    if connects:
        # A connection that was cut is not used again.
        conversation.begin(cut_at=1)
        assert stage.client.get("/admin/users", headers=ADMIN).status_code == 503
    conversation.begin(cut_at)
    answer = ask()
    said = conversation.said
    conversation.begin()
    answer.messages, answer.notifies = len(said), ">NOTIFY" in said
    return answer, effect(before, stage.rows.everything())


def assert_all_or_nothing(stage, conversation, name, cut_at, whole, done, *, connects=False):
    answer, left = attempt(stage, name, cut_at, conversation, connects=connects)
    where = f"{name}, cut at message {cut_at} of {whole.messages}: {left}, whole {done}"
    # The inbox of developers notes a message that a limit holds back at once.
    left, done = (
        Counter({key: each for key, each in found.items() if key != "+dev_inbox"}) for found in (left, done)
    )
    if answer.notifies:
        # Its act was committed before.
        assert (answer.status_code, left) == (whole.status_code, done), where
    else:
        # A request that got no answer from Postgres must be 503.
        assert (answer.status_code, left in (Counter(), done)) == (503, True), where


@pytest.mark.parametrize("name", REQUESTS)
def test_connection_cut_at_any_message_leaves_all_or_nothing(stage, conversation, name):
    whole, done = attempt(stage, name, 0, conversation, connects=False)
    # A refused request would prove nothing.
    assert whole.status_code < 400, whole.get_data(as_text=True)
    assert "error=" not in whole.headers.get("Location", "")
    assert whole.messages > 0
    # Not at each one, and at different ones of each. The first cut is an early one: on a connection that knows
    # the statements there are fewer messages.
    for cut_at in range(1 + len(name) % 4, whole.messages + 1, 4):
        assert_all_or_nothing(stage, conversation, name, cut_at, whole, done)


def test_connection_cut_while_connecting_leaves_all_or_nothing(stage, conversation):
    name = "update_user, data"
    whole, done = attempt(stage, name, 0, conversation, connects=True)
    assert whole.status_code == 200
    for cut_at in range(1, whole.messages + 1, 10):
        assert_all_or_nothing(stage, conversation, name, cut_at, whole, done, connects=True)
