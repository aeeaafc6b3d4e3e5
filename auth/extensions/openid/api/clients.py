from flask import Blueprint, Response, json, jsonify

from auth.extensions.openid import clients
from auth.web import dialect, fields, guard, schemas
from auth.web.application import paginated
from auth.web.asked import current_asked
from auth.web.input import json_body, read_body, read_query
from auth.web.schemas import AdminPageQuery

blueprint = Blueprint("clients", __name__)

_Rotation = schemas.AdminInput.of(overlap=fields.Flag(load_default=False))


@blueprint.post("/admin/oauth/clients")
@guard.operator("clients")
@dialect.translated(writes=dialect.client)
def create_client() -> tuple[Response, int]:
    return jsonify(clients.create(current_asked(), json_body())), 201


@blueprint.get("/admin/oauth/clients")
@guard.operator("clients")
@dialect.translated(writes=dialect.list_of_clients)
def list_clients() -> Response:
    query = read_query(AdminPageQuery)
    objects, total = clients.page(current_asked(), query)
    return paginated(json.dumps(objects), total, query, name="clients")


@blueprint.get("/admin/oauth/clients/<client_id>")
@guard.operator("clients")
@dialect.translated(writes=dialect.client)
def get_client(client_id: str) -> Response:
    return jsonify(clients.get(current_asked(), client_id))


@blueprint.put("/admin/oauth/clients/<client_id>")
@guard.operator("clients")
@dialect.translated(writes=dialect.client)
def update_client(client_id: str) -> Response:
    return jsonify(clients.update(current_asked(), client_id, json_body()))


@blueprint.delete("/admin/oauth/clients/<client_id>")
@guard.operator("clients")
def delete_client(client_id: str) -> Response:
    read_body(schemas.AdminInput)
    clients.delete(current_asked(), client_id)
    return Response(status=204)


@blueprint.post("/admin/oauth/clients/<client_id>/regenerate_secret")
@guard.operator("clients")
@dialect.translated(writes=dialect.client)
def regenerate_secret(client_id: str) -> Response:
    overlap = clients.OVERLAP if read_body(_Rotation)["overlap"] else None
    return jsonify(clients.replace_secret(current_asked(), client_id, overlap))


@blueprint.delete("/admin/oauth/clients/<client_id>/previous_secret")
@guard.operator("clients")
def delete_previous_secret(client_id: str) -> Response:
    read_body(schemas.AdminInput)
    clients.end_previous_secret(current_asked(), client_id)
    return Response(status=204)
