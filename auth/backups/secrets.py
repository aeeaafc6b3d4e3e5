"""The secrets of a backup, which become files of the state directory along with its database."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from auth import files
from auth.backups.archive import BackupError, Manifest
from auth.keys.rotation import text_of, values_of
from auth.settings import Settings, kept_secrets, name_of, state
from auth.tokens.keys import split_time


class RestoredSecrets:
    def __init__(self, settings: Settings, manifest: Manifest) -> None:
        """Raises `BackupError` if the environment lacks a key of the backup."""
        self._settings = settings
        self._environment = manifest.environment
        self.environment_file = settings.state_dir / "restored.env" if manifest.environment else None
        restored = {field: getattr(manifest, field) for field in kept_secrets.FILES}
        kept = [field for field in restored if os.environ.get(name_of(field))]
        self.kept_variables = [name_of(field) for field in kept]
        self._restored = {field: found for field, found in restored.items() if found and field not in kept}
        for field in kept:
            known = {_id(value) for value in values_of(field, getattr(settings, field))}
            lacking = {_id(value) for value in restored[field]} - known
            # All keys of stored rows are needed; of the others, the service accepts any that it knows.
            if lacking and (field == "secret_key" or len(lacking) == len(restored[field])):
                raise BackupError(
                    f"{name_of(field)} is set, and lacks a key of the backup. Unset it: the restore puts the"
                    f" keys into {settings.state_dir}."
                )

    @contextmanager
    def admitted(self, connection: Any) -> Iterator[None]:
        """Accept the keys of both databases inside of the context, and then those of the backup alone.

        After an exception, accept those of before; or still both if the connection broke, because which
        database has the name is unknown.
        """
        state.make_directory(self._settings.state_dir)
        former = {field: self._current(field) for field in self._restored}
        for field, values in self._restored.items():
            self._write(field, [*former[field], *values])
        try:
            yield
        except BaseException:
            for field in () if connection.closed else former:
                self._write(field, former[field])
            raise
        for field, values in self._restored.items():
            self._write(field, values)
        if self.environment_file:
            lines = [f"{name}={_quoted(value)}\n" for name, value in self._environment.items()]
            files.write(self.environment_file, "".join(lines))

    def _current(self, field: str) -> list[Any]:
        path = self._settings.state_dir / kept_secrets.FILES[field]
        return values_of(field, path.read_text().strip()) if path.exists() else []

    def _write(self, field: str, values: list[Any]) -> None:
        path = self._settings.state_dir / kept_secrets.FILES[field]
        if values:
            different = {_id(value): value for value in reversed(values)}
            files.write(path, text_of(field, list(reversed(different.values()))) + "\n")
        else:
            path.unlink()


def _id(value: Any) -> str:
    # A JWK Set may have each kid once.
    return str(value.get("kid") or value) if isinstance(value, dict) else split_time(value)[0]


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
