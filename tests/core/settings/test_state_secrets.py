"""Generated secrets: in files that are readable by their owner only, and never printed."""

import dataclasses
import json
import os
import re
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
from tests.support.environment import clear_settings, secret

pytestmark = pytest.mark.root
RESTORE = "Restore it from a backup, or copy it from another node."
NAMES = ("secret_key", "service_role_key", "jwt_keys.json")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def kept(directory: Path, name: str) -> str:
    """Return a secret, made the first time."""
    make = signing_keys.new_jwk_set if name == "jwt_keys.json" else state.new_secret
    state.make_once(directory / name, make)
    return (directory / name).read_text().strip()


class TestKeptSecrets:
    def test_secret_is_generated_once_unless_the_operator_wrote_it(self, tmp_path):
        made = kept(tmp_path / "var", "secret_key")
        assert len(made) == 43
        assert kept(tmp_path / "var", "secret_key") == made
        assert kept(tmp_path / "var", "service_role_key") != made
        (key,) = signing_keys.parse_jwk_set(kept(tmp_path / "var", "jwt_keys.json"))
        assert key.algorithm == "ES256"
        (tmp_path / "secret_key").write_text("put there by an operator, by hand\n")
        assert kept(tmp_path, "secret_key") == "put there by an operator, by hand"

    def test_secrets_are_readable_by_their_owner_only_whatever_the_umask(self, tmp_path):
        directory = tmp_path / "deep" / "var"
        before = os.umask(0)
        try:
            for name in NAMES:
                kept(directory, name)
        finally:
            os.umask(before)
        assert {mode(path) for path in directory.iterdir()} == {0o600}
        # Under root, Postgres runs as another user, which passes through.
        assert mode(directory) == (0o711 if os.geteuid() == 0 else 0o700)

    def test_concurrent_starts_use_the_same_secrets(self, tmp_path):
        with ThreadPoolExecutor(16) as threads:
            secrets = set(threads.map(lambda _: kept(tmp_path / "var", "secret_key"), range(64)))
            keys = set(threads.map(lambda _: kept(tmp_path / "var", "jwt_keys.json"), range(64)))
        assert len(secrets) == len(keys) == 1
        assert sorted(path.name for path in (tmp_path / "var").iterdir()) == ["jwt_keys.json", "secret_key"]

    def test_secret_that_cannot_be_written_is_an_error(self, tmp_path):
        (tmp_path / "var").write_text("not a directory")
        with pytest.raises(OSError, match="var"):
            kept(tmp_path / "var", "secret_key")


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


@cases("name", ["secret_key", "service_role_key"])
@cases("content", ["short\n", "x" * 31 + "\n"])
def test_start_fails_and_names_the_file_of_a_short_secret(state_dir_setting, name, content):
    path = state_dir_setting / name
    assert problem_of(path, content) == f"{path}: Must be at least 32 characters. {RESTORE}"


@cases("name", NAMES)
@cases("content", ["", "\n", " \n"])
def test_start_says_what_to_do_about_an_empty_file(state_dir_setting, name, content):
    path = state_dir_setting / name
    assert problem_of(path, content) == f"{path}: Is empty. {RESTORE}"


@cases(
    ("name", "content", "problem"),
    [
        ("secret_key", "x" * 43, "Must have at least 8 different characters"),
        ("secret_key", "01234567" * 5, "Repeats itself"),
        *(
            ("jwt_keys.json", content, ".* Must be a JWK Set")
            for content in ("{}", '{"keys": []}', "not JSON", '{"keys": [{"kty": "oct", "k": "AAAA"}]}')
        ),
    ],
)
def test_start_fails_and_names_the_file_of_a_guessable_secret_or_of_keys_that_cannot_sign(
    state_dir_setting, name, content, problem
):
    path = state_dir_setting / name
    assert re.match(rf"{path}: {problem}.*\. {RESTORE}$", problem_of(path, content))


@cases("name", NAMES)
def test_start_refuses_a_secret_that_others_can_read(state_dir_setting, name):
    path = state_dir_setting / name
    kept(state_dir_setting, name)
    settings.load(os.devnull, missing_secrets="ignore")
    path.chmod(0o640)
    problem = f"{path}: Group or others have access to it (mode 640): chmod 600 {path}"
    assert load_problems() == [problem]
    path.unlink()


def test_key_set_that_others_can_read_may_have_public_keys_only(state_dir_setting, tmp_path, monkeypatch):
    path, private = tmp_path / "keys.json", signing_keys.new_jwk("ES256")
    monkeypatch.setenv("AUTH_JWT_SECRET", secret("shared"))
    monkeypatch.setenv("AUTH_JWT_KEYS", str(path))
    public = {name: private[name] for name in ("kty", "crv", "x", "y", "kid")}
    path.write_text(json.dumps([public | {"key_ops": ["verify"]}]))
    path.chmod(0o644)
    settings.load(os.devnull, missing_secrets="ignore")
    path.write_text(json.dumps([private]))
    assert load_problems() == [f"{path}: Group or others have access to it (mode 644): chmod 600 {path}"]


def test_start_reports_all_bad_secret_files_together(state_dir_setting):
    unreadable, binary, empty = (state_dir_setting / name for name in NAMES)
    unreadable.mkdir()
    binary.write_bytes(b"\xff" * 43)
    empty.write_text("")
    first, second, third = load_problems()
    assert first == f"{unreadable}: Cannot be read: Is a directory. Let the user of the service read it."
    assert (second, third) == (f"{binary}: Is not text. {RESTORE}", f"{empty}: Is empty. {RESTORE}")


class TestCommands:
    """Commands use the secrets of the service, and create none."""

    @pytest.mark.parametrize(
        "arguments",
        ["create-admin carol@example.com", "explain carol@example.com", "deliver", "webhooks listen"],
    )
    def test_command_reports_where_it_looked_for_secrets(self, state_dir_setting, monkeypatch, arguments):
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

    def test_command_reports_where_it_looked_for_the_service(self, state_dir_setting):
        for name in NAMES:
            kept(state_dir_setting, name)
        result = CliRunner().invoke(main, ["explain", "carol@example.com"])
        assert (result.exit_code, result.output) == (
            1,
            f"Error: DATABASE_URL is not set, and no service runs with the state directory {state_dir_setting}."
            " Start it, or set AUTH_STATE_DIR to its directory.\n",
        )

    def test_command_without_need_for_secrets_runs_without_them_and_prints_unknown_names_once(
        self, state_dir_setting, monkeypatch, database_url
    ):
        monkeypatch.setenv("DATABASE_URL", database_url)
        monkeypatch.setenv("AUTH_SITEURL", "https://app.example.com")
        result = CliRunner().invoke(main, ["migrate"])
        assert (result.exit_code, result.stdout) == (0, "The schema is up to date.\n")
        assert result.output.count("AUTH_SITEURL is not a setting. Did you mean AUTH_SITE_URL?\n") == 1
        assert not list(state_dir_setting.iterdir())


def test_empty_credential_never_matches_even_an_empty_service_role_key(make_app):
    app = make_app(fresh=True)
    parts = app.extensions[EXTENSION]
    keyless = dataclasses.replace(parts.settings, service_role_key=("",))
    app.extensions[EXTENSION] = dataclasses.replace(parts, settings=keyless)
    empty = [{"Authorization": value} for value in ("", "Bearer", "Bearer ")]
    for headers in [*empty, {"apikey": ""}, {}]:
        response = app.test_client().get("/admin/users", headers=headers)
        assert (response.status_code, "data" in response.json) == (401, False)


def test_configured_secrets_are_not_written(tmp_path, monkeypatch):
    clear_settings(monkeypatch)
    given = {name: secret(name[:4]) for name in ("SECRET_KEY", "SERVICE_ROLE_KEY", "JWT_SECRET")}
    for name, value in (given | {"STATE_DIR": str(tmp_path / "var")}).items():
        monkeypatch.setenv(f"AUTH_{name}", value)
    loaded = settings.load(os.devnull, missing_secrets="ignore")
    assert loaded.secret_key == (given["SECRET_KEY"],)
    assert (loaded.service_role_key, loaded.jwt_keys) == ((given["SERVICE_ROLE_KEY"],), "")
    assert not (tmp_path / "var").exists()
