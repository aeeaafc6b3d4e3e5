"""API keys of the tests' users."""

import base64
import json
from typing import Any

from tests.support.tables import Rows
from tests.support.users import Session

ROUTE = "/user/api_keys"


def make_key(session: Session, name: str = "CI", **members: Any) -> tuple[str, str]:
    """Add an API key to the user of a session, and return its id and the key."""
    response = session.post(ROUTE, json={"name": name, **members})
    assert response.status_code == 201, response.text
    return response.json["id"], response.json["key"]


def use(client: Any, key: str, **options: Any) -> Any:
    return client.post("/token?grant_type=api_key", json={"api_key": key}, **options)


def token_of(client: Any, key: str) -> str:
    response = use(client, key)
    assert response.status_code == 200, response.text
    return response.json["access_token"]


def claims_of(token: str) -> dict[str, Any]:
    return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))


def bearer(token: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {token}"}}


def insert_key(database: Rows, user_id: str) -> None:
    """Insert an API key with an unknown secret."""
    database.run(
        "INSERT INTO api_keys (id, user_id, name, key_mac, scopes)"
        " VALUES (gen_random_uuid(), %(id)s, 'CI', '', '{}')",
        id=user_id,
    )
