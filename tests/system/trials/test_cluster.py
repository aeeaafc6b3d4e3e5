"""deploy/cluster/try: its primary is killed under load, and nothing acknowledged is lost."""

import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support import log_watch
from tests.support.awake import awake
from tests.support.environment import ENVIRONMENT
from tests.support.guides import Guide
from tests.support.processes import CHECKOUT, free_port, processes_of, send, short_directory, wait_until
from tests.support.server import ServerClient, repeated
from tests.support.tables import Rows
from tests.support.user_agent import UserAgent
from tests.support.users import PASSWORD, register
from tests.system.faults import clients, invariants
from tests.system.faults.clients import ADMIN
from tests.system.faults.deployment import serves_again
from tests.system.faults.history import History
from tests.system.faults.mail import Post

TRY = str(CHECKOUT / "deploy" / "cluster" / "try")
# The shorter times of the table in docs/scaling.md, the seconds without a primary that it promises, and the slack for
# two busy cores.
TIMES = ("--set=ttl=20", "--set=loop_wait=2", "--set=retry_timeout=3")
PROMISED = 22
SLACK = 5
DAVE = "dave@example.com"


class Cluster:
    """The cluster of deploy/cluster/try, inside the context."""

    def __init__(self, folder: Path, patroni: Path, **settings: str) -> None:
        """`patroni` is the folder of its programs."""
        self._directory = folder / "cluster"
        while (port := free_port()) % 100 > 50:
            pass  # until all its ports are in the block of this process
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        program = folder / "latchkey"
        command = f"{shlex.quote(sys.executable)} -m latchkey_auth"
        program.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(CHECKOUT))} exec {command} "$@"\n')
        program.chmod(0o755)
        path = f"{patroni}:{os.environ['PATH']}"
        own_variables = {"PATH": path, "LATCHKEY": str(program), "LATCHKEY_TRY_PORT": str(port)}
        self._environment = settings | own_variables

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._end()
            raise
        return self

    def start(self) -> None:
        """Start the processes that do not run, and wait until the cluster serves."""
        result = self._run(TRY, str(self._directory))
        if "missing:" in result.stderr:
            pytest.skip(f"NO FAILOVER OF PATRONI IS TESTED: {result.stderr}")
        assert result.returncode == 0, result.stderr
        self._printed = result.stdout

    def __exit__(self, *_: object) -> None:
        log_watch.scan_log("a node", self.log("node1") + self.log("node2"))
        self._end()

    def _end(self) -> None:
        if self._directory.exists():
            result = self._run(TRY, "--down", str(self._directory))
            assert result.returncode == 0, result.stderr
        assert not processes_of(self._directory)

    def control(self, *arguments: str) -> str:
        """Run patronictl, and return what it prints."""
        result = self._run(str(self._directory / "patronictl"), *arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def primary(self) -> int:
        members = json.loads(self.control("list", "--format", "json"))
        (name,) = [member["Member"] for member in members if member["Role"] == "Leader"]
        return int(name.removeprefix("postgres"))

    def lose_primary(self) -> int:
        """Kill the primary by the printed command, while commits have not reached a replica. Return its number."""
        number = self.primary()
        processes = processes_of(self._directory / "postgres" / str(number))
        senders = [pid for pid, command in processes.items() if "walsender" in command]
        with closing(self.rows()) as rows:
            for pid in senders:
                send(pid, signal.SIGSTOP)
            wait_until(lambda: rows.count("pg_stat_activity", "wait_event = 'SyncRep'") > 2, 10)
        (command,) = re.findall(r"kill -9 \$\(head .*?\)", self._printed)
        for name in ("patroni{}.pid", "postgres/{}/"):
            command = command.replace(name.format(1), name.format(number))
        assert self._run("sh", "-c", command).returncode == 0
        for pid in senders:
            send(pid, signal.SIGKILL)
        return number

    def rows(self) -> Rows:
        """Return the tables at the primary, as its superuser."""
        password = (self._directory / "settings").read_text().rpartition("=")[2].strip()
        hosts = ",".join(f"127.0.0.1:{self.port + 10 + number}" for number in (1, 2, 3))
        return Rows(f"postgresql://postgres:{password}@{hosts}/latchkey?target_session_attrs=read-write")

    def log(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text()

    def reasons(self) -> str:
        """Return why the nodes could not use the database, as they log it."""
        lines = (self.log("node1") + self.log("node2")).splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return "\n".join(event["reason"] for event in events if event["event"] == "database_unavailable")

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def patroni(request) -> Path:
    """The folder of the programs of the Patroni that docs/scaling.md installs."""
    lines = Guide("scaling.md").block("pip install").text.splitlines()
    (requirement,) = [shlex.split(line)[-1] for line in lines if "pip install" in line]
    directory = request.config.cache.mkdir("patroni") / hashlib.sha256(requirement.encode()).hexdigest()[:16]
    if not (directory / "stamp").exists():
        # The account of Postgres cannot execute a Python below /root.
        python = "/usr/bin/python3" if os.geteuid() == 0 else sys.executable
        subprocess.run([python, "-m", "venv", "--clear", directory], check=True)
        install = [directory / "bin" / "pip", "install", "--quiet", requirement]
        if subprocess.run(install, check=False).returncode != 0:
            pytest.skip(f"NO FAILOVER OF PATRONI IS TESTED: {requirement} could not be installed")
        (directory / "stamp").touch()
    return directory / "bin"


def longest_gap(since: float, served: list[float | None]) -> float:
    """Return the longest time in seconds without an answer to a client."""
    times = [at for at in served if at and at > since]
    return max(later - earlier for earlier, later in pairwise([since, *times]))


def test_patroni_that_loses_acknowledged_commits_is_refused(tmp_path):
    """Debian 12 has 3.0.2."""
    for program in ("patroni", "patronictl", "etcd", "haproxy", "psql"):
        (tmp_path / program).write_text("#!/bin/sh\necho patroni 3.0.2\n")
        (tmp_path / program).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LATCHKEY": "/bin/true"}
    place = tmp_path / "cluster"
    result = subprocess.run([TRY, str(place)], env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, place.exists()) == (1, "", False)
    block = Guide("scaling.md").block("pip install").text
    lines = [line.strip() for line in result.stderr.splitlines()]
    if "missing:" not in result.stderr:
        assert "patroni 3.0.2 loses acknowledged commits" in lines[0]
    assert lines[1:] == block.replace("deploy/cluster/try", TRY).splitlines()


def test_cluster_whose_primary_is_killed_loses_nothing_acknowledged_and_serves_in_time(patroni):
    settings = ENVIRONMENT | {"AUTH_WORKERS": "2", "AUTH_DELIVER": "true"}
    del settings["AUTH_BASE_URL"]
    with (
        short_directory() as folder,
        Post() as post,
        Cluster(folder, patroni, AUTH_SMTP_URL=post.url, **settings) as cluster,
    ):
        cluster.control("edit-config", "--force", *TIMES)
        history = History(ServerClient(cluster.port))
        history.may_lose_counters = True
        session = register(history.client, ADMIN, DAVE).sign_in()
        browser, pages = UserAgent(), Counter[Any]()
        browser.visit(f"{cluster.url}/sign-in")
        browser.press("sign-in", email=DAVE, password=PASSWORD)

        def write() -> float | None:
            headers, body = session.authorization, {"data": {"n": 1}}
            answer = history.ask("PUT", "/user", headers=headers, json=body)
            return awake() if answer is not None and answer.status_code == 200 else None

        def read() -> float | None:
            page = browser.visit(f"{cluster.url}/account")
            pages[page.status, page.url] += 1
            return awake() if page.status == 200 else None

        with clients.load(history, post), repeated(write, read) as answered_at:
            wait_until(lambda: history.answered() > 200)
            lost_at, failures_before = awake(), history.failed()
            lost_number = cluster.lose_primary()
            wait_until(lambda: history.failed() > failures_before)
            wait_until(serves_again(history), PROMISED + SLACK)
            cluster.start()
            wait_until(serves_again(history))
        gaps = [longest_gap(lost_at, each) for each in answered_at]
        assert max(gaps) < PROMISED + SLACK, gaps
        # The proxy passes on the nodes' own 503, and no user is signed out.
        account = f"{cluster.url}/account"
        assert pages.keys() == {(200, account), (503, account)}
        assert history.statuses[None] == 0
        assert session.refreshed().get("/user").status_code == 200
        with closing(cluster.rows()) as rows:
            invariants.check(history, post, rows)
        assert f"port {cluster.port + 10 + lost_number} failed: Connection refused" in cluster.reasons()
        assert "promoted self to leader" in cluster.log(f"patroni{cluster.primary()}")
