"""Requests about customers' providers, with the state that they need."""

from functools import partial
from typing import Any

from tests.system.faults.clients import ADMIN
from tests.system.faults.conversations import Ask, Prepare, Stage


def _new(stage: Stage) -> dict[str, Any]:
    return {
        "provider_type": "oidc",
        "identifier": "custom:acme",
        "name": "Acme",
        "client_id": stage.google.client_id,
        "client_secret": stage.google.client_secret,
        "issuer": stage.google.url,
        "domains": ["acme.example"],
    }


def _provider(method: str, path: str = "", **body: Any) -> Prepare:
    def prepare(stage: Stage) -> Ask:
        made = stage.client.post("/admin/custom-providers", json=_new(stage), headers=ADMIN)
        assert made.status_code == 201, made.text
        url = f"/admin/custom-providers{path}"
        return partial(stage.client.open, url, method, headers=ADMIN, json=body or None)

    return prepare


def _create(stage: Stage) -> Ask:
    return partial(stage.client.post, "/admin/custom-providers", headers=ADMIN, json=_new(stage))


def _sso(stage: Stage) -> Ask:
    _provider("GET")(stage)
    body = {"domain": "acme.example", "skip_http_redirect": True}
    return partial(stage.client.post, "/sso", json=body)


REQUESTS: dict[str, Prepare] = {
    "sso": _sso,
    "list_providers": _provider("GET"),
    "create_provider": _create,
    "get_provider": _provider("GET", "/custom:acme"),
    "update_provider": _provider("PUT", "/custom:acme", name="Acme Inc.", domains=["acme.test"]),
    "update_provider, disable": _provider("PUT", "/custom:acme", enabled=False),
}
