"""The service role keys: opaque secrets. All are accepted."""

import hmac
from collections.abc import Sequence


class ServiceRoleKeys:
    def __init__(self, keys: Sequence[str]) -> None:
        self.use(keys)

    def use(self, keys: Sequence[str]) -> None:
        self._keys = [key.encode() for key in keys]

    def match(self, *credentials: str) -> bool:
        """Whether one of the credentials is a key. An empty one never is."""
        # Compare all pairs, so that the time does not reveal the matching one.
        matches = [
            hmac.compare_digest(key, each.encode()) for key in self._keys for each in credentials if each
        ]
        return any(matches)
