"""Addresses of names that owners of organizations choose."""

import socket

import dns.resolver
import pytest

from auth.core.net import text_records
from auth.core.net.dns_lookups import DnsDeadline, MachineDeadline
from auth.core.net.sockets import AddressRefused
from tests.support.dns_server import DnsServer

NAME = "idp.acme.example"


@pytest.fixture
def name_server(monkeypatch):
    with DnsServer({}) as server:
        monkeypatch.setattr(dns.resolver, "default_resolver", server.resolver)
        yield server


def addresses_of(host):
    with DnsDeadline(2) as deadline:
        return [address[0] for *_, address in deadline.resolve(host, 443)]


@pytest.mark.parametrize("fails", [False, True])
def test_name_with_an_ipv4_address_is_found_whatever_is_said_of_ipv6(name_server, fails):
    name_server.addresses[NAME] = "192.0.2.7"
    if fails:
        name_server.without_ipv6.add(NAME)
    assert addresses_of(NAME) == ["192.0.2.7"]


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7"])
def test_ip_address_is_not_looked_up(name_server, address):
    name_server.silent.add(address)
    assert addresses_of(address) == [address]


def test_unknown_name_has_no_address(name_server):
    with pytest.raises(socket.gaierror):
        addresses_of(NAME)


def test_name_of_too_many_labels_is_looked_up_nowhere(name_server):
    """Each of the thousands of records that its owner may publish would repeat them."""
    long_name = f"{'a.' * 15}example"
    name_server.addresses[long_name], name_server.addresses[f"a.{long_name}"] = "192.0.2.7", "192.0.2.7"
    name_server.texts |= {f"_latchkey.{long_name}": "x", f"_latchkey.a.{long_name}": "x"}
    assert (addresses_of(long_name), text_records.of_domain(long_name)) == (["192.0.2.7"], ["x"])
    assert text_records.of_domain(f"a.{long_name}") == []
    with pytest.raises(socket.gaierror):
        addresses_of(f"a.{long_name}")


def test_silent_server_is_left_at_the_deadline(name_server):
    name_server.silent.add(NAME)
    with pytest.raises(TimeoutError):
        addresses_of(NAME)


@pytest.mark.parametrize("host", ["localhost", "x.localhost"])
def test_name_of_this_machine_is_both_loopback_addresses_and_looked_up_nowhere(name_server, host):
    name_server.addresses[host] = "192.0.2.7"
    with MachineDeadline(2) as deadline:
        assert [address[0] for *_, address in deadline.resolve(host, 443)] == ["127.0.0.1", "::1"]
    assert name_server.asked == []


@pytest.mark.parametrize("host", [NAME, "localhost.example", "10.0.0.1", "0.0.0.0"])  # noqa: S104
def test_connection_to_this_machine_knows_no_other_host(host):
    with MachineDeadline(2) as deadline, pytest.raises(AddressRefused):
        deadline.resolve(host, 443)
