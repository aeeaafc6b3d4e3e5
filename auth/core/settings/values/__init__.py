"""The permitted values of settings."""

from typing import Any

# The values by their fields, before they are complete.
Values = dict[str, Any]
