"""Nodes of the previous release serve beside new ones until they are restarted: docs/deployment.md. SQL functions that
only they call are in sql/functions/previous.sql.
"""

from contextlib import closing

import psycopg2
import pytest

from sql import load_statements, schema
from tests.support import oldest_release, previous_release
from tests.support.databases import new_databases
from tests.support.previous_release import plan


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return oldest_release.unpack(tmp_path_factory.mktemp("previous"), previous_release.COMMIT)


def test_functions_that_its_nodes_call_have_its_texts_and_nobody_else_calls_those_of_the_file(files):
    planned = plan(previous_release.read(previous_release.ROOT), previous_release.read(files))
    remedy = "run `python -m tests.support.previous_release`"
    assert (planned.problems, planned.drops, dict.fromkeys(planned.files, remedy)) == ([], [], {})


def test_its_statements_can_be_planned_after_each_step_of_the_upgrade(all_rows, database_url, files):
    statements = load_statements(files / "sql")
    steps: list[int] = []
    with new_databases(all_rows, database_url) as make:
        url = make(oldest_release.script(files))

        def plan_all(_):
            steps.append(len(steps))
            with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
                for name, statement in statements.items():
                    cursor.execute(statement.prepare(), {})
                    cursor.execute(f"EXPLAIN {statement.execute()}", dict.fromkeys(statement.parameters))
                    assert cursor.fetchall(), name

        plan_all(None)
        assert len(schema.apply(url, plan_all)) == len(steps) - 1 > 0
