"""Mallory against a second factor: with a password, a stolen session, a lost mailbox, or a copy of the database."""

import html
import json
import re

import pytest

from tests.support import factors
from tests.support.answers import A_TIMESTAMP, LOW, assert_error
from tests.support.authenticator import ES256, Key, encode
from tests.support.factors import enrol, has_no_mail_proof, prove_mail_elsewhere, raised, set_up
from tests.support.links import OTHER_PHONE, follow, hand_in, press, type_in
from tests.support.passkeys import register, sign_in
from tests.support.server import at_once
from tests.support.users import NEW_PASSWORD, PASSWORD, Person, session_of


def age_factors(database):
    database.run("UPDATE factors SET verified_at = now() - interval '8 days', last_step = NULL")


def recover(client, alice, outbox):
    client.post("/recover", json={"email": alice.email})
    response = hand_in(client, "recovery", outbox.last(alice.email, "recovery").token)
    return session_of(client, response), response.json["recent_changes"]


def change_email(client, session, outbox):
    assert session.put("/user", json={"email": "new@example.com"}).status_code == 200
    follow(client, "email_change", outbox.last("new@example.com").token)


def answer(client, token, authenticator, **changes):
    """Return the fields of the page that asks for a factor, which answer its challenge."""
    page = press(client, "undo", token).text
    (options,) = re.findall('data-options="([^"]*)"', page)
    (challenge_id,) = re.findall('name="challenge_id" value="([^"]*)"', page)
    credential = authenticator.get(json.loads(html.unescape(options)), authenticator.passkeys[0], **changes)
    return {"challenge_id": challenge_id, "credential": json.dumps(credential)}


class TestRecoveryByMail:
    def test_mailbox_alone_changes_nothing_that_a_factor_protects(self, client, alice, outbox, database):
        app, _session = set_up(alice.open_session())
        age_factors(database)
        thief, recent = recover(client, alice, outbox)
        assert recent == []
        changes = [{"password": NEW_PASSWORD}, {"email": "m@evil.example"}, {"phone": OTHER_PHONE}]
        for response in (
            *(thief.put("/user", json=body) for body in [*changes, {"remove": [app.id]}]),
            thief.delete("/user"),
            thief.remove_identity("email"),
            thief.delete(f"/factors/{app.id}"),
            thief.post("/logout?scope=others"),
        ):
            assert_error(response, *LOW)
        assert alice.try_to_sign_in().status_code == 200

    def test_owner_removes_a_factor_that_a_thief_has_just_added(self, client, alice, outbox):
        app, thief = set_up(alice.open_session(), "Mallory's")
        owner, recent = recover(client, alice, outbox)
        assert recent == [{"id": app.id, "type": "totp", "added_at": A_TIMESTAMP, "label": "Mallory's"}]
        assert_error(owner.put("/user", json={"password": NEW_PASSWORD}), *LOW)
        assert owner.put("/user", json={"remove": [app.id]}).status_code == 200
        assert_error(thief.get("/user"), 401, "session_not_found")
        # The token says that a step is missing; the next one does not.
        assert_error(owner.put("/user", json={"password": NEW_PASSWORD}), *LOW)
        assert owner.refreshed().put("/user", json={"password": NEW_PASSWORD}).status_code == 200
        assert "factors" not in owner.get("/user").json


class TestLinkOfANotice:
    @pytest.fixture
    def email_change(self, client, alice, outbox, database):
        """Alice has changed her email at `aal2`, and Mallory has the old mailbox: her app, and the token of the notice."""
        app, session = set_up(alice.open_session())
        age_factors(database)
        change_email(client, session, outbox)
        return app, outbox.last(alice.email, "email_changed").token

    def test_lost_mailbox_does_not_beat_the_factor(self, client, alice, email_change, database):
        app, token = email_change
        page = client.get(f"/verify?type=undo&token={token}", headers={"Accept": "text/html"})
        assert "had for more than seven days" in page.text
        for code in ("", app.wrong_code(), "00000-00000"):
            response = press(client, "undo", token, factor_code=code)
            assert (response.status_code, 'name="factor_code"' in response.text) == (403, True)
        # The page without a code is no attempt.
        assert (
            database.value("SELECT max(count) FROM failure_counts WHERE starts_with(key, 'recovery ')") == 1
        )
        follow(client, "undo", token)
        assert database.value("SELECT email FROM users") == "new@example.com"
        # The owner has it.
        assert press(client, "undo", token, factor_code=app.code()).status_code == 303
        assert database.value("SELECT email FROM users") == alice.email
        assert database.count("factors") == 1

    def test_link_asks_for_a_factor_that_is_old_when_its_turn_comes(
        self, app, client, alice, outbox, database
    ):
        """The request waits for the user's row, and decides about the factors that it finds then."""
        _app, session = set_up(alice.open_session())
        change_email(client, session, outbox)
        token = outbox.last(alice.email, "email_changed").token
        statement = (
            "WITH owner AS (SELECT id FROM users WHERE id = %s FOR UPDATE)"
            "UPDATE factors SET verified_at = now() - interval '8 days' FROM owner WHERE user_id = owner.id"
        )
        with database.locked("users", alice.id, statement) as lock:
            future = lock.start(lambda: press(app.test_client(), "undo", token))
        assert (future.result().status_code, 'name="factor_code"' in future.result().text) == (403, True)
        assert database.value("SELECT email FROM users") == "new@example.com"

    def test_networks_lose_the_tries_of_links_to_either_address(self, client, alice, outbox, database):
        app, session = set_up(alice.open_session())
        age_factors(database)
        prove_mail_elsewhere(database)
        change_email(client, session, outbox)
        assert has_no_mail_proof(database)
        prove_mail_elsewhere(database)
        token = outbox.last(alice.email, "email_changed").token
        assert press(client, "undo", token, factor_code=app.code()).status_code == 303
        assert has_no_mail_proof(database)

    def test_younger_factor_and_guesses_do_not_count(self, client, alice, email_change, database):
        old_app, token = email_change
        session = Person(client, alice.id, "new@example.com").sign_in()
        young_app, _session = set_up(raised(session, old_app, 1))
        database.run("UPDATE factors SET last_step = NULL")
        assert press(client, "undo", token, factor_code=young_app.code()).status_code == 403
        # Guesses count with those of sessions.
        for _ in range(20):
            assert press(client, "undo", token, factor_code=old_app.wrong_code()).status_code == 403
        assert press(client, "undo", token, factor_code=old_app.code()).status_code == 403
        assert database.value("SELECT email FROM users") == "new@example.com"

    @pytest.mark.parametrize("kind", ["factor_removed", "passkey_added"])
    def test_every_link_asks_for_an_old_factor_that_was_removed_since_and_brings_it_back(
        self, client, alice, outbox, database, kind
    ):
        app, session = set_up(alice.open_session(), "Phone")
        age_factors(database)
        register(session)
        assert session.delete(f"/factors/{app.id}").status_code == 200
        token = outbox.last(alice.email, kind).token
        assert press(client, "undo", token).status_code == 403
        assert press(client, "undo", token, factor_code=app.wrong_code()).status_code == 403
        assert press(client, "undo", token, factor_code=app.code()).status_code == 303
        assert database.value("SELECT friendly_name FROM factors WHERE factor_type = 'totp'") == "Phone"
        assert database.count("factors") == 1
        assert database.count("one_time_tokens", "restores IS NOT NULL") == 0

    def test_notice_of_a_factor_that_an_administrator_removed_takes_the_account_back(
        self, client, alice, outbox, database, service_role
    ):
        """The notice does not ask for the factor, although that was old enough."""
        app, session = set_up(alice.open_session())
        age_factors(database)
        url = f"/admin/users/{alice.id}/factors/{app.id}"
        assert client.delete(url, headers=service_role).status_code == 200
        token = outbox.last(alice.email, "factor_removed").token
        assert press(client, "undo", token).status_code == 303
        assert_error(session.get("/user"), 401, "session_not_found")

    def test_young_recovery_codes_go_and_old_ones_are_a_factor(self, client, alice, outbox, database):
        _app, session = set_up(alice.open_session())
        codes = session.post("/factors/recovery-codes").json["codes"]
        change_email(client, session, outbox)
        age_factors(database)
        token = outbox.last(alice.email, "email_changed").token
        assert press(client, "undo", token, factor_code=codes[0]).status_code == 403
        database.run("UPDATE recovery_codes SET created_at = now() - interval '8 days' WHERE used_at IS NULL")
        database.run("INSERT INTO recovery_codes (user_id, code_mac) SELECT id, 'young' FROM users")
        assert press(client, "undo", token, factor_code=codes[1]).status_code == 303
        assert database.count("recovery_codes", "code_mac = 'young'") == 0
        assert database.count("recovery_codes", "used_at IS NULL") == 9

    def test_passkey_or_security_key_answers_in_place_of_a_code(self, client, alice, outbox, database):
        passkey, _row = register(alice.open_session())
        age_factors(database)
        session = sign_in(client, passkey)
        change_email(client, session, outbox)
        token = outbox.last(alice.email, "email_changed").token
        young_passkey, _row = register(session)
        for changes in ({"key": Key(ES256)}, {"counter": 1}, {"challenge": encode(bytes(64))}):
            assert (
                press(client, "undo", token, **answer(client, token, passkey, **changes)).status_code == 403
            )
        assert press(client, "undo", token, **answer(client, token, young_passkey)).status_code == 403
        assert press(client, "undo", token, challenge_id="x", credential="").status_code == 403
        statement = "UPDATE factors SET factor_type = 'webauthn' WHERE credential_id = %(id)s"
        database.run(statement, id=passkey.passkeys[0].id)
        fields = answer(client, token, passkey, is_verified=False)
        assert press(client, "undo", token, **fields).status_code == 303
        assert database.value("SELECT email FROM users") == alice.email

    def test_removed_passkey_answers_with_its_own_assertion(self, client, alice, outbox, database):
        passkey, row = register(alice.open_session())
        age_factors(database)
        assert sign_in(client, passkey).delete(f"/passkeys/{row['id']}", json={}).status_code in (200, 204)
        token = outbox.last(alice.email, "passkey_removed").token
        fields = answer(client, token, passkey, counter=1)
        assert press(client, "undo", token, **fields).status_code == 403
        fields = answer(client, token, passkey)
        assert press(client, "undo", token, **fields).status_code == 303
        assert sign_in(client, passkey).user["id"] == alice.id


@pytest.mark.parametrize("add", [set_up, register])
@pytest.mark.parametrize("change", [{"email": "m@evil.example"}, {"phone": OTHER_PHONE}], ids=str)
def test_pending_change_of_a_thief_ends_with_the_first_factor(client, alice, outbox, database, add, change):
    ((kind, address),) = change.items()
    stolen = alice.open_session()
    assert stolen.put("/user", json=change).status_code == 200
    add(alice.open_session())
    code = outbox.last(address, f"{kind}_change").code
    assert_error(type_in(client, f"{kind}_change", address, code), 403, "otp_expired")
    row = database.one("SELECT email, phone, new_email, new_phone FROM users")
    assert row == (alice.email, None, None, None)


def test_all_users_need_a_factor_if_the_setting_requires_it(make_app, alice):
    session = alice.sign_in().on(make_app(AUTH_MFA_REQUIRED="all").test_client())
    for response in (session.put("/user", json={"data": {}}), session.get("/sessions")):
        assert_error(response, *LOW)
    assert session.get("/user").status_code == session.get("/user/recent_changes").status_code == 200
    _app, high = set_up(session)
    assert high.put("/user", json={"data": {}}).status_code == 200


def test_copy_of_the_database_holds_no_usable_secret_or_code(alice, database):
    app, session = set_up(alice.open_session())
    codes = session.post("/factors/recovery-codes").json["codes"]
    names = database.all("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
    dump = "".join(
        str(database.all(f"SELECT t::text AS row FROM {table.name} AS t")) for table in names
    ).lower()
    secrets = [app.secret, *codes, *(code.replace("-", "") for code in codes)]
    assert [secret for secret in secrets if secret.lower() in dump] == []
    assert [secret for secret in secrets if secret.lower().encode().hex() in dump] == []


class TestBelowTheSecondStep:
    """Only a recovery that was mailed to the owner removes a new factor without it."""

    @pytest.fixture
    def factor(self, alice):
        return set_up(alice.open_session())[0]

    def removals(self, session, app):
        return session.put("/user", json={"remove": [app.id]}), session.delete(f"/factors/{app.id}")

    def test_token_from_before_the_verification_removes_nothing(self, alice, database):
        stolen = alice.open_session()
        app, session = set_up(stolen)
        assert session.id == stolen.id
        identity_id = database.value("SELECT id FROM identities")
        for response in (
            *self.removals(stolen, app),
            stolen.put("/user", json={"password": NEW_PASSWORD}),
            stolen.delete(f"/user/identities/{identity_id}"),
            stolen.delete("/user"),
        ):
            assert_error(response, *LOW)
        assert database.count("factors", "verified_at IS NOT NULL") == 1

    def test_fifty_removals_gain_nothing_from_the_first_verification(self, app_threads, alice, database):
        stolen = alice.open_session()
        app = enrol(stolen)
        challenge_id = factors.challenge(stolen, app)

        def race(number):
            if number == 0:
                return factors.verify(app_threads(stolen), app, app.code(), challenge_id).status_code
            return app_threads(stolen).put("/user", json={"remove": [app.id]}).status_code

        first, *others = at_once(50, race)
        assert first == 200
        # 400 before the verification, when nothing was added.
        assert set(others) <= {400, 403}
        assert database.count("factors", "verified_at IS NOT NULL") == 1

    @pytest.fixture
    def app_threads(self, client):
        return lambda session: session.on(client.application.test_client())

    def test_recovery_still_takes_back_after_a_later_proof_and_a_refresh(self, client, alice, outbox, factor):
        owner, _recent = recover(client, alice, outbox)
        assert [each["method"] for each in owner.claims["amr"]] == ["recovery"]
        assert owner.post("/reauthenticate", json={"current_password": PASSWORD}).status_code == 200
        assert owner.refreshed().delete(f"/factors/{factor.id}").status_code == 200
