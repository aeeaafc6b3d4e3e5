"""The headers of what is posted: as Standard Webhooks says, so that whoever gets it can tell that it is ours, and whether it is new."""

from collections.abc import Sequence
from datetime import UTC, datetime

from standardwebhooks import Webhook


def headers(id: str, body: str, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers for a JSON body, signed with each of the secrets: one that is good for the receiver is enough."""
    now = datetime.now(UTC)
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(id, now, body) for secret in secrets),
    }
