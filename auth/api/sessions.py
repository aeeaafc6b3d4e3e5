from flask import Blueprint, Response, jsonify

from auth.flows.sessions.ending import end_session, sign_out
from auth.web import Level, asks_more, fields, guard, schemas
from auth.web.application import paginated
from auth.web.asked import current_asked
from auth.web.errors import ApiError, found
from auth.web.fields import is_uuid
from auth.web.input import read_query
from auth.web.limits import limited
from auth.web.schemas import PageQuery, bounds
from sql import queries

blueprint = Blueprint("sessions", __name__)
_LogoutQuery = schemas.Input.of(scope=fields.Choice("global", "local", "others", load_default="global"))


@blueprint.post("/logout")
@guard.access_token(Level.SESSION)
@limited("log_out", key=guard.caller_on_network)
@asks_more
def logout() -> Response:
    scope = read_query(_LogoutQuery)["scope"]
    return jsonify(message="Successfully logged out", timestamp=sign_out(current_asked(), scope))


@blueprint.get("/sessions")
@guard.access_token(Level.AAL1)
def list_sessions() -> Response:
    query = read_query(PageQuery)
    asked = current_asked()
    row = asked.admit_reader(queries.select_sessions(asked.db, **bounds(query), **asked.caller_ids))
    return paginated(row.sessions, row.total, query)


@blueprint.delete("/sessions/<session_id>")
@guard.access_token(Level.AAL2)
@limited("end_session", key=guard.caller_on_network)
def delete_session(session_id: str) -> Response:
    asked = current_asked()
    if not is_uuid(session_id):
        asked.live_caller()
        raise ApiError("device.not_found")
    moment = found(end_session(asked, session_id), "device.not_found")
    return jsonify(message="Session ended", timestamp=moment)
