"""Tests of the API against a real Latchkey: pytest"""

import httpx
import pytest
from fastapi.testclient import TestClient

from latchkey_auth.testing import Latchkey


@pytest.fixture(scope="session")
def latchkey_settings() -> dict[str, str]:
    return {
        "AUTH_ANONYMOUS_ENABLED": "true",
        "AUTH_ORGANIZATIONS": "users",
        "AUTH_TOKEN_CLAIMS": '{"roles": "app_metadata.roles"}',
    }


@pytest.fixture
def client(latchkey: Latchkey, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setenv("LATCHKEY_URL", latchkey.url)
    monkeypatch.setenv("LATCHKEY_SERVICE_ROLE_KEY", latchkey.service_role_key)
    import api

    return TestClient(api.app)


def test_user_is_known_by_the_token(latchkey: Latchkey, client: TestClient) -> None:
    alice = latchkey.user()
    assert client.get("/me", headers=alice.headers()).json() == {"id": alice.id, "email": alice.email}
    assert client.get("/me", headers=alice.headers(expires_in=-60)).status_code == 401


def test_reports_are_for_administrators_with_a_second_step(latchkey: Latchkey, client: TestClient) -> None:
    carol, bob = latchkey.user(role="admin", factors=["totp"]), latchkey.user(factors=["totp"])
    assert client.get("/reports", headers=carol.headers()).status_code == 200
    assert client.get("/reports", headers=carol.headers(aal="aal1")).status_code == 401
    assert client.get("/reports", headers=bob.headers()).status_code == 403
    assert client.get("/reports", headers=latchkey.user(role="admin").headers()).status_code == 403


def test_drafts_are_for_editors(latchkey: Latchkey, client: TestClient) -> None:
    for roles, status in (([], 403), (["reader", "editors"], 403), (["reader", "editor"], 200)):
        # Users write user_metadata themselves.
        dave = latchkey.user(app_metadata={"roles": roles}, user_metadata={"roles": ["editor"]})
        assert client.get("/drafts", headers=dave.headers()).status_code == status


def test_projects_of_an_organization_are_for_its_members(latchkey: Latchkey, client: TestClient) -> None:
    alice, bob, carol = latchkey.user(), latchkey.user(), latchkey.user()
    acme = latchkey.organization("Acme", owner=alice, members={bob: "member"})
    globex = latchkey.organization("Globex", owner=carol)
    path = f"/organizations/{acme.id}/projects"
    for _ in range(2):
        assert client.put(f"{path}/Rocket", headers=alice.headers()).json() == {"projects": ["Rocket"]}
    assert client.get(path, headers=bob.headers()).json() == {"projects": ["Rocket"]}
    assert client.put(f"{path}/Evil", headers=bob.headers()).status_code == 403
    # Carol is in another organization, the new user in none.
    for stranger in (carol, latchkey.user()):
        assert client.get(path, headers=stranger.headers()).status_code == 404
        assert client.put(f"{path}/Evil", headers=stranger.headers()).status_code == 404
    path = f"/organizations/{globex.id}/projects"
    assert client.get(path, headers=carol.headers()).json() == {"projects": []}


def test_removed_member_loses_the_projects_with_the_next_token(
    latchkey: Latchkey, client: TestClient
) -> None:
    bob = latchkey.user()
    acme = latchkey.organization("Acme", owner=latchkey.user(), members={bob: "admin"})
    path, before = f"/organizations/{acme.id}/projects", bob.headers()
    acme.remove(bob)
    assert client.get(path, headers=before).status_code == 200
    assert client.get(path, headers=bob.headers()).status_code == 404


def test_anonymous_users_cannot_pay(latchkey: Latchkey, client: TestClient) -> None:
    headers = latchkey.user(anonymous=True).headers()
    assert client.post("/payments", headers=headers).status_code == 403
    assert client.get("/me", headers=headers).status_code == 200


def test_log_out_ends_payments_at_once(latchkey: Latchkey, client: TestClient) -> None:
    headers = latchkey.user().headers()
    assert client.post("/payments", headers=headers).status_code == 200
    latchkey.fail("POST /introspect")
    assert client.post("/payments", headers=headers).status_code == 503
    httpx.post(f"{latchkey.url}/logout", headers=headers, timeout=5).raise_for_status()
    assert client.post("/payments", headers=headers).status_code == 401
