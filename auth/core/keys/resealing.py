"""Encrypts stored secrets with the new key after a rotation, so that the old key can be removed."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from auth.core.tokens.derived_keys import CannotOpen, Sealer
from sql import Database, queries

_BATCH = 500
# Queries that list the values sealed with another key than the newest, and that replace one. Their sealed
# columns are bound to the row's id.
_ROWS: dict[Callable[..., Sequence["_Sealed"]], Callable[..., int]] = {
    queries.list_sealed_webhooks: queries.reseal_webhook,
    queries.list_sealed_providers: queries.reseal_provider,
    queries.list_sealed_messages: queries.reseal_message,
    queries.list_sealed_factors: queries.reseal_factor,
    queries.list_sealed_removed_factors: queries.reseal_removed_factor,
    queries.list_sealed_openid_keys: queries.reseal_openid_key,
}
# The remedy if a secret of `list_sealed_secrets` cannot be opened.
_REMEDIES = {
    "webhook": "Give the webhook a new secret in the console, or delete it.",
    "provider": "Run: latchkey providers change {} --secret-file FILE",
    "OpenID key": "Run latchkey keys rotate openid --now and, a minute later: latchkey keys remove {}"
    " --force",
}


class _Sealed(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def sealed(self) -> memoryview: ...


def unopened(
    rows: Sequence["queries.ListSealedSecrets"], secret_key: Sequence[str]
) -> tuple[str, str] | None:
    """Return the problem of the first row that these keys do not open, and the remedy."""
    sealer = Sealer(secret_key)
    for row in rows:
        try:
            sealer.open(bytes(row.secret), row.id)
        except CannotOpen as error:
            problem = f"The secret of {row.kind} {row.id} cannot be opened: {error}"
            return problem, _REMEDIES[row.kind].format(row.id)
    return None


def reseal(db: Database, sealer: Sealer) -> None:
    """Encrypt stored secrets with the newest key. Raises `psycopg2.Error`."""
    for select, update in _ROWS.items():
        for row in _rows(db, sealer, select):
            sealed = bytes(row.sealed)
            # A secret that cannot be opened fails with the reason when it is used.
            with contextlib.suppress(CannotOpen):
                renewed = sealer.seal(sealer.open(sealed, row.id), row.id)
                update(db, id=row.id, old=sealed, sealed=renewed)


def _rows(db: Database, sealer: Sealer, select: Callable[..., Sequence[_Sealed]]) -> Iterator[_Sealed]:
    after: str | None = None
    while rows := select(db, newest=sealer.newest, after=after, batch=_BATCH):
        yield from rows
        after = rows[-1].id
