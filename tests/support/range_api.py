"""A stub of the range API of Have I Been Pwned, which knows some passwords."""

import hashlib
from collections.abc import Mapping
from typing import Any

from tests.support.local_server import Handler, LocalServer, misbehave


def sha1(password: str) -> str:
    return hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper()


class RangeStub(LocalServer):
    """`requests` are the prefixes and headers; `behaviour`, `status` and `body` replace the answer."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.status, self.behaviour, self.body = 200, "", ""
        count_of = {sha1(password): count for password, count in counts.items()}
        stub = self

        class Ranges(Handler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                prefix = self.path.removeprefix("/range/")
                stub.requests.append((prefix, dict(self.headers.items())))
                if stub.behaviour:
                    misbehave(self.wfile, stub.behaviour, self.over)
                    self.close_connection = True
                    return
                counts_by_suffix = {
                    hash[5:]: count for hash, count in count_of.items() if hash.startswith(prefix)
                }
                # As the real one: padding has the count 0.
                counts_by_suffix |= {sha1(f"{prefix} {n}")[5:]: 0 for n in range(3)}
                lines = [f"{suffix}:{count}" for suffix, count in sorted(counts_by_suffix.items())]
                self.reply(stub.status, {}, (stub.body or "\r\n".join(lines)).encode())

            @property
            def over(self) -> Any:
                return stub.over

        super().__init__(Ranges)

    @property
    def mirror(self) -> str:
        """The value of AUTH_PASSWORD_LEAKED."""
        return f"{self.url}/range"
