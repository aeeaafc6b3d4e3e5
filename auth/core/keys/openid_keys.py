"""The RSA keys of ID tokens. The database stores them encrypted, because any node may make the first one."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg2

from auth.core.logs import ThrottledLog
from auth.core.tokens import signing_keys
from auth.core.tokens.derived_keys import CannotOpen, Sealer
from auth.core.tokens.signing_keys import Key
from sql import Database, queries

# Seconds for which a process caches the keys. A new key is first used after this time.
KEPT = 20.0

_not_opened = ThrottledLog("openid_key_not_opened")


class OpenIdKeys:
    def __init__(self, db: Database, sealer: Sealer) -> None:
        self._db = db
        self._sealer = sealer
        self._rows: Any = None
        self._keys: Sequence[Key] = ()
        self._read_at: float | None = None

    def all(self) -> Sequence[Key]:
        """Return all keys that can be opened, oldest first. Raises `psycopg2.Error`."""
        # Another process may have made the first one.
        if not self._keys or self._read_at is None or time.monotonic() > self._read_at + KEPT:
            rows = queries.list_openid_keys(self._db)
            if rows != self._rows:
                self._keys = self._open_all(rows)
                # The key ring may read the key of the other nodes soon.
                self._rows = rows if len(self._keys) == len(rows) else None
            self._read_at = time.monotonic()
        return self._keys

    def published(self) -> Sequence[Key] | None:
        """Return all keys. If the database does not respond, return the cached ones, or None."""
        try:
            return self.all()
        except psycopg2.Error:
            return self._keys if self._read_at else None

    def make_first(self) -> Sequence[Key]:
        """Return all keys. Makes the first one if there is none. Raises the errors of `all`."""
        if keys := self.all():
            return keys
        with self._db.transaction() as tx:
            queries.lock_openid_keys(tx)
            # Keys that were sealed with a lost secret key are lost too.
            if not self._open_all(queries.list_openid_keys(tx)):
                # Only with the lock: each of the first requests would take a tenth of a second to make one.
                queries.insert_openid_key(tx, **new_row(self._sealer))
        return self.all()

    def _open_all(self, rows: Sequence["queries.ListOpenidKeys"]) -> list[Key]:
        jwks = []
        for row in rows:
            try:
                jwks.append(self._sealer.open_json(row.sealed, row.id) | {"active_from": row.active_from})
            except CannotOpen as error:
                _not_opened.count(key=row.id[:8], reason=str(error))
        return [key for jwk in jwks for key in signing_keys.parse_jwk_set(json.dumps({"keys": [jwk]}))]


def public_jwks(*keys: Key) -> list[Mapping[str, str]]:
    """Return the public JWKs. A shared secret has none."""
    return [key.public_jwk for key in keys if key.public_jwk]


def new_row(sealer: Sealer, active_from: float | None = None) -> dict[str, Any]:
    """Return the parameters of `insert_openid_key` for a new key, used at once without `active_from`."""
    jwk = signing_keys.new_jwk("RS256")
    sealed = sealer.seal_json(jwk, jwk["kid"])
    return {"id": jwk["kid"], "algorithm": "RS256", "sealed": sealed, "active_from": active_from}
