"""Programs of Debian packages that some tests need."""

import os
import shutil

import pytest


def find_program(name: str, package: str | None, otherwise: str) -> str:
    """Return the path of a program, or skip the test. Without a package it comes from its own releases."""
    if path := shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin"):
        return path
    remedy = f"apt-get install {package} brings one" if package else "its releases have one, for the PATH"
    pytest.skip(f"{otherwise}: there is no {name}; {remedy}")
