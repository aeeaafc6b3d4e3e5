"""The compact form of signed tokens (RFC 7515), of sessions and of OAuth clients."""

import json
import re
from collections.abc import Mapping
from typing import Any

import jwt

from auth.tokens.signing_keys import Key

# RFC 7515, section 7.1. PyJWT would accept "=" too, which gives a token several spellings.
FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# Escaping would make metadata in most scripts two or three times as long.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_JWS = jwt.PyJWS()


def sign(claims: Mapping[str, Any], key: Key, type: str) -> str:
    headers = {"typ": type} | ({"kid": key.kid} if key.kid else {})
    return _JWS.encode(_JSON.encode(claims).encode(), key.signing_key, key.algorithm, headers)
