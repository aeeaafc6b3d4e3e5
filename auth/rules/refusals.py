"""What the rules refuse with: keys of `ERRORS` in auth/web/errors.py."""

from typing import Literal

Refusal = Literal[
    "api_key_not_found",
    "bad_jwt",
    "code.reauthentication_needed",
    "email_not_confirmed",
    "insufficient_aal",
    "invalid_credentials",
    "last_administrator",
    "mfa.reauthentication_needed",
    "not_admin",
    "over_request_rate_limit",
    "otp_expired",
    "phone_not_confirmed",
    "reauthentication_needed",
    "refresh.refresh_token_already_used",
    "refresh.refresh_token_not_found",
    "refresh.session_expired",
    "refresh.user_banned",
    "session_expired",
    "session_not_found",
    "single_identity_not_deletable",
    "target.insufficient_permissions",
    "user_banned",
]
