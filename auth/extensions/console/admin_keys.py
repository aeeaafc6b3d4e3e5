"""The administrative keys. A page shows a new key once."""

from functools import partial
from types import SimpleNamespace
from typing import Any

from flask import Blueprint, Response

from auth.core import constants
from auth.core.text.labels import counted, label, quoted
from auth.flows.admin import admin_keys
from auth.flows.admin.admin_keys import SCOPES
from auth.html.admin.access import administrator
from auth.html.admin.actions import Action, Subject, notice_of, serve
from auth.html.admin.console_page import console_page
from auth.rules.tokens import is_expired
from auth.web import fields
from auth.web.asked import Asked, current_asked
from auth.web.errors import found
from auth.web.input import canonical_id, check
from auth.web.schemas import AdminInput, Input

blueprint = Blueprint("admin_keys", __name__)

_PATH = "console/keys"
_DAYS = {"30": "In 30 days", "90": "In 90 days", "365": "In a year", "": "Never"}
# A form has a checkbox for each scope; marshmallow would take a colon in a name as it is.
_BOXES = {scope.replace(":", "_"): scope for scope in SCOPES}
_KeyForm = Input.of(
    name=fields.TypedText(load_default=""),
    days=fields.Choice(*_DAYS, load_default="90"),
    **{box: fields.Choice("yes") for box in _BOXES},
)
_NewKey = AdminInput.of(
    name=fields.Name(required=True),
    key_scopes=fields.Choices(*SCOPES, required=True),
    lifetime=fields.Lifetime(),
)


@blueprint.get("/console/keys")
@administrator
def show_keys() -> Response:
    keys = [
        SimpleNamespace(**key._asdict(), is_expired=is_expired(key))
        for key in admin_keys.listed(current_asked())
    ]
    return console_page("keys.html", keys=keys, acts=_KEY_ACTIONS, notice=notice_of(_KEY_ACTIONS))


def _key(admin_key_id: str) -> Subject:
    id = canonical_id(admin_key_id, "admin_key.not_found")
    keys = admin_keys.listed(current_asked())
    key = found(next((each for each in keys if each.id == id), None), "admin_key.not_found")
    return Subject(key.name, _PATH, key)


def _body(form: dict[str, str]) -> dict[str, Any]:
    scopes = [scope for box, scope in _BOXES.items() if box in form]
    lifetime = {"lifetime": int(form["days"]) * constants.DAY} if form["days"] else {}
    return {"name": form["name"].strip(), "key_scopes": scopes, **lifetime}


def _create(asked: Asked, _keys: Subject, body: dict[str, Any]) -> Response:
    _, key = admin_keys.create(asked, body["name"], body["key_scopes"], body.get("lifetime"))
    use = "Send it to the API like the service role key, from a server."
    return console_page("secret.html", name=body["name"], use=use, facts={"Secret": key}, path=_PATH)


def _all_keys() -> Subject:
    boxes = {box: (scope, label("key_scopes", scope)) for box, scope in _BOXES.items()}
    total = len(admin_keys.listed(current_asked()))
    return Subject("Keys", _PATH, SimpleNamespace(boxes=boxes, days=_DAYS, total=total))


_action = partial(Action, needs_factor=True, is_spared_here=True)
_MAKING = {
    "new": _action(
        title="Create a key",
        effects=lambda keys: [
            f"You have {keys.row.total} of {counted(constants.MOST_ADMIN_KEYS, 'key')}.",
            "You’ll see the key once, on the next page.",
            "No key changes an administrator or sets a role.",
        ],
        undo="You can end it at any time. What it has done stays.",
        do=_create,
        form=_KeyForm,
        check=lambda _keys, form: check(_NewKey, _body(form)),
        template="act_key.html",
    )
}
_KEY_ACTIONS = {
    "end": Action(
        title="End the key",
        effects=lambda subject: [
            f"Ends 1 key: {quoted(subject.row.name)}, with {', '.join(subject.row.scopes)}.",
            "Programs that use it lose their access at once.",
        ],
        undo="This can’t be undone. You can create another key.",
        do=lambda asked, subject, _form: admin_keys.end(asked, subject.row.id),
        done="Key ended.",
        is_destructive=True,
    )
}
serve(blueprint, "/console/keys", _MAKING, _all_keys)
serve(blueprint, "/console/keys/<admin_key_id>", _KEY_ACTIONS, _key)
