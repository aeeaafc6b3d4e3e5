"""AUTH_METRICS_BIND, and what deploy/ has for Prometheus and Grafana."""

import json
import re
import subprocess
from collections.abc import Iterator

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.metered import Metered
from tests.support.processes import CHECKOUT, wait_until
from tests.support.programs import find_program
from tests.support.users import PASSWORD

ALERTS = CHECKOUT / "deploy" / "prometheus" / "alerts.yml"
RULES = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((CHECKOUT / "deploy" / "grafana-dashboard.json").read_text())
EMAIL = "alice@example.com"


@pytest.fixture(scope="module")
def metered(serve, all_rows) -> Iterator[Metered]:
    """A service with a sign-in and a failed sign-in."""
    all_rows.empty()
    all_rows.run("INSERT INTO last_done (task) VALUES ('backup'), ('verified_backup')")
    with Metered(serve, AUTH_DELIVER="true") as metered:
        body = {"email": EMAIL, "password": PASSWORD, "email_confirm": True}
        created = metered.client.post("/admin/users", json=body, headers={"apikey": SERVICE_ROLE_KEY})
        assert created.status_code == 200
        session = metered.ask_for_tokens("password", email=EMAIL, password=PASSWORD).json
        metered.ask_for_tokens("password", email=EMAIL, password="wrong")
        for token in (session["refresh_token"], "nonsense"):
            metered.ask_for_tokens("refresh_token", refresh_token=token)
        metered.client.get("/user", headers={"Authorization": f"Bearer {session['access_token']}"})
        metered.client.post("/magiclink", json={"email": EMAIL})
        wait_until(lambda: metered.value("latchkey_deliveries_total", channel="email", outcome="sent"))
        wait_until(lambda: metered.value("latchkey_workers") == 2)
        yield metered


def documented_metrics() -> set[str]:
    page = (CHECKOUT / "docs" / "monitoring.md").read_text()
    return set(re.findall(r"^- `(latchkey_\w+)`", page, re.MULTILINE))


def queries() -> dict[str, str]:
    """Return the alerts' and panels' queries by name."""
    panels = {
        panel["title"]: " ".join(each["expr"] for each in panel["targets"]) for panel in DASHBOARD["panels"]
    }
    variables = {each["name"]: str(each["query"]) for each in DASHBOARD["templating"]["list"]}
    return {rule["alert"]: rule["expr"] for rule in RULES} | panels | variables


def test_metrics_are_those_of_the_documentation(metered):
    families = list(text_string_to_metric_families(metered.text()))
    assert {
        family.name + ("_total" if family.type == "counter" else "") for family in families
    } == documented_metrics()


def test_queries_use_only_metrics_and_labels_that_exist(metered):
    exposed = {name for name, _ in metered.samples()}
    labels = {label for _, pairs in metered.samples() for label, _ in pairs} | {"instance", "job"}
    for title, query in queries().items():
        assert set(re.findall(r"latchkey_\w+", query)) <= exposed, title
        assert set(re.findall(r"(\w+)(?:=~|!=|=)\"", query)) <= labels, title
    all_queries = " ".join(queries().values())
    assert {name for name in documented_metrics() if name not in all_queries} == set()


def test_requests_are_counted_by_route_and_status(metered):
    assert metered.client.get("/admin/users/5d0c1a2f-a5a0-4f5d-b8e7-0d9a0a3c2d1e").status_code == 401
    assert metered.client.open("/user", "BREW").status_code == 405
    labels = [dict(labels) for name, labels in metered.samples() if name == "latchkey_requests_total"]
    assert {"method": "GET", "route": "/admin/users/<user_id>", "status": "401"} in labels
    assert {"method": "other", "route": "none", "status": "405"} in labels
    assert "5d0c1a2f" not in metered.text()


def test_sign_ins_and_refreshes_are_counted_by_outcome(metered):
    for outcome in ("success", "invalid_credentials"):
        assert metered.value("latchkey_sign_ins_total", method="password", outcome=outcome) == 1
    for outcome in ("success", "refresh_token_not_found"):
        assert metered.value("latchkey_refreshes_total", outcome=outcome) == 1


def test_gauges_tell_the_state_of_the_node(metered):
    # Workers sample once a second, and the outbox is counted every five seconds.
    wait_until(lambda: metered.value("latchkey_database_up") == 1)
    wait_until(lambda: metered.value("latchkey_outbox_waiting", channel="email") == 0)
    wait_until(lambda: metered.value("latchkey_pool_connections_max") == 10)
    assert (metered.value("latchkey_webhook_failing"), metered.value("latchkey_degraded")) == (0, 0)
    assert 0 <= metered.value("latchkey_backup_age_seconds") < 600
    assert metered.value("latchkey_workers_wanted") == 2


def test_metrics_are_not_served_elsewhere(metered):
    assert (metered.text("/"), metered.text() == "") == ("", False)
    assert metered.client.get("/metrics").status_code == 404


def test_exposition_passes_promtool(metered):
    promtool = find_program("promtool", "prometheus", "THE METRICS ARE NOT CHECKED")
    result = subprocess.run(
        [promtool, "check", "metrics"], input=metered.text(), capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


def test_each_alert_is_played_in_the_tests_of_outages_and_documented():
    page = (CHECKOUT / "docs" / "monitoring.md").read_text()
    pages, _, tickets = page.partition("\n## What pages\n")[2].partition("\nTickets for the morning")
    documented_alerts = {
        (alert, severity)
        for table, severity in ((pages, "page"), (tickets, "ticket"))
        for cell in re.findall(r"^- (Latchkey[\w, ]+): ", table, re.MULTILINE)
        for alert in cell.split(", ")
    }
    played_alerts = set()
    tests = yaml.safe_load((ALERTS.parent / "outages.test.yml").read_text())["tests"]
    assert len(tests) >= 30
    for sample in (each for test in tests for each in test["promql_expr_test"][0].get("exp_samples", [])):
        labels = dict(re.findall(r'(\w+)="(\w+)"', sample["labels"]))
        played_alerts.add((labels["alertname"], labels["severity"]))
    assert (
        documented_alerts == played_alerts == {(rule["alert"], rule["labels"]["severity"]) for rule in RULES}
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", ALERTS),
        ("test", "rules", ALERTS.with_name("alerts.test.yml")),
        ("test", "rules", ALERTS.with_name("outages.test.yml")),
    ],
    ids=lambda arguments: arguments[-1].name,
)
def test_alerts_pass_promtool(arguments):
    promtool = find_program("promtool", "prometheus", "DEPLOY/PROMETHEUS IS NOT TESTED")
    result = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
