"""POST /factors, its challenges and verifications, and DELETE /factors/{id}."""

import time

import pyotp
import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, A_UUID, assert_error, assert_ok
from tests.support.cast import PASSWORD, session_of
from tests.support.factors import App, challenge, enrol, raised, set_up, verify
from tests.support.server import at_once

WRONG = (422, "mfa_verification_failed")
EXPIRED = (422, "mfa_challenge_expired")
GONE = (404, "mfa_factor_not_found")
LOW = (403, "insufficient_aal")


def factors_of(session):
    return session.get("/user").json.get("factors")


class TestEnrolling:
    def test_response_has_secret_uri_and_qr_code(self, alice):
        response = alice.open_session().post(
            "/factors", json={"factor_type": "totp", "friendly_name": "Phone"}
        )
        totp = response.json["totp"]
        assert_ok(response, {"id": A_UUID, "type": "totp", "friendly_name": "Phone", "totp": totp})
        parsed = pyotp.parse_uri(totp["uri"])
        assert (parsed.secret, parsed.name, parsed.issuer) == (totp["secret"], alice.email, "localhost 8000")
        assert len(parsed.byte_secret()) == 20
        assert totp["qr_code"].startswith("<svg ")
        assert "#" not in totp["qr_code"]
        assert "xmlns=" in totp["qr_code"]

    def test_factor_counts_once_it_is_verified(self, alice):
        session = alice.open_session()
        assert factors_of(session) is None
        app = enrol(session, "Phone")
        factor = {
            "id": app.id,
            "friendly_name": "Phone",
            "factor_type": "totp",
            "created_at": A_TIMESTAMP,
            "updated_at": A_TIMESTAMP,
        }
        assert factors_of(session) == [factor | {"status": "unverified"}]
        assert session.put("/user", json={"password": "Another-Horse-1"}).status_code == 200

        session = raised(session, app)
        assert factors_of(session) == session.user["factors"] == [factor | {"status": "verified"}]
        assert [session.claims["aal"], *(method["method"] for method in session.claims["amr"])] == [
            "aal2",
            "password",
            "totp",
        ]

    def test_old_session_needs_a_proof(self, alice, database):
        session = alice.open_session()
        database.run("UPDATE sessions SET created_at = now() - interval '16 minutes'")
        body = {"factor_type": "totp"}
        assert_error(session.post("/factors", json=body), 400, "reauthentication_needed", details=A_SENTENCE)
        assert session.post("/factors", json=body | {"current_password": PASSWORD}).status_code == 200

    def test_second_factor_needs_the_first(self, alice):
        first = alice.open_session()
        _app, raised_session = set_up(first, "Phone")
        low = alice.sign_in()
        assert_error(low.post("/factors", json={"factor_type": "totp"}), *LOW)
        enrol(raised_session, "Tablet")
        assert_error(
            raised_session.post("/factors", json={"factor_type": "totp", "friendly_name": "Phone"}),
            422,
            "mfa_factor_name_conflict",
        )

    def test_factor_that_a_thief_began_to_enrol_cannot_be_verified_after_the_first(self, alice):
        thief = alice.open_session()
        planted = enrol(thief)
        set_up(alice.sign_in())
        assert_error(thief.get("/user"), 401, "session_not_found")
        assert_error(alice.sign_in().post(f"/factors/{planted.id}/challenge"), *GONE)

    def test_second_factor_that_was_begun_at_aal2_is_not_verified_at_aal1(self, alice):
        low = alice.open_session()
        session = set_up(low)[1]
        second = enrol(session)
        # With the access token from before the session was raised.
        assert_error(verify(low, second), *LOW)
        assert_error(alice.sign_in().post(f"/factors/{second.id}/challenge"), *GONE)
        assert verify(session, second).status_code == 200

    def test_longest_issuer_fits_into_the_qr_code(self, alice):
        session, body = alice.open_session(), {"factor_type": "totp"}
        assert session.post("/factors", json=body | {"issuer": "😀" * 64}).status_code == 200
        too_long = session.post("/factors", json=body | {"issuer": "😀" * 65})
        assert_error(too_long, 400, "validation_failed", details=A_SENTENCE)

    def test_enrolment_expires_after_five_minutes(self, alice, database):
        session = alice.open_session()
        app = enrol(session)
        challenge_id = challenge(session, app)
        database.run("UPDATE factors SET created_at = now() - interval '301 seconds'")
        assert_error(verify(session, app, challenge_id=challenge_id), *GONE)
        assert_ok(session.delete(f"/factors/{app.id}"), {"id": app.id})

    def test_enrolment_can_be_disabled_and_limited(self, make_app, alice):
        session = alice.sign_in()
        off = session.on(make_app(AUTH_MFA_ENABLED="false").test_client())
        body = {"factor_type": "totp"}
        assert_error(off.post("/factors", json=body), 422, "mfa_totp_enroll_not_enabled")
        limited = session.on(make_app(AUTH_MFA_MAX_ENROLLED_FACTORS="1").test_client())
        spare = enrol(limited)
        full = set_up(limited)[1]
        assert_error(full.post("/factors", json=body), 422, "too_many_enrolled_mfa_factors")
        assert factors_of(full)[0]["id"] != spare.id
        assert verify(off, App(factors_of(full)[0]["id"], ""), "000000").status_code == 422


class TestCodes:
    def test_code_of_the_next_and_the_previous_step_are_accepted_in_order(self, alice):
        app, session = set_up(alice.open_session())
        for steps in (0, 1):
            assert verify(session, app, app.code(steps)).status_code == 200

    def test_step_before_a_used_one_is_refused(self, alice):
        app = enrol(session := alice.open_session())
        used = app.code(1)
        assert verify(session, app, used).status_code == 200
        for code in (app.code(), app.code(-1), used):
            assert_error(verify(session, app, code), *WRONG)

    def test_steps_further_away_are_refused(self, alice):
        app = enrol(session := alice.open_session())
        # The next step may begin meanwhile.
        for steps in (-3, 3):
            assert_error(verify(session, app, app.code(steps)), *WRONG)

    def test_code_is_good_once_for_all_sessions(self, alice):
        app, session = set_up(alice.open_session())
        others = [alice.sign_in() for _ in range(2)]
        code = app.code()
        assert verify(others[0], app, code).status_code == 200
        assert_error(verify(others[1], app, code), *WRONG)
        assert_error(verify(session, app, code), *WRONG)

    def test_one_of_fifty_concurrent_uses_of_a_code_succeeds(self, alice, server):
        app = set_up(alice.sign_in(client=server))[0]
        sessions = [alice.sign_in(client=server) for _ in range(5)]
        challenges = [(session, challenge(session, app)) for session in sessions for _ in range(10)]
        code = app.code()
        answers = at_once(50, lambda number: verify(challenges[number][0], app, code, challenges[number][1]))
        assert {answer.status_code for answer in answers} <= {200, 422, 429}
        assert [answer.status_code for answer in answers].count(200) == 1

    def test_spaces_in_a_code_do_not_matter(self, alice):
        app = enrol(session := alice.open_session())
        code = app.code()
        assert verify(session, app, f"{code[:3]} {code[3:]}").status_code == 200


class TestChallenges:
    def test_challenge_takes_five_tries(self, alice):
        app = enrol(session := alice.open_session())
        challenge_id = challenge(session, app)
        for _ in range(5):
            assert_error(verify(session, app, app.wrong_code(), challenge_id), *WRONG)
        assert_error(verify(session, app, None, challenge_id), *EXPIRED)

    def test_challenge_is_good_once_and_for_five_minutes(self, alice, database):
        app = enrol(session := alice.open_session())
        challenge_id = challenge(session, app)
        assert verify(session, app, app.code(), challenge_id).status_code == 200
        assert_error(verify(session, app, app.code(1), challenge_id), *EXPIRED)
        expired = challenge(session, app)
        database.run("UPDATE factor_challenges SET expires_at = now()")
        assert_error(verify(session, app, app.code(1), expired), *EXPIRED)

    def test_challenge_of_another_user_factor_or_session_is_refused(self, alice, bob):
        app, session = set_up(alice.open_session())
        other_app = enrol(session)
        stranger = bob.sign_in()
        strange_app = enrol(stranger)
        assert_error(stranger.post(f"/factors/{app.id}/challenge"), *GONE)
        assert_error(verify(stranger, app, app.code(), challenge(session, app)), *GONE)
        assert_error(verify(stranger, strange_app, None, challenge(session, app)), *EXPIRED)
        assert_error(verify(session, app, app.code(), challenge(session, other_app)), *EXPIRED)
        assert_error(verify(alice.sign_in(), app, app.code(), challenge(session, app)), *EXPIRED)
        # None of these used up the code.
        assert verify(session, app, app.code()).status_code == 200

    def test_body_of_the_official_clients_is_ignored(self, alice):
        app = enrol(session := alice.open_session())
        before = int(time.time())
        response = session.post(f"/factors/{app.id}/challenge", json={"factorId": app.id, "channel": None})
        expires_at = response.json["expires_at"]
        assert_ok(response, {"id": A_UUID, "type": "totp", "expires_at": expires_at})
        assert before + 295 <= expires_at <= before + 310


class TestSessions:
    def test_first_verification_ends_the_other_sessions(self, alice, database):
        old, session = alice.open_session(), alice.open_session()
        set_up(session)
        assert_error(old.get("/user"), 401, "session_not_found")
        assert database.value("SELECT end_reason FROM sessions WHERE ended_at IS NOT NULL") == "factor_added"

    def test_later_verifications_end_none(self, alice):
        app, session = set_up(alice.open_session())
        low = alice.sign_in()
        raised(session, enrol(session))
        raised(alice.sign_in(), app)
        assert low.get("/user").status_code == 200

    def test_refresh_keeps_the_level(self, alice):
        _app, session = set_up(alice.open_session())
        claims = session.refreshed().claims
        assert (claims["aal"], claims["amr"]) == ("aal2", session.claims["amr"])

    def test_tokens_from_before_the_verification_do_not_rise(self, alice):
        app, _session = set_up(alice.open_session())
        low = alice.sign_in()
        high = raised(low, app)
        assert_error(low.put("/user", json={"password": "Another-Horse-1"}), *LOW)
        assert high.put("/user", json={"password": "Another-Horse-1"}).status_code == 200
        assert_error(low.refresh(), 400, "refresh_token_already_used")

    def test_introspection_returns_the_level(self, alice, client, service_role):
        app, session = set_up(alice.open_session())

        def level(token):
            return client.post("/introspect", json={"token": token}, headers=service_role).json["aal"]

        assert level(session.access_token) == "aal2"
        assert session.delete(f"/factors/{app.id}").status_code == 200
        assert level(session.access_token) == "aal1"


class TestRemoving:
    def test_user_removes_a_factor(self, alice):
        app, session = set_up(alice.open_session())
        assert_ok(session.delete(f"/factors/{app.id}"), {"id": app.id})
        assert factors_of(session) is None
        assert session.put("/user", json={"password": "Another-Horse-1"}).status_code == 200

    def test_removal_needs_aal2_and_a_proof(self, alice, database):
        app, session = set_up(alice.open_session())
        assert_error(alice.sign_in().delete(f"/factors/{app.id}"), *LOW)
        database.run(
            "UPDATE sessions SET created_at = now() - interval '1 day',"
            " reauthenticated_at = NULL, factor_proved_at = NULL"
        )
        assert_error(session.delete(f"/factors/{app.id}"), 400, "reauthentication_needed", details=A_SENTENCE)
        assert session.delete(f"/factors/{app.id}", json={"factor_code": app.code()}).status_code == 200

    def test_unverified_factor_is_removed_without_either(self, alice, database):
        app = enrol(session := alice.open_session())
        database.run("UPDATE sessions SET created_at = now() - interval '1 day'")
        assert session.delete(f"/factors/{app.id}").status_code == 200

    def test_only_sessions_whose_level_came_from_the_factor_fall(self, alice):
        phone, first = set_up(alice.open_session(), "Phone")
        _tablet, second = set_up(raised(alice.sign_in(), phone), "Tablet")
        assert first.delete(f"/factors/{phone.id}").status_code == 200
        assert [one.refreshed().claims["aal"] for one in (first, second)] == ["aal1", "aal2"]

    @pytest.mark.parametrize("id", ["nonsense", "7c4e0a52-5c1f-4d3c-9d5e-2a1f0c9b8e77"])
    def test_unknown_factor_is_not_found(self, alice, id):
        assert_error(alice.sign_in().delete(f"/factors/{id}"), *GONE)

    def test_factor_of_another_user_is_not_found(self, alice, bob):
        app, session = set_up(alice.open_session())
        assert_error(bob.sign_in().delete(f"/factors/{app.id}"), *GONE)
        assert factors_of(session)


class TestReauthentication:
    def test_code_of_a_factor_is_a_proof(self, alice, database):
        app, session = set_up(alice.open_session())
        database.run(
            "UPDATE sessions SET created_at = now() - interval '1 day',"
            " reauthenticated_at = NULL, factor_proved_at = NULL"
        )
        assert session.post("/reauthenticate", json={"factor_code": app.code()}).status_code == 200
        assert session.delete(f"/factors/{app.id}").status_code == 200

    def test_wrong_or_used_code_is_none(self, alice):
        app = enrol(session := alice.open_session())
        used = app.code()
        session = session_of(session.client, verify(session, app, used))
        for code in (used, app.wrong_code(), ""):
            assert_error(
                session.post("/reauthenticate", json={"factor_code": code}),
                400,
                "reauthentication_not_valid",
                details=A_SENTENCE,
            )


class TestAdministration:
    def test_service_role_lists_and_removes_factors(self, alice, client, service_role):
        app, session = set_up(alice.open_session(), "Phone")
        path = f"/admin/users/{alice.id}/factors"
        assert_ok(client.get(path, headers=service_role), session.user["factors"])
        assert_error(session.get(path), 403, "insufficient_permissions")
        assert_ok(client.delete(f"{path}/{app.id}", headers=service_role), {"id": app.id})
        assert_error(client.delete(f"{path}/{app.id}", headers=service_role), *GONE)
        assert factors_of(session) is None

    def test_unknown_user_is_not_found(self, client, service_role, bob):
        path = f"/admin/users/{'0' * 8}-0000-0000-0000-{'0' * 12}/factors"
        assert_error(client.get(path, headers=service_role), 404, "user_not_found")
        assert_error(client.delete(f"{path}/{bob.id}", headers=service_role), 404, "user_not_found")
