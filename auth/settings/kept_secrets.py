"""The secrets that the settings leave to the state directory."""

from pathlib import Path
from typing import Any, Literal

from auth.settings import checks, state
from auth.tokens import access_tokens

# Only the service makes secrets. A command that needs none ignores their absence.
Missing = Literal["make", "refuse", "ignore"]


def add(values: dict[str, Any], missing: Missing) -> list[str]:
    """Set the secrets that the environment does not, and return what is wrong with their files."""
    directory: Path = values["state_dir"]
    needed = [name for name in ("secret_key", "service_role_key") if not values[name]]
    if not values["jwt_keys"] and not values["jwt_secret"]:
        needed.append("jwt_keys")
    files = {name: directory / ("jwt_keys.json" if name == "jwt_keys" else name) for name in needed}
    try:
        if missing == "make":
            for name, path in files.items():
                state.make_once(path, access_tokens.new_jwk_set if name == "jwt_keys" else state.new_secret)
        absent = [name for name, path in files.items() if not path.exists()]
    except OSError as error:
        return [state.unusable(directory, error)]
    if absent and missing == "refuse":
        files_of = ", ".join(files[name].name for name in absent)
        return [
            f"AUTH_STATE_DIR: {directory} has no {files_of}. Set it to the state directory of the service."
        ]
    problems = []
    for name in (name for name in needed if name not in absent):
        text, problem = _checked(
            files[name], checks.signing_jwk_set if name == "jwt_keys" else _check_secrets
        )
        values[name] = text if name == "jwt_keys" else tuple(text.split(","))
        problems += [f"{files[name]}: {problem}"] if problem else []
    return problems


def _check_secrets(text: str) -> None:
    for secret in text.split(","):
        checks.secret(secret)


def _checked(path: Path, check: checks.Check) -> tuple[str, str]:
    """Return the content of a file and what is wrong with it."""
    try:
        text = path.read_text().strip()
        check(text)
    except OSError as error:
        return "", f"Cannot be read: {error.strerror}."
    except UnicodeDecodeError:
        return "", "Must be text."
    except ValueError as error:
        return "", checks.sentence(error)
    return text, ""
