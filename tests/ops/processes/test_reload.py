"""A reload, which a HUP of the master begins."""

from types import SimpleNamespace

import pytest

from auth.core.settings import served
from auth.ops.processes import supervisor


@pytest.mark.parametrize("error", [RuntimeError("of a library"), UnicodeError("of a file")])
def test_any_error_of_a_reload_is_reported_and_keeps_the_workers(error, monkeypatch, parts, capsys):
    def fail():
        raise error

    monkeypatch.setattr(served, "current", parts.settings)
    monkeypatch.setattr(supervisor, "_load", fail)
    replaced = []
    server = SimpleNamespace(ends_with_terminal=False, embedded_postgres=None)
    supervisor._hang_up(server, lambda: replaced.append(1))
    output = "".join(capsys.readouterr())
    assert (
        replaced,
        f"Not reloaded; the workers keep running: {type(error).__name__}: {error}" in output,
    ) == (
        [],
        True,
    )
