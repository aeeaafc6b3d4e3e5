"""`latchkey create-admin EMAIL` asks for the password at a terminal."""

import os
import pty
from contextlib import suppress

from tests.ops.commands.test_create_admin import CAROL, log_in
from tests.support.commands import start_process
from tests.support.users import PASSWORD


def type_answers(environment, *answers):
    """Run the command, and type each answer on a terminal once its question is shown. Return the exit status and the
    output.
    """
    our_end, its_end = pty.openpty()
    terminal = {"stdin": its_end, "stderr": its_end, "start_new_session": True}
    process = start_process(environment, "create-admin", CAROL, **terminal)
    os.close(its_end)
    output = ""
    for question, answer in answers:
        while not output.endswith(question):
            output += os.read(our_end, 1000).decode()
        os.write(our_end, answer.encode())
    with suppress(OSError):  # the end of the terminal
        while True:
            output += os.read(our_end, 1000).decode()
    process.communicate(timeout=300)
    os.close(our_end)
    return process.returncode, output


QUESTION, REPETITION = "Password of the new administrator: ", "Repeat for confirmation: "


def test_terminal_asks_twice_and_does_not_show_the_password(environment, database, client):
    status, output = type_answers(environment, (QUESTION, f"{PASSWORD}\n"), (REPETITION, f"{PASSWORD}\n"))
    assert (status, output.replace("\r\n", "")) == (0, QUESTION + REPETITION)
    assert log_in(client).status_code == 200
