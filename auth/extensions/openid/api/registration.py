from flask import Blueprint, Response, jsonify

from auth.extensions.openid import clients
from auth.extensions.openid.api import errors
from auth.extensions.openid.oauth_errors import described
from auth.web import any_origin, dialect
from auth.web.asked import current_asked
from auth.web.errors import ApiError
from auth.web.input import json_body
from auth.web.limits import limited

blueprint = Blueprint("registration", __name__)
errors.register(blueprint)


@blueprint.post("/oauth/clients/register")
@any_origin
@limited("register_client")
@dialect.translated(writes=dialect.client)
def register_client() -> tuple[Response, int]:
    """Register an OAuth client that no administrator made (RFC 7591)."""
    asked = current_asked()
    if not asked.settings.oauth_dynamic_registration:
        raise ApiError("oauth_dynamic_client_registration_disabled")
    try:
        client = clients.register(asked, json_body())
    except ApiError as error:
        if error.status == 400:
            # The rest of the sentence may contain the client's own text.
            field = error.values.get("field") or error.msg.partition(":")[0]
            what = "redirect_uri" if field.endswith("redirect_uris") else "client_metadata"
            description = error.details or error.msg
            if error.values.get("rule") == "uri":
                description = f"{error.values['field']}: {error.values['why']}"
            error.members = {"error": f"invalid_{what}", "error_description": described(description)}
        raise
    if "client_secret" in client:
        # Required with a secret, which does not expire.
        client["client_secret_expires_at"] = 0
    return jsonify(client), 201
