import psycopg2
from flask import Blueprint, Response, jsonify

from auth.core.json_bodies import JsonObject
from auth.core.tokens.access_tokens import LACKS_STEP, KeyCaller
from auth.core.tokens.jws import InvalidAccessToken
from auth.core.tokens.signing_keys import SECOND_STEP
from auth.flows import organizations
from auth.web import Level, accepts_forms, callers, fields, guard, schemas, takes_tokens
from auth.web.context import latchkey
from auth.web.error_handlers import as_api_error
from auth.web.errors import ApiError, envelope, oauth_members
from auth.web.input import read_body
from sql import queries

blueprint = Blueprint("introspect", __name__)


_Introspection = schemas.Input.of(token=fields.LongText(required=True))


@blueprint.post("/introspect")
@accepts_forms
@takes_tokens
@guard.introspector
def introspect() -> Response:
    """Return the claims of an access token if it is valid at this moment (RFC 7662)."""
    # Only the extension openid reads clients' credentials.
    if read_by_client := guard.introspection_by_client():
        token, client = read_by_client()
    else:
        token, client = read_body(_Introspection)["token"], None
    for ask in (_of_session, *(each.introspect for each in latchkey.extensions)):
        if (claims := ask(token, client)) is not None:
            # Last, because a setting or a hook may have added a claim of this name.
            return jsonify(claims | {"active": True})
    return jsonify(active=False)


@blueprint.errorhandler(ApiError)
@blueprint.errorhandler(psycopg2.Error)
def answer_error(error: Exception) -> Response:
    """Add what clients read to the envelope (RFC 7662, section 2.3). The challenge of a 401 says the same."""
    refusal = as_api_error(error)
    if refusal.status not in (401, 403):
        refusal.members = oauth_members(refusal)
    return envelope(refusal)


def _of_session(token: str, client: "queries.SelectClient | None") -> JsonObject | None:
    """Return the claims of a session's token that is valid now, or None."""
    if client and not client.introspects_sessions:
        return None
    tokens = latchkey.access_tokens
    try:
        claims = tokens.claims(token)
        holder = tokens.caller_of(claims)
    except InvalidAccessToken:
        return None
    if isinstance(holder, KeyCaller):
        return None
    # AAL1 also refuses tokens from before the user verified a factor, which look complete.
    needs_step = latchkey.settings.mfa_tokens == SECOND_STEP or holder.aal == LACKS_STEP
    level = Level.AAL1 if needs_step else Level.SESSION
    user = queries.select_user(latchkey.db, **callers.caller_ids(holder))
    if user is None or user.aal is None or callers.refusal_of(user, holder, level, latchkey.policy):
        return None
    standing = callers.standing_of(user, holder)
    claims = tokens.present_claims(claims, user.user_object) | {"aal": standing.aal}
    return organizations.present_claims(claims, user.memberships, standing)
