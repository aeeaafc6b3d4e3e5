"""The test kit of the wheel beside an application with its own `app.py`, `auth/`, `sql/` and Flask."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.support.guides import Block, Guide
from tests.support.processes import processes_of, short_directory, wait_until
from tests.support.wheels import build_wheel

REQUIREMENTS = "flask==2.3.3 werkzeug==2.3.8 pyjwt[crypto]==2.8.0 pytest==8.4.2 pytest-xdist==3.8.0"
APPLICATION = {
    "auth/__init__.py": "EDITOR = 'editor'\n",
    "sql/__init__.py": "",
    # A module of the same name as one of a library of the service.
    "limits.py": "raise RuntimeError('of the application')\n",
    ".env": "AUTH_BIND=nonsense\n",
    "app.py": """
import jwt
from flask import Flask, request

import auth
import sql


def create_app(url):
    app = Flask(__name__)
    keys = jwt.PyJWKClient(f"{url}/.well-known/jwks.json")

    @app.get("/dashboard")
    def dashboard():
        token = request.headers["Authorization"].removeprefix("Bearer ")
        try:
            key = keys.get_signing_key_from_jwt(token)
            claims = jwt.decode(token, key.key, ["ES256"], issuer=url, audience="authenticated")
        except jwt.InvalidTokenError:
            return "", 401
        return "", 200 if auth.EDITOR in claims.get("roles", []) else 403

    return app
""",
    "test_more.py": """
import os
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", range(6))
def test_each_worker_has_users_of_its_own(latchkey, number):
    assert latchkey.user(email="alice@example.com").email == "alice@example.com"


def test_slow(latchkey):
    if "STARTED" in os.environ:
        Path(os.environ["STARTED"]).touch()
        input_of_nobody, _ = os.pipe()
        os.read(input_of_nobody, 1)
""",
}
UNUSED_PLUGINS = ("cacheprovider", "schemathesis", "hypothesispytest", "anyio")
pytestmark = pytest.mark.filterwarnings("default::ResourceWarning")


GUIDE = Guide("testing.md")
SNIPPETS = {
    "conftest.py": "\n\n".join(
        block.text for block in (GUIDE.block("def client(latchkey)"), GUIDE.block("def latchkey_settings"))
    ),
    "test_dashboard.py": GUIDE.block("def test_dashboard").text,
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"), _set_up_containers)


def _set_up_containers(checkout: Path) -> None:
    (checkout / "deploy" / "latchkey.env").write_text(
        "AUTH_SMTP_URL=smtp://user:topsecret@mail.example.com\n"
    )


def test_wheel_has_no_settings_of_the_checkout(wheel):
    names = ZipFile(wheel).namelist()
    assert "latchkey_auth/deploy/compose.yaml" in names
    assert [name for name in names if name.endswith(".env")] == []


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_directory() as folder:
        for name, text in (APPLICATION | SNIPPETS).items():
            (folder / "application" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "application" / name).write_text(text)
        yield folder


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> dict[str, str]:
    """The environment of a Python that finds the wheel as if it were installed."""
    site = tmp_path_factory.mktemp("site")
    ZipFile(wheel).extractall(site)
    return {"PYTHONPATH": str(site)}


def options_of_run(
    folder: Path, *options: str, python: str = sys.executable, **environment: str
) -> dict[str, Any]:
    """Return options of `subprocess.run` for the tests of the application, with all temporary files in the folder."""
    (folder / "tmp").mkdir(exist_ok=True)
    inherited = {"PATH": os.environ["PATH"], "HOME": "/", "DATABASE_URL": "nonsense"}
    inherited["TMPDIR"] = str(folder / "tmp")
    # Plugins of our dependencies, each of which takes a second to load.
    unused = [word for name in UNUSED_PLUGINS for word in ("-p", f"no:{name}")]
    arguments = [python, "-m", "pytest", "-q", *unused, *options]
    return {"args": arguments, "cwd": folder / "application", "env": inherited | environment, "text": True}


def remaining(folder: Path) -> list[str]:
    return [*processes_of(folder).values(), *map(str, (folder / "tmp").glob("latchkey-*"))]


def test_snippets_of_the_page_work_and_all_ends_with_pytest(folder, installed):
    options = options_of_run(folder, "-n", "2", "-W", "error", **installed)
    result = subprocess.run(**options, capture_output=True, check=False)
    assert (result.returncode, "8 passed" in result.stdout) == (0, True), result.stdout + result.stderr
    wait_until(lambda: not remaining(folder), 10)


def test_tests_run_on_a_local_postgres_and_leave_a_template(folder, installed, all_rows, database_url):
    settings = installed | {"LATCHKEY_TEST_DATABASE_URL": database_url}
    result = subprocess.run(**options_of_run(folder, "-n", "2", **settings), capture_output=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = all_rows.all("SELECT datname FROM pg_database WHERE datname LIKE 'latchkey_test%%'")
    assert [row.datname.startswith("latchkey_test_template_") for row in rows] == [True]
    all_rows.run(f'DROP DATABASE "{rows[0].datname}"')
    wait_until(lambda: not remaining(folder), 10)


def test_all_ends_when_pytest_is_killed(folder, installed):
    flag = folder / "started"
    options = options_of_run(folder, "-k", "slow", STARTED=str(flag), **installed)
    with subprocess.Popen(**options, stdout=subprocess.DEVNULL) as process:
        wait_until(flag.exists, 120)
        assert len(processes_of(folder)) > 5
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: not processes_of(folder))
    assert [path.name for path in (folder / "tmp").glob("latchkey-test-*")] == []
    # The next run removes the directory of pytest itself, and not that of a run beside it.
    (folder / "tmp" / "latchkey-pytest-beside").mkdir()
    os.mkfifo(folder / "tmp" / "latchkey-pytest-beside" / "lifeline")
    beside = os.open(folder / "tmp" / "latchkey-pytest-beside" / "lifeline", os.O_RDWR)
    subprocess.run(
        **options_of_run(folder, "-k", "dashboard", **installed), stdout=subprocess.DEVNULL, check=True
    )
    os.close(beside)
    assert [Path(path).name for path in remaining(folder)] == ["latchkey-pytest-beside"]


@pytest.fixture(scope="module")
def dependencies(tmp_path_factory) -> Path:
    """What the wheel needs, without the kit: `pip` finds it there, and asks no index."""
    directory = tmp_path_factory.mktemp("dependencies")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(("latchkey", "__editable__", "pip")):
            (directory / entry.name).symlink_to(entry)
    return directory


def play_installation(
    block: Block, folder: Path, wheel: Path, dependencies: Path, python: Path
) -> dict[str, str]:
    """Install the wheel as the page says, in the environment of a Python. Return the variables that it sets."""
    shutil.copy(wheel, folder / "application")
    names = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    path = {"PATH": f"{python.parent}:{os.environ['PATH']}", "PYTHONPATH": str(dependencies)}
    script = f'set -e\n{block.text}\necho "LATCHKEY_COMMAND=$LATCHKEY_COMMAND"'
    result = subprocess.run(
        ["bash", "-c", script],
        cwd=folder / "application",
        env=names | path | {"HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    command = result.stdout.splitlines()[-1].partition("=")[2]
    return {"LATCHKEY_COMMAND": command} if command else {}


def let_import(python: Path, dependencies: Path) -> None:
    """Let an environment import what `pip` has found already."""
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{dependencies}\n")


def test_kit_is_installed_in_the_environment_of_the_application(folder, wheel, dependencies):
    python = folder / "own" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder / "own"], check=True)
    play_installation(GUIDE.block("pip install ./latchkey_auth-*.whl\n"), folder, wheel, dependencies, python)
    let_import(python, dependencies)
    result = subprocess.run(
        **options_of_run(folder, "-k", "dashboard", python=str(python)), capture_output=True, check=False
    )
    assert (result.returncode, "1 passed" in result.stdout) == (0, True), result.stdout + result.stderr


def test_kit_is_installed_beside_another_flask(folder, wheel, dependencies, request):
    """The service runs in another environment, and the kit has none of its dependencies."""
    digest = hashlib.sha256((REQUIREMENTS + sys.version).encode()).hexdigest()[:16]
    directory = request.config.cache.mkdir("test-kit") / digest
    python = directory / "bin" / "python"
    if not (directory / "stamp").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", directory], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS.split()], check=True)
        (directory / "stamp").touch()
    subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "latchkey-auth"], check=True)
    service = play_installation(GUIDE.block("--no-deps"), folder, wheel, dependencies, python)
    let_import(folder / "latchkey" / "bin" / "python", dependencies)
    result = subprocess.run(
        **options_of_run(folder, "-n", "2", python=str(python), **service), capture_output=True, check=False
    )
    assert (result.returncode, "8 passed" in result.stdout) == (0, True), result.stdout + result.stderr
    wait_until(lambda: not remaining(folder), 10)
