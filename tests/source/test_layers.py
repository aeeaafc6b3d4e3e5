"""The table of layers in docs/architecture.md: imports follow it, and Flask stays above."""

import ast
import functools
import re
from pathlib import Path

from tests.support.contract import OPENAPI

ROOT = OPENAPI.parent
FILES = [ROOT / "app.py", ROOT / "wsgi.py", ROOT / "gunicorn.conf.py"]
# Its annotations have types of all layers.
CONTRACT = ROOT / "auth/extensions/__init__.py"
FILES += sorted((ROOT / "auth").rglob("*.py")) + sorted((ROOT / "sql").rglob("*.py"))


def read_table() -> dict[str, str]:
    """Return the third column of the table by the name of the layer: `views` for `auth/flows`."""
    text = (ROOT / "docs/architecture.md").read_text()
    (table,) = re.findall(r"^\| layer .*?\n\n", text, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(?:auth/)?([\w./*]+)` \| .* \| (.*) \|$", table, re.MULTILINE)
    assert len(rows) == len(table.strip().splitlines()) - 2
    return {name.removesuffix(".py").replace("flows/*", "flows"): imports for name, imports in rows}


TABLE = read_table()


@functools.cache
def below(layer: str) -> frozenset[str]:
    """Return the layers that a layer may import. `x and below` is also what `x` and those beside it may import."""
    if TABLE[layer] == "nothing":
        return frozenset()
    if TABLE[layer] == "anything":
        return frozenset(TABLE)
    named = set(TABLE[layer].removesuffix(" and below").split(", "))
    if TABLE[layer].endswith(" and below"):
        named |= {lower for name in named for lower in below(name)}
    return frozenset(named)


def module_of(path: Path) -> str:
    """Return a module's dotted name: `auth.web.guard` for `auth/web/guard.py`, `sql` for `sql/__init__.py`."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in FILES}


def layer_of(module: str) -> str:
    """Return the layer of a module in auth/, or the name of a module at the top."""
    parts = module.removeprefix("auth.").split(".")
    if parts[:2] == ["web", "html"]:
        return "web/html"
    if parts[0] == "extensions" and len(parts) > 1:
        return "extensions/*"
    if parts[0] == "flows" and parts[-1] == "views":
        return "flows/views"
    return module if module.startswith("gunicorn") else parts[0]


@functools.cache
def imports_of(path: Path) -> set[str]:
    """Return the dotted names that a file imports, also inside functions."""
    tree = ast.parse(path.read_text())
    if path == CONTRACT:
        tree.body = [node for node in tree.body if ast.unparse(node).partition(":")[0] != "if TYPE_CHECKING"]
    names = set()
    for node in ast.walk(tree):
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


def test_table_names_every_layer():
    assert {layer_of(module) for module in MODULES} - {"auth"} == set(TABLE)


def test_layers_import_only_what_the_table_allows():
    imported = [(module, name) for module in MODULES if module != "auth" for name in own_imports(module)]
    assert [
        (module, name)
        for module, name in imported
        if layer_of(name) not in below(layer_of(module)) | {layer_of(module)}
    ] == []


def test_no_extension_imports_another():
    extensions = [module for module in MODULES if layer_of(module) == "extensions/*"]
    assert len(extensions) > 80
    own = {module: f"auth.extensions.{module.split('.')[2]}" for module in extensions}
    assert [
        (module, name)
        for module in extensions
        for name in own_imports(module)
        if layer_of(name) == "extensions/*" and not f"{name}.".startswith(f"{own[module]}.")
    ] == []


def test_core_and_delivery_do_not_import_flask():
    names = below("delivery") | {"delivery"}
    modules = [name for name in MODULES if layer_of(name) in names - {"extensions"}]
    assert len(modules) > 50
    web = {"flask", "werkzeug", "flask_limiter"}
    packages = {name: {each.partition(".")[0] for each in imports_of(MODULES[name])} for name in modules}
    assert [name for name in modules if packages[name] & web] == []


def test_imports_have_no_cycle():
    assert [cycle for module in MODULES if (cycle := cycle_from(module))] == []
