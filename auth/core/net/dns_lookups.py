"""Lookups of names that owners of organisations choose."""

import ipaddress
import socket
import time
from contextlib import suppress
from typing import Any

import dns.exception
import dns.resolver

from auth.core.net.sockets import Deadline


class DnsDeadline(Deadline):
    """Asks the name servers itself: a lookup occupies no thread and ends with the deadline, so that a silent
    one keeps no other organisation waiting. It knows no names of /etc/hosts.
    """

    def resolve(self, host: str, port: int) -> list[Any]:
        with suppress(ValueError):
            return _with_port(port, str(ipaddress.ip_address(host)))
        try:
            found = dns.resolver.resolve_name(f"{host}.", lifetime=self._ends_at - time.monotonic())
        except dns.exception.Timeout:
            raise TimeoutError from None
        except dns.exception.DNSException as error:
            raise socket.gaierror(socket.EAI_NONAME, str(error)) from None
        return _with_port(port, *found.addresses())


def _with_port(port: int, *addresses: str) -> list[Any]:
    """Return what `socket.getaddrinfo` returns for addresses."""
    return [
        (socket.AF_INET6 if ":" in each else socket.AF_INET, socket.SOCK_STREAM, 0, "", (each, port))
        for each in addresses
    ]
