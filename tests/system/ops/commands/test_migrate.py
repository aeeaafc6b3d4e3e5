"""`latchkey migrate`: brings the database of an earlier release up to date."""

import json
import re
from contextlib import closing

import psycopg2
import pytest
from click.testing import CliRunner

from auth.ops.commands import main
from sql import schema
from tests.support import catalog, oldest_release
from tests.support.commands import start_process
from tests.support.environment import clear_settings
from tests.support.processes import CHECKOUT


@pytest.fixture
def url(new_database, oldest_release_files):
    return new_database(oldest_release.script(oldest_release_files))


@pytest.fixture
def migrate(monkeypatch, tmp_path, url):
    clear_settings(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", url)
    return lambda *options: CliRunner().invoke(main, ["migrate", *options])


def test_database_of_an_earlier_release_is_upgraded_once(migrate):
    steps = [path.stem for path in schema.MIGRATIONS.values()]
    first_result, second_result = migrate(), migrate()
    assert (first_result.exit_code, first_result.output.split()) == (0, [*steps, "functions"])
    assert (second_result.exit_code, second_result.output) == (0, "The schema is up to date.\n")
    assert migrate("--json").output == '{"steps": []}\n'


def test_failed_migration_changes_nothing_and_is_named(migrate, url, monkeypatch, tmp_path):
    number = min(schema.MIGRATIONS)
    broken = tmp_path / f"{number:04}_breaks.sql"
    broken.write_text("CREATE TABLE added (x integer);\nINSERT INTO added VALUES ('nonsense');\n")
    monkeypatch.setitem(schema.MIGRATIONS, number, broken)
    before = catalog.lines(url)
    result = migrate()
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert result.output.startswith(f"Error: DATABASE_URL: The schema cannot be applied: {broken.stem}: ")
    assert catalog.lines(url) == before


def test_embedded_postgres_that_does_not_run_is_left_to_the_start(migrate, monkeypatch, tmp_path):
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.setenv("AUTH_STATE_DIR", str(tmp_path / "var"))
    result = migrate()
    assert (result.exit_code, result.output) == (
        0,
        f"The service creates or migrates its database in {tmp_path}/var when it starts."
        " For another database, set DATABASE_URL.\n",
    )
    assert not list(tmp_path.iterdir())


def test_migration_names_the_transaction_that_it_waits_for(url, tmp_path):
    environment = {"PYTHONPATH": str(CHECKOUT), "DATABASE_URL": url}
    with closing(psycopg2.connect(url, application_name="pg_dump")) as dump:
        dump.cursor().execute("SELECT FROM users")
        migrating = start_process(environment, "migrate", cwd=tmp_path)
        assert migrating.stderr
        notice = json.loads(migrating.stderr.readline())
    assert migrating.communicate()[0].split()[-1] == "functions"
    assert notice["level"] == "warning"
    assert re.match(
        r"Trying again: \d{4}_\w+: .*process \d+ of Postgres \(pg_dump\), for \d+ s", notice["event"]
    )
