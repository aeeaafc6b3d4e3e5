"""The password policy (NIST SP 800-63B, section 5.1.1.2)."""

import itertools
import unicodedata
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


# Seasons, months and weekdays in the languages of the pages, Chinese ones also in Pinyin.
_CALENDAR = """
spring summer autumn fall winter monday tuesday wednesday thursday friday saturday sunday
january february march april may june july august september october november december
frühling fruehling frühjahr fruehjahr sommer herbst montag dienstag mittwoch donnerstag freitag samstag
sonnabend sonntag januar jänner jaenner februar märz maerz mai juni juli oktober dezember
primavera verano otoño invierno lunes martes miércoles jueves viernes sábado domingo
enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre diciembre
printemps été automne hiver lundi mardi mercredi jeudi vendredi samedi dimanche
janvier février mars avril juin juillet août septembre octobre novembre décembre
春天 夏天 秋天 冬天 chuntian xiatian qiutian dongtian
"""
_CHINESE_NUMBERS = "一 二 三 四 五 六 七 八 九 十 十一 十二 日 天"
_PINYIN_NUMBERS = "yi er san si wu liu qi ba jiu shi shiyi shier ri tian"
_ROWS = ("qwertyuiopasdfghjklzxcvbnm", "qwertzuiopasdfghjklyxcvbnm", "azertyuiopqsdfghjklmwxcvbn")
_LEAST_ROW = 4


def _calendar() -> Iterator[str]:
    """Yield the words of the calendar, with and without accents."""
    for word in _CALENDAR.split():
        yield from (word, "".join(filter(str.isalpha, unicodedata.normalize("NFD", word))))
    for number in _CHINESE_NUMBERS.split():
        yield from (f"星期{number}", f"周{number}", f"{number}月")
    for number in _PINYIN_NUMBERS.split():
        yield from (f"xingqi{number}", f"zhou{number}", f"{number}yue")


def _runs(row: str) -> Iterator[str]:
    for keys in (row, row[::-1]):
        for start, end in itertools.combinations(range(len(keys) + 1), 2):
            if end - start >= _LEAST_ROW:
                yield keys[start:end]


# Refused alone, repeated, or with digits and symbols at the ends. Not the score of zxcvbn: a list can be
# explained to a user.
_GUESSED = {
    "calendar": frozenset(_calendar()),
    "keyboard": frozenset(run for row in _ROWS for run in _runs(row)),
    "common": _read_common_passwords(),
}
_REQUIREMENTS = {
    "calendar": "not be a season, month or weekday with digits and symbols",
    "keyboard": "not be a row of keys with digits and symbols",
    "common": "not be a common one, even with digits and symbols",
    "own": "not be the user's own address",
}
# Digits and symbols next to the letters of a password that may stand for letters.
_MOST_LEET = 4
_MOST_UNIT = 32
# A 1 stands for i or l.
_LEET = [str.maketrans("4@83690!|$57+21", f"aabeggoiissttz{one}") for one in "il"]
_IS_OF_KIND: dict[str, Callable[[str], bool]] = {
    "lowercase": str.islower,
    "uppercase": str.isupper,
    "numbers": str.isdigit,
    "symbols": lambda character: not character.isalnum(),
}


class WeakPassword(Exception):
    """`problems` maps the reasons `length`, `characters` and `common` to the requirements.

    `reason` is the first one; for `common` the key of `_REQUIREMENTS`.
    """

    def __init__(self, problems: Mapping[str, str], guessed: str | None) -> None:
        super().__init__(f"must {' and '.join(problems.values())}")
        self.problems = problems
        first = next(iter(problems))
        self.reason = guessed if guessed and first == "common" else first


def check_strength(settings: Settings, password: str, own_addresses: Collection[str | None]) -> None:
    """Raise `WeakPassword` if the policy refuses a password. `own_addresses` are the user's."""
    problems, guessed = {}, None
    if len(password) < settings.password_min_length:
        problems["length"] = f"be at least {settings.password_min_length} characters"
    missing = [kind for kind in settings.password_requirements if not any(map(_IS_OF_KIND[kind], password))]
    if missing:
        problems["characters"] = f"contain at least one character of each: {', '.join(missing)}"
    if settings.password_common_check:
        folded = password.casefold()
        guessed = "own" if folded in own_addresses else _guessed(folded)
    if guessed:
        problems["common"] = _REQUIREMENTS[guessed]
    if problems:
        raise WeakPassword(problems, guessed)


def _guessed(password: str) -> str | None:
    """Return the key of `_GUESSED` for a password that it refuses."""
    cores = {password, *_cores(password)}
    # Not of units again: the time would grow exponentially.
    for unit in {_unit(core) for core in cores} - cores:
        cores |= {unit, *_cores(unit)}
    spellings = {spelling for core in cores for spelling in (core, *map(core.translate, _LEET))}
    return next((kind for kind, words in _GUESSED.items() if not words.isdisjoint(spellings)), None)


def _cores(password: str) -> Iterator[str]:
    """Yield the possible cores of a password, without digits and symbols at its ends."""
    letters = [index for index, character in enumerate(password) if character.isalpha()]
    first, last = (letters[0], letters[-1] + 1) if letters else (_MOST_LEET, len(password) - _MOST_LEET)
    for start in range(max(first - _MOST_LEET, 0), first + 1):
        for end in range(max(last, start + 1), min(last + _MOST_LEET, len(password)) + 1):
            yield password[start:end]


def _unit(text: str) -> str:
    """Return what a text repeats; the last repetition may lack its digits and symbols at the end."""
    for length in range(1, min(len(text), _MOST_UNIT)):
        is_added = not any(map(str.isalpha, text[len(text) - length : length]))
        if is_added and text.startswith(text[length:]):
            return text[:length]
    return text
