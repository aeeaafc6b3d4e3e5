"""Signed headers (Standard Webhooks), with which receivers verify the sender and detect replays."""

from collections.abc import Sequence
from datetime import UTC, datetime

from standardwebhooks import Webhook


def headers(id: str, body: str, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers of a JSON body, signed with every secret; the receiver needs one of them."""
    now = datetime.now(UTC)
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(id, now, body) for secret in secrets),
    }
