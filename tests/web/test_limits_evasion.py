"""Attempts to evade the limits: each request counts for the same network or user."""

import functools

import pytest

from tests.support.cases import cases
from tests.support.services import OFFICE, at
from tests.support.users import PASSWORD, WRONG_PASSWORD, register, sign_in

LOG_IN = "/token?grant_type=password"
CLIENT_HEADERS = (
    "X-Forwarded-For X-Real-IP Forwarded X-Client-IP X-Cluster-Client-IP X-Originating-IP X-Remote-IP"
    " X-Remote-Addr True-Client-IP CF-Connecting-IP Fastly-Client-IP Client-IP Via X-Forwarded Forwarded-For"
    " X-Forwarded-Host X-Host User-Agent X-Request-Id Origin apikey Authorization Cookie"
)
# The answers to five log-ins without a body, or with a wrong password, of which three are allowed.
THREE = [400, 400, 400, 429, 429]
THREE_WRONG = [401, 401, 401, 429, 429]


@pytest.fixture
def limited(make_app):
    """Make a client with a limit of three log-ins in five minutes."""

    @functools.cache
    def make(**changes):
        settings = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_LOGIN": "3 per 5 minutes"}
        return make_app(**(settings | changes)).test_client()

    return make


@pytest.fixture
def limited_failures(limited):
    """A client with a limit of three wrong passwords in a quarter of an hour."""
    failures = {"AUTH_RATE_LIMIT_LOGIN_FAILURES": "3 per 15 minutes"}
    return limited(AUTH_RATE_LIMIT_LOGIN="100 per minute", **failures)


def statuses(ask, values):
    return [ask(value).status_code for value in values]


def with_headers(client, headers):
    """Return the statuses of log-ins without a body, each with other headers."""
    return statuses(lambda each: client.post(LOG_IN, json={}, headers=each), headers)


@cases("name", [*CLIENT_HEADERS.split(), "Host"])
def test_forged_header_does_not_change_the_network(limited, database, name):
    database.run("DELETE FROM request_counts")
    values = ["192.0.2.1", "for=192.0.2.2", "::1", "127.0.0.1", "198.51.100.1, 192.0.2.3"]
    if name == "Origin":
        values = [f"http://localhost:{number}" for number in range(1, 6)]
    if name == "Host":
        values = [f"192.0.2.{number}" for number in range(5)]
    assert with_headers(limited(), [{name: value} for value in values]) == THREE


class TestAddressesOfOneNetwork:
    @pytest.mark.parametrize(
        "addresses",
        [
            "2001:db8::1 2001:db8::2 2001:db8::ffff:ffff:ffff:ffff 2001:db8:0:0:8000::",
            "2001:db8::1 2001:0db8:0000:0000:0000:0000:0000:0001 2001:DB8::1 2001:db8:0:0::1",
            "fe80::1%eth0 fe80::1%eth1 fe80::1 fe80::2%1",
            "192.0.2.1 ::ffff:192.0.2.1 ::ffff:c000:201 0:0:0:0:0:ffff:c000:0201",
            "192.0.2.1:1 192.0.2.1:65535 192.0.2.1 [::ffff:192.0.2.1]:80",
            "[2001:db8::1]:443 [2001:db8::2] 2001:db8::3 [2001:db8::4%x]:1",
            "unknown _hidden unix: x",
        ],
    )
    def test_addresses_of_one_network_count_together(self, limited, addresses):
        client = limited(AUTH_TRUSTED_PROXIES="1")
        headers = [{"X-Forwarded-For": address} for address in addresses.split()]
        assert with_headers(client, headers) == THREE[:4]

    @pytest.mark.parametrize(
        "addresses",
        [
            "2001:db8::1 2001:db8:0:1::1 2001:db8:1::1",
            "192.0.2.1 192.0.2.2",
            "192.0.2.1 2001:db8::c000:201",
        ],
    )
    def test_addresses_of_other_networks_count_separately(self, limited, addresses):
        client = limited(AUTH_TRUSTED_PROXIES="1")
        for address in addresses.split():
            assert with_headers(client, [{"X-Forwarded-For": address}] * 4) == THREE[:4]


class TestSpellingsOfAUser:
    @pytest.mark.parametrize(
        ("field", "spellings"),
        [
            ("email", ["a@example.com", "a@example\u3002com", "a@EXAMPLE\u3002COM", "A@example.com"]),
            (
                "email",
                [
                    "ä@bücher.example",
                    "ä@xn--bcher-kva.example",
                    "Ä@BÜCHER.example",
                    "Ä@XN--BCHER-KVA.example",
                ],
            ),
            ("phone", ["+491701234567", "+49 170 1234567", "+49-170-1234567", "+49 (170) 123.45.67"]),
        ],
    )
    def test_spellings_of_an_address_count_together(self, limited_failures, database, field, spellings):
        bodies = [{field: spelling, "password": WRONG_PASSWORD} for spelling in spellings]
        answers = statuses(lambda body: limited_failures.post(LOG_IN, json=body), bodies)
        assert answers == THREE_WRONG[:4]
        assert database.count("failure_counts", "key LIKE 'account %%'") == 1


def test_requests_with_a_refused_body_count(limited):
    client = limited()
    bodies = [b"", b"{", b"[]", b'{"email": 1}', b'{"email": "a@example.com", "email": "b@example.com"}']
    options = {"content_type": "application/json"}
    assert statuses(lambda body: client.post(LOG_IN, data=body, **options), bodies) == THREE


class TestManyPasswords:
    def test_success_returns_no_failure(self, limited_failures, alice, mallory):
        """Not for another user, nor for the same user from the same network or another one."""
        client, answers = limited_failures, []
        body = {"email": alice.email, "password": PASSWORD}
        for number in range(5):
            answers.append(sign_in(client, alice.email, WRONG_PASSWORD).status_code)
            assert sign_in(client, mallory.email).status_code == 200
            assert client.post(LOG_IN, json=body, **at(OFFICE)).status_code == 200
            assert number > 1 or sign_in(client, alice.email).status_code == 200
        assert answers == THREE_WRONG

    def test_one_password_for_many_users_is_limited_by_network(self, limited, client, service_role):
        people = [register(client, service_role, f"user{number}@example.com") for number in range(5)]
        spraying = limited()
        assert statuses(lambda person: sign_in(spraying, person.email, WRONG_PASSWORD), people) == THREE_WRONG
