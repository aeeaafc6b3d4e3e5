"""Lines of the log of a process that has no settings yet, or prints what is no event of ours.

It imports nothing of ours: what fails to load is told by it, too.
"""

import contextlib
import json
import os
from datetime import UTC, datetime

ISO = "%Y-%m-%dT%H:%M:%S.%fZ"


def event(text: str, level: str, **members: object) -> str:
    timestamp = f"{datetime.now(UTC):{ISO}}"
    return json.dumps({"event": text, "level": level, "timestamp": timestamp, **members}, ensure_ascii=False)


def before_settings(text: str, level: str = "error") -> str:
    """Return a line of a process without valid settings, as an event if `AUTH_LOG_FORMAT` is `json`."""
    environment: dict[str, str | None] = dict(os.environ)
    with contextlib.suppress(ImportError, OSError, ValueError):
        from dotenv import dotenv_values

        environment = dotenv_values(".env") | environment
    return event(text, level) if environment.get("AUTH_LOG_FORMAT") == "json" else text


def is_event(line: str) -> bool:
    with contextlib.suppress(ValueError):
        return isinstance(json.loads(line), dict)
    return False
