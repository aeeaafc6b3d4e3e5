"""Rotating the keys, in their files, or as a value to set if the environment has them."""

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from auth.delivery import resealing
from auth.settings import Settings, fingerprints, kept_secrets, name_of, state
from auth.tokens import keys, signing_keys
from sql import Database

FIELDS = {"signing": "jwt_keys", "secret": "secret_key", "service-role": "service_role_key"}
SHARED_SECRET = "AUTH_JWT_SECRET"  # noqa: S105
# Seconds, within which every process of this machine has picked up a new key.
_SOON = 30.0
# A process may use an old key a little longer, if its clock is slow or it was busy.
_SLACK = 300.0


class CannotRotate(Exception):
    """A line for the operator."""


class StillNeeded(CannotRotate):
    """The key that is to be removed is needed."""


@dataclass(frozen=True)
class Key:
    """`value` is the text or JWK, without the time. `is_used` if it is the key that signs or seals."""

    kind: str
    id: str
    value: Any
    active_from: float
    is_used: bool = False

    @property
    def waits(self) -> bool:
        return self.active_from > time.time()


def list_keys(settings: Settings) -> list[Key]:
    """Return all keys, in the order of their files."""
    return [key for kind in FIELDS for key in keys_of(kind, settings)]


def keys_of(kind: str, settings: Settings) -> list[Key]:
    value = getattr(settings, FIELDS[kind])
    if kind == "signing":
        return _signing_keys(settings)
    found = [
        Key(kind, _id_of(secret), secret, active_from)
        for secret, active_from in (
            keys.split_time(text) if kind == "secret" else (text, 0.0) for text in value
        )
    ]
    # Service role keys are used by their holders, not by us.
    if kind == "secret":
        used = keys.in_use([key.active_from for key in found])
        found[used] = replace(found[used], is_used=True)
    return found


def rotate(
    db: Database, settings: Settings, kind: str, *, soon: bool, algorithm: str | None
) -> tuple[Key, str]:
    """Add a new key, which is used after the overlap, and return it with the new value of the setting.

    The value is empty if the key is in a file. Raises `CannotRotate`, `OSError` and `psycopg2.Error`.
    """
    with _latest(settings) as settings:
        known = keys_of(kind, settings)
        waiting = [key for key in known if key.waits]
        if waiting and not soon:
            first = waiting[0]
            raise CannotRotate(
                f"{first.id} is used from {keys.format_time(first.active_from)} on. Rotate after that, or"
                f" remove it first: latchkey keys remove {first.id}"
            )
        active_from = float(int(time.time() + (_SOON if soon else settings.key_overlap)))
        if kind == "signing":
            jwk = signing_keys.new_jwk(
                algorithm or signing_keys.algorithm_in_use(settings.jwt_keys, settings.jwt_secret)
            )
            new = Key(kind, jwk["kid"], jwk, active_from)
        else:
            secret = state.new_secret()
            new = Key(kind, _id_of(secret), secret, 0.0 if kind == "service-role" else active_from)
        return new, _store(db, settings, kind, [new, *known], "key_rotated", new.id)


def add(db: Database, settings: Settings, kind: str, text: str) -> tuple[Key, str]:
    """Add a key that is only accepted, such as that of another node or of a former service."""
    with _latest(settings) as settings:
        known = keys_of(kind, settings)
        if kind == "signing":
            added = [Key(kind, jwk["kid"], jwk, 0.0) for jwk in _only_verifying(text)]
        else:
            kept_secrets.check_of(FIELDS[kind], must_sign=False)(text)
            added = [Key(kind, _id_of(text), text, 0.0)]
        if {key.id for key in added} & {key.id for key in known}:
            raise CannotRotate(f"{added[0].id} is there already.")
        return added[0], _store(db, settings, kind, [*known, *added], "key_added", added[0].id)


def remove(db: Database, settings: Settings, id: str, *, force: bool) -> tuple[Key, str]:
    """Remove a key. Raises `StillNeeded` unless `force`, and the errors of `rotate`."""
    with _latest(settings) as settings:
        key = find(settings, id)
        others = [other for other in keys_of(key.kind, settings) if other.id != key.id]
        if key.is_used or not others:
            kind = key.kind
            raise CannotRotate(f"{key.id} is the one in use. Replace it first: latchkey keys rotate {kind}")
        if key.kind == "secret" and not key.waits:
            resealing.reseal(db, keys.Sealer(keys.derive(settings.secret_key, keys.SEALING)))
        needs = needs_of(db, settings, key)
        if needs and not force:
            raise StillNeeded(f"{key.id} is still needed: {'; '.join(needs)}.")
        return key, _store(db, settings, key.kind, others, "key_removed", key.id)


def find(settings: Settings, id: str) -> Key:
    found = [key for key in list_keys(settings) if key.id.startswith(id)]
    if len(found) != 1:
        raise CannotRotate(
            f"{id} is not the id of {'one key' if found else 'a key'}; see latchkey keys list."
        )
    if found[0].id == SHARED_SECRET:
        raise CannotRotate(f"Unset {SHARED_SECRET} and restart all nodes.")
    return found[0]


def needs_of(db: Database, settings: Settings, key: Key) -> list[str]:
    """Describe what would become invalid without a key. Raises `psycopg2.Error`."""
    if key.is_used or key.waits:
        return []
    until = replaced_at(settings, key)
    if key.kind == "secret":
        count = {
            "key_ids": [keys.key_id(keys.derive((key.value,), purpose)[0]) for purpose in keys.SEALINGS],
            "used_from": key.active_from and key.active_from - _SLACK,
            "used_until": time.time() + _SLACK if until is None else until + _SLACK,
        }
        lifetimes = {name: getattr(settings, name) for name in ("refresh_token_lifetime", "session_timebox")}
        rows = db.all("count_needs_of_secret", **count, **lifetimes)
        return [f"{row.rows:,} {row.what}" for row in rows if row.rows]
    if key.kind == "signing" and (key.value is None or signing_keys.can_sign(json.dumps([key.value]))):
        if until is None:
            return [f"its access tokens may be valid for {settings.access_token_lifetime} s"]
        ends_at = until + settings.access_token_lifetime + _SLACK
        return [f"access tokens until {keys.format_time(ends_at)}"] if ends_at > time.time() else []
    return []


def replaced_at(settings: Settings, key: Key) -> float | None:
    """Return when another key took over, or None if that is not recorded."""
    later = [
        other.active_from
        for other in keys_of(key.kind, settings)
        if key.active_from < other.active_from <= time.time()
    ]
    return min(later) if later else None


def secret_used_since(settings: Settings) -> float:
    """Return when the secret key in use was first used, or 0."""
    return next(key.active_from for key in keys_of("secret", settings) if key.is_used)


def _signing_keys(settings: Settings) -> list[Key]:
    parsed = signing_keys.all_keys(settings.jwt_keys, settings.jwt_secret)
    jwks = _jwks(settings.jwt_keys)
    values = [None, *jwks] if settings.jwt_secret else jwks
    used = signing_keys.signing_key(parsed)
    return [
        Key("signing", key.kid or SHARED_SECRET, value and _without_time(value), key.active_from, key is used)
        for key, value in zip(parsed, values, strict=True)
    ]


def _without_time(jwk: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in jwk.items() if name != "active_from"}


def _jwks(text: str) -> list[dict[str, Any]]:
    parsed = json.loads(text) if text else []
    return parsed if isinstance(parsed, list) else parsed["keys"]


def _only_verifying(text: str) -> list[dict[str, Any]]:
    """Raises `CannotRotate`."""
    try:
        parsed = json.loads(text)
        jwks = parsed.get("keys", [parsed]) if isinstance(parsed, dict) else parsed
        jwks = [_without_time(jwk) | {"key_ops": ["verify"]} for jwk in jwks]
        found = signing_keys.parse_jwk_set(json.dumps(jwks))
    except (ValueError, AttributeError, TypeError):
        raise CannotRotate("The file must have a JWK, or a JWK Set.") from None
    return [jwk | {"kid": key.kid} for jwk, key in zip(jwks, found, strict=True)]


def _id_of(secret: str) -> str:
    return keys.derive((secret,), "fingerprint")[0].hex()[:8]


@contextmanager
def _latest(settings: Settings) -> Iterator[Settings]:
    """Yield the settings with the keys as they are in the files now, under the lock of rotations."""
    with ExitStack() as stack:
        if settings.key_files:
            descriptor = os.open(settings.state_dir, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        found, problems = kept_secrets.read(settings.key_files, must_sign=not settings.jwt_secret)
        if problems:
            raise CannotRotate("\n".join(problems))
        yield replace(settings, **found)


def _store(db: Database, settings: Settings, kind: str, entries: Sequence[Key], action: str, id: str) -> str:
    field, text = FIELDS[kind], _text(kind, entries)
    value: Any = text if kind == "signing" else tuple(text.split(","))
    path = settings.key_files.get(field)
    if path is None:
        return f"{name_of(field)}={text}"
    # The database is the first to get an added key, and the last to lose a removed one.
    fingerprints.keep(db, settings)
    _write(path, text + "\n")
    fingerprints.keep(db, replace(settings, **{field: value}))
    details = {"kind": kind, "key_id": id}
    db.run("record_acts", user_id=None, email=None, acts=[action], events=[], details=details)
    return ""


def _text(kind: str, entries: Sequence[Key]) -> str:
    if kind == "signing":
        timed = [
            key.value | ({"active_from": keys.format_time(key.active_from)} if key.active_from else {})
            for key in entries
            if key.value is not None
        ]
        return json.dumps({"keys": timed})
    return ",".join(
        f"{key.value}@{keys.format_time(key.active_from)}" if key.active_from else key.value
        for key in entries
    )


def _write(path: Path, text: str) -> None:
    """Replace a file and keep its owner: root may rotate a key that the service reads."""
    before = path.stat()
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fchmod(file.fileno(), before.st_mode & 0o777)
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
