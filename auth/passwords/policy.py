"""Which passwords are allowed: NIST SP 800-63B, 5.1.1.2, and what a deployment asks for beyond."""

from collections.abc import Callable, Collection

from zxcvbn.frequency_lists import FREQUENCY_LISTS

from auth.settings import Settings
from auth.web.errors import ApiError

_COMMON = frozenset(FREQUENCY_LISTS["passwords"][:10_000])
_IS_OF_KIND: dict[str, Callable[[str], bool]] = {
    "lowercase": str.islower,
    "uppercase": str.isupper,
    "numbers": str.isdigit,
    "symbols": lambda character: not character.isalnum(),
}


def check_strength(settings: Settings, password: str, own_addresses: Collection[str | None], *, status: int) -> None:
    """Refuse a weak password: too short, of too few kinds of characters, common, or the user's own address.

    Raises `ApiError` of the given status, with the reasons `length`, `characters`, `common`.
    """
    problems = {}
    if len(password) < settings.password_min_length:
        problems["length"] = f"have at least {settings.password_min_length} characters"
    if not all(any(map(_IS_OF_KIND[kind], password)) for kind in settings.password_requirements):
        problems["characters"] = f"have {', '.join(settings.password_requirements)}"
    if settings.password_common_check and (password.casefold() in _COMMON or password.casefold() in own_addresses):
        problems["common"] = "not be a common one or the user's own address"
    if problems:
        details = f"password: must {' and '.join(problems.values())}"
        raise ApiError(status, "weak_password", "The password is too weak", details, members={"weak_password": {"reasons": list(problems)}})
