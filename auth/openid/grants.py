"""What users allow applications: one grant for each user and client."""

from collections.abc import Sequence
from typing import Any

from auth.web import audit
from sql import Transaction


def add(tx: Transaction, user: Any, client: Any, scopes: Sequence[str]) -> None:
    """Allow a client these scopes, in place of those that it had. The user's row is locked.

    `client` is a row of `oauth_clients`.
    """
    tx.run("write_grant", user_id=user.id, client_id=client.id, scopes=list(scopes))
    details = {"client_id": client.id, "client": client.name, "scopes": " ".join(scopes)}
    audit.record(tx, user.id, user.email, ["grant_added"], [], **details)
