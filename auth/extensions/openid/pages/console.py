"""The applications that sign users in here, and their grants.

An application that registered itself chose its name and URLs: they are shown as text, and never loaded.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Blueprint, Response

from auth.core.text.moments import until
from auth.extensions.openid import clients
from auth.extensions.openid.pages import console_clients, console_grants
from auth.flows import organizations
from auth.html.admin.access import administrator
from auth.html.admin.actions import Action, Subject, notice_of, serve
from auth.html.admin.console_page import ListQuery, client_name, console_page, page_of, place_of
from auth.html.page import redirect_to_own
from auth.web import fields
from auth.web.asked import Asked
from auth.web.context import latchkey
from auth.web.input import Shape, check, read_query
from auth.web.schemas import Input
from sql import queries

blueprint = Blueprint("applications", __name__)

# The number of newest grants whose sessions are read for the last use of an application in the list.
_SEARCHED = 100
_TEXTS = (
    "client_name", "client_uri", "logo_uri", "id_token_signed_response_alg", "backchannel_logout_uri",
    "organization_id",
)  # fmt: skip
_LISTS = ("redirect_uris", "post_logout_redirect_uris", "scopes", "resources", "allowed_roles")
_FLAGS = ("require_pkce", "skip_consent", "introspects_sessions")
_ClientForm = Input.of(
    **{name: fields.TypedText(load_default="") for name in (*_TEXTS, "token_lifetime")},
    **{name: fields.TypedItems(load_default=list) for name in _LISTS},
    **{name: fields.Choice("yes") for name in (*_FLAGS, *console_clients.GRANT_TYPES)},
    token_endpoint_auth_method=fields.Choice(
        *console_clients.METHODS, console_clients.MACHINE, required=True
    ),
)


@blueprint.get("/console/applications")
@administrator
def show_clients() -> Response:
    """Show the applications, newest first."""
    rows = queries.search_clients(
        latchkey.db, counted=console_clients.COUNTED, searched=_SEARCHED, **place_of(read_query(ListQuery))
    )
    return console_page(
        "applications.html",
        amount=console_clients.amount,
        unused=console_grants.unused,
        notice=notice_of(_ACTIONS),
        **page_of(rows, "created_at"),
    )


@blueprint.get("/console/applications/<client_id>")
@administrator
def show_client(client_id: str) -> Response:
    """Show an application with its grants, newest first."""
    subject, query = console_clients.find(client_id), read_query(ListQuery)
    rows = queries.search_client_grants(latchkey.db, client_id=subject.row.client_id, **place_of(query))
    secret_actions = ["new-secret"] if subject.row.client_type == "confidential" else []
    if subject.row.previous_secret_expires_at:
        secret_actions.append("end-old-secret")
    return console_page(
        "application.html",
        client=subject.row,
        unused=console_grants.unused,
        methods=console_clients.METHODS,
        grant_types=console_clients.GRANT_TYPES,
        lifetime=latchkey.settings.access_token_lifetime,
        acts=_ACTIONS,
        possible=["change", *secret_actions, "unblock" if subject.row.is_blocked else "block", "delete"],
        notice=notice_of(_MAKING | _ACTIONS),
        **page_of(rows, "granted_at"),
    )


def _checked(shape: Shape, form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body that an application's form stands for, checked."""
    lifetime, method = form["token_lifetime"], form["token_endpoint_auth_method"]
    body: dict[str, Any] = {
        **{name: form[name] for name in (*_TEXTS, *_LISTS)},
        **{name: name in form for name in _FLAGS},
        "grant_types": [name for name in console_clients.GRANT_TYPES if name in form],
        # The schema refuses other texts.
        "token_lifetime": int(lifetime) if lifetime.isascii() and lifetime.isdigit() else lifetime or None,
    }
    if method == console_clients.MACHINE:
        body["grant_types"] = ["client_credentials"]
    elif method:
        body["token_endpoint_auth_method"] = method
    if not organizations.is_on(latchkey.settings) and not form["organization_id"]:
        # The form has no such field. An empty one would open the application to everybody.
        del body["organization_id"]
    check(shape, body)
    return body


def _make(asked: Asked, _subject: Subject, body: Mapping[str, object]) -> Response:
    client = clients.create(asked, body)
    if "client_secret" in client:
        return _once(client)
    return redirect_to_own(f"console/applications/{client['client_id']}", "new")


def _once(client: Mapping[str, str]) -> Response:
    id, name = client["client_id"], client_name(client["client_name"])
    entries = {"Client ID": id, "Secret": client["client_secret"], "Issuer": latchkey.settings.jwt_issuer}
    use, path = "Enter all three in the application.", f"console/applications/{id}"
    if ends := client.get("previous_secret_expires_at"):
        use += f" The old secret works {until(ends)}."
    return console_page("secret.html", name=name, use=use, facts=entries, path=path)


def _new_secret_effects(subject: Subject) -> list[str]:
    effects = [
        "Creates 1 secret, which you’ll see once.",
        "The current secret stops working at once, unless you keep it:"
        " the application fails until it has the new one.",
    ]
    if ends := subject.row.previous_secret_expires_at:
        effects.append(f"The old secret, which works {until(ends)}, stops working in any case.")
    return effects


_action = partial(Action, needs_factor=True)
_writing = partial(_action, form=_ClientForm, template="act_application.html")
_MAKING = {
    "new": _writing(
        title="Add an application",
        is_spared_here=True,
        effects=lambda _subject: [
            "Creates 1 application that can sign users in here.",
            "If it has a secret, you’ll see it once, on the next page.",
        ],
        undo="You can delete it at any time.",
        do=_make,
        done="Application created. It has no secret.",
        check=lambda _subject, form: _checked(clients.NewClient, form),
    ),
}
_ACTIONS = {
    "change": _writing(
        title="Change application",
        effects=lambda subject: [
            f"Changes 1 application with {subject.row.grants}.",
            "Users who lose their access are signed out of it.",
        ],
        undo="You can change it back.",
        do=lambda asked, subject, body: clients.update(asked, subject.row.client_id, body),
        done="Application changed.",
        check=lambda _subject, form: _checked(clients.ClientChange, form),
    ),
    "new-secret": _action(
        title="Create a new secret",
        effects=_new_secret_effects,
        undo="A secret that has ended can’t be restored.",
        do=lambda asked, subject, form: _once(
            clients.replace_secret(
                asked, subject.row.client_id, clients.OVERLAP if "overlap" in form else None
            )
        ),
        done="Secret created.",
        is_destructive=True,
        form=Input.of(overlap=fields.Choice("yes")),
        template="act_new_secret.html",
    ),
    "end-old-secret": _action(
        title="End the old secret",
        effects=lambda _subject: ["Ends 1 old secret: the application needs the new one from now on."],
        undo="A secret that has ended can’t be restored.",
        do=lambda asked, subject, _form: clients.end_previous_secret(asked, subject.row.client_id),
        done="The old secret has ended.",
        is_destructive=True,
    ),
    "block": _action(
        title="Block",
        effects=lambda subject: [f"Blocks 1 application with {subject.row.grants}, and ends their sessions."],
        undo="You can unblock it. Sessions that have ended stay ended.",
        do=lambda asked, subject, _form: clients.update(asked, subject.row.client_id, {"is_blocked": True}),
        done="Application blocked.",
        is_destructive=True,
    ),
    "unblock": _action(
        title="Unblock",
        effects=lambda _subject: ["Unblocks 1 application: users can sign in to it again."],
        undo="You can block it again.",
        do=lambda asked, subject, _form: clients.update(asked, subject.row.client_id, {"is_blocked": False}),
        done="Application unblocked.",
    ),
    "delete": _action(
        title="Delete",
        effects=lambda subject: [
            f"Deletes 1 application with {subject.row.grants}, and ends the sessions of each.",
            "Users can no longer sign in to it with their account here.",
        ],
        undo="This can’t be undone. A new one has another ID and secret.",
        do=lambda asked, subject, _form: clients.delete(asked, subject.row.client_id),
        done="Application deleted.",
        then="console/applications",
        is_destructive=True,
    ),
}
serve(blueprint, "/console/applications", _MAKING, console_clients.making)
serve(blueprint, "/console/applications/<client_id>", _ACTIONS, console_clients.find)
serve(
    blueprint,
    "/console/users/<user_id>/applications/<client_id>",
    console_grants.ACTIONS,
    console_grants.find,
)
