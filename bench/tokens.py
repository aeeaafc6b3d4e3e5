"""Access tokens that no worker has verified, as most are where there are more users than a worker's cache holds."""

import uuid
from collections.abc import Sequence
from itertools import cycle, islice

from auth.core.tokens import jws
from auth.core.tokens.access_tokens import TYPE
from auth.core.tokens.signing_keys import parse_jwk_set
from bench.service import BenchService


class NewTokens:
    """Signs the claims of a service's access tokens again, each time with another `jti`, by the key of the service."""

    def __init__(self, service: BenchService, tokens: Sequence[str]) -> None:
        self._key = parse_jwk_set(str(service.state_dir / "jwt_keys.json"))[0]
        self._claims = [jws.object_in(token.split(".")[1]) for token in tokens]

    def make(self, number: int) -> list[str]:
        each = islice(cycle(self._claims), number)
        return [jws.sign(claims | {"jti": str(uuid.uuid4())}, self._key, TYPE) for claims in each]
