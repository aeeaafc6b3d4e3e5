"""The password policy (NIST SP 800-63B, section 5.1.1.2)."""

from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from types import ModuleType

from auth.settings import Settings


def _read_common_passwords() -> frozenset[str]:
    """Read a list of zxcvbn without its other words and their indexes, which would take 12 MiB."""
    package, lists = find_spec("zxcvbn"), ModuleType("frequency_lists")
    directories = list((package and package.submodule_search_locations) or ())
    SourceFileLoader(lists.__name__, f"{directories[0]}/frequency_lists.py").exec_module(lists)
    return frozenset(lists.FREQUENCY_LISTS["passwords"][:10_000])


# Not the score of zxcvbn: a list can be explained to a user.
_COMMON = _read_common_passwords()
_LEAST_CORE, _MOST_ADDED = 4, 4
# A 1 stands for i or l.
_LEET = [str.maketrans("4@83690!|$57+21", f"aabeggoiissttz{one}") for one in "il"]
_IS_OF_KIND: dict[str, Callable[[str], bool]] = {
    "lowercase": str.islower,
    "uppercase": str.isupper,
    "numbers": str.isdigit,
    "symbols": lambda character: not character.isalnum(),
}


class WeakPassword(Exception):
    """`problems` maps the reasons `length`, `characters` and `common` to the requirements."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__(f"must {' and '.join(problems.values())}")
        self.problems = problems


def check_strength(settings: Settings, password: str, own_addresses: Collection[str | None]) -> None:
    """Raise `WeakPassword` if the policy refuses a password. `own_addresses` are the user's."""
    problems = {}
    if len(password) < settings.password_min_length:
        problems["length"] = f"be at least {settings.password_min_length} characters"
    missing = [kind for kind in settings.password_requirements if not any(map(_IS_OF_KIND[kind], password))]
    if missing:
        problems["characters"] = f"contain at least one character of each: {', '.join(missing)}"
    if settings.password_common_check and (_is_common(password) or password.casefold() in own_addresses):
        problems["common"] = "not be a common one or the user's own address"
    if problems:
        raise WeakPassword(problems)


def _is_common(password: str) -> bool:
    folded = password.casefold()
    return folded in _COMMON or any(
        core in _COMMON or any(core.translate(leet) in _COMMON for leet in _LEET) for core in _cores(folded)
    )


def _cores(password: str) -> Iterator[str]:
    """Yield the possible cores of a password, without up to four digits and symbols at its ends."""
    for start in range(_MOST_ADDED + 1):
        for added in range(start, _MOST_ADDED + 1):
            end = len(password) - (added - start)
            is_added = not any(map(str.isalpha, password[:start] + password[end:]))
            if is_added and end - start >= _LEAST_CORE:
                yield password[start:end]
