"""The TXT records that prove domains."""

import dns.exception
import dns.resolver

from auth.core.net import sockets
from auth.core.net.dns_lookups import MOST_LABELS

_DEADLINE = 3.0  # seconds


def of_domain(domain: str) -> list[str] | None:
    """Return the TXT records of `_latchkey.DOMAIN`, None without an answer. Call it outside transactions."""
    if domain.count(".") >= MOST_LABELS:
        return []
    sockets.let_go.get()()
    try:
        answer = dns.resolver.resolve(f"_latchkey.{domain}.", "TXT", lifetime=_DEADLINE)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return []
    except (dns.exception.DNSException, OSError):
        return None
    return [b"".join(record.strings).decode(errors="replace") for record in answer]
