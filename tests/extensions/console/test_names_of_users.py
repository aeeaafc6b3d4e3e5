"""The name of a user, which applications write in several ways, is the same wherever it is shown."""

import json
from html import unescape

import pytest

from auth.extensions.openid.claims import of_user
from tests.support.cases import cases
from tests.support.pages import Visitor, words

NAMES = [
    ({"name": "Ada Lovelace"}, "Ada Lovelace"),
    ({"name": "", "full_name": "Ada Lovelace"}, "Ada Lovelace"),
    ({"name": "Ada", "full_name": "Ada Lovelace"}, "Ada"),
    ({"given_name": "Ada", "family_name": "Lovelace"}, "Ada Lovelace"),
    ({"family_name": "Lovelace"}, "Lovelace"),
    ({"given_name": "Augusta", "full_name": "Ada"}, "Ada"),
]


@cases(("metadata", "name"), NAMES)
def test_every_page_and_claim_shows_the_same_name(operator, app, alice, database, metadata, name):
    set_metadata = "UPDATE users SET user_metadata = %(metadata)s WHERE id = %(id)s"
    database.run(set_metadata, metadata=json.dumps(metadata), id=alice.id)
    text = words(operator.visit(f"/console/users?q={name.split()[-1]}"))
    assert ("alice@example.com" in text, name in text) == (True, True), text
    assert f'<p class="quiet">{name}</p>' in operator.visit(f"/console/users/{alice.id}").text
    assert f">{name}<" in Visitor(app).with_session_of(alice).visit("/account").text
    row = database.one(
        "SELECT shown.user_object, u.email_proved, u.phone_proved, '' AS memberships,"
        "       'aal1' AS aal, '[]'::jsonb AS amr, 0 AS auth_time, now() AS now"
        " FROM users AS u CROSS JOIN user_object_of(u, NULL, false) AS shown WHERE u.id = %(id)s",
        id=alice.id,
    )
    settings = app.extensions["latchkey"].settings
    assert of_user(settings, row, ["profile"])["name"] == name


@pytest.mark.parametrize("typed", ["Countess", ""])
def test_name_that_the_user_edits_takes_the_place_of_every_other(app, alice, database, typed):
    metadata = {"full_name": "Ada Lovelace", "given_name": "Ada", "team": "Engines"}
    database.run("UPDATE users SET user_metadata = %(metadata)s", metadata=json.dumps(metadata))
    visitor = Visitor(app).with_session_of(alice)
    assert 'value="Ada Lovelace"' in unescape(visitor.visit("/account/name").text)
    visitor.press("account/name", name=typed)
    stored = metadata | {"name": typed, "full_name": typed} if typed else {"team": "Engines"}
    assert database.value("SELECT user_metadata FROM users WHERE id = %(id)s", id=alice.id) == stored
    text = visitor.visit("/account").text
    assert ("Ada Lovelace" in text, "Countess" in text) == (False, bool(typed))
