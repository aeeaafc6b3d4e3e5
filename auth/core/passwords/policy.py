"""The password policy (NIST SP 800-63B, section 5.1.1.2)."""

import re
from collections.abc import Callable, Collection, Mapping
from urllib.parse import urlsplit

from auth.core.passwords import guessable
from auth.core.passwords.leaked import REASON, LeakedPasswords
from auth.core.settings import Settings

_REQUIREMENTS = {
    "calendar": "not be a season, month or weekday with digits and symbols",
    "keyboard": "not be a row of keys with digits and symbols",
    "common": "not be a common one, even with digits and symbols",
    "own": "not be the user's own address",
}
_IS_OF_KIND: dict[str, Callable[[str], bool]] = {
    "lowercase": str.islower,
    "uppercase": str.isupper,
    "numbers": str.isdigit,
    "symbols": lambda character: not character.isalnum(),
}


class WeakPassword(Exception):
    """`problems` maps the reasons `length`, `characters`, `common` and `pwned` to the requirements.

    `reason` is the first one; for `common` it is `guessed`, the key of `_REQUIREMENTS`. `missing` are kinds
    of characters.
    """

    def __init__(self, problems: Mapping[str, str], guessed: str | None, missing: Collection[str]) -> None:
        super().__init__(f"must {', and '.join(problems.values())}")
        self.problems, self.guessed, self.missing = problems, guessed, missing
        first = next(iter(problems))
        self.reason = guessed if guessed and first == "common" else first


def check_strength(
    settings: Settings,
    password: str,
    own_addresses: Collection[str | None],
    leaked: LeakedPasswords | None,
) -> None:
    """Raise `WeakPassword` if the policy refuses a password or it has leaked. `own_addresses` are the user's.

    Call it outside any transaction: the last check, `leaked`, may use the network.
    """
    problems, guessed = {}, None
    if len(password) < settings.password_min_length:
        problems["length"] = f"be at least {settings.password_min_length} characters"
    missing = [kind for kind in settings.password_requirements if not any(map(_IS_OF_KIND[kind], password))]
    if missing:
        problems["characters"] = f"contain at least one character of each: {', '.join(missing)}"
    if settings.password_common_check:
        folded = password.casefold()
        own_words = _own_words(settings, own_addresses)
        guessed = "own" if folded in own_addresses else guessable.kind_of(folded, own_words)
    if guessed:
        problems["common"] = _REQUIREMENTS[guessed]
    if not problems and leaked and leaked.when_chosen(password):
        problems[REASON] = "not be one that is known from data breaches"
    if problems:
        raise WeakPassword(problems, guessed, missing)


def _own_words(settings: Settings, own_addresses: Collection[str | None]) -> frozenset[str]:
    """Return words that a guesser tries at this service and for this user: names, and their parts."""
    hosts = [urlsplit(url).hostname or "" for url in (settings.base_url, settings.site_url)]
    addresses = [address for address in own_addresses if address]
    local_parts = [address.rpartition("@")[0] for address in addresses]
    words: set[str] = set()
    names = ["latchkey", "localhost", settings.brand_name, *hosts, *addresses, *local_parts]
    for name in map(str.casefold, names):
        parts = re.split(r"[\W_]+", name)
        words |= {name, "".join(parts), *parts}
    return frozenset(word for word in words if len(word) >= guessable.LEAST_WORD)
