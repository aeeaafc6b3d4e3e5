"""Previews of emails and SMS in each language, with sample values and links and codes that do not work."""

from functools import partial
from urllib.parse import urlencode

from flask import Blueprint, Response

from auth.core import promises
from auth.core.text.catalogues import DEFAULT
from auth.delivery.rendering import CannotRender, Templates, ends_earlier_on_pages
from auth.delivery.senders import channels
from auth.delivery.senders.sender import Message
from auth.flows.history import timeline
from auth.web import fields, schemas
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.html.admin.access import administrator
from auth.web.html.admin.console_page import console_page
from auth.web.html.page import message_frame
from auth.web.input import read_query

blueprint = Blueprint("message_preview", __name__)

_RECIPIENTS = {"email": "you@example.com", "sms": "+15555550199"}
_Query = schemas.Input.of(
    message=fields.Text(load_default="email.signup"), language=fields.Text(load_default=DEFAULT)
)
_FrameQuery = _Query.of(sent_by=fields.Choice("api", "pages", load_default="api"))
# The sources of a message, and the headings of their variants.
_VARIANTS = {"api": "Requested through the API", "pages": "Requested on the built-in pages"}


@blueprint.get("/console/messages/preview")
@administrator
def preview_message() -> Response:
    query = read_query(_Query())
    templates, messages = _variants(query)
    kinds = {f"{channel}.{kind}": timeline.message(channel, kind) for channel, kind in templates.kinds}
    kinds = {value: title[:1].upper() + title[1:] for value, title in kinds.items()}
    response = console_page(
        "message_preview.html",
        chosen=query,
        kinds=sorted(kinds.items(), key=lambda kind: kind[1]),
        codes=templates.languages,
        messages=messages,
        titles=_VARIANTS,
        sender=channels.mail_from(latchkey.settings),
        html_url=f"preview/html?{urlencode(query)}&sent_by=",
    )
    response.headers["Content-Security-Policy"] += "; frame-src 'self'"
    return response


@blueprint.get("/console/messages/preview/html")
@administrator
def preview_html() -> Response:
    """Return the HTML of an email, for the sandboxed frame of the preview."""
    query = read_query(_FrameQuery())
    _templates, messages = _variants(query)
    message = found(messages.get(query["sent_by"]), "message.not_found")
    return message_frame(found(message.html, "message.not_found"))


def _variants(query: dict[str, str]) -> tuple[Templates, dict[str, Message]]:
    """Render a message with the current templates: as the API sends it, and as our pages do if that
    differs."""
    channel, _, kind = query["message"].partition(".")
    try:
        templates = Templates(latchkey.settings)
        if (channel, kind) not in templates.kinds or query["language"] not in templates.languages:
            raise ApiError("message.not_found")
        sample = partial(templates.sample, channel, kind, _RECIPIENTS[channel], query["language"])
        messages = {"api": sample()}
        if latchkey.settings.pages and ends_earlier_on_pages(channel, kind):
            messages["pages"] = sample(code_lifetime=promises.PAGE_CODE_LIFETIME)
    except (CannotRender, ValueError, OSError) as error:
        raise ApiError("template.validation_failed", why=str(error)) from None
    return templates, messages
