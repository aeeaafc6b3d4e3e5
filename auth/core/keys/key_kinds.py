"""The kinds of keys: where each is stored, how a new one is made, and what needs an old one.

A new kind is a class, and its entry in `KINDS`.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from auth.core import constants, files
from auth.core.keys import fingerprints, openid_keys, resealing
from auth.core.settings import Settings, kept_secrets, name_of, state
from auth.core.tokens import derived_keys, signing_keys
from auth.core.tokens.api_keys import ApiKeyMacs
from sql import Database, acts, queries

SHARED_SECRET = "AUTH_JWT_SECRET"  # noqa: S105
# Seconds for which a process may use an old key longer, if its clock is slow or it was busy.
SLACK = 300.0
# A JWK, or a secret with its time.
Secret = signing_keys.Jwk | str


class CannotRotate(Exception):
    """A line for the operator."""


@dataclass(frozen=True)
class KnownKey:
    """`entry` is the JWK, or the secret with its time. A key in the database has none; a new one, its row.

    `is_used` if this key signs or seals.
    """

    kind: str
    id: str
    entry: Secret | None
    active_from: float
    is_used: bool = False

    @property
    def waits(self) -> bool:
        return self.active_from > time.time()


@dataclass(frozen=True)
class KeyKind:
    """Secrets in the setting `field`, which the service accepts, and its clients use."""

    name: str
    field: str = ""

    def values(self, text: str | Sequence[str]) -> list[Secret]:
        """Return the JWKs or secrets in the value of the setting, or in the text of its file."""
        return [*(text.split(",") if isinstance(text, str) else text)]

    def text(self, values: Sequence[Secret]) -> str:
        return ",".join(map(str, values))

    def keys(self, db: Database, settings: Settings) -> list[KnownKey]:
        """Return the keys, the last rotated one first. Raises `psycopg2.Error`."""
        return [self._accepted(secret) for secret in getattr(settings, self.field)]

    def make(self, settings: Settings, active_from: float, algorithm: str | None) -> KnownKey:
        return self._accepted(state.new_secret())

    def parse(self, text: str) -> list[KnownKey]:
        """Return keys that are only accepted. Raises `CannotRotate` and `ValueError`."""
        kept_secrets.check_secrets(self.field, text)
        return [self._accepted(text)]

    def release(self, db: Database, settings: Settings, key: KnownKey) -> None:
        """Encrypt what was encrypted with the key anew, before its removal."""

    def needs(self, db: Database, settings: Settings, key: KnownKey, until: float | None) -> list[str]:
        """Describe what would become invalid without a key. `until` says when its use ended, if known."""
        return []

    def store(
        self, db: Database, settings: Settings, action: str, key: KnownKey, keys: Sequence[KnownKey]
    ) -> str:
        """Replace the keys, of which `key` is new or no longer one.

        Returns the setting for the environment, or an empty text if they are in a file.
        """
        text = self.text([each.entry for each in keys if each.entry])
        path = settings.key_files.get(self.field)
        if path is None:
            return f"{name_of(self.field)}={text}"
        # Add a key to the database first. Remove it from the database last.
        fingerprints.keep(db, settings)
        files.write(path, text + "\n")
        stored, _ = kept_secrets.read({self.field: path}, settings.jwt_secret)
        fingerprints.keep(db, replace(settings, **stored))
        _record(db, action, key)
        return ""

    def _accepted(self, secret: str) -> KnownKey:
        return KnownKey(self.name, _id_of(secret), secret, 0.0)


class _SecretKeys(KeyKind):
    """Secrets from which the service derives keys, each with the time of its first use."""

    def keys(self, db: Database, settings: Settings) -> list[KnownKey]:
        secrets = settings.secret_key
        return _timed(self.name, [(_id_of(each), each, derived_keys.split_time(each)[1]) for each in secrets])

    def release(self, db: Database, settings: Settings, key: KnownKey) -> None:
        if not key.waits:
            resealing.reseal(db, derived_keys.Sealer(settings.secret_key))

    def needs(self, db: Database, settings: Settings, key: KnownKey, until: float | None) -> list[str]:
        purposes = (derived_keys.Sealer.purpose, ApiKeyMacs.purpose)
        secret = str(key.entry)
        rows = queries.count_needs_of_secret(
            db,
            key_ids=[derived_keys.key_id(derived_keys.derive((secret,), each)[0]) for each in purposes],
            used_from=key.active_from and key.active_from - SLACK,
            used_until=until or time.time() + SLACK,
        )
        return [f"{row.rows:,} {row.what}" for row in rows if row.rows]

    def make(self, settings: Settings, active_from: float, algorithm: str | None) -> KnownKey:
        secret = state.new_secret()
        timed = f"{secret}@{derived_keys.format_time(active_from)}"
        return KnownKey(self.name, _id_of(secret), timed, active_from)


class _SigningKeys(KeyKind):
    """The JWKs that sign access tokens, after the shared secret, if there is one."""

    def values(self, text: str | Sequence[str]) -> list[Secret]:
        return [*signing_keys.read_jwks(str(text))]

    def text(self, values: Sequence[Secret]) -> str:
        return json.dumps({"keys": values})

    def keys(self, db: Database, settings: Settings) -> list[KnownKey]:
        parsed = signing_keys.all_keys(settings.jwt_keys, settings.jwt_secret)
        jwks = signing_keys.read_jwks(settings.jwt_keys)
        used = signing_keys.signing_key(parsed)
        return [
            KnownKey(self.name, key.kid or SHARED_SECRET, jwk, key.active_from, key is used)
            for key, jwk in zip(parsed, [None, *jwks] if settings.jwt_secret else jwks, strict=True)
        ]

    def needs(self, db: Database, settings: Settings, key: KnownKey, until: float | None) -> list[str]:
        if key.entry and not signing_keys.can_sign(json.dumps([key.entry])):
            return []
        lifetime = max(_longest_client_token(db, settings), settings.access_token_lifetime)
        return _valid_tokens("access tokens", lifetime, until)

    def make(self, settings: Settings, active_from: float, algorithm: str | None) -> KnownKey:
        used = signing_keys.signing_key(signing_keys.all_keys(settings.jwt_keys, settings.jwt_secret))
        jwk = signing_keys.new_jwk(algorithm or used.algorithm)
        jwk["active_from"] = derived_keys.format_time(active_from)
        return KnownKey(self.name, jwk["kid"], jwk, active_from)

    def parse(self, text: str) -> list[KnownKey]:
        """Return keys that only verify."""
        try:
            parsed = json.loads(text)
            jwks = parsed.get("keys", [parsed]) if isinstance(parsed, dict) else parsed
            jwks = [jwk | {"key_ops": ["verify"]} for jwk in jwks]
            for jwk in jwks:
                jwk.pop("active_from", None)
            keys = signing_keys.parse_jwk_set(json.dumps(jwks))
        except (ValueError, AttributeError, TypeError):
            raise CannotRotate("The file is neither a JWK nor a JWK Set. Name one that is.") from None
        kids = [str(key.kid) for key in keys]
        return [
            KnownKey(self.name, kid, jwk | {"kid": kid}, 0.0) for kid, jwk in zip(kids, jwks, strict=True)
        ]


class _OpenIdKeys(KeyKind):
    """The keys that sign ID tokens. They are in the database, not in a setting."""

    def keys(self, db: Database, settings: Settings) -> list[KnownKey]:
        rows = queries.list_openid_keys(db)[::-1]
        return _timed(self.name, [(row.id, None, derived_keys.parse_time(row.active_from)) for row in rows])

    def make(self, settings: Settings, active_from: float, algorithm: str | None) -> KnownKey:
        row = openid_keys.new_row(derived_keys.Sealer(settings.secret_key), active_from)
        return KnownKey(self.name, row["id"], row, active_from)

    def store(
        self, db: Database, settings: Settings, action: str, key: KnownKey, keys: Sequence[KnownKey]
    ) -> str:
        if isinstance(key.entry, dict):
            queries.insert_openid_key(db, **key.entry)
        else:
            queries.delete_openid_key(db, id=key.id)
        _record(db, action, key)
        return ""

    def needs(self, db: Database, settings: Settings, key: KnownKey, until: float | None) -> list[str]:
        return _valid_tokens("ID tokens", _longest_client_token(db, settings), until)


OPENID = "openid"
KINDS: Mapping[str, KeyKind] = {
    kind.name: kind
    for kind in (
        _SigningKeys("signing", "jwt_keys"),
        _SecretKeys("secret", "secret_key"),
        KeyKind("service-role", "service_role_key"),
        _OpenIdKeys(OPENID),
    )
}
BY_FIELD: Mapping[str, KeyKind] = {kind.field: kind for kind in KINDS.values() if kind.field}


def _timed(kind: str, keys: Sequence[tuple[str, str | None, float]]) -> list[KnownKey]:
    newest = derived_keys.index_in_use([active_from for _, _, active_from in keys]) if keys else None
    return [KnownKey(kind, *key, number == newest) for number, key in enumerate(keys)]


def _longest_client_token(db: Database, settings: Settings) -> int:
    row = queries.select_longest_client_token(
        db,
        access_token_lifetime=settings.access_token_lifetime,
        id_token_lifetime=constants.ID_TOKEN_LIFETIME,
    )
    return row.lifetime or 0


def _valid_tokens(what: str, lifetime: int, until: float | None) -> list[str]:
    if not lifetime:
        return []
    if until is None:
        return [f"its {what} may be valid for {lifetime} s"]
    ends_at = until + lifetime
    return [f"{what} until {derived_keys.format_time(ends_at)}"] if ends_at > time.time() else []


def _id_of(secret: str) -> str:
    return derived_keys.derive((secret,), "fingerprint")[0].hex()[:8]


def _record(db: Database, action: str, key: KnownKey) -> None:
    details = {"kind": key.kind, "key_id": key.id}
    with acts.begin(db) as act:
        queries.record_acts(act, user_id=None, email=None, acts=[action], events=[], details=details)
