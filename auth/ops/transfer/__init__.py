"""Importing users from files, such as the exports of other products, and exporting them."""

from typing import Any

# A user or a factor of a file, which its schema has loaded.
Loaded = dict[str, Any]
