"""The table of levels covers all routes, and agrees with guards, openapi.yaml and docs/security.md."""

import re

import pytest

from auth.web.levels import LEVELS, Level
from tests.support.contract import OPENAPI, page_routes, routes
from tests.test_contract import OPERATIONS, errors_of, guard_of, views

GUARDS = {
    None: {Level.ANYONE},
    "access_token": set(Level) - {Level.ANYONE, Level.SERVICE_ROLE},
    "admin": {Level.AAL2, Level.PROOF},
    "service_role": {Level.SERVICE_ROLE},
    "developer": {Level.SERVICE_ROLE},
}
# Views that require more for some parameters, or for the first verification of a factor; in `token`, linking
# an identity by its id_token. The SQL function `refusal_of_act` decides in the others.
ASKING_MORE = {"logout", "verify_factor", "token"}
ASKING_MORE |= {"update_user", "delete_factor", "delete_passkey", "delete_identity"}


def test_table_of_levels_has_exactly_the_views(app):
    assert set(LEVELS) == {view.__name__ for _, _, view in [*routes(app), *page_routes(app)]}


def test_level_of_a_view_fits_its_guard(app):
    unfit = {name for name, view in views(app).items() if LEVELS[view.__name__] not in GUARDS[guard_of(view)]}
    assert unfit == set()


def test_operations_describe_the_refusal_of_a_level(app):
    refusing = {
        name for name, operation in OPERATIONS.items() if (403, "insufficient_aal") in errors_of(operation)
    }
    names = {
        name
        for name, view in views(app).items()
        if LEVELS[view.__name__] not in (Level.ANYONE, Level.SESSION)
    }
    assert refusing == names | ASKING_MORE


@pytest.mark.parametrize("level", [level for level in Level if level is not Level.ANYONE])
def test_security_page_lists_the_operations_of_each_level(app, level):
    page = (OPENAPI.parent / "docs" / "security.md").read_text()
    row = re.search(rf"^\| {level.replace('_', ' ')} \|.*\| (.*) \|$", page, re.MULTILINE)
    assert row
    assert set(row[1].split(", ")) == {
        f"{method.upper()} {path}" for method, path, view in routes(app) if LEVELS[view.__name__] is level
    }
