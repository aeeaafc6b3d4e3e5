"""Who signs in, and what gives a token now (rules 1 to 4), a sentence and an example each."""

from dataclasses import asdict, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from auth.rules import levels, refreshing, sessions, sign_in, tokens
from auth.rules.deciding import Deciding, still_decides
from auth.rules.levels import Level
from auth.rules.refreshing import TokenState
from auth.rules.sessions import EPOCH, OpenSession
from auth.rules.tokens import ApiKey
from tests.rules.facts import (
    ALICE,
    ANCIENT,
    ANONYMOUS,
    BANNED,
    CAROL,
    CONVERTED,
    DAY,
    FACTOR_FOR_ALL,
    FRESH,
    HOUR,
    MICROSECOND,
    MINUTE,
    NOW,
    NUMBER,
    POLICY,
    RAISED,
    SECOND,
    UNUSED,
    WINDOW,
    WITH_APP,
    WITH_PASSKEY,
    Tokens,
)
from tests.support.cases import cases

FOR_ADMINISTRATORS = replace(POLICY, mfa_required="admins")
TIMEBOX = replace(POLICY, session_timebox=DAY)
ENDED = replace(FRESH, ended_at=NOW)
CLIENT_SESSION = replace(FRESH, opened_by="a session")
BY_NOBODY = replace(ANCIENT, method="anonymous")


@cases(
    ("sentence", "user", "facts", "refusal"),
    [
        ("The right password signs in.", ALICE, {}, None),
        ("A wrong one does not.", ALICE, {"is_right": False}, "invalid_credentials"),
        ("An unknown user is refused like it.", None, {}, "invalid_credentials"),
        ("A wrong one learns of no ban.", BANNED, {"is_right": False}, "invalid_credentials"),
        ("The right one does.", BANNED, {}, "user_banned"),
        ("And of an address that is not confirmed.", UNUSED, {}, "email_not_confirmed"),
        ("Or of such a number.", replace(UNUSED, phone=NUMBER), {"kind": "phone"}, "phone_not_confirmed"),
        ("It need not be, elsewhere.", UNUSED, {"must_be_confirmed": False}, None),
        ("Of several sign-ups none counts.", replace(ALICE, password_hash=None), {}, "invalid_credentials"),
        ("The console admits administrators.", CAROL, {"role": "admin"}, None),
        ("And nobody else.", ALICE, {"role": "admin"}, "not_admin"),
    ],
)
def test_password_signs_in(sentence, user, facts, refusal):
    values = {"is_right": True, "kind": "email", "must_be_confirmed": True} | facts
    assert sign_in.refusal_of_password(user, **values) == refusal


@cases(
    ("sentence", "opener", "facts", "verdict"),
    [
        ("A code of a page signs in.", None, {}, None),
        ("It expires at its moment.", None, {"expires_at": NOW}, "flow_state_not_found"),
        ("It needs its verifier.", None, {"is_right": False}, "bad_code_verifier"),
        ("A ban is told.", None, {"user": BANNED}, "user_banned"),
        ("A code is good while the session is that issued it.", FRESH, {}, None),
        ("And no longer.", ENDED, {}, "flow_state_not_found"),
        ("A second use is told, even after that session.", ENDED, {"session_id": "a session"}, "reused"),
        ("Turning its provider off ends it.", None, {"is_over": True}, "flow_state_not_found"),
        ("A second use is told, even then.", None, {"is_over": True, "session_id": "a session"}, "reused"),
    ],
)
def test_code_signs_in(sentence, opener, facts, verdict):
    row: dict[str, Any] = {"expires_at": NOW + SECOND, "session_id": None, "user": ALICE, "is_right": True}
    row["is_over"] = False
    code: Any = SimpleNamespace(**row | facts, opened_by=opener and "a browser")
    others = {"is_right": code.is_right, "policy": POLICY}
    assert sign_in.verdict_on_code(code, code.user, opener, **others) == verdict


@cases(
    ("sentence", "user", "session", "policy", "refusal"),
    [
        ("A live session gives a token.", ALICE, FRESH, POLICY, None),
        ("What has ended stays ended.", ALICE, ENDED, POLICY, "session_not_found"),
        ("A session that is gone gives none.", ALICE, None, POLICY, "session_not_found"),
        ("A ban is told first.", BANNED, None, POLICY, "user_banned"),
        ("A session in use lives.", ALICE, ANCIENT, POLICY, None),
        ("The timebox ends it.", ALICE, ANCIENT, TIMEBOX, "session_expired"),
        ("At its moment.", ALICE, replace(FRESH, session_created_at=NOW - DAY), TIMEBOX, "session_expired"),
        ("That of an anonymous user has not begun.", ANONYMOUS, BY_NOBODY, TIMEBOX, None),
        ("It begins when the user becomes permanent.", CONVERTED, BY_NOBODY, TIMEBOX, None),
        ("A user with an app needs it.", WITH_APP, FRESH, POLICY, "insufficient_aal"),
        ("A session that used it has the level.", WITH_APP, RAISED, POLICY, None),
        ("A passkey is no second step.", WITH_PASSKEY, FRESH, POLICY, None),
        ("A demand for all does not mean anonymous users.", ANONYMOUS, FRESH, FACTOR_FOR_ALL, None),
        ("It means everybody else.", ALICE, FRESH, FACTOR_FOR_ALL, "insufficient_aal"),
        ("One for administrators means them.", CAROL, FRESH, FOR_ADMINISTRATORS, "insufficient_aal"),
        ("And nobody else.", ALICE, FRESH, FOR_ADMINISTRATORS, None),
    ],
)
def test_session_gives_a_token(sentence, user, session, policy, refusal):
    aal = session.aal if session else "aal1"
    assert tokens.refusal_of_session(user, session, NOW + HOUR, aal, Level.AAL1, policy) == refusal


@cases(
    ("refreshed_at", "refusal"),
    [(NOW - 30 * DAY, "session_expired"), (NOW - 30 * DAY + MICROSECOND, None)],
)
def test_session_without_refreshes_expires_and_no_microsecond_earlier(refreshed_at, refusal):
    session = replace(FRESH, refreshed_at=refreshed_at)
    assert sessions.end_of_session(ALICE, session, POLICY) == refusal


def test_expired_access_token_is_told_first():
    assert tokens.refusal_of_session(BANNED, FRESH, NOW, "aal1", Level.AAL1, POLICY) == "bad_jwt"


@cases(
    ("sentence", "user", "session", "aal", "level", "policy", "refusal"),
    [
        ("A token from before keeps its level.", WITH_APP, RAISED, "aal1", "aal1", POLICY, True),
        ("A sensitive act asks for a passkey too.", WITH_PASSKEY, FRESH, "aal1", "aal2", POLICY, True),
        ("A user who lacks a step may enrol.", ALICE, FRESH, "aal0", "enrol", FACTOR_FOR_ALL, False),
        ("And do nothing else.", ALICE, FRESH, "aal0", "aal1", POLICY, True),
        ("With any factor, enrolling takes it.", WITH_PASSKEY, FRESH, "aal1", "enrol", POLICY, True),
    ],
)
def test_session_is_below_a_level(sentence, user, session, aal, level, policy, refusal):
    assert levels.lacks_level(user, session, aal, level, policy) is refusal


@cases(
    ("age", "aal", "level"),
    [(MINUTE, "aal1", "aal2"), (15 * MINUTE, "aal1", "aal1"), (MINUTE, "aal0", "aal0")],
)
def test_first_passkey_raises_its_session_for_fifteen_minutes_but_no_token_that_lacks_a_step(age, aal, level):
    assert levels.level_of(replace(FRESH, first_passkey_at=NOW - age), aal, NOW) == level


@cases(
    ("user", "aal", "is_passed"),
    [(WITH_APP, "aal2", True), (WITH_APP, "aal1", False), (WITH_PASSKEY, "aal1", True)],
)
def test_every_step_is_passed_with_the_app_or_without_one(user, aal, is_passed):
    assert levels.passes_every_step(user, aal) is is_passed


@cases(("age", "level"), [(8 * DAY, "aal2"), (8 * DAY + MICROSECOND, "aal1")])
def test_old_proof_has_the_level_that_its_user_had_then(age, level):
    assert levels.level_at(WITH_APP, NOW - age) == level


@cases(
    ("sentence", "method", "reauthenticated_at", "moment"),
    [
        ("A sign-in authenticates.", "password", None, NOW - MINUTE),
        ("The later one counts.", "password", NOW - HOUR, NOW - MINUTE),
        ("A provider may have known the user.", "oauth", NOW - HOUR, NOW - HOUR),
        ("A sign-up that goes on authenticates nobody.", "sign_up", None, EPOCH),
        ("An anonymous sign-in proves nothing.", "anonymous", None, None),
    ],
)
def test_user_proved_who_they_are(sentence, method, reauthenticated_at, moment):
    assert sessions.proved_at(replace(FRESH, method=method, reauthenticated_at=reauthenticated_at)) == moment


def test_session_of_an_application_authenticates_nobody():
    assert sessions.authenticated_at(CLIENT_SESSION) == EPOCH


def open_session_of(age: timedelta, refreshed_at: datetime = NOW) -> OpenSession:
    ages: Any = {"session_created_at": NOW - age, "refreshed_at": refreshed_at}
    return OpenSession(id=str(age), method="password", aal="aal1", **ages)


def test_sign_in_beyond_the_limit_leaves_the_newest_live_sessions():
    several = [
        open_session_of(3 * HOUR),
        open_session_of(HOUR),
        open_session_of(MINUTE, NOW - 30 * DAY),
        open_session_of(2 * HOUR),
    ]
    assert sessions.sessions_beyond(ALICE, several, 2, POLICY) == ["2:00:00", "3:00:00"]


@cases(
    ("user", "expires_at", "refusal"),
    [
        (ALICE, None, None),
        (ALICE, NOW, "api_key_not_found"),
        (ALICE, NOW + MICROSECOND, None),
        (WITH_APP, None, "insufficient_aal"),
    ],
)
def test_api_key_has_the_level_of_its_session_and_expires_at_its_moment(user, expires_at, refusal):
    key = ApiKey(aal="aal1", expires_at=expires_at)
    assert tokens.refusal_of_api_key(user, key, None, POLICY) == refusal


@cases(
    ("sentence", "key", "scope", "refusal"),
    [
        ("A key opens what its scope names.", {}, "users:read", None),
        ("And nothing else.", {}, "users:write", "insufficient_scope"),
        ("One scope opens no other.", {"scopes": ["users:write"]}, "users:read", "insufficient_scope"),
        ("Some operations admit no such key.", {}, None, "insufficient_scope"),
        ("It works until its end.", {"expires_at": NOW + MICROSECOND}, "users:read", None),
        ("It expires at its moment.", {"expires_at": NOW}, "users:read", "bad_jwt"),
        ("An expired one learns of no scope.", {"expires_at": NOW}, "links", "bad_jwt"),
        ("An ended key is unknown.", None, "users:read", "bad_jwt"),
    ],
)
def test_administrative_key_opens_an_operation(sentence, key, scope, refusal):
    row: Any = None
    if key is not None:
        row = SimpleNamespace(**{"scopes": ["users:read"], "expires_at": None, "now": NOW} | key)
    error_key = tokens.refusal_of_admin_key(row, scope)
    assert (error_key and error_key.removeprefix("admin_key.")) == refusal


USED = Tokens(
    counter=7,
    used_counter=6,
    successor_counter=7,
    refreshed_at=NOW - 5 * SECOND,
    refreshes=0,
    counted_until=NOW,
    echoes=None,
)
LATER = replace(USED, refreshed_at=NOW - HOUR)
AT_ITS_END = replace(USED, refreshed_at=NOW - 10 * SECOND)
ECHOING = replace(USED, echoes={"7": {"5": (NOW + SECOND).isoformat()}})
ENDING = replace(AT_ITS_END, echoes={"7": {"5": NOW.isoformat()}})
OFTEN = replace(USED, refreshes=3, counted_until=NOW + SECOND)
DEAD = "refresh.refresh_token_already_used"


def after(state: Tokens, sent: int, rotates: bool = True) -> TokenState:
    settings: Any = {"reuse_interval": 10 * SECOND, "window": WINDOW}
    return refreshing.refreshed(state, sent, rotates=rotates, **settings)


@cases(
    ("sentence", "state", "sent", "successor"),
    [
        ("The newest token is good.", USED, 7, 8),
        ("The one before gets the present successor.", USED, 6, 7),
        ("After the interval it gets a new one.", LATER, 6, 8),
        ("That ends at its moment.", AT_ITS_END, 6, 8),
        ("A dead one ends the session.", USED, 5, DEAD),
        ("An echo gets the present successor.", ECHOING, 5, 7),
        ("It is no lost answer.", replace(ECHOING, refreshed_at=NOW - HOUR), 5, 7),
        ("It ends at its moment.", ENDING, 5, DEAD),
        ("And with a second step.", replace(ECHOING, counter=9), 5, DEAD),
        ("A token of a second step kills the one before.", replace(USED, counter=8), 6, DEAD),
        ("One ahead of a restored database is good.", USED, 12, 13),
        ("Refreshes are limited.", OFTEN, 7, "over_request_rate_limit"),
        ("Until the window ends.", replace(OFTEN, counted_until=NOW), 7, 8),
        ("A limit hides no theft.", OFTEN, 5, DEAD),
    ],
)
def test_refresh_token_is_refused_or_has_a_successor(sentence, state, sent, successor):
    refusal = refreshing.refusal_of_token(state, sent, WINDOW)
    assert (refusal or after(state, sent).counter) == successor


def test_refresh_keeps_what_echoes_and_adds_the_last_use():
    assert after(USED, 7, rotates=False).counter == 7
    assert after(ECHOING, 5).used_counter == 6
    echoes = {"5": (NOW + SECOND).isoformat(), "6": (NOW + 5 * SECOND).isoformat()}
    assert after(ECHOING, 7).echoes == {"8": echoes}
    assert after(ENDING, 7).echoes is None


def test_refresh_keeps_the_eight_newest_echoes_also_of_a_row_with_more():
    until = (NOW + SECOND).isoformat()
    many = replace(USED, counter=120, used_counter=119, successor_counter=120)
    many = replace(many, echoes={"120": {str(number): until for number in range(80, 119)}})
    echoes = after(many, 120).echoes
    assert echoes is not None
    assert list(echoes["121"]) == [str(number) for number in range(112, 120)]
    assert after(many, 90).echoes == many.echoes


@cases(
    ("until", "window", "counted"),
    [
        (NOW, WINDOW, (1, NOW + HOUR)),
        (NOW + SECOND, WINDOW, (4, NOW + SECOND)),
        (NOW + SECOND, None, (3, NOW + SECOND)),
    ],
)
def test_window_begins_with_its_first_refresh_and_a_refresh_counts_in_it_once(until, window, counted):
    assert refreshing.counted(3, until, window, NOW) == counted


@cases(
    ("state", "sent", "is_same_client", "entry"),
    [
        (USED, 7, False, None),
        (LATER, 6, False, "refresh_answer_lost"),
        (USED, 6, True, None),
        (USED, 6, False, "refresh_token_repeated"),
    ],
)
def test_log_says_which_answer_was_lost_and_which_token_another_client_has_repeated(
    state, sent, is_same_client, entry
):
    others = {"rotates": True, "is_same_client": is_same_client, "now": NOW}
    assert refreshing.entry_of_refresh(after(state, sent), sent, **others) == entry


@cases(
    ("sentence", "user", "session", "facts", "refusal"),
    [
        ("A session is refreshed.", ALICE, FRESH, {}, None),
        ("One that lacks a step is, for that step.", WITH_APP, FRESH, {}, None),
        ("A ban is told.", BANNED, FRESH, {}, "user_banned"),
        ("Expiry is told.", ALICE, replace(FRESH, refreshed_at=NOW - 31 * DAY), {}, "session_expired"),
        ("An end is not.", ALICE, ENDED, {}, "refresh_token_not_found"),
        ("Applications refresh elsewhere.", ALICE, FRESH, {"is_of_client": True}, "refresh_token_not_found"),
        ("Theft is told.", ALICE, FRESH, {"sent": 5}, "refresh_token_already_used"),
    ],
)
def test_session_is_refreshed(sentence, user, session, facts, refusal):
    columns = {"sent": 7, "is_of_client": False} | facts
    row: Any = SimpleNamespace(**asdict(user) | asdict(USED) | asdict(session) | columns)
    error_key = refreshing.refusal_of_refresh(row, columns["sent"], WINDOW, POLICY)
    assert (error_key and error_key.removeprefix("refresh.")) == refusal


FACTS = Deciding(
    id="alice",
    role="authenticated",
    email="alice@example.com",
    email_confirmed_at=NOW,
    phone=None,
    phone_confirmed_at=None,
    app_metadata={},
    banned_until=None,
    is_anonymous=False,
    created_at=NOW,
    providers=("email",),
    factors=(),
    memberships={},
    session_id="a",
    aal="aal1",
    ended_at=None,
    factor_id=None,
    amr=None,
)


def test_answer_of_a_hook_counts_while_nothing_changes_that_decides():
    assert still_decides(FACTS, replace(FACTS))
    assert not still_decides(FACTS, replace(FACTS, role="admin"))
    assert not still_decides(FACTS, replace(FACTS, ended_at=NOW))
