"""The secrets of a backup, which become files of the state directory along with its database."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from auth.operations.backup_files import BackupError, Manifest
from auth.operations.backups import read_jwks
from auth.settings import Settings, state
from auth.tokens.keys import split_time

# The variables that the service prefers to the files.
_VARIABLES = {
    "secret_key": "AUTH_SECRET_KEY",
    "service_role_key": "AUTH_SERVICE_ROLE_KEY",
    "jwt_keys.json": "AUTH_JWT_KEYS",
}


class RestoredSecrets:
    """`admit` adds the secrets to those in use; `settle` removes all others, or `withdraw` the added ones. In
    between, the service works with the old database and with the restored one.
    """

    def __init__(self, settings: Settings, manifest: Manifest) -> None:
        """Raises `BackupError` if the environment has another key."""
        self._directory = settings.state_dir
        self._manifest = manifest
        in_environment = [name for name, variable in _VARIABLES.items() if os.environ.get(variable)]
        self.kept_variables = [_VARIABLES[name] for name in in_environment]
        self.environment_file = self._directory / "restored.env" if manifest.environment else None
        restored: dict[str, list[Any]] = {
            "secret_key": manifest.secret_key,
            "service_role_key": manifest.service_role_key,
            "jwt_keys.json": manifest.jwt_keys,
        }
        self._restored = {
            name: values for name, values in restored.items() if values and name not in in_environment
        }
        known = {split_time(secret)[0] for secret in settings.secret_key}
        lacks_key = any(split_time(secret)[0] not in known for secret in manifest.secret_key)
        if lacks_key and "secret_key" in in_environment:
            raise BackupError(
                "AUTH_SECRET_KEY is set, and lacks a key of the backup. Unset it: the restore puts the keys"
                f" into {self._directory}."
            )

    def admit(self) -> None:
        state.make_directory(self._directory)
        self._former = {name: self._current(name) for name in self._restored}
        for name, values in self._restored.items():
            self._write(name, [*self._former[name], *values])

    def withdraw(self) -> None:
        for name, values in self._former.items():
            if values:
                self._write(name, values)
            else:
                (self._directory / name).unlink()

    def settle(self) -> None:
        for name, values in self._restored.items():
            self._write(name, values)
        if self.environment_file:
            lines = [f"{name}={_quoted(value)}\n" for name, value in self._manifest.environment.items()]
            self._replace(self.environment_file, "".join(lines))

    def _current(self, name: str) -> list:
        path = self._directory / name
        if not path.exists():
            return []
        if name == "jwt_keys.json":
            return read_jwks(str(path))
        return path.read_text().strip().split(",")

    def _write(self, name: str, values: list) -> None:
        by_id: dict[str, Any] = {}
        for value in values:
            # A JWK Set may have each kid once.
            by_id.setdefault(str(value.get("kid") or value) if isinstance(value, dict) else value, value)
        different = list(by_id.values())
        text = json.dumps({"keys": different}) if name == "jwt_keys.json" else ",".join(different)
        self._replace(self._directory / name, text + "\n")

    def _replace(self, path: Path, text: str) -> None:
        descriptor, draft = tempfile.mkstemp(dir=self._directory, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
