"""Addresses of webhooks: never a metadata service, private networks only where the setting allows them, and
unencrypted http only there.

Names are resolved and checked at registration, and again at each connection.
"""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from auth.core.net.networks import reach
from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.hooks import Hooks

PUBLIC = ["93.184.216.34", "1.1.1.1", "2606:2800:220:1::1", "::ffff:1.1.1.1", "64:ff9b::101:101"]
PRIVATE = [
    *("127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1"),
    *("0.1.2.3", "192.0.2.1", "198.18.0.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1"),
    "0.0.0.0",  # noqa: S104
    *("255.255.255.255", "::", "::1", "fc00::1", "fd12:3456::1", "ff02::1", "2001:db8::1", "100::1"),
    *("64:ff9b:1::1", "2001::1"),
    # Reserved or deprecated.
    *("fec0::1", "5f00::1", "4000::1", "::5efe:7f00:1"),
    # Embedded in another address: mapped, IPv4-compatible, NAT64, 6to4, Teredo.
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "::10.0.0.1", "64:ff9b::7f00:1"),
    *("64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:a00:1::1", "::ffff:0:7f00:1"),
]
FORBIDDEN = [
    *("169.254.169.254", "169.254.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
    *("fe80::1", "fe80::1%eth0", "febf::1", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42"),
    *("::ffff:169.254.169.254", "::169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe"),
    *("::ffff:0:a9fe:a9fe", "2002:a9fe:a9fe::1"),
    # Teredo: the server's address, and the client's address with inverted bits.
    *("2001:0:a9fe:a9fe::1", "2001:0:101:101:0:0:5601:5601"),
]


@pytest.fixture
def strict(make_app, service_role, database):
    """Webhooks of a service that may not call private networks."""
    app = make_app(AUTH_WEBHOOK_PRIVATE_NETWORKS="false")
    return Hooks(app.test_client(), service_role, database, app.extensions["latchkey"])


@pytest.fixture
def names(monkeypatch):
    """A fake name server: `names["hooks.example"] = ["192.0.2.1"]`, or an iterator over successive answers."""
    addresses_of: dict[str, Any] = {}
    real_getaddrinfo = socket.getaddrinfo

    def getaddrinfo(host, port, *arguments, **options):
        if host not in addresses_of:
            return real_getaddrinfo(host, port, *arguments, **options)
        addresses = (
            next(addresses_of[host]) if isinstance(addresses_of[host], Iterator) else addresses_of[host]
        )
        answers = [real_getaddrinfo(address, port, *arguments, **options)[0] for address in addresses]
        return [
            (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address) for family, *_, address in answers
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return addresses_of


@pytest.mark.parametrize(
    ("addresses", "expected"), [(PUBLIC, "public"), (PRIVATE, "private"), (FORBIDDEN, "forbidden")]
)
def test_address_is_classified_by_the_address_embedded_in_it(addresses, expected):
    assert {address: reach(address) for address in addresses} == dict.fromkeys(addresses, expected)


def assert_refused(hooks, url, details):
    assert_error(hooks.ask("post", url=url), 400, "validation_failed", details=f"url: {details}")


NOT_HTTP = "must be an http or https URL"
WITH_EXTRA_PARTS = "must not have a user, zone or fragment"
UNRESOLVED = "must have a host that can be resolved"
FORBIDDEN_ADDRESS = "must not be in a private network"
INTO_PRIVATE = f"{FORBIDDEN_ADDRESS} unless AUTH_WEBHOOK_PRIVATE_NETWORKS is true"
NOT_HTTPS = "must be https, except in a private network"


LOOPBACK = (
    "127.0.0.1 127.1 0x7f.1 0x7f000001 2130706433 017700000001 0 LOCALHOST localhost. [::1] [::ffff:127.0.0.1]"
    " [0:0:0:0:0:0:0:1]"
)


class TestUrl:
    @cases(
        ("urls", "details"),
        [
            (["", "hooks", "/hooks", "//1.1.1.1/", "ftp://1.1.1.1/", "file:///etc/passwd"], NOT_HTTP),
            (["https://", "https:///x", "https:1.1.1.1", "https://[::1", "https://1.1.1.1:0/"], NOT_HTTP),
            (["https://1.1.1.1:99999/", "https://1.1.1.1/ä", "https://1.1.1.1/a b"], NOT_HTTP),
            (["https://1.1.1.1\\@127.0.0.1/", "https://1.1.1.1/\t", "https://1.1.1.1:80x/"], NOT_HTTP),
            (
                ["https://user:password@1.1.1.1/", "https://@1.1.1.1/", "https://1.1.1.1/#top"],
                WITH_EXTRA_PARTS,
            ),
            (["https://[fe80::1%25eth0]/", "https://1.1%2e1.1/"], WITH_EXTRA_PARTS),
            (["https://nowhere.invalid/", "https://a..example/", "https://.example/"], UNRESOLVED),
            ([f"https://{'a' * 64}.example/"], UNRESOLVED),
        ],
    )
    def test_url_of_another_scheme_form_or_name_is_refused(self, hooks, urls, details):
        for url in urls:
            assert_refused(hooks, url, details)

    @pytest.mark.parametrize("address", PUBLIC)
    def test_public_address_is_accepted_with_https_only(self, strict, names, address):
        names["hooks.example"] = [address]
        assert strict.register("https://hooks.example/")["url"] == "https://hooks.example/"
        assert_refused(strict, "http://hooks.example/", NOT_HTTPS)

    @cases("address", PRIVATE + FORBIDDEN)
    def test_private_address_is_refused(self, strict, hooks, names, address, database):
        names["hooks.example"] = [address.partition("%")[0]]
        for scheme in ("http", "https"):
            details = FORBIDDEN_ADDRESS if address in FORBIDDEN else INTO_PRIVATE
            assert_refused(strict, f"{scheme}://hooks.example/", details)
        if address in FORBIDDEN:
            # Even with private networks.
            assert_refused(hooks, "http://hooks.example/", FORBIDDEN_ADDRESS)
        assert database.count("webhooks") == 0

    def test_every_address_of_a_name_is_checked(self, strict, hooks, names):
        names["hooks.example"] = ["1.1.1.1", "10.0.0.1"]
        assert_refused(strict, "https://hooks.example/", INTO_PRIVATE)
        names["hooks.example"] = ["10.0.0.1", "1.1.1.1"]
        assert_refused(hooks, "http://hooks.example/", NOT_HTTPS)

    @cases("host", LOOPBACK.split())
    def test_loopback_is_refused_in_any_spelling(self, strict, names, host):
        # Not every name server resolves this name.
        names["localhost."] = ["127.0.0.1"]
        assert_refused(strict, f"https://{host}/", INTO_PRIVATE)

    @cases("host", ["169.254.169.254", "0xa9fea9fe", "2852039166", "[::ffff:169.254.169.254]", "[fe80::1]"])
    def test_metadata_service_is_refused_in_any_spelling(self, hooks, host):
        assert_refused(hooks, f"http://{host}/latest/meta-data/", FORBIDDEN_ADDRESS)

    def test_changed_url_is_checked(self, strict, names):
        names["hooks.example"] = ["1.1.1.1"]
        webhook = strict.register("https://hooks.example/")
        response = strict.ask("put", f"/{webhook['id']}", url="https://127.0.0.1/")
        assert_error(response, 400, "validation_failed", details=f"url: {INTO_PRIVATE}")
        assert strict.show(webhook)["url"] == "https://hooks.example/"


class TestConnection:
    @pytest.fixture
    def registered(self, hooks, names, target):
        """A webhook whose host name resolves to the target now."""
        names["hooks.example"] = ["127.0.0.1"]
        return hooks.register(target.url.replace("127.0.0.1", "hooks.example"))

    def deliver(self, hooks, webhook):
        hooks.emit()
        hooks.deliver()
        (delivery,) = hooks.deliveries(webhook)
        return delivery["status"], delivery["last_error"]

    REFUSED = ("waiting", "no answer: its address is refused")

    def test_name_that_later_resolves_to_a_private_address_is_refused(self, strict, names, target):
        names["hooks.example"] = ["1.1.1.1"]
        webhook = strict.register(target.url.replace("http://127.0.0.1", "https://hooks.example"))
        names["hooks.example"] = ["127.0.0.1"]
        assert self.deliver(strict, webhook) == self.REFUSED
        assert target.requests == []

    def test_connection_uses_the_address_that_was_checked(self, hooks, names, registered, target):
        # A second look-up would return another address.
        answers = names["hooks.example"] = iter([["127.0.0.1"], ["169.254.169.254"]])
        assert self.deliver(hooks, registered) == ("sent", None)
        assert list(answers) == [["169.254.169.254"]]
        assert target.requests[0].headers["host"].startswith("hooks.example:")


NETWORKS = "AUTH_WEBHOOK_PRIVATE_NETWORKS"


@pytest.mark.parametrize(
    ("base_url", "bind", "expected"),
    [
        ("http://localhost:8000", "127.0.0.1", True),
        ("http://localhost:8000", "0.0.0.0", False),  # noqa: S104
        ("https://auth.example.com", "127.0.0.1", False),
    ],
)
def test_setting_allows_private_networks_on_loopback_by_default(load, base_url, bind, expected):
    variables = {"AUTH_BASE_URL": base_url, "AUTH_BIND": bind}
    for chosen, allowed in (({}, expected), ({NETWORKS: "true"}, True), ({NETWORKS: "false"}, False)):
        assert load(**variables | chosen).webhook_private_networks is allowed
