"""The documents recommend only packages whose owner has been checked."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from tests.support.cases import cases
from tests.support.processes import CHECKOUT

# By index and name, the project that owns it. `latchkey` is another project's on PyPI.
OWNERS = {
    "PyPI": {
        "authlib": "https://github.com/authlib/authlib",
        "django": "https://github.com/django/django",
        "fastapi": "https://github.com/fastapi/fastapi",
        "fastmcp": "https://github.com/PrefectHQ/fastmcp",
        "flask": "https://github.com/pallets/flask",
        "httpx": "https://github.com/encode/httpx",
        "patroni": "https://github.com/patroni/patroni",
        "pyjwt": "https://github.com/jpadilla/pyjwt",
        "requests": "https://github.com/psf/requests",
        "segno": "https://github.com/heuer/segno",
        "standardwebhooks": "https://github.com/standard-webhooks/standard-webhooks",
        "uvicorn": "https://github.com/Kludex/uvicorn",
    },
    "npm": {
        "@supabase/supabase-js": "https://github.com/supabase/supabase-js",
        "next": "https://github.com/vercel/next.js",
        "next-auth": "https://github.com/nextauthjs/next-auth",
        "react": "https://github.com/react/react",
        "react-dom": "https://github.com/react/react",
        "vite": "https://github.com/vitejs/vite",
    },
}
COMMANDS = {
    "PyPI": r"pip3? install|pipx (?:install|run|inject)|uv (?:add|pip install|tool (?:install|run))|uvx",
    "npm": r"(?:npm|pnpm) (?:install|i|add|exec)|pnpm dlx|yarn (?:add|dlx)|npx|bunx",
}
# A command and its arguments, up to its end or that of the code.
INSTALLATION = {
    index: re.compile(rf"(?<![\w/-])({commands})(?= )([^`\n;&|)\"]*)") for index, commands in COMMANDS.items()
}
# Each takes one package; what follows it are arguments of the package's own command.
RUNNERS = ("run", "exec", "dlx", "uvx", "npx", "bunx")
OPTIONS_WITH_VALUE = {"-c", "-r", "-e", "--constraint", "--requirement", "--editable", "--python", "--outdir"}
SKIPPED = {"node_modules", "var", "__pycache__", "target", "build", "dist"}
THIS_FILE = Path(__file__).resolve()


def packages_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the index and name of each package that commands in a text install, but for files and folders."""
    for index, installation in INSTALLATION.items():
        for match in installation.finditer(text):
            arguments = iter(shlex.split(match[2].replace("'", " ").partition(" #")[0]))
            for argument in arguments:
                if argument in OPTIONS_WITH_VALUE:
                    next(arguments, None)
                elif not argument.startswith(("-", ".", "/", "$")) and not argument.endswith(".whl"):
                    name = re.match(r"@?[\w./-]+", argument)
                    yield index, (name[0] if name else argument).lower()
                    if match[1].endswith(RUNNERS):
                        break


def documents() -> Iterator[Path]:
    """Yield all files of the checkout: comments and docstrings advise too."""
    for folder, folders, files in os.walk(CHECKOUT):
        folders[:] = [name for name in folders if name not in SKIPPED and not name.startswith(".")]
        yield from (Path(folder, name) for name in sorted(files) if Path(folder, name) != THIS_FILE)


def packages_of_documents() -> dict[tuple[str, str], list[str]]:
    """Return the packages that documents install, each with these documents."""
    packages: dict[tuple[str, str], list[str]] = {}
    for path in documents():
        for package in packages_in(path.read_text(errors="replace")):
            packages.setdefault(package, []).append(str(path.relative_to(CHECKOUT)))
    return packages


def test_documents_install_only_packages_whose_owner_is_known():
    owned = {(index, name) for index, owners in OWNERS.items() for name in owners}
    packages = packages_of_documents()
    assert {package: documents for package, documents in packages.items() if package not in owned} == {}
    assert owned - packages.keys() == set()


@cases(
    ("text", "expected"),
    [
        ("pip install --no-deps latchkey     # the plugin", [("PyPI", "latchkey")]),
        ("python3 -m pip install 'Latchkey[test]>=0.3' flask", [("PyPI", "latchkey"), ("PyPI", "flask")]),
        ("pipx install latchkey && latchkey serve", [("PyPI", "latchkey")]),
        ("uvx latchkey serve", [("PyPI", "latchkey")]),
        ("npm install --no-save @supabase/supabase-js@2.119.1", [("npm", "@supabase/supabase-js")]),
        ("npx latchkey", [("npm", "latchkey")]),
        ("pip install -c constraints.txt latchkey_auth-*.whl -r requirements.txt", []),
        ("`npm install --package-lock-only`", []),
    ],
)
def test_command_that_installs_a_package_by_name_is_found(text, expected):
    assert list(packages_in(text)) == expected
