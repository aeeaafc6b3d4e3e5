"""docs/deployment.md, word for word, on a Debian 12 that systemd-nspawn has booted, without a network.

Its pip finds wheels that this machine has fetched; ssh and scp of the other machine, which is this one, reach into
the container.
"""

import contextlib
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Self

import pytest

from auth import __version__
from tests.support.processes import CHECKOUT, wait_until
from tests.support.programs import find_program
from tests.support.smtp_server import Certificate
from tests.support.wheels import build_wheel

pytestmark = pytest.mark.root

NEXT = "9.0.0"
OTHERWISE = "DOCS/DEPLOYMENT.MD IS NOT RUN"
PAGE = (CHECKOUT / "docs" / "deployment.md").read_text()
PACKAGES = "python3-venv,ca-certificates,systemd-sysv,dbus"
# The operator's password instead of the one on the page.
MAIL_PASSWORD = "Typed-Mail-Secret-1"
ADMIN_PASSWORD = "Typed-Admin-Secret-2"
# Listens where the page sends mail, in the network of the container, and prints what it gets.
POST = """
import sys, time
from tests.support import smtp_server
smtp_server.USER, certificate = "user", smtp_server.Certificate.__new__(smtp_server.Certificate)
certificate.server_context = smtp_server.ssl.SSLContext(smtp_server.ssl.PROTOCOL_TLS_SERVER)
certificate.server_context.load_cert_chain(sys.argv[1])
class Server(smtp_server.MailServer):
    async def handle_DATA(self, *arguments):
        reply = await super().handle_DATA(*arguments)
        print(self.mails[-1]["To"], self.mails[-1]["Subject"], flush=True)
        return reply
with Server(starttls=certificate, password=sys.argv[2], port=587):
    print("listening", flush=True)
    time.sleep(3600)
"""


def blocks(heading: str) -> list[str]:
    """Return the commands of a section of the page."""
    section = re.search(rf"^## {heading}\n(.*?)^##+ ", PAGE, re.MULTILINE | re.DOTALL)
    assert section
    return [dedent(text) for _, text in re.findall(r"^( *)```sh\n(.*?)^\1```$", section[1], re.M | re.S)]


class Container:
    """A booted Debian in a folder, inside the context."""

    def __init__(self, folder: Path, tree: Path) -> None:
        self.tree, self._log = folder / "tree", folder / "boot.log"
        self.tree.mkdir()
        subprocess.run(["tar", "-xf", tree, "-C", self.tree], check=True)

    def __enter__(self) -> Self:
        options = ["--boot", "--register=no", "--keep-unit", "--private-network", "--console=pipe", "--quiet"]
        with self._log.open("w") as log:
            self._nspawn = subprocess.Popen(
                ["systemd-nspawn", *options, f"--directory={self.tree}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            wait_until(lambda: self._nspawn.poll() is not None or self._is_booted(), 120)
        except BaseException:
            self.__exit__()
            raise
        if self._nspawn.returncode is not None:
            pytest.skip(f"{OTHERWISE}: systemd-nspawn fails here: {self._log.read_text()}")
        return self

    def __exit__(self, *_: object) -> None:
        self._nspawn.terminate()
        self._nspawn.wait()

    def _is_booted(self) -> bool:
        # The first child of systemd-nspawn is not in the container.
        children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children").read_text().split()
        self._leader = children[-1] if children else "none"
        return self.run("systemctl is-system-running", check=False)[1].strip() in BOOTED

    def enter(self, *spaces: str) -> list[str]:
        """Return the command that runs another one in namespaces of the container, by default in all."""
        all_spaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")
        return ["nsenter", f"--target={self._leader}", *(spaces or all_spaces), "--"]

    def shell(self, text: str) -> list[str]:
        """Return the command that runs lines as root, in the folder where the lines before them have ended."""
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        lines = f'cd "$(cat /root/folder)"\n{text}\npwd > /root/folder'
        return [*self.enter(), "env", "-i", path, "HOME=/root", "sh", "-e", "-c", lines]

    def run(self, text: str, *, check: bool = True) -> tuple[int, str]:
        result = subprocess.run(
            self.shell(text),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert not check or result.returncode == 0, f"{text}\n{result.stdout}{self.journal()[-3000:]}"
        return result.returncode, result.stdout

    def type(self, text: str, *answers: str) -> str:
        """Run lines on a terminal, and answer each of their questions for a password."""
        terminal, program = pty.openpty()
        output, answers_left = "", list(answers)
        with subprocess.Popen(
            self.shell(text), stdin=program, stdout=program, stderr=program, start_new_session=True
        ) as process:
            os.close(program)
            with contextlib.suppress(OSError):  # the end
                while piece := os.read(terminal, 1000).decode():
                    output += piece
                    if answers_left and re.search(r"(administrator|confirmation): $", output):
                        os.write(terminal, f"{answers_left.pop(0)}\n".encode())
        os.close(terminal)
        assert (process.returncode, answers_left) == (0, []), output
        return output

    def go_to(self, folder: str, *files: Path) -> None:
        """Make a folder with files, in which the next lines begin."""
        directory = self.tree / folder.lstrip("/")
        directory.mkdir()
        for file in files:
            shutil.copy(file, directory)
        (self.tree / "root/folder").write_text(folder)

    def journal(self) -> str:
        command = [*self.enter(), "journalctl", "--no-pager", "--output=export", "--all"]
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout


BOOTED = ("running", "degraded")


class OtherMachine:
    """Keeps the key of the backups; has an environment with `latchkey`."""

    def __init__(self, folder: Path, server: Container) -> None:
        self.folder, programs = folder, folder / "programs"
        programs.mkdir(parents=True)
        (folder / ".venv").symlink_to(sys.prefix)
        scripts = {
            "ssh": f'shift\nexec {" ".join(server.enter())} sh -c "$*"',
            "scp": f'cp -p {server.tree}${{2#*:}} "$3"',
        }
        for name, script in scripts.items():
            (programs / name).write_text(f"#!/bin/sh\n{script}\n")
            (programs / name).chmod(0o755)
        self._environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder)}

    def run(self, text: str) -> str:
        result = subprocess.run(
            ["sh", "-e", "-c", text],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert result.returncode == 0, f"{text}\n{result.stdout}"
        return result.stdout


@pytest.fixture(scope="module")
def tree() -> Path:
    """Return the archive of a Debian 12, made once for a checkout."""
    if os.geteuid() != 0:
        pytest.skip(f"{OTHERWISE}: only root can boot a container")
    if sys.version_info[:2] != (3, 11):
        pytest.skip(f"{OTHERWISE}: only Python 3.11 finds the wheels of Debian 12")
    find_program("systemd-nspawn", "systemd-container", OTHERWISE)
    archive = CHECKOUT / "build" / "debian-12.tar"
    if not archive.exists():
        debootstrap = find_program("debootstrap", "debootstrap", OTHERWISE)
        folder = archive.with_suffix("")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = [debootstrap, "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(folder)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            pytest.skip(f"{OTHERWISE}: debootstrap fails here: {result.stdout[-500:]}")
        subprocess.run(["tar", "-cf", archive.with_suffix(".new"), "-C", folder, "."], check=True)
        archive.with_suffix(".new").rename(archive)
        shutil.rmtree(folder)
    return archive


@pytest.fixture(scope="module")
def packages(tree, tmp_path_factory) -> Path:
    """Return a folder with the wheels of the packages, on 3.11.2 too."""
    folder = tmp_path_factory.mktemp("packages")
    lock = folder / "requirements.txt"
    lock.write_text(re.sub(r" ;[^\\\n]*", "", (CHECKOUT / "requirements.lock").read_text()))
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    result = subprocess.run(
        [*pip, "--dest", folder, "--requirement", lock], capture_output=True, text=True, check=False
    )
    if result.returncode:
        pytest.skip(f"{OTHERWISE}: the packages cannot be fetched: {result.stderr[-500:]}")
    return folder


@pytest.fixture
def releases(tmp_path) -> list[tuple[str, Path]]:
    """Return the versions and the wheels of this release, and of the same as the next."""
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()

    def make_next(checkout: Path) -> None:
        package = checkout / "auth" / "__init__.py"
        package.write_text(package.read_text().replace(__version__, NEXT))

    first = build_wheel(tmp_path / "first")
    return [(first.name.split("-")[1], first), (NEXT, build_wheel(tmp_path / "second", make_next))]


@pytest.fixture
def server(tree, packages, tmp_path) -> Iterator[Container]:
    container = Container(tmp_path, tree)
    shutil.copytree(packages, container.tree / "srv/wheels")
    (container.tree / "etc/pip.conf").write_text("[global]\nno-index = true\nfind-links = /srv/wheels\n")
    with (container.tree / "etc/hosts").open("a") as hosts:
        hosts.write("127.0.0.1 localhost mail.example.com\n")
    certificate = Certificate(tmp_path, "mail.example.com")
    public = re.search(r"-----BEGIN CERT.*", certificate.path.read_text(), re.S)
    assert public
    with (container.tree / "etc/ssl/certs/ca-certificates.crt").open("a") as bundle:
        bundle.write(public[0])
    (container.tree / "root/folder").write_text("/root")
    with container:
        yield container


@pytest.fixture
def post(server, tmp_path) -> Iterator[Path]:
    """The file with a line for each mail that the page's mail server has accepted."""
    mails = tmp_path / "mails"
    program = [sys.executable, "-c", POST, str(tmp_path / "mail.example.com.pem"), MAIL_PASSWORD]
    with mails.open("w") as output:
        process = subprocess.Popen([*server.enter("--net"), *program], cwd=CHECKOUT, stdout=output)
    try:
        wait_until(lambda: "listening" in mails.read_text(), 30)
        yield mails
    finally:
        process.terminate()
        process.wait()


def version_that_serves(server: Container) -> str:
    program = "import json, urllib.request as r; print(json.load(r.urlopen('http://127.0.0.1:8000/health'))['version'])"
    return server.run(f'python3 -c "{program}"')[1].strip()


def test_steps_of_the_page_lead_from_an_empty_machine_to_its_end(server, post, releases, tmp_path):
    (first, wheel), (second, next_wheel) = releases
    other = OtherMachine(tmp_path / "other", server)
    user, install, settings, key, start, administrator, backup, copy = blocks("One machine")
    assert "user:password@" in settings
    settings = settings.replace("user:password@", f"user:{MAIL_PASSWORD}@")

    server.run(user)
    server.go_to("/root/first", wheel)
    lines = server.run(install)[1].splitlines()
    not_started = "latchkey.service is not enabled, so it was not started."
    assert lines[-2:] == [
        not_started,
        f"{first} is current. Go on with step 3 of docs/deployment.md: the settings.",
    ]
    server.run(settings)
    other.run(key)
    server.run(start)
    assert version_that_serves(server) == first
    output = server.type(administrator, ADMIN_PASSWORD, ADMIN_PASSWORD)
    assert ADMIN_PASSWORD not in output
    assert "you@example.com" in post.read_text()

    server.run(backup)
    assert "signed in a user" in other.run(copy)
    assert (other.folder / "latchkey.key").stat().st_mode & 0o777 == 0o600
    assert server.run("systemctl is-active latchkey-backup.timer")[1].strip() == "active"

    again, back, forward, *_restores = blocks("Upgrades")
    server.run(again)
    server.go_to("/root/second", next_wheel)
    assert server.run(install)[1].splitlines()[-1] == f"{second} runs. To go back: deploy/install --back"
    assert version_that_serves(server) == second
    left = f"{first} runs instead of {second}.\nTo go forward again: deploy/install --forward\n"
    assert server.run(back)[1] == left
    assert version_that_serves(server) == first
    assert server.run(forward)[1].splitlines()[-1] == f"{second} runs. To go back: deploy/install --back"
    assert version_that_serves(server) == second
    assert server.run(back)[1] == left
    assert version_that_serves(server) == first

    journal = server.journal()
    assert "latchkey" in journal
    secrets = [MAIL_PASSWORD, ADMIN_PASSWORD, "AGE-SECRET-KEY-1"]
    assert [each for each in secrets if each.lower() in journal.lower()] == []

    (uninstall,) = blocks("Uninstall")
    server.run(uninstall)
    remaining = (
        "find / -xdev -name '*latchkey*' -not -path '/root/*' -not -path '/proc/*' -not -path '/sys/*'"
    )
    assert server.run(remaining)[1] == ""
    assert server.run("id latchkey", check=False)[0] == 1
