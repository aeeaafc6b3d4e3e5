"""Nodes of the previous releases serve beside new ones until they are restarted: docs/deployment.md. SQL functions that
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
        "both(integer) has another text than nodes of the previous releases need: give the new one a name"
    ]


def test_function_of_two_previous_releases_has_the_text_of_the_newer_one_and_one_of_the_older_alone_is_kept():
    newer_before = BEFORE.replace("x $$", "2 $$")
    planned = plan(
        release(BOTH, "SELECT both()"),
        release(BOTH + BEFORE + UNCALLED, "SELECT both(), before(), nobody()"),
        release(BOTH + newer_before, "SELECT both(), before()"),
    )
    assert planned.files == {FILE: HEADER + newer_before + "\n" + UNCALLED}
    assert (planned.drops, planned.problems) == ([], [])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files of each previous release, oldest first."""
    return {
        name: oldest_release.unpack(tmp_path_factory.mktemp("previous"), commit)
        for name, commit in previous_release.RELEASES.items()
    }


def test_functions_of_this_release_need_no_change_for_nodes_of_the_previous_releases(files):
    planned = plan(
        previous_release.read(previous_release.ROOT),
        *(previous_release.read(each) for each in files.values()),
    )
    remedy = "run `python -m tests.support.previous_release`"
    assert (planned.problems, planned.drops, dict.fromkeys(planned.files, remedy)) == ([], [], {})


@pytest.mark.parametrize("name", previous_release.RELEASES)
def test_statements_of_a_previous_release_can_be_planned_after_each_step_of_the_upgrade(
    name, all_rows, database_url, files
):
    statements = load_statements(files[name] / "sql")
    steps: list[int] = []
    with new_databases(all_rows, database_url) as make:
        url = make(oldest_release.script(files[name]))

        def plan_all(_):
            steps.append(len(steps))
            with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
                for statement in statements.values():
                    cursor.execute(statement.prepare(), {})
                    cursor.execute(f"EXPLAIN {statement.execute()}", dict.fromkeys(statement.parameters))
                    assert cursor.fetchall(), statement.name

        plan_all(None)
        assert len(schema.apply(url, plan_all)) == len(steps) - 1 > 0
