from datetime import datetime
from typing import Any

from auth.delivery.sanitize import browser_and_system, provider

_ACTS = {
    "user_changed": "metadata changed",
    "session_ended": "session ended: ended by the user",
    "message_resent": "message sent again",
    "refresh_token_reused": "session ended: refresh token used again after rotation",
    "refresh_token_repeated": "previous refresh token sent by another client, which got the current one",
    "authorization_code_reused": "session ended: authorization code used a second time",
    "email_unconfirmed": "email set to unconfirmed",
    "phone_unconfirmed": "phone set to unconfirmed",
    "email_change_undone": "email change undone by the link sent to the old address",
    "change_undone": "change undone by the link in its notice",
    "email_change_declined": "new email declined by its owner",
    "factor_added": "second factor added",
    "factor_verified": "second factor verified",
    "factor_removed": "second factor removed",
    "recovery_codes_created": "new recovery codes made",
    "unbanned": "ban lifted",
    "passkey_counter_fell": "passkey refused, whose counter has fallen as that of a copy would",
    "link_generated": "link generated for an administrator",
    "webhook_tested": "test event requested",
    "event_redelivered": "event sent again",
}
_REFUSED = {
    "sign_in_refused": "sign-in refused",
    "refresh_refused": "refresh refused",
    "sign_up_refused": "sign-up refused",
    "verification_refused": "link or code refused",
    "change_refused": "change refused",
    "factor_refused": "second factor refused",
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
    "not_admin": "not an administrator",
    "insufficient_permissions": "needs the service role key",
    "insufficient_aal": "needs a second factor",
    "mfa_verification_failed": "wrong or used code",
    "mfa_challenge_expired": "unknown, used or expired challenge",
    "over_request_rate_limit": "too many attempts",
    "over_email_send_rate_limit": "too many mails",
    "over_sms_send_rate_limit": "too many SMS",
    "otp_expired": "wrong, used or expired",
    "refresh_token_not_found": "the session has ended",
    "refresh_token_already_used": "refresh token used again after rotation",
    "session_expired": "the session has expired",
    "session_not_found": "the session has ended",
    "user_already_exists": "the address is taken",
    "email_exists": "the email is taken",
    "phone_exists": "the phone is taken",
    "weak_password": "the new password is too weak",
    "same_password": "the new password is the same as the old one",
    "reauthentication_needed": "needs the password or a code",
    "reauthentication_not_valid": "wrong code",
    "bad_code_verifier": "wrong code verifier",
    "bad_jwt": "invalid or expired credential",
    "bad_oauth_state": "started in another browser, or too long ago",
    "bad_oauth_callback": "the provider refused, or its answer was not valid",
    "identity_already_exists": "the identity is another user's, or the user has another one of this provider",
    "single_identity_not_deletable": "the last identity cannot be unlinked",
    "last_administrator": "the last administrator cannot be deleted by themselves",
    "signup_disabled": "sign-up is disabled",
    "webauthn_challenge_not_found": "the challenge was used before, or is of another session",
    "webauthn_challenge_expired": "the challenge has expired",
    "webauthn_verification_failed": "the passkey or security key could not be verified",
    "flow_state_not_found": "unknown or expired authorization code",
}
_GUESSES = {
    *("invalid_credentials", "current_password_invalid", "otp_expired", "reauthentication_not_valid"),
    "mfa_verification_failed",
}
_END_REASONS = {
    "logout": "signed out",
    "ended_by_user": "ended by the user",
    "ended_by_admin": "ended by an administrator",
    "refresh_token_reused": "refresh token used again after rotation",
    "password_changed": "password changed",
    "email_changed": "email changed",
    "banned": "banned",
    "address_proved": "an address was proved for the first time",
    "email_restored": "email change undone",
    "way_to_sign_in_removed": "a way to sign in was removed",
    "change_undone": "a change was undone",
    "authorization_code_reused": "authorization code used a second time",
    "too_many_sessions": "too many sessions",
    "factor_added": "the first second factor was added",
}
_SCOPES = {"global": "everywhere", "local": "here", "others": "everywhere else"}
_METHODS = {
    "password": "password",
    "otp": "a link or code",
    "oauth": "a provider",
    "webauthn": "a passkey",
    "anonymous": "nothing: an anonymous user",
}
ACTORS = {"service_role": "the service role key", "command": "a command", "service": "the service itself"}
_ORIGINS = {
    "signup": "by signing up",
    "administrator": "by an administrator",
    "link": "with a generated link",
    "invitation": "with an invitation",
    "oauth": "at the first sign-in with a provider",
    "anonymous": "anonymously",
    "message": "at the first request for a link or code",
}
_BECAUSE = {
    "signed_up_again": "unconfirmed, and signed up again",
    "created_again": "unproved, and created again by an administrator",
    "declined": '"This was not me"',
    "email_restored": "email change undone",
    "change_undone": "a change was undone",
    "abandoned": "anonymous, without a session",
    "proved_by_other": "unconfirmed, and another user proved the address",
    "unused": "never confirmed and never used",
}
_FACTORS = {"totp": "authenticator app", "webauthn": "security key"}
_CHANNELS = {"email": "mail", "sms": "SMS"}
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def item(row: Any) -> dict[str, Any]:
    members = row._asdict()
    del members["user_id"]
    return {"text": sentence(row)} | members


def sentence(row: Any) -> str:
    """Return a sentence such as `sign-in refused: wrong password, third of ten, from 198.51.100.7`."""
    if row.kind in ("message", "event"):
        return _sending(row)
    return what(row) + _actor(row) + _origin(row)


def what(row: Any) -> str:
    """Return the sentence of an act, a refusal or a session without its actor and network."""
    return {"act": _act, "refusal": _refusal, "session": _session}[row.kind](row)


def origin_of_user(made_by: str) -> str:
    """Return how a user came to be: `by signing up`."""
    return _ORIGINS.get(made_by, f"by {made_by}")


def clock(moment: str) -> str:
    return datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M:%S")


def _act(row: Any) -> str:
    details = row.details
    parts = [_ACTS.get(row.name, row.name.replace("_", " "))]
    if row.name in ("signed_in", "email_changed", "phone_changed") and details.get("method"):
        parts.append(f"by {_method(details)}")
    if row.name == "user_created" and details.get("by"):
        parts.append(origin_of_user(details["by"]))
    if row.name == "session_ended" and row.actor == "user" and row.actor_id != row.user_id:
        parts = ["session ended"]
    if row.name == "message_resent":
        parts.append(f"({details['kind']})")
    if row.name == "signed_out":
        parts.append(_SCOPES.get(details.get("scope"), ""))
    if row.name.startswith("identity_") and details.get("provider"):
        parts.append(f"({provider(details['provider'], {}) or 'of a provider'})")
    if row.name in ("signed_in", "message_requested", "link_generated") and details.get("purpose"):
        parts.append(f"({details['purpose']})")
    return " ".join(filter(None, parts)) + _changed(row.name, details)


def _changed(name: str, details: dict[str, Any]) -> str:
    if name == "banned" and details.get("banned_until"):
        forever = details["banned_until"].startswith("9999")
        return " permanently" if forever else f" until {clock(details['banned_until'])}"
    if name == "user_deleted" and details.get("because"):
        return f": {_BECAUSE.get(details['because'], details['because'])}"
    if name == "change_undone" and details.get("removed"):
        return f", which removed {', '.join(details['removed'])}"
    if name.startswith("factor_"):
        kind = _FACTORS.get(details.get("factor_type", ""), "factor")
        return ": " + " ".join(filter(None, (kind, details.get("factor"))))
    if name == "recovery_code_used" and "remaining" in details:
        return f", {details['remaining']} left"
    if name == "message_requested" and details.get("is_sent") is False:
        return ", but not sent"
    if name.startswith("passkey_") and not name.endswith("_removed"):
        was = f" (was {details['old_passkey']})" if details.get("old_passkey") else ""
        return f": {details.get('passkey', 'unknown')}{was}"
    subject = name.split("_")[0]
    address = "address" if subject in ("email", "phone") else subject
    if name.endswith("_removed"):
        return f": {details.get(f'old_{subject}', 'unknown')}"
    old = details.get(f"old_{subject}") or details.get(f"old_{address}")
    new = details.get(f"new_{subject}") or details.get(f"new_{address}") or details.get(subject)
    if name.endswith(("_changed", "_change_requested")) and subject in ("email", "phone", "role"):
        return (f" from {old}" if old else "") + (f" to {new}" if new else "")
    return ""


def _refusal(row: Any) -> str:
    details = row.details
    reason = _REASONS.get(row.reason, row.reason.replace("_", " "))
    text = f"{_REFUSED.get(row.name, row.name.replace('_', ' '))}: {reason}"
    if row.reason in _GUESSES and details.get("tries") and details.get("of"):
        tries, limit = details["tries"], details["of"]
        text += f", {_word(_ORDINALS, tries) or f'number {tries}'} of {_word(_NUMBERS, limit) or limit}"
    return text + (f" ({row.count} times in a minute)" if row.count > 1 else "")


def _session(row: Any) -> str:
    if row.name == "began":
        return f"session began, by {_method(row.details)}"
    if row.name == "expired":
        return "session expired"
    sessions = "session" if row.count == 1 else f"{row.count} sessions"
    return f"{sessions} ended: {_END_REASONS.get(row.reason, row.reason.replace('_', ' '))}"


def _sending(row: Any) -> str:
    details = row.details
    what = f"{_CHANNELS[details['channel']]} {row.name}" if row.kind == "message" else f"event {row.name}"
    return f"{what} to {details['recipient']} {outcome(details)}"


def outcome(details: dict[str, Any]) -> str:
    tries = "one try" if details["attempts"] == 1 else f"{details['attempts']} tries"
    error = f": {details['last_error']}" if details["last_error"] else ""
    match details["outcome"]:
        case "sent":
            by = " by" if details["channel"] == "email" else ":"
            after = f", after {tries}" if details["attempts"] > 1 else ""
            return f"accepted{by} {details['response']}{after}"
        case "waiting" if details["attempts"] == 0:
            return "waits to be sent"
        case "waiting":
            return f"waits, after {tries}, until {clock(details['next_attempt_at'])}{error}"
        case "void":
            return "was not sent: its link or code was used or voided before"
        case "expired":
            return f"was not sent before it expired{error}"
        case _:
            return f"failed after {tries}{error}"


def _actor(row: Any) -> str:
    if row.actor == "user" and row.details.get("administrator"):
        return f", by administrator {row.details['administrator']}"
    if row.actor == "user" and row.actor_id != row.user_id:
        return f", by user {row.actor_id}"
    return f", by {ACTORS[row.actor]}" if row.actor in ACTORS else ""


def _origin(row: Any) -> str:
    known = " on ".join(name for name in browser_and_system(row.user_agent) if name)
    if not row.ip:
        return ""
    return f", from {row.ip}" + (f" ({known})" if known else "")


def _method(details: dict[str, Any]) -> str:
    return provider(details.get("provider"), {}) or _METHODS.get(details["method"], details["method"])


def _word(words: list[str], number: int) -> str | None:
    return words[number - 1] if 1 <= number <= len(words) else None
