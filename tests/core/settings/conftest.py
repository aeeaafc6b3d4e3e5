"""Fixtures of the tests of settings."""

import os

import pytest

from auth.core import settings
from tests.support.environment import clear_settings, make_keys


@pytest.fixture
def load(monkeypatch, tmp_path):
    """Return a function that loads the settings of an environment with these variables only."""
    clear_settings(monkeypatch)
    monkeypatch.chdir(tmp_path)
    make_keys(tmp_path / "var")
    # Loading adds the variables of .env to it.
    without = os.environ.copy()

    def load(**environment):
        monkeypatch.setattr(os, "environ", without | {"AUTH_STATE_DIR": str(tmp_path / "var")} | environment)
        return settings.load()

    return load
