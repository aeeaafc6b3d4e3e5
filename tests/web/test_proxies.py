"""The addresses of clients behind proxies (AUTH_TRUSTED_PROXIES)."""

import json

import pytest
from flask.testing import FlaskClient

from tests.support.cases import cases
from tests.support.services import HOME, OFFICE, at
from tests.support.users import PASSWORD

PROXY = "10.0.0.1"
LOG_IN = "/token?grant_type=password"
GARBAGE = (
    *("unknown", "_hidden", "x", "999.1.1.1", "1.2.3", "0x7f.1", "127.1", "\u0663.1.1.1", "for=192.0.2.1"),
    *("<script>", "a" * 3000, "'; DROP TABLE users; --"),
)
INVALID_HOSTS = ("", "a b", "evil.example/x", "[::1", "a" * 5000, "user@evil.example", "evil.example:99999")


@pytest.fixture
def recorded_address(make_app, alice, database):
    """Return the address that a log-in recorded: `recorded_address(1, peer, "192.0.2.1, 10.0.0.2")`."""
    clients = {}

    def sign_in(proxies, peer, forwarded=None):
        if proxies not in clients:
            clients[proxies] = make_app(AUTH_TRUSTED_PROXIES=str(proxies)).test_client()
        body = {"email": alice.email, "password": PASSWORD}
        headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
        response = clients[proxies].post(LOG_IN, json=body, headers=headers, **at(peer))
        assert response.status_code == 200
        return database.value("SELECT host(ip) FROM sessions ORDER BY created_at DESC LIMIT 1")

    return sign_in


@cases("peer", [HOME, "2001:db8::1", "127.0.0.1", PROXY])
def test_peer_is_the_client_without_a_proxy(recorded_address, peer):
    assert recorded_address(0, peer) == peer
    assert recorded_address(0, peer, OFFICE) == peer


@cases(
    ("proxies", "forwarded", "expected"),
    [
        (1, HOME, HOME),
        (1, f"{OFFICE}, {HOME}", HOME),
        (1, f"{OFFICE},{HOME}", HOME),
        *(
            (1, f"{forged}, {HOME}", HOME)
            for forged in ("unknown", "for=192.0.2.1", "192.0.2.1,,", '"', '"\\', '"x')
        ),
        (2, f"{OFFICE}, {HOME}, 10.0.0.2", HOME),
        (3, f"{OFFICE}, {HOME}, 10.0.0.3, 10.0.0.2", HOME),
        (1, "2001:DB8:0::1", "2001:db8::1"),
        (1, "::ffff:198.51.100.7", HOME),
        (1, f"{HOME}:54321", HOME),
        (1, "[2001:db8::1]:443", "2001:db8::1"),
        (1, "[2001:db8::1]", "2001:db8::1"),
        (1, "fe80::1%eth0", "fe80::1"),
        (1, f"  {HOME}  ", HOME),
        # The peer is the client if there is no header.
        *((1, None, PROXY), (1, "", PROXY), (2, None, PROXY)),
        *((1, garbage, None) for garbage in GARBAGE),
    ],
)
def test_client_is_counted_from_the_right_by_the_number_of_proxies(
    recorded_address, proxies, forwarded, expected
):
    assert recorded_address(proxies, PROXY, forwarded) == expected


class TestAddressesInResponses:
    """URLs in responses come from AUTH_BASE_URL, never from headers."""

    @pytest.mark.parametrize("proxies", ["0", "1"])
    def test_links_and_issuer_do_not_follow_headers(self, make_app, alice, outbox, proxies):
        settings = {"AUTH_BASE_URL": "https://auth.example.com", "AUTH_VERIFY_ON_GET": "programs"}
        client = make_app(AUTH_TRUSTED_PROXIES=proxies, **settings).test_client()
        hosts = ("Host", "X-Forwarded-Host", "X-Forwarded-Server")
        paths = ("X-Forwarded-Prefix", "X-Script-Name", "X-Original-URL")
        evil = dict.fromkeys(hosts, "evil.example") | dict.fromkeys(paths, "/evil")
        evil |= {"X-Forwarded-Proto": "http", "X-Forwarded-Port": "81"}
        evil |= {"Forwarded": "host=evil.example;proto=http"}
        body = {"email": alice.email, "password": PASSWORD}
        assert client.post(LOG_IN, json=body, headers=evil).status_code == 200
        assert client.post("/magiclink", json={"email": alice.email}, headers=evil).status_code == 200
        for path in ("/.well-known/oauth-authorization-server", "/settings", "/"):
            assert "evil" not in client.get(path, headers=evil).text
        link = f"/verify?type=magiclink&token={outbox.last(alice.email).token}"
        response = client.get(f"{link}&redirect_to=https://evil.example", headers=evil)
        assert response.location.startswith("https://auth.example.com#")

    @cases("host", INVALID_HOSTS)
    def test_invalid_host_is_not_a_500(self, app, host):
        # openapi.yaml does not describe invalid HTTP.
        client = FlaskClient(app, app.response_class)
        for path, status in (("/health", 200), ("/user", 401), ("/nothing", 404)):
            response = client.get(path, headers={"Host": host})
            assert response.status_code in (status, 400)
            if response.status_code == 400:
                assert (response.json or {}).get("error_code") == "validation_failed"


class TestWarningAboutAProxy:
    """Behind a proxy that is not configured, all clients would share one address. The log warns once."""

    @pytest.fixture
    def warnings(self, make_app, capfd):
        from auth.web import edge

        clients = {proxies: make_app(AUTH_TRUSTED_PROXIES=proxies).test_client() for proxies in "01"}

        def ask(proxies, peer, headers):
            edge._warn_about_proxy.cache_clear()
            client = clients[proxies]
            capfd.readouterr()
            for _ in range(3):
                client.get("/health", headers=headers, **at(peer))
            events = map(json.loads, capfd.readouterr().err.splitlines())
            return [event for event in events if event["event"] == "proxy_not_trusted"]

        yield ask
        edge._warn_about_proxy.cache_clear()

    @cases("peer", ["127.0.0.1", PROXY, "fd00::1", "::ffff:10.0.0.1"])
    @cases("header", ["X-Forwarded-For", "X-Forwarded-Proto"])
    def test_warning_is_logged_once_for_a_proxy_in_the_network(self, warnings, peer, header):
        (warning,) = warnings("0", peer, {header: HOME})
        assert "AUTH_TRUSTED_PROXIES" in warning["reason"]
        assert HOME not in str(warning)

    def test_public_peer_and_configured_proxy_cause_no_warning(self, warnings):
        for proxies, peer in (("0", "8.8.8.8"), ("1", "127.0.0.1")):
            assert warnings(proxies, peer, {"X-Forwarded-For": HOME}) == []
