"""A name server on loopback for TXT records."""

import socket
import threading
from contextlib import suppress
from typing import Self

import dns.flags
import dns.message
import dns.rcode
import dns.resolver
import dns.rrset


class DnsServer:
    """Answers from `texts`, by name. A name above one of them exists without a record."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = dict(texts)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.resolver = dns.resolver.Resolver(configure=False)
        self.resolver.nameservers = ["127.0.0.1"]
        self.resolver.port = self._socket.getsockname()[1]
        self.resolver.lifetime = 10.0

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                wire, peer = self._socket.recvfrom(4096)
                self._socket.sendto(self._answer(dns.message.from_wire(wire)).to_wire(), peer)

    def _answer(self, query: dns.message.Message) -> dns.message.Message:
        response = dns.message.make_response(query)
        name = query.question[0].name.to_text(omit_final_dot=True)
        if name in self.texts:
            answer = dns.rrset.from_text(f"{name}.", 60, "IN", "TXT", f'"{self.texts[name]}"')
            response.answer.append(answer)
        elif not any(known.endswith(f".{name}") for known in self.texts):
            response.set_rcode(dns.rcode.NXDOMAIN)
        return response
