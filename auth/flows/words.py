"""Words for people in place of the names that are stored. tests/flows/test_words.py knows all of these."""

import re
from collections.abc import Mapping
from typing import Any

# Actions of the audit log, also those of earlier versions.
ACTS = {
    "user_created": "user created",
    "user_changed": "metadata changed",
    "user_deleted": "user deleted",
    "signed_in": "signed in",
    "signed_out": "signed out",
    "session_ended": "session ended",
    "refresh_token_reused": "session ended: refresh token used again after rotation",
    "refresh_token_repeated": "previous refresh token sent by another client, which got the current one",
    "authorization_code_reused": "session ended: authorization code used a second time",
    "password_changed": "password changed",
    "email_change_requested": "email change requested",
    "phone_change_requested": "phone change requested",
    "email_change_declined": "new email declined by its owner",
    "email_changed": "email changed",
    "phone_changed": "phone changed",
    "email_confirmed": "email confirmed",
    "phone_confirmed": "phone confirmed",
    "email_unconfirmed": "email set to unconfirmed",
    "phone_unconfirmed": "phone set to unconfirmed",
    "email_removed": "email removed",
    "phone_removed": "phone removed",
    "email_change_undone": "email change undone by the link sent to the old address",
    "change_undone": "change undone by the link in its notice",
    "identity_linked": "identity linked",
    "identity_unlinked": "identity unlinked",
    "passkey_added": "passkey added",
    "passkey_renamed": "passkey renamed",
    "passkey_removed": "passkey removed",
    "passkey_counter_fell": "passkey refused, whose counter has fallen as that of a copy would",
    "factor_added": "second factor added",
    "factor_verified": "second factor verified",
    "factor_removed": "second factor removed",
    "recovery_codes_created": "new recovery codes made",
    "recovery_code_used": "recovery code used",
    "role_changed": "role changed",
    "banned": "banned",
    "unbanned": "ban lifted",
    "message_requested": "message requested",
    "message_resent": "message sent again",
    "reauthenticated": "reauthenticated",
    "link_generated": "link generated for an administrator",
    "invited": "invited",
    "service_role_jwt_used": "JWT used as the service role key",
    "key_rotated": "new key created",
    "key_added": "key added",
    "key_removed": "key removed",
    "webhook_created": "webhook created",
    "webhook_changed": "webhook changed",
    "webhook_secret_rotated": "webhook secret rotated",
    "webhook_deleted": "webhook deleted",
    "webhook_tested": "test event requested",
    "webhook_enabled": "webhook enabled",
    "webhook_disabled": "webhook disabled",
    "event_redelivered": "event sent again",
}
REFUSED = {
    "sign_in_refused": "sign-in refused",
    "refresh_refused": "refresh refused",
    "sign_up_refused": "sign-up refused",
    "verification_refused": "link or code refused",
    "change_refused": "change refused",
    "factor_refused": "second factor refused",
    "oauth_refused": "sign-in with a provider refused",
    "admin_refused": "administrative request refused",
}
REASONS = {
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
END_REASONS = {
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
SCOPES = {"global": "everywhere", "local": "here", "others": "everywhere else"}
METHODS = {
    "password": "password",
    "otp": "a link or code",
    "sign_up": "a sign-up that was confirmed elsewhere",
    "recovery": "a recovery",
    "oauth": "a provider",
    "webauthn": "a passkey",
    "anonymous": "nothing: an anonymous user",
}
ACTORS = {"service_role": "the service role key", "command": "a command", "service": "the service itself"}
ORIGINS = {
    "signup": "by signing up",
    "administrator": "by an administrator",
    "link": "with a generated link",
    "invitation": "with an invitation",
    "oauth": "at the first sign-in with a provider",
    "anonymous": "anonymously",
    "message": "at the first request for a link or code",
}
BECAUSE = {
    "signed_up_again": "unconfirmed, and signed up again",
    "created_again": "unproved, and created again by an administrator",
    "declined": '"This was not me"',
    "email_restored": "email change undone",
    "change_undone": "a change was undone",
    "abandoned": "anonymous, without a session",
    "proved_by_other": "unconfirmed, and another user proved the address",
    "unused": "never confirmed and never used",
}
FACTORS = {"totp": "authenticator app", "webauthn": "security key", "passkey": "passkey"}
CHANNELS = {"email": "mail", "sms": "SMS"}
# Kinds of mails and SMS, and the purposes of links and codes.
MESSAGES = {
    "signup": "sign-up",
    "sms_signup": "sign-up",
    "signup_attempt": "sign-up with a taken address",
    "invite": "invitation",
    "magiclink": "sign-in link",
    "sms": "sign-in code",
    "recovery": "password recovery",
    "email_change": "new email",
    "email_change_current": "new email",
    "email_change_new": "new email",
    "phone_change": "new phone",
    "reauthentication": "code for a change",
    "email_restore": "undo of a new email",
    "undo": "undo of a change",
    "password_changed": "notice of a new password",
    "address_added": "notice of an added address",
    "email_changed": "notice of a new or removed email",
    "phone_changed": "notice of a new or removed phone",
    "identity_linked": "notice of a linked identity",
    "identity_unlinked": "notice of an unlinked identity",
    "passkey_added": "notice of a new passkey",
    "passkey_removed": "notice of a removed passkey",
    "factor_added": "notice of a new second factor",
    "factor_removed": "notice of a removed second factor",
    "recovery_codes_created": "notice of new recovery codes",
    "recovery_code_used": "notice of a used recovery code",
    "webhook_disabled": "notice of a disabled webhook",
}
OUTCOMES = {
    "waiting": "waiting",
    "sent": "sent",
    "failed": "failed",
    "expired": "too late",
    "void": "not needed",
}
EVENTS = {
    "user.created": "user created",
    "user.updated": "user updated",
    "user.deleted": "user deleted",
    "auth.login": "sign-in",
    "auth.logout": "sign-out",
}
DISABLED = {
    "by_administrator": "by an administrator",
    "gone": "it answered 410 Gone",
    "failing": "it failed for three days",
}
# The members of the details of acts and refusals whose values have words.
_VALUES: Mapping[str, Mapping[str, str]] = {
    "because": BECAUSE,
    "by": ORIGINS,
    "factor_type": FACTORS,
    "kind": MESSAGES,
    "method": METHODS,
    "purpose": MESSAGES,
    "reason": DISABLED,
    "scope": SCOPES,
}


def worded(table: Mapping[str, str], name: str) -> str:
    """Return the words for a name, or the name itself, as that of a later version."""
    return table.get(name, name.replace("_", " "))


def details(members: Mapping[str, Any]) -> str:
    """Return the details of an act or a refusal: `session id 1f0c…, method a link or code`."""
    return ", ".join(f"{worded({}, name)} {_value(name, value)}" for name, value in members.items())


def quoted(text: str) -> str:
    """Return text from users, in quotes unless it is one word: it must not read on as a part of the sentence,
    such as `Laptop, by the service role key`."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    if re.fullmatch(r"[\w@.+:/-]+", printable):
        return printable
    return "“" + re.sub("[“”]", '"', printable) + "”"


def _value(name: str, value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(quoted(str(item)) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    return _VALUES.get(name, {}).get(text) or quoted(text)
