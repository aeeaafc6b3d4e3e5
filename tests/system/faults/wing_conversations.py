"""Requests about customers' providers and at gates, with the state that they need."""

from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge

from auth.core.tokens import one_time
from tests.support.openid import Client, granted_code, make_client
from tests.system.faults.clients import ADMIN
from tests.system.faults.conversations import Ask, Prepare, Stage

# The verifier of a flow at a gate, which its cookie has.
FLOW = one_time.new_token()
HOST, ORIGIN = "docs.example.com", "https://docs.example.com"
CALLBACK = f"{ORIGIN}/.latchkey/callback"


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


def _at_gate(stage: Stage, method: str, path: str, **cookies: str) -> Ask:
    sent = "; ".join(f"__Host-latchkey-{name}={value}" for name, value in cookies.items())
    headers = {"Host": HOST, "X-Forwarded-Host": HOST, "Cookie": sent}
    headers |= {"Content-Type": "application/x-www-form-urlencoded"} if method == "POST" else {}
    return partial(stage.client.open, path, method, headers=headers)


def _start(stage: Stage) -> Ask:
    gate = make_client(stage.rows, CALLBACK, scopes=["profile", "email", "groups", "roles"])
    stage.rows.run(
        "UPDATE oauth_clients SET gate_origin = %(origin)s WHERE id = %(id)s", origin=ORIGIN, id=gate.id
    )
    return _at_gate(stage, "GET", "/.latchkey/start?to=/", **{"gate-flow": FLOW})


def _pass(stage: Stage) -> Ask:
    begun = _start(stage)()
    query = parse_qs(urlsplit(begun.headers["Location"]).query)
    gate = Client(query["client_id"][0], None)
    own = {"redirect_uri": CALLBACK, "code_challenge": create_s256_code_challenge(FLOW)}
    code = granted_code(stage.rows, gate, stage.session(), "profile email", **own)
    answer = {"code": code, "state": query["state"][0]}
    return _at_gate(stage, "GET", f"/.latchkey/callback?{urlencode(answer)}", **{"gate-flow": FLOW})


def _passed(method: str, path: str) -> Prepare:
    def prepare(stage: Stage) -> Ask:
        cookie = _pass(stage)().headers["Set-Cookie"].partition("gate=")[2].partition(";")[0]
        return _at_gate(stage, method, path, gate=cookie)

    return prepare


REQUESTS: dict[str, Prepare] = {
    "start_gate": _start,
    "pass_gate": _pass,
    "ask_gate": _passed("GET", "/gate"),
    "leave_gate": _passed("POST", "/.latchkey/sign-out"),
    "sso": _sso,
    "list_providers": _provider("GET"),
    "create_provider": _create,
    "get_provider": _provider("GET", "/custom:acme"),
    "update_provider": _provider("PUT", "/custom:acme", name="Acme Inc.", domains=["acme.test"]),
    "update_provider, disable": _provider("PUT", "/custom:acme", enabled=False),
}
