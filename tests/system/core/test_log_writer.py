"""Lines of several processes in one log that is a pipe, which takes 4096 bytes at once."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.processes import CHECKOUT, is_running, wait_until

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="makes a pipe that is as small as Linux's may be"
)
LONG = 20_000  # characters of an event
BEGIN = f"""
import os, sys
from auth.core.event_lines import as_json
from auth.core.log_writer import writer
def write(letter, number):
    writer.write(2, (as_json({{"event": letter * {LONG}, "number": number}}) + "\\n").encode())
writer.start()
"""
# As gunicorn's master does: the writer starts, and two forks write.
WRITES = f"""{BEGIN}
for letter in "ab":
    if not os.fork():
        for number in range(50):
            write(letter, number)
        os.write(1, letter.encode() + b"\\n")
        writer.finish(60)
        os._exit(0)
os.wait(), os.wait()
"""
# A fork prints its id, writes two lines, of which the pipe takes one, and is killed.
DIES = f"""{BEGIN}
first = os.fork()
if not first:
    write("a", 1), write("a", 2)
    writer.finish(600)
print(first, flush=True)
os.wait()
writer.write(2, b'{{"event": "whole"}}\\n')
writer.finish(60)
"""


@contextmanager
def started(program: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run a program, and yield it with the end of the pipe to read its log from."""
    reader, log = os.pipe()
    fcntl.fcntl(log, fcntl.F_SETPIPE_SZ, 4096)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=CHECKOUT, stdin=pipe, stdout=pipe, stderr=log, text=True
    ) as process:
        os.close(log)
        try:
            yield process, reader
        finally:
            os.close(reader)
            process.kill()


def lines_of(reader: int, begin: bytes = b"") -> list[str]:
    text = begin + b"".join(iter(lambda: os.read(reader, 5_000), b""))
    return text.decode().split("\n")[:-1]


def test_long_lines_of_two_processes_stay_whole():
    with started(WRITES) as (process, reader):
        assert process.stdout
        assert {process.stdout.readline() for _ in range(2)} == {"a\n", "b\n"}
        events = [json.loads(line) for line in lines_of(reader)]
    for letter in "ab":
        numbers = [each["number"] for each in events if {*each["event"]} == {*letter, *" [...] "}]
        assert numbers == list(range(50))
    assert len(events) == 100


def test_killed_process_leaves_no_half_line():
    with started(DIES) as (process, reader):
        assert process.stdout
        killed = int(process.stdout.readline())
        os.set_blocking(reader, False)

        def has_begun() -> bytes:
            try:
                return os.read(reader, 1)
            except BlockingIOError:
                return b""

        # As long as a byte is in the pipe, it has no room for the second line.
        begin = wait_until(has_begun)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: not is_running(killed))
        os.set_blocking(reader, True)
        first, last = (json.loads(line) for line in lines_of(reader, begin))
    assert first["number"] == 1
    assert last == {"event": "whole"}
