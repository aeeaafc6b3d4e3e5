"""docs/roles.md: a developer gives a role and sees it, and the checks of the page are those of the examples."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import psycopg2.errors
import pytest

from tests.support.guides import Guide
from tests.support.processes import CHECKOUT
from tests.support.terminals import beside_a_service
from tests.support.users import PASSWORD

GUIDE = Guide("roles.md")
SETTING = GUIDE.block("AUTH_TOKEN_CLAIMS=")


def test_developer_gives_a_role_and_sees_it():
    with beside_a_service([SETTING.text, "AUTH_AUTOCONFIRM=true"]) as (terminal, service):
        alice = {"email": "alice@example.com", "password": PASSWORD}
        signed_up = httpx.post(f"http://localhost:{service.port}/signup", json=alice, trust_env=False)
        assert signed_up.status_code == 201, signed_up.text
        changed = json.loads(terminal.finish(GUIDE.block("-X PUT").text))
        assert changed["app_metadata"]["roles"] == ["editor"]
        command = GUIDE.command("explain")
        assert GUIDE.block("claims        ").text in terminal.finish(command)
        # By its first line; the log follows.
        explanation = json.loads(terminal.finish(f"{command} --json").splitlines()[0])
        assert explanation["claims"] == {"roles": ["editor"], "plan": "team"}


def test_checks_are_those_of_the_examples():
    names = ("api.py", "api.mjs", "Api.java", "application.properties")
    sources = [path.read_text() for name in names for path in (CHECKOUT / "examples").rglob(name)]
    checks = [
        GUIDE.block("verify(bearer_token())"), GUIDE.block("def drafts(claims: Claims)"), GUIDE.block("claims.roles"),
        GUIDE.block("authorities-claim-name"), GUIDE.block("@PreAuthorize"),
    ]  # fmt: skip
    assert [check.line for check in checks if not any(check.text in source for source in sources)] == []


def test_policies_check_each_row(connect_as_api, make_app, alice, bob, database):
    api = connect_as_api(GUIDE.block("CREATE POLICY"))
    drafts = function_of(GUIDE.block("set_config").text, "drafts")
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


def function_of(code: str, name: str) -> Callable[..., Any]:
    """Run a block of Python, and return a function that it defines."""
    namespace: dict[str, Any] = {"json": json}
    exec(code, namespace)  # noqa: S102 (our own page)
    return namespace[name]
