"""A database of the operator, with one role that owns the tables and another for requests."""

from contextlib import closing
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import parse_dsn

from auth.core import files
from auth.ops.backups import age
from tests.support.commands import run_process
from tests.support.environment import ENVIRONMENT
from tests.support.processes import CHECKOUT, Service, short_directory, wait_until
from tests.support.server import ServerClient
from tests.support.users import register, sign_in
from tests.system.faults.clients import ADMIN
from tests.system.faults.deployment import Deployment

SETTINGS: dict[str, Any] = {**ENVIRONMENT, "AUTH_DELIVER": "true", "AUTH_WORKERS": "1"}
OWNER, REQUESTS = "own_owner", "own_requests"


def roles_of(url: str) -> set[str]:
    """Return the roles by which the service is connected now."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT usename::text FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'latchkey'"
        )
        return {name for (name,) in cursor.fetchall()}


def use(service: Service, email: str) -> None:
    """Create a user, who signs in and changes the password, and find all this in the audit log."""
    with closing(ServerClient(service.port)) as client:
        session = register(client, ADMIN, email).sign_in()
        assert session.put("/user", json={"password": "Another-Horse-1"}).status_code == 200
        entries = client.get("/admin/audit", headers=ADMIN).json["data"]
        assert {"user_created", "signed_in", "password_changed"} <= {entry["action"] for entry in entries}


@pytest.fixture
def database_of_roles() -> Any:
    """A Postgres in which an unprivileged role owns a database, and its URLs for both roles."""
    with Deployment() as deployment:
        deployment.postgres.run(
            f"CREATE ROLE {OWNER} LOGIN CREATEROLE CREATEDB", f"CREATE DATABASE own OWNER {OWNER}"
        )
        host = parse_dsn(deployment.postgres.url)["host"].replace("/", "%2F")
        urls = [f"postgresql://{name}:secret@/own?host={host}&port=5432" for name in (OWNER, REQUESTS)]
        yield deployment, *urls


def test_backup_is_restored_for_the_role_of_requests(database_of_roles, tmp_path):
    deployment, owner_url, requests_url = database_of_roles
    settings = SETTINGS | {"DATABASE_URL": requests_url, "AUTH_STATE_DIR": str(deployment.state_dir)}
    command = settings | {
        "AUTH_DATABASE_OWNER_URL": owner_url,
        "PYTHONPATH": str(CHECKOUT),
        "PATH": "/usr/bin:/bin",
    }
    key = tmp_path / "key"
    command["AUTH_BACKUP_RECIPIENTS"], identity = age.new_identity()
    files.write(key, identity)
    with Service(deployment.state_dir, **settings | {"AUTH_DATABASE_OWNER_URL": owner_url}) as service:
        use(service, "before@example.com")
        result = run_process(command, "backup", str(tmp_path / "backup.age"), cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    (file,) = tmp_path.glob("backup-*.age")
    result = run_process(command, "restore", str(file), "--identity", str(key), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    with Service(deployment.state_dir, **settings) as service, closing(ServerClient(service.port)) as client:
        assert sign_in(client, "before@example.com", "Another-Horse-1").status_code == 200
        wait_until(lambda: roles_of(owner_url) == {REQUESTS})


def test_start_with_a_wrong_url_of_the_owner_names_that_setting():
    with short_directory() as folder:
        urls: dict[str, Any] = {
            "DATABASE_URL": "postgresql://a@127.0.0.1:1/x",
            "AUTH_DATABASE_OWNER_URL": "postgresql://b@127.0.0.1:1/x",
        }
        status, text = Service(folder / "var", **urls).refuses_to_start()
    assert status == 1
    assert text.startswith("AUTH_DATABASE_OWNER_URL: The database cannot be used: ")
