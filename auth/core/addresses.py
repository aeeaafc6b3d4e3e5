"""Emails and phone numbers in canonical form, the only form that we store, compare, mail or count."""

import re
import unicodedata
from contextlib import suppress
from typing import Literal
from urllib.parse import urlsplit

import email_validator
import phonenumbers
from email_validator import EmailNotValidError, validate_email
from phonenumbers import PhoneNumber, PhoneNumberFormat

from auth.core import normalize

# Developers test with `.test` and `.local`.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()

_LONGEST_EMAIL = 254  # RFC 5321, section 4.5.3.1
_PHONE = re.compile(r"\+[1-9][0-9]{6,14}")
_LIKE_PHONE = re.compile(r"[\s+\-./()\[\]]*[0-9][\s0-9+\-./()\[\]]*")
# Country codes (ITU-T E.164) have three digits, except these.
_COUNTRY = re.compile(r"\+(?:[17]|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|[0-9]{3})")
_PHONE_SEPARATORS = re.compile(r"[ \-.()\[\]]")


class InvalidAddress(ValueError):
    """The message is for users; `kind` is email or phone."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def is_email(address: str) -> bool:
    """Whether an address is an email, not a phone number. An email may begin with `+`."""
    return "@" in address


def kind_of(address: str) -> Literal["email", "phone"]:
    return "email" if is_email(address) else "phone"


def canonical(address: str) -> str:
    """Return an email or a phone number in its canonical form. Raises `InvalidAddress`."""
    return canonical_email(address) if is_email(address) else canonical_phone(address)


def canonical_email(address: str) -> str:
    """Return an address in lower case, its domain in ASCII. Raises `InvalidAddress`."""
    # An address from a provider has any length, and normalizing takes quadratic time.
    if len(address) > _LONGEST_EMAIL:
        raise InvalidAddress("must be an email address (The email address is too long)", "email")
    # With compatibility and invisible characters one user could look like another.
    if normalize.IGNORABLE.search(address):
        raise InvalidAddress("must be an email address without invisible characters", "email")
    if unicodedata.normalize("NFKC", address) != address:
        raise InvalidAddress("must be an email address without compatibility characters", "email")
    try:
        valid = validate_email(address, check_deliverability=False)
    except EmailNotValidError as error:
        raise InvalidAddress(f"must be an email address ({str(error).rstrip('.')})", "email") from None
    return f"{valid.local_part}@{valid.ascii_domain}".lower()


def canonical_domain(domain: str) -> str:
    """Return the domain of an email in lower case and ASCII. Raises `InvalidAddress`."""
    return canonical_email(f"postmaster@{domain}").rpartition("@")[2]


def typed_domain(text: str) -> str:
    """Return `canonical_domain` of a domain, of the domain in an address, or of a website's URL."""
    domain = text.strip()
    if "://" in domain:
        with suppress(ValueError):
            domain = (urlsplit(domain).hostname or "").removeprefix("www.")
    return canonical_domain(domain.rpartition("@")[2].rstrip("./"))


def canonical_phone(number: str) -> str:
    """Return a phone number in E.164. Raises `InvalidAddress`.

    `+44 (0)7418 …` is `+447418…`: that zero is dialled inside the country. Italy keeps it.
    """
    digits = joined(number)
    if not _PHONE.fullmatch(digits):
        raise InvalidAddress("must be a phone number in E.164 form, such as +491701234567", "phone")
    parsed = _parsed(digits)
    if not parsed:
        return digits
    country = f"+{parsed.country_code}"
    without_zero = phonenumbers.format_number(parsed, PhoneNumberFormat.E164)
    # Drop each of several zeros, so that a canonical number stays the same.
    has_zero = digits == f"{country}0{without_zero.removeprefix(country)}"
    return canonical_phone(without_zero) if has_zero else digits


def is_possible_phone(number: str) -> bool:
    """Whether a number in E.164 has a country code, and a length that this country uses."""
    parsed = _parsed(number)
    return parsed is not None and phonenumbers.is_possible_number(parsed)


def _parsed(number: str) -> PhoneNumber | None:
    try:
        return phonenumbers.parse(number)
    except phonenumbers.NumberParseException:
        return None


def joined(number: str) -> str:
    """Return a phone number without the separators of its groups."""
    return _PHONE_SEPARATORS.sub("", number)


def spaced_phone(number: str) -> str:
    """Return a canonical phone number in groups, `+49 170 123 4567`, and any other text as it is."""
    country = _COUNTRY.match(number) if _PHONE.fullmatch(number) else None
    if country is None:
        return number
    return " ".join([country[0], *re.findall(r"[0-9]{3}(?=[0-9]{2})|[0-9]+", number[country.end() :])])


def canonical_typed(text: str) -> str:
    """Return `canonical` of a typed email or phone number."""
    return canonical_typed_email(text) if is_email(text) else canonical_typed_phone(text)


def canonical_typed_email(text: str) -> str:
    return canonical_email(normalize.trimmed(text))


def canonical_typed_phone(text: str) -> str:
    return canonical_phone(normalize.number(text))


def looks_like_phone(text: str) -> bool:
    """Whether the user meant a phone number, perhaps a malformed one, in a field that also takes emails."""
    return _LIKE_PHONE.fullmatch(normalize.number(text)) is not None
