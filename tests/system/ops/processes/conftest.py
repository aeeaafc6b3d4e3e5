"""Fixtures of the doctor's tests: a healthy service, and a function that runs one check."""

import dataclasses
import os

import pytest

from auth.core.keys import fingerprints
from auth.ops.doctor import examination
from auth.ops.doctor.examination import CHECKS, examine
from tests.support import sentences


@pytest.fixture
def base_url(server):
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def healthy(parts, carol, database, database_url, base_url, running_service):
    """The settings of a healthy service with an administrator, a delivery process and a backup."""
    own_settings = {"base_url": base_url, "site_url": base_url, "state_dir": running_service.state_dir}
    healthy = dataclasses.replace(parts.settings, database_owner_url=database_url, **own_settings)
    fingerprints.keep(parts.db, healthy)
    database.run("INSERT INTO last_done (task) VALUES ('delivery'), ('backup')")
    return healthy


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    monkeypatch.setattr(examination, "SECONDS", 20.0)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))


@pytest.fixture
def look(healthy):
    """Return a function that runs one check on changed settings, and returns the setting to write, the reason why the
    check does not apply, or None if all is well.
    """

    def look(name, *, resolver=None, **changes):
        skip = {check.name for check in CHECKS} - {name}
        (result,) = examine(dataclasses.replace(healthy, **changes), skip, resolver)
        assert result.check == name
        if result.status == "ok":
            assert result.remedy is None
            return None
        if result.status == "skipped":
            return result.text.partition(": not checked, ")[2]
        assert result.status in ("failed", "note"), result
        assert sentences.problem(result.text) is None, result
        assert sentences.problem_of_remedy(result.remedy) is None, result
        return result.remedy

    return look
