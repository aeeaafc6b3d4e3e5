"""Records what Prometheus would see of the real service in ordinary events, for test_monitoring.py:

    python -m tests.system.deploy.record_series

writes `series/*.test.yml` within minutes. Each is a test of promtool: it replays the recorded seconds, repeats
their last values for three hours, longer than the window of any alert, and expects that no alert fires.
"""

import contextlib
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

from auth.ops.backups import age
from tests.support.environment import ENVIRONMENT, SERVICE_ROLE_KEY
from tests.support.processes import CHECKOUT, Service, free_port, short_directory
from tests.support.users import PASSWORD

DIRECTORY = Path(__file__).parent / "series"
ALERTS = CHECKOUT / "deploy" / "prometheus" / "alerts.yml"
RULES = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
USED = {name for rule in RULES for name in re.findall(r"latchkey_\w+", rule["expr"])}
_LABELS = 'instance="a", job="latchkey"'
_HELD = 3 * 3600  # seconds
_HEAD = """\
# {title}, recorded by tests/system/deploy/record_series.py
rule_files: [../../../deploy/prometheus/alerts.yml]
evaluation_interval: 15s
tests:
  - name: "{title}"
    interval: 1s
    promql_expr_test:
      - {{expr: 'count by (alertname) (count_over_time(ALERTS{{alertstate="firing"}}[4h]))', eval_time: {end}s}}
    input_series:
"""


class _Recorder:
    """Scrapes a service once a second."""

    def __init__(self, service: Service, address: str) -> None:
        self._http = httpx.Client(timeout=5)
        self._service, self._url = service, f"http://{address}/metrics"
        self._seconds: list[dict[str, float]] = []

    def watch(self, seconds: int) -> None:
        for _ in range(seconds):
            began = time.monotonic()
            self._seconds.append(self._scrape())
            time.sleep(max(0.0, began + 1 - time.monotonic()))

    def _scrape(self) -> dict[str, float]:
        try:
            text = self._http.get(self._url).text
        except httpx.TransportError:
            return {f"up{{{_LABELS}}}": 0}
        families = list(text_string_to_metric_families(text))
        samples = [sample for family in families for sample in family.samples if sample.name in USED]
        # /user is the only route of an alert on durations.
        found = (each for each in samples if "le" not in each.labels or each.labels["route"] == "/user")
        return {f"up{{{_LABELS}}}": 1} | {_series(each.name, each.labels): each.value for each in found}

    def write(self, name: str, title: str) -> None:
        end = len(self._seconds) + _HELD
        lines = [_HEAD.format(title=title, end=end)]
        for series in sorted(set().union(*self._seconds)):
            values = [each.get(series) for each in self._seconds]
            lines.append(f"      - {{series: '{series}', values: '{_notation(series, values)}'}}\n")
        DIRECTORY.mkdir(exist_ok=True)
        (DIRECTORY / f"{name}.test.yml").write_text("".join(lines))


def _series(name: str, labels: dict[str, str]) -> str:
    pairs = [_LABELS, *(f'{label}="{value}"' for label, value in sorted(labels.items()))]
    return f"{name}{{{', '.join(pairs)}}}"


def _notation(series: str, values: list[float | None]) -> str:
    """Write values in promtool's notation: `2x3` is four times 2, `_` a missing one."""
    texts = ["_" if value is None else f"{value:.3f}".rstrip("0").rstrip(".") for value in values]
    # A failed scrape ends a series.
    texts = ["stale" if text == "_" and i and texts[i - 1] != "_" else text for i, text in enumerate(texts)]
    runs: list[list[Any]] = []
    for text in texts:
        if runs and runs[-1][0] == text:
            runs[-1][1] += 1
        else:
            runs.append([text, 1])
    if runs[-1][0] != "stale":
        runs[-1][1] += 0 if "_age_" in series else _HELD
        if "_age_" in series:
            runs.append([f"{runs[-1][0]}+1", _HELD])
    return " ".join(text if times == 1 else f"{text}x{times - (text != '_')}" for text, times in runs)


@contextlib.contextmanager
def _traffic(service: Service) -> Iterator[None]:
    """Sign-ins, refreshes and reads of the user, also while the service does not answer."""
    ended = threading.Event()

    def run() -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{service.port}", timeout=30) as client:
            for number in count():
                with contextlib.suppress(httpx.TransportError, KeyError):
                    if number % 40 == 0:
                        body = {"email": "alice@example.com", "password": PASSWORD}
                        tokens = client.post("/token?grant_type=password", json=body).json()
                    elif number % 20 == 0:
                        body = {"refresh_token": tokens["refresh_token"]}
                        tokens = client.post("/token?grant_type=refresh_token", json=body).json()
                    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
                    client.get("/user", headers=headers)
                if ended.wait(0.2):
                    return

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(run)
        try:
            yield
        finally:
            ended.set()
        done.result()


@contextlib.contextmanager
def _service() -> Iterator[tuple[Service, _Recorder, dict[str, str]]]:
    """A service with a user, whose newest backup is of the night before."""
    address = f"127.0.0.1:{free_port()}"
    settings: dict[str, Any] = {
        **ENVIRONMENT,
        "AUTH_DELIVER": "true",
        "AUTH_METRICS_BIND": address,
        "AUTH_BACKUP_RECIPIENTS": age.new_identity()[0],
    }
    with short_directory() as directory, Service(directory / "var", **settings) as service:
        headers = {"apikey": SERVICE_ROLE_KEY}
        body = {"email": "alice@example.com", "password": PASSWORD, "email_confirm": True}
        url = f"http://127.0.0.1:{service.port}/admin/users"
        assert httpx.post(url, json=body, headers=headers).status_code == 200
        with _traffic(service):
            time.sleep(10)
        _backup(service, settings)
        yield service, _Recorder(service, address), settings


def _backup(service: Service, settings: dict[str, str]) -> None:
    command = [sys.executable, "-m", "auth.ops.commands", "backup", "backup.age"]
    environment = settings | {"AUTH_STATE_DIR": str(service.state_dir), "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        command,
        cwd=service.state_dir.parent,
        env=environment | {"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _reload(recorder: _Recorder, service: Service, _settings: dict[str, str]) -> None:
    with _traffic(service):
        recorder.watch(20)
        for _ in range(2):
            service.process.send_signal(signal.SIGHUP)
            recorder.watch(40)


def _restart(recorder: _Recorder, service: Service, _settings: dict[str, str]) -> None:
    with _traffic(service), ThreadPoolExecutor(1) as pool:
        recorder.watch(20)
        service.process.terminate()
        restarted = pool.submit(_start_after_end, service)
        recorder.watch(80)
        restarted.result()


def _start_after_end(service: Service) -> None:
    service.process.wait()
    service.start_again()


def _back_up(recorder: _Recorder, service: Service, settings: dict[str, str]) -> None:
    with _traffic(service), ThreadPoolExecutor(1) as pool:
        recorder.watch(20)
        backed_up = pool.submit(_backup, service, settings)
        while not backed_up.done():
            recorder.watch(10)
        backed_up.result()
        recorder.watch(20)


def _rest(recorder: _Recorder, _service: Service, _settings: dict[str, str]) -> None:
    recorder.watch(100)


SCENES: dict[str, tuple[str, Callable[[_Recorder, Service, dict[str, str]], None]]] = {
    "reload": ("two reloads (HUP) under traffic", _reload),
    "deploy": ("a restart of the unit under traffic, as by deploy/install", _restart),
    "backup": ("the backup of a night, with its rehearsal", _back_up),
    "sunday": ("a quiet Sunday, without requests", _rest),
}


def _record(name: str) -> None:
    title, play = SCENES[name]
    with _service() as (service, recorder, settings):
        play(recorder, service, settings)
        recorder.write(name, title)


def main() -> None:
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(_record, name) for name in SCENES]:
            done.result()


if __name__ == "__main__":
    main()
