"""OAuth clients by the ids that they send, and their object for the API, commands and console."""

from typing import Any

from auth.core.settings import Settings
from auth.core.text.moments import iso_8601
from auth.core.tokens import client_ids
from auth.web.asked import Asked
from sql import queries


def as_object(row: "queries.SelectClient | queries.ListClients", secret: str | None = None) -> dict[str, Any]:
    """Return the object of a client, with its secret if that is new."""
    optional = {
        "client_secret": secret,
        "previous_secret_expires_at": iso_8601(row.previous_secret_expires_at),
        "client_uri": row.uri,
        "logo_uri": row.logo_uri,
        "metadata_url": row.metadata_url,
        "backchannel_logout_uri": row.backchannel_logout_uri,
        "policy_uri": row.policy_uri,
        "tos_uri": row.tos_uri,
        "organization_id": row.organization_id,
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
        "is_blocked": row.is_blocked,
        "token_lifetime": row.token_lifetime,
        "id_token_signed_response_alg": row.id_token_signed_response_alg,
        "created_at": iso_8601(row.created_at),
        "updated_at": iso_8601(row.updated_at),
    }


def row_id(settings: Settings, client_id: str) -> str | None:
    """Return the id of a client's row, or None for an invalid id."""
    return client_ids.admitted_row_id(client_id, settings.oauth_client_documents)


def select_client(asked: Asked, client_id: str) -> "queries.SelectClient | None":
    """Return the row of a client, or None, also for an invalid id."""
    id = row_id(asked.settings, client_id)
    return queries.select_client(asked.db, id=id) if id else None


def sent_id(client: "queries.SelectClient") -> str:
    """Return the id of a client's row that the application uses."""
    return client.metadata_url or client.id
