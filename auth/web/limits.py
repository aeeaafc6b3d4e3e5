"""Limits of requests, counted across all workers and nodes.

There are three ways to count. *Requests*, here: each act has one fixed window, whichever door leads to it,
per network, or per user and network; Flask-Limiter counts before the body is read, and a lost count does no
harm. *Verdicts* on passwords, codes and API keys: `record_verdict` counts what was wrong, and a verdict that
could not be recorded is not told. *Messages*: `count_message` counts a request for one, whether or not it is
sent, for its recipient and in the total of its channel. Rows of the last two have the same columns, and
sql/functions/limits.sql names their kinds. Views and flows note their limits.
"""

import functools
import math
import time
from collections.abc import Callable
from typing import Any

import psycopg2
from flask import Flask, has_request_context
from flask.typing import ResponseReturnValue
from flask_limiter import Limiter, RequestLimit
from limits import RateLimitItem
from limits.errors import StorageError
from limits.storage import RedisStorage, Storage

from auth.core.logs import ThrottledLog
from auth.core.settings import Settings
from auth.web import View, counted, current_g, g
from auth.web.application import LimitWindow
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import whole_body
from sql import queries

_storage_log = ThrottledLog("rate_limit_storage_failed")
_REDIS_TIMEOUT = 0.5  # seconds
# The operations of each `AUTH_RATE_LIMIT_<NAME>`. Two never share a window.
OPERATIONS = {
    "signup": ["sign_up"],
    "anonymous": ["sign_up_anonymously"],
    "login": [
        "sign_in_with_password", "sign_in_with_id_token", "sign_in_with_passkey", "find_provider",
        "continue_sign_in",
    ],
    "authorize": [
        "begin_at_provider", "return_from_provider", "begin_passkey_sign_in",
        "request_authorization", "request_authorization_silently", "read_authorization",
        "decide_authorization", "continue_authorization", "request_device_code", "decide_device",
    ],
    "recover": ["request_sign_in", "request_recovery", "request_confirmation", "request_proof"],
    "links": ["open_link", "open_linking", "set_preferences", "download_data"],
    "verify": [
        "verify", "exchange_code", "begin_linking", "challenge_factor", "verify_factor",
        "verify_recovery_code", "skip_second_step", "open_challenge", "enter_user_code",
    ],
    "waiting": [
        "poll_link", "poll_address", "carry_address", "check_common",
    ],
    "logout": ["log_out", "open_logout"],
    "user_changes": [
        "change_user", "delete_user", "give_proof", "end_session", "remove", "rename",
        "enrol_factor", "create_recovery_codes", "begin_passkey", "add_passkey", "connect_identity",
        "add_api_key", "found_organization", "change_organization", "change_member", "leave_organization",
        "withdraw_invitation", "answer_invitation", "change_sign_in", "move_to_company",
    ],
    "address_changes": ["change_address"],
    "invite": ["invite_member"],
    "client_registration": ["register_client", "fetch_client_document"],
    "client_tokens": ["redeem_client_code", "issue_to_client", "revoke_client_token", "poll_device_code"],
    "api_keys": ["exchange_api_key"],
    "console": ["administer", "confirm_administration"],
    "captcha": ["make_challenge"],
}  # fmt: skip
_SETTINGS = {
    operation: f"rate_limit_{name}" for name, operations in OPERATIONS.items() for operation in operations
}


class PostgresStorage(Storage):
    """Fixed windows in the service's database. `incr` keeps its row for the following calls."""

    STORAGE_SCHEME = ["postgresql"]  # noqa: RUF012 (so does the base class)

    @property
    def base_exceptions(self) -> type[Exception]:
        return psycopg2.Error

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        row = queries.count_request(latchkey.db, key=key, amount=amount, seconds=expiry)
        if has_request_context():
            g = current_g()
            g.limit_counts = (g.limit_counts or {}) | {key: row}
        return row.count

    def get(self, key: str) -> int:
        row = self._read(key)
        return row.count if row else 0

    def get_expiry(self, key: str) -> float:
        row = self._read(key)
        return time.time() + (row.seconds_left if row else 0)

    def check(self) -> bool:
        try:
            return queries.ping(latchkey.db) is not None
        except psycopg2.Error:
            return False

    # Nothing here ends a window before its time.
    def reset(self) -> int:
        raise NotImplementedError

    def clear(self, key: str) -> None:
        raise NotImplementedError

    def _read(self, key: str) -> "queries.CountRequest | queries.SelectRequestCount | None":
        rows = current_g().limit_counts if has_request_context() else None
        return (rows or {}).get(key) or queries.select_request_count(latchkey.db, key=key)


class OptionalRedis(RedisStorage):
    """Redis. While it does not respond, requests are served uncounted."""

    STORAGE_SCHEME = ["redis", "rediss"]  # noqa: RUF012 (so does the base class)

    def __init__(self, uri: str, wrap_exceptions: bool = True, **options: Any) -> None:
        timeouts = {"socket_timeout": _REDIS_TIMEOUT, "socket_connect_timeout": _REDIS_TIMEOUT}
        super().__init__(uri, wrap_exceptions=wrap_exceptions, **timeouts | options)

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        try:
            return super().incr(key, expiry, amount)
        except (StorageError, TypeError, ValueError) as error:  # or its answer is not a number
            reason = "Redis does not respond: requests are not limited"
            _storage_log.count(reason=reason, error=str(error))
            g.is_uncounted = True
            return 0


limiter = Limiter(key_func=lambda: g.client["network"], strategy="fixed-window")


def limited(
    operation: str,
    *,
    key: Callable[[], str] | None = None,
    unless: Callable[[], bool] | None = None,
    is_queued: bool = False,
) -> Callable[[View], View]:
    """Limit a view by the window of an operation, per network or `key`.

    If `key` needs the guard, put that outside. Set `is_queued` if the view hashes a password: the request
    then waits for its turn before it costs a statement.
    """

    def decorate(view: View) -> View:
        @functools.wraps(counted(operation)(view))
        def checked(*args: object, **kwargs: object) -> ResponseReturnValue:
            if unless is None or not unless():
                count(operation, key() if key else current_g().client["network"])
            if check := latchkey.operation_checks.get(operation):
                check()
            return view(*args, **kwargs)

        return _queued(checked) if is_queued else checked

    return decorate


def count(operation: str, key: str, limit: RateLimitItem | None = None) -> None:
    """Count the current request in the window of an operation, of its setting or `limit`, or refuse it."""
    if not latchkey.settings.rate_limits_enabled:
        return
    limit = limit or getattr(latchkey.settings, _SETTINGS[operation])
    request_limit = RequestLimit(limiter, limit, [key, operation], breached=False, shared=True)
    current_g().counted += (request_limit,)
    if not limiter.limiter.hit(limit, key, operation):
        raise refusal("over_request_rate_limit", request_limit.window.reset_time - time.time())


def _queued(view: View) -> View:
    @functools.wraps(view)
    def admitted(*args: object, **kwargs: object) -> ResponseReturnValue:
        # A client that sends its body slowly must not hold a place in the queue.
        whole_body()
        with latchkey.passwords.queue():
            return view(*args, **kwargs)

    return admitted


def register(app: Flask, settings: Settings) -> None:
    uri = settings.rate_limit_storage
    app.config["RATELIMIT_STORAGE_URI"] = "postgresql://" if uri == "postgresql" else uri
    # There are no limits for the whole application. Flask-Limiter looks for them at every request, unless it
    # is registered already: a fifth of GET /user.
    app.extensions["limiter"] = {limiter}
    limiter.init_app(app)


def refusal(key: str, seconds: float) -> ApiError:
    """Return the error of a key for a limit that resets in `seconds`."""
    return ApiError(key, headers={"Retry-After": str(max(1, math.ceil(seconds)))})


def headers(status: int) -> list[tuple[str, str]]:
    g, now = current_g(), time.time()
    windows = [*g.windows]
    try:
        for limit in g.counted if g.route.limits and not g.is_uncounted else ():
            # A token that the view refuses must not use up its user's limit.
            if status == 401 and g.actor == "user":
                limiter.storage.incr(limit.key, limit.limit.get_expiry(), -1)
            seconds = min(limit.window.reset_time - now, limit.limit.get_expiry())
            windows.append(LimitWindow(limit.limit.amount, max(0, limit.remaining), seconds))
    except (StorageError, psycopg2.Error) as error:
        _storage_log.count(reason="a count could not be read: no rate-limit headers", error=str(error))
    if not windows:
        return []
    tightest = min(windows, key=lambda window: window.remaining)
    return [
        ("X-RateLimit-Limit", str(tightest.amount)),
        ("X-RateLimit-Remaining", str(tightest.remaining)),
        ("X-RateLimit-Reset", str(max(0, math.ceil(tightest.seconds)))),
    ]
