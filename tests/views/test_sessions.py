"""GET /sessions and DELETE /sessions/{id}: the sessions of a user."""

import uuid

import pytest

from tests.support.answers import A_TIMESTAMP, A_UUID, assert_error, assert_ok
from tests.support.cases import cases


def entry(session, current, user_agent="Werkzeug/3.1.9"):
    return {
        "id": session.id,
        "created_at": A_TIMESTAMP,
        "refreshed_at": A_TIMESTAMP,
        "user_agent": user_agent,
        "ip": "127.0.0.1",
        "current": current,
    }


def pagination(page, per_page, total, total_pages):
    return {"page": page, "per_page": per_page, "total": total, "total_pages": total_pages}


class TestList:
    def test_list_contains_sessions_of_the_caller_newest_first(self, alice, bob):
        bob.sign_in()
        laptop, phone = alice.sign_in(), alice.sign_in()
        response = laptop.get("/sessions")
        assert_ok(
            response,
            {"data": [entry(phone, False), entry(laptop, True)], "pagination": pagination(1, 20, 2, 1)},
        )
        assert response.headers["X-Total-Count"] == "2"
        only = "</sessions?page=1&per_page=20>"
        assert response.headers["Link"] == f'{only}; rel="first", {only}; rel="last"'

    def test_session_shows_where_it_was_started(self, client, alice):
        headers = {"User-Agent": "Firefox on Alice\u2019s laptop".encode().decode("latin-1")}
        body = {"email": alice.email, "password": "Correct-Horse-1"}
        response = client.post(
            "/token?grant_type=password",
            json=body,
            headers=headers,
            environ_overrides={"REMOTE_ADDR": "2001:db8::1"},
        )
        assert response.status_code == 200
        (_, other) = alice.sign_in().get("/sessions").json["data"]
        assert other["ip"] == "2001:db8::1"
        assert other["user_agent"].startswith("Firefox on Alice")

    @pytest.mark.parametrize(
        ("peer", "shown"),
        [("fe80::1%eth0", "fe80::1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("", None), ("unix:", None)],
    )
    def test_session_shows_only_valid_network_addresses(self, client, alice, peer, shown):
        body = {"email": alice.email, "password": "Correct-Horse-1"}
        response = client.post(
            "/token?grant_type=password", json=body, environ_overrides={"REMOTE_ADDR": peer}
        )
        assert response.status_code == 200
        assert alice.sign_in().get("/sessions").json["data"][1]["ip"] == shown

    def test_session_shows_its_last_refresh(self, alice, database):
        session = alice.open_session()
        database.run(
            "UPDATE sessions SET created_at = created_at - interval '1 hour', refreshed_at = refreshed_at - interval '1 hour'"
        )
        session.refresh()
        (only,) = session.get("/sessions").json["data"]
        assert only["refreshed_at"] > only["created_at"]

    def test_ended_and_expired_sessions_are_not_listed(self, alice, database):
        laptop, phone, tablet = (alice.sign_in() for _ in range(3))
        phone.post("/logout?scope=local")
        database.run(
            "UPDATE sessions SET refreshed_at = now() - interval '30 days' WHERE id = %(id)s", id=tablet.id
        )
        assert_ok(
            laptop.get("/sessions"), {"data": [entry(laptop, True)], "pagination": pagination(1, 20, 1, 1)}
        )

    def test_list_contains_no_token(self, alice):
        session = alice.open_session()
        text = session.get("/sessions").text
        assert session.refresh_token not in text
        assert session.access_token not in text
        assert "counter" not in text

    def test_list_costs_one_statement(self, alice, parts):
        session = alice.open_session()
        before = parts.db.statements_run
        session.get("/sessions")
        assert parts.db.statements_run == before + 1


class TestPages:
    @pytest.fixture
    def sessions(self, alice):
        """Seven sessions, the newest first."""
        return [alice.open_session() for _ in range(7)][::-1]

    def links(self, response):
        return response.headers["Link"].split(", ")

    def test_pages_follow_each_other(self, sessions):
        pages = [sessions[0].get(f"/sessions?page={page}&per_page=3") for page in (1, 2, 3)]
        assert [item["id"] for page in pages for item in page.json["data"]] == [
            session.id for session in sessions
        ]
        assert [page.json["pagination"] for page in pages] == [
            pagination(page, 3, 7, 3) for page in (1, 2, 3)
        ]
        assert {page.headers["X-Total-Count"] for page in pages} == {"7"}

    def test_link_header_leads_from_page_to_page(self, sessions):
        first, middle, last = (
            self.links(sessions[0].get(f"/sessions?page={page}&per_page=3")) for page in (1, 2, 3)
        )
        assert '</sessions?page=2&per_page=3>; rel="next"' in first
        assert '</sessions?page=3&per_page=3>; rel="last"' in first
        assert not [link for link in first if "prev" in link]
        assert '</sessions?page=1&per_page=3>; rel="prev"' in middle
        assert '</sessions?page=3&per_page=3>; rel="next"' in middle
        assert not [link for link in last if "next" in link]
        assert '</sessions?page=2&per_page=3>; rel="prev"' in last

    def test_page_beyond_the_last_is_empty(self, sessions):
        assert_ok(
            sessions[0].get("/sessions?page=9&per_page=3"), {"data": [], "pagination": pagination(9, 3, 7, 3)}
        )

    @pytest.mark.parametrize(
        ("query", "page", "per_page"),
        [
            ("?page=&per_page=", 1, 20),
            ("?per_page=100", 1, 100),
            ("?per_page=101", 1, 100),
            ("?per_page=99999999999999999999", 1, 100),
            ("?page=01", 1, 20),
        ],
    )
    def test_empty_or_oversized_page_parameter_means_default_or_maximum(
        self, sessions, query, page, per_page
    ):
        response = sessions[0].get(f"/sessions{query}")
        assert response.json["pagination"] == pagination(page, per_page, 7, 1)
        assert len(response.json["data"]) == 7

    def test_huge_page_number_is_empty(self, sessions):
        response = sessions[0].get("/sessions?page=99999999999999999999")
        assert (response.status_code, response.json["data"]) == (200, [])

    @cases("name", ["page", "per_page"])
    @cases("value", ["0", "-1", "1.5", "one", "1e3", "+1", "0x1", "%31%32%20", "%D9%A1", "1_0", "9" * 400])
    def test_page_that_is_not_a_positive_number_is_400(self, sessions, name, value):
        response = sessions[0].get(f"/sessions?{name}={value}")
        assert_error(
            response, 400, "validation_failed", details=f"{name}: must be a whole number of at least 1"
        )

    def test_repeated_parameter_is_400(self, sessions):
        assert_error(
            sessions[0].get("/sessions?page=1&page=2"),
            400,
            "validation_failed",
            details="page: must be given once",
        )


class TestEndingASession:
    def test_delete_ends_only_that_session(self, alice, database):
        laptop, phone = alice.open_session(), alice.open_session()
        assert_ok(
            laptop.delete(f"/sessions/{phone.id}"), {"message": "Session ended", "timestamp": A_TIMESTAMP}
        )
        assert_error(phone.get("/user"), 401, "session_not_found")
        assert_error(phone.refresh(), 400, "refresh_token_not_found")
        assert laptop.get("/user").status_code == 200
        assert (
            database.value("SELECT end_reason FROM sessions WHERE id = %(id)s", id=phone.id)
            == "ended_by_user"
        )

    def test_caller_may_end_the_current_session(self, alice):
        session = alice.open_session()
        assert session.delete(f"/sessions/{session.id}").status_code == 200
        assert_error(session.get("/user"), 401, "session_not_found")

    def test_id_is_case_insensitive(self, alice):
        session = alice.open_session()
        assert session.delete(f"/sessions/{session.id.upper()}").status_code == 200

    def test_session_of_another_user_is_404_and_continues(self, alice, mallory):
        session = alice.open_session()
        assert_error(
            mallory.sign_in().delete(f"/sessions/{session.id}"), 404, "not_found", "There is no such session"
        )
        assert session.get("/user").status_code == 200

    def test_administrator_cannot_end_sessions_of_other_users(self, alice, carol):
        session = alice.open_session()
        assert_error(
            carol.sign_in().delete(f"/sessions/{session.id}"), 404, "not_found", "There is no such session"
        )
        assert session.get("/user").status_code == 200

    def test_ended_session_is_404(self, alice, database):
        laptop, phone = alice.open_session(), alice.open_session()
        phone.post("/logout?scope=local")
        before = database.everything()
        assert_error(laptop.delete(f"/sessions/{phone.id}"), 404, "not_found", "There is no such session")
        assert database.everything() == before

    @cases(
        "id",
        [
            str(uuid.UUID(int=0)),
            "1",
            "nonsense",
            "%00",
            "{00000000-0000-0000-0000-000000000000}",
            "urn:uuid:" + str(uuid.UUID(int=0)),
            "0" * 32,
        ],
    )
    def test_unknown_or_malformed_id_is_404(self, alice, id):
        session = alice.open_session()
        assert_error(session.delete(f"/sessions/{id}"), 404, "not_found", "There is no such session")
        assert session.get("/user").status_code == 200


def test_session_ids_equal_those_of_the_access_tokens(alice):
    session = alice.open_session()
    (only,) = session.get("/sessions").json["data"]
    assert only["id"] == session.id == A_UUID
