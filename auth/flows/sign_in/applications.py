"""An application that a browser comes from which is signed in on our pages."""

from auth.core import promises
from auth.flows.sessions import token_response
from auth.flows.sessions.issuing import about_new, is_asked
from auth.flows.sessions.token_response import Outcome, Session
from auth.flows.sign_in.reauthentication import admit_caller
from auth.web import Level
from auth.web.asked import Asked
from sql import acts, queries


def open_for_application(asked: Asked, code_challenge: str | None, level: Level) -> Outcome:
    """Open a session for an application, or write the code that stands for it.

    Raises `ApiError` if the second step is missing.
    """
    opened_by, for_client = asked.caller.session_id, not code_challenge
    if is_asked(asked, for_client=for_client):
        asked.live_caller(level)
    issue = about_new(asked, asked.caller.user_id, "", for_client=for_client, opener=opened_by)
    with acts.on(asked.db, asked.caller.user_id) as tx:
        caller = admit_caller(asked, tx, level=level)
        method = queries.select_session_method(tx, session_id=opened_by).method
        if code_challenge:
            code = token_response.write_code(asked, tx, caller.id, code_challenge, method, opened_by)
            return Outcome(authorization_code=code)
        row = token_response.open_application_session(asked, tx, caller, method, issue, opened_by)
    return Outcome(Session(row, issue))


def expect_site(asked: Asked) -> None:
    """Note that a flow of ours leads the browser to where the application begins its own sign-in."""
    lifetime, session_id = promises.FLOW_LIFETIME, asked.caller.session_id
    queries.expect_site(asked.db, session_id=session_id, lifetime=lifetime)


def meet_site(asked: Asked) -> bool:
    """Whether the caller's browser comes from where `expect_site` has led it. Once."""
    return queries.meet_site(asked.db, session_id=asked.caller.session_id) == 1
