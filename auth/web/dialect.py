"""The dialect of the Supabase clients, for requests with their header; docs/clients.md describes it.

It rewrites the JSON that a view reads and returns, so views need not handle it. Schemas that accept more in
the dialect check `g.in_dialect`.
"""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode

from flask import Flask, Response, after_this_request, json, request

from auth.context import latchkey
from auth.web import View, current_route, g
from auth.web.input import json_body
from auth.web.routes import Body, says

_HEADER = "HTTP_X_SUPABASE_API_VERSION"
_PHONE = re.compile(r"[1-9][0-9]{6,14}")
_ADDRESSES = ("email", "phone")


def register(app: Flask) -> None:
    app.before_request(_begin)


def translated(
    *, reads: Callable[[Body], None] | None = None, writes: Callable[[Body], Body] | None = None
) -> Callable[[View], View]:
    """Say how a view's bodies differ in the dialect, beside users and links, which do so everywhere."""
    return says(reads_dialect=reads, writes_dialect=writes)


def without_empty_addresses(body: Body) -> None:
    for name in _ADDRESSES:
        if body.get(name) in (None, ""):
            body.pop(name, None)


def id_of_sms(body: Body) -> Body:
    return {"message_id": body["message_id"]} if "phone" in json_body() else {}


def list_of_users(body: Body) -> Body:
    return {"users": [_user(user) for user in body["data"]], "aud": latchkey.settings.jwt_audience}


def message(body: Body) -> Body:
    return {"msg": body["message"], "code": "200"} if "message" in body else body


def _begin() -> None:
    if _HEADER in request.environ:
        g.in_dialect, g.reads_dialect = True, _read
        after_this_request(_rewrite)


def _read(body: dict[str, Any]) -> None:
    phone = body.get("phone")
    if isinstance(phone, str) and _PHONE.fullmatch(phone):
        body["phone"] = f"+{phone}"
    if read := current_route().reads_dialect:
        read(body)


def _rewrite(response: Response) -> Response:
    if response.status_code < 300 and response.is_json:
        body = response.get_json()
        if isinstance(body, dict):
            response.set_data(json.dumps(_translated(body)))
    return response


def _translated(body: dict[str, Any]) -> dict[str, Any]:
    if write := current_route().writes_dialect:
        body = write(body)
    if "action_link" in body:
        body["action_link"] = _link(body["action_link"])
    if isinstance(body.get("user"), dict):
        body["user"] = _user(body["user"])
    return _user(body)


def _user(user: dict[str, Any]) -> dict[str, Any]:
    """Return a user object in the form of the dialect, and any other object as it is."""
    if "app_metadata" not in user:
        return user
    user = user | {name: user[name] or "" for name in _ADDRESSES}
    for name in ("phone", "new_phone"):
        user[name] = _digits(user.get(name))
    if "identities" in user:
        user["identities"] = [_identity(identity) for identity in user["identities"]]
    if not user.get("factors"):
        user["factors"] = None
    return _without_null(user)


def _identity(identity: dict[str, Any]) -> dict[str, Any]:
    data = identity["identity_data"]
    if identity["provider"] == "phone":
        data = data | {"phone": _digits(data["phone"])}
    return _without_null(identity | {"identity_data": data})


def _without_null(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _digits(phone: str | None) -> str | None:
    return phone and phone.removeprefix("+")


def _link(url: str) -> str:
    path, _, query = url.partition("?")
    return f"{path}?{urlencode(parse_qsl(query), safe=':/')}"
