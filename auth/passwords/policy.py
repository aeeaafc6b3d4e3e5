"""The password policy (NIST SP 800-63B, section 5.1.1.2)."""

from collections.abc import Callable, Collection, Mapping

from zxcvbn.frequency_lists import FREQUENCY_LISTS

from auth.settings import Settings

_COMMON = frozenset(FREQUENCY_LISTS["passwords"][:10_000])
_IS_OF_KIND: dict[str, Callable[[str], bool]] = {
    "lowercase": str.islower,
    "uppercase": str.isupper,
    "numbers": str.isdigit,
    "symbols": lambda character: not character.isalnum(),
}


class WeakPassword(Exception):
    """`problems` maps the reasons `length`, `characters` and `common` to sentences."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__(f"must {' and '.join(problems.values())}")
        self.problems = problems


def check_strength(settings: Settings, password: str, own_addresses: Collection[str | None]) -> None:
    """Raise `WeakPassword` if the policy refuses a password. `own_addresses` are the user's."""
    problems = {}
    if len(password) < settings.password_min_length:
        problems["length"] = f"have at least {settings.password_min_length} characters"
    if not all(any(map(_IS_OF_KIND[kind], password)) for kind in settings.password_requirements):
        problems["characters"] = f"have {', '.join(settings.password_requirements)}"
    if settings.password_common_check and (
        password.casefold() in _COMMON or password.casefold() in own_addresses
    ):
        problems["common"] = "not be a common one or the user's own address"
    if problems:
        raise WeakPassword(problems)
