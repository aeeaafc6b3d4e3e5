from flask import Blueprint, Response, json, jsonify

from auth.core.net.webhook_urls import EVENTS
from auth.flows.admin import webhooks
from auth.flows.admin.schemas import NewWebhook, WebhookChange
from auth.flows.admin.webhooks import found_webhook, webhook_id_of
from auth.web import fields, guard, schemas
from auth.web.application import JsonResponse, paginated
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import read_body, read_query
from auth.web.schemas import AdminPageQuery, bounds
from sql import queries

blueprint = Blueprint("webhooks", __name__)
_TestEvent = schemas.AdminInput.of(event=fields.Choice(*EVENTS, load_default="user.updated"))


@blueprint.post("/admin/webhooks")
@guard.operator("webhooks")
def create_webhook() -> Response:
    return _with_secret(*webhooks.create(current_asked(), read_body(NewWebhook)))


@blueprint.get("/admin/webhooks")
@guard.operator("webhooks")
def list_webhooks() -> Response:
    query = read_query(AdminPageQuery)
    row = queries.list_webhooks(latchkey.db, **bounds(query))
    return paginated(row.webhooks, row.total, query)


@blueprint.get("/admin/webhooks/<webhook_id>")
@guard.operator("webhooks")
def get_webhook(webhook_id: str) -> Response:
    row = queries.select_webhook(latchkey.db, id=webhook_id_of(webhook_id))
    return JsonResponse(found_webhook(row).webhook_object)


@blueprint.put("/admin/webhooks/<webhook_id>")
@guard.operator("webhooks")
def update_webhook(webhook_id: str) -> Response:
    changed, secret = webhooks.change(current_asked(), webhook_id, read_body(WebhookChange))
    return _with_secret(changed, secret) if secret else JsonResponse(changed)


@blueprint.delete("/admin/webhooks/<webhook_id>")
@guard.operator("webhooks")
def delete_webhook(webhook_id: str) -> Response:
    """Delete a webhook. Its waiting events are not sent."""
    read_body(schemas.AdminInput)
    webhooks.delete(current_asked(), webhook_id)
    return jsonify({})


@blueprint.get("/admin/webhooks/<webhook_id>/deliveries")
@guard.operator("webhooks")
def list_deliveries(webhook_id: str) -> Response:
    query = read_query(AdminPageQuery)
    row = found_webhook(queries.list_deliveries(latchkey.db, id=webhook_id_of(webhook_id), **bounds(query)))
    return paginated(row.deliveries, row.total, query)


@blueprint.post("/admin/webhooks/<webhook_id>/deliveries/<delivery_id>/redeliver")
@guard.operator("webhooks")
def redeliver_event(webhook_id: str, delivery_id: str) -> Response:
    read_body(schemas.AdminInput)
    return JsonResponse(webhooks.redeliver(current_asked(), webhook_id, delivery_id))


@blueprint.post("/admin/webhooks/<webhook_id>/test")
@guard.operator("webhooks")
def test_webhook(webhook_id: str) -> Response:
    event = read_body(_TestEvent)["event"]
    return JsonResponse(webhooks.send_test(current_asked(), webhook_id, event))


def _with_secret(webhook: str, secret: str) -> Response:
    return JsonResponse(json.dumps(json.loads(webhook) | {"secret": secret}))
