"""The settings that SQL statements use, under the names that the statements declare."""

from typing import Any

from auth.settings import Settings

# Seconds after which a message without an expiry time is given up, and a failing webhook is disabled.
GIVE_UP = 3 * 86_400
# Wrong codes of a network a day, and of all networks that are not known together.
WRONG_CODES_A_DAY = {"code": 20, "totp": 20, "recovery": 10}


def failures_of(kind: str) -> list[int]:
    return [WRONG_CODES_A_DAY[kind], 86_400] * 2


def statement_constants(config: Settings) -> dict[str, Any]:
    failures = config.rate_limit_login_failures, config.rate_limit_account_failures
    return {
        "audience": config.jwt_audience,
        "refresh_token_lifetime": config.refresh_token_lifetime,
        "session_timebox": config.session_timebox,
        "reuse_interval": config.refresh_reuse_interval,
        "rotation": config.refresh_token_rotation,
        "refresh_limit": config.rate_limit_refresh.amount if config.rate_limits_enabled else None,
        "refresh_limit_seconds": config.rate_limit_refresh.get_expiry(),
        # How many wrong passwords in how many seconds: of a network, and of all that are not known together.
        "password_failures": [number for each in failures for number in (each.amount, each.get_expiry())]
        if config.rate_limits_enabled
        else None,
        "code_failures": failures_of("code"),
        "sessions_per_user": config.sessions_per_user,
        "audit_retention": config.audit_retention,
        "unconfirmed_retention": config.unconfirmed_retention,
        "give_up": GIVE_UP,
        "notices_total": config.rate_limit_notices_sms_total.amount if config.rate_limits_enabled else None,
        "notices_seconds": config.rate_limit_notices_sms_total.get_expiry(),
        "email_confirm_required": config.email_confirm_required,
        "phone_confirm_required": config.phone_confirm_required,
        "mfa_required": config.mfa_required,
    }
