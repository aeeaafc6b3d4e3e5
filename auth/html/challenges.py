"""Challenges of passkeys and security keys on pages, and the forms with their responses."""

from datetime import datetime
from typing import Any

from flask import request

from auth.flows.factors import factor_schemas, factors
from auth.flows.passkeys import assertions
from auth.flows.sessions.issuing import IssuedSession
from auth.html import form_schemas
from auth.web import g, guard, limits
from auth.web.asked import current_asked
from auth.web.errors import ApiError
from auth.web.input import canonical_id, check, read_form
from sql import queries


def sent_credential() -> dict[str, Any]:
    """Return the credential that the script put into the form, and its challenge."""
    return check(factor_schemas.PasskeyResponse, read_form(form_schemas.CredentialForm))


def may_challenge() -> bool:
    """Count a page, and return whether it may have challenges, which are rows.

    Beyond the limit, refuse a GET request; a refused form is shown without challenges.
    """
    if request.method == "HEAD":
        return False  # the response has no page
    try:
        # The limit of codes is another: other sites can open these pages, and must not use it up.
        limits.count(
            "open_challenge", guard.caller_on_network() if g.actor == "user" else g.client["network"]
        )
    except ApiError:
        if request.method == "GET":
            raise
        return False
    return True


def factors_without_challenge(ways: "queries.SelectSecondSteps") -> dict[str, Any]:
    """Return the factors to ask the caller for that need no challenge."""
    return own_factors(ways._replace(keys=[], has_passkey=False))


def own_factors(ways: "queries.SelectSecondSteps") -> dict[str, Any]:
    """Return the factors to ask the caller for, with new challenges."""
    keys = []
    for key in ways.keys:
        challenge = factors.challenge(current_asked(), key["id"])
        options = challenge["webauthn"]["credential_options"]["publicKey"]
        keys.append(key | {"challenge": {"challenge_id": challenge["id"], "options": options}})
    return {
        "apps": ways.apps,
        "challenge": assertions.begin_proof(current_asked()) if ways.has_passkey else None,
        "keys": keys,
        "has_recovery_codes": ways.recovery_codes > 0,
    }


def verify_key(*, added_before: datetime | None = None) -> IssuedSession:
    """Raise the session by the security key of the sent form."""
    body = sent_credential()
    factor_id = canonical_id(request.form.get("factor_id", ""), "mfa_factor_not_found")
    response = {"type": "request", "credential_response": body["credential"]}
    return factors.verify_webauthn(
        current_asked(), factor_id, body["challenge_id"], response, added_before=added_before
    )
