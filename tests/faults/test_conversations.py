"""The connection to Postgres is cut at the n-th message of each operation's conversation, for every n that it
has.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.faults.clients import ADMIN
from tests.faults.conversations import REQUESTS, WITHOUT, Stage
from tests.faults.ways import Conversation
from tests.support.contract import description
from tests.support.fake_provider import Apple, FakeProvider

pytestmark = pytest.mark.selection
# What a try uses up, whether or not it ends well: counts, and the flow that a callback belongs to.
USED_UP = {"request_counts", "failure_counts", "oauth_flows"}
LIMITS = (
    "SIGNUP",
    "LOGIN",
    "RECOVER",
    "INVITE",
    "INVITE_PER_ADDRESS",
    "VERIFY",
    "REFRESH",
    "LOGOUT",
    "USER_CHANGES",
    "ADDRESS_CHANGES",
)
SEEN: Counter[str] = Counter()


@pytest.fixture(scope="module")
def conversation(database_url) -> Iterator[Conversation]:
    made = Conversation(database_url)
    yield made
    made.end()


@pytest.fixture(scope="module")
def providers() -> Iterator[tuple[FakeProvider, Apple]]:
    with ExitStack() as stack:
        google, apple = stack.enter_context(FakeProvider("google")), stack.enter_context(Apple())
        for provider in (google, apple):
            provider.person = {"sub": "alice-there", "email": "alice@example.com", "email_verified": True}
        yield google, apple


@pytest.fixture(scope="module")
def served(serve, conversation, providers) -> Iterator[Any]:
    """One worker, whose requests one after the other all use one connection; limits count, and allow all."""
    limits = {f"AUTH_RATE_LIMIT_{name}": "100000 per minute" for name in LIMITS} | {
        "AUTH_RATE_LIMITS_ENABLED": "true"
    }
    settings = {name: value for provider in providers for name, value in provider.settings().items()}
    changes = {
        "DATABASE_URL": conversation.url,
        "AUTH_WORKERS": "1",
        "AUTH_DEV_INBOX": "true",
        "AUTH_PROVIDER_GOOGLE_LINK_BY_EMAIL": "true",
    }
    with serve(**changes, **limits, **settings) as (_, client):
        yield client


@pytest.fixture
def stage(served, database, outbox, providers) -> Stage:
    return Stage(served, database, outbox, *providers)


@pytest.fixture(scope="module", autouse=True)
def _line(note) -> Iterator[None]:
    yield
    cuts = SEEN.pop("cuts", 0)
    note(
        "the connection cut at each message",
        cuts,
        f"{len(REQUESTS)} requests; " + ", ".join(f"{many} {what}" for what, many in SEEN.items()),
    )


def rows_of(everything: dict[str, list[Any]]) -> Counter[tuple[str, str]]:
    return Counter(
        (table, json.dumps(row, sort_keys=True))
        for table, rows in everything.items()
        if table not in USED_UP
        for row in rows
    )


def effect(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> Counter[str]:
    """Return how many rows of each table have come and gone; one that has changed has done both."""
    old, new = rows_of(before), rows_of(after)
    come, gone = (
        Counter(table for table, _ in (new - old).elements()),
        Counter(table for table, _ in (old - new).elements()),
    )
    return Counter(
        {f"+{table}": many for table, many in come.items()}
        | {f"-{table}": many for table, many in gone.items()}
    )


def asked_for(
    stage: Stage, name: str, cut_at: int, conversation: Conversation, *, connects: bool
) -> tuple[Any, Counter[str]]:
    """Make one request, cut where it is told, and return its answer and its effect."""
    stage.rows.empty()
    ask = REQUESTS[name](stage)
    before = stage.rows.everything()
    if connects:
        # What is cut off is not used again.
        conversation.begin(cut_at=1)
        assert stage.client.get("/admin/users", headers=ADMIN).status_code == 503
    conversation.begin(cut_at)
    answer = ask()
    said = len(conversation.said)
    conversation.begin()
    answer.messages = said
    return answer, effect(before, stage.rows.everything())


def test_each_operation_is_asked_for():
    operations = {
        operation["operationId"]
        for path in description()["paths"].values()
        for operation in path.values()
        if "operationId" in operation
    }
    assert {name.partition(",")[0] for name in REQUESTS} | WITHOUT == operations


@pytest.mark.parametrize("name", REQUESTS)
def test_cut_at_each_message(stage, conversation, scale, name):
    whole, done = asked_for(stage, name, 0, conversation, connects=False)
    # What is refused would show nothing.
    assert whole.status_code < 400 or name == "get_dev_inbox_message", whole.get_data(as_text=True)
    assert "error=" not in whole.headers.get("Location", "")
    assert whole.messages > 0
    # The selection leaves some out: of each operation others.
    step = scale(1, 4)
    for cut_at in range(1 + len(name) % step, whole.messages + 1, step):
        answer, left = asked_for(stage, name, cut_at, conversation, connects=False)
        where = (
            f"{name}, cut at message {cut_at} of {whole.messages}: {answer.status_code} {left}, whole {done}"
        )
        SEEN.update(["cuts", str(answer.status_code), "done" if left and left == done else "not done"])
        assert left in (Counter(), done), where
        # What was not answered to the service is not answered to its client.
        assert answer.status_code == 503, where


def test_cut_at_each_message_of_connecting(stage, conversation, scale):
    name = "update_user, data"
    whole, done = asked_for(stage, name, 0, conversation, connects=True)
    assert whole.status_code == 200
    for cut_at in range(1, whole.messages + 1, scale(1, 10)):
        answer, left = asked_for(stage, name, cut_at, conversation, connects=True)
        SEEN.update(["cuts", str(answer.status_code), "done" if left and left == done else "not done"])
        assert left in (Counter(), done)
        assert answer.status_code == 503
