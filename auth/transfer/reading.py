"""Reads users from JSON lines, JSON documents and CSV, without checking their content."""

import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FLAGS = {"email_verified", "phone_verified", "email_proved", "phone_proved", "blocked"}
_OBJECTS = {"identities", "factors"}
_OBJECTS |= {"user_metadata", "app_metadata", "raw_user_meta_data", "raw_app_meta_data"}
_TRUTH = dict.fromkeys(("true", "t", "1", "yes"), True) | dict.fromkeys(("false", "f", "0", "no"), False)
# A CSV without any of these columns has no users.
_ADDRESSES = {"email", "phone", "identities", "factors", "user_email"}


class UnreadableFile(Exception):
    """The message is for operators."""


@dataclass(frozen=True)
class Entry:
    """One user as the file has it, or the `problem` with it. `place` is, for instance, `line 3`."""

    place: str
    value: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None


def read(path: Path) -> tuple[Iterator[Entry], int]:
    """Return the users of a file and how many there may be, for a progress bar. Raises `UnreadableFile`."""
    try:
        first = _first_line(path)
        if first.startswith(b'{"latchkey_backup":'):
            raise UnreadableFile("it is a backup. Use latchkey restore.")
        if not first.startswith((b"{", b"[")):
            _check_header(first)
            return _of_csv(path), _count_lines(path)
        users = _users_of_document(path, first)
    except OSError as error:
        raise UnreadableFile(f"{error.strerror}. Name a file that this user can read.") from None
    if users is None:
        return _of_lines(path), _count_lines(path)
    return (_entry(f"user {number}", value) for number, value in enumerate(users, 1)), len(users)


def _first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        lines = (line.removeprefix(b"\xef\xbb\xbf").strip() for line in file)
        return next(filter(None, lines), b"")


def _check_header(line: bytes) -> None:
    names = line.decode(errors="replace").replace('"', "").split(",")
    if line and not _ADDRESSES.intersection(names):
        raise UnreadableFile(
            "it is neither JSON nor CSV. Name the columns, such as email, in its first line."
        )


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _users_of_document(path: Path, first: bytes) -> list[Any] | None:
    """Return the array of a JSON document, or None for JSON lines."""
    document = _json(first)
    if document is None:  # a document of several lines, or a broken first line
        document = _json(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    users = document.get("users") if isinstance(document, dict) else document
    return users if isinstance(users, list) else None


def _json(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_lines(path: Path) -> Iterator[Entry]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not text.strip():
                continue
            try:
                yield _entry(f"line {number}", json.loads(text))
            except (ValueError, RecursionError) as error:
                yield Entry(f"line {number}", problem=f"is not JSON: {error}")


def _entry(place: str, value: Any) -> Entry:
    if isinstance(value, dict):
        return Entry(place, value)
    return Entry(place, problem="is not a JSON object")


def _of_csv(path: Path) -> Iterator[Entry]:
    csv.field_size_limit(sys.maxsize)
    # Bytes that are not UTF-8 become surrogates, and their row is refused.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        rows = csv.DictReader(file, strict=True)
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                yield Entry(f"line {rows.line_num}", problem=f"is not CSV: {error}")
            else:
                yield _csv_entry(f"line {rows.line_num}", row)


def _csv_entry(place: str, row: dict[Any, Any]) -> Entry:
    if None in row:
        return Entry(place, problem="has more columns than the header")
    try:
        return Entry(place, {name: _csv_value(name, text) for name, text in row.items() if text})
    except ValueError as error:
        return Entry(place, problem=str(error))


def _csv_value(name: str, text: str) -> object:
    if name in _FLAGS:
        if text.lower() not in _TRUTH:
            raise ValueError(f"{name}: must be true or false")
        return _TRUTH[text.lower()]
    if name in _OBJECTS:
        try:
            return json.loads(text)
        except ValueError:
            raise ValueError(f"{name}: must be JSON") from None
    return text
