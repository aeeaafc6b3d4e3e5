"""Generated secrets: in files that are readable by their owner only, and never printed."""

import dataclasses
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from auth.core import settings
from auth.core.settings import state
from auth.core.tokens import signing_keys
from auth.ops.commands import main
from auth.web.context import EXTENSION
from tests.support.cases import cases
from tests.support.environment import clear_settings

pytestmark = pytest.mark.root
RESTORE = "Restore it from a backup, or copy it from another node."
NAMES = ("secret_key", "service_role_key", "jwt_keys.json")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def kept_secret(directory: Path, name: str) -> str:
    """Return a secret, made the first time."""
    make = signing_keys.new_jwk_set if name == "jwt_keys.json" else state.new_secret
    state.make_once(directory / name, make)
    return (directory / name).read_text().strip()


class TestKeptSecrets:
    def test_secret_is_generated_once_unless_the_operator_wrote_it(self, tmp_path):
        secret = kept_secret(tmp_path / "var", "secret_key")
        assert len(secret) == 43
        assert kept_secret(tmp_path / "var", "secret_key") == secret
        assert kept_secret(tmp_path / "var", "service_role_key") != secret
        (key,) = signing_keys.parse_jwk_set(kept_secret(tmp_path / "var", "jwt_keys.json"))
        assert key.algorithm == "ES256"
        (tmp_path / "secret_key").write_text("put there by an operator, by hand\n")
        assert kept_secret(tmp_path, "secret_key") == "put there by an operator, by hand"

    def test_secrets_are_readable_by_their_owner_only_whatever_the_umask(self, tmp_path):
        directory = tmp_path / "deep" / "var"
        before = os.umask(0)
        try:
            for name in NAMES:
                kept_secret(directory, name)
        finally:
            os.umask(before)
        assert {mode(path) for path in directory.iterdir()} == {0o600}
        # Under root, Postgres runs as another user, which passes through.
        assert mode(directory) == (0o711 if os.geteuid() == 0 else 0o700)

    def test_concurrent_starts_use_the_same_secrets(self, tmp_path):
        with ThreadPoolExecutor(16) as threads:
            secrets = set(threads.map(lambda _: kept_secret(tmp_path / "var", "secret_key"), range(64)))
            keys = set(threads.map(lambda _: kept_secret(tmp_path / "var", "jwt_keys.json"), range(64)))
        assert len(secrets) == len(keys) == 1
        assert sorted(path.name for path in (tmp_path / "var").iterdir()) == ["jwt_keys.json", "secret_key"]


@pytest.fixture
def state_dir_setting(tmp_path, monkeypatch) -> Path:
    """An empty state directory, which is the only setting."""
    clear_settings(monkeypatch)
    directory = tmp_path / "var"
    directory.mkdir()
    monkeypatch.setenv("AUTH_STATE_DIR", str(directory))
    return directory


def load_problems():
    with pytest.raises(settings.SettingsError) as caught:
        settings.load(os.devnull, missing_secrets="ignore")
    return str(caught.value).splitlines()


def problem_of(path, content):
    """Return what a start says of a file with this content, which it must not change."""
    path.write_text(content)
    (line,) = load_problems()
    assert path.read_text() == content
    path.unlink()
    return line


@cases(
    ("name", "content", "problem"),
    [
        *((name, "x" * 31 + "\n", "Must be at least 32 characters") for name in NAMES[:2]),
        *((name, content, "Is empty") for name in NAMES for content in ("", " \n")),
        ("secret_key", "x" * 43, "Must have at least 8 different characters"),
        ("secret_key", "01234567" * 5, "Repeats itself"),
        *(("jwt_keys.json", content, "Must be a JWK Set") for content in ("{}", '{"keys": []}', "not JSON")),
    ],
)
def test_start_fails_and_names_the_file_of_a_short_secret(state_dir_setting, name, content, problem):
    line = problem_of(state_dir_setting / name, content)
    assert line.startswith(f"{state_dir_setting / name}: ")
    assert problem in line
    assert line.endswith(RESTORE)


@cases("name", NAMES)
def test_start_refuses_a_secret_that_others_can_read(state_dir_setting, name):
    path = state_dir_setting / name
    kept_secret(state_dir_setting, name)
    settings.load(os.devnull, missing_secrets="ignore")
    path.chmod(0o640)
    problem = f"{path}: Group or others have access to it (mode 640): chmod 600 {path}"
    assert load_problems() == [problem]
    path.unlink()


@pytest.mark.parametrize("arguments", ["create-admin carol@example.com", "deliver"])
def test_command_reports_where_it_looked_for_secrets(state_dir_setting, monkeypatch, arguments):
    monkeypatch.chdir(state_dir_setting)
    monkeypatch.delenv("AUTH_STATE_DIR")
    result = CliRunner().invoke(main, arguments.split())
    assert result.exit_code == 1
    assert result.output == (
        f"Error: AUTH_STATE_DIR: {state_dir_setting / 'var'} has no {', '.join(NAMES)}."
        " Set it to the state directory of the service,"
        " or run this in the directory where the service was started.\n"
    )
    assert not list(state_dir_setting.iterdir())


def test_empty_credential_never_matches_even_an_empty_service_role_key(make_app):
    app = make_app(fresh=True)
    parts = app.extensions[EXTENSION]
    parts.settings = dataclasses.replace(parts.settings, service_role_key=("",))
    empty = [{"Authorization": value} for value in ("", "Bearer", "Bearer ")]
    for headers in [*empty, {"apikey": ""}, {}]:
        response = app.test_client().get("/admin/users", headers=headers)
        assert (response.status_code, "data" in response.json) == (401, False)
