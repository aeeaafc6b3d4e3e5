"""The caller of a request, as statements take it, the facts about it, and why it is refused."""

from datetime import UTC, datetime
from typing import TypeAlias, TypedDict, cast

from auth.core.tokens.access_tokens import Caller
from auth.rules import tokens
from auth.rules.levels import Aal, Level
from auth.rules.organizations import Standing
from auth.rules.policy import Policy
from auth.rules.refusals import Refusal
from auth.rules.sessions import EPOCH, Session
from auth.rules.tokens import ApiKey
from auth.web.errors import ApiError
from sql import Runner, queries

# The keys of the errors that tell a caller of a refusal, where they differ.
_REFUSALS = {
    "bad_jwt": "expired.bad_jwt",
    "api_key_not_found": "key.session_not_found",
}

# The rows with the columns of `caller_facts`.
CallerFacts: TypeAlias = (
    "queries.SelectUser | queries.SelectPerson | queries.SelectSessions | queries.SelectGrants"
    " | queries.SelectApiKeys | queries.SelectRecoveryCodes | queries.SelectClientCaller"
    " | queries.SelectMember | queries.SelectOwnOrganizations"
)
# Those of them that also say when the session's user last authenticated.
StandingFacts: TypeAlias = (
    "queries.SelectUser | queries.SelectPerson | queries.SelectMember | queries.SelectOwnOrganizations"
)
# The rows with the columns of `user_facts`, and the level and the end of an API key.
KeyFacts: TypeAlias = "queries.SelectApiKey | queries.SelectUserOfApiKey | queries.SelectApiKeyToUse"


class CallerIds(TypedDict):
    """The parameters of a statement that reads `caller_facts`."""

    caller_id: str
    caller_session_id: str


def caller_ids(caller: Caller) -> CallerIds:
    return {"caller_id": caller.user_id, "caller_session_id": caller.session_id}


def select(on: Runner, caller: Caller) -> "queries.SelectPerson | None":
    """Return the facts about a caller. In an act, the user is locked."""
    return queries.select_person(on, user_id=caller.user_id, session_id=caller.session_id)


def refusal_of(row: "CallerFacts", caller: Caller, level: Level, policy: Policy) -> Refusal | None:
    """Return why a caller, with these facts, may not do what demands a level, or None."""
    return tokens.refusal_of_session(
        row,
        session_of(row),
        None if caller.expires_at is None else moment_of(caller.expires_at),
        caller.aal,
        level,
        policy,
    )


def refusal_of_key(row: "KeyFacts", expires_at: int | None, policy: Policy) -> Refusal | None:
    """Return why an API key, or its access token that expires at a Unix time, gives nothing, or None."""
    token_end = None if expires_at is None else moment_of(expires_at)
    return tokens.refusal_of_api_key(row, key_of(row), token_end, policy)


def moment_of(seconds: int) -> datetime:
    """Return a time of a token, in Unix seconds, as the rules take it."""
    return datetime.fromtimestamp(seconds, UTC)


def aal_of(row: "CallerFacts", caller: Caller) -> Aal:
    """Return the level of a caller's session.

    An access token keeps a level that the session has lost with a factor. A token that lacks a step belongs
    to a session of `aal1`.
    """
    return min(max(caller.aal, "aal1"), row.aal or "")


def standing_of(row: "StandingFacts", caller: Caller) -> Standing:
    """Return what the caller's session, which is open, meets requirements of organizations with."""
    return Standing(aal_of(row, caller), caller.providers, row.authenticated_at or EPOCH, row.now)


def session_of(row: "CallerFacts") -> Session | None:
    """Return the row as a session, if the user has it."""
    return None if row.session_created_at is None else cast(Session, row)


def key_of(row: "KeyFacts") -> ApiKey | None:
    """Return the API key, if the user has it."""
    return None if row.key_aal is None else ApiKey(aal=row.key_aal, expires_at=row.key_expires_at)


def error_of(refusal: Refusal) -> ApiError:
    """Return the error that tells a caller of a refusal."""
    return ApiError(_REFUSALS.get(refusal, refusal))
