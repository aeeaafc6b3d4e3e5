"""The applications of a user's grants on the account page."""

from typing import Any

from auth.extensions.openid import memberships
from auth.flows.account import grants
from auth.html.page import ago, application, text
from auth.web.asked import current_asked


def shown_grants() -> list[dict[str, Any]] | None:
    """Return the caller's applications for the account page, or None if there are none."""
    return [
        {
            "id": grant["client"]["id"],
            "name": application(grant["client"]["name"]),
            "scopes": [
                *(text("scopes", kind) for kind in memberships.kinds(grant["scopes"])),
                *memberships.of_apis(grant["scopes"]),
            ],
            "allowed": ago(grant["granted_at"]),
        }
        for grant in grants.own(current_asked())
    ] or None
