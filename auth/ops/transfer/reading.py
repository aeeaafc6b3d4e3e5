"""Reads users from JSON lines, JSON documents and CSV, without checking their content."""

import codecs
import csv
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auth.core import normalize
from auth.ops import UnusableFile

_FLAGS = {"email_verified", "phone_verified", "email_proved", "phone_proved", "blocked"}
_OBJECTS = {"identities", "factors"}
_OBJECTS |= {"user_metadata", "app_metadata", "raw_user_meta_data", "raw_app_meta_data"}
_OWN = _FLAGS | _OBJECTS | {"email", "phone", "password_hash", "role", "name"}
_TRUTH = dict.fromkeys(("true", "t", "1", "yes"), True) | dict.fromkeys(("false", "f", "0", "no"), False)
_UTF_16 = "utf-16"
# A CSV without any of these columns has no users.
_ADDRESSES = {"email", "phone", "identities", "factors", "user_email"}


@dataclass(frozen=True)
class Entry:
    """One user of the file, or the `problem` with it. `place` is, for instance, `line 3`."""

    place: str
    value: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None


def read(path: Path) -> tuple[Iterator[Entry], int]:
    """Return the users of a file and their likely number, for a progress bar. Raises `UnusableFile`."""
    try:
        with path.open("rb") as file:
            mark = file.read(2)
        encoding = _UTF_16 if mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
        with path.open(encoding=encoding, errors="surrogateescape") as lines:
            first = next(filter(None, map(str.strip, lines)), "")
        if first.startswith('{"latchkey_backup":'):
            raise UnusableFile("it is a backup. Use latchkey restore.")
        if not first.startswith(("{", "[")):
            return _of_csv(path, encoding, _separator(first)), _count_lines(path)
        if encoding == _UTF_16:
            raise UnusableFile("it is JSON in UTF-16. Use UTF-8.")
        document = _json(first)
        if document is None:  # a document of several lines, or a broken first line
            document = _json(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except UnicodeError:
        raise UnusableFile("it begins like UTF-16, but is not. Use UTF-8.") from None
    except OSError as error:
        raise UnusableFile(f"{error.strerror}. Name a file that this user can read.") from None
    users = document.get("users") if isinstance(document, dict) else document
    if not isinstance(users, list):
        return _of_lines(path), _count_lines(path)
    return (_entry(f"user {number}", value) for number, value in enumerate(users, 1)), len(users)


def _separator(header: str) -> str:
    """Return the separator of columns. Spreadsheets use semicolons where the comma is the decimal sign."""
    for separator in (",", ";", "\t"):
        if _ADDRESSES.intersection(map(_column, header.replace('"', "").split(separator))):
            return separator
    if not header:
        return ","
    raise UnusableFile(
        "it is neither JSON nor CSV. Name the columns, such as email, in its first line, with commas,"
        " semicolons or tabs between them, and save it as UTF-8, or as UTF-16 with a byte order mark."
    )


def _column(name: str) -> str:
    """Return `email_verified` for ` Email Verified`; the names of other products keep their capitals."""
    name = normalize.trimmed(name)
    own = name.lower().replace(" ", "_")
    return own if own in _OWN else name


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _json(text: str | bytes) -> object:
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


def _entry(place: str, value: object) -> Entry:
    if isinstance(value, dict):
        return Entry(place, value)
    return Entry(place, problem="is not a JSON object")


def _of_csv(path: Path, encoding: str, separator: str) -> Iterator[Entry]:
    csv.field_size_limit(sys.maxsize)
    # Bytes that are not UTF-8 become surrogates, and their row is refused.
    with path.open(encoding=encoding, errors="surrogateescape", newline="") as file:
        rows = csv.DictReader(file, strict=True, delimiter=separator, skipinitialspace=True)
        rows.fieldnames = [*map(_column, rows.fieldnames or ())]
        while True:
            begins = rows.reader.line_num + 1
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                problem = f"is not CSV: {error}"
                if lines := rows.reader.line_num - begins:
                    # A quote that is not closed takes all lines up to the next one, or to the end.
                    problem += f"; a quote is open, and the next {lines:,} lines were not read"
                yield Entry(f"line {begins}", problem=problem)
            except UnicodeError:
                yield Entry(f"line {rows.line_num + 1}", problem="is not UTF-16")
                return
            else:
                yield _csv_entry(f"line {rows.line_num}", row)


def _csv_entry(place: str, row: Mapping[str, str]) -> Entry:
    if None in row:
        return Entry(place, problem="has more columns than the header")
    try:
        texts = {name: normalize.trimmed(text or "") for name, text in row.items()}
        return Entry(place, {name: _csv_value(name, text) for name, text in texts.items() if text})
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
        except (ValueError, RecursionError):
            raise ValueError(f"{name}: must be JSON") from None
    return text
