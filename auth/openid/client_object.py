"""The object of an OAuth client, which the API, the commands and the console read."""

from typing import Any


def as_object(row: Any, secret: str | None = None) -> dict[str, Any]:
    """Return the object of a client, a row of `select_client`, with its secret if that is new."""
    optional = {
        "client_secret": secret,
        "previous_secret_expires_at": row.previous_secret_expires_at,
        "client_uri": row.uri,
        "logo_uri": row.logo_uri,
        "backchannel_logout_uri": row.backchannel_logout_uri,
        "policy_uri": row.policy_uri,
        "tos_uri": row.tos_uri,
    }
    return {
        "client_id": row.id,
        "client_name": row.name,
        **{name: value for name, value in optional.items() if value},
        "client_type": "public" if row.secret_hash is None else "confidential",
        "token_endpoint_auth_method": row.token_endpoint_auth_method,
        "accepts_either_method": row.accepts_either_method,
        "registration_type": "dynamic" if row.is_dynamic else "manual",
        "redirect_uris": row.redirect_uris,
        "post_logout_redirect_uris": row.post_logout_redirect_uris,
        "grant_types": row.grant_types,
        "response_types": ["code"],
        "scopes": row.scopes,
        "resources": row.resources,
        "allowed_roles": row.allowed_roles,
        "require_pkce": row.require_pkce,
        "skip_consent": row.skip_consent,
        "introspects_sessions": row.introspects_sessions,
        "token_lifetime": row.token_lifetime,
        "id_token_signed_response_alg": row.id_token_signed_response_alg,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }
