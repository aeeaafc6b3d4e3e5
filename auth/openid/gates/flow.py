"""The three paths on the host of a gate, which its proxy leads to the service.

The flow needs no row: the code verifier is the browser's cookie, and `state` has the path, sealed.
"""

from urllib.parse import urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from flask import Blueprint, Response, request

from auth.core.tokens import one_time
from auth.domain.messages.outgoing import own_url
from auth.domain.sessions.token_response import redirect
from auth.openid import exchange
from auth.openid.gates import browsers, registered, shown
from auth.openid.gates.registered import CALLBACK, SCOPES
from auth.openid.oauth_errors import OAuthError
from auth.web import accepts_forms, fields, refuses_by_page, schemas
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import read_query
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("gate_flow", __name__)
shown.register(blueprint)
_Answer = schemas.Input.of(code=fields.Text(), error=fields.Text(), state=fields.LongText(load_default=""))


@blueprint.get("/.latchkey/start")
@refuses_by_page
def start_gate() -> Response:
    """Begin a sign-in, and lead to it. It ends at the path that follows `to=`, as it is."""
    if request.method == "HEAD":
        return Response()
    _check_navigation()
    gate = _gate()
    before, _, path = request.environ["QUERY_STRING"].partition("to=")
    # Tabs share the flow.
    sent = browsers.sent(gate.gate_origin, browsers.FLOW)
    flow = sent if one_time.hash_token(sent) else one_time.new_token()
    parameters = {
        "response_type": "code",
        "client_id": gate.id,
        "redirect_uri": gate.gate_origin + CALLBACK,
        "scope": " ".join(SCOPES),
        "state": browsers.seal_state(gate.id, flow, browsers.own_path("" if before else path)),
        "code_challenge": create_s256_code_challenge(flow),
        "code_challenge_method": "S256",
    }
    response = redirect(own_url("oauth/authorize", parameters), 302)
    browsers.remember(response, gate.gate_origin, browsers.FLOW, flow)
    return response


@blueprint.get(CALLBACK)
@limited("pass_gate")
@refuses_by_page
def pass_gate() -> Response:
    """Sign the browser in at the gate that began the flow, and lead to its path."""
    if request.method == "HEAD":
        return Response()
    _check_navigation()
    gate, answer = _gate(), read_query(_Answer())
    flow = browsers.sent(gate.gate_origin, browsers.FLOW)
    path, is_own = browsers.open_state(gate.id, answer["state"], flow)
    if not is_own:
        # A second tab, or the back button: the browser is signed in, or its other flow leads on.
        if path and (flow or _is_signed_in(gate.gate_origin)):
            return redirect(browsers.url_of(gate.gate_origin, path), 302)
        raise ApiError("oauth_authorization_not_found")
    if answer.get("error") == "access_denied":
        raise _refusal(gate)
    token = one_time.new_token()
    _open_session(gate, answer, flow, token)
    response = redirect(browsers.url_of(gate.gate_origin, path or "/"), 302)
    # Always a new one: an attacker may know a value from before the sign-in.
    browsers.remember(response, gate.gate_origin, browsers.SESSION, token)
    browsers.remember(response, gate.gate_origin, browsers.FLOW, "")
    return response


@blueprint.post("/.latchkey/sign-out")
@accepts_forms
@limited("leave_gate")
@refuses_by_page
def leave_gate() -> Response:
    """End the session at the gate, and lead to the page that ends the sign-in too."""
    gate = _gate()
    token_hash = one_time.hash_token(browsers.sent(gate.gate_origin, browsers.SESSION))
    queries.sign_out_of_gate(latchkey.db, token_hash=token_hash, gate_origin=gate.gate_origin)
    response = redirect(own_url("oauth/logout", {"client_id": gate.id}))
    browsers.remember(response, gate.gate_origin, browsers.SESSION, "")
    return response


def _gate() -> "queries.SelectGate":
    return registered.at_host(request.environ.get("HTTP_HOST", ""))


def _refusal(gate: "queries.SelectGate") -> ApiError:
    return ApiError("gate.insufficient_permissions", application=urlsplit(gate.gate_origin).netloc)


def _check_navigation() -> None:
    """Raises `ApiError` for what a script or a page's asset asks."""
    if request.environ.get("HTTP_SEC_FETCH_MODE", "navigate") != "navigate":
        raise ApiError("session_not_found")


def _is_signed_in(gate_origin: str) -> bool:
    token_hash = one_time.hash_token(browsers.sent(gate_origin, browsers.SESSION))
    row = queries.visit_gate(latchkey.db, token_hash=token_hash, gate_origin=gate_origin)
    return row is not None and row.state == "live"


def _open_session(gate: "queries.SelectGate", answer: dict[str, str], flow: str, token: str) -> None:
    """Open a session of the gate by its code. Raises `ApiError`."""
    body = {"redirect_uri": gate.gate_origin + CALLBACK, "code_verifier": flow}
    try:
        with latchkey.db.transaction() as tx:
            row, _ = exchange.open_session(tx, answer.get("code", ""), gate, body)
            if row:
                queries.insert_gate_session(
                    tx, token_hash=one_time.hash_token(token), session_id=row.session_id, client_id=gate.id
                )
    except OAuthError as error:
        if error.error == "access_denied":
            raise _refusal(gate) from None
        raise ApiError("oauth_authorization_not_found") from None
    if row is None:
        raise ApiError("oauth_authorization_not_found")
