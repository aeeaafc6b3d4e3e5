"""What carries a session: the browser's cookie, refresh tokens and unused codes.

They change in the act that raises the session or records a proof in it: an older copy never gives what the
session has gained since. The statement `raise_session` voids the refresh tokens.
"""

from auth.core.tokens import one_time
from auth.web.asked import Asked
from sql import acts, queries


def renew(asked: Asked, act: acts.Act, user_id: str, session_id: str) -> str | None:
    """Void the unused codes of a session, and give a browser's another cookie. Return that, or None.

    The view gives it to `browser_sessions.keep` as soon as the act has committed.
    """
    cookie = one_time.new_token() if asked.is_browser else None
    token_hash = one_time.hash_token(cookie or "")
    queries.renew_session_credentials(act, user_id=user_id, session_id=session_id, token_hash=token_hash)
    return cookie


def is_current(asked: Asked, act: acts.Act) -> bool:
    """Whether the browser's cookie still carries its session, which may have changed while the act waited."""
    caller = asked.caller
    return queries.select_is_current_cookie(
        act, session_id=caller.session_id, token_hash=caller.cookie_hash
    ).is_current
