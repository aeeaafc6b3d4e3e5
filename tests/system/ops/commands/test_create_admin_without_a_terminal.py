"""`latchkey create-admin` in a process without a terminal."""

from tests.ops.commands.test_create_admin import CAROL
from tests.support.commands import run_process


def test_missing_terminal_is_one_line_that_names_the_setting(environment, database):
    result = run_process(environment, "create-admin", CAROL, start_new_session=True)  # without a terminal
    assert (result.returncode, result.stderr.count("\n"), database.count("users")) == (1, 1, 0)
    assert "LATCHKEY_ADMIN_PASSWORD" in result.stderr
