"""Rows of the audit log, written by the functions that statements use."""

import json
from typing import Any

from tests.support.tables import Rows

REQUEST_ID = "5631c782-5e87-49f5-b25f-0385bb245b58"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SOMEWHERE = {
    "actor": "anonymous",
    "ip": "198.51.100.7",
    "network": "198.51.100.7",
    "user_agent": FIREFOX,
    "request_id": REQUEST_ID,
}


def record(
    database: Rows, subject: str | None, *actions: str, origin: dict[str, Any] | None = None, **details: Any
) -> None:
    """Record what happened to a subject."""
    database.run(
        "SELECT record_acts_at(now(), %(origin)s, %(subject)s, NULL, %(acts)s, '{}', %(details)s)",
        origin=json.dumps(SOMEWHERE | (origin or {})), subject=subject, acts=list(actions), details=json.dumps(details),
    )  # fmt: skip


def refuse(
    database: Rows,
    subject: str | None,
    action: str,
    reason: str,
    origin: dict[str, Any] | None = None,
    **details: Any,
) -> None:
    """Record a refusal."""
    database.run(
        "SELECT record_refused(%(origin)s, %(subject)s, %(action)s, %(reason)s, %(details)s)",
        origin=json.dumps(SOMEWHERE | (origin or {})), subject=subject, action=action, reason=reason, details=json.dumps(details),
    )  # fmt: skip


def clear_history(database: Rows) -> None:
    """Delete the audit log, so that a test sees only later rows."""
    database.run("DELETE FROM audit_log")


def timeline_texts(response: Any) -> list[str]:
    """Return the sentences of a timeline, oldest first."""
    assert response.status_code == 200, response.text
    return [item["text"] for item in reversed(response.json["data"])]
