"""Ends what a user holds. auth/rules/ends.py has the size of each reason."""

from dataclasses import asdict
from typing import TypedDict, cast

from auth.rules.ends import Reason, what_ends
from sql import queries
from sql.acts import Act


class Ending(TypedDict):
    """The parameters of a statement that ends what many users hold."""

    reason: str
    reach: str
    keys_up_to: str | None
    with_grants: bool


def of(reason: Reason, *, has_session: bool = False) -> Ending:
    return cast(Ending, asdict(what_ends(reason, has_session=has_session)))


def end(act: Act, user_id: str, session_id: str | None, reason: Reason) -> bool:
    """End what a reason ends of a locked user, and return whether a session has ended.

    The size of the reason says whether the session of this id ends, or the others. Without an id, all
    sessions end. Links and codes stay.
    """
    ending = of(reason, has_session=session_id is not None)
    return queries.end_holdings(act, user_id=user_id, session_id=session_id, **ending, voids=False).ended


def end_and_void(act: Act, user_id: str, session_id: str | None, reason: Reason) -> None:
    """End what a reason ends of a locked user, like `end`, and void the user's links and codes."""
    ending = of(reason, has_session=session_id is not None)
    queries.end_holdings(act, user_id=user_id, session_id=session_id, **ending, voids=True)


def end_refused_sessions(act: Act, user_id: str) -> None:
    """End the sessions of a locked user at applications that refuse the user."""
    queries.end_refused_sessions(act, user_id=user_id, **of("access_lost", has_session=True))
