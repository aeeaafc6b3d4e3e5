"""Applications in the console's actions and forms."""

from types import SimpleNamespace

from auth.core.text.labels import counted
from auth.extensions.openid import clients
from auth.html.admin.actions import Subject
from auth.html.admin.console_page import client_name
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import canonical_id
from sql import queries

# Larger counts of grants are shown as `1,000+`.
COUNTED = 1000
# The number of newest grants whose sessions are read for the last use of an application on its page.
_SEARCHED = 1000
GRANT_TYPES = {
    "authorization_code": "Users sign in",
    "refresh_token": "Stays signed in, with refresh tokens",
    "client_credentials": "Acts on its own, without a user",
    clients.DEVICE_CODE: "Users sign in on a device without a browser, by a code",
}
METHODS = {
    "": "Confidential: on a server, sends its secret by HTTP Basic or in the form",
    "client_secret_basic": "Confidential: on a server, sends its secret by HTTP Basic alone",
    "client_secret_post": "Confidential: on a server, sends its secret in the form alone",
    "none": "Public: in a browser, on a phone or a command line, without a secret",
}
# What a new application is, for which the form has the method of its secret: a machine has no users.
MACHINE = "machine"
_KINDS = {
    "": ("Web app", "On a server, which keeps a secret."),
    "none": ("Single-page or mobile app", "In a browser, on a phone or a command line, without a secret."),
    MACHINE: ("Machine", "Acts on its own, without a user, with a secret."),
}
# Further variables of the forms' templates.
_CHOICES = {
    "titles": GRANT_TYPES,
    "algorithms": {name: name for name in clients.ALGORITHMS},
}


def find(client_id: str) -> Subject:
    client = clients.get(current_asked(), canonical_id(client_id, "oauth_client_not_found"))
    bounds = {"counted": COUNTED, "searched": _SEARCHED}
    use = queries.select_client_use(latchkey.db, id=client["client_id"], **bounds)
    # The type of a client cannot change.
    is_public, has_either = client["client_type"] == "public", client["accepts_either_method"]
    methods = {name: title.split(": ", 1) for name, title in METHODS.items() if (name == "none") == is_public}
    if has_either:
        client["token_endpoint_auth_method"] = ""
    else:
        methods.pop("", None)
    names = ("previous_secret_expires_at", "backchannel_logout_uri", "metadata_url", "organization_id")
    optional = dict.fromkeys(names)
    use_and_methods = {"methods": methods, "last_used_at": use.last_used_at, "grants": amount(use.grants)}
    row = SimpleNamespace(**optional | client | _CHOICES | use_and_methods)
    return Subject(client_name(row.client_name), f"console/applications/{row.client_id}", row)


def making() -> Subject:
    """Return the subject of the action that creates an application, with the defaults of its form."""
    row = SimpleNamespace(
        client_id=None,
        methods=_KINDS,
        token_endpoint_auth_method="",
        grant_types=["authorization_code", "refresh_token"],
        require_pkce=True,
        **_CHOICES,
    )
    return Subject("Applications", "console/applications", row)


def amount(total: int) -> str:
    """Return the number of grants as text, exact up to `COUNTED`."""
    return counted(total, "grant") if total < COUNTED else f"{COUNTED:,}+ grants"
