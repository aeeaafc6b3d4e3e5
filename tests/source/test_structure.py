"""Rules of the source code whose violation no request would show."""

import ast
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sql
from auth.core import settings
from auth.core.settings.providers import PROVIDER_PREFIX, SUFFIXES
from auth.registry import EXTENSIONS, names_on
from auth.web.errors import ERRORS
from sql import schema
from tests.source.test_contract import CONTRACT
from tests.support.contract import OPENAPI
from tests.support.environment import clear_settings
from tests.support.extensions import EVERY_EXTENSION

ROOT = OPENAPI.parent
TOP = [ROOT / name for name in ("app.py", "wsgi.py", "gunicorn.conf.py")]
SOURCES = {str(path.relative_to(ROOT)): path for path in [*TOP, *sorted((ROOT / "auth").rglob("*.py"))]}
STATEMENTS = sql.load_statements()
SQL = "".join(path.read_text() for path in sql.DIRECTORY.rglob("*.sql"))


@functools.cache
def nodes(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(SOURCES[source].read_text())))


@functools.cache
def strings(source: str) -> list[str]:
    """Return the strings of a module except docstrings."""
    docstrings = {id(node.value) for node in nodes(source) if isinstance(node, ast.Expr)}
    texts = [(node, string_of(node)) for node in nodes(source)]
    return [text for node, text in texts if text is not None and id(node) not in docstrings]


def imports(source: str) -> set[str]:
    """Return the top-level packages that a module imports."""
    names = [alias.name for node in nodes(source) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes(source) if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def all_strings() -> set[str]:
    return {text for source in SOURCES for text in strings(source)}


def string_of(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def calls(source: str, *names: str) -> Iterator[ast.Call]:
    """Yield the calls of functions or methods with these names."""
    for node in nodes(source):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            if name in names:
                yield node


def first_arguments(*names: str) -> set[str]:
    """Return the literal first arguments of all calls of functions or methods with these names."""
    arguments = [call.args[0] for source in SOURCES for call in calls(source, *names) if call.args]
    return {text for text in map(string_of, arguments) if text}


def sub_selects(text: str) -> Iterator[str]:
    """Yield each sub-select that follows IN."""
    text = re.sub("--.*", "", text)
    for match in re.finditer(r"\bIN \((?=SELECT\b)", text):
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        yield text[match.end() : end - 1]


def bodies() -> list[tuple[str, str]]:
    """Return the names and texts of all statements and SQL functions, without the comments of functions."""
    return [(name, statement.text) for name, statement in STATEMENTS.items()] + [
        (part.partition("(")[0], part)
        for path in sorted(schema.FUNCTIONS.glob("*.sql"))
        for part in re.sub(r"--.*", "", path.read_text()).split("CREATE OR REPLACE FUNCTION ")[1:]
    ]


def table(document: str) -> dict[str, list[str]]:
    """Return the cells of each table row of a document by its first cell, where that is code."""
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", (ROOT / "docs" / document).read_text(), re.MULTILINE)
    return {name: cells.split(" | ") for name, cells in rows}


def test_no_limit_is_counted_by_user_alone():
    keys = {
        (source, ast.unparse(keyword.value))
        for source in SOURCES
        for call in calls(source, "limited")
        for keyword in call.keywords
        if keyword.arg == "key"
    }
    assert len(keys) > 5
    assert {source for source, key in keys if "caller_id" in key} == set()


def test_no_sub_select_after_in_limits_or_locks_rows():
    """Postgres may evaluate `IN (SELECT … LIMIT)` for each compared row; it evaluates ARRAY(…) and WITH once."""
    texts = {str(path): path.read_text() for path in [schema.SCHEMA, *sql.DIRECTORY.rglob("*.sql")]}
    assert [
        f"{name}: {sub_select}"
        for name, text in texts.items()
        for sub_select in sub_selects(text)
        if re.search("LIMIT|OFFSET|FOR UPDATE", sub_select)
    ] == []


def test_each_advisory_lock_has_its_own_number():
    numbers = [int(number) for _, body in bodies() for number in re.findall(r"\b7239\d{6}\b", body)]
    assert len(numbers) == 8
    assert len({schema.SCHEMA_LOCK, *numbers}) == 9
    assert len(re.findall(r"pg_(?:try_)?advisory\w*\((?!%s|7239)", SQL)) == 0


def test_data_model_of_the_architecture_page_names_each_table():
    tables = set(re.findall(r"^CREATE (?:UNLOGGED )?TABLE (\w+)", schema.SCHEMA.read_text(), re.MULTILINE))
    page = (ROOT / "docs" / "architecture.md").read_text().partition("## The data model")[2]
    missing = tables - set(re.findall(r"\w+", page.partition("\n## ")[0]))
    assert [f"docs/architecture.md: the data model lacks {name}" for name in sorted(missing)] == []


def test_statements_are_used_and_those_that_are_run_exist():
    run = {
        node.attr
        for source in SOURCES
        for node in nodes(source)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "queries"
    }
    run |= {*re.findall(r"queries\.([a-z]\w+)", (ROOT / "sql" / "acts.py").read_text())}
    assert set(STATEMENTS) - run - all_strings() == set()
    assert run - set(STATEMENTS) == set()


def test_python_files_contain_no_sql():
    assert [
        (source, text)
        for source in SOURCES
        for text in strings(source)
        if re.search(r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE|TRUNCATE)\b", text)
    ] == []


def test_no_function_takes_more_than_two_booleans():
    several = []
    for source in SOURCES:
        for function in [node for node in nodes(source) if isinstance(node, ast.FunctionDef)]:
            arguments = function.args.args + function.args.kwonlyargs
            booleans = [
                each.arg for each in arguments if each.annotation and ast.unparse(each.annotation) == "bool"
            ]
            several += [(source, function.name, booleans)] if len(booleans) > 2 else []
    assert several == []


@pytest.mark.parametrize(
    ("package", "owners"),
    [
        ("bcrypt", ["auth/core/passwords/bcrypt_hash.py"]),
        ("argon2", ["auth/core/passwords/legacy.py"]),
        ("jwt", [f"auth/core/tokens/{name}.py" for name in ("jws", "signing_keys")]),
    ],
)
def test_only_its_owners_import_the_package(package, owners):
    assert [source for source in SOURCES if package in imports(source)] == owners


def test_every_raised_error_is_in_the_table_of_errors():
    assert first_arguments("ApiError", "unavailable", "refusal") - set(ERRORS) == set()


def test_table_and_contract_have_the_same_error_codes():
    codes = set(CONTRACT["components"]["schemas"]["ErrorCode"]["enum"])
    assert {key.rpartition(".")[2] for key in ERRORS} == codes


# The texts that people read in their language. The console, the page of messages and texts for operators are in
# English.
IN_FIVE_LANGUAGES = re.compile(
    r"auth/(html|extensions/(?!console|docs|captcha)\w+)/(?!console|admin|api|command)"
    "|auth/delivery/(rendering|senders|templates)"
)
IN_ENGLISH = re.compile("console|dev_inbox|user_tab")


def templates_for_people() -> dict[str, str]:
    """Return the templates that are shown in five languages, by their names."""
    paths = [path for path in (ROOT / "auth").rglob("templates/**/*.*") if path.suffix in (".html", ".txt")]
    paths_by_name = {str(path.relative_to(ROOT)): path for path in paths}
    templates = {
        name: path.read_text()
        for name, path in paths_by_name.items()
        if IN_FIVE_LANGUAGES.match(name) and not IN_ENGLISH.search(name)
    }
    assert len(templates) > 50
    return templates


def test_templates_for_people_contain_no_words():
    """A word would stay English in the other languages."""
    words = {}
    for name, source in templates_for_people().items():
        text = re.sub(r"{#.*?#}|{{.*?}}|{%.*?%}", "", source, flags=re.DOTALL)
        attributes = " ".join(re.findall(r' (?:alt|title|placeholder|aria-label)="([^"]*)"', text))
        content = re.sub(r' [a-z-]+="[^"]*"|&[a-z]+;|<style.*?</style>', "", text, flags=re.DOTALL)
        content = re.sub("<[^>]*>| (autofocus|required|open)", "", content)
        words[name] = re.findall("[A-Za-z]{2,}", f"{content} {attributes}")
    assert {name: names for name, names in words.items() if names} == {}


def test_python_of_pages_and_messages_contains_no_sentence():
    sources = [each for each in SOURCES if IN_FIVE_LANGUAGES.match(each) and not IN_ENGLISH.search(each)]
    sentence = re.compile("[A-Z][a-z’']*[ ,].*[a-z][.?!…]$")
    sentences = {source: [text for text in strings(source) if sentence.match(text)] for source in sources}
    assert {source: texts for source, texts in sentences.items() if texts} == {}


def test_docs_settings_explains_exactly_the_settings():
    documented = list(table("settings.md"))
    provider_settings = [f"{PROVIDER_PREFIX}<NAME>_{suffix}" for suffix in SUFFIXES]
    assert [name for name in documented if name.startswith(PROVIDER_PREFIX)] == provider_settings
    others = [name for name in documented if not name.startswith(PROVIDER_PREFIX)]
    missing = [
        f"docs/settings.md: no row of {name}, {place_of(name)}"
        for name in settings.names()
        if name not in others
    ]
    assert missing == []
    assert others == settings.names()


def test_every_extension_is_on_in_the_tests_of_all_routes(tmp_path, monkeypatch):
    clear_settings(monkeypatch)
    monkeypatch.chdir(tmp_path)
    for name, value in EVERY_EXTENSION.items():
        monkeypatch.setenv(name, value)
    off = EXTENSIONS.keys() - names_on(settings.load(os.devnull, missing_secrets="ignore"))
    assert [f"tests/support/extensions.py: EVERY_EXTENSION leaves {name} off" for name in off] == []


def place_of(setting: str) -> str:
    """Return the file and line that define a setting."""
    path = "auth/core/settings/__init__.py"
    field = setting.removeprefix("AUTH_").lower()
    before = SOURCES[path].read_text().partition(f"\n    {field}: ")[0]
    return f"{path}:{before.count(chr(10)) + 2}"


def test_docs_settings_shows_the_defaults(tmp_path, monkeypatch):
    """The page shows the defaults in code; others are empty, generated or computed."""
    defaults = {
        name: cells[0].strip("`") for name, cells in table("settings.md").items() if cells[0].startswith("`")
    }
    clear_settings(monkeypatch)
    monkeypatch.chdir(tmp_path)
    unset = settings.load(os.devnull, missing_secrets="ignore")
    documented = defaults.keys() & {*settings.names()}
    assert len(documented) > 80
    differences = []
    for name in documented:
        with monkeypatch.context() as patch:
            patch.setenv(name, defaults[name])
            differences += [name] if settings.load(os.devnull, missing_secrets="ignore") != unset else []
    assert differences == []


@functools.cache
def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def links() -> Iterator[tuple[Path, str]]:
    """Yield each document with the target of each of its links to a file or heading."""
    outside = [ROOT / name for name in ("README.md", "CHANGELOG.md", "examples/README.md")]
    for document in [*outside, *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
            if "://" not in target:
                yield document, target


def has_target(document: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (document.parent / path).resolve() if path else document
    return file.exists() and (not anchor or anchor in anchors(file))


def test_links_in_the_documentation_have_a_target():
    assert len(list(links())) > 100
    assert [(document.name, target) for document, target in links() if not has_target(document, target)] == []


def test_promises_of_the_security_page_have_their_tests():
    page = "".join((ROOT / name).read_text() for name in ("docs/security.md", "tests/asvs.md"))
    promises = [
        (name, f"tests/{path}")
        for name, path in re.findall(r"\[(test_\w+)\]\((?:\.\./tests/)?([\w/]+\.py)\)", page)
    ]
    assert len(promises) > 20
    texts = {path: (ROOT / path).read_text() for _, path in promises}
    assert [
        name for name, path in promises if not re.search(rf"^ *def {name}\(", texts[path], re.MULTILINE)
    ] == []
