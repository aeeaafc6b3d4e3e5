"""Nodes of 0.7.x write no terms and read only `ended_at`. The triggers fill the terms of what they write, and refuse
what is over.
"""

import json
import uuid
from urllib.parse import parse_qs, urlencode, urlsplit

import psycopg2
import pytest

from tests.extensions.sso.test_provider_terms import ALICE, CUT_OFF, REFUSED, Opened
from tests.support.api_keys import insert_key, make_key, use
from tests.support.commands import run_command
from tests.support.links import CHALLENGE
from tests.support.oauth import APPLICATION
from tests.support.users import Person, register

OVER = "the provider that opened this was turned off"
TERM = "SELECT term FROM identity_providers WHERE identifier = 'custom:acme-idp'"


class OldNode:
    """What a node of 0.7.x writes for Alice."""

    def __init__(self, database, user_id, provider):
        self._database, self._user_id, self._provider = database, user_id, provider

    def session(self, provider=None, opened_by=None):
        amr = [{"method": "oauth", "provider": provider}] if provider else [{"method": "password"}]
        values = {"user": self._user_id, "amr": json.dumps(amr), "opener": opened_by}
        return self._database.value(
            "INSERT INTO sessions (user_id, method, amr, opened_by) VALUES (%(user)s, 'oauth', %(amr)s, %(opener)s)"
            " RETURNING provider_term",
            **values,
        )

    def code(self, provider):
        return self._database.value(
            "INSERT INTO authorization_codes (user_id, code_hash, code_challenge, method, expires_at, provider)"
            " VALUES (%(user)s, %(hash)s, '', 'oauth', now(), %(provider)s) RETURNING provider_term",
            hash=uuid.uuid4().bytes,
            user=self._user_id,
            provider=provider,
        )

    def key(self):
        insert_key(self._database, self._user_id)
        return self._database.value("SELECT provider_term FROM api_keys ORDER BY created_at DESC LIMIT 1")


@pytest.fixture
def session(sso, acme):
    return sso.signed_in(acme.identifier)


@pytest.fixture
def user_id(session):
    return session.get("/user").json["id"]


@pytest.fixture
def old(session, user_id, acme, database):
    return OldNode(database, user_id, f"sso:{acme.id}")


def test_what_they_write_gets_the_term_of_its_provider(old, acme, session, database):
    term, name = database.value(TERM), f"sso:{acme.id}"
    assert [old.session(name), old.session(opened_by=session.id), old.code(name), old.key()] == [term] * 4
    assert [old.session(), old.session("google"), old.code("google")] == [None] * 3


def test_key_of_a_user_without_the_provider_gets_no_term(old, user_id, database):
    database.run("DELETE FROM identities WHERE provider LIKE 'sso:%%'")
    assert old.key() is None


def test_key_has_the_term_of_the_identity_that_came_last(old, sso, globex, user_id, database):
    database.run(
        "INSERT INTO identities (user_id, provider, subject, identity_data, created_at)"
        " VALUES (%(id)s, %(provider)s, '2', '{}', now() + interval '1 hour')",
        id=user_id,
        provider=f"sso:{globex.id}",
    )
    assert old.key() == database.value("SELECT term FROM identity_providers WHERE id = %(id)s", id=globex.id)


@pytest.mark.parametrize("way", CUT_OFF)
@pytest.mark.parametrize("act", ["session", "opened", "refresh", "count", "code", "key", "key's token"])
def test_what_is_over_opens_and_writes_nothing(old, acme, session, user_id, sso, database, way, act):
    make_key(session)
    old.code(f"sso:{acme.id}")
    database.run(CUT_OFF[way])
    acts = {
        "session": lambda: old.session(f"sso:{acme.id}"),
        "opened": lambda: old.session(opened_by=session.id),
        "refresh": lambda: database.run("UPDATE sessions SET counter = counter + 1, refreshed_at = now()"),
        "count": lambda: database.run("UPDATE sessions SET refreshes = refreshes + 1"),
        "code": lambda: database.run("UPDATE authorization_codes SET session_id = gen_random_uuid()"),
        "key": old.key,
        "key's token": lambda: database.run("UPDATE api_keys SET refreshes = refreshes + 1"),
    }
    if act == "session" and way != "deleted":
        # A provider that is on again, or that the node found on, opens it in the present term.
        assert acts[act]() == database.value(TERM)
        return
    with pytest.raises(psycopg2.OperationalError, match=OVER):
        acts[act]()


def test_sessions_and_keys_without_a_term_go_on(old, user_id, session, sso, database):
    own = Person(sso.client, user_id, ALICE).open_session()
    make_key(own)
    database.run(CUT_OFF["deleted"])
    only = "WHERE provider_term IS NULL"
    for statement in (
        f"UPDATE sessions SET counter = counter + 1, refreshed_at = now() {only}",
        f"UPDATE api_keys SET refreshes = refreshes + 1 {only}",
    ):
        database.run(statement)


class TestWithoutTheTriggers:
    """In 0.9.0 the triggers go: this release writes and checks the terms itself."""

    @pytest.fixture(autouse=True)
    def _no_triggers(self, database):
        tables = ("sessions", "authorization_codes", "api_keys")
        for table in tables:
            database.run(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        yield
        for table in tables:
            database.run(f"ALTER TABLE {table} ENABLE TRIGGER USER")

    @pytest.mark.parametrize("way", CUT_OFF)
    def test_what_a_provider_opened_gives_no_token(self, sso, acme, database, way):
        opened = Opened(sso, acme, database)
        terms = {term for (term,) in database.all("SELECT provider_term FROM sessions")}
        assert terms == {database.value(TERM)}
        database.run(CUT_OFF[way])
        assert opened.statuses() == REFUSED

    def test_session_by_a_code_has_the_term_of_the_code(self, sso, acme, database):
        opened = Opened(sso, acme, database)
        assert opened.exchange(opened.code).status_code == 200
        database.run(CUT_OFF["off and on"])
        assert database.count("sessions AS s", "end_of(s) IS NULL") == 0

    @pytest.mark.parametrize("with_code", [False, True])
    def test_session_that_our_pages_open_for_a_site_has_the_term_of_the_browsers(
        self, sso, acme, database, with_code
    ):
        opened = Opened(sso, acme, database)
        query = {"redirect_to": APPLICATION} | ({"code_challenge": CHALLENGE} if with_code else {})
        opened.visitor.visit(f"/sign-in?{urlencode(query)}")
        if "sign-in/continue" in opened.visitor.page.text:
            opened.visitor.press("sign-in/continue")
        url = opened.visitor.page.url
        assert url.startswith(APPLICATION), url
        if with_code:
            assert opened.exchange(parse_qs(urlsplit(url).query)["code"][0]).status_code == 200
        of_sites = "opened_by IS NOT NULL AND grant_id IS NULL"
        assert database.value(f"SELECT provider_term FROM sessions WHERE {of_sites}") == database.value(TERM)


@pytest.mark.parametrize("what", ["key", "code"])
def test_key_or_code_that_is_all_there_is_ends_too(sso, acme, session, database, what):
    if what == "key":
        make_key(session)
    else:
        page = sso.sign_in(acme.identifier, code_challenge=CHALLENGE, code_challenge_method="s256")
        assert "code=" in page.url
    assert session.post("/logout").status_code == 200
    assert sso.change(acme, enabled=False).status_code == 200
    assert database.count("api_keys") == database.count("authorization_codes") == 0


def test_import_ties_keys_to_the_identity(sso, session, user_id, database, tmp_path):
    """The file does not say which session made a key."""
    own = Person(sso.client, user_id, ALICE).open_session()
    keys = make_key(session)[1], make_key(own)[1]
    file = str(tmp_path / "users.jsonl")
    assert run_command(sso.app, "users", "export", file, "--plaintext").exit_code == 0
    database.run("DELETE FROM users WHERE role <> 'admin'")
    assert run_command(sso.app, "users", "import", file, "--trust-addresses").exit_code == 0
    assert [use(sso.client, key).status_code for key in keys] == [200, 200]
    database.run(CUT_OFF["off"])
    assert [use(sso.client, key).status_code for key in keys] == [401, 401]


def test_identity_that_is_removed_takes_the_keys_that_its_provider_opened(sso, acme, service_role):
    person = register(sso.client, service_role, ALICE)
    assert run_command(sso.app, "providers", "adopt", acme.identifier, ALICE).exit_code == 0
    session, own = sso.signed_in(acme.identifier), person.open_session()
    key, own_key = make_key(session)[1], make_key(own)[1]
    path = f"/admin/users/{person.id}"
    recent = sso.client.get(f"{path}/recent_changes", headers=service_role).json["recent_changes"]
    (id,) = (each["id"] for each in recent if each["type"] == "identity")
    answer = sso.client.put(path, json={"remove": [id]}, headers=service_role)
    assert answer.status_code == 200, answer.text
    assert [use(sso.client, each).status_code for each in (key, own_key)] == [401, 200]
