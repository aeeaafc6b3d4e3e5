"""What a customer's provider opened gives no token from the moment on when the provider is turned off, deleted, or has
another issuer, whatever is turned on since. Everything else stays.
"""

import pytest

from auth.delivery import janitor
from tests.support.answers import assert_error
from tests.support.api_keys import make_key, use
from tests.support.checked_rows import statements_run
from tests.support.opened_by_provider import REFUSED, Opened
from tests.support.server import at_once
from tests.support.users import Person

ALICE = "alice@acme.example"
# The end of the users comes later, or never: a worker was killed.
CUT_OFF = {
    "off": "UPDATE identity_providers SET enabled = false WHERE identifier = 'custom:acme-idp'",
    "off and on": """
        UPDATE identity_providers SET enabled = false WHERE identifier = 'custom:acme-idp';
        UPDATE identity_providers SET enabled = true WHERE identifier = 'custom:acme-idp'
    """,
    "another issuer and back": """
        UPDATE identity_providers SET issuer = issuer || '/other' WHERE identifier = 'custom:acme-idp';
        UPDATE identity_providers SET issuer = replace(issuer, '/other', '') WHERE identifier = 'custom:acme-idp'
    """,
    "deleted": "DELETE FROM identity_providers WHERE identifier = 'custom:acme-idp'",
}
LIVE = "ended_at IS NULL"


@pytest.fixture
def opened(sso, acme, database) -> Opened:
    return Opened(sso, acme, database)


@pytest.mark.parametrize("way", CUT_OFF)
def test_what_a_provider_opened_before_gives_no_token_although_its_end_has_not_come(opened, database, way):
    database.run(CUT_OFF[way])
    assert opened.statuses() == REFUSED
    assert database.count("sessions", LIVE) > 0


def test_all_of_it_gives_tokens_while_the_provider_is_on(opened):
    assert opened.statuses() == dict.fromkeys(REFUSED, 200) | {"page": 201}


@pytest.mark.parametrize("way", CUT_OFF)
def test_janitor_ends_what_an_interruption_has_left_and_nothing_else(opened, sso, database, way):
    own = Person(sso.client, opened.user_id, ALICE).open_session()
    own_key = make_key(own)[1]
    database.run(CUT_OFF[way])
    janitor.keep_house(sso.parts.settings, sso.parts.db, sso.parts.sealer)
    assert database.all(f"SELECT id::text FROM sessions WHERE {LIVE}") == [(own.id,)]
    assert {
        row.end_reason for row in database.all("SELECT end_reason FROM sessions WHERE NOT ended_at IS NULL")
    } == {"provider_disabled"}
    assert (database.count("api_keys"), use(sso.client, own_key).status_code) == (1, 200)
    assert database.count("authorization_codes", "session_id IS NULL") == 0
    assert database.count("oauth_requests", "session_id IS NOT NULL AND opened_session_id IS NULL") == 0


def test_turning_off_ends_it_at_once_and_turning_on_brings_nothing_back(opened, sso, acme, database):
    assert sso.change(acme, enabled=False).json["enabled"] is False
    assert database.count("sessions", LIVE) == database.count("api_keys") == 0
    assert sso.change(acme, enabled=True).json["enabled"] is True
    assert opened.statuses() == REFUSED
    assert sso.signed_in(acme.identifier).refresh().status_code == 200


def test_other_providers_users_keep_all(opened, sso, globex, database):
    globex.be("1", "gwen@globex.example")
    other = sso.signed_in(globex.identifier)
    key = make_key(other)[1]
    database.run(CUT_OFF["off and on"])
    assert (other.refresh().status_code, use(sso.client, key).status_code) == (200, 200)


@pytest.mark.parametrize("settings", [{"AUTH_SSO": "false"}, {"AUTH_ORGANIZATIONS": "off"}])
def test_settings_refuse_new_sign_ins_only(sso, acme, make_app, settings):
    session = sso.signed_in(acme.identifier)
    client = make_app(**{"AUTH_SSO": "true", "AUTH_API_KEYS": "true"} | settings).test_client()
    assert session.on(client).refresh().status_code == 200


class TestBetweenTheActAndTheEndOfEachUser:
    """The end of a user waits for the lock of another request, while the provider is off already."""

    @pytest.fixture
    def turn_off(self, sso, acme, opened, database):
        """Turn the provider off while Alice is locked, call something meanwhile, and return its answer."""

        def turn_off(call):
            with database.locked("users", opened.user_id) as lock:
                change = lock.start(lambda: sso.change(acme, enabled=False).status_code)
                answer = call(lock)
            assert change.result() == 200
            return answer

        return turn_off

    def test_code_of_the_provider_opens_nothing(self, turn_off, opened, database):
        answer = turn_off(lambda lock: lock.start(lambda: opened.exchange(opened.code)))
        assert_error(answer.result(), 404, "flow_state_not_found")
        assert database.count("sessions", LIVE) == 0

    def test_session_adds_no_key(self, turn_off, opened, database):
        answer = turn_off(lambda lock: opened.session.post("/user/api_keys", json={"name": "x"}))
        assert_error(answer, 401, "session_not_found")
        assert database.count("api_keys") == 0

    def test_key_that_waited_before_it_is_not_added(self, sso, acme, opened, database):
        with database.locked("users", opened.user_id) as lock:
            key = lock.start(lambda: opened.session.post("/user/api_keys", json={"name": "x"}))
            change = lock.start(lambda: sso.change(acme, enabled=False).status_code)
        assert change.result() == 200
        assert_error(key.result(), 401, "session_not_found")
        assert database.count("api_keys") == 0

    def test_refresh_gives_no_token(self, turn_off, opened):
        assert_error(turn_off(lambda lock: opened.session.refresh()), 400, "refresh_token_not_found")


@pytest.mark.parametrize("is_first", [True, False])
def test_exchange_of_a_code_and_turning_off_in_either_order_leave_no_session(
    sso, acme, database, opened, is_first
):
    code, results = opened.new_code(), {}
    with database.locked("users", opened.user_id) as lock:
        # Both wait for Alice, the first one before the other.
        acts = {
            "exchange": lambda: opened.exchange(code).status_code,
            "off": lambda: sso.change(acme, enabled=False).status_code,
        }
        for name in sorted(acts, reverse=not is_first):
            results[name] = lock.start(acts[name])
    assert (results["exchange"].result() in (200, 404), results["off"].result()) == (True, 200)
    assert database.count("sessions", LIVE) == 0


def test_codes_that_are_exchanged_while_the_provider_is_turned_off_leave_no_session(
    sso, acme, database, opened
):
    codes = [opened.new_code() for _ in range(8)]

    def act(number: int) -> int:
        return (
            sso.change(acme, enabled=False).status_code
            if number == 4
            else opened.exchange(codes[number]).status_code
        )

    # 503 if the provider is turned off between the look at the code and its use.
    assert set(at_once(8, act)) <= {200, 404, 503}
    sessions = database.all(f"SELECT id FROM sessions WHERE {LIVE}")
    janitor.keep_house(sso.parts.settings, sso.parts.db, sso.parts.sealer)
    assert database.count("sessions", LIVE) == 0, sessions


def test_end_of_many_users_is_one_statement_for_each_batch(sso, acme, database):
    sso.signed_in(acme.identifier)

    def cost_of_turning_off() -> int:
        before = statements_run()
        sso.change(acme, enabled=False)
        return statements_run() - before

    of_one = cost_of_turning_off()
    sso.change(acme, enabled=True)
    sso.signed_in(acme.identifier)
    database.run("""
        WITH made AS (
          INSERT INTO users (id, email, email_proved, made_by)
          SELECT gen_random_uuid(), 'user' || n || '@acme.example', true, 'oauth' FROM generate_series(1, 400) AS n
          RETURNING id)
        INSERT INTO sessions (user_id, method, amr, provider_term)
        SELECT made.id, 'oauth', s.amr, s.provider_term FROM made CROSS JOIN sessions AS s WHERE s.ended_at IS NULL
    """)
    # Two batches of 200, and the last user.
    assert cost_of_turning_off() == of_one + 2
    assert database.count("sessions", LIVE) == 0
