"""Addresses of the names that owners of organizations choose: of DNS, or of this machine."""

import ipaddress
import socket
import time
from contextlib import suppress
from typing import Any

import dns.exception
import dns.resolver

from auth.core.net.networks import is_loopback
from auth.core.net.sockets import AddressRefused, Deadline

# The most labels of a name. An answer can have 4,000 records, and the parser reads the name again for each.
MOST_LABELS = 16


class DnsDeadline(Deadline):
    """Asks the name servers itself: a lookup occupies no thread and ends with the deadline, so that a silent
    one keeps no other organization waiting. It knows no names of /etc/hosts.
    """

    def resolve(self, host: str, port: int) -> list[Any]:
        with suppress(ValueError):
            return _with_port(port, str(ipaddress.ip_address(host)))
        if host.count(".") >= MOST_LABELS:
            raise socket.gaierror(socket.EAI_NONAME, "too many labels")
        addresses: list[str] = []
        errors: list[Exception] = []
        # Some name servers fail, or say nothing, when they are asked for IPv6.
        for family, share in ((socket.AF_INET6, 0.5), (socket.AF_INET, 1.0)):
            lifetime = share * (self._ends_at - time.monotonic())
            try:
                addresses += dns.resolver.resolve_name(f"{host}.", family, lifetime=lifetime).addresses()
            except dns.exception.DNSException as error:
                errors.append(error)
        if not addresses and any(isinstance(each, dns.exception.Timeout) for each in errors):
            raise TimeoutError
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, str(errors[-1]))
        return _with_port(port, *addresses)


class MachineDeadline(Deadline):
    """Connects only to this machine, without a lookup: not every resolver knows the names below localhost
    (RFC 6761, section 6.3).
    """

    def resolve(self, host: str, port: int) -> list[Any]:
        if not is_loopback(host):
            raise AddressRefused
        with suppress(ValueError):
            return _with_port(port, str(ipaddress.ip_address(host)))
        return _with_port(port, "127.0.0.1", "::1")


def _with_port(port: int, *addresses: str) -> list[Any]:
    """Return what `socket.getaddrinfo` returns for addresses."""
    return [
        (socket.AF_INET6 if ":" in each else socket.AF_INET, socket.SOCK_STREAM, 0, "", (each, port))
        for each in addresses
    ]
