"""A service that only IPv6 reaches, in a real browser."""

import json
import re
from typing import Any

import httpx
import pytest

from tests.support.browser import fill
from tests.support.openid import authorize_path, insert_public_client
from tests.support.processes import PATIENT_GUNICORN, free_port
from tests.support.relying_parties import allow
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

EMAIL = "dave@example.com"
# Two addresses that one customer of an internet provider has, and one of another customer.
HOME, HOME_TOO, ELSEWHERE = "2001:db8:1:2::5", "[2001:DB8:1:2:8000::6]:443", "2001:db8:1:3::5"


@pytest.fixture(scope="module")
def started(tab, serve):
    port = free_port()
    changes = {
        "PORT": str(port),
        "AUTH_BIND": "::1",
        "AUTH_BASE_URL": f"http://[::1]:{port}",
        "AUTH_WORKERS": "1",
        "AUTH_BRAND_NAME": "Acme",
        "AUTH_RATE_LIMITS_ENABLED": "true",
        "AUTH_RATE_LIMIT_SIGNUP": "2 per hour",
        "AUTH_TRUSTED_PROXIES": "1",
    }
    with serve(PATIENT_GUNICORN, **changes) as started:
        yield started


@pytest.fixture
def origin(site) -> str:
    return f"http://[::1]:{site.port}"


def test_user_signs_up_by_the_link_and_signs_in_at_an_application_on_the_device(
    page, started, origin, outbox, database
):
    page.open(f"{origin}/sign-up")
    assert "passkey" not in page.text
    fill(page, email=EMAIL, password=PASSWORD)
    page.click("Create account")
    page.wait_for("Check your inbox")
    page.open(f"{origin}/verify?token={outbox.last(EMAIL).token}&type=signup")
    page.click("Continue")
    page.wait(lambda: database.count("users", "email_confirmed_at IS NOT NULL") == 1)
    page.open(f"{origin}/account")
    page.wait(lambda: "/account" in page.url)
    assert EMAIL in page.text
    # RFC 8252, section 7.3: the port is any.
    callback = f"{origin}/health"
    client_id = insert_public_client(database, "http://[::1]/health", name="Notes")
    page.open(origin + authorize_path(client_id, redirect_uri=callback))
    allow(page, "Notes")
    page.wait(lambda: page.url.startswith(f"{callback}?code="))
    assert database.value("SELECT array_agg(DISTINCT host(ip)) FROM sessions WHERE ip IS NOT NULL") == ["::1"]
    page.open(f"{origin}/sign-in")
    page.complaints()


def test_addresses_of_one_network_share_a_limit_and_log_and_session_name_the_address(
    page, site, started, origin, database
):
    def sign_up(address: str, number: int) -> Any:
        body = {"email": f"{number}@example.com", "password": PASSWORD}
        return site.post("/signup", json=body, headers={"X-Forwarded-For": address})

    statuses = [
        sign_up(address, n).status_code for n, address in enumerate((HOME, HOME_TOO, HOME, ELSEWHERE))
    ]
    assert statuses == [201, 201, 429, 201]
    metadata = httpx.get(f"{origin}/.well-known/openid-configuration", trust_env=False).json()
    assert (metadata["issuer"], metadata["token_endpoint"]) == (origin, f"{origin}/oauth/token")
    lines = [json.loads(line) for line in started[0].log().splitlines() if line.startswith("{")]
    assert "2001:db8:1:2:8000::6" in {line.get("ip") for line in lines}
    assert any(re.fullmatch(rf"Serving .*{re.escape(origin)}.*", line.get("event", "")) for line in lines)
