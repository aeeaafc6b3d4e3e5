"""docs/api-keys.md: the program with a user's key, what an API checks, and the day of a billing key."""

import json
import re

import httpx
import pytest

from tests.support.api_keys import ROUTE, claims_of
from tests.support.guides import Guide
from tests.support.processes import CHECKOUT
from tests.support.server import served
from tests.support.terminals import beside_a_service
from tests.support.users import PASSWORD

GUIDE = Guide("api-keys.md")
(KEY_PATTERN,) = re.findall(r"Leaked keys match `(.+?)`", (CHECKOUT / "docs" / GUIDE.page).read_text())


@pytest.fixture
def app(make_app):
    return make_app(AUTH_API_KEYS="true")


def test_program_acts_for_the_user(app, alice, monkeypatch):
    session = alice.open_session(app.test_client())
    body = GUIDE.block('"expires_in": 7776000').text
    created = session.post(ROUTE, data=body, content_type="application/json").json
    assert list(created) == list(json.loads(GUIDE.block('"prefix"').text))
    key = created["key"]
    assert re.fullmatch(KEY_PATTERN, key)
    with served(app) as server:
        monkeypatch.setenv("LATCHKEY_URL", f"http://127.0.0.1:{server.port}")
        monkeypatch.setenv("LATCHKEY_API_KEY", key)
        program: dict = {}
        exec(GUIDE.block("def authorization()").text, program)  # noqa: S102
        headers = program["authorization"]()
        assert server.get("/user", headers=headers).json["id"] == alice.id
        assert program["authorization"]() == headers
        program["_token"] |= {"expires_at": 0}
        assert program["authorization"]() != headers
    exec(GUIDE.block("def may(").text, program)  # noqa: S102
    claims = claims_of(headers["Authorization"])
    verdicts = [
        program["may"](each, scope) for each in (claims, session.claims) for scope in ("reports.read", "x")
    ]
    assert verdicts == [True, False, True, True]


def test_developer_makes_a_key_for_billing_which_is_refused_what_it_may_not():
    with beside_a_service(["AUTH_AUTOCONFIRM=true"]) as (terminal, service):
        url, alice = f"http://localhost:{service.port}", {"email": "alice@example.com", "password": PASSWORD}
        signed_up = httpx.post(f"{url}/signup", json=alice, trust_env=False).json()
        create, use = GUIDE.block("keys create billing").text, GUIDE.block("-X DELETE").text
        found, refused, key = terminal.finish(f'{create}\n{use}\necho "$KEY"').splitlines()
        assert re.fullmatch(KEY_PATTERN, key)
        assert [each["email"] for each in json.loads(found)["data"]] == ["alice@example.com"]
        assert json.loads(refused) == json.loads(GUIDE.block("insufficient_scope").text)
        headers = {"apikey": key}
        assert (
            httpx.get(
                f"{url}/admin/users/{signed_up['user']['id']}", headers=headers, trust_env=False
            ).status_code
            == 200
        )
        terminal.finish(GUIDE.command("keys end billing"))
        assert httpx.get(f"{url}/admin/users", headers=headers, trust_env=False).status_code == 401
