"""Creating, changing and testing webhooks, and sending their events again."""

import uuid
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from auth.core import constants
from auth.core.json_bodies import JsonObject
from auth.core.net import webhook_urls as webhooks
from auth.flows.admin import targets
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from auth.web.input import canonical_id
from sql import Runner, queries

T = TypeVar("T")
P = ParamSpec("P")
# The user of test events: example.com is reserved (RFC 2606).
_NOBODY = {"user_id": "00000000-0000-0000-0000-000000000000", "email": "webhook-test@example.com"}


def create(asked: Asked, body: JsonObject, secret: str | None = None) -> tuple[str, str]:
    """Register an endpoint, and return its object and its secret."""
    _check_url(asked, body["url"])
    id, secret, most = str(uuid.uuid4()), secret or webhooks.new_secret(), constants.MOST_WEBHOOKS
    sealed = asked.parts.sealer.seal(secret, id)
    with targets.begin(asked) as act:
        act.later(queries.lock_webhooks)
        if queries.count_webhooks(act).total >= most:
            raise ApiError("webhooks.validation_failed", f"url: must be one of at most {most} webhooks")
        row = queries.create_webhook(act, id=id, secret=sealed, **body)
    return row.webhook_object, secret


def change(asked: Asked, webhook_id: str, body: JsonObject) -> tuple[str, str | None]:
    """Change a webhook, and return its object and its new secret, if it gets one."""
    id = webhook_id_of(webhook_id)
    if "url" in body:
        _check_url(asked, body["url"])
    secret = webhooks.new_secret() if body.get("rotate_secret") else None
    row = _act(
        asked,
        queries.update_webhook,
        id=id,
        sets_description="description" in body,
        is_disabled=body.get("disabled"),
        new_secret=asked.parts.sealer.seal(secret, id) if secret else None,
        overlap=constants.SECRET_OVERLAP,
        **{name: body.get(name) for name in ("url", "events", "description")},
    )
    return row.webhook_object, secret


def delete(asked: Asked, webhook_id: str) -> None:
    _act(asked, queries.delete_webhook, id=webhook_id_of(webhook_id), batch=webhooks.VOIDED_AT_ONCE)


def redeliver(asked: Asked, webhook_id: str, delivery_id: str) -> str:
    """Send an event again, and return its delivery."""
    id, delivery_id = webhook_id_of(webhook_id), webhook_id_of(delivery_id)
    return _sent(_act(asked, queries.redeliver_event, id=id, delivery_id=delivery_id))


def send_test(asked: Asked, webhook_id: str, event: str) -> str:
    """Send a test event, and return its delivery."""
    return _sent(_act(asked, queries.send_test_event, id=webhook_id_of(webhook_id), event=event, **_NOBODY))


def webhook_id_of(text: str) -> str:
    return canonical_id(text, "webhook.not_found")


def found_webhook(row: T | None) -> T:
    return found(row, "webhook.not_found")


def _act(
    asked: Asked, query: Callable[Concatenate[Runner, P], T | None], *args: P.args, **values: P.kwargs
) -> T:
    with targets.begin(asked) as act:
        return found_webhook(query(act, *args, **values))


def _sent(row: "queries.RedeliverEvent | queries.SendTestEvent") -> str:
    if row.is_disabled:
        raise ApiError("disabled_webhook.validation_failed", "disabled: must be false")
    return found_webhook(row.delivery)


def _check_url(asked: Asked, url: str) -> None:
    try:
        webhooks.check_url(url, asked.settings.webhook_private_networks)
    except webhooks.InvalidWebhookUrl as error:
        raise ApiError("validation_failed", f"url: {error}") from None
