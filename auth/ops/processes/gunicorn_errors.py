"""The responses to requests that gunicorn refuses: what it cannot parse reaches no application."""

import json
import re
import uuid
from http import HTTPStatus

import structlog
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException

from auth.core.text import languages
from auth.core.text.catalogues import built_in
from auth.web import dialect
from auth.web.edge import NO_PAGE, SECURITY
from auth.web.errors import ApiError

_HTML = re.compile(rb"\naccept: *[^\r\n]*text/html", re.IGNORECASE)
_LANGUAGES = re.compile(rb"\naccept-language: *([^\r\n]*)", re.IGNORECASE)
_VERSION = re.compile(rb"\n%b: *([^\r\n ]*)" % dialect.VERSION_HEADER.encode(), re.IGNORECASE)
# Keys of `ERRORS` for the exceptions of gunicorn's parser.
_REFUSALS = {
    LimitRequestLine: "url.request_entity_too_large",
    LimitRequestHeaders: "headers.request_entity_too_large",
    ParseException: "http.validation_failed",
    BaseException: "unexpected_failure",
}
# Texts for what a browser may make too long: its other headers are short.
_TEXTS = {LimitRequestLine: "url_too_long", LimitRequestHeaders: "cookies_too_large"}


def refuse(exception: BaseException, ip: str, head: bytes = b"") -> bytes:
    """Log a request that gunicorn refuses, and return a raw response that ends the connection.

    A browser, recognized by the `head`, gets a page about a URL that is too long, or about its cookies.
    """
    key = next(_REFUSALS[kind] for kind in _REFUSALS if isinstance(exception, kind))
    request_id = str(uuid.uuid4())
    error = ApiError(key, request_id=request_id)
    text_name = _TEXTS.get(type(exception)) if _HTML.search(head) else None
    members = {"code": error.status, "msg": error.msg, "error_code": error.error_code}
    version = _VERSION.search(head)
    is_dated = not text_name and version is not None and dialect.is_dated(version[1].decode("latin-1"))
    members = dialect.dated(members) if is_dated else members
    body = (_page(text_name, head) if text_name else json.dumps(members)).encode()
    headers = dict((*SECURITY, NO_PAGE)) | {
        "Connection": "close",
        "Content-Type": "text/html; charset=utf-8" if text_name else "application/json",
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "X-Request-Id": request_id,
    }
    headers |= {dialect.VERSION_HEADER: dialect.VERSION} if is_dated else {}
    status_line = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"
    lines = [status_line, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    # The request itself may contain secrets.
    fields = {"status": error.status, "error": type(exception).__name__, "request_id": request_id}
    structlog.get_logger().warning("invalid_request", ip=ip, **fields)
    return "\r\n".join(lines).encode() + body


def _page(name: str, head: bytes) -> str:
    """Return a page with a text about errors, in the language of a browser."""
    header, catalogues = _LANGUAGES.search(head), built_in("pages")
    language = languages.choose(catalogues, None, header[1].decode("latin-1") if header else "")
    texts = catalogues[language]
    heading, text = texts["error.heading"], texts[f"errors.{name}"]
    return (
        f'<!doctype html><html lang="{language}"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{heading}</title><h1>{heading}</h1><p>{text}</p></html>"
    )
