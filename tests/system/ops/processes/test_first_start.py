"""`latchkey serve` from a wheel, with hardly a setting: it creates a database and secrets, and prints messages."""

import fcntl
import json
import os
import pwd
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

import pytest

from auth.core.settings import load, running, state
from tests.support import log_watch
from tests.support.commands import run_with_settings
from tests.support.environment import clear_settings
from tests.support.processes import CHECKOUT, Service, short_directory, wait_until
from tests.support.server import ServerClient
from tests.support.users import PASSWORD
from tests.support.wheels import build_wheel

pytestmark = pytest.mark.root


# Modules of an application, which would end the service if it imported them.
MODULES_OF_APPLICATION = ["app.py", "wsgi.py", "auth/__init__.py", "sql/__init__.py"]


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """The folder that the wheel is installed in."""
    with short_directory() as directory:
        with ZipFile(build_wheel(directory)) as wheel:
            wheel.extractall(directory / "installed")
        yield directory / "installed"


@pytest.fixture(scope="module")
def service(installed) -> Iterator[Service]:
    """A service with an embedded database, which was started in the directory of an application."""
    with short_directory() as directory:
        for name in MODULES_OF_APPLICATION:
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_text("raise SystemExit('This is the application.')")
        command = [sys.executable, "-P", "-m", "latchkey_auth", "serve"]
        changes = {"PYTHONPATH": str(installed), "AUTH_WORKERS": "1", "AUTH_LOG_FORMAT": "json"}
        with Service(directory / "var", command=command, directory=directory, **changes) as service:
            yield service
        log_watch.scan_log("the first start", service.log())


@pytest.fixture(scope="module")
def client(service) -> Iterator[ServerClient]:
    with closing(ServerClient(service.port)) as client:
        yield client


def test_wheel_has_one_top_level_package_which_holds_everything(installed):
    names = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"latchkey_auth"}
    tracked = ["auth", "sql", "deploy", "docs", "app.py", "wsgi.py", "gunicorn.conf.py", "schema.sql"]
    git = ["git", "-c", f"safe.directory={CHECKOUT}", "ls-files", *tracked, "openapi.yaml"]
    result = subprocess.run(git, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert [name for name in result.stdout.split() if not (installed / "latchkey_auth" / name).exists()] == []


def test_messages_are_printed_on_localhost_and_not_logged(service, client):
    client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})
    (link,) = wait_until(
        lambda: re.findall(r"^http://localhost:\d+(/verify\S+)$", service.text(), re.MULTILINE)
    )
    log = [line for line in service.text().splitlines() if line.startswith("{")]
    assert log
    assert not [line for line in log if "dave@example.com" in line or link in line]
    assert service.get(link)[1] == b""


def test_command_with_other_settings_than_the_service_names_them_and_the_line_that_lets_it_act(service):
    environment = os.environ | {
        "AUTH_STATE_DIR": str(service.state_dir),
        "AUTH_BRAND_NAME": "A me",
        "PORT": "1",
    }
    command = f"{sys.executable} -m latchkey_auth mail-test carol@example.com"

    def run(script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", script], env=environment, cwd=CHECKOUT, capture_output=True, text=True, check=False
        )

    problem, _, line = run(command).stderr.strip().partition(", run: ")
    message = "The running service has other settings than this command: AUTH_BRAND_NAME, PORT. "
    assert problem == f"Error: {message}To act with the service's"
    assert line == f"export PORT={service.port}; unset AUTH_BRAND_NAME"
    assert f"Subject: Test email from localhost:{service.port}\n" in run(f"{line}\n{command}").stdout


def test_command_with_other_settings_of_requests_only_acts(service):
    environment = {"AUTH_STATE_DIR": str(service.state_dir), "AUTH_CORS_ORIGINS": "https://app.example.com"}
    result = run_with_settings(environment, "mail-test", "carol@example.com")
    assert (result.exit_code, "To: carol@example.com" in result.stdout) == (3, True)


def test_email_about_a_failed_unit_is_sent_with_other_settings_too(service):
    environment = {"AUTH_STATE_DIR": str(service.state_dir), "AUTH_BRAND_NAME": "Acme"}
    result = run_with_settings(environment, "mail-test", "--unit", "latchkey-backup", "ops@example.com")
    assert "latchkey-backup has failed on" in result.stdout, result.stderr


def test_command_reads_the_settings_from_the_record_of_the_service_before_the_dotenv_file(tmp_path):
    (tmp_path / ".env").write_text(
        "AUTH_TWILIO_AUTH_TOKEN=s3cret\nAUTH_BRAND_NAME=Changed\nAUTH_STATE_DIR=else\nHOME=x"
    )
    settings = {"AUTH_BRAND_NAME": "Acme", "AUTH_SMTP_CLIENT_SECRET": "hidden", "PORT": "8001"}
    variables = {"AUTH_BRAND_NAME": "Acme", "PORT": "8001"}
    record = {"settings": settings, "given": variables, "dotenv": str(tmp_path / ".env")}
    path = tmp_path / "service.json"
    path.write_text(json.dumps(record))
    with path.open("rb") as service:
        fcntl.flock(service, fcntl.LOCK_EX)
        expected = {"AUTH_BRAND_NAME": "Acme", "AUTH_TWILIO_AUTH_TOKEN": "s3cret", "PORT": "8001"}
        assert running.environment(tmp_path) == expected


def test_secret_in_the_environment_of_the_service_is_in_no_file_and_commands_ask_for_it_by_name(
    tmp_path,
):
    server = {"AUTH_STATE_DIR": str(tmp_path), "AUTH_CAPTCHA": "off", "AUTH_BRAND_NAME": "Acme"}
    secrets = {
        "AUTH_SMTP_URL": "smtp://user:pa55word@mail.example.com:587",
        "AUTH_SECRET_KEY": state.new_secret(),
        "AUTH_PROVIDER_GOOGLE_CLIENT_SECRET": "pa55word",
    }
    google = {"AUTH_PROVIDER_GOOGLE_CLIENT_ID": "latchkey"}
    with pytest.MonkeyPatch.context() as patch:
        clear_settings(patch)
        for name, value in (server | secrets | google).items():
            patch.setenv(name, value)
        running.announce(load(missing_secrets="ignore"))
    text = (tmp_path / "service.json").read_text()
    assert [value for value in (*secrets.values(), "pa55word") if value in text] == []
    assert running.environment(tmp_path) == google | {"AUTH_CAPTCHA": "off", "AUTH_BRAND_NAME": "Acme"}
    message = "The running service has this secret in its environment. Give it to the command too: export"
    lines = [f"{name}: {message} {name}=…" for name in secrets]
    backup, fetch = ["backup", str(tmp_path / "backup")], ["passwords", "fetch"]
    for command in (["explain", "carol@example.com"], backup, ["migrate"], fetch):
        result = run_with_settings({"AUTH_STATE_DIR": str(tmp_path)}, *command)
        assert (result.exit_code, result.stdout) == (1, "")
        assert sorted(result.stderr.removeprefix("Error: ").splitlines()) == sorted(lines)
    report = run_with_settings({"AUTH_STATE_DIR": str(tmp_path)}, "doctor").stdout
    assert [line for line in lines if f"✗ {line}\n" not in report] == []
    running._locked.pop().close()


def test_command_of_another_user_refuses_the_settings_of_the_service(service, monkeypatch, tmp_path):
    # As if root ran the command for a service of another user. No file in its directory is read or printed.
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    for command in (["doctor"], ["explain", "carol@example.com"], ["mail-test", "carol@example.com"]):
        result = run_with_settings({"AUTH_STATE_DIR": str(service.state_dir)}, *command)
        owner = pwd.getpwuid(os.getuid()).pw_name
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(f"Error: The service in {service.state_dir} runs as {owner}, but ")
        assert result.stderr.endswith(f"Run it as {owner}, for example with sudo -u {owner}.\n")
    running.keep_error(tmp_path, "made up by that user")
    assert running.last_error(tmp_path) is None


def test_command_follows_no_link_that_another_user_may_have_put_into_the_state_directory(service, tmp_path):
    (tmp_path / "service.json").symlink_to(service.state_dir / "service.json")
    assert not running.is_serving(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / "lock").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic"):
        state.lock(tmp_path)
    assert victim.read_text() == "kept"
    os.mkfifo(tmp_path / "start_error")
    assert not running.last_error(tmp_path)


def test_record_of_the_settings_has_no_secrets_and_is_private(service):
    path = service.state_dir / "service.json"
    assert path.stat().st_mode & 0o077 == 0
    assert set(json.loads(path.read_text())["settings"]) == {"AUTH_BCRYPT_COST", "PORT"}
