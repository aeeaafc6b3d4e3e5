"""Clients that openapi-generator and orval make from openapi.yaml: each signs a user up, verifies the mailed code,
logs in and refreshes. Their programs are in generated/.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.contract import OPENAPI

HERE = Path(__file__).parent / "generated"
NODE_MODULES = HERE / "typescript" / "node_modules"
# Compiling the client for Go takes a minute, and longer during other tests.
TIMEOUT = 1800.0


def run(command: list[str], directory: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture
def generate(make_python, tmp_path) -> Callable[..., Path]:
    """Return a function that runs openapi-generator, and returns the folder of its programs."""
    if not shutil.which("java"):
        pytest.skip(
            "NOT TESTED: the clients of openapi-generator, which needs Java: apt install default-jre-headless"
        )

    def generated(language: str, directory: Path, *properties: str) -> Path:
        programs = make_python(HERE / "requirements.txt")
        command = [str(programs / "openapi-generator-cli"), "generate", "--generator-name", language]
        command += ["--input-spec", str(OPENAPI), "--output", str(directory)]
        command += ["--additional-properties", ",".join(properties)]
        # Without documents and tests, which are thousands of files.
        command += ["--global-property", "apis,models,supportingFiles,apiDocs=false,modelDocs=false"]
        run([*command, "--global-property", "apiTests=false,modelTests=false"], tmp_path, dict(os.environ))
        return programs

    return generated


def test_python_client_signs_a_user_up_and_in(generate, service, tmp_path):
    programs = generate("python", tmp_path / "client", "packageName=latchkey_client")
    environment = service | {"PYTHONPATH": str(tmp_path / "client")}
    run([str(programs / "python"), "-W", "error", str(HERE / "sign_in.py")], tmp_path, environment)


def test_go_client_signs_a_user_up_and_in(generate, service, tmp_path):
    if not shutil.which("go"):
        pytest.skip("NOT TESTED: the client of openapi-generator for Go, which needs go: apt install golang")
    module = shutil.copytree(HERE / "go", tmp_path / "module")
    generate("go", module / "latchkey", "packageName=latchkey", "withGoMod=false")
    run(["go", "test", "-count=1", "./..."], module, service)


@pytest.fixture
def module(tmp_path) -> Path:
    """A folder of TypeScript, with its packages."""
    if not shutil.which("node") or not NODE_MODULES.is_dir():
        pytest.skip("NOT TESTED: clients in TypeScript, which need Node.js and npm: make test-interop")
    module = shutil.copytree(
        HERE / "typescript", tmp_path / "module", ignore=shutil.ignore_patterns("node_modules")
    )
    (module / "node_modules").symlink_to(NODE_MODULES)
    return module


def compile_and_run(name: str, module: Path, environment: dict[str, str]) -> None:
    compiler = ["--strict", "--target", "es2022", "--module", "nodenext", "--noEmitOnError"]
    run(["node_modules/.bin/tsc", *compiler, f"{name}.ts"], module, environment)
    run(["node", f"{name}.js"], module, environment)


def test_typescript_client_of_orval_signs_a_user_up_and_in(module, service):
    environment = service | {"OPENAPI": str(OPENAPI)}
    run(["node_modules/.bin/orval", "--config", "orval.config.mjs"], module, environment)
    compile_and_run("sign-in", module, environment)


def test_typescript_client_of_openapi_generator_signs_a_user_up_and_in(generate, module, service):
    generate("typescript-axios", module / "latchkey", "importFileExtension=.js")
    compile_and_run("sign-in-axios", module, service)
