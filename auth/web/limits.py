"""Rate limits: how often what may be done, counted together by all workers and nodes.

Requests are counted by Flask-Limiter, in the database by default (storage `postgresql`) or in Redis. Failed
passwords are always counted in the database, by the statement that looks the password up.
"""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg2
import structlog
from flask import Flask, Response, g, has_request_context
from flask_limiter import Limiter, RateLimitExceeded
from limits import RateLimitItem
from limits.errors import StorageError
from limits.storage import Storage

from auth.context import latchkey
from auth.settings import Settings
from auth.web.errors import ApiError, envelope
from sql import Database

log = structlog.get_logger()

# Seconds that a request waits for Redis before it is let through uncounted.
_REDIS_TIMEOUT = 0.5


@dataclass(frozen=True)
class Window:
    """One count that a request was part of: at most `amount`, `remaining` of it left, for `seconds` more."""

    amount: int
    remaining: int
    seconds: float


class PostgresStorage(Storage):
    """A storage of the limits library in the service's own database; of its strategies, for the fixed window.

    One limited request asks three times (count, then count and expiry for the headers). `incr` answers all
    three with its one statement: what it learns is kept for the rest of the request.
    """

    STORAGE_SCHEME = ["postgresql"]  # noqa: RUF012 (so does the base class)

    def __init__(
        self,
        uri: str | None = None,
        wrap_exceptions: bool = False,
        database: Database | None = None,
        **options: Any,
    ) -> None:
        super().__init__(uri, wrap_exceptions=wrap_exceptions, **options)
        self._database = database

    @property
    def base_exceptions(self) -> type[Exception]:
        """What a failing database raises."""
        return psycopg2.Error

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Count, and return the count."""
        row = self._db.one("count_request", key=key, amount=amount, seconds=expiry)
        self._remember(key, row)
        return row.count

    def get(self, key: str) -> int:
        """Return the count, 0 when there is none."""
        row = self._read(key)
        return row.count if row else 0

    def get_expiry(self, key: str) -> float:
        """Return when the window ends, in seconds of this machine's clock."""
        row = self._read(key)
        return time.time() + (row.seconds_left if row else 0)

    def check(self) -> bool:
        """Whether the database answers."""
        try:
            return self._db.one("ping") is not None
        except psycopg2.Error:
            return False

    def reset(self) -> int:
        """Forget all counts, and return how many there were."""
        return self._db.run("reset_request_counts")

    def clear(self, key: str) -> None:
        """Forget one count."""
        self._db.run("clear_request_count", key=key)

    @property
    def _db(self) -> Database:
        return self._database or latchkey.db

    def _read(self, key: str) -> Any:
        known = g.get("limit_counts", {}) if has_request_context() else {}
        return known.get(key) or self._db.one("select_request_count", key=key)

    @staticmethod
    def _remember(key: str, row: Any) -> None:
        if has_request_context():
            g.setdefault("limit_counts", {})[key] = row


def _network() -> str:
    return g.client["network"]


class _ToOurLog(logging.Handler):
    """Takes what Flask-Limiter says of a storage that fails, which nobody would read otherwise."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        log.warning(
            "rate_limit_storage_failed", reason=record.getMessage(), error=str(error) if error else None
        )


logging.getLogger("flask-limiter").addHandler(_ToOurLog(logging.ERROR))
limiter = Limiter(key_func=_network, strategy="fixed-window")


@limiter.request_filter
def _is_lifted() -> bool:
    return not latchkey.settings.rate_limits_enabled


def limited(
    name: str, *, key: Callable[[], str] = _network, unless: Callable[[], bool] | None = None
) -> Callable[[Callable], Callable]:
    """Limit a view by the setting `AUTH_RATE_LIMIT_<NAME>`, together with all that share the name.

    Guards go outside, where the key is the caller's.
    """

    def amount() -> str:
        g.is_limited = True
        return str(getattr(latchkey.settings, f"rate_limit_{name}"))

    return limiter.shared_limit(amount, scope=name, key_func=key, exempt_when=unless)


def register(app: Flask, settings: Settings) -> None:
    """Begin to count, and to say so in headers."""
    uri = settings.rate_limit_storage
    app.config["RATELIMIT_STORAGE_URI"] = "postgresql://" if uri == "postgresql" else uri
    if uri.startswith(("redis://", "rediss://")):
        timeouts = {"socket_timeout": _REDIS_TIMEOUT, "socket_connect_timeout": _REDIS_TIMEOUT}
        app.config["RATELIMIT_STORAGE_OPTIONS"] = timeouts | {"wrap_exceptions": True}
        # What counts only requests may fail; what fails with the service's own database does not come so far.
        app.config["RATELIMIT_SWALLOW_ERRORS"] = True
    # Whom it finds there it gives no hooks of its own. They look at each request for limits of the whole
    # application, of which there are none: it is the decorators that count.
    app.extensions["limiter"] = {limiter}
    limiter.init_app(app)
    app.register_error_handler(RateLimitExceeded, _refuse)


def refusal(key: str, seconds: float) -> ApiError:
    """Return the 429 of `ERRORS` for a limit that is used up for `seconds` more."""
    return ApiError(key, headers={"Retry-After": str(max(1, math.ceil(seconds)))})


def note(window: Window) -> None:
    """Have the response tell of a count that Flask-Limiter does not know."""
    g.setdefault("windows", []).append(window)


def headers(status: int) -> list[tuple[str, str]]:
    """Return the rate-limit headers of a response: those of the tightest limit that counted its request."""
    # Asking Flask-Limiter for every response takes 2 % of GET /user.
    windows = [*g.get("windows", ()), *(_counted(status) if "is_limited" in g else ())]
    if not windows:
        return []
    tightest = min(windows, key=lambda window: window.remaining)
    return [
        ("X-RateLimit-Limit", str(tightest.amount)),
        ("X-RateLimit-Remaining", str(tightest.remaining)),
        ("X-RateLimit-Reset", str(max(0, math.ceil(tightest.seconds)))),
    ]


def requests_and_window(item: RateLimitItem) -> dict[str, int]:
    """Return a limit as /settings shows it."""
    return {"requests": item.amount, "window": item.get_expiry()}


def _refuse(_error: RateLimitExceeded) -> Response:
    limit = limiter.current_limit
    seconds = limit.window.reset_time - time.time() if limit else 1
    return envelope(refusal("over_request_rate_limit", seconds))


def _counted(status: int) -> list[Window]:
    """Return what Flask-Limiter has counted of this request."""
    windows, now = [], time.time()
    try:
        for limit in limiter.current_limits:
            # Whose access token turned out not to count any more has not used up what is its user's.
            if status == 401 and g.get("caller"):
                limiter.storage.incr(limit.key, limit.limit.get_expiry(), -1)
            seconds = min(limit.window.reset_time - now, limit.limit.get_expiry())
            windows.append(Window(limit.limit.amount, max(0, limit.remaining), seconds))
    # What counts has gone since; the answer is there all the same.
    except (StorageError, psycopg2.Error) as error:
        log.warning("rate_limit_storage_failed", reason=str(error))
    return windows
