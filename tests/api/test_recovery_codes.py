"""POST and GET /recovery_codes, and POST /recovery_codes/verify."""

import re

import pytest

from tests.support.answers import A_TIMESTAMP, WRONG_CODE, assert_error, assert_ok
from tests.support.factors import raised, set_up
from tests.support.server import at_once
from tests.support.users import session_of

NONE = {"remaining": 0, "created_at": None}


@pytest.fixture
def app_and_session(alice):
    return set_up(alice.open_session())


@pytest.fixture
def session(app_and_session):
    return app_and_session[1]


@pytest.fixture
def codes(session):
    return make(session)


def make(session):
    response = session.post("/recovery_codes")
    assert response.status_code == 200, response.text
    return response.json["codes"]


def use(session, code):
    return session.post("/recovery_codes/verify", json={"code": code})


def test_ten_codes_are_shown_once_and_void_older_ones(session):
    assert_ok(session.get("/recovery_codes"), NONE)
    response = session.post("/recovery_codes")
    codes = response.json["codes"]
    assert_ok(response, {"codes": codes, "created_at": A_TIMESTAMP})
    assert len(set(codes)) == 10
    assert all(re.fullmatch(r"[0-9a-hjkmnp-tv-z]{5}-[0-9a-hjkmnp-tv-z]{5}", code) for code in codes)
    assert_ok(session.get("/recovery_codes"), {"remaining": 10, "created_at": A_TIMESTAMP})
    new = make(session)
    assert_error(use(session, codes[0]), *WRONG_CODE)
    assert use(session, new[0]).status_code == 200


def test_code_raises_the_session_once_and_codes_go_with_the_last_factor(
    alice, app_and_session, codes, database, client, service_role
):
    low = alice.open_session()
    high = session_of(low.client, use(low, codes[0].upper().replace("-", " ")))
    assert (high.claims["aal"], high.claims["amr"][-1]["method"]) == ("aal2", "recovery_code")
    mails = database.all("SELECT kind FROM outbox WHERE channel = 'email' ORDER BY kind")
    assert [row.kind for row in mails] == ["factor_added", "recovery_code_used", "recovery_codes_created"]
    told = client.get(f"/admin/users/{alice.id}/timeline", headers=service_role).json["data"]
    assert any(item["text"].startswith("recovery code used, 9 left") for item in told)
    assert high.put("/user", json={"password": "Another-Horse-1"}).status_code == 200
    assert_error(use(alice.sign_in("Another-Horse-1"), codes[0]), *WRONG_CODE)
    assert_ok(high.get("/recovery_codes"), {"remaining": 9, "created_at": A_TIMESTAMP})
    assert high.delete(f"/factors/{app_and_session[0].id}").status_code == 200
    assert_ok(high.get("/recovery_codes"), NONE)
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
    assert_error(use(session, codes[0]), 429, "over_request_rate_limit")
    assert raised(alice.open_session(), app_and_session[0]).claims["aal"] == "aal2"
