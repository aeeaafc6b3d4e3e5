"""Challenges and proofs of work (ALTCHA v2).

A proof is a counter whose derived key, PBKDF2 of nonce and counter, begins with the challenge's prefix.
Clients try 256 counters on average, we derive one key. Challenges are signed, and stored once spent.
"""

import base64
import hashlib
import hmac
import json
import os
import re
from typing import Any

from auth.core import constants, json_bodies
from auth.core.tokens import derived_keys
from auth.web.asked import Asked
from auth.web.context import Latchkey
from sql import queries

_PREFIX = "00"
_KEY_BYTES = 32
_KEY = re.compile(_PREFIX + r"[0-9a-f]{62}")
_MOST = 2**32 - 1  # of the counter


def challenge(asked: Asked) -> dict[str, Any]:
    """Return a signed challenge."""
    now = queries.read_time(asked.db).now
    parameters = {
        "algorithm": "PBKDF2/SHA-256",
        "cost": asked.settings.captcha_cost,
        "expiresAt": int(now.timestamp()) + constants.CAPTCHA_LIFETIME,
        "keyLength": _KEY_BYTES,
        "keyPrefix": _PREFIX,
        "nonce": os.urandom(16).hex(),
        "salt": os.urandom(16).hex(),
    }
    return {"parameters": parameters, "signature": _signatures(asked.parts, parameters)[0]}


def problem_of(asked: Asked, token: str) -> str | None:
    """Return the error code of a proof, or None. A challenge costs us one derivation at most."""
    try:
        proof = json_bodies.decode(base64.b64decode(token, validate=True))
        parameters, signature = proof["challenge"]["parameters"], str(proof["challenge"]["signature"])
        counter, key = proof["solution"]["counter"], str(proof["solution"]["derivedKey"])
        is_ours = signature.isascii() and any(
            hmac.compare_digest(each, signature) for each in _signatures(asked.parts, parameters)
        )
    except (ValueError, KeyError, TypeError, json_bodies.InvalidJson):
        is_ours = False
    if not is_ours or type(counter) is not int or not 0 <= counter <= _MOST or not _KEY.fullmatch(key):
        return "invalid-input-response"
    nonce, salt = bytes.fromhex(parameters["nonce"]), bytes.fromhex(parameters["salt"])
    if not queries.insert_spent_captcha(asked.db, nonce=nonce, expires_at=parameters["expiresAt"]):
        return "timeout-or-duplicate"
    password = nonce + counter.to_bytes(4, "big")
    derived = asked.parts.passwords.threads.run(
        lambda: hashlib.pbkdf2_hmac("sha256", password, salt, parameters["cost"], _KEY_BYTES)
    )
    return None if derived.hex() == key else "invalid-input-response"


def _signatures(parts: Latchkey, parameters: object) -> list[str]:
    text = json.dumps(parameters, sort_keys=True, separators=(",", ":"))
    keys = derived_keys.derive(parts.key_ring.settings.secret_key, "captcha")
    return [hmac.digest(key, text.encode(), "sha256").hex() for key in keys]
