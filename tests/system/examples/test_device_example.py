"""examples/device, by Authlib and segno, with a user who types the code on our page."""

import os
import subprocess
import sys

from tests.support.devices import make_television
from tests.support.pages import Visitor
from tests.support.processes import CHECKOUT, free_port
from tests.support.server import served

LIMIT = 60.0  # seconds


def test_program_shows_both_codes_and_signs_in_the_user_who_allows_it(make_app, alice, database):
    television = make_television(database)
    port = free_port()
    here = f"http://127.0.0.1:{port}"
    app = make_app(AUTH_BASE_URL=here)
    environment = {"LATCHKEY_URL": here, "CLIENT_ID": television.id}
    with (
        served(app, port),
        subprocess.Popen(
            [sys.executable, CHECKOUT / "examples" / "device" / "sign_in.py"],
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as program,
    ):
        assert program.stdout
        shown = program.stdout.readline()
        visitor = Visitor(app, here).with_session_of(alice)
        visitor.visit("/device")
        visitor.press("device", user_code=shown.partition("the code ")[2].partition(",")[0])
        visitor.press("device/consent", action="approve")
        *code, last = program.stdout.read().splitlines()
        assert program.wait(LIMIT) == 0
    assert ("█" in "".join(code), last) == (True, "Signed in as alice@example.com")
