"""Where requests come from: IP addresses in one textual form, and the networks that limits are keyed by."""

import functools
import ipaddress

IPv4 = ipaddress.IPv4Address
IPv6 = ipaddress.IPv6Address


def parse(address: str) -> IPv4 | IPv6 | None:
    """Return an address as it is sent by a peer or a proxy (`1.2.3.4`, `1.2.3.4:80`, `[::1]:80`), or None for anything else.

    An IPv4 address in IPv6's mapped form is the same address.
    """
    if address.startswith("["):
        address = address[1:].partition("]")[0]
    elif address.count(":") == 1:
        address = address.partition(":")[0]
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(parsed, IPv6) and parsed.ipv4_mapped:
        return parsed.ipv4_mapped
    return parsed


def network_of(address: IPv4 | IPv6 | None) -> str:
    """Return the network that is counted as one client: an IPv4 address, or an IPv6 /64, which one customer has whole."""
    if address is None:
        return "unknown"
    if isinstance(address, IPv6):
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return str(address)


@functools.lru_cache(maxsize=4096)
def locate(address: str) -> tuple[str | None, str, bool]:
    """Return a peer's address in its one form, its network, and whether it is one of the Internet's. Most peers send many requests."""
    parsed = parse(address)
    return str(parsed) if parsed else None, network_of(parsed), parsed is None or parsed.is_global
