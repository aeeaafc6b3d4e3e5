"""The official JavaScript clients, unmodified, and one generated from openapi.yaml, against a running service.

Needs Node.js and the packages of package.json, which `make test-clients` installs; skipped without them.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from auth.core.passwords import leaked_file
from tests.support.contract import OPENAPI, description
from tests.support.fake_provider import Answer, FakeProvider, Request
from tests.support.processes import PATIENT_GUNICORN, Service, free_port
from tests.support.range_api import sha1

DIRECTORY = Path(__file__).parent
NODE = shutil.which("node")
pytestmark = [
    pytest.mark.skipif(
        NODE is None or not (DIRECTORY / "node_modules").is_dir(),
        reason="NOT TESTED: the JavaScript clients. They need Node.js and npm: make test-clients",
    ),
]
TIMEOUT = 900.0
SECRET = "a-secret-of-these-tests-for-HS256-tokens"
WAYS = {
    "default": {},
    # As if it replaced another service behind the same gateway.
    "autoconfirm": {
        "AUTH_AUTOCONFIRM": "true",
        "AUTH_ANONYMOUS_ENABLED": "true",
        "AUTH_JWT_SECRET": SECRET,
        "AUTH_SERVICE_ROLE_JWT": "true",
        "AUTH_BASE_URL": "http://localhost:{port}/auth/v1",
    },
    "anonymous": {"AUTH_ANONYMOUS_ENABLED": "true"},
    "sso": {"AUTH_SSO": "true"},
    "captcha": {"AUTH_CAPTCHA": "altcha", "AUTH_CAPTCHA_COST": "1"},
    "leaked": {"AUTH_PASSWORD_LEAKED": "file"},
}
# Ways that have a file of tests to themselves.
ALONE = ("captcha", "leaked", "sso")
# The files whose outcome the settings of `autoconfirm` may change.
CHANGED_BY_AUTOCONFIRM = ("admin", "anonymous", "sign-in", "ssr", "user")
LEAKED = "Horse-Battery-7"


class Google(FakeProvider):
    """Each visitor is another person."""

    def authorize(self, request: Request) -> Answer:
        self.person = {"sub": str(uuid4()), "email": f"{uuid4()}@gmail.example", "email_verified": True}
        return super().authorize(request)


@pytest.fixture(scope="module")
def google() -> Iterator[FakeProvider]:
    with Google("google") as provider:
        provider.reset()
        yield provider


@pytest.fixture(scope="module")
def way(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def service(way, google) -> Iterator[dict[str, str]]:
    """A running service as node's environment. Its database is embedded, as in `make run`."""
    port = str(free_port())
    settings: Any = {"AUTH_PASSWORD_LEAKED": "off"}
    settings |= {name: value.replace("{port}", port) for name, value in WAYS[way].items()}
    settings |= google.settings("google")
    settings |= {"PORT": port, "AUTH_DEV_INBOX": "true", "AUTH_RATE_LIMITS_ENABLED": "false"}
    with tempfile.TemporaryDirectory(prefix="latchkey-clients-") as directory:
        Path(directory).chmod(0o755)
        leaked = Path(directory) / "leaked-passwords"
        leaked_file.write(leaked, [leaked_file.number_of(sha1(LEAKED))])
        settings["AUTH_PASSWORD_LEAKED_FILE"] = str(leaked)
        with Service(Path(directory).resolve() / "var", command=PATIENT_GUNICORN, **settings) as process:
            tokens = [google.id_token(sub=f"{way} {n}", jti=str(n)) for n in range(3)]
            yield {
                "PATH": os.environ["PATH"],
                "LATCHKEY_PYTHON": sys.executable,
                "LATCHKEY_URL": f"http://localhost:{process.port}",
                "LATCHKEY_SERVICE_KEY": (process.state_dir / "service_role_key").read_text().strip(),
                "LATCHKEY_AUTOCONFIRM": settings.get("AUTH_AUTOCONFIRM", "false"),
                "LATCHKEY_ANONYMOUS": settings.get("AUTH_ANONYMOUS_ENABLED", "false"),
                "LATCHKEY_SECRET": settings.get("AUTH_JWT_SECRET", ""),
                "LATCHKEY_ALGORITHM": "HS256" if "AUTH_JWT_SECRET" in settings else "ES256",
                "LATCHKEY_ID_TOKENS": json.dumps(tokens),
            }


def run(command: list[str], directory: Path, environment: dict[str, str]) -> None:
    result = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def files(way: str) -> list[str]:
    if way == "default":
        names = (path.name for path in DIRECTORY.glob("*.test.mjs"))
        return sorted(name for name in names if name.removesuffix(".test.mjs") not in ALONE)
    return [f"{name}.test.mjs" for name in (CHANGED_BY_AUTOCONFIRM if way == "autoconfirm" else [way])]


@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_javascript_clients_work_with_the_settings_of_each_way(way, service):
    run(
        [str(NODE), "--test", "--test-concurrency=1", "--test-reporter=spec", *files(way)], DIRECTORY, service
    )


@pytest.mark.parametrize("way", ["default"], indirect=True)
def test_typescript_client_generated_from_openapi_yaml_compiles_and_works(service, tmp_path):
    shutil.copy(DIRECTORY / "generated.ts", tmp_path)
    shutil.copy(DIRECTORY / "package.json", tmp_path)
    (tmp_path / "node_modules").symlink_to(DIRECTORY / "node_modules")
    names = json.dumps(list(description()["components"]["schemas"]))
    (tmp_path / "names.ts").write_text(
        'import type { components } from "./api.js";\n'
        f'export const names: (keyof components["schemas"])[] = {names};\n'
    )
    compiler = ["tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--noEmitOnError"]
    # The declarations of TypeScript itself are a third of the work.
    compiler += ["--skipDefaultLibCheck"]
    for command in (
        ["openapi-typescript", str(OPENAPI), "--output", "api.d.ts"],
        [*compiler, "generated.ts", "names.ts"],
    ):
        run([f"node_modules/.bin/{command[0]}", *command[1:]], tmp_path, service)
    run([str(NODE), "generated.js"], tmp_path, service)
