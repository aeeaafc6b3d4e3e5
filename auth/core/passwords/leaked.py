"""Looks up passwords of data breaches in a file of hashes, or in the range API of Have I Been Pwned.

Each implementation is imported only if AUTH_PASSWORD_LEAKED selects it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from auth.core.settings import Settings

# The reason in the response, with GoTrue's name.
REASON = "pwned"


@dataclass(frozen=True)
class LeakedPasswords:
    """Looks up passwords when users choose them and when they sign in."""

    when_chosen: Callable[[str], bool]
    # Uses no network: each sign-in would reveal a part of a hash.
    when_used: Callable[[str], bool] = lambda _password: False
    # Network requests without an answer.
    failures: Callable[[], int] = lambda: 0


def open_leaked_passwords(settings: Settings) -> LeakedPasswords | None:
    """Return the implementation for AUTH_PASSWORD_LEAKED.

    Raises `SettingsError` if the file cannot be used.
    """
    source = settings.password_leaked
    if source == "off":
        return None
    if source == "file":
        from auth.core.passwords.leaked_file import LeakedFile

        contains = LeakedFile(settings.password_leaked_file).contains
        return LeakedPasswords(contains, contains)
    from auth.core.passwords.leaked_ranges import RangeApi

    api = RangeApi(settings)
    return LeakedPasswords(api.contains, failures=lambda: api.failures)
