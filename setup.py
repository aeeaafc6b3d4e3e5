"""Puts the tree, as it is, into the wheel's one package. The rest is in setup.cfg."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

_FILES = ["app.py", "wsgi.py", "gunicorn.conf.py", "schema.sql", "openapi.yaml", "requirements.lock"]
_FILES += ["CHANGELOG.md", "LICENSE", "README.md", "THIRD_PARTY.md"]
# An image that is built from the wheel needs them, to leave secrets out.
_FILES += [".containerignore", ".dockerignore"]
_FOLDERS = ["auth", "sql", "deploy", "docs"]


class _BuildTree(build_py):
    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # files that the checkout no longer has
        super().run()
        if self.editable_mode:
            return
        package = Path(self.build_lib, "latchkey_auth")
        for name in _FILES:
            shutil.copy(name, package)
        for name in _FOLDERS:
            # compose reads secrets from deploy/latchkey.env
            ignored = shutil.ignore_patterns("__pycache__", "*.env")
            shutil.copytree(name, package / name, ignore=ignored, dirs_exist_ok=True)


setup(cmdclass={"build_py": _BuildTree})
