"""POST /factors, its challenges and verifications, and DELETE /factors/{id}."""

import re
import time
from typing import Any

import pyotp
import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, A_UUID, LOW, WRONG_CODE, assert_error, assert_ok
from tests.support.factors import App, challenge, enrol, raised, set_up, verify
from tests.support.server import at_once
from tests.support.users import PASSWORD

EXPIRED = (422, "mfa_challenge_expired")
GONE = (404, "mfa_factor_not_found")
UNPROVED = (400, "reauthentication_needed")
TOTP = {"factor_type": "totp"}


def age(database):
    """Let the sessions be a day old and without a proof."""
    database.run(
        "UPDATE sessions SET created_at = now() - interval '1 day',"
        " reauthenticated_at = NULL, factor_proved_at = NULL"
    )


def factors_of(session):
    return session.get("/user").json.get("factors")


class TestEnrolling:
    def test_response_has_secret_uri_and_qr_code(self, alice):
        session = alice.open_session()
        response = session.post("/factors", json=TOTP | {"friendly_name": "Phone"})
        totp = response.json["totp"]
        assert_ok(response, {"id": A_UUID, "type": "totp", "friendly_name": "Phone", "totp": totp})
        parsed = pyotp.parse_uri(totp["uri"])
        assert (parsed.secret, parsed.name, parsed.issuer) == (totp["secret"], alice.email, "localhost 8000")
        assert len(parsed.byte_secret()) == 20
        # A page that sets another size than the SVG's own scales it by the viewBox.
        assert re.match(
            r'<svg xmlns="http://www\.w3\.org/2000/svg" width="(\d+)" height="\1" viewBox="0 0 \1 \1" ',
            totp["qr_code"],
        )
        assert "#" not in totp["qr_code"]
        # The longest issuer fits into the QR code.
        assert session.post("/factors", json=TOTP | {"issuer": "😀" * 64}).status_code == 200
        too_long = session.post("/factors", json=TOTP | {"issuer": "😀" * 65})
        assert_error(too_long, 400, "validation_failed", details=A_SENTENCE)

    def test_factor_counts_once_it_is_verified(self, alice):
        session = alice.open_session()
        assert factors_of(session) is None
        app = enrol(session, "Phone")
        times: dict[str, Any] = dict.fromkeys(("created_at", "updated_at"), A_TIMESTAMP)
        factor = times | {"id": app.id, "friendly_name": "Phone", "factor_type": "totp"}
        assert factors_of(session) == [factor | {"status": "unverified"}]
        assert session.put("/user", json={"password": "Another-Horse-1"}).status_code == 200

        session = raised(session, app)
        assert factors_of(session) == session.user["factors"] == [factor | {"status": "verified"}]
        assert session.claims["aal"] == "aal2"
        assert [method["method"] for method in session.claims["amr"]] == ["password", "totp"]

    def test_old_session_needs_a_proof_and_a_second_factor_the_first_and_another_name(self, alice, database):
        session = alice.open_session()
        database.run("UPDATE sessions SET created_at = now() - interval '16 minutes'")
        assert_error(session.post("/factors", json=TOTP), *UNPROVED, details=A_SENTENCE)
        assert session.post("/factors", json=TOTP | {"current_password": PASSWORD}).status_code == 200
        session = set_up(alice.open_session(), "Phone")[1]
        assert_error(alice.open_session().post("/factors", json=TOTP), *LOW)
        enrol(session, "Tablet")
        response = session.post("/factors", json=TOTP | {"friendly_name": "Phone"})
        assert_error(response, 422, "mfa_factor_name_conflict")

    def test_second_factor_that_was_begun_at_aal2_is_not_verified_at_aal1(self, alice):
        low = alice.open_session()
        second = enrol(session := set_up(low)[1])
        # This access token is from before the session was raised.
        assert_error(verify(low, second), *LOW)
        assert_error(alice.open_session().post(f"/factors/{second.id}/challenge"), *GONE)
        assert verify(session, second).status_code == 200

    def test_eleventh_unverified_factor_replaces_the_oldest(self, alice, bob):
        session = set_up(alice.open_session(), "Phone")[1]
        enrol(stranger := bob.open_session())
        apps = [enrol(session) for _ in range(12)]
        unverified_ids = [factor["id"] for factor in factors_of(session) if factor["status"] == "unverified"]
        assert unverified_ids == [app.id for app in apps[2:]]
        assert_error(session.post(f"/factors/{apps[1].id}/challenge"), *GONE)
        assert verify(session, apps[2]).status_code == 200
        assert len(factors_of(session)) == 2
        assert len(factors_of(stranger)) == 1

    def test_fifty_concurrent_enrolments_leave_ten_factors(self, alice, server, database):
        session = alice.sign_in(client=server).prepared()
        answers = at_once(50, lambda _: session.post("/factors", json=TOTP))
        assert {answer.status_code for answer in answers} == {200}
        assert database.count("factors") == len(factors_of(session)) == 10

    def test_enrolment_expires_after_five_minutes_and_is_removed_without_a_proof(self, alice, database):
        app = enrol(session := alice.open_session())
        challenge_id = challenge(session, app)
        database.run("UPDATE factors SET created_at = now() - interval '301 seconds'")
        assert_error(verify(session, app, challenge_id=challenge_id), *GONE)
        age(database)
        assert_ok(session.delete(f"/factors/{app.id}"), {"id": app.id})

    def test_enrolment_can_be_disabled_and_limited(self, make_app, alice):
        session = alice.open_session()
        off = session.on(make_app(AUTH_MFA_ENABLED="false").test_client())
        assert_error(off.post("/factors", json=TOTP), 422, "mfa_totp_enroll_not_enabled")
        limited = session.on(make_app(AUTH_MFA_MAX_ENROLLED_FACTORS="1").test_client())
        spare = enrol(limited)
        full = set_up(limited)[1]
        assert_error(full.post("/factors", json=TOTP), 422, "too_many_enrolled_mfa_factors")
        assert factors_of(full)[0]["id"] != spare.id
        assert verify(off, App(factors_of(full)[0]["id"], ""), "000000").status_code == 422


class TestCodes:
    def test_code_of_the_next_and_the_previous_step_are_accepted_in_order(self, alice):
        app, session = set_up(alice.open_session())
        for steps in (0, 1):
            code = app.code(steps)
            assert verify(session, app, f"{code[:3]} {code[3:]}").status_code == 200

    def test_step_before_a_used_one_is_refused(self, alice):
        app = enrol(session := alice.open_session())
        # Steps further away are refused too. The next step may begin meanwhile.
        for steps in (-3, 3):
            assert_error(verify(session, app, app.code(steps)), *WRONG_CODE)
        used_code = app.code(1)
        assert verify(session, app, used_code).status_code == 200
        for code in (app.code(), app.code(-1), used_code):
            assert_error(verify(session, app, code), *WRONG_CODE)

    def test_code_is_good_once_for_all_sessions(self, alice):
        app, session = set_up(alice.open_session())
        others = [alice.open_session() for _ in range(2)]
        code = app.code()
        assert verify(others[0], app, code).status_code == 200
        assert_error(verify(others[1], app, code), *WRONG_CODE)
        assert_error(verify(session, app, code), *WRONG_CODE)

    def test_one_of_fifty_concurrent_uses_of_a_code_succeeds(self, alice, server):
        app = set_up(alice.sign_in(client=server))[0]
        sessions = [alice.sign_in(client=server) for _ in range(5)]
        challenges = [(session, challenge(session, app)) for session in sessions for _ in range(10)]
        code = app.code()
        answers = at_once(50, lambda number: verify(challenges[number][0], app, code, challenges[number][1]))
        assert {answer.status_code for answer in answers} <= {200, 422, 429}
        assert [answer.status_code for answer in answers].count(200) == 1


class TestChallenges:
    def test_challenge_is_good_for_one_success_five_tries_and_five_minutes(self, alice, database):
        app = enrol(session := alice.open_session())
        challenge_id = challenge(session, app)
        for _ in range(5):
            assert_error(verify(session, app, app.wrong_code(), challenge_id), *WRONG_CODE)
        assert_error(verify(session, app, None, challenge_id), *EXPIRED)
        # The body of the official clients is ignored.
        before = int(time.time())
        response = session.post(f"/factors/{app.id}/challenge", json={"factorId": app.id, "channel": None})
        expires_at = response.json["expires_at"]
        assert_ok(response, {"id": A_UUID, "type": "totp", "expires_at": expires_at})
        assert before + 299 <= expires_at <= time.time() + 301
        assert verify(session, app, app.code(), response.json["id"]).status_code == 200
        assert_error(verify(session, app, app.code(1), response.json["id"]), *EXPIRED)
        expired_id = challenge(session, app)
        database.run("UPDATE factor_challenges SET expires_at = now()")
        assert_error(verify(session, app, app.code(1), expired_id), *EXPIRED)

    def test_challenge_of_another_user_factor_or_session_is_refused(self, alice, bob):
        app, session = set_up(alice.open_session())
        other_app = enrol(session)
        stranger = bob.open_session()
        strange_app = enrol(stranger)
        assert_error(stranger.post(f"/factors/{app.id}/challenge"), *GONE)
        assert_error(verify(stranger, app, app.code(), challenge(session, app)), *GONE)
        assert_error(verify(stranger, strange_app, None, challenge(session, app)), *EXPIRED)
        assert_error(verify(session, app, app.code(), challenge(session, other_app)), *EXPIRED)
        assert_error(verify(alice.open_session(), app, app.code(), challenge(session, app)), *EXPIRED)
        # None of these used up the code.
        assert verify(session, app, app.code()).status_code == 200


class TestSessions:
    def test_only_the_first_verification_ends_the_other_sessions(self, alice, database):
        thief, session = alice.open_session(), alice.open_session()
        thiefs_app = enrol(thief)
        app, session = set_up(session)
        assert_error(thief.get("/user"), 401, "session_not_found")
        assert database.value("SELECT end_reason FROM sessions WHERE ended_at IS NOT NULL") == "factor_added"
        low = alice.open_session()
        # The factor that a thief began to enrol cannot be verified.
        assert_error(low.post(f"/factors/{thiefs_app.id}/challenge"), *GONE)
        raised(session, enrol(session))
        raised(alice.open_session(), app)
        assert low.get("/user").status_code == 200

    def test_tokens_from_before_the_verification_do_not_rise_and_a_refresh_keeps_the_level(self, alice):
        app, _session = set_up(alice.open_session())
        low = alice.open_session()
        high = raised(low, app)
        assert_error(low.put("/user", json={"password": "Another-Horse-1"}), *LOW)
        claims = high.refreshed().claims
        assert (claims["aal"], claims["amr"]) == ("aal2", high.claims["amr"])
        assert high.put("/user", json={"password": "Another-Horse-1"}).status_code == 200
        assert_error(low.refresh(), 400, "refresh_token_already_used")

    @pytest.mark.parametrize("minutes", [0, 2])
    def test_refresh_token_from_before_the_second_step_ends_the_session(self, alice, database, minutes):
        """This holds at once, even if its successor is unused."""
        app, _session = set_up(alice.open_session())
        low = alice.open_session()
        high = raised(low, app)
        database.run(f"UPDATE sessions SET refreshed_at = refreshed_at - interval '{minutes} minutes'")
        assert_error(low.refresh(), 400, "refresh_token_already_used")
        assert_error(high.refresh(), 400, "refresh_token_not_found")


class TestRemoving:
    def test_only_sessions_whose_level_came_from_the_factor_fall(self, alice):
        phone, first = set_up(alice.open_session(), "Phone")
        _tablet, second = set_up(raised(alice.open_session(), phone), "Tablet")
        assert first.delete(f"/factors/{phone.id}").status_code == 200
        assert [session.refreshed().claims["aal"] for session in (first, second)] == ["aal1", "aal2"]

    def test_unknown_factor_or_that_of_another_user_is_not_found(self, alice, bob):
        app, session = set_up(alice.open_session())
        stranger = bob.open_session()
        for id in ("nonsense", "7c4e0a52-5c1f-4d3c-9d5e-2a1f0c9b8e77", app.id):
            assert_error(stranger.delete(f"/factors/{id}"), *GONE)
        assert factors_of(session)


def test_service_role_lists_renames_and_removes_factors(alice, bob, client, service_role):
    app, session = set_up(alice.open_session(), "Phone")
    path = f"/admin/users/{alice.id}/factors"
    assert_ok(client.get(path, headers=service_role), session.user["factors"])
    response = client.put(f"{path}/{app.id}", json={"friendly_name": "Work"}, headers=service_role)
    (factor,) = session.user["factors"]
    assert_ok(response, factor | {"friendly_name": "Work", "updated_at": A_TIMESTAMP})
    assert_ok(client.delete(f"{path}/{app.id}", headers=service_role), {"id": app.id})
    assert_error(client.delete(f"{path}/{app.id}", headers=service_role), *GONE)
    assert factors_of(session) is None
    path_of_nobody = f"/admin/users/{'0' * 8}-0000-0000-0000-{'0' * 12}/factors"
    assert_error(client.get(path_of_nobody, headers=service_role), 404, "user_not_found")
    assert_error(client.delete(f"{path_of_nobody}/{bob.id}", headers=service_role), 404, "user_not_found")
