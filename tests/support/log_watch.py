"""Scans everything that applications and services log during the suite for the secrets that it uses."""

import json
import re
from typing import Any

import pytest

# Passwords of the cast, the service role key, access tokens, hashes, signed webhooks, refresh tokens and
# tokens of links.
SECRET = re.compile(
    r"(?:Correct|Wrong|Another|New)-Horse|the-service-role-key-of-these-tests|\beyJ[\w-]{10,}\.[\w-]{10,}|\$2[aby]\$\d\d\$|whsec_"
    r"|(?<![\w/+-])(?:[\w-]{56}|[\w-]{43})(?![\w/+-])"
)
found: list[str] = []


def scan_log(where: str, log: str) -> None:
    """Note each line of a log that contains a secret."""
    for line in log.splitlines():
        if match := SECRET.search(_without_id(line)):
            found.append(f"{where}: {match[0][:12]}… in {line[:300]}")


def _without_id(line: str) -> str:
    # Clients choose the ids of their requests.
    if not line.startswith("{"):
        return line
    try:
        event = json.loads(line)
    except ValueError:
        return line
    return json.dumps({name: value for name, value in event.items() if name != "request_id"})


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    scan_log(report.nodeid, report.capstderr)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["secrets"] = found
    elif found:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect the findings of an xdist worker, which alone sees the logs of the services it started."""
    found.extend(line for line in node.workeroutput["secrets"] if line not in found)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if found:
        terminalreporter.section("SECRETS IN THE LOG", sep="=", red=True)
        for line in found:
            terminalreporter.line(line)
