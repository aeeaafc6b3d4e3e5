"""The table of layers in docs/architecture.md: imports follow it, and Flask stays above."""

import ast
import functools
import re
from pathlib import Path

from tests.support.contract import OPENAPI

ROOT = OPENAPI.parent
FILES = [ROOT / "app.py", ROOT / "wsgi.py", ROOT / "gunicorn.conf.py"]
FILES += sorted((ROOT / "auth").rglob("*.py")) + sorted((ROOT / "sql").rglob("*.py"))


def read_table() -> dict[str, str]:
    """Return the third column of the table by the name of the layer: `flows` for `auth/flows`."""
    text = (ROOT / "docs/architecture.md").read_text()
    (table,) = re.findall(r"^\| layer .*?\n\n", text, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(?:auth/)?([\w./*]+)` \| .* \| (.*) \|$", table, re.MULTILINE)
    assert len(rows) == len(table.strip().splitlines()) - 2
    return {name.removesuffix(".py"): imports for name, imports in rows}


TABLE = read_table()


@functools.cache
def below(layer: str) -> frozenset[str]:
    """Return the layers that a layer may import. `x and below` is also what `x` and those beside it may import."""
    if TABLE[layer] == "nothing":
        return frozenset()
    if TABLE[layer] == "anything":
        return frozenset(TABLE)
    layers = set(TABLE[layer].removesuffix(" and below").split(", "))
    if TABLE[layer].endswith(" and below"):
        layers |= {lower for name in layers for lower in below(name)}
    return frozenset(layers)


def module_of(path: Path) -> str:
    """Return a module's dotted name: `auth.web.guard` for `auth/web/guard.py`, `sql` for `sql/__init__.py`."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in FILES}


def layer_of(module: str) -> str:
    """Return the folder below auth/ that a module is in, or the name of a module beside it."""
    return module if module.startswith("gunicorn") else module.removeprefix("auth.").split(".")[0]


@functools.cache
def imports_of(path: Path) -> set[str]:
    """Return the dotted names that a file imports, also inside functions."""
    tree = ast.parse(path.read_text())
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@functools.cache
def own_imports(module: str) -> set[str]:
    modules = set()
    for name in imports_of(MODULES[module]):
        candidates = [candidate for candidate in (name, name.rpartition(".")[0]) if candidate in MODULES]
        modules |= set(candidates[:1])
    return modules - {module, "auth"}


def cycle_from(module: str, path: tuple[str, ...] = ()) -> tuple[str, ...] | None:
    """Return the first import cycle that is reachable from a module."""
    if module in path:
        return path[path.index(module) :]
    for imported in sorted(own_imports(module)):
        if module not in FREE_OF_CYCLES and (cycle := cycle_from(imported, (*path, module))):
            return cycle
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
    extensions = [
        module for module in MODULES if module != "auth.extensions" and layer_of(module) == "extensions"
    ]
    assert len(extensions) > 80
    packages = {module: f"auth.extensions.{module.split('.')[2]}" for module in extensions}
    assert [
        (module, name)
        for module in extensions
        for name in own_imports(module)
        if layer_of(name) == "extensions" and not f"{name}.".startswith(f"{packages[module]}.")
    ] == []


def test_core_and_delivery_do_not_import_flask():
    names = below("delivery") | {"delivery"}
    modules = [name for name in MODULES if layer_of(name) in names - {"registry"}]
    assert len(modules) > 50
    web = {"flask", "werkzeug", "flask_limiter"}
    packages = {name: {each.partition(".")[0] for each in imports_of(MODULES[name])} for name in modules}
    assert [name for name in modules if packages[name] & web] == []


# Names by which modules reach the current request or its application.
REQUEST = {
    "current_app", "current_asked", "current_g", "current_parts", "current_request", "g", "latchkey", "request",
}  # fmt: skip


def readers_of(module: str) -> set[str]:
    """Return the functions of a module that read the current request, or the parts of its application."""
    tree = ast.parse(MODULES[module].read_text())
    return {
        f"{module}.{function.name}"
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id in REQUEST - {function.name}
    }


def test_flows_and_commands_know_no_request():
    flows = {name for name in MODULES if layer_of(name) in ("flows", "cli")}
    commands = {
        name for name in MODULES if re.search(r"auth\.(ops\.commands|extensions\.\w+\.command)\b", name)
    }
    assert len(flows) > 30
    assert len(commands) > 20
    assert uses_of_requests(flows | commands) == set()


def test_extension_knows_the_request_in_its_views_alone():
    extensions = {name.split(".")[2] for name in MODULES if name.startswith("auth.extensions.")}
    views = {
        f"auth.extensions.{extension}.{name}" for extension in extensions for name in views_of(extension)
    }
    assert {"auth.extensions.openid.api", "auth.extensions.captcha.widgets"} <= views
    inner = {name for name in MODULES if re.fullmatch(r"auth\.extensions\.\w+\.[\w.]+", name)}
    middle = {name for name in inner if not {name, ".".join(name.split(".")[:4])} & views}
    assert {"auth.extensions.openid.exchange", "auth.extensions.organizations.members"} <= middle
    assert uses_of_requests(middle) == set()


def views_of(extension: str) -> set[str]:
    """Return the files and folders of an extension that its `api`, `pages` and `sections` name."""
    tree = ast.parse(MODULES[f"auth.extensions.{extension}"].read_text())
    return {
        constant.value.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if {"api", "pages", "sections"} & set(re.findall(r"\w+", ast.unparse(target)))
        for constant in ast.walk(node.value)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    }


def uses_of_requests(modules: set[str]) -> set[tuple[str, str]]:
    """Return what modules use that is known from a request: Flask, what reads a request, and parts by it."""
    web = [name for name in MODULES if layer_of(name) in ("web", "html")]
    readers = {reader for name in web for reader in readers_of(name)}
    assert {"auth.web.guard.caller_id", "auth.web.audit.origin", "auth.web.cookies.read"} <= readers
    return {
        (name, name_used)
        for name in modules
        for name_used in imports_of(MODULES[name]) | names_of(MODULES[name])
        if name_used in readers
        or name_used.partition(".")[0] == "flask"
        or name_used.rpartition(".")[2] in REQUEST
    }


def names_of(path: Path) -> set[str]:
    """Return the attributes of modules that a file uses: `auth.web.guard.caller`."""
    tree, modules = ast.parse(path.read_text()), dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            modules |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return {
        f"{modules[node.value.id]}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
    }


def test_imports_have_no_cycle():
    assert [cycle for module in MODULES if (cycle := cycle_from(module))] == []
