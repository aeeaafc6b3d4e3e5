"""Supabase clients' names of providers select ours."""

import pytest

from auth.core.settings.presets import ALIASES

# `Provider` of auth-js, but for Apple, whose secret is a key. tests/system/clients/oauth.test.mjs compares the settings.
AUTH_JS = (
    "azure bitbucket discord facebook figma fly github gitlab google kakao keycloak linkedin linkedin_oidc notion"
    " slack slack_oidc spotify twitch twitter workos x zoom"
)


@pytest.mark.parametrize("name", AUTH_JS.split())
def test_name_of_auth_js_begins_a_sign_in_with_the_provider_of_the_settings(make_app, name):
    urls = ("AUTHORIZE_URL", "TOKEN_URL", "USERINFO_URL")
    prefix = f"AUTH_PROVIDER_{ALIASES.get(name, name).upper()}_"
    settings = {f"{prefix}{url}": f"https://provider.example/{url.lower()}" for url in urls}
    settings |= {f"{prefix}CLIENT_ID": "id", f"{prefix}CLIENT_SECRET": "secret"}
    response = make_app(**settings).test_client().get(f"/authorize?provider={name}")
    assert (response.status_code, response.location.partition("?")[0]) == (
        302,
        settings[f"{prefix}AUTHORIZE_URL"],
    )
