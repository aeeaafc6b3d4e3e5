"""Ends what a user holds. auth/rules/ends.py has the size of each reason."""

from collections.abc import Collection, Iterable
from dataclasses import asdict
from typing import TypedDict, cast

from auth.core.text.names import PREFIX
from auth.rules.ends import ProviderReason, Reason, forgets_networks, what_ends
from sql import Database, queries
from sql.acts import Act

_BATCH = 200


class Ending(TypedDict):
    """The parameters of a statement that ends what many users hold."""

    reason: str
    reach: str
    keys_up_to: str | None
    with_grants: bool


def of(reason: Reason, *, has_session: bool = False) -> Ending:
    return cast(Ending, asdict(what_ends(reason, has_session=has_session)))


def end(
    act: Act, user_id: str, session_id: str | None, reason: Reason, *, kept: Collection[str] = ()
) -> bool:
    """End what a reason ends of a locked user, and return whether a session has ended.

    The size of the reason says whether the session of this id ends, or the others. Without an id, all
    sessions end. Links and codes stay. An end of everything forgets the user's known networks and browsers,
    except those that are `kept`: those of the session that stays.
    """
    return _end(act, user_id, session_id, reason, kept, voids=False).ended


def end_and_void(
    act: Act, user_id: str, session_id: str | None, reason: Reason, *, kept: Collection[str] = ()
) -> None:
    """End what a reason ends of a locked user, like `end`, and void the user's links and codes."""
    _end(act, user_id, session_id, reason, kept, voids=True)


def _end(
    act: Act, user_id: str, session_id: str | None, reason: Reason, kept: Collection[str], *, voids: bool
) -> "queries.EndHoldings":
    return queries.end_holdings(
        act,
        user_id=user_id,
        session_id=session_id,
        **of(reason, has_session=session_id is not None),
        voids=voids,
        forgets=forgets_networks(reason),
        known_here=list(kept),
    )


def end_with_identities(act: Act, user_id: str, providers: Iterable[str]) -> None:
    """End what customers' providers opened for a locked user who has lost the identities there (rule 21).

    `providers` are the names of identities, of any kind.
    """
    reason: ProviderReason = "provider_lost"
    for name in providers:
        if name.startswith(PREFIX):
            id = name.removeprefix(PREFIX)
            queries.end_opened_by_provider(act, user_id=user_id, provider_id=id, reason=reason)


def end_what_is_over(db: Database) -> None:
    """End what customers' providers opened before they were turned off, which gives no token already.

    Of many users in batches, each a transaction. Raises `psycopg2.Error`.
    """
    reason: ProviderReason = "provider_disabled"
    while queries.end_what_is_over(db, batch=_BATCH, reason=reason) == _BATCH:
        pass


def end_refused_sessions(act: Act, user_id: str) -> None:
    """End the sessions of a locked user at applications that refuse the user."""
    queries.end_refused_sessions(act, user_id=user_id, **of("access_lost", has_session=True))
