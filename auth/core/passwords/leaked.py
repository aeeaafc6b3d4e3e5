"""Whether breaches have exposed a password: by a file of hashes, or by the range API of Have I Been Pwned.

What answers is imported only if AUTH_PASSWORD_LEAKED says so.
"""

from collections.abc import Callable
from dataclasses import dataclass

from auth.core.settings import Settings

RANGES = "https://api.pwnedpasswords.com/range/"
# Of the response, as GoTrue names it.
REASON = "pwned"


@dataclass(frozen=True)
class LeakedPasswords:
    """Whether a password has leaked, when it is chosen and when it is used to sign in."""

    when_chosen: Callable[[str], bool]
    # Never asks the network: each sign-in would tell it a part of a hash.
    when_used: Callable[[str], bool] = lambda _password: False
    # Questions to the network that had no answer.
    failures: Callable[[], int] = lambda: 0


def open_leaked_passwords(settings: Settings) -> LeakedPasswords | None:
    """Return what AUTH_PASSWORD_LEAKED chooses. Raises `SettingsError` if the file cannot be used."""
    source = settings.password_leaked
    if source == "off":
        return None
    if source == "file":
        from auth.core.passwords.leaked_file import LeakedFile

        contains = LeakedFile(settings.password_leaked_file).contains
        return LeakedPasswords(contains, contains)
    from auth.core.passwords.leaked_ranges import RangeApi

    api = RangeApi(range_url(settings), settings.webhook_private_networks)
    return LeakedPasswords(api.contains, failures=lambda: api.failures)


def range_url(settings: Settings) -> str:
    """Return the URL of the range API: that of a mirror if AUTH_PASSWORD_LEAKED names one."""
    chosen = settings.password_leaked
    return f"{chosen.rstrip('/')}/" if chosen.startswith("http") else RANGES
