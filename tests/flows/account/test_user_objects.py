"""The user object and its copy in user_objects, which nodes of 0.5.2 read; the fixture `database` checks after each
test that both are the same.
"""

import pytest

from sql import schema

IDENTITY = "INSERT INTO identities (user_id, provider, subject, identity_data) VALUES (%(id)s, 'google', 'alice', '{\"sub\": \"alice\"}')"


@pytest.mark.parametrize(
    ("change", "provider", "providers"),
    [
        (IDENTITY, "email", ["email", "google"]),
        ("UPDATE identities SET provider = 'phone' WHERE user_id = %(id)s", "phone", ["phone"]),
        ("DELETE FROM identities WHERE user_id = %(id)s", None, []),
    ],
    ids=["added", "changed", "removed"],
)
def test_user_object_lists_the_identities_when_one_is(database, alice, session, change, provider, providers):
    database.run(change, id=alice.id)
    user = session.get("/user").json
    assert (user["app_metadata"]["provider"], user["app_metadata"]["providers"]) == (provider, providers)
    assert [identity["provider"] for identity in user["identities"]] == providers
    assert session.refreshed().get("/user").json == user


def test_user_object_escapes_the_audience(make_app):
    client = make_app(AUTH_JWT_AUDIENCE='"}, \\"', AUTH_AUTOCONFIRM="true").test_client()
    body = {"email": "dave@example.com", "password": "Correct-Horse-1"}
    signed_up = client.post("/signup", json=body).json
    answer = client.get("/user", headers={"Authorization": f"Bearer {signed_up['access_token']}"})
    assert answer.json == signed_up["user"]
    assert answer.json["aud"] == '"}, \\"'


class TestUpgrade:
    """The schema is applied to a database that has the functions of another release."""

    def test_only_missing_or_old_copies_are_written(self, database, database_url, alice, bob, carol, session):
        before = session.get("/user").json
        database.run("DELETE FROM user_objects WHERE user_id = %(id)s", id=alice.id)
        database.run("UPDATE user_objects SET object = '{}' WHERE user_id = %(id)s", id=carol.id)
        place = "SELECT ctid::text FROM user_objects WHERE user_id = %(id)s"
        kept = database.value(place, id=bob.id)
        database.outdate_functions()
        schema.apply(database_url)
        assert session.get("/user").json == before
        assert database.stale_objects() == []
        assert database.value(place, id=bob.id) == kept

    def test_upgrade_does_not_block_refreshes(self, database, database_url, alice, session):
        database.run("UPDATE user_objects SET object = '{}'")
        database.outdate_functions()
        lock_row = "SELECT FROM user_objects WHERE user_id = %s FOR UPDATE"
        with database.locked("user_objects", alice.id, lock_row) as lock:
            applying = lock.start(lambda: schema.apply(database_url))
            database.run("SET LOCAL lock_timeout = '2s'; UPDATE sessions SET refreshes = 0")
        applying.result()
        assert session.refreshed().get("/user").json["email"] == "alice@example.com"
