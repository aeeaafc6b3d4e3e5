"""Gates in the console, where they are applications."""

from functools import partial
from typing import Any

from flask import Blueprint, Response

from auth.openid import clients
from auth.openid.gates import registered, snippets
from auth.openid.pages.console_clients import find, making
from auth.web import fields
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.html.admin.acts import Act, Subject, serve
from auth.web.html.page import redirect_to_own
from auth.web.input import check
from auth.web.schemas import Input

blueprint = Blueprint("gates", __name__)

_ChangeForm = Input.of(
    client_name=fields.Text(load_default=""), allowed_roles=fields.LongText(load_default="")
)
_NewForm = _ChangeForm.of(url=fields.Text(load_default=""))


def snippets_of(gate_origin: str) -> dict[str, str]:
    """Return what each proxy needs for a gate, by the names of the proxies."""
    service = f"127.0.0.1:{latchkey.settings.port}"
    return {
        proxy: snippets.snippet(proxy, gate_origin, tool=snippets.TOOL, service=service)
        for proxy in snippets.FILES
    }


def _find(client_id: str) -> Subject:
    subject = find(client_id)
    if subject.row.gate_origin is None:
        raise ApiError("oauth_client_not_found")
    return subject


def _checked(_subject: Subject, form: dict[str, Any]) -> dict[str, Any]:
    body = {"client_name": form["client_name"].strip(), "allowed_roles": form["allowed_roles"].split()}
    check(clients.ClientChange(), body)
    if "url" in form:
        registered.check_origin(form["url"].strip())
    return form | body


def _make(_subject: Subject, form: dict[str, Any]) -> Response:
    gate = registered.create(form["client_name"], form["url"].strip(), form["allowed_roles"])
    return redirect_to_own(f"console/applications/{gate['client_id']}", "new-gate")


_writing = partial(Act, needs_factor=True, check=_checked, template="act_gate.html")
MAKING = {
    "new-gate": _writing(
        title="Add a gate",
        effects=lambda _subject: [
            "Creates 1 gate: a sign-in in front of a tool that has none.",
            "Users are not asked for their consent: you give it here.",
        ],
        undo="You can delete it at any time.",
        do=_make,
        done="Gate created. Add the configuration below to your proxy.",
        form=_NewForm,
    ),
}
ACTS = {
    "change-gate": _writing(
        title="Change gate",
        effects=lambda subject: [
            f"Changes 1 gate with {subject.row.grants}.",
            "Users who lose their access are signed out of it.",
        ],
        undo="You can change it back.",
        do=lambda subject, form: clients.update(subject.row.client_id, form),
        done="Gate changed.",
        form=_ChangeForm,
    ),
}
serve(blueprint, "/console/applications", MAKING, making)
serve(blueprint, "/console/applications/<client_id>", ACTS, _find)
