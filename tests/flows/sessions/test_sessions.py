"""GET /sessions and DELETE /sessions/{id}: the sessions of a user."""

import uuid

import pytest

from tests.support.answers import A_TIMESTAMP, A_UUID, assert_error, assert_ok, page_of
from tests.support.checked_rows import statements_run
from tests.support.users import PASSWORD

NOT_FOUND = (404, "not_found", "Session not found")


def entry(session, current):
    times = {"created_at": A_TIMESTAMP, "refreshed_at": A_TIMESTAMP}
    return {"id": session.id, "user_agent": "Werkzeug/3.1.9", "ip": "127.0.0.1", "current": current} | times


class TestList:
    def test_list_contains_sessions_of_the_caller_newest_first_and_no_tokens(self, alice, bob, parts):
        bob.sign_in()
        laptop, phone = alice.sign_in(), alice.sign_in()
        before = statements_run()
        response = laptop.get("/sessions")
        assert statements_run() == before + 1
        assert laptop.id == A_UUID
        entries = [entry(phone, False), entry(laptop, True)]
        assert_ok(response, {"data": entries, "pagination": page_of(1, 20, 2, 1)})
        assert response.headers["X-Total-Count"] == "2"
        url = "</sessions?page=1&per_page=20>"
        assert response.headers["Link"] == f'{url}; rel="first", {url}; rel="last"'

    @pytest.mark.parametrize(
        ("peer", "ip"), [("fe80::1%eth0", "fe80::1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("unix:", None)]
    )
    def test_session_shows_where_it_was_started_by_a_valid_address(self, client, alice, peer, ip):
        response = client.post(
            "/token?grant_type=password",
            json={"email": alice.email, "password": PASSWORD},
            headers={"User-Agent": "Firefox on Alice\u2019s laptop".encode().decode("latin-1")},
            environ_overrides={"REMOTE_ADDR": peer},
        )
        assert response.status_code == 200
        (_, other) = alice.sign_in().get("/sessions").json["data"]
        assert other["ip"] == ip
        assert other["user_agent"].startswith("Firefox on Alice")

    def test_live_sessions_are_listed_with_their_last_refresh(self, alice, database):
        laptop, phone, tablet = (alice.sign_in() for _ in range(3))
        phone.post("/logout?scope=local")
        statement = "UPDATE sessions SET refreshed_at = now() - interval '30 days' WHERE id = %(id)s"
        database.run(statement, id=tablet.id)
        laptop.refresh()
        response = laptop.get("/sessions")
        assert_ok(response, {"data": [entry(laptop, True)], "pagination": page_of(1, 20, 1, 1)})
        assert response.json["data"][0]["refreshed_at"] > response.json["data"][0]["created_at"]


class TestEndingASession:
    def test_delete_ends_only_that_session_once(self, alice, database):
        laptop, phone = alice.open_session(), alice.open_session()
        response = laptop.delete(f"/sessions/{phone.id}")
        assert_ok(response, {"message": "Session ended", "timestamp": A_TIMESTAMP})
        assert_error(phone.get("/user"), 401, "session_not_found")
        assert_error(phone.refresh(), 400, "refresh_token_not_found")
        assert laptop.get("/user").status_code == 200
        reason = database.value("SELECT end_reason FROM sessions WHERE id = %(id)s", id=phone.id)
        assert reason == "ended_by_user"
        before = database.everything()
        assert_error(laptop.delete(f"/sessions/{phone.id}"), *NOT_FOUND)
        assert database.everything() == before

    def test_unknown_malformed_or_foreign_id_is_404_even_for_an_administrator(self, alice, mallory, carol):
        session = alice.open_session()
        for person in (mallory, carol):
            assert_error(person.sign_in().delete(f"/sessions/{session.id}"), *NOT_FOUND)
        zeros = str(uuid.UUID(int=0))
        for id in (zeros, "1", "nonsense", "%00", "0" * 32, f"{{{zeros}}}", f"urn:uuid:{zeros}"):
            assert_error(session.delete(f"/sessions/{id}"), *NOT_FOUND)
        assert session.get("/user").status_code == 200
