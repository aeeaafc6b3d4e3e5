"""The packages of docs/architecture.md: imports go downwards only, and Flask is not imported below context."""

import ast
import functools
from pathlib import Path

from tests.support.contract import OPENAPI

ROOT = OPENAPI.parent
FILES = [ROOT / "app.py", ROOT / "wsgi.py", ROOT / "gunicorn.conf.py"]
FILES += sorted((ROOT / "auth").rglob("*.py")) + sorted((ROOT / "sql").rglob("*.py"))

# Modules at the top of auth/ that every package may import.
SHARED = {"addresses", "logs", "metrics"}
# Packages that each package may import, in addition to itself and SHARED.
BELOW_CONTEXT = {"delivery", "text", "providers", "factors", "passwords", "settings", "tokens", "net", "sql"}
MAY_IMPORT = {
    "sql": set(),
    "net": set(),
    "tokens": {"net", "sql"},
    "settings": {"tokens", "net", "sql"},
    "passwords": {"settings", "tokens", "net", "sql"},
    "providers": {"settings", "tokens", "net", "sql"},
    "factors": {"settings", "tokens", "net", "sql"},
    "text": {"settings"},
    "delivery": {"text", "settings", "tokens", "net", "sql"},
    "operations": BELOW_CONTEXT,
    "context": BELOW_CONTEXT,
    "web": BELOW_CONTEXT | {"context"},
    "flows": BELOW_CONTEXT | {"context", "web"},
    "pages": BELOW_CONTEXT | {"context", "web", "flows"},
    "console": BELOW_CONTEXT | {"context", "web", "flows", "pages"},
    "views": BELOW_CONTEXT | {"context", "web", "flows", "pages"},
    "transfer": BELOW_CONTEXT | {"context", "web"},
    "commands": BELOW_CONTEXT | {"context", "web", "flows", "operations", "transfer"},
    "app": BELOW_CONTEXT | {"context", "web", "flows", "pages", "console", "views", "commands"},
    "wsgi": BELOW_CONTEXT | {"context", "app"},
    "gunicorn.conf": {"operations"},
}


def module_of(path: Path) -> str:
    """Return a module's dotted name: `auth.web.guard` for `auth/web/guard.py`, `sql` for `sql/__init__.py`."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in FILES}


def room_of(module: str) -> str:
    """Return the package of a module in auth/, or the name of a module at the top."""
    parts = module.removeprefix("auth.").split(".")
    return "sql" if parts[0] == "sql" else module if module.startswith("gunicorn") else parts[0]


@functools.cache
def imports_of(path: Path) -> set[str]:
    """Return the dotted names that a file imports, also inside functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@functools.cache
def own_imports(module: str) -> set[str]:
    found = set()
    for name in imports_of(MODULES[module]):
        known = [candidate for candidate in (name, name.rpartition(".")[0]) if candidate in MODULES]
        found |= set(known[:1])
    return found - {module, "auth"}


def cycle_from(module: str, path: tuple[str, ...] = ()) -> tuple[str, ...] | None:
    """Return the first import cycle that is reachable from a module."""
    if module in path:
        return path[path.index(module) :]
    for imported in sorted(own_imports(module)):
        if module not in FREE_OF_CYCLES and (found := cycle_from(imported, (*path, module))):
            return found
    FREE_OF_CYCLES.add(module)
    return None


FREE_OF_CYCLES: set[str] = set()


def test_modules_import_only_packages_below_their_own():
    wrong = []
    for module in MODULES:
        room = room_of(module)
        allowed = MAY_IMPORT.get(room, BELOW_CONTEXT) | SHARED | {room}
        wrong += [(module, name) for name in own_imports(module) if room_of(name) not in allowed]
    assert wrong == []


def test_modules_below_the_context_do_not_import_flask():
    below = [name for name in MODULES if room_of(name) in BELOW_CONTEXT | SHARED | {"operations"}]
    assert len(below) > 50
    packages = {module: {name.partition(".")[0] for name in imports_of(MODULES[module])} for module in below}
    assert [
        name for name in below if packages[name] & {"flask", "werkzeug", "flask_limiter", "flask_cors"}
    ] == []


def test_imports_have_no_cycle():
    assert [cycle for module in MODULES if (cycle := cycle_from(module))] == []


def test_top_of_auth_has_no_other_modules():
    files = {path.stem for path in (ROOT / "auth").glob("*.py")}
    assert files - SHARED == {"__init__", "context"}
