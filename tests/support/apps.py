"""Applications in this process, kept between tests."""

import os
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar

import jinja2
import pytest
from flask import Flask
from jinja2.bccache import Bucket
from jinja2.sandbox import ImmutableSandboxedEnvironment
from werkzeug.routing import Map, Rule

from app import create_app
from auth.core import logs, settings
from auth.core.settings.statement_constants import statement_constants
from auth.web import edge
from auth.web.context import EXTENSION, Latchkey
from sql import pool
from tests.support.contract import CheckedClient
from tests.support.environment import clear_settings, make_keys


class KeptTemplates(jinja2.BytecodeCache):
    """Compiled templates by name and source: those of the pages take 40 ms, and those of all mails 300 ms."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._kept.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._kept[bucket.key, bucket.checksum] = bucket.code


TEMPLATES = KeptTemplates()
# A string may be in a text and in HTML, where it is compiled to be escaped.
MAILS = {False: KeptTemplates(), True: KeptTemplates()}


def mail_environment(*, autoescape: bool, **options: Any) -> ImmutableSandboxedEnvironment:
    return ImmutableSandboxedEnvironment(autoescape=autoescape, bytecode_cache=MAILS[autoescape], **options)


class KeptRule(Rule):
    """A route that only the first application compiles: compiling all routes takes 35 ms."""

    _kept: ClassVar[dict[object, Rule]] = {}

    def bind(self, map: Map, rebind: bool = False) -> None:
        kept = self._kept.setdefault((self.rule, self.endpoint, frozenset(self.methods or ())), self)
        if kept is self:
            super().bind(map, rebind)
        else:
            vars(self).update(vars(kept), map=map)


def new_app(environment: dict[str, str]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        clear_settings(patch)
        for name, value in environment.items():
            patch.setenv(name, value)
        make_keys(Path(environment["AUTH_STATE_DIR"]))
        app = create_app(settings.load(os.devnull))
    app.jinja_env.bytecode_cache = TEMPLATES
    app.test_client_class = CheckedClient
    return app


# Caches of the database, and counters: parts and attributes that any test may change.
_CHANGING = {
    *("health", "openid_keys"),
    *("passwords.queue_length", "passwords.refusals", "leaked_passwords.failures"),
}


def _state_of(app: Flask) -> dict[str, Any]:
    """Return the state of an application that a test could change: its parts and their attributes; of a dict only the
    keys, because rereading the key ring creates new values."""
    parts = app.extensions[EXTENSION]
    parts_of_app = {"parts": parts, **{f"config {name}": value for name, value in app.config.items()}}
    for name in vars(parts).keys() - _CHANGING:
        for key, value in getattr(getattr(parts, name), "__dict__", {}).items():
            parts_of_app[f"{name}.{key}"] = set(value) if isinstance(value, dict) else value
    return {name: value for name, value in parts_of_app.items() if name not in _CHANGING}


class Apps:
    """Applications by their settings, kept between tests: making and connecting one takes 50 ms."""

    LIMIT = 40
    POOLS = 12

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._idle: list[tuple[dict[str, str], Flask]] = []
        self._pools: dict[str, pool.Pool] = {}
        # The state of the applications that tests have used since the last `check`.
        self._used: dict[Flask, dict[str, Any]] = {}

    def take(self, changes: dict[str, str]) -> Flask:
        """Return an application that no test uses, which logs to the current standard error."""
        for position, (with_changes, app) in enumerate(self._idle):
            if with_changes == changes:
                del self._idle[position]
                logs.configure(app.extensions[EXTENSION].settings, edge.log_context)
                break
        else:
            app = self.make(changes)
            self._share_connections(app.extensions[EXTENSION])
        self.use(app)
        return app

    def make(self, changes: dict[str, str]) -> Flask:
        """Return a new application."""
        return new_app({**self._environment, **changes})

    def use(self, app: Flask) -> None:
        """Let `check` examine an application."""
        self._used.setdefault(app, _state_of(app))

    def give_back(self, changes: dict[str, str], app: Flask) -> None:
        self._idle.append((changes, app))
        while len(self._idle) > self.LIMIT:
            del self._idle[0]
        while len(self._pools) > self.POOLS:
            self._pools.pop(next(iter(self._pools))).close()

    def check(self) -> None:
        """Fail, and drop changed applications, unless all have the same state as before the test."""
        used, self._used, changed = self._used, {}, set()
        for app, before in used.items():
            now = _state_of(app)
            names = {name for name, value in before.items() if name not in now or now[name] != value}
            if names:
                changed |= names
                self._idle = [each for each in self._idle if each[1] is not app]
        assert not changed, (
            f"this test leaves {', '.join(sorted(changed))} of an application changed for later tests:"
            " take a new one by make_app(fresh=True)"
        )

    def close(self) -> None:
        for _, app in self._idle:
            app.extensions[EXTENSION].db.close()

    def _share_connections(self, parts: Latchkey) -> None:
        """Use the connections of an earlier application: Postgres takes 30 ms for the first requests of a new one.

        Only applications with the same constants can share them, because prepared statements contain these.
        """
        settings = parts.settings
        key = repr((settings.find_database(), settings.db_prepare, statement_constants(settings)))
        # Move the pool to the end: `give_back` closes the first ones.
        parts.db.pool = self._pools[key] = self._pools.pop(key, parts.db.pool)
