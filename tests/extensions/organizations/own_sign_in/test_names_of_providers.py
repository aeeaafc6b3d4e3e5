"""The name of a provider and of its organization, wherever operators read about it."""

import json

import pytest

from sql import queries
from tests.support.armed_console import armed as armed
from tests.support.armed_console import codes as codes
from tests.support.pages import words

NAMED = "Acme-Idp (Acme)"


@pytest.fixture
def statements_of_page(monkeypatch):
    """Count how often a page runs a statement."""

    def statements_of_page(visitor, path, name):
        calls, run = [], getattr(queries, name)

        def counted(*arguments, **parameters):
            calls.append(parameters)
            return run(*arguments, **parameters)

        monkeypatch.setattr(queries, name, counted)
        assert visitor.visit(path).status == 200
        return len(calls)

    return statements_of_page


def test_log_names_a_provider_and_its_organization_and_links_to_both(armed, on, provider, id):
    page = armed.visit("/console/audit")
    assert (
        f'identity linked (<a href="../console/providers/{provider}" title="The provider {provider}">{NAMED}</a>)'
        in page.text
    )
    assert f"Provider enabled: {NAMED}" in words(page).replace("provider enabled", "Provider enabled")
    assert f'href="../console/organizations/{id}" title="Acme, {id}">acme</a>' in page.text
    assert f"sso:{provider}" not in page.text


def test_user_page_names_the_provider_of_sessions_identities_and_the_timeline(armed, on, provider, alice):
    page = armed.visit(f"/console/users/{alice.id}")
    link = f'href="../../console/providers/{provider}" title="The provider {provider}">{NAMED}</a>'
    assert page.text.count(link) >= 3
    assert "or the provider Acme-Idp (Acme)" in words(page)
    assert f"sso:{provider}" not in page.text


def test_list_of_users_names_the_provider_and_filters_by_it(armed, on, provider, bob):
    text = words(armed.visit(f"/console/users?provider=sso:{provider}"))
    assert NAMED in text
    assert "alice@example.com" in text
    assert bob.email not in text


def test_explanation_and_timeline_of_the_api_name_it_and_keep_the_stored_method(
    latchkey, on, provider, alice, service_role, client
):
    output = latchkey("explain", alice.email).stdout
    assert f"signs in with password, email, {NAMED}" in output
    assert f"identity linked ({NAMED})" in output
    assert f"sso:{provider}" not in output
    report = json.loads(latchkey("explain", alice.email, "--json").stdout)
    assert f"sso:{provider}" in report["user"]["providers"]
    items = client.get(f"/admin/users/{alice.id}/timeline", headers=service_role).json["data"]
    linked = next(item for item in items if item["kind"] == "act" and item["name"] == "identity_linked")
    assert f"identity linked ({NAMED})" in linked["text"]
    assert linked["details"]["provider"] == f"sso:{provider}"


def test_deleted_provider_keeps_the_name_of_the_log(armed, on, provider, latchkey, database, alice):
    latchkey("providers", "delete", provider, "--yes")
    text = words(armed.visit(f"/console/users/{alice.id}"))
    assert "Acme-Idp, deleted (acme)" in text
    database.run("UPDATE audit_log SET details = details - 'provider_name'")
    assert "a deleted provider (acme)" in words(armed.visit(f"/console/users/{alice.id}"))
    database.run("DELETE FROM audit_log WHERE action = 'provider_deleted'")
    page = armed.visit(f"/console/users/{alice.id}")
    assert f'<span title="The provider {provider}">a deleted provider</span>' in page.text


def test_name_that_imitates_a_sentence_stays_quoted(armed, on, provider, database):
    name = "Google), by the service role key"
    database.run("UPDATE identity_providers SET name = %(name)s", name=name)
    assert f"“{name}” (Acme)" in words(armed.visit("/console/audit"))


def test_names_of_a_page_take_one_statement_and_none_without_such_entries(
    armed, alice, on, statements_of_page
):
    assert statements_of_page(armed, "/console/audit?action=banned", "list_mentions") == 0
    for path in ("/console/audit", f"/console/users/{alice.id}", "/console/users"):
        assert statements_of_page(armed, path, "list_mentions") == 1
