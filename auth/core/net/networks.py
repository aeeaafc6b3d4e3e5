"""IP addresses of clients, and of the servers that we connect to."""

import functools
import ipaddress
import socket
from collections.abc import Iterator
from contextlib import suppress

IPv4 = ipaddress.IPv4Address
IPv6 = ipaddress.IPv6Address

# Link-local addresses, and the metadata services of clouds, which give a machine its credentials.
_FORBIDDEN_RANGES = (
    "169.254.0.0/16 fe80::/10 100.100.100.200/32 168.63.129.16/32 192.0.0.192/32 fd00:ec2::/32"
    " fd20:ce::254/128 fd00:42::42/128 fd00:c1::a9fe:a9fe/128 fd00:a9fe:a9fe::1/128"
)
_FORBIDDEN = [ipaddress.ip_network(network) for network in _FORBIDDEN_RANGES.split()]
# Zones of networks at home and in companies.
_PRIVATE_ZONES = (".local", ".internal", ".intranet", ".lan", ".corp", ".home", ".private", ".home.arpa")
# IPv6 prefixes with an IPv4 address in the last 32 bits (RFC 2765, RFC 6052, RFC 8215).
_IPV4_PREFIXES = [
    ipaddress.IPv6Network(network)
    for network in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
]
# The addresses allocated so far (RFC 4291, section 2.4): for Python, reserved ones are global.
_ALLOCATED = ipaddress.IPv6Network("2000::/3")


def parse(address: str) -> IPv4 | IPv6 | None:
    """Parse `1.2.3.4`, `1.2.3.4:80` or `[::1]:80`, or return None. IPv4-mapped addresses become IPv4."""
    if address.startswith("["):
        address = address[1:].partition("]")[0]
    elif address.count(":") == 1:
        address = address.partition(":")[0]
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def leads_to_loopback(host: str) -> bool:
    """Whether a host is loopback in a spelling that a resolver or the system reads so: `localhost.`, `127.1`,
    `0.0.0.0`, `::ffff:127.0.0.1`, or full-width letters.
    """
    with suppress(UnicodeError):
        host = host.encode("idna").decode()
    host = host.rstrip(".")
    with suppress(OSError):  # it is no address of inet_aton(3), which reads 0x7f.1 and 2130706433, too
        host = socket.inet_ntoa(socket.inet_aton(host))
    with suppress(ValueError):
        return any(form.is_loopback or form.is_unspecified for form in _forms(ipaddress.ip_address(host)))
    return is_loopback(host)


def is_public_name(host: str) -> bool:
    """Whether a name, which is no address, may be one of the public DNS (RFC 6762, RFC 8375)."""
    is_name = "." in host.strip(".") and parse(host) is None
    return is_name and not is_loopback(host) and not host.rstrip(".").endswith(_PRIVATE_ZONES)


def reach(address: str) -> str:
    """Return `public`, `private` or `forbidden`: the strictest of an address and those that it contains."""
    forms = list(_forms(ipaddress.ip_address(address.partition("%")[0])))
    if any(form in network for form in forms for network in _FORBIDDEN):
        return "forbidden"
    for form in forms:
        is_allocated = isinstance(form, IPv4) or form in _ALLOCATED or _contains_ipv4(form)
        if not is_allocated or not form.is_global or form.is_multicast:
            return "private"
    return "public"


def _contains_ipv4(address: IPv6) -> bool:
    return any(address in prefix for prefix in _IPV4_PREFIXES)


def _forms(address: IPv4 | IPv6) -> Iterator[IPv4 | IPv6]:
    """Yield an address and the addresses that a router or the system may translate it to."""
    address = getattr(address, "ipv4_mapped", None) or address
    yield address
    if isinstance(address, IPv6):
        if address.sixtofour:
            yield address.sixtofour
        yield from address.teredo or ()
        if _contains_ipv4(address):
            yield IPv4(int(address) & 0xFFFFFFFF)


@functools.lru_cache(1024)
def locate(address: str) -> tuple[str | None, str, bool]:
    """Return a peer's address, its network for limits (a /64 for IPv6), and whether it is public."""
    parsed = parse(address)
    if parsed is None:
        return None, "unknown", True
    network = ipaddress.IPv6Network((parsed, 64), strict=False) if isinstance(parsed, IPv6) else parsed
    return str(parsed), str(network), parsed.is_global


def site_of(network: str | None) -> str | None:
    """Return what an internet provider gives one customer: of a network of `locate`, the /48 for IPv6."""
    if network is None or ":" not in network:
        return network
    return str(ipaddress.IPv6Network(network).supernet(new_prefix=48))
