"""What the rules refuse with: keys of `ERRORS` in auth/web/errors.py."""

from typing import Literal

Refusal = Literal[
    "api_key_not_found",
    "bad_jwt",
    "code.reauthentication_needed",
    "country.validation_failed",
    "email_address_not_authorized",
    "email_exists",
    "email_not_confirmed",
    "email_provider_disabled",
    "insufficient_aal",
    "invalid_credentials",
    "last_administrator",
    "mfa.reauthentication_needed",
    "not_admin",
    "over_request_rate_limit",
    "phone.validation_failed",
    "phone_exists",
    "phone_not_confirmed",
    "phone_provider_disabled",
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
