"""What the console and the command show of an organization's sign-in."""

import pytest

from tests.support.armed_console import armed as armed
from tests.support.armed_console import codes as codes
from tests.support.commands import run_command
from tests.support.pages import words


def test_organization_and_its_provider_lead_to_each_other(armed, id, provider):
    organization = armed.visit(f"/console/organizations/{id}")
    assert "Acme-Idp" in words(organization)
    assert f'/console/providers/{provider}"' in organization.text
    page = armed.visit(f"/console/providers/{provider}")
    assert "Organization Acme" in words(page)
    assert f'/console/organizations/{id}"' in page.text


@pytest.mark.parametrize(
    ("change", "state", "tone"),
    [
        ("tried_at = NULL", "off, not tested", ""),
        ("tried_at = now()", "off", ""),
        ("is_on = true", "on", "good"),
        ("is_blocked = true", "disabled", "bad"),
    ],
)
def test_operator_reads_whether_owners_or_an_operator_turned_a_provider_off(
    armed, id, provider, database, change, state, tone
):
    database.run(f"UPDATE identity_providers SET {change}")
    html = armed.visit(f"/console/organizations/{id}").text
    assert f'<span class="quiet">{state}</span>' in html
    html = armed.visit(f"/console/providers/{provider}").text
    assert f'<span class="badge {tone}">{state}</span>' in html


def test_list_says_which_organization_requires_its_own_sign_in(armed, on, database):
    assert "own sign-in" not in words(armed.visit("/console/organizations"))
    database.run("UPDATE organizations SET needs_own_provider = true")
    assert "own sign-in" in words(armed.visit("/console/organizations"))


def test_user_page_says_that_a_provider_made_a_member(armed, acme, alice, database):
    database.run("UPDATE memberships SET added_by = 'provider'")
    assert "by a provider of the organization" in words(armed.visit(f"/console/users/{alice.id}"))


def test_command_shows_the_providers_of_an_organization(service, provider, acme):
    result = run_command(service.app, "organizations", "show", "acme")
    assert f"provider: {provider}  Acme-Idp  off, not tested" in result.stdout.splitlines()
