"""Common behaviour of all commands, and docs/commands.md."""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import pyrage
import pytest
from click.testing import CliRunner
from standardwebhooks import Webhook

import auth
from auth.core.settings.values import hooks
from auth.ops.backups import age
from auth.ops.commands import main
from tests.support.cases import cases
from tests.support.commands import run_command, run_with_settings
from tests.support.contract import OPENAPI

PAGE = (OPENAPI.parent / "docs" / "commands.md").read_text()

UNKNOWN = "3f2a9c1e-7b54-4d1a-9a65-0d2c9f1b7e44"
RUNBOOK = (OPENAPI.parent / "docs" / "runbook.md").read_text()


def commands(group: click.Group = main, name: str = "latchkey") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for part in group.list_commands(context):
        command = group.get_command(context, part)
        assert command
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {part}")
        else:
            yield f"{name} {part}", command


COMMANDS = dict(commands())


def test_page_lists_each_command_and_what_it_prints_as_json():
    rows = re.findall(r"^- `(latchkey [a-z-]+(?: [a-z-]+)?)[^`]*`: (.+(?:\n  .+)*)$", PAGE, re.M)
    assert sorted(name for name, _ in rows) == sorted(COMMANDS)
    with_json = {
        name for name, command in COMMANDS.items() if any("--json" in p.opts for p in command.params)
    }
    assert {name for name, text in rows if "JSON:" in " ".join(text.split())} == with_json


def test_page_names_options_that_exist():
    options = [option for command in COMMANDS.values() for option in command.params]
    existing = {name for option in options for name in [*option.opts, *option.secondary_opts]}
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) - {"--help"} <= existing


def test_page_about_the_night_names_commands_that_exist():
    named = re.findall(r"`(latchkey [a-z]+(?:-[a-z]+)*)( [a-z]+(?:-[a-z]+)*)?", RUNBOOK)
    assert len(named) > 10
    assert [
        first + subcommand for first, subcommand in named if not {first, first + subcommand} & set(COMMANDS)
    ] == []


@cases("name", COMMANDS)
def test_help_has_an_example_of_the_command(name):
    text = CliRunner().invoke(main, [*name.split()[1:], "--help"]).output
    assert re.search(rf"Example: .*\b{name}\b", text)


@cases("name", COMMANDS)
def test_no_option_or_argument_takes_a_secret(name):
    # Other users see arguments; sudo and systemd log them. A file or a variable that the command reads is private.
    for parameter in COMMANDS[name].params:
        if isinstance(parameter.type, click.Path | click.Choice | click.types.BoolParamType):
            continue
        words = [*parameter.opts, parameter.metavar or "", parameter.name or ""]
        assert not [
            each
            for each in words
            if re.search(r"(?i)password|secret|whsec|token(?!_lifetime)|identity", each)
        ]
        assert parameter.envvar is None


def test_version_is_printed():
    result = CliRunner().invoke(main, ["--version"])
    assert (result.exit_code, result.output) == (0, f"latchkey, version {auth.__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [*(["nonsense"], ["migrate", "--nonsense"], ["explain", "alice@"], ["backup", "x", "--keep", "0"])],
)
def test_wrong_usage_exits_with_2(app, arguments):
    assert run_command(app, *arguments).exit_code == 2


@cases(
    "arguments",
    [
        *(["restore", "none"], ["backup", "verify", "none"], ["users", "import", "none"]),
        *(["keys", "add", "secret", "none"], ["restore", "/dev/null", "--identity", "none"]),
        ["users", "import", "/dev/null", "--firebase-hash-config", "none"],
    ],
)
def test_missing_file_is_one_line_and_exits_with_2(app, arguments):
    result = run_command(app, *arguments)
    assert (result.exit_code, result.output) == (
        2,
        "Error: File 'none' does not exist. Name a file that this user can read."
        f" The command runs in {Path.cwd()}.\n",
    )


def test_unreadable_identity_is_one_line_and_exits_with_2(app, tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff")
    (tmp_path / "binary").chmod(0o600)
    result = run_command(app, "restore", "/dev/null", "--identity", str(tmp_path / "binary"))
    assert (result.exit_code, result.output) == (
        2,
        f"Error: {tmp_path}/binary cannot be read: it is not text. Name the key file from latchkey backup-key.\n",
    )


@pytest.mark.parametrize("command", [["restore"], ["backup", "verify"], ["users", "import"]])
def test_identity_that_others_can_read_is_refused(app, tmp_path, command):
    file, key = tmp_path / "users.age", tmp_path / "key"
    file.write_bytes(age.HEAD)
    key.write_text(age.new_identity()[1])
    key.chmod(0o640)
    result = run_command(app, *command, str(file), "--identity", str(key))
    problem = f"{key} is refused. Fix its mode: group or others have access to it (mode 640): chmod 600 {key}"
    assert (result.exit_code, result.output) == (2, f"Error: {problem}\n")


def test_new_backup_key_is_a_file_of_age_and_its_recipient_a_setting(app):
    result = run_command(app, "backup-key")
    comment, secret = result.stdout.splitlines()
    recipient = comment.removeprefix("# public key: ")
    assert str(pyrage.x25519.Identity.from_str(secret).to_public()) == recipient
    assert result.stderr.splitlines()[-1] == f"AUTH_BACKUP_RECIPIENTS={recipient}"
    assert secret not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["clients", "show", "none"], 2, "Invalid value: client_id: must be a UUID."),
        (["clients", "show", UNKNOWN], 3, "OAuth client not found. Find its ID by: latchkey clients list"),
        (
            ["hooks", "test", "send-sms", "--user", UNKNOWN],
            1,
            "AUTH_HOOK_SEND_SMS is not set. Set it to the URL of the hook.",
        ),
    ],
)
def test_failure_of_a_command_says_what_to_do(app, arguments, status, error):
    result = run_command(app, *arguments)
    assert (result.exit_code, result.stdout) == (status, "")
    assert result.stderr.endswith(f"Error: {error}\n")


def test_new_secret_of_a_hook_is_a_setting_and_verifies_requests(monkeypatch):
    first, second = (run_with_settings({}, "hooks", "secret").stdout.rstrip("\n") for _ in range(2))
    assert first != second
    (secret,) = hooks.secrets(first)
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(int(time.time()))}
    headers["webhook-signature"] = Webhook(secret).sign("msg_1", datetime.now(UTC), "{}")
    assert first == f"v1,{secret}"
    assert Webhook(first.removeprefix("v1,")).verify("{}", headers) == {}


def test_outcomes_are_printed_as_json(app, client, service_role, alice):
    outcome = json.loads(run_command(app, "create-admin", alice.email, "--yes", "--json").stdout)
    console = "http://localhost:8000/console"
    assert re.fullmatch("[0-9]{6}", outcome.pop("code"))
    assert [way["type"] for way in outcome.pop("ways_to_sign_in")] == ["email", "password"]
    expected = {"id": alice.id, "email": alice.email, "created": False, "recent_changes": []}
    assert outcome == expected | {"console": console}

    explained = json.loads(run_command(app, "explain", alice.id, "--json").output)
    assert (explained["kind"], explained["user"]["id"], explained["can_sign_in"]) == ("user", alice.id, True)
    assert (explained["events"][0]["name"], explained["events"][0]["actor"]) == ("role_changed", "command")
    assert explained["events"][0]["text"].startswith("role changed")

    client.post("/recover", json={"email": alice.email})
    client.delete(f"/admin/users/{alice.id}", headers=service_role)
    explained = json.loads(run_command(app, "explain", alice.email, "--json").output)
    assert (explained["kind"], len(explained["events"])) == ("address", 1)
