from contextlib import suppress
from datetime import UTC, datetime

import psycopg2
from flask import Blueprint, Response, jsonify, request

from auth import __version__
from auth.core.logs import ThrottledLog
from auth.core.net import probes
from auth.core.settings import served
from auth.core.settings.presets import PRESETS
from auth.core.settings.values.combined import PASSWORD_CLASSES
from auth.core.tokens.one_time import hash_token
from auth.html.page import page
from auth.web import any_origin, dialect, g
from auth.web.context import latchkey
from sql import queries

_LONGEST_FORWARDED = 1000
_unhealthy = ThrottledLog("unhealthy", interval=60)
_STUCK = "No password hash has finished for 20 seconds; restart the service"
_NOT_DELIVERING = "The delivery process ends again and again, and sends nothing; see the log of the service"

blueprint = Blueprint("service", __name__)


@blueprint.get("/health")
@any_origin
@dialect.translated(writes=dialect.health)
def health() -> Response:
    """Return 200 while the database answers, else 503 in the error envelope.

    With `?strict`, also 503 while requests fail for another reason. Otherwise this is 200 and `degraded`: a
    load balancer must not drop all nodes.
    """
    if nonce := request.headers.get(probes.HEADER):
        _answer_probe(nonce)
    body = {"service": "latchkey", "version": __version__, "timestamp": datetime.now(UTC).isoformat()}
    g.is_logged = False  # a balancer asks every few seconds
    responds, trouble = latchkey.health.look()
    trouble = trouble or (_STUCK if latchkey.passwords.threads.is_stuck() else None)
    trouble = trouble or (_NOT_DELIVERING if served.delivery_fails[0] else None)
    problem = trouble if responds else "The database isn't responding"
    if problem:
        _unhealthy.count(reason=problem)
    if responds and (trouble is None or "strict" not in request.args):
        return jsonify(body | ({"status": "degraded", "msg": trouble} if trouble else {"status": "healthy"}))
    error = {"code": 503, "msg": problem, "error_code": "service_unavailable"}
    response = jsonify(body | {"status": "unhealthy"} | error)
    response.status_code = 503
    response.headers["Retry-After"] = "2"
    return response


def _answer_probe(nonce: str) -> None:
    """Record how a request of `latchkey doctor` arrived, in the database: the response must not reveal it."""
    forwarded = request.headers.get("X-Forwarded-For", "")[:_LONGEST_FORWARDED].split(",")
    arrival = {"forwarded_for": [hop.strip() for hop in forwarded if hop.strip()], "scheme": request.scheme}
    if token_hash := hash_token(nonce):
        with suppress(psycopg2.Error):
            queries.answer_probe(latchkey.db, token_hash=token_hash, request=arrival)


@blueprint.get("/settings")
@any_origin
@dialect.translated(writes=dialect.settings)
def get_settings() -> Response:
    settings = latchkey.settings
    names = sorted({*PRESETS, *settings.providers})
    required = settings.password_requirements
    lifted = {} if settings.rate_limits_enabled else {"enabled": False}
    return jsonify(
        external_email_enabled=settings.email_enabled,
        external_phone_enabled=settings.offers_phone,
        external_anonymous_users_enabled=settings.anonymous_enabled,
        external_providers_enabled=bool(settings.providers),
        external_providers=[{"name": name, "enabled": name in settings.providers} for name in names],
        disable_signup=settings.disable_signup,
        autoconfirm=settings.autoconfirm,
        password_min_length=settings.password_min_length,
        password_requirements={name: name in required for name in PASSWORD_CLASSES},
        email_confirm_required=settings.email_confirm_required,
        phone_confirm_required=settings.phone_confirm_required,
        session_timeout=settings.refresh_token_lifetime,
        refresh_token_rotation_enabled=settings.refresh_token_rotation,
        mfa_enabled=settings.mfa_enabled,
        mfa_max_enrolled_factors=settings.mfa_max_enrolled_factors if settings.mfa_enabled else 0,
        rate_limits={
            name: {"requests": limit.amount, "window": limit.get_expiry()} | lifted
            for name in ("signup", "login", "recover")
            for limit in [getattr(settings, f"rate_limit_{name}")]
        },
    )


@blueprint.get("/")
def welcome() -> Response:
    """Show the welcome page or, after a link, its result."""
    settings = latchkey.settings
    return page(
        "welcome.html",
        script=True,
        version=__version__,
        is_local=settings.is_local,
        has_inbox=settings.dev_inbox,
        has_console=settings.console,
    )
