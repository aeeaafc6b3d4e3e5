"""GET /verify: where the links in messages lead."""

from collections.abc import Mapping

from flask import Blueprint, Response, request

from auth import one_time, schemas
from auth.context import latchkey
from auth.limits import limited
from auth.redirects import with_fragment
from auth.token_response import token_response
from auth.wire import client, read_query

blueprint = Blueprint("verify", __name__)

_EXPIRED = {"error": "access_denied", "error_code": "otp_expired", "error_description": "The link is invalid or has expired"}


@blueprint.get("/verify")
@limited("verify", unless=lambda: request.method == "HEAD")
def verify() -> Response:
    """Spend a link, and send the browser on to the application with tokens, or with what went wrong, in the fragment."""
    query = read_query(schemas.VerifyQuery())
    target = latchkey.redirects.checked(query.get("redirect_to"))
    # A HEAD request, which link scanners send, never has an effect.
    if request.method == "HEAD":
        return Response()
    row = None
    if query["type"] == "signup" and one_time.is_well_formed(query["token"]):
        row = latchkey.db.one("verify_signup", token_hash=one_time.hash_token(query["token"]), **client())
    if row is None:
        return _redirect(target, _EXPIRED)
    tokens = token_response(row, "otp")
    del tokens["user"]
    return _redirect(target, tokens | {"type": "signup"})


def _redirect(target: str, parameters: Mapping[str, str | int]) -> Response:
    # Without the usual page, which would repeat the tokens.
    return Response(status=303, headers={"Location": with_fragment(target, parameters)})
