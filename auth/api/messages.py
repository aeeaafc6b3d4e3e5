"""Links and codes on request. Anyone may ask, so the response never reveals whether a message was sent."""

from flask import Blueprint, Response, jsonify, request
from marshmallow import ValidationError, validates_schema

from auth.core.json_bodies import JsonObject
from auth.flows.messages.message_requests import request_message, send_reauthentication_code
from auth.web import Level, dialect, fields, guard, schemas
from auth.web.asked import current_asked
from auth.web.input import read_body
from auth.web.limits import limited

blueprint = Blueprint("passwordless", __name__)


class _Otp(schemas.Addressed, schemas.Challenged):
    channel = fields.Channel()
    create_user = fields.Flag(load_default=True)
    data = fields.StrangersMetadata(load_default=dict)


class _Resend(schemas.Addressed, schemas.Challenged):
    type = fields.Choice("signup", "email_change", "sms", "phone_change", required=True)
    channel = fields.Channel()

    @validates_schema
    def has_the_types_address(self, data: JsonObject, **_kwargs: object) -> None:
        wanted = "phone" if data.get("type") in ("sms", "phone_change") else "email"
        if wanted not in data:
            raise ValidationError(f"must be given for type {data.get('type')}", wanted)


_Recover = schemas.Challenged.of(email=fields.Email(required=True))
_Magiclink = _Recover.of(
    create_user=fields.Flag(load_default=True), data=fields.StrangersMetadata(load_default=dict)
)


@blueprint.post("/magiclink")
@limited("request_sign_in")
def magiclink() -> Response:
    return _sent(request_message(current_asked(), "magiclink", read_body(_Magiclink)))


@blueprint.post("/otp")
@limited("request_sign_in")
@dialect.translated(writes=dialect.id_of_sms)
def otp() -> Response:
    """Send a code that signs in: by SMS, or by email together with a link."""
    body = read_body(_Otp)
    return _sent(request_message(current_asked(), "magiclink" if "email" in body else "sms", body))


@blueprint.post("/recover")
@limited("request_recovery")
@dialect.translated(writes=lambda _body: {})
def recover() -> Response:
    return _sent(request_message(current_asked(), "recovery", read_body(_Recover)))


@blueprint.post("/resend")
@limited("request_confirmation")
@dialect.translated(writes=lambda _body: {})
def resend() -> Response:
    body = read_body(_Resend)
    purpose = "sms_signup" if body["type"] == "sms" else body["type"]
    return _sent(request_message(current_asked(), purpose, body))


@blueprint.get("/reauthenticate")
@guard.access_token(Level.SESSION)
@limited("request_proof", key=guard.caller_on_network)
@dialect.translated(writes=lambda _body: {})
def reauthenticate() -> Response:
    """Send the caller a code for a sensitive change, which an older session needs."""
    asked = current_asked()
    if request.method == "HEAD":
        asked.live_caller()
        return Response()
    return _sent(send_reauthentication_code(asked))


def _sent(message_id: str) -> Response:
    return jsonify(message="If a user has this address, the message is on its way", message_id=message_id)
