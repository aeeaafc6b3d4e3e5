"""Request bodies and queries, checked by marshmallow schemas."""

import functools
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from flask import request
from marshmallow import EXCLUDE, Schema, ValidationError
from marshmallow.exceptions import SCHEMA
from werkzeug.datastructures import MultiDict

from auth.core import json_bodies
from auth.core.logs import ThrottledLog
from auth.web import current_g, current_request, dialect, fields, g
from auth.web.application import FORM, MAX_FIELDS
from auth.web.asked import Asked
from auth.web.errors import ApiError
from auth.web.fields import Requirement, is_uuid
from auth.web.schemas import Input

_redirect_log = ThrottledLog("redirect_not_allowed")
_challenge_log = ThrottledLog("code_challenge_not_valid")

# The messages of marshmallow about the fields of an object, by their names.
_Errors: TypeAlias = "list[str] | Mapping[str, _Errors]"
_RedirectQuery = Input.of(redirect_to=fields.Text())
# marshmallow's messages, reworded to follow the name of a field.
_MESSAGES = {
    "Missing data for required field.": "is required",
    "Invalid input type.": "must be an object",
    "Unknown field.": "is not a member of this body",
}


def refuse_body() -> None:
    """Check the size and type of a body before reading it. Refuse it with 413 or 415."""
    request = current_request()
    if request.method in ("GET", "HEAD", "OPTIONS") or request.routing_exception:
        return
    route, length = current_g().route, request.content_length or 0
    if length > route.max_body:
        raise _too_large()
    if request.mimetype == "application/json" or (request.mimetype == FORM and route.accepts_forms):
        return
    # Another site's page can send a request without a body, but no token and no custom header. Proxies send
    # an empty body in chunks.
    by_program = route.guard or dialect.VERSION_HEADER in request.headers
    if by_program and not length and not request.stream.read(1):
        return
    if route.accepts_forms:
        raise ApiError("form.unsupported_media_type", f"Content-Type: must be {FORM} or application/json")
    raise ApiError("unsupported_media_type", "Content-Type: must be application/json")


def whole_body() -> bytes:
    """Read the body. Refuse it with 413, or with 400 if it is shorter than its Content-Length."""
    # A chunked body is cut off at MAX_CONTENT_LENGTH, one byte above the largest `max_body`.
    request = current_request()
    body = request.get_data()
    if len(body) > current_g().route.max_body:
        raise _too_large()
    if len(body) < (request.content_length or 0):
        raise ApiError("bad_json", "the body is shorter than its Content-Length")
    return body


def _too_large() -> ApiError:
    return ApiError("request_entity_too_large", most=str(g.route.max_body // 1024))


def json_body() -> dict[str, Any]:
    """Return the JSON body, not yet checked by a schema."""
    g = current_g()
    if g.json_body is None:
        try:
            g.json_body = json_bodies.decode(whole_body())
        except json_bodies.InvalidJson as error:
            raise ApiError("bad_json", str(error)) from None
        if g.in_dialect:
            dialect.read(g.json_body)
    return g.json_body


# A class, whose schema is made once, or a schema with options.
Shape: TypeAlias = type[Schema] | Schema


@functools.cache
def _schema_of(shape: type[Schema]) -> Schema:
    """Make a schema once: it copies and binds each of its fields."""
    return shape()


def read_body(shape: Shape) -> dict[str, Any]:
    if current_request().mimetype == FORM:
        return read_form(shape)
    return check(shape, json_body(), in_dialect=current_g().in_dialect)


def read_form(shape: Shape) -> dict[str, Any]:
    if whole_body() and not request.form:
        raise ApiError("bad_json", f"the form must be in UTF-8, with at most {MAX_FIELDS} fields")
    return check(shape, request.form, in_dialect=g.in_dialect)


def read_query(shape: Shape) -> dict[str, Any]:
    return check(shape, request.args, in_dialect=g.in_dialect)


def sent_redirect(asked: Asked, body: Mapping[str, Any]) -> str | None:
    """Return `redirect_to` of body or query, unchecked."""
    query = check(_RedirectQuery, asked.query, in_dialect=asked.in_dialect) if asked.query else {}
    return body.get("redirect_to") or query.get("redirect_to")


def checked_redirect(asked: Asked, body: Mapping[str, Any]) -> str | None:
    """Return `redirect_to` of body or query as `allowed_redirect` does, or None if it is missing."""
    url = sent_redirect(asked, body)
    return allowed_redirect(asked, url) if url else None


def allowed_redirect(asked: Asked, url: str) -> str:
    """Return a URL that may receive tokens: `url` if it is allowed, else the site's, with a line in the log.

    While AUTH_BASE_URL is this machine, refuse any other URL instead, for the developer. Clients of the
    dialect expect the site there too, and the development inbox names the target.
    """
    redirects, is_local = asked.parts.redirects, asked.settings.is_local
    if allowed := redirects.allowed(url):
        return allowed
    # In production, the rest of the URL may contain a secret.
    target = re.split("[?#]", url)[0][:255] if is_local else None
    host = None
    with suppress(ValueError):
        host = (urlsplit(url).hostname or "")[:255]
    reason = "neither at the origin of AUTH_SITE_URL nor on AUTH_REDIRECT_ALLOW_LIST"
    _redirect_log.count(host=host, reason=reason, **({"target": target} if target else {}))
    if is_local and not asked.in_dialect:
        details = "redirect_to: must be at the origin of AUTH_SITE_URL or on AUTH_REDIRECT_ALLOW_LIST"
        raise ApiError("validation_failed", details)
    asked.noted.refused_target = target
    return redirects.site_url


def canonical_id(text: str, key: str) -> str:
    """Return a UUID as Postgres writes it. Refuse any other text with the error of a key."""
    if not is_uuid(text):
        raise ApiError(key)
    return text.lower()


def check(shape: Shape, values: Mapping[str, object], *, in_dialect: bool = False) -> dict[str, Any]:
    """Return what a schema loads. Refuse a form or query that repeats a field."""
    schema = shape if isinstance(shape, Schema) else _schema_of(shape)
    if isinstance(values, MultiDict):
        # Werkzeug makes an error for each field that is missing.
        for name in [name for name in schema.fields if name in values]:
            if len(values.getlist(name)) > 1:
                raise ApiError("validation_failed", f"{name}: must be given once")
            if "\0" in values[name]:
                raise ApiError("validation_failed", f"{name}: must not contain NUL characters")
        values = {name: value for name, value in values.items() if value or not in_dialect}
    try:
        # Clients of the dialect send members that only other servers use.
        return schema.load(values, unknown=EXCLUDE if in_dialect else None)
    except ValidationError as error:
        problems = list(_messages(error.normalized_messages()))
    if reason := dict(problems).get("code_challenge"):
        _challenge_log.count(reason=f"code_challenge: {reason}")
    details = "; ".join(f"{name}: {message}" for name, message in problems)
    requirements = (message for _, message in problems if isinstance(message, Requirement))
    requirement = next(requirements, Requirement())
    raise ApiError(requirement.key, details, most=requirement.most)


def _messages(errors: Mapping[str, _Errors], *path: str) -> Iterator[tuple[str, str]]:
    for name, error in sorted(errors.items()):
        # SCHEMA stands for the object itself.
        inner = path if name == SCHEMA else (*path, str(name))
        if isinstance(error, Mapping):
            yield from _messages(error, *inner)
        else:
            yield ".".join(inner), _MESSAGES.get(error[0], error[0])
