"""OAuth clients of the tests, and what users allow them, as rows."""

from typing import Any

SCOPES = ["openid", "email"]


def add_client(database: Any, name: str = "Grafana", **columns: Any) -> str:
    """Insert a public client, and return its id."""
    columns = {
        "name": name,
        "token_endpoint_auth_method": "none",
        "redirect_uris": ["https://grafana.example/login"],
        "grant_types": ["authorization_code", "refresh_token"],
    } | columns
    names, values = ", ".join(columns), ", ".join(f"%({column})s" for column in columns)
    statement = f"INSERT INTO oauth_clients ({names}) VALUES ({values}) RETURNING id::text"
    return database.value(statement, **columns)


def allow(
    database: Any, user_id: str, client_id: str, *, age: str = "0 days", scopes: list[str] = SCOPES
) -> str:
    """Insert a grant of some age with a session, and return the session's id."""
    statement = """
        WITH allowed AS (
          INSERT INTO oauth_grants (user_id, client_id, scopes, granted_at)
          VALUES (%(user)s, %(client)s, %(scopes)s, now() - %(age)s::interval) RETURNING id
        )
        INSERT INTO sessions (user_id, method, grant_id, scopes, auth_time)
        SELECT %(user)s, 'oauth_client', id, %(scopes)s, now() FROM allowed RETURNING id::text
    """
    return database.value(statement, user=user_id, client=client_id, scopes=scopes, age=age)
