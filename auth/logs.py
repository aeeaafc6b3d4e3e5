"""The log: one event a line on standard error, as JSON or, on a terminal, as text. What is logged is chosen, never dumped."""

import json
import logging
import sys

import structlog
from flask import g, has_request_context

from auth.settings import Settings

# Made once: json.dumps with an argument makes one for each line.
_JSON = json.JSONEncoder(default=str)


class _Logger:
    """Standard error, as long as it takes what is written: a request must not fail because its log line can't be kept."""

    def msg(self, line: str) -> None:
        """Write a line, in one piece, or don't."""
        try:
            sys.stderr.write(f"{line}\n")
        except (OSError, ValueError):
            return

    debug = info = warning = error = msg


def configure(settings: Settings) -> None:
    """Send structlog's events to standard error, from the level that is set."""
    log_format = settings.log_format or ("text" if sys.stderr.isatty() else "json")
    processors: list[structlog.types.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_request_id,
    ]
    if log_format == "json":
        processors += [structlog.processors.format_exc_info, _as_json]
    else:
        processors.append(structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback))
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, settings.log_level.upper())),
        logger_factory=_Logger,
        cache_logger_on_first_use=False,
    )


def _as_json(_logger: object, _method: str, event: structlog.types.EventDict) -> str:
    return _JSON.encode(event)


def _add_request_id(_logger: object, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    if has_request_context() and "request_id" in g:
        event["request_id"] = g.request_id
    return event
