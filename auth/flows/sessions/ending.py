"""Signing out, and ending one session of the caller."""

from auth.core.text.moments import iso_8601
from auth.flows import ends, facts
from auth.flows.sign_in.reauthentication import admit_caller
from auth.rules.sessions import end_of_session
from auth.web import Level, audit
from auth.web.asked import Asked
from sql import acts, queries


def sign_out(asked: Asked, scope: str) -> str:
    """End the caller's sessions in a scope of POST /logout, and return the time in ISO 8601.

    `local` is this session, with those that it opened for applications. The user is locked, or a code that is
    redeemed meanwhile would start a session that outlives the log-out.
    """
    own = asked.caller.session_id
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act, level=Level.AAL2 if scope == "others" else Level.SESSION)
        ends.end(
            act,
            caller.id,
            None if scope == "global" else own,
            "others_signed_out" if scope == "others" else "logout",
        )
        audit.record(
            act, caller.id, caller.email, ["signed_out"], ["auth.logout"], scope=scope, session_id=own
        )
    return iso_8601(act.acted_at)


def end_session(asked: Asked, session_id: str) -> str | None:
    """End a session of the caller with those that it opened, and return the time, or None if it has ended."""
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act)
        ended = queries.select_person(act, user_id=caller.id, session_id=session_id)
        session = ended and facts.own_session_of(ended)
        if end_of_session(caller, session, asked.policy):
            return None
        ends.end(act, caller.id, session_id, "ended_by_user")
        audit.record(act, caller.id, caller.email, ["session_ended"], ["auth.logout"], session_id=session_id)
    return iso_8601(act.acted_at)
