"""IP addresses: of clients, whose networks are the keys of limits, and of servers that we connect to."""

import functools
import ipaddress
from collections.abc import Iterator

IPv4 = ipaddress.IPv4Address
IPv6 = ipaddress.IPv6Address

# The metadata services of clouds, which give a machine its credentials, and link-local addresses.
_FORBIDDEN = [
    ipaddress.ip_network(network)
    for network in (
        *("169.254.0.0/16", "fe80::/10", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"),
        *(
            "fd00:ec2::/32",
            "fd20:ce::254/128",
            "fd00:42::42/128",
            "fd00:c1::a9fe:a9fe/128",
            "fd00:a9fe:a9fe::1/128",
        ),
    )
]
# IPv6 prefixes with an IPv4 address in the last 32 bits: IPv4-compatible and -translated (RFC 2765), and
# NAT64 (RFC 6052, RFC 8215).
_IPV4_PREFIXES = [
    ipaddress.IPv6Network(network)
    for network in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
]
# The addresses allocated so far (RFC 4291, section 2.4; IANA). Python calls reserved ones global.
_ALLOCATED = ipaddress.IPv6Network("2000::/3")


def parse(address: str) -> IPv4 | IPv6 | None:
    """Parse an address as a peer or proxy sends it: `1.2.3.4`, `1.2.3.4:80` or `[::1]:80`. Return None for
    others.

    An IPv4-mapped IPv6 address is the IPv4 address.
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


def is_loopback(host: str) -> bool:
    """Whether a host name or address is of the loopback interface."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def network_of(address: IPv4 | IPv6 | None) -> str:
    """Return the network that limits count as one client: an IPv4 address or an IPv6 /64."""
    if address is None:
        return "unknown"
    if isinstance(address, IPv6):
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return str(address)


def reach(address: str) -> str:
    """Return `public`, `private`, or `forbidden` for addresses that are never connected to.

    An address that contains another, mapped or tunnelled, is no more public than that one.
    """
    forms = list(_forms(ipaddress.ip_address(address.partition("%")[0])))
    if any(form in network for form in forms for network in _FORBIDDEN):
        return "forbidden"
    return "public" if all(map(_is_public, forms)) else "private"


def _is_public(address: IPv4 | IPv6) -> bool:
    is_allocated = isinstance(address, IPv4) or address in _ALLOCATED or _contains_ipv4(address)
    return is_allocated and address.is_global and not address.is_multicast


def _contains_ipv4(address: IPv6) -> bool:
    return any(address in prefix for prefix in _IPV4_PREFIXES)


def _forms(address: IPv4 | IPv6) -> Iterator[IPv4 | IPv6]:
    """Yield an address, and those that a router or the system may translate it to."""
    if isinstance(address, IPv6) and address.ipv4_mapped:
        address = address.ipv4_mapped
    yield address
    if isinstance(address, IPv6):
        if address.sixtofour:
            yield address.sixtofour
        yield from address.teredo or ()
        if _contains_ipv4(address):
            yield IPv4(int(address) & 0xFFFFFFFF)


@functools.lru_cache(maxsize=4096)
def locate(address: str) -> tuple[str | None, str, bool]:
    """Return a peer's address in canonical form, its network, and whether it is public."""
    parsed = parse(address)
    return str(parsed) if parsed else None, network_of(parsed), parsed is None or parsed.is_global
