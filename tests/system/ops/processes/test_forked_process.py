"""A fork of a process that gevent has patched, in programs that fork as the gunicorn master does."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import CHECKOUT, is_running, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

_LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
_BEGINNING = """
from gevent import monkey
monkey.patch_all(os=False, subprocess=False, signal=False)
import atexit, gc, os, resource, signal, socket, subprocess, sys, time
from pathlib import Path
from auth.core import logs
from auth.core.log_writer import writer
from auth.core.settings import load
from auth.ops.processes.forked_process import ForkedProcess
logs.configure(load())
writer.start()

def sleep():
    time.sleep(3600)

def wait_for_heartbeat(fork):
    last = fork.beat_at
    while fork.beat_at == last:
        assert not fork.has_ended()
        time.sleep(0.1)
"""


@pytest.fixture
def start(environment) -> Callable[[str], subprocess.Popen]:
    """Start a program with what the others have in common."""

    def start(program: str) -> subprocess.Popen:
        code = _BEGINNING + textwrap.dedent(program)
        command, pipe = [sys.executable, "-c", code], subprocess.PIPE
        return subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=pipe, stderr=pipe, text=True)

    return start


@pytest.fixture
def run(start) -> Callable[[str], tuple[str, str]]:
    """Run a program to its end, and return its output and its log."""

    def run(program: str) -> tuple[str, str]:
        process = start(program)
        try:
            output, log = process.communicate(timeout=120)
        finally:
            process.kill()  # its forks end with it
        assert process.returncode == 0, log
        return output, log

    return run


def test_fork_that_computes_without_a_pause_sends_heartbeats(run):
    run("""
    def compute():
        while True:
            pass

    fork = ForkedProcess("busy", compute)
    for _ in range(3):
        wait_for_heartbeat(fork)
    fork.send(signal.SIGKILL)
    assert fork.wait(60)
    """)


def test_fork_that_is_terminated_in_its_first_moments_ends(run):
    """The handlers of the parent, which the fork has at first, would keep it alive."""
    run("""
    signal.signal(signal.SIGTERM, lambda *_: None)
    for _ in range(30):
        fork = ForkedProcess("brief", sleep)
        fork.send(signal.SIGTERM)
        assert fork.wait(60)
    """)


def test_fork_ignores_hangups_and_has_no_handler_of_its_parent(run):
    output, _ = run("""
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGWINCH, signal.SIGHUP):
        signal.signal(number, lambda *_: None)

    def look():
        print({number.name: str(signal.getsignal(number)) for number in signal.valid_signals()
               if signal.getsignal(number) != signal.SIG_DFL}, signal.pthread_sigmask(signal.SIG_BLOCK, []))

    assert ForkedProcess("signals", look).wait(60)
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])
    """)
    ignored = {name: str(signal.SIG_IGN) for name in ("SIGHUP", "SIGPIPE", "SIGXFSZ")}
    assert output == f"{ignored} set()\n"


def test_signals_of_the_terminal_do_not_reach_a_fork(run):
    run("""
    os.setpgrp()
    signal.signal(signal.SIGQUIT, lambda *_: None)
    fork = ForkedProcess("background", sleep)
    for _ in range(3):
        wait_for_heartbeat(fork)
        os.killpg(0, signal.SIGQUIT)  # as Ctrl-\\ does
    fork.send(signal.SIGKILL)
    assert fork.wait(60)
    """)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root may choose process ids")
def test_process_that_got_the_id_of_a_fork_that_another_reaped_is_never_signalled(run):
    run(f"""
    fork = ForkedProcess("reaped", lambda: None)
    pid, _ = os.waitpid(-1, 0)  # as gunicorn does
    while True:
        Path("{_LAST_PID}").write_text(str(pid - 1))
        other = subprocess.Popen(["sleep", "60"])
        if other.pid == pid:
            break
        other.kill()
        other.wait()
    for number in (signal.SIGTERM, signal.SIGKILL):
        fork.send(number)
    assert fork.has_ended() and fork.wait(0)
    try:
        other.wait(1)
    except subprocess.TimeoutExpired:
        other.kill()
    else:
        raise AssertionError("the other process was signalled")
    """)


def test_fork_whose_parent_ends_at_once_ends_though_a_worker_has_its_pipe_too(start):
    program = start("""
    fork = ForkedProcess("orphan", sleep)
    worker = os.fork()
    if not worker:
        signal.alarm(60)
        os.close(1)
        os.close(2)
        sleep()
    print(fork._pid, worker, flush=True)
    writer.finish()
    os._exit(0)
    """)
    fork, worker = map(int, program.stdout.readline().split())
    wait_until(lambda: not is_running(fork))
    assert is_running(worker)
    os.kill(worker, signal.SIGKILL)
    program.communicate()


def test_fork_has_no_descriptor_of_its_parent_but_those_of_the_log(run, tmp_path):
    (tmp_path / "a:file").touch()
    output, _ = run(f"""
    kept = [open("{tmp_path}/a:file"), os.pipe(), socket.create_server(("127.0.0.1", 0))]

    def look():
        paths = [os.path.realpath(f"/proc/self/fd/{{number}}") for number in os.listdir("/proc/self/fd")]
        print(*{{path.rpartition("/")[2].partition("[")[0] for path in paths if path != "/dev/null"}})
        print(sum("pipe:" in path for path in paths))

    for _ in range(2):
        kept.append(ForkedProcess("descriptors", look))
        assert kept[-1].wait(60)
    """)
    names, pipes, *second = output.splitlines()
    # gevent's own, and the descriptor that lists them.
    assert {name for name in names.split() if not name.isdigit()} <= {"pipe:", "anon_inode:"}
    # The output and the log, which this test reads, and the heartbeats.
    assert [pipes, second[1]] == ["3", "3"]


def test_descriptors_of_a_fork_stay_open_when_objects_of_its_parent_are_freed(run, tmp_path):
    output, _ = run(f"""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(9)]

    def free():
        files = [open("{tmp_path}/new", "a") for _ in listeners]
        for listener in listeners:
            listener.close()
        listeners.clear()
        gc.collect()
        time.sleep(0.01)  # gevent closes sockets in its loop
        for file in files:
            file.write("written\\n")
            file.close()
        print("written")

    assert ForkedProcess("freeing", free).wait(60)
    """)
    assert output == "written\n"


def test_error_in_a_fork_is_logged_and_only_the_parent_runs_what_is_due_at_its_end(run):
    output, log = run("""
    atexit.register(print, "the end")

    def fail():
        raise RuntimeError("of the fork")

    assert ForkedProcess("failing", fail).wait(60)
    """)
    assert output == "the end\n"
    assert log.count("process_failed") == log.count("RuntimeError: of the fork") == 1


def test_fork_that_fails_leaves_neither_descriptors_nor_blocked_signals(run):
    run("""
    if os.geteuid() == 0:
        os.setuid(65534)  # root has no limit
    limit = resource.getrlimit(resource.RLIMIT_NPROC)
    before = os.listdir("/proc/self/fd")
    for which, most in ((resource.RLIMIT_NPROC, 1), (resource.RLIMIT_NOFILE, len(before))):
        hard = resource.getrlimit(which)[1]
        resource.setrlimit(which, (most, hard))
        try:
            ForkedProcess("more than allowed", sleep)
        except OSError:
            pass
        else:
            raise AssertionError("it has forked")
        resource.setrlimit(which, (hard, hard))
    assert os.listdir("/proc/self/fd") == before
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])
    """)
