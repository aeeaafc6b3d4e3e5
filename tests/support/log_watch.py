"""Scans everything that applications and services log during the suite for the secrets that it uses."""

import json
import re
from collections.abc import Generator
from typing import Any

import pytest

# Passwords of the users, the service role key, access tokens, hashes, signed webhooks, refresh tokens and
# tokens of links.
SECRET = re.compile(
    r"(?:Correct|Wrong|Another|New)-Horse|the-service-role-key-of-these-tests|\beyJ[\w-]{10,}\.[\w-]{10,}|\$2[aby]\$\d\d\$|whsec_"
    r"|(?<![\w/+-])(?:[\w-]{56}|[\w-]{43})(?![\w/+-])"
)
leaks: list[str] = []


def scan_log(source: str, log: str) -> None:
    """Note each line of a log that contains a secret."""
    if not SECRET.search(log):
        return
    for line in log.splitlines():
        if match := SECRET.search(_without_id(line)):
            leaks.append(f"{source}: {match[0][:12]}… in {line[:300]}")


def _without_id(line: str) -> str:
    # Clients choose the ids of their requests.
    if not line.startswith("{"):
        return line
    try:
        event = json.loads(line)
    except ValueError:
        return line
    return json.dumps({name: value for name, value in event.items() if name != "request_id"})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Scan a test's log at its end. An xdist worker keeps most of a passed report to itself."""
    report = yield
    if report.when == "teardown":
        scan_log(report.nodeid, report.capstderr)
    if report.passed and hasattr(item.config, "workeroutput"):
        report.sections.clear()
        report.keywords = {}
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["secrets"] = leaks
    elif leaks:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect the findings of an xdist worker, which alone sees the logs of the services it started."""
    # A worker that crashed sends none.
    secrets = getattr(node, "workeroutput", {}).get("secrets", ())
    leaks.extend(line for line in secrets if line not in leaks)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if leaks:
        terminalreporter.section("SECRETS IN THE LOG", sep="=", red=True)
        for line in leaks:
            terminalreporter.line(line)
