"""Nodes of the previous release serve beside new ones until they are restarted: docs/deployment.md. SQL functions that
only they call are in sql/functions/previous.sql.
"""

from contextlib import closing

import psycopg2
import pytest

from sql import load_statements, schema
from tests.support import oldest_release, previous_release
from tests.support.databases import new_databases
from tests.support.previous_release import Part, Release, parts_of, plan


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


def release(statements: str, **files: str) -> Release:
    return Release({f"{name}.sql": list(parts_of(text)) for name, text in files.items()}, statements)


def function(name: str, body: str = "SELECT 1", parameters: str = "") -> str:
    return f"-- About {name}.\nCREATE OR REPLACE FUNCTION {name}({parameters}) RETURNS integer AS $$ {body} $$;\n"


class TestPlan:
    def test_function_that_only_the_previous_release_calls_moves_with_its_comment_and_what_it_calls(self):
        before = release(
            "SELECT old(1)", users=function("old", "SELECT kept() + inner()") + function("inner")
        )
        text = (
            function("kept")
            + "\n"
            + function("old", "SELECT  kept() -- changed\n + inner()")
            + function("inner")
        )
        planned = plan(
            release("SELECT kept()", users=text),
            release(
                before.callers + "kept()",
                **{
                    "users": (
                        function("old", "SELECT kept() + inner()") + function("inner") + function("kept")
                    )
                },
            ),
        )
        moved = function("old", "SELECT kept() + inner()") + "\n" + function("inner")
        assert planned.files == {
            "users.sql": function("kept"),
            "previous.sql": previous_release.HEADER + moved,
        }
        assert (planned.drops, planned.problems) == ([], [])

    def test_function_that_neither_calls_is_deleted(self):
        now = release(
            "kept()", users=function("gone", parameters="a integer, b text DEFAULT ''") + function("kept")
        )
        planned = plan(now, release("kept()", users=function("kept")))
        assert (planned.files, planned.drops) == (
            {"users.sql": function("kept")},
            ["DROP FUNCTION IF EXISTS gone(integer, text);"],
        )

    @pytest.mark.parametrize(
        ("now", "problem"),
        [
            (
                function("kept", "SELECT 2"),
                "kept() has another text than nodes of 0.5.2 need: give the new one a name",
            ),
            (function("kept", parameters="a text"), "kept() is missing: nodes of 0.5.2 call it"),
        ],
    )
    def test_function_that_both_call_must_stay_as_it_was(self, now, problem):
        assert plan(release("kept()", users=now), release("kept()", users=function("kept"))).problems == [
            problem
        ]

    def test_function_of_the_file_that_this_release_calls_again_is_a_problem(self):
        now = release("old()", previous=function("old"))
        problem = "old is in previous.sql, but this release calls it"
        assert plan(now, release("old()", users=function("old"))).problems == [problem]

    def test_trigger_calls_its_function(self):
        trigger = "CREATE OR REPLACE TRIGGER users_audit AFTER INSERT ON users EXECUTE FUNCTION changed();\n"
        now = release("", users=function("changed") + trigger)
        assert plan(now, release("")) == previous_release.Plan({}, [], [])

    def test_text_that_is_no_statement_is_refused(self):
        with pytest.raises(ValueError, match="not a statement: 'select 1;"):
            list(parts_of(function("kept") + "select 1;\n"))

    def test_file_that_is_as_it_must_be_is_not_written(self):
        before = release("old()", users=function("old"))
        files = plan(release("", users=function("old")), before).files
        assert files.keys() == {"users.sql", "previous.sql"}
        assert files["users.sql"] == ""
        written = release("", previous=files["previous.sql"])
        assert plan(written, before) == previous_release.Plan({}, [], [])
        assert plan(written, release("")).files == {"previous.sql": ""}

    def test_comment_before_an_empty_line_stays_where_it_is(self):
        text = "-- About the file.\n\n" + function("kept")
        assert [part.name for part in parts_of(text)] == ["", "kept"]
        assert parts_of(text).__next__() == Part("-- About the file.\n")
