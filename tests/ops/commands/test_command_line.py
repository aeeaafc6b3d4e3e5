"""Common behaviour of all commands, and docs/commands.md."""

import json
import re
import runpy
import sys
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
from tests.support.processes import CHECKOUT

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
GROUPS = {name.rpartition(" ")[0] for name in COMMANDS}


def test_page_lists_each_command_and_what_it_prints_as_json():
    rows = re.findall(r"^- `(latchkey [a-z-]+(?: [a-z-]+)?)[^`]*`: (.+(?:\n  .+)*)$", PAGE, re.M)
    assert sorted(name for name, _ in rows) == sorted(COMMANDS)
    with_json = {
        name for name, command in COMMANDS.items() if any("--json" in p.opts for p in command.params)
    }
    assert {name for name, text in rows if "JSON:" in " ".join(text.split())} == with_json


def test_page_names_options_that_exist():
    existing = {name for command in COMMANDS.values() for option in command.params for name in option.opts}
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) - {"--help"} <= existing


def test_page_about_the_night_names_commands_that_exist():
    named = re.findall(r"`(latchkey [a-z]+(?:-[a-z]+)*)( [a-z]+(?:-[a-z]+)*)?", RUNBOOK)
    assert len(named) > 10
    assert [first + more for first, more in named if not {first, first + more} & set(COMMANDS)] == []


@cases("name", COMMANDS)
def test_help_has_an_example_of_the_command(name):
    text = CliRunner().invoke(main, [*name.split()[1:], "--help"]).output
    assert re.search(rf"Example: .*\b{name}\b", text)


@cases("name", COMMANDS)
def test_options_and_arguments_are_described_by_sentences(name):
    command = COMMANDS[name]
    assert re.fullmatch(r"[A-Z][a-z]+ [^;]+\.", (command.help or "").partition("\n\n")[0].replace("\n", " "))
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            # An act, such as "Print".
            assert re.fullmatch(
                r"(?!(A|An|How|Its|The|Whether|Where)\b)[A-Z][a-z]+ [^;]+\.", parameter.help or ""
            )
            assert parameter.metavar or parameter.is_flag or isinstance(parameter.type, click.Choice), (
                parameter.name
            )
        elif not isinstance(parameter.type, click.Choice):
            assert re.fullmatch(r"[][A-Z_.|]+", parameter.make_metavar(click.Context(command)))


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


@cases("name", sorted({*GROUPS, *COMMANDS}))
def test_usage_line_names_the_command_that_was_typed(name, monkeypatch, capsys):
    # As the process of `latchkey` does.
    monkeypatch.setattr(sys, "argv", ["", *name.split()[1:], "--help"])
    with pytest.raises(SystemExit):
        runpy.run_path(str(CHECKOUT / "auth/ops/commands/__main__.py"), run_name="__main__")
    assert capsys.readouterr().out.startswith(f"Usage: {name} [OPTIONS]")


@pytest.mark.parametrize("group", ["", "clients", "keys", "users", "webhooks"])
def test_list_of_commands_has_whole_sentences(group):
    listed = CliRunner().invoke(main, [*group.split(), "--help"]).output
    lines = re.findall(r"^  [a-z-]+ {2,}(\S.*)$", listed.partition("Commands:")[2], re.M)
    assert lines
    assert [line for line in lines if not line.endswith(".") or line.endswith("...")] == []


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


def test_bad_number_is_called_a_number(app):
    output = run_command(app, "backup", "x", "--keep", "many").output
    assert output.endswith("Error: Invalid value for '--keep': 'many' is not a valid number.\n")


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["clients", "show", "none"], 2, "Invalid value: client_id: must be a UUID."),
        (["clients", "show", UNKNOWN], 3, "OAuth client not found. Find its ID by: latchkey clients list"),
        (
            ["webhooks", "test", UNKNOWN, "--yes"],
            3,
            "Webhook or delivery not found. Find its ID by: latchkey webhooks list",
        ),
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


@cases(("typed", "meant"), [("creat-admin", "create-admin"), ("restor", "restore")])
def test_misspelt_command_is_recognized(app, typed, meant):
    assert f"No such command '{typed}'. Did you mean '{meant}'?\n" in run_command(app, typed).output


def test_outcomes_are_printed_as_json(app, client, service_role, alice):
    outcome = json.loads(run_command(app, "create-admin", alice.email, "--json").output)
    console = "http://localhost:8000/console"
    assert re.fullmatch("[0-9]{6}", outcome.pop("code"))
    assert outcome == {"id": alice.id, "email": alice.email, "created": False, "console": console}

    found = json.loads(run_command(app, "explain", alice.id, "--json").output)
    assert (found["kind"], found["user"]["id"], found["can_sign_in"]) == ("user", alice.id, True)
    assert (found["events"][0]["name"], found["events"][0]["actor"]) == ("role_changed", "command")
    assert found["events"][0]["text"].startswith("role changed")

    client.post("/recover", json={"email": alice.email})
    client.delete(f"/admin/users/{alice.id}", headers=service_role)
    found = json.loads(run_command(app, "explain", alice.email, "--json").output)
    assert (found["kind"], len(found["events"])) == ("address", 1)
