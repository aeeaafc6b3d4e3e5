"""The texts in every language: `pages/`, `messages/`, and `console/`, which is in English only.

A catalogue maps names such as `sign_in.heading` to the strings of a language. Each is a Jinja template. Those
of the pages write numbers as their language does.
"""

import functools
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from babel.numbers import format_decimal
from jinja2 import Environment, StrictUndefined, Template, pass_context, select_autoescape
from jinja2.runtime import Context

Catalogue = Mapping[str, str]
DEFAULT = "en"
DIRECTORY = Path(__file__).parent


def number(value: int, language: str) -> str:
    """Return a number with the separators of a language of the pages, such as `10,000`."""
    return str(value) if value < 1000 else format_decimal(value, locale=language)


@pass_context
def _written(context: Context, value: object) -> object:
    return number(value, context["language"]) if isinstance(value, int) else value


# Texts for people are escaped here, the console's labels only where a page shows them.
_environments = {
    "pages": Environment(autoescape=True, undefined=StrictUndefined, finalize=_written),
    "messages": Environment(autoescape=True, undefined=StrictUndefined),
    "console": Environment(autoescape=select_autoescape(default_for_string=False)),
}


@functools.cache
def built_in(subject: str) -> dict[str, Catalogue]:
    """Return the catalogues of `pages`, `messages` or `console` by language."""
    return {path.stem: _read(path) for path in sorted((DIRECTORY / subject).glob("*.toml"))}


def with_own(folder: Path) -> dict[str, Catalogue]:
    """Return the catalogues of messages, changed and extended with those of a folder. Raises `ValueError`."""
    catalogues = dict(built_in("messages"))
    names = catalogues[DEFAULT].keys()
    for path in sorted(folder.glob("*.toml")):
        try:
            changes = _read(path)
        except (ValueError, OSError) as error:
            raise ValueError(f"{path.name}: {error}") from None
        if not all(isinstance(text, str) and name.count(".") == 2 for name, text in changes.items()):
            raise ValueError(f"{path.name}: must contain strings in tables [channel.kind]")
        if unknown := changes.keys() - names:
            raise ValueError(f"{path.name}: there is no string {min(unknown)}")
        catalogues[path.stem] = {**catalogues.get(path.stem, {}), **changes}
        # Only our own texts use `undo`.
        needed = {name for name in names if not name.endswith(".undo")}
        if missing := needed - catalogues[path.stem].keys():
            raise ValueError(f"{path.name}: the string {min(missing)} is missing")
    return catalogues


@functools.cache
def string(subject: str, language: str, name: str) -> Template:
    """Return a string of a built-in catalogue. Raises `KeyError`."""
    # Compile a text at its first use: all 1,500 texts of the pages would add a second to each start.
    text = built_in(subject)[language][name]
    return _environments[subject].from_string(text, globals={"language": language})


def _read(path: Path) -> Catalogue:
    return dict(_strings(tomllib.loads(path.read_text(encoding="utf-8")), ()))


def _strings(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the strings of a table by name.

    A table of tables shares its strings with them, and its name is not part of theirs:
    `[email.undoable.passkey_added]` holds those of `email.passkey_added`.
    """
    inner = {name: value for name, value in table.items() if isinstance(value, dict)}
    shared = {name: value for name, value in table.items() if name not in inner}
    if inner and shared and path:
        for name, value in inner.items():
            yield from _strings(shared | value, (*path[:-1], name))
        return
    for name, value in inner.items():
        yield from _strings(value, (*path, name))
    yield from ((".".join((*path, name)), value) for name, value in shared.items())
