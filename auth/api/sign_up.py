from typing import Any

from flask import Blueprint, Response, json
from flask.typing import ResponseReturnValue
from limits import RateLimitItemPerSecond

from auth.core.json_bodies import JsonObject
from auth.flows.sessions.token_response import IssuedSession, tokens
from auth.flows.sign_up.sign_up import sign_up, sign_up_anonymously
from auth.web import audited, counted, fields, g, limits, schemas, takes_metadata
from auth.web.application import JsonResponse
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import json_body, read_body
from auth.web.limits import limited

blueprint = Blueprint("signup", __name__)
# The specification shows a new user without app metadata.
_SHOWN: dict[str, Any] = {"app_metadata": {}}


class _Signup(schemas.Addressed, schemas.Challenged):
    password = fields.Password(required=True)
    channel = fields.Channel()
    data = fields.StrangersMetadata(load_default=dict)


_AnonymousSignup = schemas.Input.of(data=fields.StrangersMetadata(load_default=dict))


@blueprint.post("/signup")
@takes_metadata
@counted("sign_up_anonymously", "sign_up")
@audited("sign_up_refused")
def signup() -> ResponseReturnValue:
    """Register a user with an address and a password, or an anonymous one."""
    return _sign_up_by_body() if latchkey.settings.anonymous_enabled else _sign_up()


def _sign_up_by_body() -> ResponseReturnValue:
    # The body decides which of the two limits counts, but one must count before the body is parsed.
    both = latchkey.settings.rate_limit_signup, latchkey.settings.rate_limit_anonymous
    period = min(limit.get_expiry() for limit in both)
    as_many_as_both = RateLimitItemPerSecond(sum(limit.amount for limit in both), period)
    limits.count("sign_up_by_body", g.client["network"], as_many_as_both)
    return _sign_up_anonymously() if _asks_for_anonymous_user(json_body()) else _sign_up()


def _asks_for_anonymous_user(body: JsonObject) -> bool:
    if any(body.get(name) is not None for name in ("email", "phone", "password")):
        return False
    # While anonymous users are disabled, `{}` is a sign-up without an email. Clients always send these
    # members.
    return latchkey.settings.anonymous_enabled or bool(body.keys() & {"data", "gotrue_meta_security"})


@limited("sign_up_anonymously")
def _sign_up_anonymously() -> Response:
    return _signed_in(sign_up_anonymously(current_asked(), read_body(_AnonymousSignup)))


@limited("sign_up", is_queued=True)
def _sign_up() -> Response:
    """Register a user. If addresses must be confirmed, the response is the same for a taken one."""
    if _asks_for_anonymous_user(json_body()):
        raise ApiError("anonymous_provider_disabled")
    registered = sign_up(current_asked(), read_body(_Signup))
    if isinstance(registered, IssuedSession):
        return _signed_in(registered)
    return _created(json.loads(registered.user_object) | _SHOWN)


def _signed_in(session: IssuedSession) -> Response:
    user = json.loads(session.user_object)
    return _created(user | _SHOWN | tokens(latchkey, session) | {"user": user})


def _created(body: JsonObject) -> Response:
    return JsonResponse(json.dumps(body), 200 if g.in_dialect else 201)
