"""The API keys of a user in the console."""

import pytest

from tests.support.api_keys import make_key, use
from tests.support.pages import words


@pytest.fixture
def app(make_app):
    return make_app(AUTH_API_KEYS="true")


def test_key_is_shown_and_removed(operator, client, alice, carol, database, outbox):
    id, key = make_key(alice.open_session(client), "<b>CI</b>", scopes=["read"], expires_in=86_400)
    page = operator.visit(f"/console/users/{alice.id}")
    assert f"API keys <b>CI</b> {key[:11]}… Added just now , never used, expires " in words(page)
    assert "<b>CI" not in page.text
    assert key not in page.text
    use(client, key)
    assert "API key used for the first time that day" in words(operator.visit(f"/console/users/{alice.id}"))
    database.run("UPDATE api_keys SET expires_at = now()")
    said = words(operator.visit(f"/console/users/{alice.id}"))
    assert ("used today, expired " in said, "expires" in said) == (True, False)
    operator.visit(f"/console/users/{alice.id}/api-keys/{id}/remove")
    assert "Removes 1 API key: “<b>CI</b>”." in words(operator.page)
    assert "No API keys." in words(operator.press("/remove"))
    assert use(client, key).status_code == 401
    assert outbox.sent(alice.email, "api_key_removed") == []
    (row,) = database.all("SELECT actor_id, user_id FROM audit_log WHERE action = 'api_key_removed'")
    assert (row.actor_id, row.user_id) == (carol.id, alice.id)
