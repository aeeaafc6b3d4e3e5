"""/admin/webhooks: the endpoints that events are sent to, and their deliveries."""

from typing import Any

from flask import Blueprint, Response, json, jsonify

from auth.context import latchkey
from auth.delivery import webhooks
from auth.flows import outgoing
from auth.web import guard, schemas
from auth.web.application import JsonResponse
from auth.web.errors import ApiError
from auth.web.fields import is_uuid
from auth.web.input import read_body, read_query
from auth.web.paging import bounds, paginated

blueprint = Blueprint("webhooks", __name__)

# The user of test events: an id that no user has, and an address that nobody can own (RFC 2606).
_NOBODY = {"user_id": "00000000-0000-0000-0000-000000000000", "email": "webhook-test@example.com"}


@blueprint.post("/admin/webhooks")
@guard.service_role
def create_webhook() -> Response:
    """Register an endpoint, and answer its secret, this once."""
    body = read_body(schemas.NewWebhook())
    _check_url(body["url"])
    id, secret = outgoing.new_id(), webhooks.new_secret()
    row = latchkey.db.one(
        "create_webhook", id=id, most=webhooks.MAX_WEBHOOKS, secret=latchkey.sealer.seal(secret, id), **body
    )
    if row is None:
        raise ApiError("webhooks.validation_failed", f"url: must be one of at most {webhooks.MAX_WEBHOOKS}")
    return _with_secret(row.webhook_object, secret)


@blueprint.get("/admin/webhooks")
@guard.service_role
def list_webhooks() -> Response:
    """List the webhooks, oldest first."""
    query = read_query(schemas.PageQuery())
    row = latchkey.db.one("list_webhooks", **bounds(query))
    return paginated(row.webhooks, row.total, query["page"], query["per_page"])


@blueprint.get("/admin/webhooks/<webhook_id>")
@guard.service_role
def get_webhook(webhook_id: str) -> Response:
    """Return a webhook."""
    return JsonResponse(_existing(latchkey.db.one("select_webhook", id=_id(webhook_id))).webhook_object)


@blueprint.put("/admin/webhooks/<webhook_id>")
@guard.service_role
def update_webhook(webhook_id: str) -> Response:
    """Change, disable or enable a webhook, or rotate its secret, which is answered this once."""
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
    changed = _existing(row).webhook_object
    return _with_secret(changed, secret) if secret else JsonResponse(changed)


@blueprint.delete("/admin/webhooks/<webhook_id>")
@guard.service_role
def delete_webhook(webhook_id: str) -> Response:
    """Delete a webhook. Events that wait for it are not sent."""
    _existing(latchkey.db.one("delete_webhook", id=_id(webhook_id), batch=webhooks.VOIDED_AT_ONCE))
    return jsonify({})


@blueprint.get("/admin/webhooks/<webhook_id>/deliveries")
@guard.service_role
def list_deliveries(webhook_id: str) -> Response:
    """List the deliveries of a webhook, newest first."""
    query = read_query(schemas.PageQuery())
    row = _existing(latchkey.db.one("list_deliveries", id=_id(webhook_id), **bounds(query)))
    return paginated(row.deliveries, row.total, query["page"], query["per_page"])


@blueprint.post("/admin/webhooks/<webhook_id>/deliveries/<delivery_id>/redeliver")
@guard.service_role
def redeliver_event(webhook_id: str, delivery_id: str) -> Response:
    """Send an event again, under the same id."""
    row = _existing(latchkey.db.one("redeliver_event", id=_id(webhook_id), delivery_id=_id(delivery_id)))
    if row.delivery is None and not row.is_disabled:
        raise _not_found()
    return _sent(row)


@blueprint.post("/admin/webhooks/<webhook_id>/test")
@guard.service_role
def test_webhook(webhook_id: str) -> Response:
    """Send a test event, about a user that does not exist."""
    body = read_body(schemas.TestEvent())
    return _sent(
        _existing(latchkey.db.one("send_test_event", id=_id(webhook_id), event=body["event"], **_NOBODY))
    )


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


def _id(id: str) -> str:
    if not is_uuid(id):
        raise _not_found()
    # Secrets are sealed for the id as Postgres writes it.
    return id.lower()


def _existing(row: Any) -> Any:
    if row is None:
        raise _not_found()
    return row


def _not_found() -> ApiError:
    return ApiError("webhook.not_found")
