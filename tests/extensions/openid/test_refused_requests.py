"""What the operator's log and the application learn when a scope or a resource is refused."""

import re
import secrets

import pytest

from auth.extensions.openid import authorization_requests
from auth.extensions.openid.clients import DEVICE_CODE
from auth.extensions.openid.oauth_errors import described
from tests.support.cases import cases
from tests.support.devices import begin as begin_device
from tests.support.devices import make_television
from tests.support.openid import (
    RESOURCE,
    answer,
    assert_refused,
    authorize_path,
    insert_client,
    make_client,
    tokens_of,
)
from tests.support.pages import Visitor

API = "https://api.example.com"
SENT = "https://api.example.com/v2?x=ü"
ASCII = re.compile(r"[ !#-\[\]-~]+")


@pytest.fixture(autouse=True)
def lines(monkeypatch, capfd):
    """Each line of the log about a refused request."""
    monkeypatch.setattr(authorization_requests._refused, "interval", 0)

    def lines():
        return [
            line for line in capfd.readouterr().err.splitlines() if "authorization_request_refused" in line
        ]

    return lines


def test_log_has_the_resource_that_each_door_refused(client, database, alice, lines):
    web = make_client(database, resources=[API], grant_types=["authorization_code", "refresh_token"])
    service = make_client(database, resources=[API], grant_types=["client_credentials"], scopes=["read"])
    television = make_television(database, resources=[API])
    refresh_token = tokens_of(client, database, web, alice, resource=RESOURCE)["refresh_token"]
    lines()
    refusals = [
        lambda: client.get(authorize_path(web.id, resource=SENT)),
        lambda: television.post(client, "/oauth/device_authorization", resource=SENT),
        lambda: web.refresh(client, refresh_token, resource=SENT),
        lambda: service.post(client, "/oauth/token", grant_type="client_credentials", resource=SENT),
    ]
    for refuse, id in zip(refusals, (web.id, television.id, web.id, service.id), strict=True):
        refuse()
        (line,) = lines()
        assert r"https://api.example.com/v2?x=\u00fc" in line
        assert id in line


def test_log_has_the_scope_that_a_refresh_refused(client, database, alice, lines):
    web = make_client(database)
    tokens = tokens_of(client, database, web, alice)
    lines()
    assert_refused(web.refresh(client, tokens["refresh_token"], scope="notes:read"), "invalid_scope")
    (line,) = lines()
    assert '"scope": "notes:read"' in line


def test_log_bounds_and_escapes_what_strangers_send(client, database, lines):
    id = insert_client(database, is_dynamic=True)
    client.get(authorize_path(id, resource="x\n" * 1000))
    (line,) = lines()
    assert "x\\nx\\n" in line
    assert len(line) < 1500


def test_log_of_a_request_without_a_mistake_has_nothing(client, database, lines):
    client.get(authorize_path(insert_client(database, resources=[API]), resource=f"{API}/"))
    assert lines() == []


@cases("resource", [SENT, 'x"\\', "ü" * 10, f"{API}/\u2019", "\u2028"])
def test_description_has_the_characters_of_the_rfc_at_each_door(client, database, resource):
    web = make_client(database, grant_types=["authorization_code", "client_credentials", DEVICE_CODE])
    texts = [
        answer(client.get(authorize_path(web.id, resource=resource)).location)["error_description"],
        web.post(client, "/oauth/device_authorization", resource=resource).json["error_description"],
        web.post(client, "/oauth/token", grant_type="client_credentials", resource=resource).json[
            "error_description"
        ],
        web.post(client, "/oauth/token", grant_type=resource).json["error_description"],
    ]
    assert [text for text in texts if not ASCII.fullmatch(text) or "api.example" in text] == []


@cases(
    ("text", "expected"),
    [("don’t", "don't"), ('say "x"', "say 'x'"), ("a\\b", "a/b"), ("ü\n", "??"), ("[a]~!", "[a]~!")],
)
def test_description_replaces_other_characters(text, expected):
    assert described(text) == expected


@pytest.fixture
def limited(make_app):
    return make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_CLIENT_TOKENS="2 per hour").test_client()


def test_device_beyond_its_window_slows_down_and_gets_its_tokens_later(limited, client, database, alice):
    """At any other error, libraries give up (RFC 8628, section 3.5)."""
    television = make_television(database)
    device = begin_device(limited, television)
    for _ in range(2):
        assert device.poll().json["error"] in ("authorization_pending", "slow_down")
    before = database.everything("oauth_requests", "audit_log")
    refused = device.poll()
    assert_refused(refused, "slow_down", 429)
    assert (refused.json["error_code"], refused.json["code"]) == ("over_request_rate_limit", 429)
    assert 0 < int(refused.headers["Retry-After"]) <= 3600
    assert refused.headers["X-RateLimit-Remaining"] == "0"
    assert database.everything("oauth_requests", "audit_log") == before
    device.decide(Visitor(client.application).with_session_of(alice))
    database.run("DELETE FROM request_counts")
    assert device.poll().status_code == 200


def test_guesses_of_device_codes_share_the_window_of_their_network(limited, database):
    television = make_television(database)
    polls = [
        television.post(
            limited, "/oauth/token", grant_type=DEVICE_CODE, device_code=secrets.token_urlsafe(32)
        )
        for _ in range(3)
    ]
    assert [each.json["error"] for each in polls] == ["invalid_grant", "invalid_grant", "slow_down"]


def test_other_grants_beyond_their_window_come_back_later(limited, database):
    service = make_client(database, grant_types=["client_credentials"], scopes=["read"])
    answers = [service.post(limited, "/oauth/token", grant_type="client_credentials") for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert_refused(answers[-1], "temporarily_unavailable", 429)
