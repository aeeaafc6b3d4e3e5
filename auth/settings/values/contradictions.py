"""Settings that are valid on their own, but not together."""

from collections.abc import Mapping
from typing import Any

from auth.settings.values import checks

_NEEDED_BY_SMS_PROVIDER = {
    "twilio": ("twilio_account_sid", "twilio_auth_token", "twilio_from"),
    "webhook": ("sms_webhook_url", "sms_webhook_secret"),
}


def lines(values: Mapping[str, Any], is_local: bool) -> list[str]:
    """Return a line for each contradiction."""
    provider = values["sms_provider"]
    found = [
        f"AUTH_{field.upper()}: Must be set where AUTH_SMS_PROVIDER is {provider}."
        for field in _NEEDED_BY_SMS_PROVIDER.get(provider, ())
        if not values[field]
    ]
    if values["jwt_keys"] and not values["jwt_secret"]:
        try:
            checks.signing_jwk_set(values["jwt_keys"])
        except ValueError as error:
            found.append(f"AUTH_JWT_KEYS: {checks.sentence(error)}")
    if values["mfa_required"] != "none" and not values["mfa_enabled"]:
        found.append("AUTH_MFA_REQUIRED: Must be none where AUTH_MFA_ENABLED is false.")
    if values["console"] and not values["pages"]:
        found.append("AUTH_CONSOLE: Must be false where AUTH_PAGES is false: administrators sign in there.")
    # The inbox shows every link to the holder of the service role key.
    if values["dev_inbox"] and not is_local and values["rate_limits_enabled"]:
        found.append(
            "AUTH_DEV_INBOX: Must be false unless AUTH_BASE_URL is this machine, or"
            " AUTH_RATE_LIMITS_ENABLED=false marks a test environment."
        )
    return found
