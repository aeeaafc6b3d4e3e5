from flask import Blueprint, Response, json, jsonify

from auth.openid import clients
from auth.openid.switch import provider
from auth.web import dialect, guard, schemas
from auth.web.input import json_body, read_body, read_query
from auth.web.paging import paginated

blueprint = Blueprint("clients", __name__)


@blueprint.post("/admin/oauth/clients")
@provider
@guard.service_role
@dialect.translated(writes=dialect.client)
def create_client() -> Response:
    """Create an OAuth client, and show its secret once."""
    response = jsonify(clients.create(json_body()))
    response.status_code = 201
    return response


@blueprint.get("/admin/oauth/clients")
@provider
@guard.service_role
@dialect.translated(writes=dialect.list_of_clients)
def list_clients() -> Response:
    """List the OAuth clients, newest first."""
    query = read_query(schemas.PageQuery())
    shown, total = clients.page(query)
    return paginated(json.dumps(shown), total, query, name="clients")


@blueprint.get("/admin/oauth/clients/<client_id>")
@provider
@guard.service_role
@dialect.translated(writes=dialect.client)
def get_client(client_id: str) -> Response:
    """Return an OAuth client."""
    return jsonify(clients.get(client_id))


@blueprint.put("/admin/oauth/clients/<client_id>")
@provider
@guard.service_role
@dialect.translated(writes=dialect.client)
def update_client(client_id: str) -> Response:
    """Change an OAuth client."""
    return jsonify(clients.update(client_id, json_body()))


@blueprint.delete("/admin/oauth/clients/<client_id>")
@provider
@guard.service_role
def delete_client(client_id: str) -> Response:
    """Delete an OAuth client, and end what users granted it."""
    read_body(schemas.AdminInput())
    clients.delete(client_id)
    return Response(status=204)


@blueprint.post("/admin/oauth/clients/<client_id>/regenerate_secret")
@provider
@guard.service_role
@dialect.translated(writes=dialect.client)
def regenerate_secret(client_id: str) -> Response:
    """Replace the secret of an OAuth client, and show the new one once."""
    read_body(schemas.AdminInput())
    return jsonify(clients.replace_secret(client_id))
