"""Strict field types for bodies and queries, without conversion: "true" and 1 are not booleans."""

import base64
import functools
import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError
from marshmallow.fields import Function

from auth.core import addresses, json_bodies, normalize
from auth.core.passwords import hashing
from auth.rules.organizations import LEAST_AGE, MOST_AGE
from auth.web import g
from auth.web.context import latchkey

MAX_TEXT = 2048
_MOST_ITEMS = 100
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST_BAN = 1000 * 366 * 86_400
_UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_RESERVED_ROLES = {"service_role", "supabase_admin", "anon", "postgres"}


class Requirement(str):
    """A requirement that a field does not meet, with its own key of `ERRORS`, and the length of a name."""

    key = "validation_failed"
    most = ""


def _field(load: Callable[[object], object]) -> Callable[..., Function]:
    return functools.partial(Function, deserialize=load)


def _text(value: object, most: int = MAX_TEXT) -> str:
    if not isinstance(value, str):
        raise ValidationError("must be a string")
    if len(value) > most:
        raise ValidationError(f"must be at most {most} characters")
    return value


def _checked(is_valid: Callable[[Any], object], requirement: str) -> Callable[..., Function]:
    def load(value: object) -> object:
        if not is_valid(value):
            raise ValidationError(requirement)
        return value

    return _field(load)


def _matching(pattern: str, requirement: str) -> Callable[..., Function]:
    return _checked(lambda value: re.fullmatch(pattern, _text(value)), requirement)


def _whole(least: int, most: int) -> Callable[..., Function]:
    requirement = f"must be a whole number from {least} to {most}"
    return _checked(lambda value: type(value) is int and least <= value <= most, requirement)


def _list_of(is_valid: Callable[[str], object], what: str) -> Callable[..., Function]:
    return _checked(
        lambda value: (
            isinstance(value, list)
            and len(value) <= _MOST_ITEMS
            and all(isinstance(item, str) and is_valid(item) for item in value)
        ),
        f"must be a list of at most {_MOST_ITEMS} {what}",
    )


def _object(most: int) -> Callable[..., Function]:
    def is_small(value: object) -> bool:
        if not isinstance(value, dict):
            raise ValidationError("must be an object")
        return len(json.dumps(value, ensure_ascii=False).encode()) <= most * 1024

    return _checked(is_small, f"must be at most {most} KiB as JSON")


def _address(canonical: Callable[[str], str]) -> Callable[..., Function]:
    def load(value: object) -> str:
        try:
            return canonical(_text(value))
        except addresses.InvalidAddress as error:
            requirement = Requirement(error)
            requirement.key = f"{error.kind}.validation_failed"
            raise ValidationError(requirement) from None

    return _field(load)


def _name(value: object, most: int, *, may_be_empty: bool = False) -> str:
    if may_be_empty and not _text(value).strip():
        return ""
    name = normalize.name(_text(value), most)
    if name is None:
        requirement = Requirement(f"must be 1 to {most} visible characters")
        requirement.most = str(most)
        raise ValidationError(requirement)
    return name


def _json_text(value: object, most: int = 16_384) -> dict[str, Any]:
    try:
        return json_bodies.decode(_text(value, most).encode())
    except json_bodies.InvalidJson as error:
        raise ValidationError(str(error).removeprefix("the body ")) from None


def _code(value: object, most: int = MAX_TEXT) -> str:
    return normalize.code(_text(value, most))


def _timestamp(value: object) -> datetime:
    with suppress(ValueError, OverflowError):
        if isinstance(value, str) and len(value) <= MAX_TEXT:
            moment = datetime.fromisoformat(value)
            if moment.tzinfo:
                return moment.astimezone(UTC)
    raise ValidationError("must be an ISO 8601 timestamp with a time zone")


def _ban_duration(value: object) -> float:
    if value in ("permanent", "none"):
        return math.inf if value == "permanent" else 0.0
    # [0-9], because \d matches digits of other scripts. Bounded, because Postgres' intervals overflow.
    form = r"([0-9]{1,12}(\.[0-9]{1,9})?(ms|[smhdw]))+"
    if not (isinstance(value, str) and len(value) <= MAX_TEXT and re.fullmatch(form, value)):
        raise ValidationError(
            "must be a duration in ms, s, m, h, d, w such as 1h30m or 1.5h, or permanent, or null"
        )
    parts = re.findall(r"([0-9.]+)(ms|[smhdw])", value)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 0 < seconds <= _LONGEST_BAN:
        raise ValidationError("must be more than 0 and at most 1000 years, or permanent")
    return seconds


def is_uuid(text: str) -> bool:
    return re.fullmatch(_UUID, text) is not None


Text = _field(_text)
LongText = _field(functools.partial(_text, most=64 * 1024))
ShortText = _field(functools.partial(_text, most=256))
# Escaping turns one character into up to twelve, and a QR code of at most 2,331 has the text twice.
Issuer = _field(functools.partial(_text, most=64))
ShortTexts = _list_of(lambda item: len(item) <= 256, "short strings")
Texts = _list_of(lambda item: len(item) <= MAX_TEXT, f"strings of at most {MAX_TEXT} characters")
NonEmptyText = _matching(r"(?s:.+)", "must not be empty")
ProviderIdentifier = _matching(
    r"custom:[a-z0-9][a-z0-9_-]{0,63}", "must be custom: and lower-case letters, digits, _ and -"
)
ProviderName = _field(functools.partial(_name, most=40))
ClientId = _matching(r"[!-~]{1,256}", "must be the client ID that the provider issued")
ClientSecret = _matching(r"[ -~]{1,1024}", "must be the secret that the provider issued")
ShortTextsByName = _checked(
    lambda value: (
        isinstance(value, dict)
        and len(value) <= 10
        and all(
            len(name) <= 64 and isinstance(text, str) and len(text) <= 256 for name, text in value.items()
        )
    ),
    "must be an object of at most 10 short strings",
)
Flag = _checked(lambda value: isinstance(value, bool), "must be true or false")
NotTrue = _checked(lambda value: value is False, "must be false")
Email = _address(addresses.canonical_email)
Phone = _address(addresses.canonical_phone)
TypedText = _field(lambda value: normalize.trimmed(_text(value)))
TypedEmail = _address(addresses.canonical_typed_email)
TypedPhone = _address(addresses.canonical_typed_phone)
# Without separators: users of applications type codes too.
Code = _field(_code)
ShortCode = _field(functools.partial(_code, most=256))
# Items of a form's field, one per line or separated by spaces.
TypedItems = _field(lambda value: _text(value, 64 * 1024).split())
JsonText = _field(_json_text)
# 8 KiB, indented.
MetadataText = _field(functools.partial(_json_text, most=64 * 1024))
Name = _field(functools.partial(_name, most=80))
OptionalName = _field(functools.partial(_name, most=80, may_be_empty=True))
# The database limits the size, which a merge may also exceed.
Metadata = _checked(lambda value: isinstance(value, dict), "must be an object")
# Small, or callers without a credential could fill the disk.
StrangersMetadata = _object(1)
# Attestations with certificates take a few KiB.
Credential = _object(64)
Counter = _whole(0, 2**32 - 1)
FriendlyName = _field(functools.partial(_name, most=120))
OptionalFriendlyName = _field(functools.partial(_name, most=256, may_be_empty=True))
Role = _checked(
    lambda value: re.fullmatch(r"[a-z][a-z0-9_]{0,31}", _text(value)) and value not in _RESERVED_ROLES,
    "must be a lower-case word other than " + ", ".join(sorted(_RESERVED_ROLES)),
)
# The tables have the same constraints.
MemberRole = _matching(
    r"[a-z][a-z0-9_-]{0,31}", "must be a lower-case word of at most 32 letters, digits, _ and -"
)
Slug = _matching(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "must be 1 to 63 lower-case letters, digits and -")
OrganizationName = _field(functools.partial(_name, most=100))
ClientName = _field(functools.partial(_name, most=1024, may_be_empty=True))
# RFC 6749, section 3.3.
_SCOPE = r"[!#-\[\]-~]{1,64}"
Scopes = _list_of(lambda item: re.fullmatch(_SCOPE, item), "scopes")
# The form of `ApiKeyMacs.macs`.
KeyMac = _matching(r"[0-9a-f]{72}", "must be 72 hexadecimal digits")
# Up to twenty words, with a meaning for applications.
KeyScopes = _checked(
    lambda value: (
        isinstance(value, list)
        and len(value) <= 20
        and all(isinstance(item, str) and re.fullmatch(_SCOPE, item) for item in value)
        and len(set(value)) == len(value)
    ),
    "must be a list of at most 20 different scopes",
)
Lifetime = _whole(60, 10 * 365 * 86_400)
TokenLifetime = _whole(30, 86_400)
SessionAge = _whole(LEAST_AGE, MOST_AGE)
Timestamp = _field(_timestamp)
# The format of a form's field in browsers, in UTC.
Minute = _field(lambda value: _timestamp(f"{value}Z"))
Uuid = _matching(_UUID, "must be a UUID")
Uuids = _list_of(is_uuid, "UUIDs")
BanDuration = functools.partial(Function, deserialize=_ban_duration, allow_none=True)
# RFC 7636, sections 4.2 and 4.1.
CodeChallenge = _matching(
    r"[A-Za-z0-9_-]{43}", "must be the SHA-256 of the verifier in base64url, 43 characters"
)
CodeVerifier = _matching(r"[A-Za-z0-9\-._~]{43,128}", "must be 43 to 128 letters, digits or -._~")


@_field
def Groups(value: object) -> list[str]:
    items = list(filter(str.strip, _text(value).split(",")))
    names = [name for each in items if (name := normalize.name(each.strip(), 64))]
    if len(names) < len(items):
        raise ValidationError("must be names of at most 64 visible characters with commas between them")
    return [*dict.fromkeys(names)]


@_field
def TypedCode(value: object) -> str:
    """Return the digits of a code as people type it: `123 456`."""
    digits = _code(value)
    if not re.fullmatch("[0-9]{6}", digits):
        raise ValidationError("must be six digits")
    return digits


@_field
def TypedSessionAge(value: object) -> int | None:
    """Return the seconds of a form, None for 0."""
    seconds = _text(value)
    if seconds == "0":
        return None
    if re.fullmatch("[0-9]{1,9}", seconds) and LEAST_AGE <= int(seconds) <= MOST_AGE:
        return int(seconds)
    raise ValidationError(f"must be 0, or a whole number from {LEAST_AGE} to {MOST_AGE}")


@_field
def Password(value: object) -> str:
    # Check the length first: normalizing a megabyte takes long.
    if isinstance(value, str) and len(value) <= hashing.MAX_BYTES:
        password = hashing.normalize(value)
        if len(password.encode()) <= hashing.MAX_BYTES:
            return password
    raise ValidationError(f"must be a string of at most {hashing.MAX_BYTES} bytes")


@_field
def Base64Url(value: object) -> bytes:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text) or len(text) % 4 == 1:
        raise ValidationError("must be base64url without padding")
    return base64.urlsafe_b64decode(f"{text}==")


@_field
def Channel(value: object) -> str:
    """Return the channel for a phone. Only the hook interprets values other than `sms`."""
    if not latchkey.settings.hook_send_sms and value != "sms":
        raise ValidationError("must be sms")
    name = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name):
        raise ValidationError("must be a word of at most 32 letters, digits, _ or -")
    return name


def Choice(*choices: str, **kwargs: object) -> Function:
    requirement = "must be one of " + ", ".join(filter(None, choices))
    return _checked(lambda value: _text(value) in choices, requirement)(**kwargs)


def Choices(*choices: str, **kwargs: object) -> Function:
    """A list of choices. It is loaded in their order, without duplicates."""

    def load(value: object) -> list[str]:
        if not (isinstance(value, list) and value and all(item in choices for item in value)):
            raise ValidationError("must be a list of at least one of " + ", ".join(choices))
        return [choice for choice in choices if choice in value]

    return _field(load)(**kwargs)


def PageNumber() -> Function:
    """The number of a page, of a query. Empty means the first."""
    # The offset of the last page must fit into a bigint.
    most = 2**31 - 1

    def load(value: str) -> int:
        number = _positive(value or "1")
        if number is None or number > most:
            raise ValidationError(f"must be a whole number from 1 to {most}")
        return number

    return Function(deserialize=load, load_default=1)


def PageSize(default: int, most: int, most_in_dialect: int) -> Function:
    """The size of a page, of a query. Empty means `default`; more than `most` means `most`."""

    def load(value: str) -> int:
        size = _positive(value or str(default))
        if size is None:
            raise ValidationError("must be a whole number of at least 1")
        return min(size, most_in_dialect if g.in_dialect else most)

    return Function(deserialize=load, load_default=default)


def _positive(text: str) -> int | None:
    # int() would also accept other scripts' digits, signs, spaces and underscores.
    return int(text) if re.fullmatch(r"[0-9]{1,20}", text) and int(text) >= 1 else None
