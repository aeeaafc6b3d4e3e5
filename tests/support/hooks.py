"""Webhooks of tests: real endpoints on loopback, and events written as statements do."""

import json
from datetime import datetime
from typing import Any

from standardwebhooks import Webhook

from auth.delivery import janitor
from tests.support.deliverers import deliver_due
from tests.support.http_target import HttpTarget, Posted

ALICE = {"id": "7c4e0a52-5c1f-4d3c-9d5e-2a1f0c9b8e77", "email": "alice@example.com"}
DAY = 86_400


class Hooks:
    """Registers webhooks, creates events and reads their outcomes."""

    def __init__(self, client: Any, service_role: dict[str, str], database: Any, parts: Any) -> None:
        self._client = client
        self._headers = service_role
        self._database = database
        self._parts = parts

    def ask(self, method: str, path: str = "", **body: Any) -> Any:
        """Send a request to /admin/webhooks with the service role key."""
        options = {"json": body} if body or method == "post" else {}
        return self._client.open(
            f"/admin/webhooks{path}", method=method.upper(), headers=self._headers, **options
        )

    def register(self, target: HttpTarget | str, **body: Any) -> dict[str, Any]:
        """Register a webhook and return it with its secret."""
        url = target if isinstance(target, str) else f"{target.url}/hooks"
        response = self.ask("post", url=url, **body)
        assert response.status_code == 200, response.text
        return response.json

    def show(self, webhook: dict[str, Any]) -> dict[str, Any]:
        return self.ask("get", f"/{webhook['id']}").json

    def change(self, webhook: dict[str, Any], **body: Any) -> Any:
        response = self.ask("put", f"/{webhook['id']}", **body)
        assert response.status_code == 200, response.text
        return response.json

    def deliveries(self, webhook: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the deliveries of a webhook, the newest first."""
        return self.ask("get", f"/{webhook['id']}/deliveries").json["data"]

    def emit(self, *events: str) -> None:
        """Write events about Alice."""
        statement = "SELECT record_acts_at(now(), '{\"actor\": \"service\"}', %(id)s::uuid, %(email)s, ARRAY[]::text[], %(events)s, '{}')"
        self._database.run(statement, events=list(events) or ["user.updated"], **ALICE)

    def deliver(self) -> int:
        """Send the due messages and return their number."""
        return deliver_due(self._parts)

    def run_janitor(self) -> None:
        """Run the hourly work of a delivery process."""
        janitor.keep_house(self._parts.settings, self._parts.db, self._parts.sealer)

    def end_pauses(self) -> None:
        """Make deferred events due and end the pauses of failing webhooks."""
        self._database.run("UPDATE outbox SET next_attempt_at = now() WHERE outcome IS NULL")
        self._database.run("UPDATE webhooks SET retry_at = now() WHERE retry_at IS NOT NULL")

    def let_time_pass(self, seconds: int) -> None:
        """Move all events and failures into the past."""
        for table, columns in (
            ("outbox", ["created_at", "next_attempt_at"]),
            ("webhooks", ["failing_since", "retry_at", "previous_secret_expires_at"]),
        ):
            changes = ", ".join(
                f"{column} = {column} - make_interval(secs => %(seconds)s)" for column in columns
            )
            self._database.run(f"UPDATE {table} SET {changes}", seconds=seconds)

    def pause(self, webhook: dict[str, Any], since: datetime | None = None) -> float:
        """Return the seconds from now, or from another moment, until the next attempt at a failing webhook."""
        return self._database.value(
            "SELECT extract(epoch FROM retry_at - coalesce(%(since)s, now()))::float FROM webhooks WHERE id = %(id)s",
            id=webhook["id"],
            since=since,
        )

    def acts(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Return action, actor and details of the audit log, the oldest first."""
        rows = self._database.all("SELECT action, actor, details FROM audit_log ORDER BY at, action")
        return [(row.action, row.actor, row.details) for row in rows]


def verified(posted: Posted, secret: str) -> Any:
    """Return the body as verified by the Standard Webhooks library. Raises `WebhookVerificationError`."""
    return Webhook(secret).verify(posted.body, posted.headers)


def events_at(target: HttpTarget) -> list[str]:
    return [json.loads(posted.body)["event"] for posted in target.requests]
