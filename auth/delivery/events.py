"""Events, posted to the webhooks that want them."""

import contextlib
import json
from collections.abc import Callable
from typing import Any

import psycopg2
import structlog

from auth.delivery import http, signatures, webhooks
from auth.delivery.messages import Message
from auth.delivery.senders import Refused, Sender, TryLater, one_line
from auth.tokens.keys import CannotOpen, Sealer
from sql import Database

CHANNEL = "webhook"
# Seconds that a webhook which fails is left alone for, at first and at most.
SHORTEST_PAUSE = 5
LONGEST_PAUSE = 300
# Administrators who are told that a webhook was disabled.
MOST_MAILS = 10

log = structlog.get_logger()


def as_message(waiting: Any) -> Message:
    """Return what a row of the outbox says to a webhook: the body, under the event's id."""
    variables = waiting.variables
    body = {"event": waiting.kind, "timestamp": variables["timestamp"], "data": variables["data"]}
    return Message(f"msg_{variables['event_id']}", waiting.kind, waiting.created_at, "", json.dumps(body, ensure_ascii=False))


class EventSender(Sender):
    """Posts events, and keeps account of the webhooks that fail."""

    threads = 4
    are_slow_known = True

    def __init__(self, db: Database, sealer: Sealer, private_networks: bool, *, timeout: float = http.TIMEOUT) -> None:
        self._db = db
        self._sealer = sealer
        self._private_networks = private_networks
        self._timeout = timeout

    def claim(self, db: Database, _channel: str, /, **how: Any) -> Any:
        """Take the next event."""
        return db.one("claim_event", **how)

    def compose(self, waiting: Any, _render: Callable[[Any], Message], /) -> Message:
        """Return what an event says, which is for machines."""
        return as_message(waiting)

    def send(self, recipient: str, message: Message) -> str:
        """Post an event to the webhook of an id, and return what it answered. Raises `psycopg2.Error` too."""
        endpoint = self._db.one("select_endpoint", id=recipient)
        if endpoint is None:
            raise Refused("there is no such webhook any more")
        try:
            answer = self._post(endpoint, recipient, message)
        except TryLater as failure:
            self._note_failure(recipient, str(failure))
            raise
        told = one_line(f"{answer.status_line} {answer.body.decode(errors='replace')}")
        if answer.is_success:
            self._note_success(endpoint, recipient)
            return told
        # It says that it will never come back (RFC 9110, section 15.5.11).
        is_gone = answer.status == 410
        self._note_failure(recipient, told, is_gone=is_gone, asked=answer.seconds)
        raise Refused(told) if is_gone else TryLater(told)

    def _post(self, endpoint: Any, webhook_id: str, message: Message) -> http.Answer:
        sealed = [bytes(secret) for secret in (endpoint.secret, endpoint.previous_secret) if secret]
        try:
            secrets = [self._sealer.open(secret, webhook_id) for secret in sealed]
        except CannotOpen as error:
            raise TryLater(f"its secret can't be opened: {error}") from None
        allows = webhooks.allowed_addresses(endpoint.url, self._private_networks)
        headers = signatures.headers(message.id, message.text, secrets)
        try:
            return http.post(endpoint.url, message.text.encode(), headers, timeout=self._timeout, allows=allows)
        except TryLater as failure:
            # The log tells of each webhook by itself.
            raise TryLater(str(failure)) from failure

    def _note_success(self, endpoint: Any, webhook_id: str) -> None:
        # What was taken must not be sent again because this can't be noted; the next success will do.
        with contextlib.suppress(psycopg2.Error):
            if endpoint.is_failing and self._db.run("note_webhook_success", id=webhook_id):
                log.warning("webhook_works_again", webhook_id=webhook_id)

    def _note_failure(self, webhook_id: str, reason: str, *, is_gone: bool = False, asked: float | None = None) -> None:
        how = {"is_gone": is_gone, "asked": asked, "shortest": SHORTEST_PAUSE, "longest": LONGEST_PAUSE, "most_mails": MOST_MAILS}
        failed = self._db.one("note_webhook_failure", id=webhook_id, **how)
        if failed and failed.disabled_reason:
            log.warning("webhook_disabled", webhook_id=webhook_id, why=failed.disabled_reason, reason=reason)
        elif failed and failed.is_news:
            log.warning("webhook_fails", webhook_id=webhook_id, reason=reason)
