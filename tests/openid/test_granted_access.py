"""What users allow applications is an addition to their account, and goes like one."""

import pytest

from tests.support.answers import A_TIMESTAMP, A_UUID
from tests.support.factors import set_up
from tests.support.grants import add_client, allow
from tests.support.links import follow, fragment

NEW = "Another-Horse-1"


@pytest.fixture
def grafana(database):
    return add_client(database)


def state_of(database, session_id):
    """Return why a session has ended, `live`, or None if it is gone."""
    return database.value(
        "SELECT max(coalesce(end_reason, 'live')) FROM sessions WHERE id = %(id)s", id=session_id
    )


def recent(session):
    return session.get("/user/recent_changes").json["recent_changes"]


class TestAsAnAddition:
    def test_recent_grant_is_listed_and_removed_with_the_rest(self, alice, grafana, database):
        session, other, opened = alice.sign_in(), alice.sign_in(), allow(database, alice.id, grafana)
        (change,) = recent(session)
        assert change == {"id": A_UUID, "type": "grant", "added_at": A_TIMESTAMP, "label": "Grafana"}
        assert session.put("/user", json={"remove": [change["id"]]}).status_code == 200
        assert (recent(session), state_of(database, opened)) == ([], None)
        # Whoever may remove a grant may not end the user's own sessions.
        assert other.get("/user").status_code == 200
        assert (
            database.count("audit_log", "action = 'grant_removed' AND details ->> 'client' = 'Grafana'") == 1
        )

    def test_grant_of_last_week_is_no_recent_change(self, alice, grafana, database):
        session = alice.sign_in()
        allow(database, alice.id, grafana, age="8 days")
        assert recent(session) == []

    def test_administrator_removes_a_recent_grant(self, client, alice, grafana, database, service_role):
        opened, route = allow(database, alice.id, grafana), f"/admin/users/{alice.id}"
        (change,) = client.get(f"{route}/recent_changes", headers=service_role).json["recent_changes"]
        assert client.put(route, json={"remove": [change["id"]]}, headers=service_role).status_code == 200
        assert (database.count("oauth_grants"), state_of(database, opened)) == (0, None)

    def test_undo_removes_the_recent_grant_and_keeps_the_old_one(self, alice, grafana, database, outbox):
        database.run("UPDATE users SET created_at = now() - interval '30 days'")
        gitea = add_client(database, "Gitea")
        old, new = allow(database, alice.id, gitea, age="8 days"), allow(database, alice.id, grafana)
        set_up(alice.open_session())
        response = follow(alice.client, "undo", outbox.last(alice.email, "factor_added").token)
        assert fragment(response)["type"] == "undo"
        assert (state_of(database, new), state_of(database, old)) == (None, "change_undone")
        assert database.value("SELECT client_id::text FROM oauth_grants") == gitea
        removed = database.value("SELECT details -> 'removed' FROM audit_log WHERE action = 'change_undone'")
        assert "grant Grafana" in removed


class TestEnd:
    def test_password_change_ends_the_sessions_of_clients(self, alice, grafana, database):
        opened = allow(database, alice.id, grafana)
        assert alice.sign_in().put("/user", json={"password": NEW}).status_code == 200
        assert (state_of(database, opened), database.count("oauth_grants")) == ("password_changed", 1)

    @pytest.mark.parametrize("scope", ["global", "others"])
    def test_log_out_everywhere_ends_the_sessions_of_clients(self, alice, grafana, database, scope):
        opened = allow(database, alice.id, grafana)
        assert alice.sign_in().post(f"/logout?scope={scope}").status_code == 200
        assert state_of(database, opened) == "logout"

    def test_first_factor_leaves_the_sessions_of_clients_as_they_are(self, alice, grafana, database):
        opened = allow(database, alice.id, grafana)
        set_up(alice.open_session())
        assert state_of(database, opened) == "live"
        assert database.value("SELECT aal FROM sessions WHERE id = %(id)s", id=opened) == "aal1"
