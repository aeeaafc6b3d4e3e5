"""Passwords that are easy to guess: common words, words of the calendar, rows of keys, repetitions.

They are refused alone, repeated, or with up to seven digits and symbols at the ends. This is not zxcvbn's
score: a list can be explained to a user.
"""

import gzip
import itertools
import re
import string
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator
from pathlib import Path

# Shorter words would match random passwords with few letters.
LEAST_WORD = 4
# Sorted: 197,000 passwords of data breaches, and the words of zxcvbn (passwords, names, English, films);
# tests/support/common_passwords.py writes it.
LIST = Path(__file__).with_name("common_passwords.txt.gz")
# One text and the places of its lines are 3.6 MiB. A set would be 31.
_COMMON = gzip.decompress(LIST.read_bytes()).decode()
_LINES = array("I", (line.start() for line in re.finditer("(?m)^.", _COMMON)))
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
_ROWS = [
    "qwertyuiopasdfghjklzxcvbnm", "qwertzuiopasdfghjklyxcvbnm", "azertyuiopqsdfghjklmwxcvbn",
    # Columns.
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p", "zaq1xsw2cde3vfr4bgt5nhy6mju7", "1q2w3e4r5t6y7u8i9o0p",
    "1qay2wsx3edc4rfv5tgb6zhn7ujm8ik9ol0p", "1q2w3e4r5t6z7u8i9o0p", "1234567890",
]  # fmt: skip


def _calendar() -> Iterator[str]:
    for word in _CALENDAR.split():
        yield from (word, "".join(filter(str.isalpha, unicodedata.normalize("NFD", word))))
    for number in _CHINESE_NUMBERS.split():
        yield from (f"星期{number}", f"周{number}", f"{number}月")
    for number in _PINYIN_NUMBERS.split():
        yield from (f"xingqi{number}", f"zhou{number}", f"{number}yue")


def _runs(row: str, least: int) -> Iterator[str]:
    for keys in (row, row[::-1]):
        for start, end in itertools.combinations(range(len(keys) + 1), 2):
            if end - start >= least:
                yield keys[start:end]


_WORDS = {
    "calendar": frozenset(_calendar()),
    "keyboard": frozenset(run for row in _ROWS for run in _runs(row, least=4)),
    "common": frozenset(_runs(string.ascii_lowercase, least=3)),
}
# Digits and symbols next to the letters of a password that may stand for letters.
_MOST_LEET = 4
# The extended core may itself begin and end with digits, as `123456789a`, if it could be a password.
_LEAST_PASSWORD = 8
# With more characters around it, a short word no longer dominates the password.
_MOST_ADDED = 7
_MOST_UNIT = 32
# One to four letters or digits, repeated, as in `aa` and `19851985`.
_REPETITION = re.compile(r"([^\W_]{1,4})\1+")
_REPEATED = re.compile(r"(.{1,8})\1+")
_ROW = re.compile("|".join(sorted(_runs("1234567890", least=3), key=len, reverse=True)))
# A 1 stands for i or l, and a symbol for the digit on its key.
_SPELLINGS = [
    *(str.maketrans("4@83690!|$57+21", f"aabeggoiissttz{one}") for one in "il"),
    str.maketrans("!@#$%^&*()", "1234567890"),
]


def kind_of(password: str, own_words: Collection[str] = ()) -> str | None:
    """Return why a password in lower case is easy to guess: `calendar`, `keyboard` or `common`; else None.

    `own_words` are of the service and the user. They count as common, with up to four characters elsewhere.
    """
    cores = {password, *_cores(password)}
    if any(_REPETITION.fullmatch(core) for core in cores if core.isalpha() or len(core) >= _LEAST_PASSWORD):
        return "common"
    if any(word in password and len(password) <= len(word) + _MOST_LEET for word in own_words):
        return "common"
    # No recursion: the time would grow exponentially.
    for unit in {_unit(core) for core in cores} - cores:
        cores |= {unit, *_cores(unit)}
    spellings = {spelling for core in cores for spelling in (core, *map(core.translate, _SPELLINGS))}
    kind = next((kind for kind, words in _WORDS.items() if not words.isdisjoint(spellings)), None)
    return kind or (
        "common" if not spellings.isdisjoint(own_words) or any(map(_is_common, spellings)) else None
    )


def _is_common(word: str) -> bool:
    index = bisect_left(_LINES, word, key=_line_at)
    return index < len(_LINES) and _line_at(_LINES[index]) == word


def _line_at(start: int) -> str:
    return _COMMON[start : _COMMON.index("\n", start)]


def _cores(password: str) -> Iterator[str]:
    """Yield the possible cores of a password, without digits and symbols at its ends."""
    letters = [index for index, character in enumerate(password) if character.isalpha()]
    first, last = (letters[0], letters[-1] + 1) if letters else (_MOST_LEET, len(password) - _MOST_LEET)
    # Ends of a core are near the letters, where digits and symbols may stand for letters, or near the ends.
    starts = {*range(max(first - _MOST_LEET, 0), first + 1), *range(min(first, _MOST_LEET) + 1)}
    ends = {len(password) - length for length in range(min(len(password) - last, _MOST_LEET) + 1)}
    ends |= {*range(max(last, 1), min(last + _MOST_LEET, len(password)) + 1)}
    for start, end in itertools.product(starts, ends):
        is_near = first - start <= _MOST_LEET and end - last <= _MOST_LEET
        if start >= end or not (is_near or end - start >= _LEAST_PASSWORD):
            continue
        around = (password[:start], password[end:])
        # Characters that continue a sequence do not count.
        if sum(len(_ROW.sub("", _REPEATED.sub(r"\1", part))) for part in around) <= _MOST_ADDED:
            yield password[start:end]


def _unit(text: str) -> str:
    """Return the repeated unit of a text. The last repetition may lack its final digits and symbols."""
    for length in range(1, min(len(text), _MOST_UNIT)):
        is_added = not any(map(str.isalpha, text[len(text) - length : length]))
        if is_added and text.startswith(text[length:]):
            return text[:length]
    return text
