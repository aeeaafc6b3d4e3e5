"""`latchkey webhooks list`, `enable` and `test`."""

import json

import pytest

from auth.extensions.webhooks import command as webhooks
from tests.support.commands import run_command
from tests.support.deliverers import RunningDeliverer, deliverer


@pytest.fixture
def run(app):
    def run(*arguments, status=0, **options):
        result = run_command(app, "webhooks", *arguments, **options)
        assert result.exit_code == status, result.output
        return result.output

    return run


def test_disabled_webhook_is_listed_and_enabled(run, hooks, target, database):
    webhook = hooks.register(f"{target.url}/secret-path")
    assert f"{webhook['id']}  {target.url}  works; 0 waiting\n" in run("list")
    database.run(
        "UPDATE webhooks SET disabled_at = now(), disabled_reason = 'failing', failing_since = now()"
    )
    output = run("list")
    assert output.endswith(": failed for three days; 0 waiting\n")
    assert "secret-path" not in output + run("list", "--json")
    assert json.loads(run("list", "--json"))["disabled_reason"] == "failing"
    assert "Without a terminal, add --yes" in run("enable", webhook["id"], status=1)
    run("enable", webhook["id"], input="y\n")
    assert hooks.show(webhook)["disabled"] is False
    assert "Without a terminal, add --yes" in run("disable", webhook["id"], status=1)
    assert hooks.show(webhook)["disabled"] is False
    assert run("disable", webhook["id"], "--yes") == f"{webhook['id']} is disabled.\n"
    assert hooks.show(webhook)["disabled_reason"] == "by_administrator"


@pytest.mark.parametrize(
    ("response_status", "status", "beginning"), [(204, 0, "sent: 204"), (500, 3, "waiting: ")]
)
def test_test_event_prints_the_response(run, hooks, target, parts, response_status, status, beginning):
    webhook = hooks.register(target)
    target.status = response_status
    with RunningDeliverer(deliverer(parts)):
        output = run("test", webhook["id"], "--yes", status=status)
    assert output.startswith(beginning)
    assert str(response_status) in output


def test_undelivered_test_event_unknown_id_and_disabled_webhook_are_reported(run, hooks, target, monkeypatch):
    webhook = hooks.register(target)
    monkeypatch.setattr(webhooks, "_PATIENCE", 0)
    output = run("test", webhook["id"], "--yes", status=3)
    assert output == "waiting: nothing sent it; see latchkey doctor\n"
    run("test", "11111111-1111-1111-1111-111111111111", "--yes", status=3)
    hooks.change(webhook, disabled=True)
    assert "disabled" in run("test", webhook["id"], "--yes", status=2)
