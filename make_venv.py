"""Create or update `.venv`: `python3 make_venv.py [test] [lint]`, with extras of setup.cfg.

Written in the syntax of old Pythons, so that they can report that they are too old.
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
            "Latchkey needs Python 3.11 or newer; {} is {}.{}. Try: make PYTHON=python3.12 …".format(
                sys.executable, *sys.version_info
            )
        )
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    os.umask(0o022)  # under root, the embedded Postgres runs as another user, which must be able to read it
    with open("setup.cfg") as manifest, open("constraints.txt") as constraints:
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
        print("Installing into .venv, which takes a minute or two …", flush=True)
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
        # The checkout itself in place, for .venv/bin/latchkey.
        subprocess.run([*pip, "--no-deps", "--editable", "."], check=True)  # noqa: S603
        with open(stamp, "w") as file:
            file.write(" ".join([state, *extras]))


try:
    main(sys.argv[1:])
except subprocess.CalledProcessError as error:
    sys.exit(error.returncode)  # venv or pip has printed the error
except KeyboardInterrupt:
    sys.exit(130)
