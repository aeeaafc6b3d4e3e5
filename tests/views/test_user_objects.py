"""The user object is kept beside the user, and is what the user and its identities are at every moment."""

import json
from contextlib import closing

import pytest

from sql import schema
from tests.support.rows import Rows

IDENTITY = "INSERT INTO identities (user_id, provider, subject, identity_data) VALUES (%s, 'google', 'alice-at-google', '{\"sub\": \"alice-at-google\"}')"


@pytest.fixture
def session(alice):
    return alice.sign_in()


def providers_of(database, id):
    return json.loads(database.value("SELECT object FROM user_objects WHERE user_id = %(id)s", id=id))["app_metadata"]["providers"]


@pytest.mark.parametrize(
    ("change", "providers"),
    [
        (IDENTITY, ["email", "google"]),
        ("UPDATE identities SET provider = 'phone' WHERE user_id = %s", ["phone"]),
        ("DELETE FROM identities WHERE user_id = %s", []),
    ],
    ids=["another", "changed", "gone"],
)
def test_it_changes_with_its_identities(database, alice, change, providers):
    with database.locked("users", alice.id, change):
        pass

    assert providers_of(database, alice.id) == providers
    assert database.stale_objects() == []


def test_an_identity_that_changes_hands_changes_both(database, alice, bob):
    database.run("DELETE FROM identities WHERE user_id = %(id)s", id=bob.id)
    database.run("UPDATE identities SET user_id = %(bob)s WHERE user_id = %(alice)s", alice=alice.id, bob=bob.id)

    assert (providers_of(database, alice.id), providers_of(database, bob.id)) == ([], ["email"])
    assert database.stale_objects() == []


def test_it_is_there_before_its_identities(database):
    database.run("INSERT INTO users (email, made_by) VALUES ('dave@example.com', 'signup')")

    object = json.loads(database.value("SELECT object FROM user_objects"))
    assert (object["email"], object["identities"]) == ("dave@example.com", [])


def test_it_holds_no_audience_which_is_the_deployments(database, session):
    assert "aud" not in json.loads(database.value("SELECT object FROM user_objects"))
    assert session.get("/user").json["aud"] == "authenticated"


def test_an_audience_can_not_break_it(make_app, database):
    client = make_app(AUTH_JWT_AUDIENCE='"}, \\"', AUTH_AUTOCONFIRM="true").test_client()
    signed_up = client.post("/signup", json={"email": "dave@example.com", "password": "Correct-Horse-1"}).json

    answer = client.get("/user", headers={"Authorization": f"Bearer {signed_up['access_token']}"})
    assert answer.json == signed_up["user"]
    assert answer.json["aud"] == '"}, \\"'


class TestAtTheSameMoment:
    """As the user's row serves those who change it one after the other, the last one sees what all have done."""

    def test_an_identity_is_added_before_a_change_of_the_user(self, database, alice, session):
        with database.locked("users", alice.id, IDENTITY) as lock:
            changing = lock.start(lambda: session.put("/user", json={"data": {"n": 1}}))

        assert changing.result().status_code == 200
        user = session.get("/user").json
        assert (user["user_metadata"]["n"], user["app_metadata"]["providers"]) == (1, ["email", "google"])

    def test_a_user_is_changed_before_an_identity_is_added(self, database, database_url, alice, session):
        change = "UPDATE users SET user_metadata = '{\"n\": 1}' WHERE id = %s"
        with closing(Rows(database_url)) as other, database.locked("users", alice.id, change) as lock:
            adding = lock.start(lambda: other.run(IDENTITY % f"'{alice.id}'"))

        assert adding.result() == 1
        user = session.get("/user").json
        assert (user["user_metadata"]["n"], user["app_metadata"]["providers"]) == (1, ["email", "google"])


class TestAnUpgrade:
    """Of a database that an earlier version has made."""

    @pytest.fixture
    def upgrade(self, database, database_url):
        """Apply the schema as if the functions before had been others."""

        def upgrade():
            database.outdate_functions()
            schema.apply(database_url)

        return upgrade

    def test_gives_one_to_users_who_have_none(self, database, session, upgrade):
        before = session.get("/user").json
        database.run("DELETE FROM user_objects")

        upgrade()

        assert session.get("/user").json == before
        assert database.stale_objects() == []

    def test_keeps_nobody_from_refreshing(self, database, database_url, alice, session):
        database.run("UPDATE user_objects SET object = '{}'")
        database.outdate_functions()
        waits_for = "SELECT FROM user_objects WHERE user_id = %s FOR UPDATE"
        with database.locked("user_objects", alice.id, waits_for) as lock:
            applying = lock.start(lambda: schema.apply(database_url))
            database.run("SET LOCAL lock_timeout = '2s'; UPDATE sessions SET refreshes = 0")  # it waits for nothing

        applying.result()
        assert session.refreshed().get("/user").json["email"] == "alice@example.com"

    def test_writes_anew_what_is_made_otherwise_now_and_nothing_else(self, database, alice, bob, upgrade):
        database.run("UPDATE user_objects SET object = '{}' WHERE user_id = %(id)s", id=alice.id)
        bobs = "SELECT user_objects.ctid::text FROM user_objects JOIN users ON id = user_id WHERE email = 'bob@example.com'"
        where = database.value(bobs)

        upgrade()

        assert database.stale_objects() == []
        assert database.value(bobs) == where
