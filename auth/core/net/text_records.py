"""The TXT records that prove domains."""

import time
from collections.abc import Sequence

import dns.exception
import dns.resolver

from auth.core.net import sockets
from auth.core.net.dns_lookups import MOST_LABELS

_DEADLINE = 3.0  # seconds


def name_of(domain: str) -> str:
    """Return the name of the record that proves a domain."""
    return f"_latchkey.{domain}"


def wrong_names_of(domain: str) -> Sequence[str]:
    """Return where the record often is instead. Many a form for records appends the domain to the name."""
    return domain, name_of(f"{domain}.{domain}")


def of_domain(domain: str) -> list[str] | None:
    """Return the TXT records that may prove a domain, None without an answer, outside transactions."""
    return Lookups().at(name_of(domain))


class Lookups:
    """Lookups of TXT records with one deadline, outside transactions."""

    def __init__(self) -> None:
        self._ends_at = time.monotonic() + _DEADLINE

    def at(self, name: str) -> list[str] | None:
        """Return the TXT records at a name, None without an answer."""
        if name.count(".") > MOST_LABELS:
            return []
        sockets.let_go.get()()
        left = self._ends_at - time.monotonic()
        if left <= 0:
            return None
        try:
            answer = dns.resolver.resolve(f"{name}.", "TXT", lifetime=left)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return []
        except (dns.exception.DNSException, OSError):
            return None
        return [b"".join(record.strings).decode(errors="replace") for record in answer]
