"""Passkeys of the users under measurement, and sign-ins that answer prepared challenges."""

import secrets
import uuid
from hashlib import md5

from psycopg2.extras import execute_values, register_uuid

from bench import load
from bench.people import People
from tests.support.authenticator import ES256, Authenticator, Key, Passkey, encode

SIGN_IN = "/passkeys/authentication/verify"
_PASSKEYS = """
INSERT INTO factors (id, user_id, factor_type, verified_at, credential_id, public_key, sign_count)
VALUES %s
"""
_CHALLENGES = "INSERT INTO factor_challenges (id, purpose, challenge, expires_at) VALUES %s"


class Passkeys:
    """One passkey for each user. They share a key, which makes no difference to the service."""

    def __init__(self, people: People) -> None:
        register_uuid()
        self._people = people
        self._authenticator = Authenticator(f"http://localhost:{people.service.port}", counts=False)
        key, numbers = Key(ES256), range(1, people.users + 1)
        users = [
            uuid.UUID(md5(f"user{number}".encode(), usedforsecurity=False).hexdigest()) for number in numbers
        ]
        self._passkeys = [Passkey("localhost", user.bytes, key) for user in users]
        rows = [(uuid.uuid4(), user, passkey.id) for user, passkey in zip(users, self._passkeys, strict=True)]
        template = f"(%s, %s, 'passkey', now(), %s, '\\x{key.cose.hex()}', 0)"
        with people.service.database() as connection, connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            execute_values(cursor, _PASSKEYS, rows, template)

    def sign_ins(self, number: int) -> list[str]:
        """Return requests to sign in, each with its own challenge."""
        challenges = [(uuid.uuid4(), secrets.token_bytes(64)) for _ in range(number)]
        template = "(%s, 'passkey_authentication', %s, now() + interval '1 hour')"
        with self._people.service.database() as connection, connection.cursor() as cursor:
            execute_values(cursor, _CHALLENGES, challenges, template, page_size=1000)
        return [self._sign_in(place, *challenge) for place, challenge in enumerate(challenges)]

    def _sign_in(self, place: int, challenge_id: uuid.UUID, challenge: bytes) -> str:
        options = {"challenge": encode(challenge), "rpId": "localhost"}
        passkey = self._passkeys[place % len(self._passkeys)]
        credential = self._authenticator.get(options, passkey)
        return load.post(SIGN_IN, {"challenge_id": str(challenge_id), "credential": credential})
