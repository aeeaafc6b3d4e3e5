"""Write messages to the outbox, and read their outcomes."""

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from auth.core.sender import RenderedMessage, Sender

# The secrets of most messages in tests.
TOKEN, CODE = "T" * 43, "123456"


class Outbox:
    """Writes messages as statements do, and reads their outcomes."""

    def __init__(self, database: Any, parts: Any) -> None:
        self._database = database
        self._parts = parts

    def write(
        self,
        kind: str = "magiclink",
        recipient: str = "alice@example.com",
        *,
        channel: str = "email",
        token: str | None = TOKEN,
        code: str | None = CODE,
        lifetime: int | None = 3600,
        one_time_token_id: str | None = None,
        **variables: Any,
    ) -> str:
        """Write a message and return its id."""
        id = str(uuid.uuid4())
        secret = self._parts.sealer.seal(
            json.dumps({name: value for name, value in {"token": token, "code": code}.items() if value}), id
        )
        self._database.run(
            "INSERT INTO outbox (id, channel, kind, recipient, variables, secret, one_time_token_id, expires_at) VALUES"
            " (%(id)s, %(channel)s, %(kind)s, %(recipient)s, %(variables)s, %(secret)s, %(token_id)s, now() + make_interval(secs => %(lifetime)s))",
            id=id, channel=channel, kind=kind, recipient=recipient, variables=json.dumps(variables), secret=secret,
            token_id=one_time_token_id, lifetime=lifetime,
        )  # fmt: skip
        return id

    def sms(self, kind: str = "sms", recipient: str = "+4915112345678", **options: Any) -> str:
        """Write an SMS and return its id."""
        return self.write(kind, recipient, **{"channel": "sms", "token": None, "lifetime": 600, **options})

    def row(self, id: str) -> Any:
        return self._database.one("SELECT * FROM outbox WHERE id = %(id)s", id=id)

    def outcome(self, id: str) -> str | None:
        return self.row(id).outcome

    def outcomes(self) -> dict[str, str | None]:
        return {row.id: row.outcome for row in self._database.all("SELECT id, outcome FROM outbox")}

    def let_time_pass(self, seconds: int) -> None:
        """Move waiting messages into the past: those due within `seconds` become due."""
        self._database.run(
            "UPDATE outbox SET created_at = created_at - by, next_attempt_at = next_attempt_at - by, expires_at = expires_at - by"
            "  FROM make_interval(secs => %(seconds)s) AS by WHERE outcome IS NULL",
            seconds=seconds,
        )

    def end_pauses(self) -> None:
        """Make deferred messages due."""
        self._database.run(
            "UPDATE outbox SET next_attempt_at = now() WHERE outcome IS NULL AND last_error IS NOT NULL"
        )

    def waits_for(self, id: str, since: datetime | None = None) -> float:
        """Return the seconds from now, or from another moment, until the next attempt."""
        return self._database.value(
            "SELECT extract(epoch FROM next_attempt_at - coalesce(%(since)s, now()))::float FROM outbox WHERE id = %(id)s",
            id=id,
            since=since,
        )


def message(kind: str = "magiclink", **members: Any) -> RenderedMessage:
    """Return a message for a sender."""
    defaults = {
        "subject": "Sign in",
        "text": f"Your code: {CODE}\n",
        "html": f"<p>Your code: {CODE}</p>",
        "code": CODE,
    }
    return RenderedMessage(
        str(uuid.uuid4()), kind, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), **(defaults | members)
    )


class Recorder(Sender):
    """A sender that keeps messages, or fails on request."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, RenderedMessage]] = []
        self.fails: BaseException | None = None
        self.meanwhile: Callable[[], object] | None = None

    def send(self, recipient: str, message: RenderedMessage) -> str:
        if self.meanwhile:
            self.meanwhile()
        if self.fails:
            raise self.fails
        self.sent.append((recipient, message))
        return "250 taken"

    @property
    def recipients(self) -> list[str]:
        return [recipient for recipient, _ in self.sent]
