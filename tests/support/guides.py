"""The guides of docs/, for tests that play them: each block of code and each command, as it stands there.

tests/source/test_guides.py reads the guides and these tests, and names each block and command that no test plays.
"""

import re
from functools import cached_property
from typing import NamedTuple

from tests.support.processes import CHECKOUT

# What a developer at home reads.
PAGES = (
    "quick-start.md", "organizations.md", "sso.md", "api-keys.md", "roles.md", "react.md", "nextjs.md", "openid.md",
    "agents.md", "testing.md",
)  # fmt: skip
_BLOCK = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCES = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# A program with arguments: a name alone, such as `latchkey`, is nothing to run.
_COMMAND = re.compile(r"`((?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(?:latchkey|make|npx|npm|pip|pipx|python) [^`]+)`")


class Block(NamedTuple):
    """A block of code: its language, the file that the reader makes of it or "", its text, and the line in the page."""

    language: str
    file: str
    text: str
    line: int


class Guide:
    """A page of docs/, such as `Guide("sso.md")`."""

    def __init__(self, page: str) -> None:
        self.page = page
        self._text = (CHECKOUT / "docs" / page).read_text()

    @cached_property
    def blocks(self) -> list[Block]:
        """All blocks of code, from top to bottom."""
        return [
            Block(match[1], match[2], match[3], self._text.count("\n", 0, match.start()) + 1)
            for match in _BLOCK.finditer(self._text)
        ]

    @cached_property
    def commands(self) -> list[str]:
        """The commands within sentences, from top to bottom, each once."""
        sentences = re.sub(r"\s+", " ", _FENCES.sub("", self._text))
        return list(dict.fromkeys(_COMMAND.findall(sentences)))

    def block(self, part: str) -> Block:
        """Return the only block that contains this."""
        (block,) = [each for each in self.blocks if part in each.text]
        return block

    def command(self, part: str) -> str:
        """Return the only command within a sentence that contains this."""
        (command,) = [each for each in self.commands if part in each]
        return command
