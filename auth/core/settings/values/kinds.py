"""The kinds of settings, which read and check the variable of each field of `Settings`."""

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast, overload

from environs import Env
from marshmallow.validate import OneOf, Range
from psycopg2.extensions import parse_dsn

from auth.core.settings.values import encryption, texts, urls, validators
from auth.core.settings.values.validators import Validator, validator
from auth.core.tokens import claim_rules

T = TypeVar("T")


def _hidden(value: object) -> str:
    if isinstance(value, tuple) and len(value) > 1:
        return f"hidden: {len(value)} secrets"
    return "hidden" if value else ""


_NONE = ("0", "none")
_SHOWN_OF_DATABASES = ("host", "hostaddr", "port", "dbname", "sslmode", "target_session_attrs")
# Metadata of a field whose value the console hides.
SECRET = {"shows": _hidden, "is_secret": True}
_MOST_SHOWN = 20


def setting(
    read: Callable[[Env, str], T], *, may_be_empty: bool = False, texts_of: texts.Texts = texts.whole
) -> T:
    """Declare a setting by the function that reads its variable; `Env` collects the errors.

    `load` checks what `texts_of` yields: the texts in its value that are used as they stand.
    """
    declared: T = dataclasses.field(metadata={"read": read, "may_be_empty": may_be_empty, "texts": texts_of})
    return declared


def shown_as(shows: Callable[[Any], str], declared: T, **metadata: object) -> T:
    own = cast("dataclasses.Field", declared).metadata
    hidden: T = dataclasses.field(metadata={**own, "shows": shows, **metadata})
    return hidden


def shown(field: dataclasses.Field, value: object) -> str:
    """Return the part of a setting's value that administrators may see; empty if it is unset."""
    return field.metadata.get("shows", _text)(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _place(value: str | None) -> str:
    """Return scheme, host and port of a URL, even if its password contains an unencoded @."""
    scheme, separator, rest = (value or "").partition("://")
    return scheme + separator + re.split("[/?#]", rest.rpartition("@")[2])[0]


# Until 0.9.0, secrets that were valid before their text was checked are read with a warning.
secret = partial(shown_as, _hidden, is_secret=True, is_lenient=True)
# The rest of the URL may contain a password.
secret_url = partial(shown_as, _place, is_secret=True)


def database(url: str) -> str:
    """Return the host of a database, as libpq defines it: a host name, or the directory of a socket."""
    parts = parse_dsn(url)
    return " ".join(f"{name}={parts[name]}" for name in _SHOWN_OF_DATABASES if name in parts)


def database_url() -> str:
    """Declare the URL of a Postgres, empty if it is unset."""
    check = validator(validators.postgres_url)

    def read(env: Env, name: str) -> str:
        url = env.str(name, "", validate=check)
        return encryption.encrypted(url) if url else ""

    return shown_as(database, setting(read), is_secret=True)


def document(check: Validator) -> str:
    """Declare JSON, or the path of a file with it, empty if it is unset."""
    return setting(
        lambda env, name: env.str(name, "", validate=validator(check)) or "", texts_of=texts.document
    )


@overload
def text(default: str, *each: Validator) -> str: ...
@overload
def text(default: None, *each: Validator) -> str | None: ...
def text(default: str | None, *each: Validator) -> str | None:
    return setting(lambda env, name: env.str(name, default, validate=validator(*each)))


def url(*each: Validator) -> str:
    """Declare the URL of a website, empty if it is unset."""
    check = validator(*each)
    return setting(lambda env, name: urls.in_lower_case(env.str(name, "", validate=check) or ""))


@overload
def path(default: str) -> Path: ...
@overload
def path(default: None) -> Path | None: ...
def path(default: str | None) -> Path | None:
    def read(env: Env, name: str) -> Path | None:
        place = env.str(name, default) or default
        return Path(place).resolve() if place else None

    return setting(read)


def number(default: int, least: int, most: int, unit: str = "") -> int:
    problem = f"Must be a whole number{unit} from {least} to {most}."
    check = Range(least, most, error=problem)
    options: dict[str, Any] = {"validate": check, "error_messages": {"invalid": problem}}
    return setting(lambda env, name: env.int(name, default, **options), texts_of=texts.none)


def parsed(parse: Callable[[str], T], default: str = "", texts_of: texts.Texts = texts.none) -> T:
    """Declare a setting by the function that parses its text. It raises `ValueError`."""
    check = validator(parse)
    return setting(
        lambda env, name: parse(env.str(name, default, validate=check) or default), texts_of=texts_of
    )


def number_or_none(default: int, least: int, most: int, unit: str) -> int | None:
    """Declare a number that `none`, or 0, turns off."""

    def parse(text: str) -> int | None:
        if text in _NONE:
            return None
        if not (text.isdecimal() and least <= int(text) <= most):
            raise ValueError(f"must be a whole number{unit} from {least} to {most}, or none")
        return int(text)

    return shown_as(lambda value: "none" if value is None else str(value), parsed(parse, str(default)))


def flag(default: bool | None) -> bool:
    """Declare a setting of true or false. `combined` replaces None by a default that depends on settings."""
    return setting(lambda env, name: cast(bool, validators.flag(env, name, default)), texts_of=texts.none)


def choice(default: str | None, *choices: str) -> str:
    """Declare one of some words. `combined` replaces None by a default that depends on settings."""
    *first, last = filter(None, choices)
    check = validator(OneOf(choices, error=f"Must be {', '.join(first)} or {last}."))
    return setting(lambda env, name: cast(str, env.str(name, default, validate=check)), texts_of=texts.none)


def list_of(
    default: tuple[str, ...] | None,
    check: Validator,
    *,
    may_be_empty: bool = True,
    each: Callable[[str], str] = str.strip,
) -> tuple[str, ...]:
    def check_all(values: list[str]) -> None:
        for value in values:
            check(value)

    options: dict[str, Any] = {"subcast": each, "validate": validator(check_all)}

    def read(env: Env, name: str) -> tuple[str, ...]:
        values = env.list(name, default and list(default), **options)
        return cast("tuple[str, ...]", default) if values is None else tuple(values)

    return setting(read, may_be_empty=may_be_empty, texts_of=texts.parts)


def some_of(choices: tuple[str, ...], default: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """Declare a list of some of the choices, by default of all."""
    return list_of(default or choices, OneOf(choices, error="Must be one or more of {choices}."))


def domains() -> frozenset[str]:
    """Declare domains of addresses: a list, or the path of a file with a line each."""

    def shows(domains: frozenset[str]) -> str:
        return ", ".join(sorted(domains)) if len(domains) <= _MOST_SHOWN else f"{len(domains):,} domains"

    return shown_as(shows, parsed(validators.domains))


def document_hosts() -> tuple[str, ...]:
    return shown_as(lambda hosts: ", ".join(hosts) or "none", parsed(validators.document_hosts, "none"))


def api_scopes() -> Mapping[str, tuple[str, ...]]:
    """Declare the scopes of APIs, as a JSON object of their URIs."""

    def shows(scopes: Mapping[str, tuple[str, ...]]) -> str:
        return json.dumps({uri: " ".join(each) for uri, each in scopes.items()}) if scopes else ""

    return shown_as(shows, parsed(validators.api_scopes))


def claims_of(rules: claim_rules.Rules) -> claim_rules.Paths:
    """Declare claims that are added to tokens, as a JSON object of their paths."""
    return shown_as(
        lambda paths: json.dumps(paths) if paths else "", parsed(partial(claim_rules.read, rules=rules))
    )


rate_limits = partial(parsed, validators.rate_limits)
rate_limit = partial(parsed, validators.rate_limit)


def age(default: str) -> int | None:
    """Declare a number of seconds, `always` (0) or `never` (None)."""
    words = {"always": 0, "never": None}

    def parse(text: str) -> int | None:
        if text not in words and not re.fullmatch("[0-9]{1,9}", text):
            raise ValueError("must be a whole number of seconds, always or never")
        return words[text] if text in words else int(text)

    return shown_as(lambda age: {0: "always", None: "never"}.get(age, str(age)), parsed(parse, default))
