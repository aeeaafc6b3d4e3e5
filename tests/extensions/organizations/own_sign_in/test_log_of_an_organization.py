"""The audit log of one organization, in the console, the API and by the command."""

import json

import pytest

from tests.support.answers import NO_ID
from tests.support.armed_console import armed as armed
from tests.support.armed_console import codes as codes
from tests.support.audit import record, refuse
from tests.support.commands import run_command
from tests.support.pages import words


@pytest.fixture
def beta_id(beta, database, alice):
    id = beta.rpartition("/")[2]
    refuse(database, alice.id, "change_refused", "last_owner", organization={"id": id, "slug": "beta"})
    return id


def test_console_filters_by_short_name_name_and_id_and_by_the_id_of_an_ended_one(
    armed, acme, beta_id, database
):
    for text in ("beta", "BETA", "Beta", beta_id, beta_id.upper()):
        page = armed.visit(f"/console/audit?organization={text}")
        assert "organization created: beta" in words(page)
        assert "acme" not in page.text.partition("<tbody>")[2]
    record(database, None, "organization_ended", organization={"id": NO_ID, "slug": "gone"})
    page = armed.visit(f"/console/audit?organization={NO_ID}")
    assert f'href="../console/audit?organization={NO_ID}"' in page.text
    assert "organization ended: gone" in words(page)
    assert "No organization has the short name or name nonsense." in words(
        armed.visit("/console/audit?organization=nonsense")
    )


def test_several_organizations_of_one_name_are_listed(armed, acme, beta_id, id, database):
    database.run("UPDATE organizations SET name = 'Twin'")
    page = armed.visit("/console/audit?organization=twin")
    assert "Several organizations are called twin." in words(page)
    for each in (id, beta_id):
        assert f'href="audit?organization={each}"' in page.text
    assert "<tbody>" not in page.text


def test_page_of_an_organization_shows_its_newest_entries_and_leads_to_all(armed, acme, id, database):
    for number in range(12):
        record(database, None, f"act_{number:02}", organization={"id": id, "slug": "acme"})
    page = armed.visit(f"/console/organizations/{id}")
    assert page.text.partition('id="log"')[2].count("<tr>") == 11
    assert f'href="../../console/audit?organization={id}">Audit log</a>' in page.text


def test_api_filters_by_id_and_short_name_and_refuses_another_name(client, service_role, acme, id, beta_id):
    def listed(value):
        return client.get(f"/admin/audit?organization={value}", headers=service_role)

    for value in (beta_id, beta_id.upper(), "beta"):
        answer = listed(value).json
        data = answer["data"]
        assert {entry["details"]["organization"]["id"] for entry in data} == {beta_id}
        assert answer["pagination"]["total"] == len(data)
        assert "change_refused" in {entry["action"] for entry in data}
    assert listed(NO_ID).json["data"] == []
    for value in ("nonsense", "Beta", "%00", ""):
        response = listed(value)
        assert response.status_code == 400
        assert response.json["error_code"] == "validation_failed"
        assert response.json["details"].startswith("organization: must")


def test_command_shows_the_log_of_an_organization(app, latchkey, acme, id, beta_id, database):
    lines = latchkey("explain", "--organization", "beta").stdout.splitlines()
    assert lines[0] == f"Beta (beta), {beta_id}:"
    assert any("organization created: beta" in line for line in lines)
    assert not any("acme" in line for line in lines)
    report = json.loads(latchkey("explain", "--organization", beta_id, "--most", "1", "--json").stdout)
    assert (report["kind"], len(report["events"]), report["has_more"]) == ("organization", 1, True)
    record(database, None, "organization_ended", organization={"id": NO_ID, "slug": "gone"})
    assert "organization ended: gone" in latchkey("explain", "--organization", NO_ID).stdout
    assert run_command(app, "explain", "--organization", "nonsense").exit_code == 3
    for wrong in ([], ["alice@example.com", "--organization", "beta"]):
        assert run_command(app, "explain", *wrong).exit_code == 2
