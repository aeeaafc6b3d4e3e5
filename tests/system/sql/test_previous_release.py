"""Nodes of the previous release serve beside new ones until they are restarted: docs/deployment.md. SQL functions that
only they call are in sql/functions/previous.sql, if there are any.
"""

from contextlib import closing

import psycopg2
import pytest

from sql import load_statements, schema
from tests.support import oldest_release, previous_release
from tests.support.databases import new_databases
from tests.support.previous_release import FILE, HEADER, Release, parts_of, plan

BOTH, BEFORE, UNCALLED = (
    f"CREATE OR REPLACE FUNCTION {name}(x integer = 1) RETURNS integer LANGUAGE sql AS $$ SELECT x $$;\n"
    for name in ("both", "before", "nobody")
)


def release(text: str, callers: str) -> Release:
    return Release({"file.sql": list(parts_of(text))}, callers)


def test_function_that_only_nodes_of_the_previous_release_call_moves_to_its_file_and_an_uncalled_one_is_dropped():
    planned = plan(
        release(BOTH + BEFORE + UNCALLED, "SELECT both()"), release(BOTH + BEFORE, "SELECT both(), before()")
    )
    assert planned.files == {"file.sql": BOTH, FILE: HEADER + BEFORE}
    assert (planned.drops, planned.problems) == (["DROP FUNCTION IF EXISTS nobody(integer);"], [])


def test_function_that_nodes_of_the_previous_release_call_keeps_its_text():
    planned = plan(release(BOTH.replace("x $$", "2 $$"), "SELECT both()"), release(BOTH, "SELECT both()"))
    assert planned.problems == [
        f"both(integer) has another text than nodes of {previous_release.NAME} need: give the new one a name"
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return oldest_release.unpack(tmp_path_factory.mktemp("previous"), previous_release.COMMIT)


def test_functions_of_this_release_need_no_change_for_nodes_of_the_previous_release(files):
    planned = plan(previous_release.read(previous_release.ROOT), previous_release.read(files))
    remedy = "run `python -m tests.support.previous_release`"
    assert (planned.problems, planned.drops, dict.fromkeys(planned.files, remedy)) == ([], [], {})


def test_statements_of_the_previous_release_can_be_planned_after_each_step_of_the_upgrade(
    all_rows, database_url, files
):
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
