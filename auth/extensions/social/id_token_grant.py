"""Signing in with an id_token that an application got from a provider, at POST /token."""

from flask import Response
from flask.typing import ResponseReturnValue

from auth.flows.account import identities
from auth.flows.sessions.token_response import token_response
from auth.flows.sign_in.external_identities import sign_in_with_id_token
from auth.web import Level, answered_by, audited, fields, guard, schemas, takes_tokens
from auth.web.application import JsonResponse
from auth.web.asked import current_asked
from auth.web.input import read_body
from auth.web.limits import limited


class _IdTokenGrant(schemas.Input):
    provider = fields.Text(required=True)
    id_token = fields.LongText(required=True)
    nonce = fields.Text()
    link_identity = fields.Flag(load_default=False)


@takes_tokens
@limited("sign_in_with_id_token")
@audited("sign_in_refused", sign_in="id_token")
def sign_in() -> ResponseReturnValue:
    asked = current_asked()
    body = read_body(_IdTokenGrant)
    if body["link_identity"]:
        return answered_by(_link_by_id_token, body)
    return JsonResponse(token_response(asked.parts, sign_in_with_id_token(asked, body)))


@takes_tokens
@guard.access_token(Level.PROOF)
@audited("change_refused", sign_in="id_token")
def _link_by_id_token(body: dict[str, object]) -> Response:
    asked = current_asked()
    identities.require_manual_linking(asked)
    return JsonResponse(token_response(asked.parts, identities.link_by_id_token(asked, body)))
