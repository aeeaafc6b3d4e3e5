"""The settings as auth/rules takes them."""

from datetime import timedelta

from auth.rules.policy import Policy, RefreshWindow
from tests.support.cases import cases

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@cases(
    ("age", "proof_age", "change_age"),
    [
        ("always", timedelta(0), timedelta(0)),
        ("600", 10 * MINUTE, 10 * MINUTE),
        ("86400", 15 * MINUTE, DAY),
        ("never", 15 * MINUTE, None),
    ],
)
def test_policy_is_that_of_the_settings(make_app, age, proof_age, change_age):
    settings = {
        "AUTH_REFRESH_TOKEN_LIFETIME": "86400",
        "AUTH_SESSION_TIMEBOX": "3600",
        "AUTH_MFA_REQUIRED": "all",
        "AUTH_REAUTHENTICATION_AGE": age,
        "AUTH_RATE_LIMITS_ENABLED": "true",
        "AUTH_RATE_LIMIT_REFRESH": "30 per hour",
        "AUTH_REFRESH_REUSE_INTERVAL": "60",
    }
    assert make_app(**settings).extensions["latchkey"].policy == Policy(
        refresh_token_lifetime=DAY,
        refresh_window=RefreshWindow(most=30, age=HOUR),
        reuse_interval=MINUTE,
        session_timebox=HOUR,
        mfa_required="all",
        proof_age=proof_age,
        change_age=change_age,
    )
