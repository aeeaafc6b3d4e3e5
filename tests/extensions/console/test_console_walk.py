"""Every form of the console, sent once with success: it redirects, or is on the list of those that do not."""

import html
import re

import pytest

from tests.extensions.console.test_console_routes import FIELDS
from tests.extensions.console.test_demotion import NEEDS, READY
from tests.support.answered_forms import answers_to_forms, check_answers
from tests.support.api_keys import insert_key
from tests.support.contract import console_routes
from tests.support.pages import words

# The differences between acts.
OWN = {
    "create": {"email": "made@example.com"},
    "invite": {"email": "invited@example.com"},
    "invite-list": {"emails": "first@example.com second@example.com"},
}


@pytest.fixture
def app(make_app):
    return make_app(AUTH_API_KEYS="true")


def in_order(path: str) -> tuple[bool, int, str]:
    """Return a key that sorts what a thing owns before the thing, and what deletes last."""
    return path.endswith("/delete"), -path.count("/"), path


def test_every_form_of_the_console_redirects_or_shows_a_secret_once(app, armed, codes, ids, alice, database):
    insert_key(database, alice.id)
    ids["api_key_id"] = database.value("SELECT id::text FROM api_keys")
    rules = [path for method, path, _view in console_routes(app) if method == "post"]
    with answers_to_forms(app) as answers:
        for rule in sorted(rules, key=in_order):
            path, name = rule.format(**ids), rule.rpartition("/")[2].format(**ids)
            database.run(f"{READY}; {NEEDS.get(name, '')}")
            chosen = f"?id={alice.id}" if "/chosen/" in path else ""
            page = armed.visit(path + chosen)
            assert page.status == 200, path
            title = html.unescape(page.text.partition("<title>")[2].partition("</title>")[0])
            assert re.fullmatch(r"[^<>{}]+ · localhost:8000", title), (path, title)
            code = {"factor_code": codes.code(1)} if "factor_code" in page.text else {}
            armed.press(name, **FIELDS | OWN.get(name, {}) | code)
            assert armed.page.status == 200, f"{path}: {words(armed.page)}"
    check_answers(app, answers, of_console=True)
