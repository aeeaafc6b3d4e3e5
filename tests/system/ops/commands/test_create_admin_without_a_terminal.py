"""`latchkey create-admin` in a process without a terminal."""

from tests.ops.commands.test_create_admin import CAROL, log_in
from tests.support.commands import run_process
from tests.support.users import PASSWORD


def test_missing_terminal_is_one_line_that_names_the_setting(environment, database):
    result = run_process(environment, "create-admin", CAROL, start_new_session=True)  # without a terminal
    assert (result.returncode, result.stderr.count("\n"), database.count("users")) == (1, 1, 0)
    assert "LATCHKEY_ADMIN_PASSWORD" in result.stderr


def test_file_that_was_saved_on_windows_is_the_password_in_its_line(environment, client, database, tmp_path):
    path = tmp_path / "password.txt"
    path.write_bytes(f"\ufeff{PASSWORD}\r\n".encode())
    with path.open("rb") as file:
        result = run_process(environment, "create-admin", CAROL, stdin=file, start_new_session=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert log_in(client).status_code == 200
