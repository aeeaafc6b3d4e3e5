"""Create or update `.venv`: `python3 make_venv.py [--serves] [test] [lint]`, with extras of setup.cfg.

Written in the syntax of old Pythons, so that they can report that they are too old.
"""

import configparser
import errno
import fcntl
import hashlib
import os
import platform
import re
import socket
import subprocess
import sys

# The oldest Python for which the pinned packages have wheels, by system and machine.
OLDEST = {("Linux", "x86_64"): 11, ("Linux", "aarch64"): 11, ("macOS", "arm64"): 12}
NEWEST = 14
OLDEST_GLIBC = (2, 28)


def problem():
    """Return a line if there are no wheels for this machine or this Python."""
    system = platform.system().replace("Darwin", "macOS"), platform.machine()
    if system not in OLDEST:
        return (
            "Latchkey runs on Linux (x86_64, aarch64) and macOS (Apple silicon), not on {} ({})."
            " Use another machine, or a container or virtual machine with Linux."
        ).format(*system)
    if not (3, OLDEST[system]) <= sys.version_info[:2] <= (3, NEWEST):
        return "Latchkey needs Python 3.{} to 3.{} on {}; {} is {}.{}. Try: make PYTHON=python3.13 …".format(
            OLDEST[system], NEWEST, system[0], sys.executable, *sys.version_info
        )
    if system[0] == "Linux":
        try:
            _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        except (OSError, ValueError):  # of musl
            return (
                "Latchkey needs Linux with glibc, which this one lacks (Alpine has musl)."
                " Use another distribution, such as Debian."
            )
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_GLIBC:
            return (
                "Latchkey needs Linux with glibc {}.{} or later; this one has {}."
                " Use a newer distribution, such as Debian 10 or Red Hat Enterprise Linux 8."
            ).format(*OLDEST_GLIBC, version)
    return None


def port_in_use():
    """Return a line if the service could not listen. It checks again, and all else, when it starts."""
    settings = {}
    if os.path.exists(".env"):
        with open(".env", encoding="utf-8-sig") as file:
            lines = r"""^[ \t]*(?:export[ \t]+)?(PORT|AUTH_BIND)[ \t]*=[ \t]*["']?([^\s"'#]*)"""
            settings = dict(re.findall(lines, file.read(), re.MULTILINE))
    settings.update(os.environ)
    host, port = settings.get("AUTH_BIND") or "127.0.0.1", settings.get("PORT") or "8000"
    try:
        socket.create_server(
            (host, int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        ).close()
    except (OSError, OverflowError, ValueError) as error:
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            return "Port " + port + " is in use. Use another one: PORT=" + str(int(port) + 1) + " make run"
    return None


def main(extras, serves=False):
    line = problem()
    if line:
        sys.exit(line)
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    os.umask(0o022)  # under root, the embedded Postgres runs as another user, which must be able to read it
    with (
        open("setup.cfg", encoding="utf-8") as manifest,
        open("constraints.txt", encoding="utf-8") as constraints,
    ):
        # `make run` and `make test` may start at the same time in a fresh clone.
        fcntl.flock(manifest, fcntl.LOCK_EX)
        text = manifest.read()
        # A virtual environment contains absolute paths and links to its Python.
        state = hashlib.sha256(
            "\n".join(
                [text, constraints.read(), os.getcwd(), os.path.realpath(sys.executable), sys.version]
            ).encode()
        ).hexdigest()
        # The stamp is written last, so without it the environment is incomplete.
        stamp = os.path.join(".venv", "stamp")
        try:
            with open(stamp) as file:
                made_for, *installed = file.read().split()
        except (OSError, ValueError):
            made_for, installed = "", []
        if made_for == state and set(extras) <= set(installed):
            return
        line = port_in_use() if serves else None
        if line:
            sys.exit(line)
        print("Installing into .venv, which takes a minute or two …", flush=True)
        if made_for != state:
            installed = []
            if os.path.islink(".venv"):
                os.unlink(".venv")  # venv would clear the environment of another checkout
            subprocess.run([sys.executable, "-m", "venv", "--clear", ".venv"], check=True)
        extras = sorted({*extras, *installed})
        config = configparser.ConfigParser()
        config.read_string(text)
        wanted = config["options"]["install_requires"] + "".join(
            config["options.extras_require"][extra] for extra in extras
        )
        options = "--quiet --no-color --disable-pip-version-check --only-binary :all: -c constraints.txt"
        pip = [".venv/bin/python", "-m", "pip", "install", *options.split()]
        # Whatever pip's configuration says: a virtual environment has no packages of the user.
        environment = dict(os.environ, PIP_USER="0")
        # Then the checkout itself in place, for .venv/bin/latchkey.
        for packages in (list(filter(None, wanted.splitlines())), ["--no-deps", "--editable", "."]):
            subprocess.run(pip + packages, env=environment, check=True)  # noqa: S603
        with open(stamp, "w") as file:
            file.write(" ".join([state, *extras]))


if __name__ == "__main__":
    try:
        main([each for each in sys.argv[1:] if each != "--serves"], "--serves" in sys.argv)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)  # venv or pip has printed the error
    except KeyboardInterrupt:
        sys.exit(130)
