"""Who acts, and from where, for the audit log; and what was refused.

What is done is written down by the statement that does it (`record_acts` in schema.sql), which is told its
origin. What is refused changes nothing, and is written down here, after the answer is known.
"""

import click
import psycopg2
import structlog
from flask import Response, after_this_request, g, has_request_context, request

from auth.context import latchkey

log = structlog.get_logger()

# What a refusal of a route is called; of one for administrators it is `admin_refused`.
_ACTIONS = {
    "token.token": "sign_in_refused",
    "token.login_admin": "sign_in_refused",
    "signup.signup": "sign_up_refused",
    "verify.verify_link": "verification_refused",
    "verify.verify": "verification_refused",
    "oauth.callback": "oauth_refused",
    "user.update_user": "change_refused",
    "user.delete_user": "change_refused",
    "identities.authorize_identity": "change_refused",
    "identities.delete_identity": "change_refused",
}
REFUSED_ACTIONS = {*_ACTIONS.values(), "refresh_refused", "admin_refused"}
# The error codes that say that somebody may not, rather than that a request is wrong. A limit on passwords is
# written down by the statement that counts; other limits count networks, not people.
_REASONS = {
    "invalid_credentials", "email_not_confirmed", "phone_not_confirmed", "user_banned", "not_admin", "insufficient_permissions",
    "signup_disabled", "reauthentication_needed", "reauthentication_not_valid", "current_password_invalid", "session_not_found",
    "session_expired", "user_not_found", "otp_expired", "bad_oauth_state", "bad_oauth_callback", "flow_state_not_found",
    "bad_code_verifier", "identity_already_exists", "single_identity_not_deletable", "email_exists", "phone_exists",
    "refresh_token_not_found",
}  # fmt: skip


def origin() -> dict[str, str | None]:
    """Return where what is done now comes from: a request, a command of `flask`, or a thread of the service
    itself.
    """
    if not has_request_context():
        return {"actor": "command" if click.get_current_context(silent=True) else "service"}
    known = {**g.client, "request_id": g.request_id}
    # The guards leave None where the service role key came; what is public has no guard.
    if "caller" not in g:
        return {"actor": "anonymous", **known}
    if g.caller is None:
        return {"actor": "service_role", **known}
    return {"actor": "user", "actor_id": g.caller.user_id, **known}


def about(
    *,
    user_id: str | None = None,
    address: str | None = None,
    token_hash: bytes | None = None,
    **details: object,
) -> None:
    """Say whom a request concerns, by what is known of them, and more that is worth knowing should it be
    refused.
    """
    g.subject = {"user_id": user_id, "address": address, "token_hash": token_hash}
    g.refusal_details = details


def refused(reason: str) -> None:
    """Say that the answer is a refusal, and why: an error_code."""
    if "refused_because" not in g:
        after_this_request(_record_refusal)
    g.refused_because = reason


def _record_refusal(response: Response) -> Response:
    reason = g.refused_because
    if reason not in _REASONS and reason != "bad_jwt":
        return response
    action = _action()
    # Access tokens expire all the time; only administrators' are worth a line.
    if reason == "bad_jwt" and action != "admin_refused":
        return response
    # A forged refresh token is nobody's, and never reaches the database.
    if action is None or (action == "refresh_refused" and "subject" not in g):
        return response
    caller = g.get("caller")
    subject = g.get(
        "subject", {"user_id": caller.user_id if caller else None, "address": None, "token_hash": None}
    )
    try:
        latchkey.db.one(
            "record_refusal", **subject, action=action, reason=reason, details=g.get("refusal_details", {})
        )
    # The answer stands, whether or not it could be written down.
    except psycopg2.Error as error:
        log.warning("refusal_not_recorded", reason=str(error).strip())
    return response


def _action() -> str | None:
    if "is_administrative" in g:
        return "admin_refused"
    if request.endpoint == "token.token" and request.args.get("grant_type") == "refresh_token":
        return "refresh_refused"
    return _ACTIONS.get(request.endpoint or "")
