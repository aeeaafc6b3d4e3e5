"""What docs/api-keys.md says of administrative keys and the invitations of others."""

import pytest

from tests.support.admin_keys import make_admin_key
from tests.support.users import PASSWORD

INVITED = "dora@example.com"


@pytest.fixture
def key(client):
    """Return the headers of a key with these scopes."""
    return lambda *scopes: make_admin_key(client.application.extensions["latchkey"], *scopes).headers


def join(client, access_token) -> dict[str, str]:
    """Accept the caller's only invitation."""
    headers = {"Authorization": f"Bearer {access_token}"}
    (invitation,) = client.get("/user/invitations", headers=headers).json["invitations"]
    return client.post(f"/user/invitations/{invitation['id']}", headers=headers).json


def test_key_that_writes_users_can_take_an_invitation(client, key, acme, invite):
    invite(INVITED, "admin")
    user = {"email": INVITED, "password": PASSWORD, "email_confirm": True}
    assert client.post("/admin/users", json=user, headers=key("users:write")).status_code == 200
    credentials = {"email": INVITED, "password": PASSWORD}
    tokens = client.post("/token?grant_type=password", json=credentials).json
    assert join(client, tokens["access_token"])["role"] == "admin"


def test_key_that_makes_links_can_take_an_invitation(client, key, acme, invite):
    invite(INVITED, "admin")
    wanted = {"type": "invite", "email": INVITED}
    link = client.post("/admin/generate_link", json=wanted, headers=key("links")).json
    verified = client.post("/verify", json={"type": "invite", "token_hash": link["hashed_token"]})
    assert join(client, verified.json["access_token"])["role"] == "admin"


def test_key_that_only_invites_cannot_take_an_invitation(client, key, acme, invite, database):
    invite(INVITED, "admin")
    response = client.post("/invite", json={"email": INVITED}, headers=key("invites", "users:read"))
    assert response.status_code == 200
    assert "token" not in response.text
    assert database.value("SELECT count(*) FROM memberships") == 1


def test_key_for_webhooks_can_replace_the_secret_of_another_receiver(client, key, service_role):
    webhook = {"url": "https://1.1.1.1/hooks"}
    made = client.post("/admin/webhooks", json=webhook, headers=service_role).json
    path = f"/admin/webhooks/{made['id']}"
    changed = client.put(path, json={"rotate_secret": True}, headers=key("webhooks"))
    assert changed.status_code == 200
    assert changed.json["secret"].startswith("whsec_")
    assert changed.json["secret"] != made["secret"]
