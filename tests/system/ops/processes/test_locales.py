"""Locales of the service and of the database change nothing that is read, stored or found."""

import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from auth.ops.connections import autocommitting, execute
from auth.ops.processes.embedded_postgres import EmbeddedPostgres
from sql import schema
from tests.support.commands import run_process
from tests.support.environment import CLOCK, ENVIRONMENT
from tests.support.processes import CHECKOUT, Service, short_directory
from tests.support.programs import find_program
from tests.support.server import ServerClient
from tests.support.users import PASSWORD, register
from tests.system.faults.clients import ADMIN

# Python would choose UTF-8 for this locale by itself, but not for those that name another encoding.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def environment(new_database):
    return ENVIRONMENT | ASCII | {"DATABASE_URL": new_database(), "AUTH_WORKERS": "1"}


def test_service_and_commands_work_in_ascii_and_other_nodes_have_nothing_to_change(
    environment, new_state_dir
):
    with Service(new_state_dir, **environment) as service, closing(ServerClient(service.port)) as client:
        zoe = register(client, ADMIN, "zoë@bücher.example")
        command = environment | {"AUTH_STATE_DIR": str(new_state_dir), "PYTHONPATH": str(CHECKOUT)}
        result = run_process(command, "users", "show", zoe.id)
        assert "Traceback" not in result.stderr, result.stderr
        assert (result.returncode, result.stderr) == (0, "")
        assert "@xn--bcher-kva.example" in result.stdout
    assert schema.pending(environment["DATABASE_URL"]) == []


@pytest.fixture
def turkish_url() -> Iterator[str]:
    """A database in whose collation I and i are different letters."""
    localedef = find_program("localedef", "locales", "NO TURKISH DATABASE IS TESTED")
    with short_directory() as directory:
        command = [localedef, "-i", "tr_TR", "-f", "UTF-8", str(directory / "tr_TR.UTF-8")]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("NO TURKISH DATABASE IS TESTED: there are no sources of locales")
        server = EmbeddedPostgres(directory, {"fsync": "off"}, CLOCK | {"LOCPATH": str(directory)})
        url = server.start()
        try:
            with autocommitting(url) as connection:
                locale = "LOCALE_PROVIDER libc LOCALE 'tr_TR.UTF-8'"
                execute(connection, f"CREATE DATABASE turkish {locale} TEMPLATE template0")
            yield url.replace("/postgres?", "/turkish?")
        finally:
            server.stop()


def test_capital_letters_mean_the_same_in_a_turkish_database(turkish_url, new_state_dir):
    environment = ENVIRONMENT | {"DATABASE_URL": turkish_url, "AUTH_ORGANIZATIONS": "admins"}
    with (
        Service(new_state_dir, **environment, AUTH_WORKERS="1") as service,
        closing(ServerClient(service.port)) as client,
    ):
        ida = register(client, ADMIN, "Ida.I@EXAMPLE.com")
        credentials = {"email": "IDA.i@example.COM", "password": PASSWORD}
        assert client.post("/token?grant_type=password", json=credentials).json["user"]["id"] == ida.id
        body = {"name": "Fish Inc", "slug": "fish-inc"}
        assert client.post("/organizations", json=body, headers=ADMIN).status_code == 201
        command = environment | {"AUTH_STATE_DIR": str(new_state_dir), "PYTHONPATH": str(CHECKOUT)}
        result = run_process(command, "explain", "--organization", "FISH-INC")
    assert (result.returncode, result.stderr) == (0, "")
    assert "organization created: fish-inc" in result.stdout
