"""The development inbox: the newest messages, encrypted because their links sign users in."""

from typing import Any

from auth.core.sender import RenderedMessage
from auth.core.tokens.derived_keys import CannotOpen, Sealer
from sql import Database, queries

KEPT = 500


def keep(db: Database, sealer: Sealer, message: RenderedMessage) -> None:
    """Keep a message instead of its earlier attempts. Raises `psycopg2.Error`."""
    names = ("subject", "text", "html", "link", "code", "refused_target")
    content = {name: getattr(message, name) for name in names}
    sealed = sealer.seal_json(content, _bound_to(message.id))
    queries.keep_in_dev_inbox(db, id=message.id, sealed=sealed, keep=KEPT)


def messages(db: Database, sealer: Sealer, recipient: str | None = None) -> list[dict[str, Any]]:
    contents = []
    for row in queries.select_dev_inbox(db, recipient=recipient):
        if content := _open(sealer, row):
            message = row._asdict() | {"refused_target": None} | content
            del message["sealed"], message["html"]
            contents.append(message)
    return contents


def html_of(db: Database, sealer: Sealer, id: str) -> str | None:
    row = queries.select_dev_inbox_message(db, id=id)
    content = _open(sealer, row) if row else None
    return content["html"] if content else None


def _open(
    sealer: Sealer, row: "queries.SelectDevInbox | queries.SelectDevInboxMessage"
) -> dict[str, Any] | None:
    try:
        return sealer.open_json(row.sealed, _bound_to(row.id))
    except CannotOpen:
        return None  # the key of the message is no longer in AUTH_SECRET_KEY


def _bound_to(id: str) -> str:
    # Secrets in the outbox are bound to another text, so that they cannot be exchanged with these.
    return f"dev inbox {id}"
