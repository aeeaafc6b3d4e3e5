"""Keeps what applications and clients would create again, which takes longer than the requests of a test."""

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import jinja2
import pytest
from _pytest.python import importtestmodule
from werkzeug.routing import Rule


@pytest.fixture(scope="session", autouse=True)
def _routes_and_templates_compiled_once() -> Iterator[None]:
    """Compile each route and template once: 50 ms for each application, 60 ms for each mailbox."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rule, "compile", _rules_compiled_once())
        patch.setattr(jinja2.Environment, "compile", _templates_compiled_once())
        yield


@pytest.fixture(scope="session", autouse=True)
def _certificates_read_once() -> Iterator[None]:
    """httpx reads all certificate authorities for each client: 36 ms."""
    with pytest.MonkeyPatch.context() as patch:
        once = functools.cache(httpx.create_ssl_context)
        patch.setattr(httpx._transports.default, "create_ssl_context", once)
        yield


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Import a share of the test modules first, whose rewritten assertions the other workers then load.

    To rewrite all takes ten seconds.
    """
    if isinstance(collector, pytest.Session) and "PYTEST_XDIST_WORKER" in os.environ:
        number, count = os.environ["PYTEST_XDIST_WORKER"][2:], os.environ["PYTEST_XDIST_WORKER_COUNT"]
        places = [Path(argument) for argument in collector.config.args]
        files = sorted(file for place in places for file in place.rglob("test_*.py"))
        for file in files[int(number) :: int(count)]:
            # The collection reports errors, and does not look into tests/faults.
            with suppress(Exception, pytest.skip.Exception):
                if "faults" not in file.parts:
                    importtestmodule(file, collector.config)


def _rules_compiled_once() -> Callable[[Rule], None]:
    compile = Rule.compile
    compiled: dict[object, dict[str, Any]] = {}

    def compile_once(rule: Rule) -> None:
        key = rule.rule, rule.merge_slashes, repr(rule.defaults)
        if key in compiled:
            vars(rule).update(compiled[key])
            for name in ("_build", "_build_unknown"):
                setattr(rule, name, compiled[key][name].__func__.__get__(rule))
        else:
            compile(rule)
            names = ("_parts", "_trace", "_converters", "arguments", "_build", "_build_unknown")
            compiled[key] = {name: vars(rule)[name] for name in names}

    return compile_once


def _templates_compiled_once() -> Callable[..., Any]:
    compile = jinja2.Environment.compile
    compiled: dict[object, Any] = {}

    def compile_once(environment: jinja2.Environment, *arguments: Any, **options: Any) -> Any:
        # Flask's choice whether to escape is a method of each application.
        escape: Any = environment.autoescape
        key = (
            *(type(environment), getattr(escape, "__func__", escape)),
            *(environment.trim_blocks, environment.lstrip_blocks),
            *(arguments, repr(options)),
        )
        if key not in compiled:
            compiled[key] = compile(environment, *arguments, **options)
        return compiled[key]

    return compile_once
