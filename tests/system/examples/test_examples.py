"""The APIs of examples/, each in its own process, which verify the tokens of a running service."""

import base64
import hmac
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from joserfc import jwk

from auth.web.context import EXTENSION
from tests.support.apps import new_app
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.factors import set_up
from tests.support.forwarder import Forwarder
from tests.support.openid import granted_code, make_client
from tests.support.processes import CHECKOUT, free_port, wait_until
from tests.support.server import ServerClient, served
from tests.support.users import LARGEST_METADATA, Person, Session, register, session_of, sign_in

EXAMPLES = CHECKOUT / "examples"
NODE = shutil.which("node")
MAVEN = shutil.which("mvn") if shutil.which("javac") else None
KEY = jwk.ECKey.generate_key("P-256", {"kid": "tests", "alg": "ES256", "use": "sig"}, private=True)
# The APIs reach the service by another URL.
ISSUER = "https://auth.example.com"
OTHER_KEY = jwk.ECKey.generate_key("P-256", {"kid": "tests", "alg": "ES256", "use": "sig"}, private=True)
COMMANDS = {
    "flask": lambda port: [sys.executable, "-m", "flask", "--app", "api", "run", "--port", port],
    "fastapi": lambda port: [sys.executable, "-m", "uvicorn", "api:app", "--port", port],
    "django": lambda port: [sys.executable, "api.py", "runserver", "--noreload", port],
    "express": lambda _: [NODE, "api.mjs"],
    "spring": lambda _: ["java", "-jar", "target/api.jar"],
}
WITH_NODE = [
    pytest.mark.skipif(
        NODE is None or not (EXAMPLES / "express" / "node_modules").is_dir(),
        reason="NOT TESTED: examples/express. It needs Node.js and npm: make test-clients",
    ),
]
WITH_MAVEN = [
    pytest.mark.skipif(
        MAVEN is None, reason="NOT TESTED: examples/spring. It needs Maven and a JDK: make test-interop"
    ),
]

APIS = [
    *("flask", "fastapi", "django"),
    pytest.param("express", marks=WITH_NODE),
    pytest.param("spring", marks=WITH_MAVEN),
]
# The commands that run the tests of an example; pytest runs those in Python.
TESTS = {"express": [str(NODE), "--test"], "spring": ["mvn", "--batch-mode", "--quiet", "test"]}
PYTEST = ["--rootdir=.", "-c", os.devnull, "-p", "latchkey_auth.pytest_plugin", "-p", "no:cacheprovider"]


@pytest.fixture(scope="module")
def latchkey(environment) -> Iterator[tuple[ServerClient, Forwarder]]:
    """The service, behind a forwarder that can be closed."""
    port = free_port()
    with Forwarder(f"host=127.0.0.1 port={port}") as forwarder:
        changes = {
            "AUTH_BASE_URL": ISSUER,
            "AUTH_JWT_KEYS": json.dumps({"keys": [KEY.as_dict(private=True)]}),
        }
        app = new_app({**environment, **changes})
        with served(app, port) as client:
            yield client, forwarder
        app.extensions[EXTENSION].db.close()


@pytest.fixture(scope="module")
def output(tmp_path_factory) -> Path:
    """The file with what the running API prints."""
    return tmp_path_factory.mktemp("example") / "output"


@pytest.fixture(scope="module", params=APIS)
def running_api(request, latchkey, output) -> Iterator[httpx.Client]:
    port, (_, forwarder) = free_port(), latchkey
    environment = {
        "PATH": os.environ["PATH"],
        "PORT": str(port),
        "LATCHKEY_URL": ISSUER,
        "LATCHKEY_INTERNAL_URL": f"http://127.0.0.1:{forwarder.port}",
        "LATCHKEY_SERVICE_ROLE_KEY": SERVICE_ROLE_KEY,
    }
    if request.param == "spring":
        # The first run downloads the dependencies.
        build = ["mvn", "--batch-mode", "--quiet", "-DskipTests", "package"]
        subprocess.run(build, cwd=EXAMPLES / "spring", check=True)
    with output.open("wb") as out:
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
        process = subprocess.Popen(
            COMMANDS[request.param](str(port)), cwd=EXAMPLES / request.param, env=environment, **pipes
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=20) as api:

            def answers() -> bool:
                assert process.poll() is None, output.read_text()
                try:
                    return api.get("/me").status_code == 401
                except httpx.TransportError:
                    return False

            wait_until(answers, 120)
            yield api
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def api(running_api: httpx.Client, app) -> httpx.Client:
    """An API, with empty tables."""
    return running_api


@pytest.fixture
def person(latchkey, app, service_role) -> Person:
    client, _ = latchkey
    return register(client, service_role, "alice@example.com")


@pytest.fixture
def session(person) -> Session:
    return person.sign_in()


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def mint(claims: dict[str, Any], key: Any = KEY, **header: Any) -> str:
    pem = key.as_pem(private=True)
    return jwt.encode(claims, pem, "ES256", {"kid": "tests", "typ": "JWT"} | header)


def hmac_token(claims: dict[str, Any], secret: bytes) -> str:
    """Return a token whose secret is public data, which PyJWT would refuse to sign."""
    signed_text = f"{encoded({'alg': 'HS256', 'kid': 'tests', 'typ': 'JWT'})}.{encoded(claims)}"
    mac = hmac.digest(secret, signed_text.encode(), "sha256")
    return f"{signed_text}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


BAD_TOKENS: dict[str, Callable[[dict[str, Any]], str]] = {
    "expired": lambda claims: mint(claims | {"exp": int(time.time()) - 60}),
    "without expiry": lambda claims: mint({name: claims[name] for name in claims if name != "exp"}),
    "of another issuer": lambda claims: mint(claims | {"iss": "http://127.0.0.1:1"}),
    "for another audience": lambda claims: mint(claims | {"aud": "another"}),
    "for the second step": lambda claims: mint(claims | {"aud": "second_step", "next_aal": "aal2"}),
    "of a client, typed as a session's": lambda claims: mint(claims | {"client_id": "grafana"}),
    "of another key": lambda claims: mint(claims, OTHER_KEY),
    "of an unknown key": lambda claims: mint(claims, OTHER_KEY, kid="unknown"),
    "unsigned": lambda claims: f"{encoded({'alg': 'none', 'kid': 'tests', 'typ': 'JWT'})}.{encoded(claims)}.",
    "keyed with the public key": lambda claims: hmac_token(claims, KEY.as_pem(private=False)),
    "not a token": lambda _: "nonsense",
}


def test_bad_tokens_are_refused(api, session, latchkey, database):
    application = make_client(database)
    code = granted_code(database, application, session, nonce="n")
    answer = application.redeem(latchkey[0], code).json
    assert api.get("/me", headers={"Authorization": f"Bearer {mint(session.claims)}"}).status_code == 200
    tokens = {name: f"Bearer {make(session.claims)}" for name, make in BAD_TOKENS.items()}
    tokens |= {f"{name} of an application": f"Bearer {answer[name]}" for name in ("access_token", "id_token")}
    tokens |= {"of another scheme": f"Basic {session.access_token}", "empty": "Bearer"}
    for name, header in tokens.items():
        for method, path in (("GET", "/me"), ("POST", "/payments")):
            response = api.request(method, path, headers={"Authorization": header})
            assert (name, response.status_code) == (name, 401)
            assert response.headers["WWW-Authenticate"].startswith("Bearer"), name


def test_refused_token_is_logged_with_the_reason_but_not_repeated(api, session, output):
    tokens = [
        BAD_TOKENS[name](session.claims) for name in ("of another issuer", "of an unknown key", "expired")
    ]
    tokens += [mint(session.claims, **{name: "another\nline"}) for name in ("kid", "typ")]
    for token in tokens:
        api.get("/me", headers={"Authorization": f"Bearer {token}"})
    wait_until(lambda: output.read_text().count(f", expected from {ISSUER}") >= 4, 30)
    logged = output.read_text().lower()
    assert all(reason in logged for reason in ("iss", "key", "exp"))
    assert not any(token.lower() in logged for token in tokens)
    assert not any(line.startswith("line") for line in logged.splitlines())


def test_token_that_lacks_a_second_step_is_refused(api, session):
    set_up(session)
    session_without_step = session_of(session.client, sign_in(session.client, session.user["email"]))
    for method, path in (("GET", "/me"), ("GET", "/reports"), ("POST", "/payments")):
        response = api.request(method, path, headers=session_without_step.authorization)
        assert (path, response.status_code) == (path, 401)


def test_api_accepts_the_token_of_a_user_with_the_largest_metadata(api, person, service_role):
    metadata = {"user_metadata": LARGEST_METADATA, "app_metadata": LARGEST_METADATA}
    person.client.put(f"/admin/users/{person.id}", json=metadata, headers=service_role)
    session = person.sign_in()
    assert len(session.access_token) > 20_000
    assert api.get("/me", headers=session.authorization).json()["email"] == person.email
    assert api.post("/payments", headers=session.authorization).json() == {"paid_by": person.id}


def test_api_serves_while_latchkey_is_down_but_cannot_ask_it(api, session, latchkey):
    _, forwarder = latchkey
    assert api.get("/me", headers=session.authorization).status_code == 200
    forwarder.close()
    try:
        assert api.get("/me", headers=session.authorization).status_code == 200
        assert api.post("/payments", headers=session.authorization).status_code == 503
    finally:
        forwarder.open()


@pytest.fixture(scope="module")
def kit_settings(database_url, all_rows) -> Iterator[dict[str, str]]:
    """Settings with which the test kits use the Postgres of this worker: to start one for each takes 2 s of CPU."""
    if "TEST_DATABASE_URL" in os.environ:
        # Other workers share this server, and their tests look for databases of kits.
        yield {}
        return
    yield {"LATCHKEY_TEST_DATABASE_URL": database_url}
    for row in all_rows.all("SELECT datname FROM pg_database WHERE datname LIKE 'latchkey_test_template_%%'"):
        all_rows.run(f'DROP DATABASE "{row.datname}"')


@pytest.mark.parametrize("example", APIS)
def test_tests_of_an_example_pass(example, tmp_path, kit_settings):
    """Run the tests, which show how to use the test kit."""
    program = tmp_path / "latchkey"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P {CHECKOUT}/latchkey_auth/__main__.py "$@"\n')
    program.chmod(0o700)
    environment = os.environ | {"LATCHKEY_COMMAND": str(program), "PORT": str(free_port())}
    environment |= kit_settings
    environment |= {"PYTHONPATH": str(CHECKOUT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = TESTS.get(example, [sys.executable, "-m", "pytest", *PYTEST])
    result = subprocess.run(
        command, cwd=EXAMPLES / example, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
