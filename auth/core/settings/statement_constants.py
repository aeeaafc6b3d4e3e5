"""The settings and numbers that SQL statements use, by the names of their parameters."""

from typing import Any

from auth.core import constants
from auth.core.settings import Settings


def statement_constants(config: Settings) -> dict[str, Any]:
    return {
        "audience": config.jwt_audience,
        "document_hosts": list(config.oauth_client_documents),
        "refresh_token_lifetime": config.refresh_token_lifetime,
        "session_timebox": config.session_timebox,
        "give_up": constants.GIVE_UP,
        "challenge_tries": constants.TRIES,
        "enrolment_lifetime": constants.ENROLMENT_LIFETIME,
        "unused_passkey_lifetime": constants.UNUSED_PASSKEY_LIFETIME,
        "most_challenges": constants.MOST_CHALLENGES,
        "most_unverified_factors": constants.MOST_UNVERIFIED_FACTORS,
        "heartbeat_limit": constants.HEARTBEAT_LIMIT,
        "backup_limit": constants.BACKUP_LIMIT,
        "late_limit": constants.LATE,
        "kept": constants.ENDED_KEPT,
        "networks_kept": constants.NETWORKS_KEPT,
        "audit_retention": config.audit_retention,
        "unconfirmed_retention": config.unconfirmed_retention,
        "notices_total": config.rate_limit_notices_sms_total.amount if config.rate_limits_enabled else None,
        "notices_seconds": config.rate_limit_notices_sms_total.get_expiry(),
        "mfa_required": config.mfa_required,
        "with_organizations": config.organizations != "off",
    }
