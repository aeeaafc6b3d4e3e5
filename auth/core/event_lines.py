"""Lines of the log: events of JSON, and the priorities of the journal.

Imports no other module of ours, so that the log of a failed import has them, too.
"""

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

# A pipe takes this much at once (pipe(7)), with a priority and the line's end. More could mix with lines of
# other processes, and one that is killed could leave half of it.
_MOST_BYTES = 4096 - len("<6>\n")
_CUT = " [...] "
_SHORT = 100  # characters of a member that is not cut, however many there are
# Of sd-daemon(3).
_PRIORITIES = {"debug": "<7>", "info": "<6>", "warning": "<4>", "error": "<3>", "critical": "<2>"}
# The lines that this process is about to print. What a library prints may look like one, such as a text of a
# client in a traceback.
_own: set[str] = set()


def timestamp() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def line(text: str, level: str, *, is_json: bool, **members: object) -> str:
    """Return a line for standard error: the text, or an event with `members`."""
    if is_json:
        text = as_json({"event": text, "level": level, "timestamp": timestamp(), **members})
    text = with_priority(text, level)
    if is_json or _goes_to_journal():
        _own.update(text.split("\n"))
    return text


def as_json(event: Mapping[str, object]) -> str:
    """Return an event as JSON in ASCII. If it is longer than a pipe takes at once, the longest members lose
    their middle: a traceback keeps its begin and its end.
    """
    text = json.dumps(event, default=str)
    while len(text) > _MOST_BYTES:
        longest = max(event, key=lambda name: len(str(event[name])))
        value = str(event[longest])
        if len(value) < _SHORT:
            break
        kept = len(value) * 2 // 5  # on each side
        event = {**event, longest: value[:kept] + _CUT + value[-kept:]}
        text = json.dumps(event, default=str)
    return text


def before_settings(text: str, level: str = "error") -> str:
    """Return a line of a process without valid settings: an event if `AUTH_LOG_FORMAT` is `json`."""
    environment: dict[str, str | None] = dict(os.environ)
    with contextlib.suppress(ImportError, OSError, ValueError):
        from dotenv import dotenv_values

        environment = dotenv_values(".env") | environment
    return line(text, level, is_json=environment.get("AUTH_LOG_FORMAT") == "json")


def with_priority(text: str, level: str) -> str:
    """Return a text for standard error. If that is the journal, each of its lines gets the priority."""
    priority = _PRIORITIES.get(level)
    if priority is None or not _goes_to_journal():
        return text
    return "\n".join(priority + each for each in text.split("\n"))


def take(text: str) -> bool:
    """Whether `line` has made this line, which is then forgotten."""
    try:
        _own.remove(text)
    except KeyError:
        return False
    return True


def _goes_to_journal() -> bool:
    """Whether standard error is the journal (systemd.exec(5)). A child may inherit the variable alone."""
    try:
        status = os.fstat(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # closed, or captured
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
