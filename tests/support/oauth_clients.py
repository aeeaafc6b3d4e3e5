"""OAuth clients of the tests, and their authorization requests."""

import uuid
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from auth.tokens import one_time
from tests.support.links import CHALLENGE
from tests.support.tables import Rows

REDIRECT_URI = "https://grafana.example.com/login/generic_oauth"
SECRET = "a-secret-of-a-client-of-these-tests-01234567"[:43]


def insert_client(database: Rows, redirect_uri: str = REDIRECT_URI, **columns: Any) -> str:
    """Insert a confidential client, perhaps with other values of columns, and return its id."""
    values = {
        "id": str(uuid.uuid4()),
        "name": "Grafana",
        "secret_hash": one_time.hash_token(SECRET),
        "token_endpoint_auth_method": "client_secret_basic",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
    } | columns
    names, places = ", ".join(values), ", ".join(f"%({name})s" for name in values)
    database.run(f"INSERT INTO oauth_clients ({names}) VALUES ({places})", **values)
    return str(values["id"])


def insert_public_client(database: Rows, redirect_uri: str = REDIRECT_URI, **columns: Any) -> str:
    no_secret = {"secret_hash": None, "token_endpoint_auth_method": "none"}
    return insert_client(database, redirect_uri, **no_secret, **columns)


def authorize_path(client_id: str, /, **parameters: str | None) -> str:
    """Return the path of a good request, with other parameters, or without those that are None."""
    query = {
        "client_id": client_id,
        "redirect_uri": REDIRECT_URI,
        "response_type": "code",
        "scope": "openid email",
        "state": "a state & more",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    } | parameters
    sent = {name: value for name, value in query.items() if value is not None}
    return f"/oauth/authorize?{urlencode(sent)}"


def answer(url: str, redirect_uri: str = REDIRECT_URI) -> dict[str, str]:
    """Return what a redirect to the application says."""
    assert url.startswith(f"{redirect_uri}?"), url
    pairs = parse_qsl(urlsplit(url).query, strict_parsing=True)
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)
