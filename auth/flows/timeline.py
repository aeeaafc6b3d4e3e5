"""What has happened to a user, as sentences for people: the only place that words them.

A row is as `list_timeline` answers it. Its `kind` is `act`, `refusal` (both from the audit log), `session`, `message` or `event`.
"""

from datetime import datetime
from typing import Any

from auth.delivery.reduce import browser_and_system, provider

_ACTS = {
    "user_created": "user created",
    "user_changed": "metadata changed",
    "user_deleted": "user deleted",
    "signed_in": "signed in",
    "signed_out": "signed out",
    "session_ended": "session ended: ended by the user",
    "refresh_token_reused": "session ended: refresh token used again after rotation",
    "refresh_token_repeated": "the refresh token before the newest was sent by another client, and answered with the newest",
    "authorization_code_reused": "session ended: authorization code used a second time",
    "password_changed": "password changed",
    "email_change_requested": "change of email asked for",
    "phone_change_requested": "change of phone asked for",
    "email_changed": "email changed",
    "phone_changed": "phone changed",
    "email_confirmed": "email confirmed",
    "phone_confirmed": "phone confirmed",
    "email_unconfirmed": "email made unconfirmed",
    "phone_unconfirmed": "phone made unconfirmed",
    "email_change_undone": "change of email undone by the link that the old address was sent",
    "identity_linked": "identity linked",
    "identity_unlinked": "identity unlinked",
    "role_changed": "role changed",
    "banned": "banned",
    "unbanned": "ban lifted",
    "message_requested": "message asked for",
    "reauthenticated": "reauthenticated",
    "link_generated": "link made for an administrator",
    "invited": "invited",
    "webhook_created": "webhook created",
    "webhook_changed": "webhook changed",
    "webhook_secret_rotated": "secret of a webhook rotated",
    "webhook_deleted": "webhook deleted",
    "webhook_tested": "test event asked for",
    "webhook_enabled": "webhook enabled",
    "webhook_disabled": "webhook disabled",
    "event_redelivered": "event sent again",
}
_REFUSED = {
    "sign_in_refused": "sign-in refused",
    "refresh_refused": "refresh refused",
    "sign_up_refused": "sign-up refused",
    "verification_refused": "link or code refused",
    "change_refused": "change refused",
    "oauth_refused": "sign-in with a provider refused",
    "admin_refused": "administrative request refused",
}
_REASONS = {
    "invalid_credentials": "wrong password",
    "current_password_invalid": "wrong current password",
    "email_not_confirmed": "the email is not confirmed",
    "phone_not_confirmed": "the phone is not confirmed",
    "user_banned": "the user is banned",
    "user_not_found": "there is no such user",
    "not_admin": "no administrator",
    "insufficient_permissions": "only the service role key may",
    "over_request_rate_limit": "too many tries",
    "over_email_send_rate_limit": "too many mails",
    "over_sms_send_rate_limit": "too many SMS",
    "otp_expired": "wrong, spent or expired",
    "refresh_token_not_found": "the session has ended",
    "refresh_token_already_used": "refresh token used again after rotation",
    "session_expired": "the session has expired",
    "session_not_found": "the session has ended",
    "user_already_exists": "the address has a user",
    "email_exists": "the email has a user",
    "phone_exists": "the phone has a user",
    "weak_password": "the new password is too weak",
    "same_password": "the new password is the old one",
    "reauthentication_needed": "needs the password or a code",
    "reauthentication_not_valid": "wrong code",
    "bad_code_verifier": "wrong code verifier",
    "bad_jwt": "invalid or expired credential",
    "bad_oauth_state": "begun in another browser, or too long ago",
    "bad_oauth_callback": "the provider refused, or could not be believed",
    "identity_already_exists": "the identity is another user's, or the user has another of this provider",
    "single_identity_not_deletable": "the last identity can't be unlinked",
    "signup_disabled": "nobody may sign up",
    "flow_state_not_found": "unknown or expired authorization code",
}
# What is guessed, so that it matters how often.
_COUNTED = {"invalid_credentials", "current_password_invalid", "otp_expired", "reauthentication_not_valid"}
_END_REASONS = {
    "logout": "signed out",
    "ended_by_user": "ended by the user",
    "ended_by_admin": "ended by an administrator",
    "refresh_token_reused": "refresh token used again after rotation",
    "password_changed": "password changed",
    "email_changed": "email changed",
    "banned": "banned",
    "address_proved": "an address was proved for the first time",
    "email_restored": "change of email undone",
    "authorization_code_reused": "authorization code used a second time",
    "too_many_sessions": "too many sessions",
}
_METHODS = {"password": "password", "otp": "a link or code", "oauth": "a provider"}
_ACTORS = {"service_role": "the service role key", "command": "a command of flask", "service": "the service itself"}
_ORIGINS = {
    "signup": "by signing up",
    "administrator": "by an administrator",
    "link": "with a generated link",
    "invitation": "with an invitation",
    "oauth": "at the first sign-in with a provider",
    "message": "at the first request for a link or code",
}
_BECAUSE = {
    "signed_up_again": "unconfirmed, and signed up again",
    "created_again": "unproved, and made anew by an administrator",
    "declined": '"This was not me"',
    "email_restored": "change of email undone",
}
_CHANNELS = {"email": "mail", "sms": "SMS"}
_ORDINALS = ["zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"]
_NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def item(row: Any) -> dict[str, Any]:
    """Return a row as the API answers it."""
    members = ("at", "kind", "name", "reason", "count", "actor", "actor_id", "ip", "user_agent", "request_id", "details")
    return {"text": sentence(row)} | {name: getattr(row, name) for name in members}


def sentence(row: Any) -> str:
    """Return what a row says, without the time: `sign-in refused: wrong password, third of ten, from 198.51.100.7`."""
    if row.kind in ("message", "event"):
        return _sending(row)
    told = {"act": _act, "refusal": _refusal, "session": _session}[row.kind](row)
    return told + _actor(row) + _origin(row)


def clock(moment: str) -> str:
    """Return a timestamp of the API, in UTC, as people read it: without the fraction."""
    return datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M:%S")


def reason_text(error_code: str) -> str:
    """Return why something was refused."""
    return _REASONS.get(error_code, error_code.replace("_", " "))


def _act(row: Any) -> str:
    details = row.details
    parts = [_ACTS.get(row.name, row.name.replace("_", " "))]
    if row.name in ("signed_in", "email_changed", "phone_changed") and details.get("method"):
        parts.append(f"by {_method(details)}")
    if row.name == "user_created" and details.get("by"):
        parts.append(_ORIGINS.get(details["by"], f"by {details['by']}"))
    if row.name == "signed_out":
        parts.append({"global": "everywhere", "local": "here", "others": "everywhere else"}.get(details.get("scope"), ""))
    if row.name.startswith("identity_") and details.get("provider"):
        parts.append(f"({provider(details['provider']) or 'of a provider'})")
    if row.name in ("signed_in", "message_requested", "link_generated") and details.get("purpose"):
        parts.append(f"({details['purpose']})")
    text = " ".join(part for part in parts if part)
    return text + _changed(row.name, details)


def _changed(name: str, details: dict[str, Any]) -> str:
    """Return what an act tells of before and after."""
    if name == "banned" and details.get("banned_until"):
        forever = details["banned_until"].startswith("9999")
        return " for ever" if forever else f" until {clock(details['banned_until'])}"
    if name == "user_deleted" and details.get("because"):
        return f": {_BECAUSE.get(details['because'], details['because'])}"
    if name == "message_requested" and details.get("is_sent") is False:
        return ", and not sent"
    subject = name.split("_")[0]
    old = details.get(f"old_{subject}") or (details.get("old_address") if subject in ("email", "phone") else None)
    new = details.get(f"new_{subject}") or (details.get("new_address") if subject in ("email", "phone") else None) or details.get(subject)
    if name.endswith(("_changed", "_change_requested")) and subject in ("email", "phone", "role"):
        return (f" from {old}" if old else "") + (f" to {new}" if new else "")
    return ""


def _refusal(row: Any) -> str:
    details = row.details
    text = f"{_REFUSED.get(row.name, row.name.replace('_', ' '))}: {reason_text(row.reason)}"
    if row.reason in _COUNTED and details.get("tries") and details.get("of"):
        text += f", {_ordinal(details['tries'])} of {_number(details['of'])}"
    return text + (f" ({row.count} times in a minute)" if row.count > 1 else "")


def _session(row: Any) -> str:
    if row.name == "began":
        return f"session began, by {_method(row.details)}"
    if row.name == "expired":
        return "session expired"
    sessions = "session" if row.count == 1 else f"{row.count} sessions"
    return f"{sessions} ended: {_END_REASONS.get(row.reason, row.reason.replace('_', ' '))}"


def _sending(row: Any) -> str:
    told = row.details
    what = f"{_CHANNELS[told['channel']]} {row.name}" if row.kind == "message" else f"event {row.name}"
    return f"{what} to {told['recipient']} {_outcome(told)}"


def _outcome(told: dict[str, Any]) -> str:
    tries = "one try" if told["attempts"] == 1 else f"{told['attempts']} tries"
    error = f": {told['last_error']}" if told["last_error"] else ""
    match told["outcome"]:
        case "sent":
            by = {"email": " by", "sms": ":"}.get(told["channel"], ":")
            return f"accepted{by} {told['response']}" + (f", after {tries}" if told["attempts"] > 1 else "")
        case "waiting" if told["attempts"] == 0:
            return "waits to be sent"
        case "waiting":
            return f"waits, after {tries}, until {clock(told['next_attempt_at'])}{error}"
        case "void":
            return "was not sent: what it carried was spent or voided before"
        case "expired":
            return f"was not sent before it expired{error}"
        case _:
            return f"failed after {tries}{error}"


def _actor(row: Any) -> str:
    if row.actor == "user" and row.actor_id != row.user_id:
        return f", by user {row.actor_id}"
    return f", by {_ACTORS[row.actor]}" if row.actor in _ACTORS else ""


def _origin(row: Any) -> str:
    known = " on ".join(name for name in browser_and_system(row.user_agent) if name)
    if not row.ip:
        return ""
    return f", from {row.ip}" + (f" ({known})" if known else "")


def _method(details: dict[str, Any]) -> str:
    return provider(details.get("provider")) or _METHODS.get(details["method"], details["method"])


def _ordinal(number: int) -> str:
    return _ORDINALS[number] if 0 <= number < len(_ORDINALS) else f"number {number}"


def _number(number: int) -> str:
    return _NUMBERS[number] if 0 <= number < len(_NUMBERS) else str(number)
