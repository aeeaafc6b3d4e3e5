"""Settings of mail and SMS."""

import os

import pytest

from auth.core import settings
from tests.support.environment import clear_settings


@pytest.fixture
def load(monkeypatch, tmp_path):
    clear_settings(monkeypatch)
    monkeypatch.setenv("AUTH_STATE_DIR", str(tmp_path))

    def load(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return settings.load(os.devnull, missing_secrets="ignore")

    return load
