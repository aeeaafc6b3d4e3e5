"""The differences between providers, as data. A path such as `data.0.email` selects from their JSON."""

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
    email_valid: str = ""  # must be true too: Kakao's is not once another account has the email
    verified_as: tuple[object, ...] = (True,)  # the values of `email_verified` that mean yes
    gives_verified_only: bool = False
    # The URL of a list of emails, the path to the list, and the keys of an entry: email, verified, primary.
    emails_url: str = ""
    emails: str = ""
    emails_entry: tuple[str, str, str] = ("email", "verified", "primary")
    name: str = "name"
    avatar: str = "picture"
    handle: str = "preferred_username"  # the name that the user chose there
    link_by_email: bool = False  # a verified email links to the user with this email
    form_post: bool = False  # Apple posts a form from its own site, which brings no Lax cookie
    client_id_header: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    # The values of `error` that the provider sends if the user cancels.
    cancelled_as: tuple[str, ...] = ("access_denied",)
    # The parameters of an authorization request that asks the user to authenticate again.
    asks_again: tuple[tuple[str, str], ...] = ()
    has_pkce: bool = True  # LinkedIn refuses a code challenge of this kind of client
    auth_method: str = "client_secret_basic"


# OpenID Connect Core, section 3.1.2.1. `max_age` requires `auth_time`; some know only one of the two.
_ASKS_AGAIN = (("max_age", "0"), ("prompt", "login"))

GENERIC = Preset(
    documentation="https://openid.net/specs/openid-connect-core-1_0.html",
    verified_as=(True, "true"),  # Amazon Cognito sends the string
    asks_again=_ASKS_AGAIN,
)

PRESETS = {
    "apple": Preset(
        documentation="https://developer.apple.com/documentation/signinwithapplerestapi",
        issuer="https://appleid.apple.com",
        scopes="openid email name",
        link_by_email=True,
        form_post=True,
        verified_as=(True, "true"),
        cancelled_as=("user_cancelled_authorize", "access_denied"),
        auth_method="client_secret_post",
    ),
    "azure": Preset(
        documentation="https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc",
        issuer="https://login.microsoftonline.com/common/v2.0",
        # Tenants can set any email. This optional claim is true if the tenant has proved the domain.
        email_verified="xms_edov",
        verified_as=(True, "true", "1"),
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
        handle="nickname",
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
        handle="username",
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
    "figma": Preset(
        documentation="https://developers.figma.com/docs/rest-api/authentication/",
        authorize_url="https://www.figma.com/oauth",
        token_url="https://api.figma.com/v1/oauth/token",
        userinfo_url="https://api.figma.com/v1/me",
        scopes="current_user:read",
        subject="id",
        email_verified="",
        name="handle",
        avatar="img_url",
    ),
    "fly": Preset(
        documentation="https://fly.io/docs/reference/extensions_api/",
        authorize_url="https://api.fly.io/oauth/authorize",
        token_url="https://api.fly.io/oauth/token",
        userinfo_url="https://api.fly.io/oauth/token/info",
        scopes="read",
        subject="user_id",
        email_verified="",
        name="user_name",
        avatar="",
        auth_method="client_secret_post",
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
        handle="login",
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
    "kakao": Preset(
        documentation="https://developers.kakao.com/docs/latest/en/kakaologin/rest-api",
        authorize_url="https://kauth.kakao.com/oauth/authorize",
        token_url="https://kauth.kakao.com/oauth/token",
        userinfo_url="https://kapi.kakao.com/v2/user/me",
        scopes="account_email profile_image profile_nickname",
        subject="id",
        email="kakao_account.email",
        email_verified="kakao_account.is_email_verified",
        email_valid="kakao_account.is_email_valid",
        name="kakao_account.profile.nickname",
        avatar="kakao_account.profile.profile_image_url",
        auth_method="client_secret_post",
    ),
    "linkedin": Preset(
        documentation="https://learn.microsoft.com/linkedin/consumer/integrations/self-serve/sign-in-with-linkedin-v2",
        # Its id_token has no nonce, so the userinfo URL identifies the user.
        authorize_url="https://www.linkedin.com/oauth/v2/authorization",
        token_url="https://www.linkedin.com/oauth/v2/accessToken",
        userinfo_url="https://api.linkedin.com/v2/userinfo",
        verified_as=(True, "true"),
        cancelled_as=("user_cancelled_login", "user_cancelled_authorize", "access_denied"),
        has_pkce=False,
        auth_method="client_secret_post",
    ),
    "notion": Preset(
        documentation="https://developers.notion.com/docs/authorization",
        authorize_url="https://api.notion.com/v1/oauth/authorize?owner=user",
        token_url="https://api.notion.com/v1/oauth/token",
        userinfo_url="https://api.notion.com/v1/users/me",
        scopes="",  # they are set in its console
        subject="bot.owner.user.id",
        email="bot.owner.user.person.email",
        email_verified="",
        name="bot.owner.user.name",
        avatar="bot.owner.user.avatar_url",
        headers=(("Notion-Version", "2022-06-28"),),
    ),
    "slack": Preset(
        documentation="https://docs.slack.dev/authentication/sign-in-with-slack/",
        issuer="https://slack.com",
        auth_method="client_secret_post",
    ),
    "snapchat": Preset(
        documentation="https://developers.snap.com/snap-kit/login-kit/Tutorials/web",
        authorize_url="https://accounts.snapchat.com/accounts/oauth2/auth",
        token_url="https://accounts.snapchat.com/accounts/oauth2/token",
        userinfo_url="https://kit.snapchat.com/v1/me?query=%7Bme%7BexternalId%20displayName%20bitmoji%7Bavatar%7D%7D%7D",
        scopes="https://auth.snapchat.com/oauth2/api/user.external_id"
        " https://auth.snapchat.com/oauth2/api/user.display_name"
        " https://auth.snapchat.com/oauth2/api/user.bitmoji.avatar",
        subject="data.me.externalId",
        email="",
        email_verified="",
        name="data.me.displayName",
        avatar="data.me.bitmoji.avatar",
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
        handle="data.0.login",
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
        handle="data.username",
        avatar="data.profile_image_url",
    ),
    "vercel": Preset(
        documentation="https://vercel.com/docs/sign-in-with-vercel/authorization-server-api",
        issuer="https://vercel.com",
    ),
    # Its authorization URL also needs a connection, organization or provider: see docs/oauth.md.
    "workos": Preset(
        documentation="https://workos.com/docs/reference/sso",
        authorize_url="https://api.workos.com/sso/authorize",
        token_url="https://api.workos.com/sso/token",
        userinfo_url="https://api.workos.com/sso/profile",
        scopes="",
        subject="id",
        email_verified="",
        cancelled_as=("signin_consent_denied", "access_denied"),
        name="first_name",
        avatar="",
        auth_method="client_secret_post",
    ),
    "zoom": Preset(
        documentation="https://developers.zoom.us/docs/integrations/oauth/",
        authorize_url="https://zoom.us/oauth/authorize",
        token_url="https://zoom.us/oauth/token",
        userinfo_url="https://api.zoom.us/v2/users/me",
        scopes="user:read:user",
        subject="id",
        email_verified="verified",
        verified_as=(1,),
        name="display_name",
        avatar="pic_url",
    ),
}

# Names of providers in other products, by which clients and imports may call ours.
ALIASES = {
    "google-oauth2": "google",
    "windowslive": "azure",
    "waad": "azure",
    "microsoft.com": "azure",
    "microsoft": "azure",
    "linkedin_oidc": "linkedin",
    "linkedin-openid-connect": "linkedin",
    "slack_oidc": "slack",
    "x": "twitter",
}
