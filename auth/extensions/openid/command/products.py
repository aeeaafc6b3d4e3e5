"""The products of `latchkey clients create --for`: the members of their client, and their settings."""

import shlex
from collections.abc import Mapping
from string import Template
from typing import NamedTuple

from auth.core import constants
from auth.core.settings import Settings


class Product(NamedTuple):
    """`callback` ends its redirect URI. `settings` is the template of a text that an operator pastes."""

    callback: str
    settings: str
    sends_challenge: bool = True
    is_public: bool = False
    token_lifetime: int | None = None


PRODUCTS = {
    "argo-cd": Product(
        "/auth/callback",
        """\
# ConfigMap argocd-cm; the secret may be in argocd-secret instead
url: $origin
oidc.config: |
  name: Latchkey
  issuer: $issuer
  clientID: $client_id
  clientSecret: $client_secret
  requestedScopes: [openid, profile, email, groups]
""",
        sends_challenge=False,
    ),
    "authjs": Product(
        "/auth/callback/latchkey",
        """\
// Among the providers of Auth.js
{
  id: "latchkey",
  name: "Latchkey",
  type: "oidc",
  issuer: "$issuer",
  clientId: "$client_id",
  clientSecret: "$client_secret",
}
""",
    ),
    "dex": Product(
        "/callback",
        """\
connectors:
- type: oidc
  id: latchkey
  name: Latchkey
  config:
    issuer: $issuer
    clientID: $client_id
    clientSecret: $client_secret
    redirectURI: $redirect_uri
    scopes: [profile, email, groups]
    # Dex refuses users without this claim, and not all have a name
    userNameKey: email
    insecureEnableGroups: true
""",
    ),
    "directus": Product(
        "/auth/login/latchkey/callback",
        """\
AUTH_PROVIDERS=latchkey
AUTH_LATCHKEY_DRIVER=openid
AUTH_LATCHKEY_CLIENT_ID=$client_id
AUTH_LATCHKEY_CLIENT_SECRET=$client_secret
AUTH_LATCHKEY_ISSUER_URL=$discovery_url
AUTH_LATCHKEY_IDENTIFIER_KEY=sub
AUTH_LATCHKEY_ALLOW_PUBLIC_REGISTRATION=true
""",
    ),
    "gitea": Product(
        "/callback",
        """\
gitea admin auth add-oauth --name latchkey --provider openidConnect --key $client_id \\
  --secret $client_secret --auto-discover-url $discovery_url \\
  --scopes email --scopes profile --scopes groups --group-claim-name groups
""",
        sends_challenge=False,
    ),
    "grafana": Product(
        "/login/generic_oauth",
        """\
GF_AUTH_GENERIC_OAUTH_ENABLED=true
GF_AUTH_GENERIC_OAUTH_NAME=$brand
GF_AUTH_GENERIC_OAUTH_CLIENT_ID=$client_id
GF_AUTH_GENERIC_OAUTH_CLIENT_SECRET=$client_secret
GF_AUTH_GENERIC_OAUTH_SCOPES=openid,profile,email,roles
GF_AUTH_GENERIC_OAUTH_AUTH_URL=$authorization_endpoint
GF_AUTH_GENERIC_OAUTH_TOKEN_URL=$token_endpoint
GF_AUTH_GENERIC_OAUTH_API_URL=$userinfo_endpoint
GF_AUTH_GENERIC_OAUTH_USE_PKCE=true
GF_AUTH_GENERIC_OAUTH_USE_REFRESH_TOKEN=true
""",
    ),
    "jupyterhub": Product(
        "/hub/oauth_callback",
        """\
# jupyterhub_config.py, with the package oauthenticator
c.JupyterHub.authenticator_class = "generic-oauth"
c.GenericOAuthenticator.client_id = "$client_id"
c.GenericOAuthenticator.client_secret = "$client_secret"
c.GenericOAuthenticator.oauth_callback_url = "$redirect_uri"
c.GenericOAuthenticator.authorize_url = "$authorization_endpoint"
c.GenericOAuthenticator.token_url = "$token_endpoint"
c.GenericOAuthenticator.userdata_url = "$userinfo_endpoint"
c.GenericOAuthenticator.scope = ["openid", "email"]
c.GenericOAuthenticator.username_claim = "email"
c.GenericOAuthenticator.allow_all = True
""",
    ),
    "kubelogin": Product(
        "http://localhost:18000",
        """\
kubectl config set-credentials latchkey --exec-api-version=client.authentication.k8s.io/v1 \\
  --exec-command=kubectl --exec-arg=oidc-login --exec-arg=get-token \\
  --exec-arg=--oidc-issuer-url=$issuer --exec-arg=--oidc-client-id=$client_id \\
  --exec-arg=--oidc-extra-scope=email --exec-arg=--oidc-extra-scope=groups
kube-apiserver --oidc-issuer-url=$issuer --oidc-client-id=$client_id \\
  --oidc-username-claim=email --oidc-groups-claim=groups
""",
        is_public=True,
    ),
    "miniflux": Product(
        "/oauth2/oidc/callback",
        """\
OAUTH2_PROVIDER=oidc
OAUTH2_CLIENT_ID=$client_id
OAUTH2_CLIENT_SECRET=$client_secret
OAUTH2_REDIRECT_URL=$redirect_uri
OAUTH2_OIDC_DISCOVERY_ENDPOINT=$issuer
OAUTH2_USER_CREATION=1
""",
    ),
    "mozilla-django-oidc": Product(
        "/oidc/callback/",
        """\
# settings.py
OIDC_RP_CLIENT_ID = "$client_id"
OIDC_RP_CLIENT_SECRET = "$client_secret"
OIDC_RP_SIGN_ALGO = "RS256"
OIDC_USE_PKCE = True
OIDC_OP_AUTHORIZATION_ENDPOINT = "$authorization_endpoint"
OIDC_OP_TOKEN_ENDPOINT = "$token_endpoint"
OIDC_OP_USER_ENDPOINT = "$userinfo_endpoint"
OIDC_OP_JWKS_ENDPOINT = "$jwks_uri"
""",
    ),
    "nextcloud": Product(
        "/apps/user_oidc/code",
        """\
occ user_oidc:provider latchkey --clientid=$client_id --clientsecret=$client_secret \\
  --scope="openid email profile groups" --group-provisioning=1 --discoveryuri=$discovery_url
""",
    ),
    "oauth2-proxy": Product(
        "/oauth2/callback",
        """\
# With OAUTH2_PROXY_COOKIE_SECRET and OAUTH2_PROXY_UPSTREAMS of your own, other ones for each tool
OAUTH2_PROXY_PROVIDER=oidc
OAUTH2_PROXY_OIDC_ISSUER_URL=$issuer
OAUTH2_PROXY_CLIENT_ID=$client_id
OAUTH2_PROXY_CLIENT_SECRET=$client_secret
OAUTH2_PROXY_REDIRECT_URL=$redirect_uri
OAUTH2_PROXY_CODE_CHALLENGE_METHOD=S256
OAUTH2_PROXY_SCOPE='openid email profile groups'
OAUTH2_PROXY_EMAIL_DOMAINS='*'
OAUTH2_PROXY_COOKIE_REFRESH=1m
""",
        # Until then the application accepts a user whose access has ended here.
        token_lifetime=2 * constants.MINUTE,
    ),
    "open-webui": Product(
        "/oauth/oidc/callback",
        """\
OPENID_PROVIDER_URL=$discovery_url
OPENID_REDIRECT_URI=$redirect_uri
OAUTH_CLIENT_ID=$client_id
OAUTH_CLIENT_SECRET=$client_secret
OAUTH_PROVIDER_NAME=Latchkey
OAUTH_CODE_CHALLENGE_METHOD=S256
ENABLE_OAUTH_SIGNUP=true
""",
    ),
    "outline": Product(
        "/auth/oidc.callback",
        """\
OIDC_CLIENT_ID=$client_id
OIDC_CLIENT_SECRET=$client_secret
OIDC_AUTH_URI=$authorization_endpoint
OIDC_TOKEN_URI=$token_endpoint
OIDC_USERINFO_URI=$userinfo_endpoint
OIDC_LOGOUT_URI=$end_session_endpoint
OIDC_SCOPES='openid profile email'
""",
        sends_challenge=False,
    ),
    "pgadmin": Product(
        "/oauth2/authorize",
        """\
# config_local.py
AUTHENTICATION_SOURCES = ["oauth2", "internal"]
OAUTH2_CONFIG = [{
    "OAUTH2_NAME": "latchkey",
    "OAUTH2_DISPLAY_NAME": "Latchkey",
    "OAUTH2_CLIENT_ID": "$client_id",
    "OAUTH2_CLIENT_SECRET": "$client_secret",
    "OAUTH2_SERVER_METADATA_URL": "$discovery_url",
    "OAUTH2_AUTHORIZATION_URL": "$authorization_endpoint",
    "OAUTH2_TOKEN_URL": "$token_endpoint",
    "OAUTH2_API_BASE_URL": "$issuer",
    "OAUTH2_USERINFO_ENDPOINT": "$userinfo_endpoint",
    "OAUTH2_SCOPE": "openid email profile",
    "OAUTH2_CHALLENGE_METHOD": "S256",
    "OAUTH2_RESPONSE_TYPE": "code",
}]
""",
    ),
    "portainer": Product(
        "",
        """\
# Settings, Authentication, OAuth, Custom
Client ID          $client_id
Client secret      $client_secret
Authorization URL  $authorization_endpoint
Access token URL   $token_endpoint
Resource URL       $userinfo_endpoint
Redirect URL       $redirect_uri
Logout URL         $end_session_endpoint
User identifier    email
Scopes             openid profile email
""",
        sends_challenge=False,
    ),
    "streamlit": Product(
        "/oauth2callback",
        """\
# .streamlit/secrets.toml, with the package streamlit[auth]; cookie_secret is a random text of your own
[auth]
redirect_uri = "$redirect_uri"
client_id = "$client_id"
client_secret = "$client_secret"
server_metadata_url = "$discovery_url"
""",
    ),
    "synapse": Product(
        "/_synapse/client/oidc/callback",
        """\
# homeserver.yaml; AUTH_ID_CLAIMS can give users a preferred_username
oidc_providers:
- idp_id: latchkey
  idp_name: Latchkey
  issuer: $issuer
  client_id: $client_id
  client_secret: $client_secret
  scopes: [openid, profile, email]
  backchannel_logout_enabled: true
  user_mapping_provider:
    config:
      localpart_template: "{{ user.preferred_username or user.email.split('@')[0] }}"
      display_name_template: "{{ user.name or user.email }}"
      email_template: "{{ user.email }}"
""",
    ),
}


def endpoints(settings: Settings) -> dict[str, str]:
    """Return the endpoints that applications need."""
    base = f"{settings.base_url}/oauth"
    return {
        "issuer": settings.jwt_issuer,
        "discovery_url": f"{settings.jwt_issuer}/.well-known/openid-configuration",
        "authorization_endpoint": f"{base}/authorize",
        "token_endpoint": f"{base}/token",
        "userinfo_endpoint": f"{base}/userinfo",
        "end_session_endpoint": f"{base}/logout",
        "device_authorization_endpoint": f"{base}/device_authorization",
        "jwks_uri": f"{settings.base_url}/.well-known/jwks.json",
    }


def settings_of(product: Product, client: Mapping[str, str], redirect_uri: str, settings: Settings) -> str:
    """Return the settings of a product for its client."""
    own = {
        "client_id": client["client_id"],
        "client_secret": client.get("client_secret", ""),
        "redirect_uri": redirect_uri,
        "origin": redirect_uri.removesuffix(product.callback),
        "brand": shlex.quote(settings.brand_name),
    }
    return Template(product.settings).substitute(own, **endpoints(settings)).rstrip()
