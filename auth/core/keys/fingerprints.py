"""Compares the keys of this node with those of the other nodes, using fingerprints in the database."""

import dataclasses
from pathlib import Path

from auth.core.settings import Settings, SettingsError, kept_secrets, name_of
from auth.core.tokens import derived_keys, signing_keys
from sql import Database, Transaction, queries


class OtherKeys(Exception):
    """One line for each field whose keys are missing or differ from the database's."""

    def __init__(self, lines: dict[str, str]) -> None:
        super().__init__("\n".join(lines.values()))
        self.fields = [*lines]


def check(db: Database, settings: Settings) -> None:
    """Accept any keys, or none, for a database without fingerprints.

    Raises `OtherKeys`, `SettingsError` and `psycopg2.Error`.
    """
    if known := _known(db):
        _compare(known, _with_files(settings))


def keep(
    db: Database, settings: Settings, *, make_missing: bool = False, even_others: bool = False
) -> Settings:
    """Replace the stored keys with those of this node, which must have one in common unless `even_others`.

    Replacing drops a key that has been rotated out. `make_missing` makes the keys whose files are missing,
    but for a database that knows others only with `even_others`; the caller has locked the state directory.
    Returns the settings with the keys. Raises `OSError` and what `check` raises.
    """
    with db.transaction() as tx:
        queries.lock_key_fingerprints(tx)
        known, settings = _known(tx), _with_files(settings)
        if not even_others and (known or not make_missing):
            _compare(known, settings)
        if make_missing:
            kept_secrets.make(missing(settings))
            settings = _with_files(settings)
        for field, fingerprints in _fingerprints(settings).items():
            queries.replace_key_fingerprints(tx, setting=name_of(field), fingerprints=fingerprints)
    return settings


def _known(db: Database | Transaction) -> dict[str, list[str]]:
    return {row.setting: row.fingerprints for row in queries.list_key_fingerprints(db)}


def missing(settings: Settings) -> dict[str, Path]:
    """Return the files of keys that are missing, by field."""
    return {field: path for field, path in settings.key_files.items() if not getattr(settings, field)}


def _with_files(settings: Settings) -> Settings:
    """Read the missing files again: another node may have made them since."""
    files = {field: path for field, path in missing(settings).items() if path.exists()}
    found, problems = kept_secrets.read(files, must_sign=not settings.jwt_secret)
    if problems:
        raise SettingsError("\n".join(problems))
    return dataclasses.replace(settings, **found)


def _compare(known: dict[str, list[str]], settings: Settings) -> None:
    lines, absent = {}, missing(settings)
    for field, fingerprints in _fingerprints(settings).items():
        if field in absent:
            lines[field] = (
                f"{name_of(field)}: {absent[field]} is missing. Restore it from a backup, or copy it from"
                " another node. If no node and no backup has it, run: latchkey keys accept --new"
            )
        elif name_of(field) in known and not set(fingerprints) & set(known[name_of(field)]):
            lines[field] = (
                f"{name_of(field)}: Differs from what this database last used ({_place(field, settings)})."
                " All nodes need the same value. Copy it from another node, or restore it from a backup. To"
                " replace it, set new,old. If no node and no backup has the old value, run: latchkey keys"
                " accept"
            )
    if lines:
        raise OtherKeys(lines)


def _place(field: str, settings: Settings) -> str:
    if path := settings.key_files.get(field):
        return f"it is in {path}"
    return f"if unset, it is in {settings.state_dir / kept_secrets.FILES[field]}"


def _fingerprints(settings: Settings) -> dict[str, list[str]]:
    """Return them by field."""

    def of(secrets: tuple[str, ...]) -> list[str]:
        return [fingerprint.hex() for fingerprint in derived_keys.derive(secrets, "fingerprint")]

    jwt_secrets = (settings.jwt_secret,) if settings.jwt_secret else ()
    return {
        "secret_key": of(settings.secret_key),
        "service_role_key": of(settings.service_role_key),
        # Compared together: a deployment may move from one to the other.
        "jwt_keys": of(jwt_secrets) + signing_keys.fingerprints(settings.jwt_keys),
    }
