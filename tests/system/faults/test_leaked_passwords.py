"""A file of leaked passwords: how long a look-up takes, and what it costs each worker."""

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import bcrypt

from auth.core.passwords import leaked_file
from auth.core.passwords.leaked_file import LeakedFile
from tests.support.processes import CHECKOUT
from tests.support.range_api import sha1

_COUNT = 1_000_000
_WORKER = """
import sys
from pathlib import Path
from auth.core.passwords.leaked_file import LeakedFile
found = LeakedFile(Path(sys.argv[1]))
found.check()
print(sum(found.contains(str(number)) for number in range(10_000)), flush=True)
sys.stdin.read()
"""


def test_million_hashes_are_searched_in_a_thousandth_of_a_bcrypt_hash_and_shared_by_workers(tmp_path):
    path = tmp_path / "leaked-passwords"
    random_numbers, leaked = random.Random(1), [str(number) for number in range(0, 10_000, 2)]
    hashes = (leaked_file.number_of(sha1(password)) for password in leaked)
    unrelated = (random_numbers.getrandbits(64) for _ in range(_COUNT))
    count = leaked_file.write(path, (number for source in (hashes, unrelated) for number in source))
    assert count >= _COUNT
    file = LeakedFile(path)
    started_at = time.process_time()
    assert sum(file.contains(str(number)) for number in range(10_000)) == len(leaked)
    seconds_of_lookup = (time.process_time() - started_at) / 10_000
    started_at = time.process_time()
    bcrypt.hashpw(b"a password", bcrypt.gensalt(10))
    assert seconds_of_lookup < (time.process_time() - started_at) / 1000
    workers = [_start(path) for _ in range(2)]
    try:
        for worker in workers:
            assert worker.stdout
            assert int(worker.stdout.readline()) == len(leaked)
        for worker in workers:
            kibibytes = _memory(worker.pid, path)
            assert kibibytes["Rss"] > count * 8 // 1024 * 0.9
            assert (kibibytes["Private_Clean"], kibibytes["Private_Dirty"], kibibytes["Anonymous"]) == (
                0,
                0,
                0,
            )
    finally:
        for worker in workers:
            worker.communicate(timeout=60)


def _start(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WORKER, str(path)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=CHECKOUT, text=True, env=dict(os.environ), stdin=pipe, stdout=pipe)


def _memory(pid: int, path: Path) -> dict[str, int]:
    """Return the KiB of a process's mapping of a file, by kind."""
    text = Path(f"/proc/{pid}/smaps").read_text()
    mapping = text[text.index(str(path)) :]
    return {name: int(kib) for name, kib in re.findall(r"^(\w+): +(\d+) kB$", mapping, re.M)[:20]}
