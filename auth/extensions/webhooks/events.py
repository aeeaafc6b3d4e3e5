"""Events, posted to webhooks."""

import contextlib
import json
from dataclasses import dataclass

import psycopg2
import structlog

from auth.core.constants import FIRST_PAUSE, HTTP_TIMEOUT, LONGEST_PAUSE, MOST_MAILS
from auth.core.net import webhook_urls
from auth.core.sender import RefusedByServer, RenderedMessage, Sender, TryLater, one_line
from auth.core.tokens.derived_keys import CannotOpen, Sealer
from auth.delivery.senders import http_post
from sql import Database, queries

log = structlog.get_logger()


def as_message(row: "queries.ClaimEvent") -> RenderedMessage:
    text = json.dumps(webhook_urls.body(row.kind, row.variables), ensure_ascii=False)
    return RenderedMessage(f"msg_{row.variables['event_id']}", row.kind, row.created_at, "", text)


@dataclass(eq=False, repr=False)
class EventSender(Sender):
    threads = 4
    compose = staticmethod(as_message)
    db: Database
    sealer: Sealer
    private_networks: bool
    timeout: float = HTTP_TIMEOUT

    def send(self, recipient: str, message: RenderedMessage) -> str:
        """Post an event to the webhook with this id and return its reply. Raises `psycopg2.Error` too."""
        endpoint = queries.select_endpoint(self.db, id=recipient)
        if endpoint is None:
            raise RefusedByServer("the webhook no longer exists")
        try:
            secrets = [self.sealer.open(bytes(endpoint.secret), recipient)]
        except CannotOpen as error:
            # This is not the webhook's failure, and another process may have the key.
            raise TryLater(f"its secret can't be opened: {error}", is_down=True) from None
        # The new secret must work even if the key of the previous one is lost.
        with contextlib.suppress(CannotOpen):
            if endpoint.previous_secret:
                secrets.append(self.sealer.open(bytes(endpoint.previous_secret), recipient))
        try:
            allows = webhook_urls.allowed_addresses(endpoint.url, self.private_networks)
            headers = http_post.signed_headers(message.id, message.text, secrets)
            body = message.text.encode()
            response = http_post.post(endpoint.url, body, headers, timeout=self.timeout, allows=allows)
        except TryLater as failure:
            self._record_failure(recipient, str(failure))
            # One webhook is down, not the channel, so `is_down` stays false.
            raise TryLater(str(failure)) from failure
        reply = one_line(f"{response.status_line} {response.body.decode(errors='replace')}")
        if response.is_success:
            # The webhook has received the event, so a failure to record this must not fail the attempt.
            with contextlib.suppress(psycopg2.Error):
                if endpoint.is_failing and queries.record_webhook_success(self.db, id=recipient):
                    log.warning("webhook_works_again", webhook_id=recipient)
            return reply
        # 410 Gone is permanent (RFC 9110, section 15.5.11).
        is_gone = response.status == 410
        self._record_failure(recipient, reply, is_gone=is_gone, retry_after=response.retry_after)
        raise RefusedByServer(reply) if is_gone else TryLater(reply)

    def _record_failure(
        self, webhook_id: str, reason: str, *, is_gone: bool = False, retry_after: float = 0.0
    ) -> None:
        limits = {"shortest": FIRST_PAUSE, "longest": LONGEST_PAUSE, "most_mails": MOST_MAILS}
        failed = queries.record_webhook_failure(
            self.db, id=webhook_id, is_gone=is_gone, retry_after=retry_after, **limits
        )
        if failed and failed.disabled_reason:
            log.warning("webhook_disabled", webhook_id=webhook_id, why=failed.disabled_reason, reason=reason)
        elif failed and failed.is_news:
            log.warning("webhook_fails", webhook_id=webhook_id, reason=reason)
