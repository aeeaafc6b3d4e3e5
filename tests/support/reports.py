"""Spares xdist half of its messages, which tell the terminal nothing."""

from collections.abc import Callable
from typing import Any

import pytest


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have an xdist worker send no beginnings, set-ups and clean-ups that passed: a second for 2,000 tests."""
    options = session.config.option
    if options.verbose > 0 or options.durations or options.xmlpath:
        return
    for plugin in session.config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            plugin.sendevent = _fewer(plugin.sendevent)


def _fewer(send: Callable[..., None]) -> Callable[..., None]:
    def send_if_shown(name: str, **values: Any) -> None:
        is_step = name == "testreport" and values["data"]["when"] != "call"
        if name != "logstart" and not (is_step and values["data"]["outcome"] == "passed"):
            send(name, **values)

    return send_if_shown
