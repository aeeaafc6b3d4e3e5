"""docs/quick-start.md, from an empty folder of a checkout to the first administrator."""

import re

from tests.support.guides import Guide
from tests.support.processes import wait_until
from tests.support.terminals import checkout, make_run
from tests.support.users import PASSWORD

GUIDE = Guide("quick-start.md")


def test_developer_starts_the_service_signs_up_and_becomes_an_administrator():
    with checkout() as terminal, make_run(terminal) as service:
        assert GUIDE.block("make run\n").text == "make run\n"
        # What it prints, apart from the folder.
        state, serving = terminal.with_ports(GUIDE.block("Serving http").text).splitlines()
        printed = service.text()
        assert state.replace("/home/you/latchkey", str(terminal.directory)) in printed
        assert serving in printed

        steps = (GUIDE.block("/signup"), GUIDE.block("read -r"), GUIDE.block("field()"))
        with terminal.run("\n".join(step.text for step in steps)) as shell:
            assert shell.stdin
            (link,) = wait_until(
                lambda: set(re.findall(r"^http://localhost:\d+/verify\S+$", service.text(), re.MULTILINE))
            )
            output, _ = shell.communicate(f"{link}\n", timeout=60)
        assert re.findall(r"^(?:303|401, .*|Refresh:|Log out:)", output, re.M)[0] == "303"
        assert '"error_code": "session_not_found"' in output.replace('":"', '": "'), output

        output = terminal.finish(GUIDE.block("create-admin").text, env={"LATCHKEY_ADMIN_PASSWORD": PASSWORD})
        assert terminal.with_ports("Sign in to the console: http://localhost:8000/console\n") in output


def test_service_starts_at_another_port():
    with checkout() as terminal:
        command = terminal.with_ports(GUIDE.command("PORT=8001"))
        assert command == f"PORT={terminal.ports['8001']} make run"
        with make_run(terminal, PORT=terminal.ports["8001"]) as service:
            assert terminal.with_ports("Serving http://localhost:8001, ") in service.text()
