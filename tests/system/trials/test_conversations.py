"""The connection to Postgres is cut at messages of the conversation of each request with an effect."""

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from psycopg2.extensions import parse_dsn

from tests.delivery import test_events  # noqa: F401 registers the stories
from tests.support.effects import EFFECTS, Effect, Scenario
from tests.support.oauth import ALLOW_LIST, Service
from tests.support.processes import wait_until
from tests.support.tcp_proxy import TcpProxy, postgres_target

pytest_plugins = ["tests.support.oauth_fixtures"]

# Rows that even a failed request may change: counters, the flow of a callback, the challenge of a passkey, and
# the first key of ID tokens.
USED_UP = {"request_counts", "failure_counts", "oauth_flows", "factor_challenges", "openid_keys"}
LIMITS = ["SIGNUP", "LOGIN", "RECOVER", "INVITE", "INVITE_PER_ADDRESS", "VERIFY", "REFRESH", "LOGOUT"]
LIMITS += ["USER_CHANGES", "ADDRESS_CHANGES", "CLIENT_TOKENS", "CONSOLE"]


_AT_WORK = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'
"""


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
        self.messages: list[str] = []
        self._cut_at = 0

    def start_counting(self, cut_at: int = 0) -> None:
        """Count from now on, and cut at the message `cut_at`; 0 cuts nothing."""
        with self._count_lock:
            self.messages, self._cut_at = [], cut_at

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
                self.messages.append(direction + kind)
                if self._cut_at and len(self.messages) >= self._cut_at:
                    return
            sink.sendall(message)


@pytest.fixture(scope="module")
def conversation(database_url) -> Iterator[Conversation]:
    conversation = Conversation(database_url)
    yield conversation
    conversation.close()


@pytest.fixture
def stage(make_app, conversation, service_role, outbox, database, fakes) -> Callable[[], Scenario]:
    """Return a function that makes a scenario with empty tables. Limits are counted but never reached."""
    limits = {f"AUTH_RATE_LIMIT_{name}": "100000 per minute" for name in LIMITS}
    settings = {"DATABASE_URL": conversation.url, "AUTH_RATE_LIMITS_ENABLED": "true"}
    settings |= {"AUTH_API_KEYS": "true", "AUTH_SSO": "true", "AUTH_ORGANIZATIONS": "users"}
    app = make_app(**settings, **limits, **fakes.settings(), **ALLOW_LIST)
    fakes.google.person = {"sub": "alice-at-google", "email": "alice@example.com", "email_verified": True}

    def start() -> Scenario:
        database.empty()
        service = Service(app)
        return Scenario(service, service.client, service_role, outbox, database, fakes.google)

    return start


def rows_of(everything: dict[str, list[Any]]) -> Counter[tuple[str, str]]:
    for factor in everything["factors"]:
        # A request spends the code of a factor, even if it fails.
        factor |= dict.fromkeys(("last_step", "last_used_at"))
    return Counter(
        (table, json.dumps(row, sort_keys=True))
        for table, rows in everything.items()
        if table not in USED_UP
        for row in rows
    )


def effect(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> Counter[str]:
    """Return the number of added and removed rows of each table; a changed row counts as both."""
    old_rows, new_rows = rows_of(before), rows_of(after)
    added = Counter(f"+{table}" for table, _ in (new_rows - old_rows).elements())
    return added + Counter(f"-{table}" for table, _ in (old_rows - new_rows).elements())


@dataclass
class Outcome:
    """The status of a request, or 503 without the answer to an earlier one of its act, and what it changed."""

    status: int
    messages: int
    notifies: bool
    effect: Counter[str]


def attempt(
    stage: Callable[[], Scenario], story: Effect, conversation: Conversation, cut_at: int, *, connects: bool
) -> Outcome:
    """Play a story, and cut its conversation at a message."""
    scenario = stage()
    send = story.prepare(scenario)
    before = scenario.database.everything()
    if connects:
        # A connection that was cut is not used again.
        conversation.start_counting(cut_at=1)
        assert scenario.administer("GET", "/admin/users").status_code == 503
    conversation.start_counting(cut_at)
    status = 503
    with suppress(AssertionError, KeyError, TypeError):
        answer = send()
        status = getattr(answer, "status_code", None) or answer.status
    messages = conversation.messages
    conversation.start_counting()
    # Postgres goes on with a commit whose client is gone.
    wait_until(lambda: scenario.database.value(_AT_WORK) == 0)
    return Outcome(
        status, len(messages), ">NOTIFY" in messages, effect(before, scenario.database.everything())
    )


def assert_all_or_nothing(stage, story, conversation, cuts, *, connects=False):
    whole = attempt(stage, story, conversation, 0, connects=connects)
    # A request without an effect would prove nothing.
    assert whole.effect
    for cut_at in cuts(whole.messages):
        cut = attempt(stage, story, conversation, cut_at, connects=connects)
        description = f"cut at message {cut_at} of {whole.messages}: {cut}, whole {whole}"
        assert cut.status in (503, whole.status), description
        # The notification follows the commit.
        is_whole = cut.notifies or cut.status != 503
        assert cut.effect in ([whole.effect] if is_whole else [Counter(), whole.effect]), description


# A verdict on a code is committed before the act that it proves, and a provider is disabled before its deletion.
IN_SEVERAL_TRANSACTIONS = {
    "reauthenticating_with_a_code",
    "changing_the_password_with_a_code",
    "deleting_a_customers_provider",
    "deleting_the_own_provider",
}
STORIES = [story for story in EFFECTS if story.acts and str(story) not in IN_SEVERAL_TRANSACTIONS]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_connection_cut_at_any_message_leaves_all_or_nothing(stage, conversation, story):
    # Cut at every sixth message, from a different one for each story. The first cut is an early one: there are fewer
    # messages on a connection that has prepared the statements.
    first_cut = 1 + len(str(story)) % 4
    assert_all_or_nothing(stage, story, conversation, lambda messages: range(first_cut, messages + 1, 6))


def test_connection_cut_while_connecting_leaves_all_or_nothing(stage, conversation):
    (story, *_) = (story for story in STORIES if story.acts == ["user_changed"])
    assert_all_or_nothing(
        stage, story, conversation, lambda messages: range(1, messages + 1, 10), connects=True
    )
