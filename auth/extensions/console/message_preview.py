"""Previews of emails and SMS in each language, with sample values and links and codes that do not work."""

from urllib.parse import urlencode

from flask import Blueprint, Response

from auth.core.sender import RenderedMessage
from auth.core.text.catalogues import DEFAULT
from auth.delivery.rendering import CannotRender, Templates
from auth.delivery.senders import channels
from auth.flows.history import timeline
from auth.html.admin.access import administrator
from auth.html.admin.console_page import console_page
from auth.html.page import message_frame
from auth.web import fields, schemas
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.input import read_query

blueprint = Blueprint("message_preview", __name__)

_RECIPIENTS = {"email": "you@example.com", "sms": "+15555550199"}
_Query = schemas.Input.of(
    message=fields.Text(load_default="email.signup"), language=fields.Text(load_default=DEFAULT)
)


@blueprint.get("/console/messages/preview")
@administrator
def preview_message() -> Response:
    query = read_query(_Query)
    templates, message = _sample(query)
    kinds = {f"{channel}.{kind}": timeline.message(channel, kind) for channel, kind in templates.kinds}
    response = console_page(
        "message_preview.html",
        chosen=query,
        kinds=sorted(kinds.items(), key=lambda kind: kind[1].lower()),
        codes=templates.languages,
        message=message,
        sender=channels.mail_from(latchkey.settings),
        html_url=f"preview/html?{urlencode(query)}",
    )
    response.headers["Content-Security-Policy"] += "; frame-src 'self'"
    return response


@blueprint.get("/console/messages/preview/html")
@administrator
def preview_html() -> Response:
    """Return the HTML of an email, for the sandboxed frame of the preview."""
    _templates, message = _sample(read_query(_Query))
    return message_frame(found(message.html, "message.not_found"))


def _sample(query: dict[str, str]) -> tuple[Templates, RenderedMessage]:
    """Render a message with the current templates, as the API sends it."""
    channel, _, kind = query["message"].partition(".")
    try:
        templates = Templates(latchkey.settings)
        if (channel, kind) not in templates.kinds or query["language"] not in templates.languages:
            raise ApiError("message.not_found")
        return templates, templates.sample(channel, kind, _RECIPIENTS[channel], query["language"])
    except (CannotRender, ValueError, OSError) as error:
        raise ApiError("template.validation_failed", why=str(error)) from None
