"""Backups are taken while clients write, everything is destroyed, and restores are killed."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from auth.backups import age
from tests.support.cast import PASSWORD, Session, refresh, register, session_of, sign_in
from tests.support.processes import CHECKOUT, PATIENT_GUNICORN, Service, processes_of, wait_until
from tests.support.rows import Rows
from tests.support.server import ServerClient

RECIPIENT, IDENTITY = age.new_identity()
CHANCE = random.Random(11)
SETTINGS: dict[str, Any] = {
    "AUTH_DELIVER": "false",
    "AUTH_BCRYPT_COST": "4",
    "AUTH_RATE_LIMITS_ENABLED": "false",
}
WRITERS = 4
_HALF_DONE = """
SELECT u.email
  FROM users AS u
 WHERE (SELECT count(*) FROM identities WHERE user_id = u.id) <> 1
    OR (SELECT count(*) FROM audit_log WHERE user_id = u.id AND action = 'user_created') <> 1
    OR NOT EXISTS (SELECT FROM user_objects WHERE user_id = u.id)
"""


@pytest.fixture
def place() -> Iterator[Path]:
    # The path of a socket must be short, and Postgres's account must be able to pass.
    with tempfile.TemporaryDirectory(prefix="latchkey-tests-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory).resolve()


def start(state_dir: Path, command: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "auth.commands", command, *map(str, arguments)],
        cwd=CHECKOUT,
        env={
            "PATH": os.environ["PATH"],
            "HOME": "/",
            "AUTH_STATE_DIR": str(state_dir),
            "AUTH_BACKUP_RECIPIENTS": RECIPIENT,
            **SETTINGS,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(process: subprocess.Popen[str]) -> str:
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 0, text
    return text


def back_up(state_dir: Path, *options: str) -> Path:
    text = run(start(state_dir, "backup", state_dir.with_name("latchkey.age"), "--json", *options))
    return Path(json.loads(text)["file"])


def start_restore(file: Path, state_dir: Path) -> subprocess.Popen[str]:
    identity = file.with_name("identity")
    identity.write_text(IDENTITY)
    return start(state_dir, "restore", file, "--identity", identity)


@contextmanager
def serving(state_dir: Path) -> Iterator[tuple[ServerClient, Rows]]:
    with (
        Service(state_dir, command=PATIENT_GUNICORN, **SETTINGS) as service,
        closing(ServerClient(service.port)) as client,
        closing(Rows(f"postgresql://postgres@/postgres?host={state_dir}/postgres")) as rows,
    ):
        yield client, rows


def key_of(state_dir: Path) -> dict[str, str]:
    return {"apikey": (state_dir / "service_role_key").read_text().strip()}


class Writers:
    """Clients that create users, and note when each was acknowledged."""

    def __init__(self, client: ServerClient, key: dict[str, str]) -> None:
        self._client = client
        self._key = key
        self._over = threading.Event()
        self._numbers = count(1)
        self.acknowledged: dict[str, float] = {}

    def __enter__(self) -> "Writers":
        self._threads = ThreadPoolExecutor(WRITERS)
        self._futures = [self._threads.submit(self._write) for _ in range(WRITERS)]
        wait_until(lambda: len(self.acknowledged) > 20, 60)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._threads.shutdown()
        for future in self._futures:
            future.result()

    def _write(self) -> None:
        while not self._over.is_set():
            email = f"user-{next(self._numbers)}@example.com"
            body = {"email": email, "password": PASSWORD, "email_confirm": True}
            assert self._client.post("/admin/users", json=body, headers=self._key).status_code == 200
            self.acknowledged[email] = time.monotonic()


@pytest.mark.selection
def test_backup_under_writes_has_every_acknowledged_row_and_no_half_transaction(place, note, scale):
    times = scale(5, 2)
    for number in range(times):
        origin, restored = place / f"a{number}", place / f"b{number}"
        with serving(origin) as (client, _), Writers(client, key_of(origin)) as writers:
            began = time.monotonic()
            file = back_up(origin)
            ended, total = time.monotonic(), len(writers.acknowledged)
            wait_until(lambda writers=writers, total=total: len(writers.acknowledged) > total + 5)  # type: ignore[misc]
        shutil.rmtree(origin)
        run(start_restore(file, restored))
        with serving(restored) as (client, rows):
            found = {row.email for row in rows.all("SELECT email FROM users")}
            before = {email for email, at in writers.acknowledged.items() if at < began}
            assert before - found == set()
            assert {email for email, at in writers.acknowledged.items() if at > ended + 5} & found == set()
            assert rows.all(_HALF_DONE) == []
            assert rows.stale_objects() == []
            for email in CHANCE.sample(sorted(before), 10):
                assert sign_in(client, email).status_code == 200
        note(
            "backed up under writes, destroyed, restored",
            1,
            f"{len(before)} acknowledged, {len(found)} found",
        )


@pytest.mark.selection
def test_killed_restore_leaves_the_old_state_or_the_whole_new_one(place, note, scale):
    times = scale(30, 4)
    target = place / "target"
    with serving(place / "origin") as (client, _):
        register(client, key_of(place / "origin"), "restored@example.com")
        file = back_up(place / "origin", "--no-rehearsal")
    with serving(target) as (client, _):
        session = register(client, key_of(target), "old@example.com").sign_in()
    began = time.monotonic()
    shutil.copytree(target, place / "copy")
    run(start_restore(file, place / "copy"))
    duration = time.monotonic() - began
    seen = {"old": 0, "new": 0}
    while seen["new"] == 0 and sum(seen.values()) < times:
        process = start_restore(file, target)
        time.sleep(CHANCE.uniform(0.3, duration))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        wait_until(lambda: not processes_of(target), 60)
        state, session = state_of(target, session)
        seen[state] += 1
    run(start_restore(file, target))
    assert state_of(target, session)[0] == "new"
    note(
        "a restore killed -9",
        sum(seen.values()),
        f"{seen['old']} times the old state, {seen['new']} times the new one",
    )


def state_of(state_dir: Path, session: Session) -> tuple[str, Session]:
    """Start the service; return which of the two states it has, which must be whole, and the refreshed session."""
    with serving(state_dir) as (client, rows):
        (user,) = rows.all("SELECT email FROM users")
        assert sign_in(client, user.email).status_code == 200
        response = refresh(client, session.refresh_token)
        if user.email == "restored@example.com":
            assert response.status_code == 400
            return "new", session
        return "old", session_of(client, response)
