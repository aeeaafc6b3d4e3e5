"""What a request or a command asks for: all that a flow knows of either."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict, TypeVar

from auth.core.settings import Settings
from auth.core.tokens import one_time
from auth.core.tokens.access_tokens import Caller
from auth.web import cookies
from auth.web.context import Latchkey, current_parts
from auth.web.declarations import Level
from auth.web.errors import ApiError
from auth.web.request_context import Actor, Noted, current_g, current_request
from sql import Database, Runner, queries

_LONGEST_LANGUAGES = 200
# Keys of `ERRORS` for the results of `caller_state` that are not keys themselves.
_REFUSALS = {
    "bad_jwt": "expired.bad_jwt",
    "user_not_found": "caller.user_not_found",
    "api_key_not_found": "key.session_not_found",
}


class CallerParameters(TypedDict):
    """The parameters of a statement that uses `caller_state`."""

    caller_id: str
    caller_session_id: str
    caller_expires_at: int | None
    caller_aal: str
    caller_level: str


def caller_parameters(known: Caller, level: Level) -> CallerParameters:
    return {
        "caller_id": known.user_id,
        "caller_session_id": known.session_id,
        "caller_expires_at": known.expires_at,
        "caller_aal": known.aal,
        "caller_level": level,
    }


class _Checked(Protocol):
    """A row of a statement that uses `caller_state`."""

    @property
    def state(self) -> str: ...


R = TypeVar("R", bound=_Checked)


def admit(row: R | None) -> R:
    """Return the row of a statement that uses `caller_state`. Raises `ApiError` unless that is `live`."""
    if row is None:
        raise ApiError("caller.user_not_found")
    if row.state != "live":
        raise ApiError(_REFUSALS.get(row.state, row.state))
    return row


@dataclass(frozen=True)
class Asked:
    parts: Latchkey
    # `ip`, `network` and `user_agent` of the client are parameters of statements.
    client: dict[str, Any]
    actor: Actor
    # If the actor is a user.
    user: Caller | None = None
    # That of the route.
    level: Level = Level.SESSION
    # The row of `use_browser_session`, in the console.
    administrator: Any = None
    in_dialect: bool = False
    # The header Accept-Language, and the query.
    languages: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    # Returns the browser's cookie of a name, or "".
    cookie: Callable[[str], str] = lambda _name: ""
    # For the log line, the audit log and the headers of the response.
    noted: Noted = field(default_factory=Noted)

    @property
    def settings(self) -> Settings:
        return self.parts.settings

    @property
    def db(self) -> Database:
        return self.parts.db

    @property
    def caller(self) -> Caller:
        if self.user is None:
            raise RuntimeError("no user is signed in")
        return self.user

    @property
    def browser(self) -> str | None:
        """The browser's name in `known_networks`."""
        return cookies.browser_name(self.cookie(cookies.KNOWN))

    @property
    def browser_hash(self) -> bytes | None:
        """What the links and codes that the browser asked for are bound to."""
        return one_time.hash_token(self.cookie(cookies.WAITING))

    def caller_parameters(self, level: Level | None = None) -> CallerParameters:
        """Return them for the caller, with the route's level or another."""
        return caller_parameters(self.caller, level or self.level)

    def live_caller(self, level: Level | None = None, *, on: Runner | None = None) -> "queries.SelectCaller":
        """Return the row of the caller. Raises `ApiError` unless its state is `live`."""
        return admit(queries.select_caller(on or self.db, **self.caller_parameters(level)))


def current_asked() -> Asked:
    """Return what the current request asks for, by the caller whom its guard has admitted."""
    g, request = current_g(), current_request()
    return Asked(
        parts=current_parts(),
        client=g.client,
        actor=g.actor,
        user=g.caller if g.actor == "user" else None,
        level=g.level,
        administrator=g.administrator,
        in_dialect=g.in_dialect,
        languages=request.environ.get("HTTP_ACCEPT_LANGUAGE", "")[:_LONGEST_LANGUAGES],
        query=request.args,
        cookie=cookies.sent,
        noted=g,
    )
