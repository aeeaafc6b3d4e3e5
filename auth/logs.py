"""The log: one event per line on standard error, as JSON or, on a terminal, as text."""

import contextlib
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from auth.settings import Settings

_JSON = json.JSONEncoder(default=str)


class _Logger:
    """Standard error. A line that cannot be written is lost, and does not fail its request."""

    def msg(self, line: str) -> None:
        """Write a line in one piece, without the lock of `sys.stderr`."""
        with contextlib.suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), f"{line}\n".encode(errors="backslashreplace"))

    debug = info = warning = error = msg


def _format(settings: Settings) -> str:
    return settings.log_format or ("text" if sys.stderr.isatty() else "json")


def _level(settings: Settings) -> int:
    return logging.getLevelNamesMapping()[settings.log_level.upper()]


def configure(settings: Settings, context: Callable[[], Mapping[str, Any]] = dict) -> None:
    """Send structlog's events to standard error, each with the members that `context` returns."""
    processors: list[structlog.types.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        lambda _logger, _method, event: {**event, **context()},
    ]
    if _format(settings) == "json":
        processors.extend([structlog.processors.format_exc_info, _as_json])
    else:
        processors.append(_printable)
        processors.append(
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        )
    # urllib3's warnings quote URLs, which may contain secrets.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_level(settings)),
        logger_factory=_Logger,
        cache_logger_on_first_use=False,
    )


def _as_json(_logger: object, _method: str, event: structlog.types.EventDict) -> str:
    return _JSON.encode(event)


def _printable(_logger: object, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    # A client must not send commands to the terminal: gunicorn lets control characters from U+0080 through.
    return {
        name: value.encode("unicode_escape").decode()
        if isinstance(value, str) and not value.isprintable()
        else value
        for name, value in event.items()
    }
