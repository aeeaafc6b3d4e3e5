"""A cache of verified tokens."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class TokenCache(Generic[Value]):
    """The results of `read` for the `most` tokens that were used last. Exceptions are not cached.

    The keys are SHA-256 digests of 32 bytes: a token has about 900, and up to 24 KiB.
    """

    def __init__(self, read: Callable[[str], Value], most: int) -> None:
        self._read, self._most = read, most
        self._values: OrderedDict[bytes, Value] = OrderedDict()

    def __call__(self, token: str) -> Value:
        # Any text of a request may come here, also one that UTF-8 cannot encode.
        digest = hashlib.sha256(token.encode(errors="surrogatepass")).digest()
        try:
            self._values.move_to_end(digest)
            return self._values[digest]
        except KeyError:
            pass
        value = self._values[digest] = self._read(token)
        if len(self._values) > self._most:
            self._values.popitem(last=False)
        return value
