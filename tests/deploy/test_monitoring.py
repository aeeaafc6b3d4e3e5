"""AUTH_METRICS_BIND, and what deploy/ has for Prometheus and Grafana."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from auth.web.request_metrics import SIGN_INS
from tests.support.cast import PASSWORD
from tests.support.processes import CHECKOUT, Service, free_port, processes_of, wait_until
from tests.support.programs import find_program

ALERTS = CHECKOUT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = json.loads((CHECKOUT / "deploy" / "grafana-dashboard.json").read_text())
EMAIL = "alice@example.com"


class Metered:
    """A service with metrics, and clients of both ports."""

    def __init__(self, directory: Path, **changes: Any) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self.state_dir = directory / "var"
        self.service = Service(self.state_dir, AUTH_METRICS_BIND=self.address, **changes)

    def __enter__(self) -> Self:
        self.service.__enter__()
        self.api = httpx.Client(base_url=f"http://127.0.0.1:{self.service.port}")
        wait_until(lambda: self.text())
        return self

    def __exit__(self, *_: object) -> None:
        self.api.close()
        self.service.__exit__()

    def ask_for_tokens(self, grant: str, **body: str) -> httpx.Response:
        return self.api.post("/token", params={"grant_type": grant}, json=body)

    def text(self) -> str:
        try:
            return httpx.get(f"http://{self.address}/metrics").text
        except httpx.TransportError:
            return ""

    def samples(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self.text())
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples().get((name, frozenset(labels.items())))

    def requests(self) -> float:
        return sum(value for (name, _), value in self.samples().items() if name == "latchkey_requests_total")

    def workers(self) -> set[int]:
        found = {pid for pid, command in processes_of(self.state_dir).items() if "gunicorn" in command}
        return found - {self.service.process.pid}


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="latchkey-tests-") as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


@pytest.fixture(scope="module")
def metered(directory) -> Iterator[Metered]:
    """A service with a sign-in and a failed sign-in."""
    with Metered(directory) as metered:
        key = (metered.state_dir / "service_role_key").read_text().strip()
        body = {"email": EMAIL, "password": PASSWORD, "email_confirm": True}
        assert metered.api.post("/admin/users", json=body, headers={"apikey": key}).status_code == 200
        session = metered.ask_for_tokens("password", email=EMAIL, password=PASSWORD).json()
        metered.ask_for_tokens("password", email=EMAIL, password="wrong")
        for token in (session["refresh_token"], "nonsense"):
            metered.ask_for_tokens("refresh_token", refresh_token=token)
        metered.api.get("/user", headers={"Authorization": f"Bearer {session['access_token']}"})
        metered.api.post("/magiclink", json={"email": EMAIL})
        wait_until(lambda: metered.value("latchkey_deliveries_total", channel="email", outcome="sent"))
        wait_until(lambda: metered.value("latchkey_workers") == 2)
        yield metered


def documented() -> set[str]:
    page = (CHECKOUT / "docs" / "monitoring.md").read_text()
    return set(re.findall(r"^\| `(latchkey_\w+)`", page, re.MULTILINE))


def queries() -> dict[str, str]:
    """Return the alerts' and panels' queries by name."""
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    panels = {
        panel["title"]: " ".join(each["expr"] for each in panel["targets"]) for panel in DASHBOARD["panels"]
    }
    variables = {each["name"]: str(each["query"]) for each in DASHBOARD["templating"]["list"]}
    return {rule["alert"]: rule["expr"] for rule in rules} | panels | variables


def test_metrics_are_those_of_the_documentation(metered):
    families = list(text_string_to_metric_families(metered.text()))
    assert {
        family.name + ("_total" if family.type == "counter" else "") for family in families
    } == documented()


def test_queries_use_only_metrics_and_labels_that_exist(metered):
    exposed = {name for name, _ in metered.samples()}
    labels = {label for _, pairs in metered.samples() for label, _ in pairs} | {"instance", "job"}
    for title, query in queries().items():
        assert set(re.findall(r"latchkey_\w+", query)) <= exposed, title
        assert set(re.findall(r"(\w+)(?:=~|!=|=)\"", query)) <= labels, title
    every = " ".join(queries().values())
    assert {name for name in documented() if name not in every} == set()


def test_requests_are_counted_by_route_and_status(metered):
    before = metered.samples()
    assert metered.api.get("/admin/users/5d0c1a2f-a5a0-4f5d-b8e7-0d9a0a3c2d1e").status_code == 401
    assert metered.api.get("/nonsense/5d0c1a2f").status_code == 404
    assert metered.api.request("BREW", "/user").status_code == 405
    after = metered.samples()
    new = {
        dict(labels)["route"]: dict(labels)
        for name, labels in after.keys() - before.keys()
        if name.endswith("_requests_total")
    }
    assert new["/admin/users/<user_id>"]["status"] == "401"
    labels = [dict(labels) for name, labels in after if name == "latchkey_requests_total"]
    assert {"method": "GET", "route": "none", "status": "404"} in labels
    assert {"method": "other", "route": "none", "status": "405"} in labels
    assert "5d0c1a2f" not in metered.text()


def test_sign_ins_and_refreshes_are_counted_by_outcome(metered):
    for outcome in ("success", "invalid_credentials"):
        assert metered.value("latchkey_sign_ins_total", method="password", outcome=outcome) == 1
    for outcome in ("success", "refresh_token_not_found"):
        assert metered.value("latchkey_refreshes_total", outcome=outcome) == 1


def test_endpoints_that_count_as_signing_in_exist(default_app):
    assert set(SIGN_INS) <= set(default_app.view_functions)


def test_gauges_tell_the_state_of_the_node(metered):
    assert metered.value("latchkey_database_up") == 1
    assert metered.value("latchkey_outbox_waiting", channel="email") == 0
    assert metered.value("latchkey_pool_connections_max") == 18


def test_metrics_are_not_served_elsewhere(metered):
    assert httpx.get(f"http://{metered.address}/").status_code == 404
    assert metered.api.get("/metrics").status_code == 404


def test_totals_survive_a_killed_worker_without_new_files(metered):
    def slots() -> set[str]:
        return {path.name for path in metered.state_dir.glob("metrics-*/*.lock")}

    total, workers = metered.requests(), metered.workers()
    assert slots() == {"0.lock", "1.lock", "2.lock"}
    os.kill(min(workers), signal.SIGKILL)
    wait_until(lambda: metered.workers() != workers)
    assert metered.value("latchkey_workers") in (None, 1, 2)
    wait_until(lambda: len(metered.workers()) == 2 and metered.value("latchkey_workers") == 2)
    assert metered.requests() >= total
    assert slots() == {"0.lock", "1.lock", "2.lock"}


def test_totals_survive_a_reload(metered):
    total, before = metered.requests(), set(processes_of(metered.state_dir)) - {metered.service.process.pid}
    before -= {pid for pid, command in processes_of(metered.state_dir).items() if "postgres" in command}
    metered.service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: before.isdisjoint(processes_of(metered.state_dir)), 30)
    wait_until(lambda: metered.value("latchkey_workers") == 2, 30)
    assert metered.requests() >= total


def test_metrics_are_served_without_delivery_and_begin_anew(directory, new_database):
    metered = Metered(
        directory / "other", AUTH_DELIVER="false", DATABASE_URL=new_database(), AUTH_WORKERS="1"
    )
    stale = metered.state_dir / f"metrics-{metered.service.port}"
    stale.mkdir(parents=True)
    (stale / "counter_0.db").write_bytes(b"of a service that was killed")
    with metered:
        assert metered.value("latchkey_database_up") == 1
        wait_until(lambda: metered.value("latchkey_workers") == 1)
        assert not [path for path in stale.iterdir() if b"killed" in path.read_bytes()]


def test_nothing_is_imported_or_counted_without_the_setting(environment, tmp_path):
    code = (
        "import sys, app, auth.delivery.__main__; app.create_app(); print('prometheus_client' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        env={**environment, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


def test_exposition_passes_promtool(metered):
    promtool = find_program("promtool", "prometheus", "THE METRICS ARE NOT CHECKED")
    done = subprocess.run(
        [promtool, "check", "metrics"], input=metered.text(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments", [("check", "rules", "alerts.yml"), ("test", "rules", "alerts.test.yml")]
)
def test_alerts_pass_promtool(arguments):
    promtool = find_program("promtool", "prometheus", "DEPLOY/PROMETHEUS IS NOT TESTED")
    done = subprocess.run(
        [promtool, *arguments], cwd=ALERTS.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
