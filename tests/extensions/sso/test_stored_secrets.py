"""Another issuer, document or client of a customer's provider needs the client secret in the same request, at
every door of an operator: a hostile issuer never gets the stored one.
"""

import pytest

from tests.support.answers import ANYTHING, assert_error
from tests.support.armed_console import act_at as act_at
from tests.support.armed_console import armed as armed
from tests.support.armed_console import codes as codes
from tests.support.commands import run_command
from tests.support.customers import Customer, SsoService
from tests.support.pages import words

NEEDED = "client_secret: is required with another {}"
# The fields that each door can change.
DOORS = {
    "api": ("issuer", "discovery_url", "client_id"),
    "console": ("issuer", "client_id"),
    "command": ("issuer", "client_id"),
}
OPTIONS = {"issuer": "--issuer", "client_id": "--client-id"}
CELLS = [(door, field) for door, names in DOORS.items() for field in names]


@pytest.fixture
def app(sso):
    return sso.app


class Attack:
    """A change by a door that would send Acme's secret to Globex, or take ID tokens of a foreign client."""

    def __init__(self, sso: SsoService, acme: Customer, globex: Customer, act_at, tmp_path) -> None:
        self.sso, self.acme, self.globex, self.act_at = sso, acme, globex, act_at
        self.secret, self.file = acme.provider.client_secret, tmp_path / "secret"
        self.file.write_text(self.secret)

    def value(self, field: str):
        return {
            "issuer": self.globex.provider.url,
            "discovery_url": self.acme.other_document(token_endpoint=f"{self.globex.provider.url}/token"),
            "client_id": "holders-app",
        }[field]

    def change(self, door: str, field: str, secret: str = "") -> str:
        """Try a change, and return the problem that the door names, "" if it names none."""
        value = self.value(field)
        body = {field: value} | ({"client_secret": secret} if secret else {})
        if door == "api":
            answer = self.sso.change(self.acme, **body)
            return "" if answer.status_code == 200 else answer.json["details"]
        if door == "console":
            text = words(self.act_at("/console/providers", f"{self.acme.id}/change", **body))
            return "" if "Provider changed." in text else text
        secrets = ["--secret-file", str(self.file)] if secret else []
        result = run_command(self.sso.app, "providers", "change", "acme-idp", OPTIONS[field], value, *secrets)
        return "" if result.exit_code == 0 else result.output

    def play(self) -> None:
        """Begin a sign-in, and hand in an ID token of a foreign client."""
        self.sso.sign_in(self.acme.identifier)
        token = self.acme.provider.id_token(aud="holders-app")
        answer = self.sso.client.post(
            "/token?grant_type=id_token", json={"provider": self.acme.identifier, "id_token": token}
        )
        assert_error(answer, 400, "bad_oauth_callback", "Bad ID token", details=ANYTHING)


@pytest.fixture
def attack(sso, acme, globex, act_at, tmp_path) -> Attack:
    return Attack(sso, acme, globex, act_at, tmp_path)


@pytest.mark.parametrize(("door", "field"), CELLS)
def test_hostile_issuer_and_foreign_client_get_neither_the_stored_secret_nor_a_session(
    attack, acme, globex, database, monkeypatch, door, field
):
    # It answers every client.
    monkeypatch.setattr(globex.provider, "client_id", acme.provider.client_id)
    before = database.everything("identity_providers", "identity_provider_domains")
    problem = attack.change(door, field)
    attack.play()
    assert "/token" not in globex.provider.paths()
    assert database.everything("identity_providers", "identity_provider_domains") == before
    assert problem == NEEDED.format(field) if door == "api" else problem


@pytest.mark.parametrize(("door", "field"), CELLS)
def test_client_secret_in_the_same_request_allows_the_change(attack, acme, database, door, field):
    value = attack.value(field)
    assert attack.change(door, field, attack.secret) == ""
    assert database.value(f"SELECT {field} FROM identity_providers WHERE id = %(id)s", id=acme.id) == value


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "{url}/"},
        {"issuer": "{url}//", "name": "Acme Inc."},
        {"client_id": "client-at-acme-idp"},
        {"discovery_url": ""},
        {"acceptable_client_ids": ["mobile"]},
        {
            "domains": ["acme.test"],
            "scopes": ["openid", "email"],
            "attribute_mapping": {"department": "dept"},
        },
        {"enabled": False},
    ],
)
def test_change_that_leaves_the_client_as_it_is_needs_no_secret(sso, acme, changes):
    changes = {
        name: value.format(url=acme.provider.url) if isinstance(value, str) else value
        for name, value in changes.items()
    }
    response = sso.change(acme, **changes)
    assert response.status_code == 200, response.text
    assert response.json["issuer"] == acme.provider.url


@pytest.mark.parametrize("secret", [None, "", 5, "é"])
def test_invalid_secret_does_not_count(sso, acme, globex, secret):
    response = sso.change(acme, issuer=globex.provider.url, client_secret=secret)
    assert response.status_code == 400
    assert response.json["details"].startswith("client_secret: ")


def test_change_that_waits_for_another_one_puts_no_older_secret_back(sso, acme, database):
    other_change = "UPDATE identity_providers SET client_secret = 'sealed', updated_at = now() WHERE id = %s"
    with database.locked("identity_providers", acme.id, other_change) as lock:
        request = lock.start(lambda: sso.change(acme, name="Acme Inc."))
    assert_error(request.result(), 409, "validation_failed")
    assert (
        bytes(database.value("SELECT client_secret FROM identity_providers WHERE id = %(id)s", id=acme.id))
        == b"sealed"
    )
