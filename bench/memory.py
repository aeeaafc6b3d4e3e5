"""Memory of the whole service with its Postgres, as proportional set size."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pyrage

from bench import load
from bench.figures import Figure, Pace, against, alone
from bench.people import PASSWORD, People
from bench.service import RAISED, BenchService, new_state_dir
from tests.support.commands import run_process
from tests.support.processes import children_of

REQUESTS = 100_000
# Of a night, beside backups and imports.
_NIGHTLY_REQUESTS, _BACKUPS, _IMPORTED = 38_000, 3, 2000


def measure(pace: Pace) -> Iterator[Figure]:
    """Yield the figures."""
    recipient = str(pyrage.x25519.Identity.generate().to_public())
    options = RAISED | {"AUTH_BACKUP_RECIPIENTS": recipient}
    with new_state_dir() as state_dir, BenchService(state_dir, **options) as service:
        idle = idle_mebibytes(service.process.pid, pace)
        people = People(service, 1000)
        people.insert()
        tokens = people.access_tokens(people.refresh_tokens(256))
        requests = pace.number(REQUESTS, brief=200)
        _send(service, people, tokens, requests // 2)
        half = proportional_mebibytes(service.process.pid)
        _send(service, people, tokens, requests // 2)
        end = proportional_mebibytes(service.process.pid)
        _back_up_and_import(state_dir)
        _send(service, people, tokens, pace.number(_NIGHTLY_REQUESTS, brief=200))
        night = proportional_mebibytes(service.process.pid)
    yield alone("memory of the whole service, idle, in MiB", idle, "≤ 145")
    yield alone("memory of the whole service after 100,000 requests, in MiB", end, "≤ 200")
    yield against("memory after 100,000 requests, against 50,000", [end], [half], "≤ 1.05")
    yield against("memory after backups, imports and 38,000 requests more, in MiB", [night], [end], "≤ 1.1")


def idle_mebibytes(pid: int, pace: Pace) -> float:
    """Return the proportional set size once the delivery process has loaded its code and polled the outbox."""
    time.sleep(pace.seconds(5))
    return proportional_mebibytes(pid)


def proportional_mebibytes(pid: int) -> float:
    """Return the proportional set size of a process and its descendants."""
    return _kibibytes(pid) / 1024 + sum(map(proportional_mebibytes, children_of(pid)))


def _kibibytes(pid: int) -> int:
    try:
        return next(
            int(line.split()[1])
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            if line.startswith("Pss:")
        )
    # The process has just ended, or is a zombie.
    except (OSError, StopIteration):
        return 0


def _send(service: BenchService, people: People, tokens: list[str], requests: int) -> None:
    sent = 0
    while sent < requests:
        users = [load.get("/user", token=token) for token in tokens]
        sent += load.run(service.port, users, seconds=min(5, requests / 1000)).requests
        refreshes = people.refreshes(load.CONNECTIONS * 2)
        sent += load.run(service.port, refreshes, seconds=min(5, requests / 1000), renews=True).requests


def _back_up_and_import(state_dir: Path) -> None:
    password_hash = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    users = [
        {"email": f"imported{number}@bench.example", "password_hash": password_hash}
        for number in range(_IMPORTED)
    ]
    file = state_dir / "imported.jsonl"
    file.write_text("\n".join(map(json.dumps, users)))
    commands = [["users", "import", str(file)]]
    commands += [["backup", str(state_dir / "backup.age"), "--no-rehearsal"]] * _BACKUPS
    for command in commands:
        done = run_process({"AUTH_STATE_DIR": str(state_dir)}, *command)
        assert done.returncode == 0, done.stderr
