"""docs/api-keys.md: its program works, and its check decides as the page says."""

import json
import re

import pytest

from tests.support.api_keys import ROUTE, claims_of
from tests.support.processes import CHECKOUT
from tests.support.server import served

PAGE = (CHECKOUT / "docs/api-keys.md").read_text()
PROGRAM, CHECK = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
REQUEST_BODY, RESPONSE_BODY = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(KEY_PATTERN,) = re.findall(r"Leaked keys match `(.+?)`", PAGE)


@pytest.fixture
def app(make_app):
    return make_app(AUTH_API_KEYS="true")


def test_program_of_the_page_acts_for_the_user(app, alice, monkeypatch, database):
    session = alice.open_session(app.test_client())
    created = session.post(ROUTE, data=REQUEST_BODY, content_type="application/json").json
    assert list(created) == list(json.loads(RESPONSE_BODY))
    key = created["key"]
    assert re.fullmatch(KEY_PATTERN, key)
    with served(app) as server:
        monkeypatch.setenv("LATCHKEY_URL", f"http://127.0.0.1:{server.port}")
        monkeypatch.setenv("LATCHKEY_API_KEY", key)
        program: dict = {}
        exec(PROGRAM, program)  # noqa: S102
        headers = program["authorization"]()
        assert server.get("/user", headers=headers).json["id"] == alice.id
        assert program["authorization"]() == headers
        program["_token"] |= {"expires_at": 0}
        assert program["authorization"]() != headers
    exec(CHECK, program)  # noqa: S102
    claims = claims_of(headers["Authorization"])
    verdicts = [
        program["may"](each, scope) for each in (claims, session.claims) for scope in ("reports.read", "x")
    ]
    assert verdicts == [True, False, True, True]
