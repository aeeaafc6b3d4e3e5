"""Strict field types for bodies and queries: "true" and 1 are not booleans, and nothing is converted."""

import math
import re
import uuid
from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError
from marshmallow.fields import Field

from auth import addresses
from auth.passwords import hashing

# Characters: more than any token or address has.
MAX_TEXT = 2048
# The offset of the last page must fit into a bigint.
MAX_PAGE = 2**31
PAGE_SIZE = 20
MAX_PAGE_SIZE = 100
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST_BAN = 1000 * 366 * 86_400
_ROLE = re.compile(r"[a-z][a-z0-9_]{0,31}")
_RESERVED_ROLES = {"service_role", "supabase_admin", "anon", "postgres"}


class Text(Field):
    """A string of bounded length."""

    most = MAX_TEXT

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            raise ValidationError("must be a string")
        if len(value) > self.most:
            raise ValidationError(f"must be at most {self.most} characters")
        return value


class LongText(Text):
    """A string as long as an access token may be."""

    most = 64 * 1024


class Flag(Field):
    """true or false."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise ValidationError("must be true or false")
        return value


class Email(Text):
    """An email address; loads as its canonical form."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        try:
            return addresses.canonical_email(super()._deserialize(value, attr, data, **kwargs))
        except addresses.InvalidAddress as error:
            raise ValidationError(str(error)) from None


class Phone(Text):
    """A phone number; loads as E.164."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        try:
            return addresses.canonical_phone(super()._deserialize(value, attr, data, **kwargs))
        except addresses.InvalidAddress as error:
            raise ValidationError(str(error)) from None


class Password(Field):
    """A password of at most 1,024 bytes; loads in NFC. The policy is checked elsewhere."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        # Check the length first: normalizing a megabyte takes long.
        if not isinstance(value, str) or len(value) > hashing.MAX_BYTES:
            raise ValidationError(f"must be a string of at most {hashing.MAX_BYTES} bytes")
        password = hashing.normalize(value)
        if len(password.encode()) > hashing.MAX_BYTES:
            raise ValidationError(f"must be a string of at most {hashing.MAX_BYTES} bytes")
        return password


class Metadata(Field):
    """A JSON object. Domains of the database limit its size, also after a merge."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValidationError("must be an object")
        return value


class Role(Text):
    """A role that a user may have."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        role = super()._deserialize(value, attr, data, **kwargs)
        if not _ROLE.fullmatch(role) or role in _RESERVED_ROLES:
            raise ValidationError(
                "must be a lower-case word other than " + ", ".join(sorted(_RESERVED_ROLES))
            )
        return role


class Timestamp(Field):
    """An ISO 8601 timestamp with a time zone; loads as a datetime in UTC."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> datetime:
        problem = ValidationError("must be an ISO 8601 timestamp with a time zone")
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            raise problem
        try:
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is None:
                raise problem
            return moment.astimezone(UTC)
        # At the ends of the calendar, the conversion to UTC overflows.
        except (ValueError, OverflowError):
            raise problem from None


class Uuid(Text):
    """A UUID in its canonical form."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not is_uuid(text):
            raise ValidationError("must be a UUID")
        return text


class BanDuration(Field):
    """`24h`, `1h30m`, `permanent`, `none` or null; loads as seconds, infinite or 0 for the last three."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_none=True, **kwargs)

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        return super().deserialize("none" if value is None else value, attr, data, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:
        if value in ("permanent", "none"):
            return math.inf if value == "permanent" else 0.0
        # [0-9], because \d matches digits of other scripts; and a limit, because Postgres' intervals
        # overflow.
        if (
            not isinstance(value, str)
            or len(value) > MAX_TEXT
            or not re.fullmatch(r"([0-9]{1,12}(ms|[smhdw]))+", value)
        ):
            raise ValidationError(
                "must be a duration in ms, s, m, h, d, w such as 1h30m, or permanent, or null"
            )
        seconds = sum(
            int(number) * _UNITS[unit] for number, unit in re.findall(r"([0-9]+)(ms|[smhdw])", value)
        )
        if not 0 < seconds <= _LONGEST_BAN:
            raise ValidationError("must be more than 0 and at most 1000 years, or permanent")
        return seconds


class CodeChallenge(Text):
    """The SHA-256 of a code verifier in base64url (RFC 7636, section 4.2)."""

    form = re.compile(r"[A-Za-z0-9_-]{43}")
    problem = "must be the SHA-256 of the verifier in base64url, 43 characters"

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not self.form.fullmatch(text):
            raise ValidationError(self.problem)
        return text


class CodeVerifier(CodeChallenge):
    """A code verifier (RFC 7636, section 4.1)."""

    form = re.compile(r"[A-Za-z0-9\-._~]{43,128}")
    problem = "must be 43 to 128 letters, digits or -._~"


class Choice(Text):
    """One of a few strings."""

    def __init__(self, *choices: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.choices = choices

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if text not in self.choices:
            raise ValidationError("must be one of " + ", ".join(self.choices))
        return text


class Choices(Field):
    """A list of some of a few strings; loads in their order, without duplicates."""

    def __init__(self, *choices: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.choices = choices

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[str]:
        if (
            not isinstance(value, list)
            or not value
            or not all(isinstance(item, str) and item in self.choices for item in value)
        ):
            raise ValidationError("must be a list of at least one of " + ", ".join(self.choices))
        return [choice for choice in self.choices if choice in value]


class PageNumber(Field):
    """A positive integer of a query. Empty means `default`; more than `most` means `most`."""

    def __init__(self, *, default: int, most: int, **kwargs: Any) -> None:
        super().__init__(load_default=default, **kwargs)
        self.default = default
        self.most = most

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if value == "":
            return self.default
        # int() would also accept other scripts' digits, signs, spaces and underscores.
        if not re.fullmatch(r"[0-9]{1,20}", value) or int(value) < 1:
            raise ValidationError("must be a whole number of at least 1")
        return min(int(value), self.most)


def is_uuid(text: str) -> bool:
    """Whether this is a UUID in its canonical form. Any other id in a path is unknown."""
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
