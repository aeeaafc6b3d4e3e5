"""Hands a browser that is signed in on our pages to the site that it comes from."""

from auth.core import constants
from auth.flows.sessions.issuing import about_new
from auth.flows.sessions.token_response import Outcome, proof_of_browser, sign_in_user, write_code
from auth.flows.sign_in.reauthentication import admit_caller
from auth.web import Level
from auth.web.asked import Asked
from sql import acts, queries


def hand_on(asked: Asked, code_challenge: str | None, level: Level) -> Outcome:
    """Open a session for a site, or write the code for it. Refuses if the second step is missing."""
    caller, issue, hook = asked.caller, None, asked.parts.token_hook
    if hook and not code_challenge:
        asked.live_caller(level)
        issue = about_new(asked, hook, caller.user_id, "", opener=caller.session_id)
    with acts.on(asked.db, caller.user_id) as act:
        person = admit_caller(asked, act, level=level)
        proof = proof_of_browser(act, person, caller.session_id)
        if code_challenge:
            return Outcome(authorization_code=write_code(asked, act, person, code_challenge, proof))
        return Outcome(sign_in_user(asked, act, person, proof, issue))


def expect_site(asked: Asked) -> None:
    """Note that we redirect the browser to where the site begins its own sign-in."""
    lifetime, session_id = constants.FLOW_LIFETIME, asked.caller.session_id
    queries.expect_site(asked.db, session_id=session_id, lifetime=lifetime)


def meet_site(asked: Asked) -> bool:
    """Whether the caller's browser comes from where `expect_site` redirected it. True only once."""
    return queries.meet_site(asked.db, session_id=asked.caller.session_id) == 1
