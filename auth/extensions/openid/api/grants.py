from flask import Blueprint, Response

from auth.flows.account import grants
from auth.web import Level, asks_more, audited, dialect, fields, guard, schemas
from auth.web.application import JsonResponse
from auth.web.asked import current_asked
from auth.web.errors import ApiError
from auth.web.input import read_query
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("grants", __name__)

_Query = schemas.Input.of(client_id=fields.Uuid(required=True))


@blueprint.get("/user/oauth/grants")
@guard.access_token(Level.AAL1)
@dialect.translated(writes=dialect.list_of_grants)
def list_grants() -> Response:
    asked = current_asked()
    return JsonResponse(asked.admit_reader(queries.select_grants(asked.db, **asked.caller_ids)).grants)


@blueprint.delete("/user/oauth/grants")
@guard.access_token(Level.SESSION)
@limited("remove", key=guard.caller_on_network)
@audited("change_refused")
@asks_more
def delete_grant() -> Response:
    if not grants.withdraw(current_asked(), read_query(_Query)["client_id"]):
        raise ApiError("oauth_consent_not_found")
    return Response(status=204)
