"""Programs of Debian packages that some tests need."""

import os
import shutil

import pytest


def find_program(name: str, package: str, otherwise: str) -> str:
    """Return the path of a program, or skip the test."""
    if path := shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin"):
        return path
    pytest.skip(f"{otherwise}: there is no {name}; apt-get install {package} brings one")
