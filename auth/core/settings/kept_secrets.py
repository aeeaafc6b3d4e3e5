"""Secrets in files of the state directory, for those that no setting contains."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from auth.core.files import exposure
from auth.core.settings import state
from auth.core.settings.values import Values, texts, validators
from auth.core.tokens import signing_keys

# The service ignores missing files until it knows the database. Commands that need no secrets ignore them.
Missing = Literal["refuse", "ignore"]
_RESTORE = "Restore it from a backup, or copy it from another node."
FILES = {"secret_key": "secret_key", "service_role_key": "service_role_key", "jwt_keys": "jwt_keys.json"}


def add(values: Values, missing: Missing) -> list[str]:
    """Set the secrets that are not in the environment, and return the problems of their files."""
    directory: Path = values["state_dir"]
    needed = [name for name in ("secret_key", "service_role_key") if not values[name]]
    if not values["jwt_keys"] and not values["jwt_secret"]:
        needed.append("jwt_keys")
    files = {name: directory / FILES[name] for name in needed}
    values["key_files"] = dict(files)
    if values["jwt_keys"] and not signing_keys.is_jwk_set(values["jwt_keys"]):
        values["key_files"]["jwt_keys"] = Path(values["jwt_keys"]).resolve()
    try:
        absent = [name for name, path in files.items() if not path.exists()]
    except OSError as error:
        return [state.unusable(directory, error)]
    if absent and missing == "refuse":
        if len(absent) < len(files) or (directory / "postgres").exists():
            return [f"{files[name]}: Is missing. {_RESTORE}" for name in absent]
        files_of = ", ".join(files[name].name for name in absent)
        return [
            f"AUTH_STATE_DIR: {directory} has no {files_of}. Set it to the state directory of the service,"
            " or run this in the directory where the service was started."
        ]
    present = {name: path for name, path in values["key_files"].items() if name not in absent}
    secrets, problems = read(present, values["jwt_secret"])
    values |= secrets
    return problems


def make(files: Mapping[str, Path]) -> None:
    """Make the secrets whose files are missing. Raises `OSError`."""
    for name, path in files.items():
        state.make_once(path, signing_keys.new_jwk_set if name == "jwt_keys" else state.new_secret)


def read(files: Mapping[str, Path], jwt_secret: str | None) -> tuple[Values, list[str]]:
    """Return secrets by field, and problems of files. Without `jwt_secret`, a key must be able to sign."""
    jwk_set = validators.jwk_set if jwt_secret else validators.signing_jwk_set
    secrets: Values = {}
    problems = []
    for name, path in files.items():
        text = ""
        try:
            text = text_of(name, path)
            # A mark makes no secret longer.
            if unmarked := text if name == "jwt_keys" else text.removeprefix(texts.MARK):
                check(name, unmarked, path, jwk_set)
            else:
                problems.append(f"{path}: Is empty. {_RESTORE}")
        except OSError as error:
            problems.append(f"{path}: Cannot be read: {error.strerror}. Let the user of the service read it.")
        except UnicodeDecodeError:
            problems.append(f"{path}: Is not text. {_RESTORE}")
        except ValueError as error:
            problem = validators.sentence(error)
            problems.append(f"{path}: {problem}" + (f" {_RESTORE}" if problem.endswith(".") else ""))
        secrets[name] = text if name == "jwt_keys" else _values(name, text)
    return secrets, problems


def text_of(name: str, path: Path) -> str:
    """Return the text of a field's file. Raises `OSError` and `UnicodeDecodeError`."""
    text = path.read_text(encoding="utf-8").strip()
    return text.removeprefix(texts.MARK) if name == "jwt_keys" else text


def _values(name: str, text: str) -> tuple[str, ...]:
    """Return the secrets of a file.

    A mark is part of a secret key: what a node has sealed opens with it alone, and nodes must not take a key
    without it for the same. No client can send it, so a service role key is known without it too.
    """
    values = text.split(",")
    if name == "secret_key" or not text.startswith(texts.MARK):
        return tuple(values)
    return (values[0].removeprefix(texts.MARK), *values)


def check(name: str, text: str, path: Path, jwk_set: validators.Validator = validators.jwk_set) -> None:
    """Raise `ValueError` if the text of a field's file is unusable, or other users can read the file."""
    if name == "jwt_keys":
        jwk_set(text)
    else:
        check_secrets(name, text)
    is_secret = name != "jwt_keys" or signing_keys.has_secrets(text)
    if is_secret and (problem := exposure(path)):
        raise ValueError(problem)


def check_secrets(name: str, text: str) -> None:
    """Raise `ValueError` if the secrets of a field are unusable."""
    for secret in text.split(","):
        (validators.timed_secret if name == "secret_key" else validators.secret)(secret)
