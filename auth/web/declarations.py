"""The declarations of routes. The decorators of a view set them at import, and auth/web reads them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from flask.typing import ResponseReturnValue

from auth.rules.levels import Level

LARGEST_BODY = 64 * 1024

View = Callable[..., ResponseReturnValue]
_View = TypeVar("_View", bound=Callable[..., Any])
Body = dict[str, Any]

# The names of refusals in the audit log.
RefusalEntry = Literal[
    "sign_in_refused", "sign_up_refused", "verification_refused", "factor_refused", "oauth_refused",
    "refresh_refused", "change_refused", "admin_refused", "application_refused",
]  # fmt: skip
# The label `method` of the metric `latchkey_sign_ins`. Refreshes have their own metric.
SignIn = Literal[
    "password", "link", "oauth", "passkey", "factor", "recovery_code", "id_token", "pkce", "refresh",
    "oauth_client", "api_key",
]  # fmt: skip
# The scopes of administrative keys. Each operation names one at its guard, or admits no such key.
Scope = Literal[
    "users:read", "users:write", "sessions:end", "audit:read", "invites", "links", "clients", "webhooks",
    "providers", "introspect", "organizations:read", "organizations:write",
]  # fmt: skip


# Compared by identity, so that an instance can be the default of `g.route`.
@dataclass(eq=False)
class Route:
    """The attributes of a view.

    `scope` is that of the administrative keys that the route admits. `asks_more` is whether some bodies or
    queries need a higher level. `limits` are the windows of its acts. `max_body` is in bytes.
    `writes_dialect` translates the body of a response to the dialect of the Supabase clients.
    """

    guard: str | None = None
    scope: Scope | None = None
    level: Level = Level.ANYONE
    asks_more: bool = False
    limits: tuple[str, ...] = ()
    refusal: RefusalEntry | None = None
    sign_in: SignIn | None = None
    max_body: int = 16 * 1024
    accepts_forms: bool = False
    any_origin: bool = False
    takes_foreign_forms: bool = False
    answers_frames: bool = False
    refuses_by_page: bool = False
    writes_dialect: Callable[[Any], Body | list[Body]] | None = None

    @property
    def is_administrative(self) -> bool:
        return self.refusal == "admin_refused"


def route_of(view: Callable[..., object]) -> Route:
    """Return the declarations of a view. `functools.wraps` passes the same object to all its decorators."""
    route: Route | None = view.__dict__.get("route")
    if route is None:
        route = view.__dict__["route"] = Route()
    return route


def says(**attributes: object) -> Callable[[_View], _View]:
    """Return a decorator that sets attributes of a view's route."""

    def decorate(view: _View) -> _View:
        vars(route_of(view)).update(attributes)
        return view

    return decorate


def audited(refusal: RefusalEntry, *, sign_in: SignIn | None = None) -> Callable[[_View], _View]:
    """Set the name of a refusal in the audit log, and the method of a sign-in in the metrics."""
    return says(refusal=refusal, sign_in=sign_in)


def counted(*limits: str) -> Callable[[_View], _View]:
    """Set the limits that a view's statement, or a function that the view calls, counts."""

    def decorate(view: _View) -> _View:
        route_of(view).limits += limits
        return view

    return decorate


# Some bodies or queries need a higher level, which docs/security.md lists.
asks_more = says(asks_more=True)
accepts_forms = says(accepts_forms=True)
# Public: pages of any origin may read the responses, regardless of AUTH_CORS_ORIGINS.
any_origin = says(any_origin=True)
# Providers and applications may send their forms here.
takes_foreign_forms = says(accepts_forms=True, takes_foreign_forms=True)
# A frame of any page may send a request with prompt=none.
answers_frames = says(answers_frames=True)
# An access token with 16 KiB of metadata is 24 KiB long.
takes_tokens = says(max_body=32 * 1024)
# Two objects of 8 KiB. Escapes or indentation may multiply their size.
takes_metadata = says(max_body=LARGEST_BODY)
# Browsers get errors as a page: they also open links, redirects and forms outside of `pages`.
refuses_by_page = says(refuses_by_page=True)
