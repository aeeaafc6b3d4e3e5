"""The OpenID provider: applications that sign users in here (OpenID Connect Core 1.0, OAuth 2.1)."""

from typing import TYPE_CHECKING

from auth.core.settings import Settings

if TYPE_CHECKING:
    from flask import Flask

    from auth.web.context import Lists


def init_lists(lists: "Lists", settings: Settings) -> None:
    from auth.openid import consent
    from auth.openid.pages import consent as consent_page
    from auth.openid.pages import logout

    lists.form_targets.append(consent.behind)
    lists.pages.extend((consent_page.blueprint, logout.blueprint))
    if settings.oauth_server:
        from auth.openid.pages import account, console

        lists.sections.append(console.blueprint)
        lists.navigation.append((30, "console/applications", "Applications"))
        lists.tabs["applications"] = account.shown_grants
        lists.user_tabs["applications"] = console.grants_of


def init_app(app: "Flask") -> None:
    from auth.openid.api import authorization, clients, grants, openid

    for view in (grants, clients, authorization, openid):
        app.register_blueprint(view.blueprint)


def commands() -> dict[str, str]:
    return {"clients": "auth.openid.command"}
