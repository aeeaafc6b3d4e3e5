"""A name server on loopback for TXT records and IPv4 addresses."""

import socket
import threading
from contextlib import suppress
from typing import Self

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.resolver
import dns.rrset


class DnsServer:
    """Answers from `texts` and `addresses`, by name. A name above one of `texts` exists without a record.

    A question about a name in `silent` gets no answer, and releases `ignored`. A question for the IPv6 address of a
    name in `without_ipv6` fails.
    """

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = dict(texts)
        self.addresses: dict[str, str] = {}
        self.silent: set[str] = set()
        self.without_ipv6: set[str] = set()
        self.ignored = threading.Semaphore(0)
        # The names that it was asked for.
        self.asked: list[str] = []
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
                query = dns.message.from_wire(wire)
                self.asked.append(_name_of(query))
                if self.asked[-1] in self.silent:
                    self.ignored.release()
                else:
                    self._socket.sendto(self._answer(query).to_wire(), peer)

    def _answer(self, query: dns.message.Message) -> dns.message.Message:
        response = dns.message.make_response(query)
        name = _name_of(query)
        if name in self.without_ipv6 and query.question[0].rdtype == dns.rdatatype.AAAA:
            response.set_rcode(dns.rcode.SERVFAIL)
        elif name in self.addresses:
            if query.question[0].rdtype == dns.rdatatype.A:
                response.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", "A", self.addresses[name]))
        elif name in self.texts:
            answer = dns.rrset.from_text(f"{name}.", 60, "IN", "TXT", f'"{self.texts[name]}"')
            response.answer.append(answer)
        elif not any(each.endswith(f".{name}") for each in self.texts):
            response.set_rcode(dns.rcode.NXDOMAIN)
        return response


def _name_of(query: dns.message.Message) -> str:
    return query.question[0].name.to_text(omit_final_dot=True)
