"""GET /gate: what the proxy in front of a tool asks about each request."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from flask import Blueprint, Response, request

from auth.core.logs import ThrottledLog
from auth.core.tokens import one_time
from auth.domain.sessions.token_response import redirect
from auth.openid.gates import browsers, shown
from auth.web import answers_proxies, edge, g, refuses_by_page
from auth.web.application import JsonResponse
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.html.problems import asks_for_page
from sql import queries

blueprint = Blueprint("gate", __name__)
shown.register(blueprint)
_unknown = ThrottledLog("gate_unknown")
# ASCII but for the sign of the encoding itself.
_PLAIN = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


@blueprint.get("/gate")
@answers_proxies
@refuses_by_page
def ask_gate() -> Response:
    """Let a request through with the user's headers, or say what answers in the tool's place.

    The cookie decides: what the proxy says of the host only names the gate that it has to be for.
    """
    host = request.environ.get("HTTP_X_FORWARDED_HOST", "")
    if not edge.HOST.fullmatch(host):
        raise ApiError("session_not_found", "X-Forwarded-Host: must be the one host of a gate")
    origin, cookie, others = browsers.read_cookies(host)
    token_hash = one_time.hash_token(cookie)
    row = token_hash and queries.visit_gate(latchkey.db, token_hash=token_hash, gate_origin=origin)
    if row and row.state == "live":
        g.user_id = row.user_id
        if row.is_stale:
            queries.keep_gate_session(latchkey.db, session_id=row.session_id)
        return JsonResponse(status=204, headers=[*_headers(row), ("Cookie", others)])
    admitted = row and queries.is_admitted_at_gate(latchkey.db, token_hash=token_hash, gate_origin=origin)
    if admitted and not admitted.is_so:
        raise ApiError("gate.insufficient_permissions", application=host)
    return _lead_to_sign_in(host)


def _headers(row: "queries.VisitGate") -> Iterator[tuple[str, str]]:
    yield "Remote-User", row.user_id
    yield "Remote-Email", _encoded(row.email or "")
    yield "Remote-Name", _encoded(row.name or "")
    yield "Remote-Role", _encoded(row.role)
    yield "Remote-Groups", _encoded(",".join(_groups(row.groups)))


def _encoded(text: str) -> str:
    is_plain = text.isascii() and text.isprintable() and "%" not in text
    return text if is_plain else quote(text, safe=_PLAIN)


def _groups(listed: Any) -> Iterator[str]:
    """Yield the groups of a user that a comma or a control character does not make several."""
    for group in listed if isinstance(listed, list) else ():
        if isinstance(group, str) and group.isprintable() and "," not in group:
            yield group


def _lead_to_sign_in(host: str) -> Response:
    gate = queries.select_gate(latchkey.db, host=host)
    if gate is None:
        remedy = "create it by latchkey gates create, or let the proxy send the host as X-Forwarded-Host"
        _unknown.count(host=host, reason="no gate has this host", remedy=remedy)
    # nginx takes nothing but 401 and 403, and then asks for the whole answer.
    if gate is None or request.args.get("proxy") == "nginx" or not _opens_page():
        raise ApiError("session_not_found")
    path = browsers.own_path(request.environ.get("HTTP_X_FORWARDED_URI", ""))
    return redirect(f"{gate.gate_origin}/.latchkey/start?to={path}", 302)


def _opens_page() -> bool:
    """Whether a browser opens a page, which may lead to the sign-in."""
    environ = request.environ
    mode = environ.get("HTTP_SEC_FETCH_MODE")
    return "HTTP_SEC_PURPOSE" not in environ and (mode == "navigate" if mode else asks_for_page())
