"""Backups are taken while clients write, everything is destroyed, and restores are killed."""

import json
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import start_process
from tests.support.processes import PATIENT_GUNICORN, processes_of, short_directory, wait_until
from tests.support.server import ServerClient, repeated
from tests.support.tables import Rows
from tests.support.users import PASSWORD, Session, refresh, register, session_of, sign_in
from tests.system.trials.test_backup_command import SETTINGS, key_of, latchkey, restore, serving

CHANCE = random.Random(11)
WRITERS = 4
_HALF_DONE = """
SELECT u.email
  FROM users AS u
 WHERE (SELECT count(*) FROM identities WHERE user_id = u.id) <> 1
    OR (SELECT count(*) FROM audit_log WHERE user_id = u.id AND action = 'user_created') <> 1
    OR NOT EXISTS (SELECT FROM user_objects WHERE user_id = u.id)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory


def back_up(state_dir: Path, *options: str) -> Path:
    file = state_dir.with_name("latchkey.age")
    process = latchkey("backup", file, "--json", *options, AUTH_STATE_DIR=str(state_dir))
    assert process.returncode == 0, process.stderr
    return Path(json.loads(process.stdout)["file"])


def restore_whole(file: Path, state_dir: Path) -> None:
    process = restore(file, state_dir)
    assert process.returncode == 0, process.stderr


@contextmanager
def served(state_dir: Path) -> Iterator[tuple[ServerClient, Rows]]:
    settings: dict[str, Any] = {"AUTH_WORKERS": "2", "AUTH_RATE_LIMITS_ENABLED": "false"}
    with (
        serving(state_dir, command=PATIENT_GUNICORN, **settings) as client,
        closing(Rows(f"postgresql://postgres@/postgres?host={state_dir}/postgres")) as rows,
    ):
        yield client, rows


@contextmanager
def writing(client: ServerClient, key: dict[str, str]) -> Iterator[dict[str, float]]:
    """Create users in threads, and yield their addresses with the times of the answers."""
    numbers, answered_at = count(1), {}

    def write() -> None:
        email = f"user-{next(numbers)}@example.com"
        body = {"email": email, "password": PASSWORD, "email_confirm": True}
        assert client.post("/admin/users", json=body, headers=key).status_code == 200
        answered_at[email] = time.monotonic()

    with repeated(*[write] * WRITERS):
        wait_until(lambda: len(answered_at) > 20, 60)
        yield answered_at


def test_backup_under_writes_has_every_acknowledged_row_and_no_half_transaction(folder):
    origin, restored = folder / "origin", folder / "restored"
    with served(origin) as (client, _), writing(client, key_of(origin)) as answered_at:
        started_at = time.monotonic()
        file = back_up(origin)
        finished_at, total = time.monotonic(), len(answered_at)
        wait_until(lambda: len(answered_at) > total + 5)
    shutil.rmtree(origin)
    restore_whole(file, restored)
    with served(restored) as (client, rows):
        emails = {row.email for row in rows.all("SELECT email FROM users")}
        before = {email for email, at in answered_at.items() if at < started_at}
        assert before - emails == set()
        assert {email for email, at in answered_at.items() if at > finished_at + 5} & emails == set()
        assert rows.all(_HALF_DONE) == []
        assert rows.misplaced() == []
        for email in CHANCE.sample(sorted(before), 10):
            assert sign_in(client, email).status_code == 200


def test_killed_restore_leaves_the_old_state_or_the_whole_new_one(folder):
    target = folder / "target"
    with served(folder / "origin") as (client, _):
        register(client, key_of(folder / "origin"), "restored@example.com")
        file = back_up(folder / "origin", "--no-rehearsal")
    with served(target) as (client, _):
        session = register(client, key_of(target), "old@example.com").sign_in()
    started_at = time.monotonic()
    shutil.copytree(target, folder / "copy")
    restore_whole(file, folder / "copy")
    duration = time.monotonic() - started_at
    for _ in range(2):
        settings = SETTINGS | {"AUTH_STATE_DIR": str(target)}
        process = start_process(settings, "restore", file, "--identity", target.with_name("identity"))
        time.sleep(CHANCE.uniform(0.3, duration))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        wait_until(lambda: not processes_of(target), 60)
        state, session = state_of(target, session)
        if state == "new":
            break
    restore_whole(file, target)
    assert state_of(target, session)[0] == "new"


def state_of(state_dir: Path, session: Session) -> tuple[str, Session]:
    """Start the service, assert that its state is whole, and return whether it is "old" or "new", and the session."""
    with served(state_dir) as (client, rows):
        (user,) = rows.all("SELECT email FROM users")
        assert sign_in(client, user.email).status_code == 200
        response = refresh(client, session.refresh_token)
        if user.email == "restored@example.com":
            assert response.status_code == 400
            return "new", session
        return "old", session_of(client, response)
