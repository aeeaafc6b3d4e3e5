"""The differences between providers, as data. Paths lead through a provider's JSON: `data.0.email`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """OpenID Connect by discovery with an `issuer`, else OAuth 2 with a userinfo URL."""

    documentation: str
    scopes: str = "openid email profile"
    issuer: str = ""
    other_issuers: tuple[str, ...] = ()  # further values of `iss` in its id_tokens
    authorize_url: str = ""
    token_url: str = ""
    userinfo_url: str = ""
    subject: str = "sub"
    email: str = "email"
    email_verified: str = "email_verified"  # empty if the provider does not report it
    gives_verified_only: bool = False
    # The URL of a list of emails, the path to the list, and the keys of an entry: email, verified, primary.
    emails_url: str = ""
    emails: str = ""
    emails_entry: tuple[str, str, str] = ("email", "verified", "primary")
    name: str = "name"
    avatar: str = "picture"
    link_by_email: bool = False  # a verified email links to the user with this email
    form_post: bool = False  # Apple posts a form from its own site, which brings no Lax cookie
    client_id_header: str = ""
    # The parameters of an authorization request that asks the user to authenticate again.
    asks_again: tuple[tuple[str, str], ...] = ()
    has_pkce: bool = True  # LinkedIn refuses a code challenge of this kind of client
    auth_method: str = "client_secret_basic"


# OpenID Connect Core, section 3.1.2.1. `max_age` requires `auth_time`; some know only one of the two.
_ASKS_AGAIN = (("max_age", "0"), ("prompt", "login"))

GENERIC = Preset(
    documentation="https://openid.net/specs/openid-connect-core-1_0.html", asks_again=_ASKS_AGAIN
)

PRESETS = {
    "apple": Preset(
        documentation="https://developer.apple.com/documentation/signinwithapplerestapi",
        issuer="https://appleid.apple.com",
        scopes="openid email name",
        link_by_email=True,
        form_post=True,
        auth_method="client_secret_post",
    ),
    "azure": Preset(
        documentation="https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc",
        issuer="https://login.microsoftonline.com/common/v2.0",
        # Tenants can set any email. This optional claim is true if the tenant has proved the domain.
        email_verified="xms_edov",
        auth_method="client_secret_post",
        asks_again=(("prompt", "login"),),
    ),
    "bitbucket": Preset(
        documentation="https://developer.atlassian.com/cloud/bitbucket/oauth-2/",
        authorize_url="https://bitbucket.org/site/oauth2/authorize",
        token_url="https://bitbucket.org/site/oauth2/access_token",
        userinfo_url="https://api.bitbucket.org/2.0/user",
        scopes="account email",
        subject="uuid",
        emails_url="https://api.bitbucket.org/2.0/user/emails",
        emails="values",
        emails_entry=("email", "is_confirmed", "is_primary"),
        name="display_name",
        avatar="links.avatar.href",
    ),
    "discord": Preset(
        documentation="https://discord.com/developers/docs/topics/oauth2",
        authorize_url="https://discord.com/oauth2/authorize",
        token_url="https://discord.com/api/oauth2/token",
        userinfo_url="https://discord.com/api/users/@me",
        scopes="identify email",
        subject="id",
        email_verified="verified",
        name="global_name",
        avatar="",
    ),
    "facebook": Preset(
        documentation="https://developers.facebook.com/docs/facebook-login/guides/advanced/manual-flow",
        authorize_url="https://www.facebook.com/v21.0/dialog/oauth",
        token_url="https://graph.facebook.com/v21.0/oauth/access_token",
        userinfo_url="https://graph.facebook.com/v21.0/me?fields=id,name,email",
        scopes="email public_profile",
        subject="id",
        email_verified="",
        avatar="",
        auth_method="client_secret_post",
        asks_again=(("auth_type", "reauthenticate"),),
    ),
    "github": Preset(
        documentation="https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps",
        authorize_url="https://github.com/login/oauth/authorize",
        token_url="https://github.com/login/oauth/access_token",
        userinfo_url="https://api.github.com/user",
        scopes="read:user user:email",
        subject="id",
        emails_url="https://api.github.com/user/emails",
        avatar="avatar_url",
        link_by_email=True,
        auth_method="client_secret_post",
    ),
    "gitlab": Preset(
        documentation="https://docs.gitlab.com/integration/openid_connect_provider/",
        issuer="https://gitlab.com",
        asks_again=_ASKS_AGAIN,
    ),
    "google": Preset(
        documentation="https://developers.google.com/identity/openid-connect/openid-connect",
        issuer="https://accounts.google.com",
        other_issuers=("accounts.google.com",),
        link_by_email=True,
    ),
    "linkedin": Preset(
        documentation="https://learn.microsoft.com/linkedin/consumer/integrations/self-serve/sign-in-with-linkedin-v2",
        # Its id_token has no nonce, so the userinfo URL identifies the user.
        authorize_url="https://www.linkedin.com/oauth/v2/authorization",
        token_url="https://www.linkedin.com/oauth/v2/accessToken",
        userinfo_url="https://api.linkedin.com/v2/userinfo",
        has_pkce=False,
        auth_method="client_secret_post",
    ),
    "slack": Preset(
        documentation="https://docs.slack.dev/authentication/sign-in-with-slack/",
        issuer="https://slack.com",
        auth_method="client_secret_post",
    ),
    "spotify": Preset(
        documentation="https://developer.spotify.com/documentation/web-api/tutorials/code-flow",
        authorize_url="https://accounts.spotify.com/authorize",
        token_url="https://accounts.spotify.com/api/token",
        userinfo_url="https://api.spotify.com/v1/me",
        scopes="user-read-email",
        subject="id",
        email_verified="",
        name="display_name",
        avatar="images.0.url",
    ),
    "twitch": Preset(
        documentation="https://dev.twitch.tv/docs/authentication/getting-tokens-oauth/",
        authorize_url="https://id.twitch.tv/oauth2/authorize",
        token_url="https://id.twitch.tv/oauth2/token",
        userinfo_url="https://api.twitch.tv/helix/users",
        scopes="user:read:email",
        subject="data.0.id",
        email="data.0.email",
        gives_verified_only=True,
        name="data.0.display_name",
        avatar="data.0.profile_image_url",
        client_id_header="Client-Id",
        auth_method="client_secret_post",
    ),
    "twitter": Preset(
        documentation="https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code",
        authorize_url="https://x.com/i/oauth2/authorize",
        token_url="https://api.x.com/2/oauth2/token",
        userinfo_url="https://api.x.com/2/users/me?user.fields=profile_image_url",
        scopes="users.read tweet.read",
        subject="data.id",
        email="",
        email_verified="",
        name="data.name",
        avatar="data.profile_image_url",
    ),
}
