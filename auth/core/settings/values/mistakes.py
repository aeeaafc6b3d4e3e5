"""Finds mistakes in the environment and in `.env` that no check of a setting finds."""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from environs import Env, EnvValidationError

from auth.core.settings.providers import PROVIDER_PREFIX

# Set by Kubernetes and Docker links for a service called "auth".
_INJECTED_BY_PLATFORMS = re.compile(
    r"AUTH_((SERVICE_HOST|SERVICE_PORT.*|PORT_.*|NAME|ENV_.*)=.*|PORT=(tcp|udp)://.*)", re.DOTALL
)
# The message of environs for a missing variable of a provider, and ours.
_NOT_SET = "Environment variable not set."
_NEEDED = "Is missing, but other settings of its provider need it. Set it, or unset those."
# Without a default, such as ${NAME:-none}.
_REFERENCE = re.compile(r"\$\{([^}:]+)\}")
# What is meant as the name of a variable. Anything else may be a part of a secret.
_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
# The least similarity of an unknown name and the setting that we suggest.
_CLOSE = 0.85


def malformed_lines(path: Path) -> list[str]:
    """Return the malformed lines of `.env`, which python-dotenv skips, without their values."""
    name = path.resolve()
    try:
        with path.open(encoding="utf-8") as file:
            lines = list(parse_stream(file))
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        return [f"{name}: Must be text in UTF-8."]
    except OSError as error:
        return [f"{name}: Cannot be read: {error.strerror}. Remove it, or let this user read it."]
    # The environment, to which the lines are added, cannot have it.
    if nul := [line for line in lines if "\0" in line.original.string]:
        return [f"{name}: Line {line.original.line} has a NUL byte. Remove it." for line in nul]
    # Comments have neither a name nor a value.
    malformed = [line for line in lines if line.error or (line.key is not None and line.value is None)]
    return [f"{name}: Line {line.original.line} must be NAME=value." for line in malformed]


def problems_of(env: Env) -> dict[str, str]:
    """Return the problems by the name of the variable, without values, which may be secrets."""
    try:
        env.seal()
    except EnvValidationError as error:
        messages: Mapping[str, list[str]] = dict(error.error_messages)  # type: ignore[arg-type]
        return {name: _NEEDED if _NOT_SET in texts else str(texts[0]) for name, texts in messages.items()}
    return {}


def lost_references(path: Path, environment: Mapping[str, str], public: Collection[str]) -> tuple[str, ...]:
    """Return a line for each variable of `.env` that refers to one that is not set. It quotes only values of
    `public`.

    python-dotenv leaves that out, within quotes too, so that a password may lose a part.
    """
    lines, names = [], set(environment)
    for name, text in dotenv_values(path, interpolate=False).items():
        for other in _REFERENCE.findall(text or ""):
            if other not in names and name not in environment:
                is_open = _NAME.fullmatch(other) or (name in public and other.isprintable())
                lines.append(
                    f"{name}: Refers to ${{{other if is_open else '…'}}}, which is not set above it, so that"
                    f" this part is left out. Set {other if is_open else 'that variable'}, or give {name} in"
                    " the environment, where nothing is replaced."
                )
        names.add(name)
    return tuple(lines)


def unknown(environment: Mapping[str, str | None], names: Sequence[str]) -> tuple[str, ...]:
    """Return a line for each unknown variable that looks like a setting."""
    # Names are compared without the prefix, which all of them share.
    settings, lines = {name.removeprefix("AUTH_"): name for name in names}, []
    for name in sorted(set(environment) - set(names)):
        if name.endswith("_FILE") and (setting := name.removesuffix("_FILE")) in names:
            lines.append(f"{name} is not a setting, and its file is not read. Set {setting} to the value.")
            continue
        if not name.startswith("AUTH_") or name.startswith(PROVIDER_PREFIX):
            continue
        if not _INJECTED_BY_PLATFORMS.fullmatch(f"{name}={environment[name]}"):
            nearest = difflib.get_close_matches(name.removeprefix("AUTH_"), settings, 1, _CLOSE)
            hint = f"Did you mean {settings[nearest[0]]}?" if nearest else "Correct its name, or remove it."
            lines.append(f"{name} is not a setting. {hint}")
    return tuple(lines)
