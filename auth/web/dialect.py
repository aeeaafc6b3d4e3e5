"""The dialect of the Supabase clients, below `/auth/v1` or with their header; docs/clients.md describes it.

It rewrites the JSON that a view reads and returns, so views need not handle it. Schemas that accept more in
the dialect check `g.in_dialect`.
"""

import re
from collections.abc import Callable
from datetime import date
from typing import Any
from urllib.parse import parse_qsl, urlencode

from flask import Response, after_this_request, json, request

from auth.core.settings.presets import ALIASES, PRESETS
from auth.core.tokens import client_ids
from auth.rules.users import ADDRESS_KINDS
from auth.web import View, g
from auth.web.context import latchkey
from auth.web.declarations import Body, says

# Blueprints for browsers. They are also below the prefix if the base URL is.
_PAGES = ("pages", "console")
# Clients expect these in the settings, beside `PRESETS`.
_PROVIDERS = ("keycloak", "linkedin_oidc", "slack_oidc", "x")
_PHONE = re.compile(r"[1-9][0-9]{6,14}")
VERSION_HEADER = "X-Supabase-Api-Version"
# The only version so far, which errors name also to clients that ask for a later one, as GoTrue's do.
VERSION = "2024-01-01"


def translated(writes: Callable[[Any], Body | list[Body]]) -> Callable[[View], View]:
    """Declare how a view's responses differ in the dialect. Users and links are translated everywhere."""
    return says(writes_dialect=writes)


def id_of_sms(body: Body) -> Body:
    return {"message_id": body["message_id"]} if "phone" in (g.json_body or {}) else {}


def list_of_users(body: Body) -> Body:
    return {"users": [_user(user) for user in body["data"]], "aud": latchkey.settings.jwt_audience}


def list_of_clients(body: Body) -> Body:
    return {"clients": [client(each) for each in body["clients"]], "aud": latchkey.settings.jwt_audience}


def client(body: Body) -> Body:
    """Omit the grants that the client for Python cannot read."""
    supported = ("authorization_code", "refresh_token")
    return body | {"grant_types": [name for name in body["grant_types"] if name in supported]}


def authorization(body: Body) -> Body:
    return body | {"client": _application(body["client"])} if "client" in body else body


def list_of_grants(body: list[Body]) -> list[Body]:
    return [grant | {"client": _application(grant["client"])} for grant in body]


def _application(client: Body) -> Body:
    """Return an application as the client for Swift decodes it: its id is a UUID, and no URL is empty."""
    id = client["id"]
    if client_ids.is_url(id):
        client = client | {"id": client_ids.row_id(id), "uri": id}
    return {name: value for name, value in client.items() if value or name not in ("uri", "logo_uri")}


def list_of_entries(body: Body) -> list[Body]:
    columns = ("id", "at", "ip")
    return [
        {
            "id": entry["id"],
            "payload": {name: value for name, value in entry.items() if name not in columns},
            "created_at": entry["at"],
            "ip_address": entry["ip"] or "",
        }
        for entry in body["data"]
    ]


def message(body: Body) -> Body:
    return {"msg": body["message"], "code": "200"} if "message" in body else body


def health(body: Body) -> Body:
    return body | {"name": "Latchkey", "description": "Latchkey registers users and signs them in"}


def settings(body: Body) -> Body:
    ours = latchkey.settings
    offered = {
        "email": ours.email_enabled,
        "phone": ours.offers_phone,
        "anonymous_users": ours.anonymous_enabled,
    }
    return body | {
        "external": {
            name: name in ours.providers or ALIASES.get(name) in ours.providers
            for name in (*PRESETS, *_PROVIDERS, *ours.providers)
        }
        | offered,
        "mailer_autoconfirm": not ours.email_confirm_required,
        "phone_autoconfirm": not ours.phone_confirm_required,
        "sms_provider": ours.sms_provider or "",
        "saml_enabled": False,
    }


def begin() -> None:
    """Translate the bodies of a request in the dialect, except for pages."""
    if not {*_PAGES} & {*request.blueprints}:
        g.in_dialect = True
        after_this_request(_rewrite)


def read(body: Body) -> None:
    """Translate the body of a request."""
    # Typed clients send the empty value of each member, but views check which members a body has.
    for name in [name for name, value in body.items() if value in ("", None)]:
        del body[name]
    phone = body.get("phone")
    if isinstance(phone, str) and _PHONE.fullmatch(phone):
        body["phone"] = f"+{phone}"


def is_dated(version: str) -> bool:
    """Whether a client asks for errors in the form of `VERSION`. One whose version is not a date does not."""
    try:
        return date.fromisoformat(version).isoformat() == version >= VERSION
    except ValueError:
        return False


def dated(error: Body) -> Body:
    """Return an error in the form of `VERSION`. One that has only members of RFC 6749 stays as it is."""
    if "error_code" not in error:
        return error
    return error | {"code": error["error_code"], "message": error["msg"]}


def _rewrite_error(response: Response, body: Body) -> Response:
    if is_dated(request.headers.get(VERSION_HEADER, "")):
        response.set_data(json.dumps(dated(body)))
        response.headers[VERSION_HEADER] = VERSION
    return response


def _rewrite(response: Response) -> Response:
    is_redirect = 300 <= response.status_code < 400
    body = response.get_json() if response.is_json and not is_redirect else None
    if isinstance(body, dict) and response.status_code >= 400:
        return _rewrite_error(response, body)
    translate = g.route.writes_dialect
    if not isinstance(body, dict) and not (translate and isinstance(body, list)):
        return response
    translation = translate(body) if translate else body
    if isinstance(translation, dict):
        if "action_link" in translation:
            path, _, query = translation["action_link"].partition("?")
            translation["action_link"] = f"{path}?{urlencode(parse_qsl(query), safe=':/')}"
        if isinstance(translation.get("user"), dict):
            translation["user"] = _user(translation["user"])
        translation = _user(translation)
    response.set_data(json.dumps(translation))
    return response


def _user(user: Body) -> Body:
    """Return a user object in the form of the dialect, and any other object as it is."""
    if "app_metadata" not in user:
        return user
    user = user | {name: user[name] or "" for name in ADDRESS_KINDS}
    for name in ("phone", "new_phone"):
        user[name] = _digits(user.get(name))
    if "identities" in user:
        user["identities"] = [_identity(identity, user) for identity in user["identities"]]
    if not user.get("factors"):
        user["factors"] = None
    return _without_null(user)


def _identity(identity: Body, user: Body) -> Body:
    provider, data = identity["provider"], identity["identity_data"]
    if provider == "phone":
        data = data | {"phone": _digits(data["phone"])}
    flags = {
        f"{name}_verified": provider == name and bool(user[f"{name}_confirmed_at"]) for name in ADDRESS_KINDS
    }
    last_sign_in_at = identity["last_sign_in_at"] or identity["created_at"]
    return _without_null(identity | {"identity_data": flags | data, "last_sign_in_at": last_sign_in_at})


def _without_null(members: Body) -> Body:
    return {name: value for name, value in members.items() if value is not None}


def _digits(phone: str | None) -> str | None:
    return phone and phone.removeprefix("+")
