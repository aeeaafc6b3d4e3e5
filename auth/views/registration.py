from flask import Blueprint, Response, jsonify

from auth.context import latchkey
from auth.openid import clients, errors
from auth.openid.errors import OAuthError
from auth.openid.switch import provider
from auth.web.errors import ApiError
from auth.web.input import json_body
from auth.web.limits import limited

blueprint = Blueprint("registration", __name__)
errors.register(blueprint)


@blueprint.post("/oauth/clients/register")
@provider
@limited("client_registration")
def register_client() -> Response:
    """Register an OAuth client that no administrator knows (RFC 7591)."""
    if not latchkey.settings.oauth_dynamic_registration:
        raise ApiError("oauth_dynamic_client_registration_disabled")
    try:
        client = clients.create(json_body(), is_dynamic=True)
    except ApiError as error:
        raise _refusal(error) from None
    # Secrets do not expire.
    response = jsonify(client | ({"client_secret_expires_at": 0} if "client_secret" in client else {}))
    response.status_code = 201
    return response


def _refusal(error: ApiError) -> ApiError | OAuthError:
    if error.error_code not in ("validation_failed", "bad_json"):
        return error
    description = error.details or error.msg
    name = "invalid_redirect_uri" if "redirect_uri" in description else "invalid_client_metadata"
    members = {"code": 400, "msg": description, "error_code": error.error_code}
    return OAuthError(name, description, members=members)
