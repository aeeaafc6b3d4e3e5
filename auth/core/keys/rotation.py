"""Rotating the keys: in their files, or as a new value for the environment."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from auth.core.keys.key_kinds import KINDS, SHARED_SECRET, SLACK, CannotRotate, KnownKey
from auth.core.settings import Settings, kept_secrets
from auth.core.tokens import derived_keys
from sql import Database

# Seconds within which every process of this machine picks up a new key.
_SOON = 30.0


class StillNeeded(CannotRotate):
    """The key to remove is still needed."""


def list_keys(db: Database, settings: Settings) -> list[KnownKey]:
    """Return all keys, in the order of their files. Raises `psycopg2.Error`."""
    return [key for kind in KINDS.values() for key in kind.keys(db, settings)]


def rotate(
    db: Database, settings: Settings, kind: str, *, soon: bool, algorithm: str | None
) -> tuple[KnownKey, str]:
    """Add a new key, which is used after the overlap, and return it with the new value of the setting.

    The value is empty if the key is in a file. Raises `CannotRotate`, `OSError` and `psycopg2.Error`.
    """
    with _latest(settings) as settings:
        keys = KINDS[kind].keys(db, settings)
        waiting = next((key for key in keys if key.waits), None)
        if waiting and not soon:
            raise CannotRotate(
                f"{waiting.id} will be used from {derived_keys.format_time(waiting.active_from)}."
                f" Rotate after that, or remove it first: latchkey keys remove {waiting.id}"
            )
        active_from = float(int(time.time() + (_SOON if soon else settings.key_overlap)))
        new = KINDS[kind].make(settings, active_from, algorithm)
        return new, KINDS[kind].store(db, settings, "key_rotated", new, [new, *keys])


def add(db: Database, settings: Settings, kind: str, text: str) -> tuple[KnownKey, str]:
    """Add a key that is only accepted, such as that of another node or of a former service."""
    with _latest(settings) as settings:
        keys, added = KINDS[kind].keys(db, settings), KINDS[kind].parse(text)
        if {key.id for key in added} & {key.id for key in keys}:
            raise CannotRotate(f"{added[0].id} is accepted already. See: latchkey keys list")
        return added[0], KINDS[kind].store(db, settings, "key_added", added[0], [*keys, *added])


def remove(db: Database, settings: Settings, id: str, *, force: bool) -> tuple[KnownKey, str]:
    """Remove a key. Raises `StillNeeded` unless `force`, and the errors of `rotate`."""
    with _latest(settings) as settings:
        matches = [key for key in list_keys(db, settings) if key.id.startswith(id)]
        if len(matches) != 1:
            number = "several keys" if matches else "no key"
            raise CannotRotate(f"{id} matches {number}. Find its whole ID by: latchkey keys list")
        key = matches[0]
        if key.id == SHARED_SECRET:
            raise CannotRotate(f"{key.id} is in the environment. Unset it there, and restart all nodes.")
        kind = KINDS[key.kind]
        others = [other for other in kind.keys(db, settings) if other.id != key.id]
        if key.is_used or not others:
            waiting = min((other.active_from for other in others if other.waits), default=None)
            remedy = f"Replace it first: latchkey keys rotate {key.kind}"
            if waiting:
                remedy = f"Wait until another takes over at {derived_keys.format_time(waiting)}."
            raise CannotRotate(f"{key.id} is in use. {remedy}")
        kind.release(db, settings, key)
        needs = needs_of(db, settings, key)
        if needs and not force:
            raise StillNeeded(
                f"{key.id} is still needed: {'; '.join(needs)}. To remove it anyway, add --force."
            )
        return key, kind.store(db, settings, "key_removed", key, others)


def needs_of(db: Database, settings: Settings, key: KnownKey) -> list[str]:
    """Describe what would become invalid without a key. Raises `psycopg2.Error`."""
    if key.is_used or key.waits:
        return []
    later = [other.active_from for other in KINDS[key.kind].keys(db, settings) if not other.waits]
    # When another key took over, if that is recorded.
    until = min((moment + SLACK for moment in later if moment > key.active_from), default=None)
    return KINDS[key.kind].needs(db, settings, key, until)


def secret_used_since(settings: Settings) -> float:
    """Return when the secret key in use was first used, or 0."""
    times = [derived_keys.split_time(secret)[1] for secret in settings.secret_key]
    return times[derived_keys.index_in_use(times)]


@contextmanager
def _latest(settings: Settings) -> Iterator[Settings]:
    """Hold the lock of rotations, and yield the settings with the current keys of the files."""
    with ExitStack() as stack:
        if settings.key_files:
            descriptor = os.open(settings.state_dir, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        secrets, problems = kept_secrets.read(settings.key_files, settings.jwt_secret)
        if problems:
            raise CannotRotate("\n".join(problems))
        yield replace(settings, **secrets)
