"""`latchkey create-admin EMAIL` asks for the password at a terminal."""

import os
import pty
from contextlib import suppress

from tests.ops.commands.test_create_admin import CAROL, log_in
from tests.support.commands import start_process
from tests.support.users import PASSWORD


def typed(environment, *answers):
    """Type each answer on a terminal once its question is shown. Return the exit status and what was shown."""
    ours, theirs = pty.openpty()
    terminal = {"stdin": theirs, "stderr": theirs, "start_new_session": True}
    process = start_process(environment, "create-admin", CAROL, **terminal)
    os.close(theirs)
    shown = ""
    for question, answer in answers:
        while not shown.endswith(question):
            shown += os.read(ours, 1000).decode()
        os.write(ours, answer.encode())
    with suppress(OSError):  # the end of the terminal
        while True:
            shown += os.read(ours, 1000).decode()
    process.communicate(timeout=300)
    os.close(ours)
    return process.returncode, shown


FIRST, SECOND = "Password of the new administrator: ", "Repeat for confirmation: "


def test_terminal_asks_twice_and_does_not_show_the_password(environment, database, client):
    status, shown = typed(environment, (FIRST, f"{PASSWORD}\n"), (SECOND, f"{PASSWORD}\n"))
    assert (status, shown.replace("\r\n", "")) == (0, FIRST + SECOND)
    assert log_in(client).status_code == 200
