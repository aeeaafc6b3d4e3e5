"""docs/roles.md: its blocks are run here, or are those of the examples, which test_examples.py runs."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg2
import psycopg2.errors
import pytest

from tests.support.commands import run_command
from tests.support.processes import CHECKOUT

PAGE = (CHECKOUT / "docs/roles.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def block(containing: str) -> str:
    (block_text,) = [text for _, text in BLOCKS if containing in text]
    return block_text


def test_role_that_the_page_gives_is_in_the_token_and_explained_as_it_says(make_app, alice, service_role):
    (claims,) = re.findall(r"AUTH_TOKEN_CLAIMS='(.*)'", PAGE)
    app = make_app(AUTH_TOKEN_CLAIMS=claims)
    body = json.loads(re.findall(r"-d '(.*)'", block("curl"))[0])
    session = alice.sign_in(client=app.test_client())
    session.client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)
    assert session.refreshed().claims["roles"] == ["editor"]
    explanation = run_command(app, "explain", alice.email).output
    assert block("claims        ") in explanation


def test_checks_of_the_page_are_those_of_the_examples():
    names = ("api.py", "api.mjs", "Api.java", "application.properties")
    sources = [path.read_text() for name in names for path in (CHECKOUT / "examples").rglob(name)]
    checks = [text for language, text in BLOCKS if language in ("python", "js", "java", "properties")]
    checks.remove(block("set_config"))
    assert len(checks) == 5
    assert [text for text in checks if not any(text in source for source in sources)] == []


@pytest.fixture
def api(new_database) -> Iterator[Any]:
    """A connection of the API to a database with the policies of the page."""
    url = new_database()
    with closing(psycopg2.connect(url)) as owner, closing(psycopg2.connect(url)) as api:
        with owner, owner.cursor() as cursor:
            cursor.execute(block("CREATE POLICY"))
        with api, api.cursor() as cursor:
            cursor.execute("SET ROLE api")
        yield api
        api.close()
        with owner, owner.cursor() as cursor:
            cursor.execute("DROP OWNED BY api; DROP ROLE api")


def test_policies_of_the_page_check_each_row(api, make_app, alice, bob, database):
    drafts = run_page_code(block("set_config"), "drafts")
    app = make_app(AUTH_TOKEN_CLAIMS='{"roles": "app_metadata.roles"}')
    alices_session, bobs_session = (user.open_session(app.test_client()) for user in (alice, bob))

    def write(author: str, claims: dict[str, Any]) -> None:
        with api, api.cursor() as cursor:
            cursor.execute("SELECT set_config('request.jwt.claims', %s, true)", [json.dumps(claims)])
            cursor.execute("INSERT INTO drafts VALUES (%s, %s)", [author, f"of {author}"])

    for session in (alices_session, bobs_session):
        write(session.user["id"], session.claims)
    assert drafts(api, alices_session.claims) == [f"of {alice.id}"]
    assert [drafts(api, claims) for claims in ({}, {"roles": "editor"}, {"roles": ["editors"]})] == [[]] * 3
    database.run('UPDATE users SET app_metadata = \'{"roles": ["editor"]}\' WHERE id = %(id)s', id=alice.id)
    editor = alices_session.refreshed()
    assert drafts(api, editor.claims) == sorted([f"of {alice.id}", f"of {bob.id}"])
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        write(bob.id, editor.claims)
    # The claims ended with their transaction.
    with api, api.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM drafts")
        assert cursor.fetchone() == (0,)


def run_page_code(code: str, name: str) -> Callable[..., Any]:
    """Run a block of Python, and return a function that it defines."""
    namespace: dict[str, Any] = {"json": json}
    exec(code, namespace)  # noqa: S102 (our own page)
    return namespace[name]
