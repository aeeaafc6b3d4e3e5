"""The user object, which is made of the user, identities and factors when it is read."""

import pytest

from tests.support.factors import set_up

IDENTITY = "INSERT INTO identities (user_id, provider, subject, identity_data) VALUES (%(id)s, 'google', 'alice', '{\"sub\": \"alice\"}')"
PLACE = "SELECT ctid::text, last_sign_in_at FROM user_objects WHERE user_id = %(id)s"


@pytest.mark.parametrize(
    ("change", "provider", "providers"),
    [
        (IDENTITY, "email", ["email", "google"]),
        ("UPDATE identities SET provider = 'phone' WHERE user_id = %(id)s", "phone", ["phone"]),
        ("DELETE FROM identities WHERE user_id = %(id)s", None, []),
    ],
    ids=["added", "changed", "removed"],
)
def test_user_object_lists_the_identities_after_each_change_of_them(
    database, alice, session, change, provider, providers
):
    database.run(change, id=alice.id)
    user = session.get("/user").json
    assert (user["app_metadata"]["provider"], user["app_metadata"]["providers"]) == (provider, providers)
    assert [identity["provider"] for identity in user["identities"]] == providers
    assert session.refreshed().get("/user").json == user


def test_user_object_escapes_the_audience(make_app):
    client = make_app(AUTH_JWT_AUDIENCE='x"}, \\"', AUTH_AUTOCONFIRM="true").test_client()
    body = {"email": "dave@example.com", "password": "Correct-Horse-1"}
    body_of_sign_up = client.post("/signup", json=body).json
    answer = client.get("/user", headers={"Authorization": f"Bearer {body_of_sign_up['access_token']}"})
    assert answer.json == body_of_sign_up["user"]
    assert answer.json["aud"] == 'x"}, \\"'


def test_nothing_but_a_sign_in_writes_the_place_of_a_user_in_the_order_by_last_sign_in(database, alice):
    assert database.value("SELECT last_sign_in_at = '-infinity' FROM user_objects")
    session = alice.sign_in()
    (place,) = database.all(PLACE, id=alice.id)
    assert place.last_sign_in_at == database.value("SELECT last_sign_in_at FROM users")
    assert session.put("/user", json={"data": {"name": "Alice"}}).status_code == 200
    set_up(session.refreshed())
    database.run(IDENTITY, id=alice.id)
    assert database.all(PLACE, id=alice.id) == [place]
    second_session = alice.sign_in()
    (later_place,) = database.all(PLACE, id=alice.id)
    assert later_place.last_sign_in_at > place.last_sign_in_at
    assert second_session.user["user_metadata"] == {"name": "Alice"}
