"""Requests after a restore by pg_restore."""

import subprocess

import pytest

from auth.ops.processes.embedded_postgres import find_programs
from tests.support.users import PASSWORD


@pytest.fixture
def restore(database, database_url, tmp_path):
    if database.value("SELECT current_setting('server_version_num')::integer") < 17_00_00:
        pytest.skip("NOT TESTED: this pg_restore sets transaction_timeout, which Postgres 17 introduced")

    def restore():
        programs, file = find_programs(), tmp_path / "latchkey.dump"
        options = ["--clean", "--if-exists", "--single-transaction"]
        for command in (
            [programs / "pg_dump", "-Fc", "-f", file, database_url],
            [programs / "pg_restore", *options, "-d", database_url, file],
        ):
            subprocess.run(command, check=True, capture_output=True)

    return restore


def test_requests_are_served_after_a_restore(alice, client, service_role, restore):
    session = alice.open_session()

    def statuses(name):
        new = {"email": f"{name}@example.com", "password": PASSWORD, "user_metadata": {"name": name}}
        return [
            session.get("/user").status_code,
            session.put("/user", json={"data": {"x": name}}).status_code,
            alice.try_to_sign_in().status_code,
            client.get("/admin/users", headers=service_role).status_code,
            client.post("/admin/users", json=new, headers=service_role).status_code,
            client.post("/signup", json={"email": f"{name}@example.org", "password": PASSWORD}).status_code,
        ]

    served = [200, 200, 200, 200, 200, 201]
    assert statuses("bob") == served
    restore()
    assert statuses("dave") == served
