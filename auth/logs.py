"""The log: one event a line on standard error, as JSON or, on a terminal, as text. What is logged is chosen, never dumped."""

import contextlib
import json
import logging
import os
import sys

import structlog
from flask import g

from auth.settings import Settings

# Made once: json.dumps with an argument makes one for each line.
_JSON = json.JSONEncoder(default=str)
# One list for good: a logger that was bound once goes on with it.
_processors: list[structlog.types.Processor] = []


class _Logger:
    """Standard error, as long as it takes what is written: a request must not fail because its log line can't be kept."""

    def msg(self, line: str) -> None:
        """Write a line, in one piece, or don't."""
        # Python's own stream would have each thread wait for those that write before it.
        with contextlib.suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), f"{line}\n".encode(errors="backslashreplace"))

    debug = info = warning = error = msg


def configure(settings: Settings) -> None:
    """Send structlog's events to standard error, from the level that is set."""
    log_format = settings.log_format or ("text" if sys.stderr.isatty() else "json")
    _processors[:] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_request_id,
    ]
    if log_format == "json":
        _processors.extend([structlog.processors.format_exc_info, _as_json])
    else:
        _processors.append(structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback))
    structlog.configure(
        processors=_processors,
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, settings.log_level.upper())),
        logger_factory=_Logger,
        cache_logger_on_first_use=False,
    )


def _as_json(_logger: object, _method: str, event: structlog.types.EventDict) -> str:
    return _JSON.encode(event)


def _add_request_id(_logger: object, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    # No request, or one that has no id yet.
    with contextlib.suppress(RuntimeError, AttributeError):
        event["request_id"] = g.request_id
    return event
