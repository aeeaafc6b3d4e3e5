"""The audit log: acts, written in their transaction, and refusals, written once the response is known."""

from collections.abc import Sequence
from typing import Any

import click
import psycopg2
import structlog
from flask import Response, after_this_request, g, has_request_context

from auth.context import latchkey
from auth.web import routes
from sql import Database, Transaction

log = structlog.get_logger()

# The error codes that refuse a user. The statement that counts failed passwords writes its own refusals.
_REASONS = {
    "invalid_credentials", "email_not_confirmed", "phone_not_confirmed", "user_banned", "not_admin",
    "insufficient_permissions", "insufficient_aal", "signup_disabled", "reauthentication_needed",
    "reauthentication_not_valid", "current_password_invalid", "session_not_found", "session_expired",
    "user_not_found", "otp_expired", "bad_oauth_state", "bad_oauth_callback", "flow_state_not_found",
    "bad_code_verifier", "email_exists", "phone_exists", "identity_already_exists",
    "single_identity_not_deletable", "last_administrator", "refresh_token_not_found",
    "webauthn_challenge_not_found", "webauthn_challenge_expired", "webauthn_verification_failed",
    "mfa_verification_failed", "mfa_challenge_expired",
}  # fmt: skip


def origin() -> dict[str, str | None]:
    """Return the actor of this request, command or service, and the client it acts from."""
    if not has_request_context():
        return {"actor": "command" if click.get_current_context(silent=True) else "service"}
    known = {**g.client, "request_id": g.request_id}
    # The guards set None for the service role key; public routes have no guard.
    if "caller" not in g:
        return {"actor": "anonymous", **known}
    if g.caller is None:
        return {"actor": "service_role", **known}
    actor = {"actor": "user", "actor_id": g.caller.user_id}
    if "administrator" in g:
        # The name remains when the administrator is deleted.
        actor["administrator"] = g.administrator.email or g.administrator.phone
    return {**actor, **known}


def record(
    tx: Database | Transaction,
    user_id: str | None,
    email: str | None,
    acts: Sequence[str | None],
    events: Sequence[str | None],
    **details: Any,
) -> None:
    """Write audit rows, and events for webhooks, of a transaction that changed a user. Skips None."""
    lists = {"acts": list(acts), "events": list(events)}
    tx.run("record_acts", user_id=user_id, email=email, details=details, **lists)


def about(
    *,
    user_id: str | None = None,
    address: str | None = None,
    token_hash: bytes | None = None,
    **details: object,
) -> None:
    """Note the user and the details of a request, in case it is refused."""
    g.subject = {"user_id": user_id, "address": address, "token_hash": token_hash}
    g.refusal_details = details


def refused(reason: str) -> None:
    """Record a refusal, with an error_code as its reason, once the response is known."""
    if "refused_because" not in g:
        after_this_request(_record_refusal)
    g.refused_because = reason


def _record_refusal(response: Response) -> Response:
    action, reason = routes.current().refusal, g.refused_because
    # Access tokens expire all the time; only those sent to administrative routes deserve a row.
    is_known = reason in _REASONS or (reason == "bad_jwt" and action == "admin_refused")
    # A forged refresh token belongs to no user.
    if action is None or not is_known or (action == "refresh_refused" and "subject" not in g):
        return response
    if "subject" not in g:
        caller = g.get("caller")
        about(user_id=caller and caller.user_id)
    try:
        latchkey.db.one(
            "record_refusal", **g.subject, action=action, reason=reason, details=g.refusal_details
        )
    except psycopg2.Error as error:
        log.warning("refusal_not_recorded", reason=str(error).strip())
    return response
