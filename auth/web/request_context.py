"""What is known about the current request: Flask's `g`, declared."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import flask
from flask.typing import ResponseReturnValue

from auth.core.tokens.access_tokens import Caller, KeyCaller
from auth.core.tokens.client_tokens import ClientCaller
from auth.web.declarations import Level, Route

_NO_ROUTE = Route()


# With defaults that are attributes of the class, because an `__init__` would set all of them at each request.
@dataclass(init=False)
class RequestContext:
    """The attributes of `g`. Those without a default exist once they are set."""

    # auth/web/edge.py sets this, and `request_id`, at the beginning of each request. `ip`, `network` and
    # `user_agent` of the client are parameters of statements.
    client: dict[str, Any]
    # A guard sets these. `caller` exists if the actor is a user.
    caller: Caller
    client_caller: ClientCaller
    key_caller: KeyCaller | None = None
    user_id: str | None = None
    actor: Literal["anonymous", "service_role", "user"] = "anonymous"
    level: Level = Level.SESSION
    request_id: str = ""
    # What the view says, or another one that answers in its place.
    route: Route = _NO_ROUTE
    # The row of `use_browser_session`, in the console.
    administrator: Any = None
    in_dialect: bool = False
    json_body: dict[str, Any] | None = None
    # For the audit log: whom a refusal concerns, as parameters of `record_refusal`, and its error_code.
    subject: dict[str, Any] | None = None
    refused_because: str | None = None
    # For the rate-limit headers: the rows of Flask-Limiter by key, and other limits.
    limit_counts: dict[str, Any] | None = None
    windows: tuple[Any, ...] = ()

    def admit(self, caller: Caller) -> None:
        self.actor, self.caller, self.user_id = "user", caller, caller.user_id


g = cast("RequestContext", flask.g)
# The objects behind Flask's proxies, for the steps that every request passes: an attribute of a proxy takes
# twenty times as long.
current_g = cast("Callable[[], RequestContext]", flask.g._get_current_object)
current_request = cast("Callable[[], flask.Request]", flask.request._get_current_object)  # type: ignore[attr-defined]


def answered_by(view: Callable[..., ResponseReturnValue], *args: Any) -> ResponseReturnValue:
    """Answer the request by another view, whose decorators count from now on."""
    g.route = vars(view).get("route", _NO_ROUTE)
    return view(*args)
