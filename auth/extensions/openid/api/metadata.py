"""The provider's members of the metadata (OpenID Connect Discovery 1.0, RFC 8414)."""

from typing import Any

from auth.extensions.openid import bounds, memberships
from auth.extensions.openid.authorization_requests import PROMPTS
from auth.extensions.openid.clients import DEVICE_CODE, GRANT_TYPES
from auth.html.page import LANGUAGES
from auth.web.context import latchkey

_CLAIMS = [
    "sub", "iss", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr", "sid",
    "name", "given_name", "family_name", "nickname", "preferred_username", "picture", "locale", "updated_at",
    "email", "email_verified", "phone_number", "phone_number_verified", "groups", "roles",
]  # fmt: skip


def of_provider() -> dict[str, Any]:
    settings = latchkey.settings
    base_url = settings.base_url
    by_secret = ["client_secret_basic", "client_secret_post"]
    registration = f"{base_url}/oauth/clients/register"
    devices = f"{base_url}/oauth/device_authorization"
    return {
        "authorization_endpoint": f"{base_url}/oauth/authorize",
        "token_endpoint": f"{base_url}/oauth/token",
        "userinfo_endpoint": f"{base_url}/oauth/userinfo",
        "revocation_endpoint": f"{base_url}/oauth/revoke",
        "introspection_endpoint": f"{base_url}/introspect",
        **({"end_session_endpoint": f"{base_url}/oauth/logout"} if settings.pages else {}),
        **({"device_authorization_endpoint": devices} if settings.pages else {}),
        **({"registration_endpoint": registration} if settings.oauth_dynamic_registration else {}),
        **({"client_id_metadata_document_supported": True} if settings.oauth_client_documents else {}),
        "scopes_supported": bounds.every_scope(settings),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [name for name in GRANT_TYPES if settings.pages or name != DEVICE_CODE],
        "subject_types_supported": ["public"],
        "backchannel_logout_supported": True,
        "backchannel_logout_session_supported": True,
        "acr_values_supported": ["aal1", "aal2"],
        "id_token_signing_alg_values_supported": latchkey.client_tokens.id_token_algorithms(),
        "token_endpoint_auth_methods_supported": [*by_secret, "none"],
        "revocation_endpoint_auth_methods_supported": [*by_secret, "none"],
        "introspection_endpoint_auth_methods_supported": [*by_secret, "Bearer"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "prompt_values_supported": PROMPTS,
        "ui_locales_supported": [*LANGUAGES],
        "claims_supported": list(
            dict.fromkeys([*_CLAIMS, *memberships.scopes(settings), *settings.id_claims])
        ),
        "claims_parameter_supported": False,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
    }
