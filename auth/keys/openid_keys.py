"""The RSA keys of ID tokens. They are in the database, encrypted, because any node may make the first one."""

import json
import time
from collections.abc import Sequence
from typing import Any

from auth.tokens import signing_keys
from auth.tokens.keys import Sealer
from auth.tokens.signing_keys import Key
from sql import Database

# Seconds for which a process keeps the keys that it has read. A new key is used later than that.
_KEPT = 20.0


class OpenIdKeys:
    def __init__(self, db: Database, sealer: Sealer) -> None:
        self._db = db
        self._sealer = sealer
        self._rows: Any = None
        self._keys: Sequence[Key] = ()
        self._read_at = 0.0

    def all(self) -> Sequence[Key]:
        """Return all keys, oldest first. Raises `psycopg2.Error` and `CannotOpen`."""
        if not self._keys or time.monotonic() > self._read_at + _KEPT:
            rows = self._db.all("list_openid_keys")
            if rows != self._rows:
                self._keys = [self._open(row) for row in rows]
                self._rows = rows
            self._read_at = time.monotonic()
        return self._keys

    def make_first(self) -> Sequence[Key]:
        """Return all keys, of which the first is made now if there is none. Raises the errors of `all`."""
        if not self.all():
            jwk = signing_keys.new_jwk("RS256")
            sealed = self._sealer.seal(json.dumps(jwk), jwk["kid"])
            self._db.run("insert_first_openid_key", id=jwk["kid"], algorithm="RS256", sealed=sealed)
        return self.all()

    def _open(self, row: Any) -> Key:
        jwk = self._sealer.open_json(row.sealed, row.id)
        (key,) = signing_keys.parse_jwk_set(json.dumps({"keys": [jwk | {"active_from": row.active_from}]}))
        return key
