"""The attributes of Flask's `g`, with types."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import flask
from flask.typing import ResponseReturnValue
from flask_limiter import RequestLimit

from auth.core.tokens.access_tokens import Caller, KeyCaller
from auth.core.tokens.client_tokens import ClientCaller
from auth.web.declarations import Level, Route

_NO_ROUTE = Route()


Actor = Literal["anonymous", "service_role", "user"]


@dataclass(frozen=True)
class Window:
    """A limit that counted a request, with `seconds` until it is reset."""

    amount: int
    remaining: int
    seconds: float


class Noted:
    """What an act notes for the log line, the audit log and the headers of the response."""

    # Whom a refusal concerns, as parameters of `record_refusal`.
    subject: dict[str, Any] | None = None
    # Limits that Flask-Limiter does not count.
    windows: tuple[Window, ...] = ()

    def note(
        self,
        *,
        user_id: str | None = None,
        address: str | None = None,
        token_hash: bytes | None = None,
        **details: object,
    ) -> dict[str, Any]:
        """Note the user and the details of a request, in case it is refused, and return them."""
        self.subject = {"user_id": user_id, "address": address, "token_hash": token_hash, "details": details}
        return self.subject

    def add_window(self, window: Window) -> None:
        """Add rate-limit headers for a limit that Flask-Limiter does not count."""
        self.windows += (window,)


# Defaults are attributes of the class: an `__init__` would set all of them at each request.
@dataclass(init=False)
class RequestContext(Noted):
    """The attributes of `g`. Those without a default exist once they are set."""

    # auth/web/edge.py sets this, and `request_id`, at the beginning of each request. `ip`, `network` and
    # `user_agent` of the client are parameters of statements.
    client: dict[str, Any]
    # A guard sets these. `caller` exists if the actor is a user.
    caller: Caller
    client_caller: ClientCaller
    key_caller: KeyCaller | None = None
    user_id: str | None = None
    actor: Actor = "anonymous"
    level: Level = Level.SESSION
    request_id: str = ""
    # The declarations of the view, or of another view that answers instead.
    route: Route = _NO_ROUTE
    # The `BrowserSession`, in the console.
    administrator: Any = None
    in_dialect: bool = False
    json_body: dict[str, Any] | None = None
    # For the audit log: the error_code of a refusal.
    refused_because: str | None = None
    # For the rate-limit headers: the rows of Flask-Limiter by key, what `limits.count` has counted, and
    # whether Redis did not respond.
    limit_counts: dict[str, Any] | None = None
    counted: tuple[RequestLimit, ...] = ()
    is_uncounted: bool = False

    def admit(self, caller: Caller) -> None:
        self.actor, self.caller, self.user_id = "user", caller, caller.user_id


g = cast("RequestContext", flask.g)
# The objects behind Flask's proxies, for the steps of every request: an attribute of a proxy takes twenty
# times as long.
current_g = cast("Callable[[], RequestContext]", flask.g._get_current_object)
current_request = cast("Callable[[], flask.Request]", flask.request._get_current_object)  # type: ignore[attr-defined]


def answered_by(view: Callable[..., ResponseReturnValue], *args: Any) -> ResponseReturnValue:
    """Answer the request with another view, whose declarations apply from now on."""
    g.route = vars(view).get("route", _NO_ROUTE)
    return view(*args)
