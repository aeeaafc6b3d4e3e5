"""/factors/recovery-codes."""

import re

import pytest

from tests.support.answers import A_SENTENCE, WRONG_CODE, assert_error, assert_ok
from tests.support.factors import raised, set_up
from tests.support.server import at_once
from tests.support.users import session_of

CODES = "/factors/recovery-codes"
NO_CODES = (404, "mfa_factor_not_found", "Factor not found")


@pytest.fixture
def app_and_session(alice):
    return set_up(alice.open_session())


@pytest.fixture
def session(app_and_session):
    return app_and_session[1]


@pytest.fixture
def codes(session):
    response = session.post(CODES)
    assert response.status_code == 200, response.text
    return response.json["codes"]


def use(session, code):
    return session.post(f"{CODES}/verify", json={"code": code})


def remaining(session):
    return session.get(CODES).json["remaining"]


def test_ten_codes_are_shown_once_and_void_older_ones(session, codes):
    assert len(set(codes)) == 10
    assert all(re.fullmatch(r"[0-9a-hjkmnp-tv-z]{16}", code) for code in codes)
    assert remaining(session) == 10
    new = session.post(f"{CODES}/regenerate").json["codes"]
    assert remaining(session) == 10
    assert_error(use(session, codes[0]), *WRONG_CODE)
    assert use(session, new[0]).status_code == 200


def test_code_raises_the_session_once_and_codes_go_with_the_last_factor(
    alice, app_and_session, codes, database, client, service_role
):
    low = alice.open_session()
    high = session_of(low.client, use(low, f" {codes[0][:4]}-{codes[0][4:].upper()} "))
    assert (high.claims["aal"], high.claims["amr"][-1]["method"]) == ("aal2", "mfa/recovery_code")
    mails = database.all("SELECT kind FROM outbox WHERE channel = 'email' ORDER BY kind")
    assert [row.kind for row in mails] == ["factor_added", "recovery_code_used", "recovery_codes_created"]
    items = client.get(f"/admin/users/{alice.id}/timeline", headers=service_role).json["data"]
    assert any(item["text"].startswith("recovery code used, 9 left") for item in items)
    assert high.put("/user", json={"password": "Another-Horse-1"}).status_code == 200
    assert_error(use(alice.sign_in("Another-Horse-1"), codes[0]), *WRONG_CODE)
    assert remaining(high) == 9
    assert high.delete(f"/factors/{app_and_session[0].id}").status_code == 200
    assert_error(high.get(CODES), *NO_CODES)
    assert_error(use(high, codes[1]), *WRONG_CODE)


def test_one_of_fifty_concurrent_uses_succeeds(alice, codes, server):
    low = alice.open_session().on(server)
    statuses = [answer.status_code for answer in at_once(50, lambda _: use(low, codes[0]))]
    assert statuses.count(200) == 1
    assert set(statuses) <= {200, 422, 429}


def test_code_of_another_user_is_wrong(codes, bob):
    set_up(stranger := bob.open_session())
    for session in (bob.open_session(), stranger):
        assert_error(use(session, codes[0]), *WRONG_CODE)


def test_ten_wrong_codes_a_day_leave_the_authenticator_app_open(alice, app_and_session, session, codes):
    for number in range(10):
        assert_error(use(alice.open_session(), f"00000-0000{number}"), *WRONG_CODE)
    assert_error(use(session, codes[0]), 429, "mfa_recovery_codes_locked")
    assert raised(alice.open_session(), app_and_session[0]).claims["aal"] == "aal2"


class TestOneSet:
    """The wire of `auth.mfa.recoveryCodes`."""

    def test_codes_are_generated_counted_used_regenerated_and_removed(self, alice, session, database):
        owner = {"id": alice.id, "type": "recovery_code"}
        response = session.post(CODES, json={"friendly_name": "Drawer"})
        codes = response.json["codes"]
        assert_ok(response, owner | {"friendly_name": "Drawer", "total": 10, "codes": codes})
        assert all(re.fullmatch(r"[0-9a-hjkmnp-tv-z]{16}", code) for code in codes)
        low = alice.open_session()
        assert_ok(low.get(CODES), owner | {"total": 10, "remaining": 10})
        high = session_of(low.client, low.post(f"{CODES}/verify", json={"code": codes[0]}))
        assert (high.claims["aal"], high.claims["amr"][-1]["method"]) == ("aal2", "mfa/recovery_code")
        assert_ok(high.get(CODES), owner | {"total": 10, "remaining": 9})
        new_response = session.post(f"{CODES}/regenerate")
        assert_ok(
            new_response,
            owner | {"friendly_name": "Drawer", "total": 10, "codes": new_response.json["codes"]},
        )
        assert not {*codes} & {*new_response.json["codes"]}
        assert_error(low.post(f"{CODES}/verify", json={"code": codes[1]}), *WRONG_CODE)
        assert_ok(session.delete(CODES), {"id": alice.id})
        assert_error(session.get(CODES), *NO_CODES)
        assert_error(low.post(f"{CODES}/verify", json={"code": new_response.json["codes"][0]}), *WRONG_CODE)
        kinds = database.all("SELECT kind FROM outbox WHERE channel = 'email'")
        assert "factor_removed" in {row.kind for row in kinds}
        assert database.count("audit_log", "action = 'recovery_codes_removed'") == 1

    def test_a_second_set_is_refused_and_the_first_stays(self, session, codes):
        response = session.post(CODES)
        assert_error(
            response, 422, "mfa_verified_factor_exists", "There are recovery codes already; regenerate them"
        )
        assert use(session, codes[0]).status_code == 200

    def test_nothing_is_replaced_or_removed_without_codes(self, session):
        for response in (session.get(CODES), session.post(f"{CODES}/regenerate"), session.delete(CODES)):
            assert_error(response, *NO_CODES)

    def test_user_without_a_verified_factor_gets_none(self, session, codes, app_and_session):
        high = session_of(session.client, use(session, codes[0]))
        assert high.delete(f"/factors/{app_and_session[0].id}").status_code == 200
        for path in (CODES, f"{CODES}/regenerate"):
            assert_error(high.post(path), 422, "mfa_recovery_codes_sole_factor", A_SENTENCE)

    def test_one_of_two_concurrent_generations_succeeds(self, session, server):
        session = session.on(server)
        statuses = [answer.status_code for answer in at_once(2, lambda _: session.post(CODES))]
        assert sorted(statuses) == [200, 422]
