"""Databases of operators, and roles, whose settings are not those that the service needs."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from sql import schema
from tests.support import log_watch
from tests.support.databases import new_databases
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.processes import Service, short_directory
from tests.support.server import ServerClient, at_once
from tests.support.users import PASSWORD
from tests.system.faults.dependencies import PgBouncer

SETTINGS_OF_ROLE = {"client_encoding": "LATIN1", "default_transaction_isolation": "serializable"}


def test_start_refuses_a_database_that_is_not_utf8_with_the_statement_that_makes_one(
    new_database, all_rows, new_state_dir
):
    url = new_database(options="ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    statement = "CREATE DATABASE latchkey ENCODING 'UTF8' TEMPLATE template0"
    line = (
        "DATABASE_URL: The schema cannot be applied: the database is encoded in LATIN1, and must be in UTF8."
    )
    line += f" Make another by: {statement}\n"
    assert Service(new_state_dir, DATABASE_URL=url).refuses_to_start() == (1, line)
    name = f"{urlsplit(url).path[1:]}_utf8"
    all_rows.run(statement.replace("latchkey", name))
    assert schema.apply(urlsplit(url)._replace(path=f"/{name}").geturl())
    all_rows.run(f"DROP DATABASE {name} WITH (FORCE)")


def test_start_behind_a_pooler_of_statements_names_the_mode_that_it_needs(
    new_database, database_url, new_state_dir
):
    if "host=%2F" not in database_url:
        pytest.skip("NOTHING IS TESTED BEHIND PGBOUNCER: TEST_DATABASE_URL has no socket")
    url = new_database()
    deployment: Any = SimpleNamespace(postgres=SimpleNamespace(url=url), state_dir=new_state_dir)
    with PgBouncer(deployment, pool_mode="statement") as bouncer:
        pooled = urlsplit(bouncer.url)._replace(path=urlsplit(url).path).geturl()
        service = Service(new_state_dir, DATABASE_URL=pooled, AUTH_DB_PREPARE="false")
        line = "DATABASE_URL: PgBouncer pools statements."
        line += " Set its pool_mode = transaction, and AUTH_DB_PREPARE=false.\n"
        assert service.refuses_to_start() == (1, line)


@pytest.fixture(scope="module")
def client(all_rows, database_url) -> Iterator[ServerClient]:
    """A client of a service whose role has other settings."""
    with ExitStack() as stack:
        state_dir = stack.enter_context(short_directory()) / "var"
        url = stack.enter_context(new_databases(all_rows, database_url))()
        database = urlsplit(url).path[1:]
        for name, value in SETTINGS_OF_ROLE.items():
            all_rows.run(f"ALTER ROLE CURRENT_USER IN DATABASE {database} SET {name} = '{value}'")
        settings: dict[str, Any] = {
            "AUTH_SERVICE_ROLE_KEY": SERVICE_ROLE_KEY,
            "AUTH_RATE_LIMITS_ENABLED": "false",
            "DATABASE_URL": url,
        }
        service = stack.enter_context(Service(state_dir, **settings))
        yield stack.enter_context(closing(ServerClient(service.port)))
        log_watch.scan_log("a role with other settings", service.log())


def test_role_with_another_client_encoding_stores_every_character(client, service_role):
    body = {"email": "dave@example.com", "password": PASSWORD, "user_metadata": {"name": "Zoë 王 ’"}}
    user = client.post("/admin/users", json=body, headers=service_role).json
    stored = client.get(f"/admin/users/{user['id']}", headers=service_role).json
    assert stored["user_metadata"] == {"name": "Zoë 王 ’"}


def test_role_whose_transactions_are_serializable_refuses_no_concurrent_change(client, service_role):
    def signed_in(number: int) -> dict[str, str]:
        body = {"email": f"user{number}@example.com", "password": PASSWORD}
        client.post("/admin/users", json=body | {"email_confirm": True}, headers=service_role)
        token = client.post("/token?grant_type=password", json=body).json["access_token"]
        return {"Authorization": f"Bearer {token}"}

    headers = at_once(4, signed_in)
    change = partial(client.put, "/user")

    def change_often(number: int) -> list[int]:
        return [
            change(json={"data": {"turn": turn}}, headers=headers[number % 4]).status_code
            for turn in range(10)
        ]

    assert at_once(12, change_often) == [[200] * 10] * 12
