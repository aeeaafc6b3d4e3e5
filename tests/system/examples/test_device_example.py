"""examples/device, by Authlib and segno, with a user who types the code on our page."""

import os
import subprocess
import sys
import uuid

from tests.support.devices import make_television
from tests.support.pages import Visitor
from tests.support.processes import CHECKOUT, free_port
from tests.support.server import served

LIMIT = 60.0  # seconds


def start_program(service, client_id):
    return subprocess.Popen(
        [sys.executable, CHECKOUT / "examples" / "device" / "sign_in.py"],
        env=os.environ | {"LATCHKEY_URL": service, "CLIENT_ID": client_id},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_program_shows_both_codes_and_signs_in_the_user_who_allows_it(make_app, alice, database):
    television = make_television(database)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    app = make_app(AUTH_BASE_URL=url)
    with served(app, port), start_program(url, television.id) as program:
        assert program.stdout
        instructions = program.stdout.readline()
        visitor = Visitor(app, url).with_session_of(alice)
        visitor.visit("/device")
        visitor.press("device", user_code=instructions.partition("the code ")[2].partition(",")[0])
        visitor.press("device/consent", action="approve")
        *qr_code, last_line = program.stdout.read().splitlines()
        assert program.wait(LIMIT) == 0
    assert ("█" in "".join(qr_code), last_line) == (True, "Signed in as alice@example.com")


def test_program_says_that_its_client_is_unknown(make_app):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with served(make_app(AUTH_BASE_URL=url), port), start_program(url, str(uuid.uuid4())) as program:
        output, _ = program.communicate(timeout=LIMIT)
    assert (program.returncode, output) == (1, "Unknown client, or wrong client_secret\n")
