"""The messages of the service (`AUTH_DEV_INBOX`), with links that sign in."""

from flask import Blueprint, Response, jsonify, render_template

from auth.core.settings import served
from auth.delivery import dev_inbox
from auth.html.page import message_frame, redirect_to_own
from auth.html.problems import asks_for_page
from auth.web import cookies, fields, guard, refuses_by_page, schemas
from auth.web.context import latchkey
from auth.web.edge import hide_from_other_origins
from auth.web.errors import found
from auth.web.input import canonical_id, read_query

blueprint = Blueprint("dev_inbox", __name__)

_PAGE_CSP = (
    "default-src 'none'; style-src 'self'; img-src 'self'; frame-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)

_Query = schemas.Input.of(recipient=fields.Text(), key=fields.Text())


@blueprint.get("/dev/inbox")
@guard.developer
@refuses_by_page
def list_dev_inbox() -> Response:
    """List the messages, newest first, as a page for a browser, else as JSON.

    A browser stores the key of the query as a cookie, and opens the page without it.
    """
    query = read_query(_Query)
    if "key" in query and asks_for_page():
        response = redirect_to_own("dev/inbox")
        cookies.set_cookie(response, guard.INBOX, served.inbox_key)
        return response
    recipient = query.get("recipient")
    messages = dev_inbox.messages(latchkey.db, latchkey.sealer, recipient)
    if not asks_for_page():
        return jsonify(messages)
    values = {"language": "en", "root": "../", "messages": messages, "recipient": recipient or ""}
    headers = {"Content-Security-Policy": _PAGE_CSP}
    return Response(render_template("dev_inbox.html", **values), headers=headers)


@blueprint.get("/dev/inbox/<message_id>")
@guard.developer
@refuses_by_page
def get_dev_inbox_message(message_id: str) -> Response:
    """Return the HTML of a message, for the sandboxed frame of the page."""
    id = canonical_id(message_id, "message.not_found")
    return message_frame(found(dev_inbox.html_of(latchkey.db, latchkey.sealer, id), "message.not_found"))


@blueprint.after_request
def _hide_from_other_origins(response: Response) -> Response:
    hide_from_other_origins(response)
    response.vary.add("Accept")
    return response
