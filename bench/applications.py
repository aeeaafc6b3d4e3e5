"""An application that users have allowed, and its requests."""

from dataclasses import dataclass
from urllib.parse import urlencode

from auth.core.tokens.refresh_tokens import ClientRefreshTokens
from bench import load
from bench.people import People

_SECRET = "a-secret-of-the-bench"
_CLIENT = """
INSERT INTO oauth_clients (redirect_uris, grant_types, token_endpoint_auth_method, secret_hash)
VALUES ('{https://bench.example/}', '{authorization_code,refresh_token}', 'client_secret_post', sha256(%s))
RETURNING id::text
"""
_GRANTS = (
    "INSERT INTO oauth_grants (user_id, client_id, scopes) SELECT id, %s, '{openid,email,profile}' FROM users"
)
_SESSIONS = """
INSERT INTO sessions (user_id, method, ip, user_agent, grant_id, scopes, auth_time)
SELECT user_id, 'oauth_client', '127.0.0.1', 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0', id, scopes, now()
  FROM oauth_grants
 WHERE client_id = %s
 ORDER BY random()
 LIMIT %s
RETURNING id::text, counter
"""


@dataclass
class Application:
    """A confidential client of all users."""

    people: People

    def __post_init__(self) -> None:
        with self.people.service.database() as connection, connection.cursor() as cursor:
            cursor.execute(_CLIENT, (_SECRET.encode(),))
            (self.id,) = cursor.fetchone() or ()
            cursor.execute(_GRANTS, (self.id,))
            cursor.execute("ANALYZE oauth_clients, oauth_grants")

    def refreshes(self, number: int) -> list[str]:
        """Return requests that refresh `number` new sessions."""
        return [load.post("/oauth/token", urlencode(form), type=load.FORM) for form in self._forms(number)]

    def access_tokens(self, number: int) -> list[str]:
        service = self.people.service
        return [service.post("/oauth/token", form)[1]["access_token"] for form in self._forms(number)]

    def _forms(self, number: int) -> list[dict[str, str]]:
        secret_key = (self.people.service.state_dir / "secret_key").read_text().strip()
        make = ClientRefreshTokens((secret_key,)).make
        with self.people.service.database() as connection, connection.cursor() as cursor:
            cursor.execute(_SESSIONS, (self.id, number))
            tokens = [make(session_id, counter) for session_id, counter in cursor]
        own = {"grant_type": "refresh_token", "client_id": self.id, "client_secret": _SECRET}
        return [own | {"refresh_token": token} for token in tokens]
