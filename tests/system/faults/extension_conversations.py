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
        assert made.status_code == 201, made.get_data(as_text=True)
        url = f"/admin/custom-providers{path}"
        return partial(stage.client.open, url, method, headers=ADMIN, json=body or None)

    return prepare


def _create(stage: Stage) -> Ask:
    return partial(stage.client.post, "/admin/custom-providers", headers=ADMIN, json=_new(stage))


def _sso(stage: Stage) -> Ask:
    _provider("GET")(stage)
    body = {"domain": "acme.example", "skip_http_redirect": True}
    return partial(stage.client.post, "/sso", json=body)


def _with_user(stage: Stage) -> None:
    """Let the provider have signed in Alice, whose session is left."""
    stage.session()
    stage.rows.run(
        "INSERT INTO identities (user_id, provider, subject, identity_data) SELECT u.id, provider_name(p), 'alice-there', '{}' FROM users AS u, identity_providers AS p"
    )


def _of_users(method: str, prior: dict[str, Any], **body: Any) -> Prepare:
    """Request something about a provider that has users, after another change of it."""

    def prepare(stage: Stage) -> Ask:
        ask = _provider(method, "/custom:acme", **body)(stage)
        if prior:
            assert _provider_change(stage, prior).status_code == 200
        _with_user(stage)
        return ask

    return prepare


def _provider_change(stage: Stage, body: dict[str, Any]) -> Any:
    return stage.client.put("/admin/custom-providers/custom:acme", json=body, headers=ADMIN)


REQUESTS: dict[str, Prepare] = {
    "sso": _sso,
    "list_providers": _provider("GET"),
    "create_provider": _create,
    "get_provider": _provider("GET", "/custom:acme"),
    "update_provider": _provider("PUT", "/custom:acme", name="Acme Inc.", domains=["acme.test"]),
    "update_provider, disable": _provider("PUT", "/custom:acme", enabled=False),
}
# In several transactions.
LONG_REQUESTS: dict[str, Prepare] = {
    "update_provider, disable with users": _of_users("PUT", {}, enabled=False),
    "update_provider, enable with users": _of_users("PUT", {"enabled": False}, enabled=True),
    "delete_provider, with users": _of_users("DELETE", {}),
}
