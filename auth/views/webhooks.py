from typing import Any

from flask import Blueprint, Response, json, jsonify

from auth.context import latchkey
from auth.delivery import webhooks
from auth.flows import outgoing
from auth.web import guard, schemas
from auth.web.application import JsonResponse
from auth.web.errors import ApiError, found
from auth.web.input import known_id, read_body, read_query
from auth.web.paging import bounds, paginated

blueprint = Blueprint("webhooks", __name__)

# The user of test events: example.com is reserved (RFC 2606).
_NOBODY = {"user_id": "00000000-0000-0000-0000-000000000000", "email": "webhook-test@example.com"}


@blueprint.post("/admin/webhooks")
@guard.service_role
def create_webhook() -> Response:
    """Register an endpoint, and show its secret once."""
    body = read_body(schemas.NewWebhook())
    _check_url(body["url"])
    id, secret, most = outgoing.new_id(), webhooks.new_secret(), webhooks.MAX_WEBHOOKS
    sealed = latchkey.sealer.seal(secret, id)
    row = latchkey.db.one("create_webhook", id=id, most=most, secret=sealed, **body)
    if row is None:
        raise ApiError("webhooks.validation_failed", f"url: must be one of at most {most}")
    return _with_secret(row.webhook_object, secret)


@blueprint.get("/admin/webhooks")
@guard.service_role
def list_webhooks() -> Response:
    """List the webhooks, oldest first."""
    query = read_query(schemas.PageQuery())
    row = latchkey.db.one("list_webhooks", **bounds(query))
    return paginated(row.webhooks, row.total, query)


@blueprint.get("/admin/webhooks/<webhook_id>")
@guard.service_role
def get_webhook(webhook_id: str) -> Response:
    """Return a webhook."""
    return JsonResponse(_found(latchkey.db.one("select_webhook", id=_id(webhook_id))).webhook_object)


@blueprint.put("/admin/webhooks/<webhook_id>")
@guard.service_role
def update_webhook(webhook_id: str) -> Response:
    """Change, disable or enable a webhook, or rotate its secret and show it once."""
    body = read_body(schemas.WebhookChange())
    id = _id(webhook_id)
    if "url" in body:
        _check_url(body["url"])
    secret = webhooks.new_secret() if body["rotate_secret"] else None
    row = latchkey.db.one(
        "update_webhook",
        id=id,
        url=body.get("url"),
        events=body.get("events"),
        sets_description="description" in body,
        description=body.get("description"),
        is_disabled=body.get("disabled"),
        new_secret=latchkey.sealer.seal(secret, id) if secret else None,
        overlap=webhooks.SECRET_OVERLAP,
    )
    changed = _found(row).webhook_object
    return _with_secret(changed, secret) if secret else JsonResponse(changed)


@blueprint.delete("/admin/webhooks/<webhook_id>")
@guard.service_role
def delete_webhook(webhook_id: str) -> Response:
    """Delete a webhook. Its waiting events are not sent."""
    read_body(schemas.AdminInput())
    _found(latchkey.db.one("delete_webhook", id=_id(webhook_id), batch=webhooks.VOIDED_AT_ONCE))
    return jsonify({})


@blueprint.get("/admin/webhooks/<webhook_id>/deliveries")
@guard.service_role
def list_deliveries(webhook_id: str) -> Response:
    """List the deliveries of a webhook, newest first."""
    query = read_query(schemas.PageQuery())
    row = _found(latchkey.db.one("list_deliveries", id=_id(webhook_id), **bounds(query)))
    return paginated(row.deliveries, row.total, query)


@blueprint.post("/admin/webhooks/<webhook_id>/deliveries/<delivery_id>/redeliver")
@guard.service_role
def redeliver_event(webhook_id: str, delivery_id: str) -> Response:
    """Send an event again, under the same id."""
    read_body(schemas.AdminInput())
    row = _found(latchkey.db.one("redeliver_event", id=_id(webhook_id), delivery_id=_id(delivery_id)))
    if row.delivery is None and not row.is_disabled:
        raise ApiError("webhook.not_found")
    return _sent(row)


@blueprint.post("/admin/webhooks/<webhook_id>/test")
@guard.service_role
def test_webhook(webhook_id: str) -> Response:
    """Send a test event, about a user that does not exist."""
    event = read_body(schemas.TestEvent())["event"]
    return _sent(_found(latchkey.db.one("send_test_event", id=_id(webhook_id), event=event, **_NOBODY)))


def _sent(row: Any) -> Response:
    if row.is_disabled:
        raise ApiError("disabled_webhook.validation_failed", "disabled: must be false")
    return JsonResponse(row.delivery)


def _check_url(url: str) -> None:
    try:
        webhooks.check_url(url, latchkey.settings.webhook_private_networks)
    except webhooks.InvalidUrl as error:
        raise ApiError("validation_failed", f"url: {error}") from None


def _with_secret(webhook: str, secret: str) -> Response:
    return JsonResponse(json.dumps(json.loads(webhook) | {"secret": secret}))


def _id(text: str) -> str:
    return known_id(text, "webhook.not_found")


def _found(row: Any) -> Any:
    return found(row, "webhook.not_found")
