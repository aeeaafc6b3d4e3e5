"""Importing users from files, such as the exports of other products, and exporting them."""

from typing import Any

# A user or a part of one: as its schema has loaded it, or as the JSON of the rows to insert.
Loaded = dict[str, Any]


class InvalidRecord(ValueError):
    """An entry that must be refused. The message is for operators."""
