"""A database whose tables are in another schema than public, which the search_path of its role names."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auth.ops.backups import age
from tests.support.commands import run_process
from tests.support.databases import as_role, run
from tests.support.environment import ENVIRONMENT
from tests.support.processes import Service
from tests.support.server import ServerClient
from tests.support.users import register, sign_in

RECIPIENT, IDENTITY = age.new_identity()
ROLE = "own_schema"
ADMIN = {"Authorization": f"Bearer {ENVIRONMENT['AUTH_SERVICE_ROLE_KEY']}"}


@pytest.fixture
def url(new_database, database) -> Iterator[str]:
    """The URL of a role whose tables are in the schema `Own schema`, and which may create databases."""
    name = f"{ROLE}_{database.value('SELECT current_database()')}"
    owner_url = new_database()
    run(owner_url, f"CREATE ROLE {name} LOGIN CREATEDB PASSWORD 'own'")
    role_url = as_role(owner_url, name, password="own")
    database_name = run(owner_url, "SELECT current_database()")[0][0]
    run(owner_url, f'ALTER DATABASE "{database_name}" OWNER TO {name}')
    run(owner_url, f'ALTER ROLE {name} SET search_path = "Own schema"')
    run(owner_url, f'CREATE SCHEMA "Own schema" AUTHORIZATION {name}')
    yield role_url
    for suffix in ("_before_restore", "_restoring"):
        database.run(f'DROP DATABASE IF EXISTS "{database_name}{suffix}" WITH (FORCE)')
    run(owner_url, f"DROP OWNED BY {name}")
    database.run(f'ALTER DATABASE "{database_name}" OWNER TO current_user; DROP ROLE {name}')


def test_backup_verify_restore_and_doctor_work_in_another_schema(url, new_database, new_state_dir, tmp_path):
    settings: dict[str, Any] = {"DATABASE_URL": url, "AUTH_STATE_DIR": str(new_state_dir)}
    environment = {**ENVIRONMENT, **settings, "AUTH_BACKUP_RECIPIENTS": RECIPIENT}
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_text(IDENTITY)

    def latchkey(*arguments: object) -> Any:
        result = run_process(environment, *arguments, "--json")
        assert result.returncode == 0, result.stderr + result.stdout
        return json.loads(result.stdout)

    def serve() -> Service:
        return Service(new_state_dir, **{**ENVIRONMENT, **settings, "AUTH_DELIVER": "true"})

    with serve() as service:
        client = ServerClient(service.port)
        register(client, ADMIN, "before@example.com")
        file = Path(latchkey("backup", tmp_path / "latchkey.age")["file"])
        register(client, ADMIN, "after@example.com")
        client.close()
        settings["AUTH_BASE_URL"] = f"http://127.0.0.1:{service.port}"
        report = run_process(environment | settings, "doctor", "--json").stdout
    statuses = {each["check"]: each["status"] for each in map(json.loads, report.splitlines())}
    names = ("database", "schema", "pooler", "connections", "locks", "database-disk")
    assert {name: statuses[name] for name in names} == dict.fromkeys(names, "ok")
    latchkey("backup", "verify", file, "--identity", key)

    other_url = new_database()
    settings["DATABASE_URL"], environment["DATABASE_URL"] = other_url, other_url
    result = run_process(environment, "restore", file, "--identity", key)
    assert result.returncode == 1
    remedy = f'ALTER ROLE {run(other_url, "SELECT quote_ident(current_user)")[0][0]} SET search_path = "Own schema"'
    assert result.stderr.rstrip().endswith(f"Own schema, where this role does not look. Run: {remedy}")
    assert (
        run(
            other_url,
            "SELECT tablename FROM pg_tables WHERE schemaname NOT LIKE 'pg_%'"
            " AND schemaname <> 'information_schema'",
        )
        == []
    )
    settings["DATABASE_URL"], environment["DATABASE_URL"] = url, url

    assert latchkey("restore", file, "--identity", key)["former_database"]
    with serve() as service:
        client = ServerClient(service.port)
        assert sign_in(client, "before@example.com").status_code == 200
        assert sign_in(client, "after@example.com").status_code == 401
        client.close()
    tables = run(url, "SELECT DISTINCT schemaname::text FROM pg_tables WHERE tableowner = current_user")
    assert tables == [("Own schema",)]
