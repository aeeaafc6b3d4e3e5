"""Encrypts stored secrets with the new key after a rotation, so that the old key can be removed."""

import contextlib
from collections.abc import Iterator
from typing import Any

from auth.tokens.keys import CannotOpen, Sealer
from sql import Database

_BATCH = 500
# Statements that list the rows sealed with another key than the newest, and that replace one. Their sealed
# columns are bound to the row's id.
_ROWS = {
    "list_sealed_messages": "reseal_message",
    "list_sealed_factors": "reseal_factor",
    "list_sealed_removed_factors": "reseal_removed_factor",
}


def reseal(db: Database, sealer: Sealer) -> None:
    """Encrypt stored secrets with the newest key. Raises `psycopg2.Error`."""
    _reseal_webhooks(db, sealer)
    for select, update in _ROWS.items():
        for row in _rows(db, sealer, select):
            sealed = bytes(row.sealed)
            # A secret that cannot be opened fails when it is used, with the reason.
            with contextlib.suppress(CannotOpen):
                renewed = sealer.seal(sealer.open(sealed, row.id), row.id)
                db.run(update, id=row.id, old=sealed, sealed=renewed)


def _rows(db: Database, sealer: Sealer, select: str) -> Iterator[Any]:
    after: str | None = None
    while rows := db.all(select, newest=sealer.newest, after=after, batch=_BATCH):
        yield from rows
        after = rows[-1].id


def _reseal_webhooks(db: Database, sealer: Sealer) -> None:
    for webhook in db.all("select_webhook_secrets"):
        id = webhook.id
        sealed = [bytes(secret) for secret in (webhook.secret, webhook.previous_secret) if secret]
        if all(map(sealer.is_newest, sealed)):
            continue
        with contextlib.suppress(CannotOpen):
            newest, *others = [sealer.seal(sealer.open(secret, id), id) for secret in sealed]
            previous = others[0] if others else None
            db.run("reseal_webhook", id=id, old_secret=sealed[0], secret=newest, previous_secret=previous)
