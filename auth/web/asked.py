"""What a request or a command asks for: all that a flow knows about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, TypeVar

from flask import current_app

from auth.core.settings import Settings
from auth.core.tokens import one_time
from auth.core.tokens.access_tokens import Caller
from auth.rules.levels import Level
from auth.rules.policy import Policy, on_pages
from auth.web import callers, cookies
from auth.web.application import Actor, AdminKeyCaller, Noted, current_g, current_request
from auth.web.callers import CallerIds
from auth.web.context import EXTENSION, Latchkey
from auth.web.errors import found
from sql import Database, Runner, queries
from sql.acts import Act

_LONGEST_LANGUAGES = 200
CallerRow = TypeVar("CallerRow", bound="callers.CallerFacts")


class Device(TypedDict):
    ip: str | None
    user_agent: str


@dataclass(frozen=True)
class Asked:
    parts: Latchkey
    # `ip`, `network` and `user_agent` of the client are parameters of statements.
    client: dict[str, Any]
    actor: Actor
    # Set if the actor is a user.
    user: Caller | None = None
    admin_key: AdminKeyCaller | None = None
    # The level that the route demands.
    level: Level = Level.SESSION
    # The `BrowserSession`, in the console.
    administrator: Any = None
    in_dialect: bool = False
    # The header Accept-Language, and the query.
    languages: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    # Returns the browser's cookie of a name, or "".
    cookie: Callable[[str], str] = lambda _name: ""
    # Runs in an act on one of many users, once the user is locked, and marks it as done.
    claim: Callable[[Act], object] = lambda _act: None
    # Collects notes for the log line, the audit log and the headers of the response.
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
    def is_key(self) -> bool:
        """Whether an administrative key asks, which may do less than the service role key (rule 6)."""
        return self.actor == "admin_key"

    @property
    def is_browser(self) -> bool:
        """Whether the caller is a browser with a session on our pages."""
        return self.user is not None and self.user.cookie_hash is not None

    @property
    def browser(self) -> str | None:
        """The browser's name in `known_networks`."""
        return cookies.browser_name(self.cookie(cookies.KNOWN))

    @property
    def here(self) -> list[str]:
        """The names in `known_networks` of the client's network and browser."""
        return [name for name in (self.client["network"], self.browser) if name]

    @property
    def browser_hash(self) -> bytes | None:
        """The hash to which the links and codes that this browser asks for are bound."""
        return one_time.hash_token(self.cookie(cookies.WAITING))

    @property
    def device(self) -> Device:
        """The client's device, as sessions and links show it."""
        return {"ip": self.client["ip"], "user_agent": self.client["user_agent"]}

    @property
    def caller_ids(self) -> CallerIds:
        return callers.caller_ids(self.caller)

    @property
    def policy(self) -> Policy:
        """The policy for the caller. On our pages, another page asks for a proof, before the change."""
        return on_pages(self.parts.policy) if self.is_browser else self.parts.policy

    def note_details(self, **details: object) -> None:
        """Note details for the audit log, in case the request is refused."""
        subject = self.noted.subject or self.noted.note(user_id=self.user.user_id if self.user else None)
        subject["details"] |= details

    def live_caller(self, level: Level | None = None, *, on: Runner | None = None) -> "queries.SelectPerson":
        """Return the facts about the caller. Refuse a caller who may not go on; see `admit_reader`."""
        return self.admit_reader(callers.select(on or self.db, self.caller), level)

    def admit_reader(self, row: CallerRow | None, level: Level | None = None) -> CallerRow:
        """Return the row of a statement that reads `caller_facts`.

        Refuse a caller who is banned, or whose session has ended or is below the level, by default the
        route's.
        """
        row = found(row, "caller.user_not_found")
        if refusal := callers.refusal_of(row, self.caller, level or self.level, self.parts.policy):
            raise callers.error_of(refusal)
        return row


def current_asked() -> Asked:
    """Return what the current request asks for, by the caller whom its guard has admitted."""
    g, request = current_g(), current_request()
    return Asked(
        parts=current_app.extensions[EXTENSION],
        client=g.client,
        actor=g.actor,
        user=g.caller if g.actor == "user" else None,
        admin_key=g.admin_key,
        level=g.level,
        administrator=g.administrator,
        in_dialect=g.in_dialect,
        languages=request.environ.get("HTTP_ACCEPT_LANGUAGE", "")[:_LONGEST_LANGUAGES],
        query=request.args,
        cookie=cookies.read,
        noted=g,
    )
