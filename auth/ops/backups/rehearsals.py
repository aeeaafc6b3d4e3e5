"""Tests a backup: restores it into a temporary Postgres, starts the service there and signs a user in."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import requests
from psycopg2.extensions import parse_dsn
from requests.adapters import HTTPAdapter, Retry

from auth.core.net.sockets import free_port
from auth.core.settings import running, state
from auth.ops import CHECKOUT, GUNICORN
from auth.ops.backups import archive, restores
from auth.ops.backups.archive import BackupError, Manifest
from auth.ops.connections import Unprepared, autocommitting, execute
from auth.ops.processes import embedded_postgres
from sql import queries, roles, schema
from sql.pool import Connection

_SERVICE = [sys.executable, *GUNICORN, "wsgi:app"]
_REMEDY = "Keep the older backups, and report this to the maintainers."
_START_LIMIT = 60  # seconds
_TIMEOUT = 20
# Writing the restored data to disk may block Postgres for longer than the service waits: it then returns 503.
_AGAIN = Retry(20, connect=0, read=0, status_forcelist=[503], allowed_methods=None, raise_on_status=False)


def rehearse(plaintext: Iterable[bytes]) -> Manifest:
    """Restore and use a backup. Return its manifest. Raises what `fill` does, and `EmbeddedPostgresError`."""
    with tempfile.TemporaryDirectory(prefix="latchkey-") as name, requests.Session() as http:
        http.trust_env = False  # no proxy for this machine
        http.mount("http://", HTTPAdapter(max_retries=_AGAIN))
        directory = Path(name).resolve()
        options = {"fsync": "off", "full_page_writes": "off"}
        with embedded_postgres.running(directory / "var", options) as url:
            manifest, pieces = archive.parse(plaintext)
            with autocommitting(url) as connection:
                # Its own roles do not look where those of the backup do.
                execute(connection, "ALTER DATABASE postgres SET search_path = {}", manifest.schema)
            requests_url = state.of_requests(url)
            restores.fill(url, manifest, pieces, restores.Options(requests_url=requests_url))
            with autocommitting(url) as connection:
                stale = queries.count_stale_user_objects(Unprepared(connection)).total
                _grant_what_the_operator_made(connection, requests_url)
            if stale:
                raise BackupError(f"{stale} rows of user_objects differ from their users. {_REMEDY}")
            with _service(directory, requests_url, manifest, http) as base_url:
                _sign_in(base_url, manifest.service_role_key[0], http)
    return manifest


def _grant_what_the_operator_made(connection: Connection, requests_url: str) -> None:
    """Grant the role of requests what triggers of the operator may need: a backup has no grants."""
    tables = roles.TABLES.findall(schema.SCHEMA.read_text(encoding="utf-8"))
    role = str(parse_dsn(requests_url)["user"])
    grants = queries.compose_grants_of_operator(Unprepared(connection), role=role, tables=tables)
    with connection.cursor() as cursor:
        cursor.execute(grants.statement)


@contextmanager
def _service(directory: Path, url: str, manifest: Manifest, http: requests.Session) -> Iterator[str]:
    # Not in the checkout: its .env has the settings of the real service.
    with (directory / "service.log").open("wb") as log:
        environment = _environment(directory, url, manifest)
        process = subprocess.Popen(  # noqa: S603
            _SERVICE, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    base_url = environment["AUTH_BASE_URL"]
    try:
        deadline = time.monotonic() + _START_LIMIT
        # Another program may have the port.
        while not (running.is_serving(directory / "var") and _is_healthy(base_url, http)):
            if process.poll() is not None or time.monotonic() > deadline:
                text = (directory / "service.log").read_text(encoding="utf-8", errors="replace")
                end = text.strip().splitlines()[-3:]
                raise BackupError(
                    f"The service does not start on the restored database. Fix what it says: {' '.join(end)}"
                )
            time.sleep(0.1)
        yield base_url
    finally:
        process.terminate()
        process.wait()


def _environment(directory: Path, url: str, manifest: Manifest) -> Mapping[str, str]:
    port = str(free_port())
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(CHECKOUT),
        "HOME": str(directory),
        "PORT": port,
        "DATABASE_URL": url,
        "AUTH_BASE_URL": f"http://127.0.0.1:{port}",
        "AUTH_STATE_DIR": str(directory / "var"),
        "AUTH_SECRET_KEY": ",".join(manifest.secret_key),
        "AUTH_SERVICE_ROLE_KEY": ",".join(manifest.service_role_key),
        "AUTH_WORKERS": "1",
        "AUTH_DELIVER": "false",
    }
    if manifest.jwt_keys:
        environment["AUTH_JWT_KEYS"] = json.dumps({"keys": manifest.jwt_keys})
    if secret := manifest.environment.get("AUTH_JWT_SECRET"):
        environment["AUTH_JWT_SECRET"] = secret
    return environment


def _is_healthy(base_url: str, http: requests.Session) -> bool:
    try:
        return http.get(f"{base_url}/health", timeout=_TIMEOUT).ok
    except requests.RequestException:
        return False


def _sign_in(base_url: str, service_role_key: str, http: requests.Session) -> None:
    email, password = f"{secrets.token_hex(16)}@example.com", f"Aa1-{secrets.token_urlsafe(24)}"
    body = {"email": email, "password": password}

    def call(
        what: str, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> dict:
        response = http.request(method, base_url + path, json=body, headers=headers, timeout=_TIMEOUT)
        if not response.ok:
            answer = f"{response.status_code} {response.text}"
            raise BackupError(f"{what} fails on the restored service: {answer}. {_REMEDY}")
        return response.json()

    key = {"apikey": service_role_key}
    call("Creating a user", "POST", "/admin/users", body | {"email_confirm": True}, key)
    tokens = call("A sign-in", "POST", "/token?grant_type=password", body)
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    if call("GET /user", "GET", "/user", headers=bearer)["email"] != email:
        raise BackupError(f"GET /user returns another user on the restored service. {_REMEDY}")
    refresh = {"refresh_token": tokens["refresh_token"]}
    call("A refresh", "POST", "/token?grant_type=refresh_token", refresh)
