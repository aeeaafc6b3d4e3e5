"""Authenticator apps of the users under measurement, and verifications that each spend a time step."""

import uuid

import jwt
import pyotp
from psycopg2.extras import execute_values, register_uuid

from auth.core.factors import totp
from auth.core.tokens.derived_keys import SEALING, Sealer, derive
from bench import load
from bench.people import People

VERIFY = "/factors/%s/verify"
_FACTORS = "INSERT INTO factors (id, user_id, factor_type, verified_at, secret) VALUES %s"
_FORGET_STEPS = "UPDATE factors SET last_step = NULL WHERE factor_type = 'totp' AND last_step IS NOT NULL"
_CHALLENGES = """
INSERT INTO factor_challenges (id, user_id, session_id, factor_id, purpose, expires_at)
VALUES %s
"""


class Apps:
    """Several factors for each session. They share a secret, which makes no difference to the service."""

    def __init__(self, people: People, access_tokens: list[str], per_session: int) -> None:
        register_uuid()
        self._people = people
        self._secret = totp.new_secret()
        secret_key = (people.service.state_dir / "secret_key").read_text().strip()
        sealer = Sealer(derive((secret_key,), SEALING))
        # Sessions take turns, so that two connections rarely wait for the row of one user.
        self._factors = [(uuid.uuid4(), token) for _ in range(per_session) for token in access_tokens]
        rows = [
            (factor_id, _claims(token)["sub"], sealer.seal(self._secret, str(factor_id)))
            for factor_id, token in self._factors
        ]
        with people.service.database() as connection, connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            execute_values(cursor, _FACTORS, rows, "(%s, %s, 'totp', now(), %s)", page_size=1000)

    def verifications(self) -> list[str]:
        """Return a request to verify each factor."""
        challenges = [(uuid.uuid4(), *factor) for factor in self._factors]
        rows = [
            (challenge_id, claims["sub"], claims["session_id"], factor_id)
            for challenge_id, factor_id, token in challenges
            for claims in (_claims(token),)
        ]
        template = "(%s, %s, %s, %s, 'totp', now() + interval '1 hour')"
        with self._people.service.database() as connection, connection.cursor() as cursor:
            cursor.execute(_FORGET_STEPS)
            execute_values(cursor, _CHALLENGES, rows, template, page_size=1000)
        # Created last, because a code is good for half a minute at least.
        code = pyotp.TOTP(self._secret).now()
        return [
            load.post(VERIFY % factor_id, {"challenge_id": str(challenge_id), "code": code}, token=token)
            for challenge_id, factor_id, token in challenges
        ]


def _claims(access_token: str) -> dict[str, str]:
    claims: dict[str, str] = jwt.decode(access_token, options={"verify_signature": False})
    return claims
