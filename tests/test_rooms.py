"""The rooms of docs/architecture.md: imports go downwards only, and nothing below the context knows of Flask."""

import ast
from pathlib import Path

import pytest

from tests.support.contract import OPENAPI

ROOT = OPENAPI.parent
FILES = [ROOT / "app.py", ROOT / "wsgi.py", ROOT / "gunicorn.conf.py"]
FILES += sorted((ROOT / "auth").rglob("*.py")) + sorted((ROOT / "sql").rglob("*.py"))

# Files that stand at the top of auth/, and may be imported from every room.
SHARED = {"addresses", "logs"}
# What each room imports besides itself and SHARED.
BELOW_CONTEXT = {"delivery", "providers", "passwords", "settings", "tokens", "net", "sql"}
MAY_IMPORT = {
    "sql": set(),
    "net": set(),
    "tokens": {"net", "sql"},
    "settings": {"tokens", "net", "sql"},
    "passwords": {"settings", "tokens", "net", "sql"},
    "providers": {"settings", "tokens", "net", "sql"},
    "delivery": {"settings", "tokens", "net", "sql"},
    "operations": BELOW_CONTEXT,
    "context": BELOW_CONTEXT,
    "web": BELOW_CONTEXT | {"context"},
    "flows": BELOW_CONTEXT | {"context", "web"},
    "views": BELOW_CONTEXT | {"context", "web", "flows"},
    "commands": BELOW_CONTEXT | {"context", "web", "flows", "operations"},
    "app": BELOW_CONTEXT | {"context", "web", "flows", "views", "commands"},
    "wsgi": BELOW_CONTEXT | {"context", "app"},
    "gunicorn.conf": BELOW_CONTEXT | {"operations"},
}


def module_of(path: Path) -> str:
    """Return the dotted name of a module: `auth/web/guard.py` is `auth.web.guard`, `sql/__init__.py` is
    `sql`.
    """
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in FILES}


def room_of(module: str) -> str:
    """Return the room of a module: the folder of auth/ that holds it, or its own name at the top."""
    parts = module.removeprefix("auth.").split(".")
    return "sql" if parts[0] == "sql" else module if module.startswith("gunicorn") else parts[0]


def imports_of(path: Path) -> set[str]:
    """Return the modules that a file imports, wherever in the file, as dotted names."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def own_imports(module: str) -> set[str]:
    """Return the modules of this project that a module imports."""
    found = set()
    for name in imports_of(MODULES[module]):
        known = [candidate for candidate in (name, name.rpartition(".")[0]) if candidate in MODULES]
        found |= set(known[:1])
    return found - {module, "auth"}


def circle_from(module: str, path: tuple[str, ...] = ()) -> tuple[str, ...] | None:
    """Return the first chain of imports that leads from a module back to itself."""
    if module in path:
        return path[path.index(module) :]
    for imported in sorted(own_imports(module)):
        if module not in FREE_OF_CIRCLES and (found := circle_from(imported, (*path, module))):
            return found
    FREE_OF_CIRCLES.add(module)
    return None


FREE_OF_CIRCLES: set[str] = set()


@pytest.mark.parametrize("module", MODULES)
def test_room_imports_only_the_rooms_below_it(module):
    room = room_of(module)
    allowed = MAY_IMPORT.get(room, BELOW_CONTEXT) | SHARED | {room}
    assert {name for name in own_imports(module) if room_of(name) not in allowed} == set()


@pytest.mark.parametrize(
    "module", [name for name in MODULES if room_of(name) in BELOW_CONTEXT | SHARED | {"operations"}]
)
def test_nothing_below_the_context_imports_flask(module):
    packages = {name.partition(".")[0] for name in imports_of(MODULES[module])}
    assert packages.isdisjoint({"flask", "werkzeug", "flask_limiter", "flask_cors"})


def test_no_module_imports_itself_through_others():
    assert [circle for module in MODULES if (circle := circle_from(module))] == []


def test_the_top_of_auth_is_no_drawer():
    files = {path.stem for path in (ROOT / "auth").glob("*.py")}
    assert files - SHARED == {"__init__", "context"}
