"""Applications of users while a node of the previous release serves beside a new one."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from sql import schema
from tests.support import oldest_release
from tests.support.databases import new_databases, run
from tests.support.environment import ENVIRONMENT, SERVICE_ROLE_KEY
from tests.support.openid import VERIFIER, authorize_path
from tests.support.processes import CHECKOUT, Service
from tests.support.users import PASSWORD

CALLBACK, LATER, API = "https://wiki.example/callback", "https://evil.example/callback", "https://api.example"
KEY = {"apikey": SERVICE_ROLE_KEY}


class Node:
    def __init__(self, port: int) -> None:
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False)

    def sign_in(self) -> dict[str, str]:
        body = {"email": "alice@example.com", "password": PASSWORD}
        answer = self.http.post("/token?grant_type=password", json=body).json()
        return {"Authorization": f"Bearer {answer['access_token']}"}

    def allow(self, client_id: str, redirect_uri: str, alice: dict[str, str]) -> tuple[bool, str]:
        """Ask for a code, and return whether that takes a question, with the code."""
        began = self.http.get(authorize_path(client_id, redirect_uri=redirect_uri, resource=API))
        path = f"/oauth/authorizations/{began.headers['Location'].rpartition('=')[2]}"
        answer = self.http.get(path, headers=alice).json()
        if is_asked := "redirect_url" not in answer:
            consent = self.http.post(f"{path}/consent", json={"action": "approve"}, headers=alice)
            answer = consent.json()
        url = urlsplit(answer["redirect_url"])
        returned = self.http.get(f"{url.path}?{url.query}").headers["Location"]
        assert returned.startswith(redirect_uri)
        return is_asked, parse_qs(urlsplit(returned).query)["code"][0]

    def token(self, client: tuple[str, str], **form: str) -> httpx.Response:
        return self.http.post("/oauth/token", data=form, auth=client)


@contextmanager
def node(tmp_path: Path, url: str, files: Path | None) -> Iterator[Node]:
    own = {"DATABASE_URL": url, "AUTH_OAUTH_CONSENT_URL": "https://wiki.example/consent", "AUTH_WORKERS": "1"}
    (tmp_path / "var").mkdir(parents=True, mode=0o700)
    for name in ("secret_key", "jwt_keys.json") if files is None else ():
        shutil.copy(tmp_path.parent / "old" / "var" / name, tmp_path / "var")
    environment: dict[str, Any] = {**ENVIRONMENT, **own}
    with Service(tmp_path / "var", directory=files or CHECKOUT, **environment) as service:
        node = Node(service.port)
        with closing(node.http):
            yield node


@pytest.fixture
def nodes(all_rows, database_url, tmp_path):
    """A node of the previous release and a new one."""
    files = oldest_release.unpack(tmp_path / "release", schema.BRIDGE_COMMIT)
    with new_databases(all_rows, database_url) as make:
        schema.apply(url := make())
        with node(tmp_path / "old", url, files) as old, node(tmp_path / "new", url, None) as new:
            assert old.http.get("/health").json()["version"] == schema.BRIDGE_RELEASE
            yield old, new, url


def test_consent_at_either_node_gives_tokens_at_both_and_no_new_uri_a_silent_code(nodes):
    old, new, url = nodes
    user = {"email": "alice@example.com", "password": PASSWORD, "email_confirm": True}
    assert new.http.post("/admin/users", json=user, headers=KEY).is_success
    body = {"client_name": "Wiki", "redirect_uris": [CALLBACK], "resources": [API]}
    made = old.http.post("/admin/oauth/clients", json=body, headers=KEY).json()
    client, id = (made["client_id"], made["client_secret"]), made["client_id"]
    alice = old.sign_in()

    def use(first: Node, second: Node, code: str) -> None:
        form = {"code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
        answer = second.token(client, grant_type="authorization_code", **form)
        assert answer.status_code == 200, answer.text
        for each in (first, second):
            answer = each.token(
                client, grant_type="refresh_token", refresh_token=answer.json()["refresh_token"]
            )
            assert answer.status_code == 200, answer.text

    # The old node does not know for which URI the user's consent is: the new one asks once.
    for first, second, is_asked in ((old, new, True), (new, old, True), (old, new, False), (new, old, False)):
        asked, code = first.allow(id, CALLBACK, alice)
        assert asked == is_asked
        use(first, second, code)
    # What an operator adds at the old node asks at the new one, also after a consent at the old one.
    path, both = f"/admin/oauth/clients/{id}", {"redirect_uris": [CALLBACK, LATER]}
    assert old.http.put(path, json=both, headers=KEY).is_success
    assert old.allow(id, LATER, alice)[0] is False
    assert run(url, "SELECT redirect_uris FROM oauth_grants") == [([CALLBACK],)]
    assert (new.allow(id, LATER, alice)[0], new.allow(id, LATER, alice)[0]) == (True, False)
    # Another spelling of the resource ends no session.
    code = new.allow(id, CALLBACK, alice)[1]
    form = {"code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    refresh_token = old.token(client, grant_type="authorization_code", **form).json()["refresh_token"]
    assert new.http.put(path, json={"resources": [f"{API}/"]}, headers=KEY).is_success
    assert run(url, "SELECT count(*) FROM sessions WHERE end_of(sessions) IS NOT NULL") == [(0,)]
    assert new.token(client, grant_type="refresh_token", refresh_token=refresh_token).status_code == 200
