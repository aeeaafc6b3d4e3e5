"""Make `.venv`, or bring it up to date: `python3 make_venv.py [test] [lint]`, the extras of setup.cfg.

Written so that a Python which is too old can read it, and say so.
"""

import configparser
import fcntl
import hashlib
import os
import subprocess
import sys


def main(extras):
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit(
            "Latchkey needs Python 3.11 or newer; {} is {}.{}. Name another one: make PYTHON=python3.12 …".format(
                sys.executable, *sys.version_info
            )
        )
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    os.umask(
        0o022
    )  # The embedded Postgres of root runs as another user, who must be able to read its program.
    with open("setup.cfg") as manifest, open("constraints.txt") as constraints:
        # `make run` and `make test` may start at once in a fresh clone: one makes the environment, the other
        # waits.
        fcntl.flock(manifest, fcntl.LOCK_EX)
        text = manifest.read()
        # A virtual environment holds absolute paths, and links to the Python that made it (here perhaps by
        # way of one).
        state = hashlib.sha256(
            "\n".join(
                [text, constraints.read(), os.getcwd(), os.path.realpath(sys.executable), sys.version]
            ).encode()
        ).hexdigest()
        # The stamp is written last: without it, what is there is not whole.
        stamp = os.path.join(".venv", "stamp")
        try:
            with open(stamp) as file:
                made_for, *installed = file.read().split()
        except (OSError, ValueError):
            made_for, installed = "", []
        if made_for == state and set(extras) <= set(installed):
            return
        print("Installing into .venv …", flush=True)
        if made_for != state:
            installed = []
            subprocess.run([sys.executable, "-m", "venv", "--clear", ".venv"], check=True)
        extras = sorted({*extras, *installed})
        config = configparser.ConfigParser()
        config.read_string(text)
        wanted = config["options"]["install_requires"] + "".join(
            config["options.extras_require"][extra] for extra in extras
        )
        pip = [
            ".venv/bin/python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--only-binary",
            ":all:",
            "-c",
            "constraints.txt",
        ]
        subprocess.run([*pip, *filter(None, wanted.splitlines())], check=True)  # noqa: S603
        # The checkout itself, in place: it brings .venv/bin/latchkey.
        subprocess.run([*pip, "--no-deps", "--editable", "."], check=True)  # noqa: S603
        with open(stamp, "w") as file:
            file.write(" ".join([state, *extras]))


try:
    main(sys.argv[1:])
except subprocess.CalledProcessError as error:
    sys.exit(error.returncode)  # venv and pip have said what is wrong
except KeyboardInterrupt:
    sys.exit(130)
