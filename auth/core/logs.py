"""The log: one event per line on standard error, as JSON or, on a terminal, as text."""

import contextlib
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial, partialmethod

import structlog

from auth.core import event_lines
from auth.core.log_writer import writer
from auth.core.settings import Settings


class ThrottledLog:
    """Logs an event at most once in `interval`, with the number of `times` since the last line and the newest
    details."""

    interval = 1  # seconds

    def __init__(self, event: str, interval: int | None = None) -> None:
        self._event = event
        if interval is not None:
            self.interval = interval
        self._lock = threading.Lock()
        self._times = 0
        self._logged_at = -math.inf

    def count(self, **fields: object) -> None:
        now = time.monotonic()
        with self._lock:
            self._times += 1
            if now - self._logged_at < self.interval:
                return
            times, self._times, self._logged_at = self._times, 0, now
        structlog.get_logger().warning(self._event, times=times, **fields)


class _Logger:
    def _write(self, line: str, level: str) -> None:
        # One write, without the lock of `sys.stderr`. A lost line must not fail its request.
        with contextlib.suppress(OSError, ValueError):
            text = f"{event_lines.with_priority(line, level)}\n"
            writer.write(sys.stderr.fileno(), text.encode(errors="backslashreplace"))

    debug = partialmethod(_write, level="debug")
    msg = info = partialmethod(_write, level="info")
    warning = partialmethod(_write, level="warning")
    error = partialmethod(_write, level="error")
    critical = partialmethod(_write, level="critical")


def say(settings: Settings, line: str, level: str = "info") -> None:
    """Write a line for the operator at any log level: plain text, or an event if the log is JSON."""
    print(_line(settings, line, level), file=sys.stderr, flush=True)


def _line(settings: Settings, text: str, level: str) -> str:
    return event_lines.line(text, level, is_json=is_json(settings))


def is_json(settings: Settings) -> bool:
    return (settings.log_format or ("text" if sys.stderr.isatty() else "json")) == "json"


def configure(settings: Settings, context: Callable[[], Mapping[str, object]] = dict) -> None:
    """Send structlog's events to standard error, each with the members that `context` returns."""
    processors: list[structlog.types.Processor] = [
        lambda _logger, level, event: (
            {**event, "level": level, "timestamp": event_lines.timestamp(), **context()}
        )
    ]
    if is_json(settings):
        render = structlog.processors.format_exc_info
        processors += [render, lambda _logger, _method, event: event_lines.as_json(event)]
    else:
        plain = structlog.dev.plain_traceback
        console = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=plain, sort_keys=False
        )
        processors += [_printable, _brief, console]
    writer.as_line = partial(_line, settings, level="warning")
    # urllib3's warnings quote URLs, which may contain secrets.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=_Logger,
        cache_logger_on_first_use=False,
    )


def _printable(_logger: object, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    # A client must not send commands to the terminal: gunicorn lets control characters from U+0080 through.
    return {
        name: value.encode("unicode_escape").decode()
        if isinstance(value, str) and not value.isprintable()
        else value
        for name, value in event.items()
    }


def _brief(_logger: object, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    """Leave out unknown values, and begin the line of a request with `POST /token 200 336 ms`."""
    members = {name: value for name, value in event.items() if value is not None}
    if members["event"] != "request":
        return members
    if members["status"] < 400 and members.get("route", "").startswith("/static/"):
        raise structlog.DropEvent  # a page has several, which push messages off the terminal
    method, status, milliseconds = (members.pop(name) for name in ("method", "status", "milliseconds"))
    # A path without a route may contain a secret.
    return members | {"event": f"{method} {members.pop('route', '-')} {status} {milliseconds:.0f} ms"}
