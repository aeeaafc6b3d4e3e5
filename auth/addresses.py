"""Emails and phone numbers in their one canonical form: the only form that is stored, compared, mailed or
counted.
"""

import re
import unicodedata

import email_validator
from email_validator import EmailNotValidError, validate_email

# `.test`, `.local` and the like are used where this service is developed; whether mail arrives there is not
# ours to say.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()

_PHONE = re.compile(r"\+[1-9][0-9]{6,14}")
# What has no shape of its own and is no format character, which are refused in any case (Unicode,
# Default_Ignorable_Code_Point).
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_PHONE_SEPARATORS = re.compile(r"[ \-.()\[\]]")


class InvalidAddress(ValueError):
    """Says what is wrong, for people."""


def canonical_email(address: str) -> str:
    """Return an email address in lower case, its domain in ASCII. Raises `InvalidAddress`.

    Two spellings that look alike and are told apart only by compatibility characters (NFKC) are refused: one
    user could register as another. So are characters that are not seen at all.
    """
    if _UNSEEN.search(address):
        raise InvalidAddress("must be an email address without invisible characters")
    if unicodedata.normalize("NFKC", address) != address:
        raise InvalidAddress("must be an email address without compatibility characters")
    try:
        valid = validate_email(address, check_deliverability=False)
    except EmailNotValidError as error:
        raise InvalidAddress(f"must be an email address ({str(error).rstrip('.')})") from None
    return f"{valid.local_part}@{valid.ascii_domain}".lower()


def canonical_phone(number: str) -> str:
    """Return a phone number in E.164. Raises `InvalidAddress`. No number is refused because no operator uses
    it.
    """
    digits = _PHONE_SEPARATORS.sub("", number)
    if not _PHONE.fullmatch(digits):
        raise InvalidAddress("must be a phone number in E.164 form, such as +491701234567")
    return digits
