"""What a session of a customer's provider has begun elsewhere is over with it: a change of the address, and what an
export or a dump carries on.
"""

import json

import pytest

from tests.extensions.sso.test_provider_terms import ALICE, CUT_OFF
from tests.support.answers import assert_error
from tests.support.api_keys import make_key, token_of, use
from tests.support.commands import run_command
from tests.support.links import hand_in, type_in
from tests.support.users import Person

PRIVATE = "alice@private.example"
IS_PRIVATE = f"email = '{PRIVATE}'"


@pytest.fixture
def session(sso, acme, database):
    """A session of Alice's that Acme's provider has opened, with a proof."""
    session = sso.signed_in(acme.identifier)
    database.run("UPDATE sessions SET reauthenticated_at = now()")
    return session


@pytest.fixture
def asked(session, outbox):
    """The message for the address that Alice asked for in it."""
    assert session.put("/user", json={"email": PRIVATE}).status_code == 200
    return outbox.last(PRIVATE)


class TestAddressThatWasAskedForInIt:
    @pytest.mark.parametrize("way", CUT_OFF)
    def test_is_not_taken_by_code_nor_by_link_although_the_end_has_not_come(self, sso, asked, database, way):
        database.run(CUT_OFF[way])
        answers = [
            type_in(sso.client, "email_change", PRIVATE, asked.code),
            hand_in(sso.client, "email_change", asked.token),
        ]
        for answer in answers:
            assert_error(answer, 403, "otp_expired")
        assert database.count("users", IS_PRIVATE) == 0

    def test_is_taken_while_the_provider_is_on(self, sso, asked, database):
        assert type_in(sso.client, "email_change", PRIVATE, asked.code).status_code == 200
        assert database.count("users", IS_PRIVATE) == 1

    @pytest.mark.parametrize("is_signed_out", [False, True])
    def test_is_withdrawn_by_turning_off_and_cannot_be_sent_again(
        self, sso, acme, session, asked, database, outbox, is_signed_out
    ):
        if is_signed_out:
            assert session.post("/logout").status_code == 200
        assert sso.change(acme, enabled=False).status_code == 200
        assert sso.change(acme, enabled=True).status_code == 200
        sent = len(outbox.sent(PRIVATE))
        body = {"type": "email_change", "email": PRIVATE}
        assert sso.client.post("/resend", json=body).status_code == 200
        assert len(outbox.sent(PRIVATE)) == sent
        assert database.count("users", f"new_{IS_PRIVATE} OR NOT email_change_sent_at IS NULL") == 0
        assert_error(type_in(sso.client, "email_change", PRIVATE, asked.code), 403, "otp_expired")

    def test_stays_if_a_session_by_password_asked(self, sso, acme, session, database, outbox):
        user_id = session.get("/user").json["id"]
        own = Person(sso.client, user_id, ALICE).open_session()
        database.run("UPDATE sessions SET reauthenticated_at = now()")
        assert own.put("/user", json={"email": PRIVATE}).status_code == 200
        assert sso.change(acme, enabled=False).status_code == 200
        answer = type_in(sso.client, "email_change", PRIVATE, outbox.last(PRIVATE).code)
        assert (answer.status_code, database.count("users", IS_PRIVATE)) == (200, 1)


def test_key_that_is_over_does_not_come_back_by_an_export(sso, session, database, tmp_path):
    """The janitor has not come yet."""
    own = Person(sso.client, session.get("/user").json["id"], ALICE).open_session()
    key, own_key = make_key(session)[1], make_key(own)[1]
    database.run(CUT_OFF["off and on"])
    path = str(tmp_path / "users.jsonl")
    assert run_command(sso.app, "users", "export", path, "--plaintext").exit_code == 0
    database.run("DELETE FROM users WHERE role <> 'admin'")
    result = run_command(sso.app, "users", "import", path, "--trust-addresses")
    assert result.exit_code == 0, result.output
    assert (use(sso.client, key).status_code, use(sso.client, own_key).status_code) == (401, 200)


@pytest.mark.parametrize("is_deleted", [False, True])
def test_ended_session_from_before_terms_is_restored_from_a_dump_of_the_data(
    sso, acme, session, database, is_deleted
):
    """A session that had ended before the upgrade has no term, and COPY calls the triggers for nodes of 0.7.x."""
    sso.change(acme, enabled=False)
    database.run("UPDATE sessions SET provider_term = NULL")
    rows = json.dumps(database.value("SELECT jsonb_agg(to_jsonb(s)) FROM sessions AS s"))
    if is_deleted:
        sso.delete(acme)
    database.run("DELETE FROM sessions")
    database.run(
        "INSERT INTO sessions SELECT * FROM jsonb_populate_recordset(NULL::sessions, %(rows)s)", rows=rows
    )
    assert database.count("sessions", "NOT ended_at IS NULL") == 1


def test_each_way_to_ask_about_it_says_that_it_is_over(sso, session, service_role, database):
    """Other statements than those that give tokens: lists, introspection, and a key's access token."""
    key = make_key(session)[1]
    token = token_of(sso.client, key)
    own = Person(sso.client, session.get("/user").json["id"], ALICE).open_session()
    paths = ("/user", "/sessions", "/user/api_keys", "/user/oauth/grants", "/user/recent_changes")

    def introspected(text):
        answer = sso.client.post("/introspect", json={"token": text}, headers=service_role)
        assert answer.status_code == 200, answer.text
        return answer.json["active"]

    def seen():
        return {
            "active": [introspected(text) for text in (session.access_token, key, token)],
            "statuses": {session.get(path).status_code for path in paths},
            "key": sso.client.get("/user", headers={"Authorization": f"Bearer {token}"}).status_code,
            "sessions": len(own.get("/sessions").json["data"]),
        }

    assert seen() == {"active": [True] * 3, "statuses": {200}, "key": 200, "sessions": 2}
    database.run(CUT_OFF["off and on"])
    assert seen() == {"active": [False] * 3, "statuses": {401}, "key": 401, "sessions": 1}


def test_session_that_is_over_takes_the_place_of_no_other(sso, session, acme, database, make_app):
    """A user has two sessions; the provider's is newer than the one by password."""
    person = Person(sso.client, session.get("/user").json["id"], ALICE)
    own = person.open_session()
    database.run("UPDATE sessions SET created_at = now() - interval '1 day' WHERE provider_term IS NULL")
    database.run(CUT_OFF["off"])
    client = make_app(AUTH_SSO="true", AUTH_SESSIONS_PER_USER="2").test_client()
    other = person.open_session(client)
    assert [each.refresh().status_code for each in (own, other)] == [200, 200]


def test_move_to_another_subject_ends_what_the_former_one_opened(sso, acme, session, database):
    """The company gave the address to somebody else."""
    own = Person(sso.client, session.get("/user").json["id"], ALICE).open_session()
    keys = make_key(session)[1], make_key(own)[1]
    acme.be("2", ALICE)
    assert run_command(sso.app, "providers", "adopt", acme.identifier, ALICE).exit_code == 0
    new = sso.signed_in(acme.identifier)
    assert [each.refresh().status_code for each in (session, own, new)] == [400, 200, 200]
    assert [use(sso.client, key).status_code for key in keys] == [401, 200]
