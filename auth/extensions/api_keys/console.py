"""The API keys of a user, and their removal."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from flask import Blueprint

from auth.core.text.labels import quoted
from auth.extensions.api_keys.pages import states
from auth.flows.account import api_keys
from auth.html.admin.actions import Action, Subject, serve
from auth.html.admin.subjects import changeable_user
from auth.web.context import latchkey
from auth.web.errors import found
from auth.web.input import canonical_id
from sql import queries

blueprint = Blueprint("api_keys", __name__)


def keys_of(user_id: str) -> list[dict[str, Any]]:
    """Return the API keys of a user, newest first."""
    keys = json.loads(queries.list_api_keys(latchkey.db, user_id=user_id).api_keys)
    return [key | {"states": states(key)} for key in keys]


def _key(user_id: str, api_key_id: str) -> Subject:
    user, id = changeable_user(user_id), canonical_id(api_key_id, "api_key_not_found")
    key = next((each for each in keys_of(user.row.id) if each["id"] == id), None)
    return replace(user, row=SimpleNamespace(user_id=user.row.id, **found(key, "api_key_not_found")))


_ACTIONS = {
    "remove": Action(
        title="Remove the API key",
        effects=lambda subject: [
            f"Removes 1 API key: {quoted(subject.row.name)}.",
            "Programs that use it lose their access at once. The user gets no notice.",
        ],
        undo="This can’t be undone. The user can add another one.",
        do=lambda asked, subject, _form: api_keys.remove_any(asked, subject.row.user_id, subject.row.id),
        done="Removed.",
        is_destructive=True,
    )
}
serve(blueprint, "/console/users/<user_id>/api-keys/<api_key_id>", _ACTIONS, _key)
