"""GET /dev/inbox: what the service has sent, for those who try it out (`AUTH_DEV_INBOX`). What is shown signs people in."""

from flask import Blueprint, Response, jsonify, render_template, request
from flask_cors.core import FLASK_CORS_EVALUATED

from auth.context import latchkey
from auth.delivery import dev_inbox
from auth.web import guard, schemas
from auth.web.errors import ApiError
from auth.web.fields import is_uuid
from auth.web.wire import read_query

blueprint = Blueprint("dev_inbox", __name__)

_PAGE_CSP = "default-src 'none'; style-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
# Nothing runs in a message, nothing is fetched for it, and it belongs to no origin.
_MESSAGE_CSP = "sandbox; default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; frame-ancestors 'self'; base-uri 'none'"


class _Query(schemas.Input):
    recipient = schemas.Text()


@blueprint.get("/dev/inbox")
@guard.developer
def list_dev_inbox() -> Response:
    """List what was sent, the newest first: as a page for a browser, else as JSON."""
    recipient = read_query(_Query()).get("recipient")
    messages = dev_inbox.messages(latchkey.db, latchkey.sealer, recipient)
    if request.accept_mimetypes.best_match(["application/json", "text/html"]) != "text/html":
        return jsonify(messages)
    response = Response(render_template("dev_inbox.html", language="en", root="../", messages=messages, recipient=recipient or ""))
    response.headers["Content-Security-Policy"] = _PAGE_CSP
    return response


@blueprint.get("/dev/inbox/<message_id>")
@guard.developer
def get_dev_inbox_message(message_id: str) -> Response:
    """Show the HTML of a message, for the frame that it is locked in."""
    html = dev_inbox.html_of(latchkey.db, latchkey.sealer, message_id) if is_uuid(message_id) else None
    if html is None:
        raise ApiError("message.not_found")
    response = Response(html)
    response.headers["Content-Security-Policy"] = _MESSAGE_CSP
    return response


@blueprint.after_request
def _for_no_other_origin(response: Response) -> Response:
    # Flask-CORS comes before for errors, and after for everything: then it takes what bears this mark for done.
    for name in [name for name, _ in response.headers if name.startswith("Access-Control-")]:
        del response.headers[name]
    setattr(response, FLASK_CORS_EVALUATED, True)
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    response.vary.add("Accept")
    return response
