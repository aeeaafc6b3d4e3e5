"""The levels of the routes agree with guards, openapi.yaml and docs/security.md."""

import re
from collections import defaultdict

from auth.web.declarations import Level, route_of
from tests.source.test_contract import OPERATIONS, errors_of, guard_of, views
from tests.support.contract import OPENAPI, routes

# Levels whose operations docs/security.md does not list: openapi.yaml says which have no security, or the service
# role key alone, and all unlisted others have the level aal2.
UNLISTED = {Level.ANYONE, Level.SERVICE_ROLE, Level.AAL2}


def test_level_of_a_view_fits_its_guard(whole_app):
    levels = defaultdict(set)
    for view in views(whole_app).values():
        levels[guard_of(view)].add(route_of(view).level)
    assert levels.pop("access_token") == set(Level) - {Level.ANYONE, Level.SERVICE_ROLE, Level.CLIENT}
    assert levels == {
        None: {Level.ANYONE},
        "access_token_or_api_key": {Level.SESSION},
        "access_token_or_operator": {Level.AAL1},
        "client": {Level.ANYONE},
        "client_token": {Level.CLIENT},
        "admin": {Level.AAL2},
        "operator": {Level.SERVICE_ROLE},
        "developer": {Level.SERVICE_ROLE},
        "introspector": {Level.SERVICE_ROLE},
    }


def test_operations_describe_the_refusal_of_a_level(whole_app):
    refusing = {name for name, each in OPERATIONS.items() if (403, "insufficient_aal") in errors_of(each)}
    declared = {name: route_of(view) for name, view in views(whole_app).items()}
    levels_without_refusal = (Level.ANYONE, Level.SESSION, Level.CLIENT)
    below_level = {name for name, route in declared.items() if route.level not in levels_without_refusal}
    with_api_keys = {name for name, route in declared.items() if route.guard == "access_token_or_api_key"}
    assert refusing == below_level | with_api_keys | {
        name for name, route in declared.items() if route.asks_more
    }


def test_security_page_lists_the_operations_of_each_level_but_aal2(whole_app):
    page = (OPENAPI.parent / "docs" / "security.md").read_text()
    operations_of_page = {
        level: set(operations.split(", "))
        for level, operations in re.findall(r"^\| ([\w ]+) \|.*\| ([A-Z]+ /.*) \|$", page, re.MULTILINE)
    }
    expected = defaultdict(set)
    for method, path, view in routes(whole_app):
        if (level := route_of(view).level) not in UNLISTED:
            expected[level.replace("_", " ")].add(f"{method.upper()} {path}")
    missing = [
        f"docs/security.md: the level {level} lacks {operation}"
        for level, operations in expected.items()
        for operation in sorted(operations - operations_of_page.get(level, set()))
    ]
    assert missing == []
    assert operations_of_page == expected
