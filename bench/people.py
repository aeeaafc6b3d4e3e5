"""Users with sessions, created in bulk, and their tokens."""

import http.client
import json
import random
from dataclasses import dataclass
from typing import Any

import bcrypt
from psycopg2.extensions import connection as Connection

from auth.core.tokens.refresh_tokens import RefreshTokens
from bench import load
from bench.service import BenchService

PASSWORD = "Correct-Horse-1"
LOG_IN, REFRESH = "/token?grant_type=password", "/token?grant_type=refresh_token"
COST = 10
# Ids are the md5 of a word and a number, so they need no lookup. Consecutive sessions belong to users far
# apart.
_USERS = """
INSERT INTO users (id, email, email_confirmed_at, email_proved, password_hash, user_metadata, made_by, created_at, last_sign_in_at)
SELECT md5('user' || n)::uuid, 'user' || n || '@bench.example', now(), true, %s, '{"name": "A. User", "locale": "en"}', 'signup',
       now() - n * interval '1 second', now() - n * bigint '7919' %% 1000000 * interval '20 seconds'
  FROM generate_series(%s, %s) AS n;
SET session_replication_role = replica; -- skips the checks of foreign keys, which are right
INSERT INTO identities (user_id, provider, subject, identity_data)
SELECT md5('user' || n)::uuid, 'email', md5('user' || n)::uuid::text,
       jsonb_build_object('sub', md5('user' || n)::uuid, 'email', 'user' || n || '@bench.example')
  FROM generate_series(%s, %s) AS n;
-- Where they have signed in before: no notice is due.
INSERT INTO known_networks (user_id, network, passed_at) SELECT id, '127.0.0.1', now() FROM users
"""
_SESSIONS = """
INSERT INTO sessions (id, user_id, method, ip, user_agent)
SELECT md5('session' || n)::uuid, md5('user' || 1 + n * 7919 %% %s)::uuid, 'password', '127.0.0.1', 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0'
  FROM generate_series(%s::bigint, %s) AS n
 ORDER BY 1
"""
_KNOWN_SESSIONS = """
SELECT id::text, counter FROM sessions WHERE id IN (SELECT md5('session' || n)::uuid FROM unnest(%s) AS n) ORDER BY random()
"""


@dataclass
class People:
    """The users of a service under measurement, numbered from 1."""

    service: BenchService
    users: int
    sessions: int = 0

    def insert(self) -> None:
        """Create the users."""
        # In our scheme: the first log-in would hash the password of an imported hash again.
        password_hash = f"latchkey1{bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(COST)).decode()}"
        with self.service.database() as connection, connection.cursor() as cursor:
            cursor.execute(_USERS, (password_hash, 1, self.users, 1, self.users))
            cursor.execute("ANALYZE")

    def insert_sessions(self, number: int) -> None:
        """Create sessions, spread over the users, without tokens."""
        with self.service.database() as connection, connection.cursor() as cursor:
            cursor.execute(
                f"SET session_replication_role = replica; {_SESSIONS}",
                (self.users, self.sessions + 1, self.sessions + number),
            )
        self.sessions += number

    def refresh_tokens(self, number: int) -> list[str]:
        """Return the refresh tokens of `number` new sessions, spread over the users."""
        tokens = self._refresh_tokens(
            f"{_SESSIONS} RETURNING id::text, counter",
            (self.users, self.sessions + 1, self.sessions + number),
        )
        self.sessions += number
        return tokens

    def refreshes(self, number: int) -> list[str]:
        """Return requests that refresh `number` new sessions."""
        return [refresh(token) for token in self.refresh_tokens(number)]

    def refresh_tokens_by_chance(self, number: int) -> list[str]:
        """Return the refresh tokens of `number` existing sessions, chosen at random."""
        return self._refresh_tokens(_KNOWN_SESSIONS, (random.sample(range(1, self.sessions + 1), number),))

    def _refresh_tokens(self, statement: str, parameters: tuple[Any, ...]) -> list[str]:
        secret_key = (self.service.state_dir / "secret_key").read_text().strip()
        make = RefreshTokens((secret_key,)).make
        connection: Connection = self.service.database()
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            tokens = [make(session_id, counter) for session_id, counter in cursor]
        connection.close()
        return tokens

    def access_tokens(self, refresh_tokens: list[str]) -> list[str]:
        """Trade refresh tokens for access tokens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=30)
        tokens = []
        for refresh_token in refresh_tokens:
            connection.request(
                "POST",
                REFRESH,
                json.dumps({"refresh_token": refresh_token}),
                {"Content-Type": "application/json"},
            )
            tokens.append(json.loads(connection.getresponse().read())["access_token"])
        connection.close()
        return tokens

    def log_ins(self, number: int | None = None) -> list[str]:
        """Return a log-in of each user, or of `number` users chosen at random."""
        numbers = range(1, self.users + 1)
        return [log_in(each) for each in (numbers if number is None else random.sample(numbers, number))]


def refresh(refresh_token: str) -> str:
    """Return the request."""
    return load.post(REFRESH, {"refresh_token": refresh_token})


def log_in(number: int, password: str = PASSWORD) -> str:
    """Return the request of a user, with a password."""
    return load.post(LOG_IN, {"email": f"user{number}@bench.example", "password": password})
