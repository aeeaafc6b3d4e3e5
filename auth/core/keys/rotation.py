"""Rotating the keys: in their files, or as a new value for the environment."""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from auth.core import constants, files
from auth.core.keys import fingerprints, openid_keys, resealing
from auth.core.settings import Settings, kept_secrets, name_of, state
from auth.core.tokens import derived_keys, signing_keys
from auth.core.tokens.api_keys import ApiKeyMacs
from sql import Database, acts, queries

OPENID = "openid"
FIELDS = {"signing": "jwt_keys", "secret": "secret_key", "service-role": "service_role_key"}
KINDS = (*FIELDS, OPENID)
SHARED_SECRET = "AUTH_JWT_SECRET"  # noqa: S105
# Seconds within which every process of this machine picks up a new key.
_SOON = 30.0
# A process may use an old key a little longer if its clock is slow or it was busy.
_SLACK = 300.0
# A JWK, or a secret with its time.
Secret = signing_keys.Jwk | str


class CannotRotate(Exception):
    """A line for the operator."""


class StillNeeded(CannotRotate):
    """The key to remove is still needed."""


@dataclass(frozen=True)
class KnownKey:
    """`entry` is the JWK or secret with its time, or None for a key in the database.

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


def values_of(field: str, value: str | Sequence[str]) -> list[Secret]:
    """Return the JWKs or secrets in the value of a setting, or in the text of its file."""
    if field == "jwt_keys":
        return [*signing_keys.read_jwks(str(value))]
    return [*(value.split(",") if isinstance(value, str) else value)]


def text_of(field: str, values: Sequence[Secret]) -> str:
    return json.dumps({"keys": values}) if field == "jwt_keys" else ",".join(map(str, values))


def list_keys(db: Database, settings: Settings) -> list[KnownKey]:
    """Return all keys, in the order of their files. Raises `psycopg2.Error`."""
    return [key for kind in KINDS for key in known_keys(db, settings, kind)]


def _timed(kind: str, found: Sequence[tuple[str, str | None, float]]) -> list[KnownKey]:
    newest = derived_keys.in_use([at for _, _, at in found]) if found else None
    return [KnownKey(kind, *each, number == newest) for number, each in enumerate(found)]


def keys_of(kind: str, settings: Settings) -> list[KnownKey]:
    if kind == "service-role":  # used by its holders, not by us
        return [KnownKey(kind, _id_of(secret), secret, 0.0) for secret in settings.service_role_key]
    if kind == "secret":
        secrets = settings.secret_key
        return _timed(kind, [(_id_of(each), each, derived_keys.split_time(each)[1]) for each in secrets])
    parsed = signing_keys.all_keys(settings.jwt_keys, settings.jwt_secret)
    jwks = signing_keys.read_jwks(settings.jwt_keys)
    used = signing_keys.signing_key(parsed)
    return [
        KnownKey(kind, key.kid or SHARED_SECRET, jwk, key.active_from, key is used)
        for key, jwk in zip(parsed, [None, *jwks] if settings.jwt_secret else jwks, strict=True)
    ]


def rotate(
    db: Database, settings: Settings, kind: str, *, soon: bool, algorithm: str | None
) -> tuple[KnownKey, str]:
    """Add a new key, which is used after the overlap, and return it with the new value of the setting.

    The value is empty if the key is in a file. Raises `CannotRotate`, `OSError` and `psycopg2.Error`.
    """
    with _latest(settings) as settings:
        known = known_keys(db, settings, kind)
        waiting = [key for key in known if key.waits]
        if waiting and not soon:
            first = waiting[0]
            raise CannotRotate(
                f"{first.id} will be used from {derived_keys.format_time(first.active_from)}. Rotate after"
                f" that, or remove it first: latchkey keys remove {first.id}"
            )
        active_from = float(int(time.time() + (_SOON if soon else settings.key_overlap)))
        start = derived_keys.format_time(active_from)
        if kind == OPENID:
            row = openid_keys.new_row(derived_keys.Sealer(settings.secret_key), active_from)
            queries.insert_openid_key(db, **row)
            new = KnownKey(kind, row["id"], None, active_from)
            _record(db, "key_rotated", new)
            return new, ""
        if kind == "signing":
            used = signing_keys.signing_key(signing_keys.all_keys(settings.jwt_keys, settings.jwt_secret))
            jwk = signing_keys.new_jwk(algorithm or used.algorithm) | {"active_from": start}
            new = KnownKey(kind, jwk["kid"], jwk, active_from)
        else:
            secret = state.new_secret()
            timed = (secret, 0.0) if kind == "service-role" else (f"{secret}@{start}", active_from)
            new = KnownKey(kind, _id_of(secret), *timed)
        return new, _store(db, settings, "key_rotated", new, [new, *known])


def add(db: Database, settings: Settings, kind: str, text: str) -> tuple[KnownKey, str]:
    """Add a key that is only accepted, such as that of another node or of a former service."""
    with _latest(settings) as settings:
        known = keys_of(kind, settings)
        if kind == "signing":
            added = [KnownKey(kind, jwk["kid"], jwk, 0.0) for jwk in _only_verifying(text)]
        else:
            kept_secrets.check_secrets(FIELDS[kind], text)
            added = [KnownKey(kind, _id_of(text), text, 0.0)]
        if {key.id for key in added} & {key.id for key in known}:
            raise CannotRotate(f"{added[0].id} is accepted already. See: latchkey keys list")
        return added[0], _store(db, settings, "key_added", added[0], [*known, *added])


def remove(db: Database, settings: Settings, id: str, *, force: bool) -> tuple[KnownKey, str]:
    """Remove a key. Raises `StillNeeded` unless `force`, and the errors of `rotate`."""
    with _latest(settings) as settings:
        key = _find(db, settings, id)
        others = [other for other in known_keys(db, settings, key.kind) if other.id != key.id]
        if key.is_used or not others:
            waiting = min((other.active_from for other in others if other.waits), default=None)
            remedy = f"Replace it first: latchkey keys rotate {key.kind}"
            if waiting:
                remedy = f"Wait until another takes over at {derived_keys.format_time(waiting)}."
            raise CannotRotate(f"{key.id} is in use. {remedy}")
        if key.kind == "secret" and not key.waits:
            resealing.reseal(db, derived_keys.Sealer(settings.secret_key))
        needs = needs_of(db, settings, key)
        if needs and not force:
            raise StillNeeded(
                f"{key.id} is still needed: {'; '.join(needs)}. To remove it anyway, add --force."
            )
        if key.kind == OPENID:
            queries.delete_openid_key(db, id=key.id)
            _record(db, "key_removed", key)
            return key, ""
        return key, _store(db, settings, "key_removed", key, others)


def needs_of(db: Database, settings: Settings, key: KnownKey) -> list[str]:
    """Describe what would become invalid without a key. Raises `psycopg2.Error`."""
    if key.is_used or key.waits or key.kind == "service-role":
        return []
    later = [other.active_from for other in known_keys(db, settings, key.kind) if not other.waits]
    # When another key took over, if that is recorded.
    until = min((moment + _SLACK for moment in later if moment > key.active_from), default=None)
    if isinstance(key.entry, str):
        purposes = (derived_keys.Sealer.purpose, ApiKeyMacs.purpose)
        rows = queries.count_needs_of_secret(
            db,
            key_ids=[derived_keys.key_id(derived_keys.derive((key.entry,), each)[0]) for each in purposes],
            used_from=key.active_from and key.active_from - _SLACK,
            used_until=until or time.time() + _SLACK,
        )
        return [f"{row.rows:,} {row.what}" for row in rows if row.rows]
    if key.entry and not signing_keys.can_sign(json.dumps([key.entry])):
        return []
    access_token_lifetime = settings.access_token_lifetime
    tokens = {
        "access_token_lifetime": access_token_lifetime,
        "id_token_lifetime": constants.ID_TOKEN_LIFETIME,
    }
    of_clients = queries.select_longest_client_token(db, **tokens).lifetime or 0
    what, lifetime = "access tokens", max(of_clients, access_token_lifetime)
    if key.kind == OPENID:
        what, lifetime = "ID tokens", of_clients
    if not lifetime:
        return []
    if until is None:
        return [f"its {what} may be valid for {lifetime} s"]
    ends_at = until + lifetime
    return [f"{what} until {derived_keys.format_time(ends_at)}"] if ends_at > time.time() else []


def secret_used_since(settings: Settings) -> float:
    """Return when the secret key in use was first used, or 0."""
    return next(key.active_from for key in keys_of("secret", settings) if key.is_used)


def known_keys(db: Database, settings: Settings, kind: str) -> list[KnownKey]:
    """Return the keys of a kind, the last rotated one first. Raises `psycopg2.Error`."""
    if kind != OPENID:
        return keys_of(kind, settings)
    rows = queries.list_openid_keys(db)[::-1]
    return _timed(OPENID, [(row.id, None, derived_keys.parse_time(row.active_from)) for row in rows])


def _find(db: Database, settings: Settings, id: str) -> KnownKey:
    found = [key for key in list_keys(db, settings) if key.id.startswith(id)]
    if len(found) != 1:
        raise CannotRotate(
            f"{id} matches {'several keys' if found else 'no key'}. Find its whole ID by: latchkey keys list"
        )
    if found[0].id == SHARED_SECRET:
        raise CannotRotate(f"{SHARED_SECRET} is in the environment. Unset it there, and restart all nodes.")
    return found[0]


def _only_verifying(text: str) -> list[signing_keys.Jwk]:
    """Raises `CannotRotate`."""
    try:
        parsed = json.loads(text)
        jwks = parsed.get("keys", [parsed]) if isinstance(parsed, dict) else parsed
        jwks = [jwk | {"key_ops": ["verify"]} for jwk in jwks]
        for jwk in jwks:
            jwk.pop("active_from", None)
        found = signing_keys.parse_jwk_set(json.dumps(jwks))
    except (ValueError, AttributeError, TypeError):
        raise CannotRotate("The file is neither a JWK nor a JWK Set. Name one that is.") from None
    return [jwk | {"kid": key.kid} for jwk, key in zip(jwks, found, strict=True)]


def _id_of(secret: str) -> str:
    return derived_keys.derive((secret,), "fingerprint")[0].hex()[:8]


@contextmanager
def _latest(settings: Settings) -> Iterator[Settings]:
    """Hold the lock of rotations, and yield the settings with the current keys of the files."""
    with ExitStack() as stack:
        if settings.key_files:
            descriptor = os.open(settings.state_dir, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        found, problems = kept_secrets.read(settings.key_files, settings.jwt_secret)
        if problems:
            raise CannotRotate("\n".join(problems))
        yield replace(settings, **found)


def _store(db: Database, settings: Settings, action: str, key: KnownKey, left: Sequence[KnownKey]) -> str:
    field = FIELDS[key.kind]
    text = text_of(field, [other.entry for other in left if other.entry])
    path = settings.key_files.get(field)
    if path is None:
        return f"{name_of(field)}={text}"
    # Add a key to the database first. Remove it from the database last.
    fingerprints.keep(db, settings)
    files.write(path, text + "\n")
    value: Any = text if field == "jwt_keys" else tuple(text.split(","))
    fingerprints.keep(db, replace(settings, **{field: value}))
    _record(db, action, key)
    return ""


def _record(db: Database, action: str, key: KnownKey) -> None:
    details = {"kind": key.kind, "key_id": key.id}
    with acts.begin(db) as act:
        queries.record_acts(act, user_id=None, email=None, acts=[action], events=[], details=details)
