"""The development inbox: the last messages as they were sent, kept while `AUTH_DEV_INBOX` is on.

They hold links that sign in, so they are kept sealed: a copy of the database opens none of them.
"""

from typing import Any

from auth.delivery.messages import Message
from auth.tokens.keys import CannotOpen, Sealer
from auth.tokens.sealed import open_json, seal_json
from sql import Database

KEPT = 500


def keep(db: Database, sealer: Sealer, message: Message) -> None:
    """Keep a message as it is about to be sent, in place of an earlier try. Raises `psycopg2.Error`."""
    content = {"subject": message.subject, "text": message.text, "html": message.html, "link": message.link, "code": message.code}
    db.run("keep_in_dev_inbox", id=message.id, sealed=seal_json(sealer, content, _bound_to(message.id)), keep=KEPT)


def messages(db: Database, sealer: Sealer, recipient: str | None = None) -> list[dict[str, Any]]:
    """Return the messages that were kept, the newest first."""
    found = []
    for row in db.all("select_dev_inbox", recipient=recipient):
        try:
            content = open_json(sealer, row.sealed, _bound_to(row.id))
        except CannotOpen:
            continue  # sealed with a key that is no longer among AUTH_SECRET_KEY
        known = {"id": row.id, "channel": row.channel, "kind": row.kind, "recipient": row.recipient}
        del content["html"]
        fate = {"created_at": row.created_at, "outcome": row.outcome, "last_error": row.last_error, "response": row.response}
        found.append(known | content | fate)
    return found


def html_of(db: Database, sealer: Sealer, id: str) -> str | None:
    """Return a message's HTML, or None for a message that is not there or has none."""
    row = db.one("select_dev_inbox_message", id=id)
    try:
        return open_json(sealer, row.sealed, _bound_to(row.id))["html"] if row else None
    except CannotOpen:
        return None


def _bound_to(id: str) -> str:
    # Not the same as a secret of the outbox is bound to: neither may be put in the other's place.
    return f"dev inbox {id}"
