"""The secrets of a backup, and of the state directory before a restore."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from auth.core import files
from auth.core.keys.key_kinds import BY_FIELD, Secret
from auth.core.settings import Settings, kept_secrets, name_of, state
from auth.core.tokens import derived_keys
from auth.ops.backups.archive import BackupError, Manifest
from auth.ops.backups.comparisons import Returned
from sql.pool import Connection

NOTHING_TO_UNDO = (
    "There is no restore to undo: the next restore and the next backup delete the database from before."
    " Restore a backup instead."
)


class RestoredSecrets:
    """The secrets of a backup. They become files of the state directory together with its database."""

    def __init__(
        self, settings: Settings, restored: Mapping[str, list[Secret]], environment: Mapping[str, str]
    ) -> None:
        """Raises `BackupError` if the environment lacks a key of the backup."""
        self._directory = settings.state_dir
        self._environment = environment
        self._former = former_secrets(settings)
        self.environment_file = environment_file(settings) if environment else None
        fields = [field for field in restored if os.environ.get(name_of(field))]
        self.kept_variables = [name_of(field) for field in fields]
        self._restored = {
            field: values for field, values in restored.items() if values and field not in fields
        }
        for field in fields:
            own = {_id(value) for value in BY_FIELD[field].values(getattr(settings, field))}
            lacking = {_id(value) for value in restored[field]} - own
            # The rows need all secret keys. For tokens, one key that the service knows is enough.
            if lacking and (field == "secret_key" or len(lacking) == len(restored[field])):
                raise BackupError(
                    f"{name_of(field)} is set, but lacks a key from the backup. Unset it: the restore puts"
                    f" the keys into {settings.state_dir}."
                )

    @classmethod
    def of_backup(cls, settings: Settings, manifest: Manifest) -> Self:
        restored = {field: getattr(manifest, field) for field in kept_secrets.FILES}
        return cls(settings, restored, manifest.environment)

    @classmethod
    def of_before(cls, settings: Settings) -> Self:
        """Return the secrets from before the last restore. Raises `BackupError` if there are none."""
        try:
            former = json.loads(former_secrets(settings).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BackupError(NOTHING_TO_UNDO) from None
        restored = {field: former.get(field, []) for field in kept_secrets.FILES}
        return cls(settings, restored, {})

    def returned(self) -> list[Returned]:
        """Return the kinds of keys of which the backup has one that this machine had replaced or removed."""
        former = self._current()
        kinds = [
            BY_FIELD[field].name
            for field, values in self._restored.items()
            if former[field] and {*map(_id, values)} - {*map(_id, former[field])}
        ]
        return [
            Returned("key", kind, f"the {kind} key", "was another", f"latchkey keys rotate {kind} --now")
            for kind in kinds
        ]

    @contextmanager
    def replacing(self, connection: Connection) -> Iterator[None]:
        """Like `admitted`, but keep the previous secrets, so that the restore can be undone."""
        state.make_directory(self._directory)
        files.write(self._former, json.dumps(self._current()))
        try:
            with self.admitted(connection):
                yield
        except BaseException:
            if not connection.closed:
                self._former.unlink()
            raise

    @contextmanager
    def admitted(self, connection: Connection) -> Iterator[None]:
        """Accept the keys of both databases inside of the context, and afterwards only those of the backup.

        After an exception, accept the previous keys. If the connection broke, still accept both, because we
        do not know which database has the name.
        """
        former = self._current()
        for field, values in self._restored.items():
            self._write(field, [*former[field], *values])
        try:
            yield
        except BaseException:
            if not connection.closed:
                for field, values in former.items():
                    self._write(field, values)
            raise
        for field, values in self._restored.items():
            self._write(field, values)
        if self.environment_file:
            lines = []
            for name, value in self._environment.items():
                escaped = value.replace("\\", "\\\\").replace("'", "\\'")
                lines.append(f"{name}='{escaped}'\n")
            files.write(self.environment_file, "".join(lines))

    def _current(self) -> dict[str, list[Secret]]:
        paths = {field: self._directory / kept_secrets.FILES[field] for field in self._restored}
        return {
            field: BY_FIELD[field].values(kept_secrets.text_of(field, path)) if path.exists() else []
            for field, path in paths.items()
        }

    def _write(self, field: str, values: list[Secret]) -> None:
        path = self._directory / kept_secrets.FILES[field]
        if values:
            different = {_id(value): value for value in reversed(values)}
            files.write(path, BY_FIELD[field].text(list(reversed(different.values()))) + "\n")
        else:
            path.unlink()


def environment_file(settings: Settings) -> Path:
    return settings.state_dir / "restored.env"


def former_secrets(settings: Settings) -> Path:
    return settings.state_dir / "before_restore.json"


def _id(value: Secret) -> str:
    # A JWK Set must not repeat a kid.
    return str(value.get("kid") or value) if isinstance(value, dict) else derived_keys.split_time(value)[0]
