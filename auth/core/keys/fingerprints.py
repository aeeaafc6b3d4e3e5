"""Compares the keys of this node with those of the other nodes, using fingerprints in the database."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from auth.core.settings import Settings, SettingsError, kept_secrets, name_of
from auth.core.tokens import derived_keys, signing_keys
from sql import Database, Transaction, queries

# The fingerprints of the keys of each setting.
Fingerprints = dict[str, list[str]]
# Returns the settings with the keys to keep, from the fingerprints in the database and the settings.
Admit = Callable[[Fingerprints, Settings], Settings]


class OtherKeys(Exception):
    """One line for each field whose keys are missing or differ from the database's."""

    def __init__(self, lines: dict[str, str]) -> None:
        super().__init__("\n".join(lines.values()))
        self.fields = [*lines]


def check(db: Database, settings: Settings) -> None:
    """Accept any keys, or none, for a database without fingerprints.

    Raises `OtherKeys`, `SettingsError` and `psycopg2.Error`.
    """
    if of_database := _stored(db):
        common(of_database, _with_files(settings))


def common(of_database: Fingerprints, settings: Settings) -> Settings:
    """Admit keys that have one in common with each setting of the database. Raises `OtherKeys`."""
    lines, absent = {}, missing(settings)
    for field, fingerprints in _fingerprints(settings).items():
        if field in absent:
            lines[field] = (
                f"{name_of(field)}: {absent[field]} is missing. Restore it from a backup, or copy it from"
                " another node. If no node and no backup has it, run: latchkey keys accept --new"
            )
        elif name_of(field) in of_database and not set(fingerprints) & set(of_database[name_of(field)]):
            path = settings.key_files.get(field)
            place = f"it is in {path}"
            if path is None:
                place = f"if unset, it is in {settings.state_dir / kept_secrets.FILES[field]}"
            lines[field] = (
                f"{name_of(field)}: Differs from what this database last used ({place})."
                " All nodes need the same value. Copy it from another node, or restore it from a backup. To"
                " replace it, set new,old. If no node and no backup has the old value, run: latchkey keys"
                " accept"
            )
    if lines:
        raise OtherKeys(lines)
    return settings


def common_or_new(of_database: Fingerprints, settings: Settings) -> Settings:
    """Be `common`, or `any_or_new` for a database without fingerprints. The caller locks the directory."""
    return common(of_database, settings) if of_database else any_or_new(of_database, settings)


def any_or_new(_of_database: Fingerprints, settings: Settings) -> Settings:
    """Admit all keys, and make those whose files are missing. Raises `OSError`."""
    kept_secrets.make(missing(settings))
    return _with_files(settings)


def keep(db: Database, settings: Settings, admit: Admit = common) -> Settings:
    """Replace the stored fingerprints with those of this node, and return the settings with its keys.

    This drops a key that has been rotated out. Raises the errors of `admit`, and those of `check`.
    """
    with db.transaction() as tx:
        queries.lock_key_fingerprints(tx)
        settings = admit(_stored(tx), _with_files(settings))
        for field, fingerprints in _fingerprints(settings).items():
            queries.replace_key_fingerprints(tx, setting=name_of(field), fingerprints=fingerprints)
    return settings


def _stored(db: Database | Transaction) -> Fingerprints:
    return {row.setting: row.fingerprints for row in queries.list_key_fingerprints(db)}


def missing(settings: Settings) -> dict[str, Path]:
    """Return the files of keys that are missing, by field."""
    return {field: path for field, path in settings.key_files.items() if not getattr(settings, field)}


def _with_files(settings: Settings) -> Settings:
    """Read the missing files again: another node may have made them since."""
    files = {field: path for field, path in missing(settings).items() if path.exists()}
    secrets, problems = kept_secrets.read(files, settings.jwt_secret)
    if problems:
        raise SettingsError("\n".join(problems))
    return dataclasses.replace(settings, **secrets)


def _fingerprints(settings: Settings) -> Fingerprints:
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
