"""The audit log: acts, written in their transaction, and refusals, written once the response is known."""

import os
import pwd
from collections.abc import Sequence

import click
import psycopg2
import structlog
from flask import has_request_context

from auth.web import current_g, g
from auth.web.context import latchkey
from sql import queries
from sql.acts import Act

log = structlog.get_logger()

# The error codes that refuse a user. The statement that reads a password's hash writes its own refusals.
_REASONS = {
    "invalid_credentials", "email_not_confirmed", "phone_not_confirmed", "user_banned", "not_admin",
    "insufficient_permissions", "insufficient_aal", "signup_disabled", "reauthentication_needed",
    "reauthentication_not_valid", "current_password_invalid", "session_not_found", "session_expired",
    "user_not_found", "otp_expired", "bad_oauth_state", "bad_oauth_callback", "flow_state_not_found",
    "bad_code_verifier", "email_exists", "phone_exists", "email_address_not_authorized",
    "identity_already_exists", "sso_provider_disabled", "user_sso_conflict",
    "single_identity_not_deletable", "last_administrator", "last_owner", "refresh_token_not_found",
    "webauthn_challenge_not_found", "webauthn_challenge_expired", "webauthn_verification_failed",
    "mfa_verification_failed", "mfa_challenge_expired", "hook_refused", "hook_failed",
    "organization_not_found", "organization_sign_in_needed", "own_sign_in_required", "provider_not_tried",
}  # fmt: skip
# Access tokens expire all the time, so only those at administrative routes get a row. Only the limits of
# sessions belong to a user.
_REASONS_BY_ACTION = {
    "admin_refused": ("bad_jwt", "insufficient_scope"),
    "refresh_refused": ("over_request_rate_limit",),
    "application_refused": ("oauth_client_not_found", "validation_failed", "oauth_consent_not_found"),
}


def origin() -> dict[str, str | None]:
    """Return the actor of this request, command or service, and its client."""
    if not has_request_context():
        return command_origin() if click.get_current_context(silent=True) else {"actor": "service"}
    g = current_g()
    fields: dict[str, str | None] = {"actor": g.actor, **g.client, "request_id": g.request_id}
    if g.actor == "user":
        fields["actor_id"] = g.caller.user_id
    if g.administrator:
        # The log keeps the name when the administrator is deleted.
        fields["administrator"] = g.administrator.email or g.administrator.phone
    if g.admin_key:
        fields |= {
            "actor": "service_role",
            "actor_id": g.admin_key.id,
            "administrator": f"key {g.admin_key.name}",
        }
    return fields


def command_origin() -> dict[str, str | None]:
    """Return the actor of a command. sudo and deploy/latchkey set the user who ran them."""
    try:
        user = os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # containers may run as a user without a name
        user = str(os.getuid())
    return {"actor": "command", "system_user": user}


def record(
    act: Act,
    user_id: str | None,
    email: str | None,
    entries: Sequence[str | None],
    events: Sequence[str | None],
    **details: object,
) -> None:
    """Write audit rows, and events for webhooks, of an act that changed a user. Skips None."""
    act.later(queries.record_acts, user_id=user_id, email=email, acts=entries, events=events, details=details)


def record_refusal() -> None:
    """Record the refusal of a request, once its response is known."""
    action, reason = g.refusal or g.route.refusal, g.refused_because
    if action is None or (reason not in _REASONS and reason not in _REASONS_BY_ACTION.get(action, ())):
        return
    # A forged refresh token, or a stranger's request of an application, belongs to no user.
    if action in ("refresh_refused", "application_refused") and g.subject is None:
        return
    try:
        subject = g.subject or g.note(user_id=g.user_id)
        # No client depends on the row, and a flood must not keep the disk busy.
        queries.record_refusal(latchkey.db.asynchronous, **subject, action=action, reason=reason)
    except psycopg2.Error as error:
        log.warning("refusal_not_recorded", reason=str(error).strip())
