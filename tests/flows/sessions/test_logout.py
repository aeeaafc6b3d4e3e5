"""POST /logout: ending all sessions of a user, the current one, or the others."""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok
from tests.support.cases import cases
from tests.support.server import at_once

DONE = {"message": "Successfully logged out", "timestamp": A_TIMESTAMP}


def assert_signed_out(session):
    assert_error(session.get("/user"), 401, "session_not_found")
    not_found = "Invalid Refresh Token: Refresh Token Not Found"
    assert_error(session.refresh(), 400, "refresh_token_not_found", not_found)


def assert_signed_in(session):
    assert session.get("/user").status_code == 200
    assert session.refresh().status_code == 200


@pytest.mark.parametrize(
    ("query", "ends_this", "ends_others"),
    [
        ("", True, True),
        ("?scope=global", True, True),
        ("?scope=local", True, False),
        ("?scope=others", False, True),
    ],
)
def test_scope_decides_which_sessions_of_the_user_end(alice, bob, query, ends_this, ends_others):
    laptop, phone, tablet = (alice.open_session() for _ in range(3))
    bobs_session = bob.open_session()
    assert_ok(laptop.post(f"/logout{query}"), DONE)
    for session, ends in (
        (laptop, ends_this),
        (phone, ends_others),
        (tablet, ends_others),
        (bobs_session, False),
    ):
        (assert_signed_out if ends else assert_signed_in)(session)
    assert_signed_in(alice.sign_in())


@cases(
    ("query", "details"),
    [
        *(
            (f"?scope={scope}", "scope: must be one of global, local, others")
            for scope in ("", "all", "Local")
        ),
        ("?scope=local&scope=global", "scope: must be given once"),
    ],
)
def test_unknown_scope_is_400_and_ends_nothing(alice, query, details):
    session = alice.open_session()
    assert_error(session.post(f"/logout{query}"), 400, "validation_failed", details=details)
    assert_signed_in(session)


def test_concurrent_logouts_end_the_session_once(server, alice):
    session = alice.sign_in()
    statuses = {answer.status_code for answer in at_once(16, lambda _: session.on(server).post("/logout"))}
    assert 200 in statuses
    assert statuses <= {200, 401}
    for answer in at_once(16, lambda _: session.on(server).get("/user")):
        assert_error(answer, 401, "session_not_found")
