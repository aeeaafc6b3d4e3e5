"""What nodes of the previous releases need of sql/functions while they serve beside new ones.

`python -m tests.support.previous_release` moves every function that only they call to sql/functions/previous.sql, with
the text of the newest of these releases, and deletes every function that nobody calls. It prints what a migration has to drop.
"""

import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

import sql
from tests.support import oldest_release

# Each release whose nodes may serve beside this one, oldest first.
RELEASES = {"0.7.0": "b984b3f0", "0.7.1": "f9521b44"}
NAME, COMMIT = next(iter(RELEASES.items()))
# Functions whose new text their nodes must run, too, and why.
CHANGED = {
    "admits": "a session for a resource whose spelling has changed has not lost access",
    "caller_facts": "a session of a term that is over has ended",
    "memberships_of": "owners and clients read a required age, which their nodes ignore",
    "requirement_of": "owners and clients read a required age, which their nodes ignore",
    "is_live": "a session or API key of a term that is over has ended",
    "record_acts_at": "the user who signs up, links an identity or joins is the actor of that",
}
ROOT = sql.DIRECTORY.parent
FILE = "previous.sql"
HEADER = f"""\
-- Only nodes of {" and ".join(RELEASES)} call these functions, with the newest text of both. They go with the release after this one.
-- `python -m tests.support.previous_release` writes this file.

"""
# A comment with the statement that follows it, or alone before an empty line.
_PART = re.compile(
    r"\n*(?:(?:--[^\n]*\n)+(?=\n)|(?:--[^\n]*\n)*[A-Z](?:\$\$.*?\$\$|'[^']*'|--[^\n]*|[^;])*?;\n)", re.DOTALL
)
_NAME = re.compile(r"^CREATE OR REPLACE (FUNCTION|VIEW) (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """A function or view with its comment and the empty lines before it. Another statement, or a comment on its own, has
    no name.
    """

    text: str

    @property
    def code(self) -> str:
        """The text without comments, each space being one."""
        return " ".join(re.sub(r"--[^\n]*", "", self.text).split())

    @property
    def name(self) -> str:
        match = _NAME.search(self.text)
        return match[2] if match else ""

    @property
    def is_view(self) -> bool:
        return self.code.startswith("CREATE OR REPLACE VIEW")

    @property
    def signature(self) -> str:
        """The name; of a function, with the types of its parameters."""
        if self.is_view:
            return self.name
        listed = _within(self.code[self.code.index("(") :])
        types = (re.sub(r" (?:DEFAULT|=) .*", "", each).strip().partition(" ")[2] for each in _split(listed))
        return f"{self.name}({', '.join(types)})"

    @property
    def drop(self) -> str:
        return f"DROP {'VIEW' if self.is_view else 'FUNCTION'} IF EXISTS {self.signature};"

    @property
    def rights(self) -> str:
        """The statement that must follow a function that runs as its owner, or nothing."""
        runs_as_owner = "SECURITY DEFINER" in self.code
        return f"\n\nREVOKE ALL ON FUNCTION {self.name} FROM PUBLIC;" if runs_as_owner else ""

    @property
    def calls(self) -> Callable[[str], bool]:
        """Whether a text calls the function, or reads the view."""
        pattern = re.compile(rf"\b{self.name}" + (r"\b" if self.is_view else r"\s*\("))
        return lambda text: bool(pattern.search(text))


def _within(text: str) -> str:
    """Return what stands between the first parenthesis, with which the text begins, and its end."""
    depth = 0
    for place, sign in enumerate(text):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth == 0:
            return text[1:place]
    raise ValueError(text)


def _split(listed: str) -> Iterator[str]:
    """Yield the parameters: a comma within parentheses or quotes separates none."""
    return (each for each in re.findall(r"(?:\([^)]*\)|'[^']*'|[^,])+", listed) if each.strip())


@dataclass(frozen=True)
class Release:
    """The SQL of a release, by the names of its files."""

    parts: Mapping[str, list[Part]]
    # Everything else that can call a function: statements, tables, the rows that an operator's tool makes.
    callers: str
    functions: Mapping[str, list[Part]] = field(init=False)

    def __post_init__(self) -> None:
        functions: dict[str, list[Part]] = {}
        for part in (part for parts in self.parts.values() for part in parts if part.name):
            functions.setdefault(part.name, []).append(part)
        object.__setattr__(self, "functions", functions)

    def reached(self, *, with_triggers: bool) -> set[str]:
        """Return the names of the functions and views that something calls: nodes, or triggers, too."""
        nameless = [part for parts in self.parts.values() for part in parts if not part.name]
        names: set[str] = set()
        waiting = [self.callers, *(part.code for part in nameless if with_triggers)]
        while waiting:
            text = waiting.pop()
            for name in self.functions.keys() - names:
                if self.functions[name][0].calls(text):
                    names.add(name)
                    waiting += [part.code for part in self.functions[name]]
        return names


def read(root: Path) -> Release:
    files = sorted((root / "sql" / "functions").glob("*.sql"))
    other_files = [
        root / "schema.sql",
        *sorted((root / "sql").glob("*.sql")),
        *sorted((root / "auth").rglob("*.sql")),
    ]
    callers = "\n".join(re.sub(r"--[^\n]*", "", path.read_text()) for path in other_files)
    return Release({path.name: list(parts_of(path.read_text())) for path in files}, callers)


def parts_of(text: str) -> Iterator[Part]:
    end = 0
    for match in _PART.finditer(text):
        if match.start() != end:
            raise ValueError(f"not a statement: {text[end : match.start()]!r}")
        end = match.end()
        yield Part(match[0])
    if text[end:].strip():
        raise ValueError(f"not a statement: {text[end:]!r}")


@dataclass(frozen=True)
class Plan:
    """The new texts of files, where they differ; empty for one that goes. `problems` are for a person."""

    files: Mapping[str, str]
    # The statements that drop what is deleted, for a migration.
    drops: list[str]
    problems: list[str]


def plan(current: Release, *earlier: Release) -> Plan:
    """Return what is to do for nodes of these releases, oldest first."""
    used = current.reached(with_triggers=True)
    used_before = set().union(*(release.reached(with_triggers=False) for release in earlier))
    only_before = used_before - used
    previous = {part.name for part in current.parts.get(FILE, [])}
    return Plan(
        dict(_files(current, earlier, used, only_before)),
        sorted(
            part.drop
            for name in current.functions.keys() - used - only_before
            for part in current.functions[name]
        ),
        [
            *(f"{name} is in {FILE}, but this release calls it" for name in sorted(previous & used)),
            *(problem for release in earlier for problem in _differences(current, release, used)),
        ],
    )


def _files(
    current: Release, earlier: Sequence[Release], used: Iterable[str], only_before: Iterable[str]
) -> Iterator[tuple[str, str]]:
    for file, parts in current.parts.items():
        remaining = [part for part in parts if part.name in used or not part.name]
        if file != FILE and remaining != parts:
            yield file, "".join(part.text for part in remaining).lstrip()
    moved: dict[str, str] = {}
    for part in (part for release in earlier for parts in release.parts.values() for part in parts):
        if part.name in only_before:
            moved[part.signature] = part.text.strip("\n") + part.rights
    previous = HEADER + "\n\n".join(moved.values()) + "\n" if moved else ""
    if previous != "".join(part.text for part in current.parts.get(FILE, [])):
        yield FILE, previous


def _differences(current: Release, earlier: Release, used: AbstractSet[str]) -> Iterator[str]:
    for name in sorted((used & earlier.reached(with_triggers=False)) - CHANGED.keys()):
        codes = {part.signature: part.code for part in current.functions[name]}
        for part in earlier.functions.get(name, []):
            if part.signature not in codes:
                yield f"{part.signature} is missing: nodes of the previous releases call it"
            elif codes[part.signature] != part.code:
                yield f"{part.signature} has another text than nodes of the previous releases need: give the new one a name"


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        earlier = [
            read(oldest_release.unpack(Path(directory) / name, commit)) for name, commit in RELEASES.items()
        ]
    changes = plan(read(ROOT), *earlier)
    for problem in changes.problems:
        print(problem, file=sys.stderr)
    if changes.problems:
        return 1
    for file, text in changes.files.items():
        path = sql.DIRECTORY / "functions" / file
        if text:
            path.write_text(text)
        else:
            path.unlink()
    for statement in changes.drops:
        print(statement)
    return 0


if __name__ == "__main__":
    sys.exit(main())
