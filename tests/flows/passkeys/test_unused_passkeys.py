"""Passkeys that a browser made by itself, before and after their first use (rule 51), and attacks on them."""

import pytest

from auth.core import constants
from auth.delivery import janitor
from auth.flows.passkeys.assertions import accepted_ids
from tests.support.answers import A_TIMESTAMP, A_UUID, ANYTHING, LOW, NEEDED, assert_error, assert_ok
from tests.support.audit import timeline_texts
from tests.support.authenticator import Authenticator, encode
from tests.support.cases import cases
from tests.support.commands import run_command
from tests.support.factors import set_up
from tests.support.links import hand_in, press
from tests.support.passkeys import (
    assertion,
    begin_unasked,
    make_unasked,
    register,
    sign_in,
    sign_in_response,
)
from tests.support.server import at_once
from tests.support.users import NEW_PASSWORD, session_of, sign_up_anonymously
from tests.support.users import register as register_person

FAILED = (400, "webauthn_verification_failed")
UNKNOWN = (400, "webauthn_challenge_not_found")
OPTIONS, VERIFY = "/passkeys/registration/options", "/passkeys/registration/verify"
SIGN_IN = "/passkeys/authentication/verify"


@pytest.fixture
def unused(laptop):
    """The authenticator with a passkey of Alice that was not used yet."""
    return make_unasked(laptop)[0]


def age(database, days):
    """Let days go by for what the user has."""
    for table, columns in (
        ("factors", ("created_at", "verified_at")),
        ("one_time_tokens", ("created_at", "expires_at")),
    ):
        moved = ", ".join(f"{column} = {column} - %(days)s * interval '1 day'" for column in columns)
        database.run(f"UPDATE {table} SET {moved}", days=days)


def levels(database):
    rows = database.all("SELECT aal FROM sessions WHERE ended_at IS NULL ORDER BY created_at")
    return [row.aal for row in rows]


class TestMaking:
    def test_options_say_that_the_browser_may_make_it_unasked(self, laptop):
        begun = begin_unasked(laptop)
        assert begun["unasked"] is True
        selection = {"residentKey": "required", "requireResidentKey": True, "userVerification": "preferred"}
        assert begun["options"]["authenticatorSelection"] == selection
        assert "unasked" not in laptop.post(OPTIONS, json={}).json

    def test_passkey_made_without_presence_is_listed_and_unverified(self, alice, laptop, outbox, database):
        phone = alice.open_session()
        _, passkey = make_unasked(laptop)
        named = {"friendly_name": "Passkey", "status": "unverified"}
        assert passkey == {"id": A_UUID, **named, "created_at": A_TIMESTAMP}
        assert laptop.get("/passkeys").json == [passkey]
        assert phone.get("/user").status_code == 200
        assert levels(database) == ["aal1", "aal1"]
        assert database.count("users", "first_factor_at IS NOT NULL") == 0
        notice = outbox.last(alice.email, "passkey_added")
        assert (notice.variables["how"], bool(notice.token)) == ("by_browser", True)

    def test_the_same_answer_to_other_options_is_refused(self, laptop, database):
        """A client that said itself how it made the passkey could switch the check of presence off."""
        for claim in ({}, {"mediation": "conditional"}, {"unasked": True}):
            begun = laptop.post(OPTIONS, json={}).json
            credential = Authenticator().create(begun["options"], is_present=False, is_verified=False)
            body = {"challenge_id": begun["challenge_id"], "credential": credential}
            assert_error(laptop.post(VERIFY, json=body | claim), *FAILED, details=ANYTHING)
        assert database.count("factors") == 0

    def test_user_who_agreed_still_makes_one_that_is_unverified(self, laptop):
        begun, authenticator = begin_unasked(laptop), Authenticator()
        body = {
            "challenge_id": begun["challenge_id"],
            "credential": authenticator.create(begun["options"]),
        }
        assert laptop.post(VERIFY, json=body).json["status"] == "unverified"

    def test_challenge_is_of_one_session_and_for_one_use(self, client, alice, mallory, laptop):
        begun, authenticator = begin_unasked(laptop), Authenticator()
        credential = authenticator.create(begun["options"], is_present=False, is_verified=False)
        body = {"challenge_id": begun["challenge_id"], "credential": credential}
        for session in (mallory.open_session(), alice.open_session()):
            assert_error(session.post(VERIFY, json=body), *UNKNOWN)
        assert_error(client.post("/passkeys/authentication/verify", json=body), *UNKNOWN)
        assert laptop.post(VERIFY, json=body).status_code == 200
        assert_error(laptop.post(VERIFY, json=body), *UNKNOWN)

    def test_session_keeps_five_challenges(self, laptop, database):
        for _ in range(7):
            begin_unasked(laptop)
        assert database.count("factor_challenges", "purpose = 'passkey_upgrade'") == 5

    def test_it_needs_a_proof_of_the_last_15_minutes(self, laptop, database):
        """For whoever has a copied cookie or token."""
        begun = begin_unasked(laptop)
        database.run("UPDATE sessions SET created_at = created_at - interval '901 seconds'")
        assert_error(laptop.post(OPTIONS, json={"mediation": "conditional"}), *NEEDED, details=ANYTHING)
        authenticator = Authenticator()
        database.run("UPDATE sessions SET ended_at = now(), end_reason = 'logout'")
        credential = authenticator.create(begun["options"], is_present=False, is_verified=False)
        body = {"challenge_id": begun["challenge_id"], "credential": credential}
        assert_error(laptop.post(VERIFY, json=body), 401, "session_not_found")
        assert database.count("factors") == 0

    def test_user_with_a_factor_needs_it(self, alice, laptop, database):
        _, raised = set_up(laptop)
        assert_error(alice.open_session().post(OPTIONS, json={"mediation": "conditional"}), *LOW)
        make_unasked(raised)
        assert database.count("factors", "verified_at IS NULL") == 1

    def test_administrator_needs_a_mailed_code(self, client, service_role):
        session = register_person(client, service_role, "root@example.com", role="admin").open_session()
        body = {"mediation": "conditional"}
        assert_error(session.post(OPTIONS, json=body), *NEEDED, details=ANYTHING)

    def test_anonymous_user_has_none(self, make_app):
        visitor = sign_up_anonymously(make_app(AUTH_ANONYMOUS_ENABLED="true").test_client())
        details = "mediation: an anonymous user has no other way to sign in yet"
        response = visitor.post(OPTIONS, json={"mediation": "conditional"})
        assert_error(response, 400, "validation_failed", details=details)

    @cases("mediation", ["required", "", "silent"])
    def test_other_mediation_is_refused(self, laptop, mediation):
        response = laptop.post(OPTIONS, json={"mediation": mediation})
        assert_error(response, 400, "validation_failed", details="mediation: must be one of conditional")

    def test_credential_is_of_one_user(self, unused, mallory):
        session = mallory.open_session()
        begun = begin_unasked(session)
        options = {"is_present": False, "is_verified": False, "credential_id": unused.passkeys[0].id}
        body = {
            "challenge_id": begun["challenge_id"],
            "credential": Authenticator().create(begun["options"], **options),
        }
        assert_error(session.post(VERIFY, json=body), 409, "webauthn_credential_exists")


class TestBeforeTheFirstUse:
    def test_it_is_no_factor(self, client, alice, laptop, unused, database):
        """It raises no session, is not demanded for changes, and takes no other way in."""
        assert "factors" not in laptop.get("/user").json
        assert laptop.refreshed().claims["aal"] == "aal1"
        assert laptop.put("/user", json={"email": "new@example.com"}).status_code == 200
        assert laptop.put("/user", json={"password": NEW_PASSWORD}).status_code == 200
        assert_error(laptop.post("/factors/recovery-codes"), *LOW)
        assert alice.sign_in(NEW_PASSWORD).claims["aal"] == "aal1"

    def test_it_does_not_remain_as_a_way_to_sign_in(self, laptop, unused):
        assert_error(laptop.remove_identity("email"), 422, "single_identity_not_deletable")

    @pytest.mark.parametrize(
        "add",
        [
            lambda client, session: set_up(session),
            lambda client, session: register(session),
            lambda client, session: sign_in(client, make_unasked(session)[0]),
        ],
    )
    def test_first_factor_removes_one_that_was_made_before(
        self, client, alice, laptop, unused, service_role, database, add
    ):
        """Mallory, who knows the password alone, would sign in at `aal2` beside Alice's factor."""
        add(client, laptop)
        assert database.count("factors", "verified_at IS NULL") == 0
        details = "credential: no passkey has this id"
        assert_error(sign_in_response(client, unused), *FAILED, details=details)
        response = client.get(f"/admin/users/{alice.id}/timeline", headers=service_role)
        removed = "passkey removed: Passkey (not used before the first factor was added), from 127.0.0.1"
        assert removed in timeline_texts(response)

    def test_one_that_was_made_with_a_factor_stays_beside_further_factors(self, client, laptop, database):
        _, session = set_up(laptop)
        authenticator, _ = make_unasked(session)
        set_up(session, "Tablet")
        register(session)
        assert session.put("/user", json={"email": "new@example.com"}).status_code == 200
        assert database.count("factors", "verified_at IS NULL") == 1
        # Its first use withdraws no change that took a factor.
        signed_in = sign_in(client, authenticator)
        assert signed_in.claims["aal"] == "aal2"
        assert signed_in.user["new_email"] == "new@example.com"
        assert database.count("factors", "verified_at IS NULL") == 0

    def test_an_app_is_still_the_first_factor(self, alice, laptop, unused):
        phone = alice.open_session()
        set_up(laptop)
        assert_error(phone.get("/user"), 401, "session_not_found")

    def test_enrolments_that_are_given_up_leave_it(self, laptop, unused, database):
        for number in range(constants.MOST_UNVERIFIED_FACTORS + 2):
            laptop.post("/factors", json={"factor_type": "totp", "friendly_name": f"Phone {number}"})
        assert database.count("factors", "factor_type = 'passkey'") == 1
        assert database.count("factors", "factor_type = 'totp'") == constants.MOST_UNVERIFIED_FACTORS

    def test_its_user_renames_and_removes_it(self, laptop, unused, outbox, alice):
        (entry,) = laptop.get("/passkeys").json
        path = f"/passkeys/{entry['id']}"
        expected = entry | {"friendly_name": "Work laptop"}
        assert_ok(laptop.patch(path, json={"friendly_name": "Work laptop"}), expected)
        assert_ok(laptop.delete(path), {"id": entry["id"]})
        assert laptop.get("/passkeys").json == []
        assert outbox.kinds() == [("passkey_added", alice.email), ("passkey_removed", alice.email)]

    def test_operator_lists_and_removes_it(self, client, alice, laptop, unused, service_role):
        path = f"/admin/users/{alice.id}/passkeys"
        (entry,) = client.get(path, headers=service_role).json
        assert entry["status"] == "unverified"
        assert_ok(client.delete(f"{path}/{entry['id']}", headers=service_role), {"id": entry["id"]})
        details = "credential: no passkey has this id"
        assert_error(sign_in_response(client, unused), *FAILED, details=details)

    def test_a_user_who_becomes_an_administrator_loses_it(
        self, client, alice, unused, service_role, database
    ):
        body = {"role": "admin"}
        assert client.put(f"/admin/users/{alice.id}", json=body, headers=service_role).status_code == 200
        assert database.count("factors") == 0

    def test_janitor_deletes_it_after_thirty_days(self, client, alice, unused, service_role, parts, database):
        for days, left in ((29, 1), (1, 0)):
            database.run(
                "UPDATE factors SET created_at = created_at - %(days)s * interval '1 day'", days=days
            )
            janitor.clean(parts.db)
            assert database.count("factors") == left
        response = client.get(f"/admin/users/{alice.id}/timeline", headers=service_role)
        removed = "passkey removed: Passkey (not used for 30 days), by the service itself"
        assert timeline_texts(response)[-1] == removed


class TestFirstUse:
    def test_it_signs_in_at_aal2_and_makes_it_a_factor(self, client, alice, laptop, unused, outbox, database):
        session = sign_in(client, unused)
        assert (session.user["id"], session.claims["aal"]) == (alice.id, "aal2")
        (passkey,) = session.get("/passkeys").json
        assert (passkey["status"], passkey["last_used_at"]) == ("verified", A_TIMESTAMP)
        assert database.count("users", "first_factor_at IS NOT NULL") == 1
        # It ends nothing; the laptop needs the passkey for changes now.
        assert laptop.get("/user").status_code == 200
        assert_error(laptop.remove_identity("email"), *LOW)
        # It is a way to sign in.
        assert session.remove_identity("email").status_code == 200

    def test_it_is_told_once_as_an_addition(self, client, alice, unused, outbox, service_role, database):
        age(database, 8)
        sign_in(client, unused)
        assert outbox.last(alice.email, "passkey_added").variables["how"] == "first_used"
        sign_in(client, unused)
        assert [kind for kind, _ in outbox.kinds()].count("passkey_added") == 2
        response = client.get(f"/admin/users/{alice.id}/timeline", headers=service_role)
        texts = timeline_texts(response)
        assert texts.count("passkey used for the first time: Passkey, from 127.0.0.1") == 1
        assert "passkey made by the browser: Passkey, from 127.0.0.1" in texts

    def test_it_takes_the_verification_of_its_user(self, client, unused, database):
        response = sign_in_response(client, unused, is_verified=False)
        assert_error(response, *FAILED, details=ANYTHING)
        assert database.count("factors", "verified_at IS NULL") == 1

    def test_wrong_signature_verifies_nothing(self, client, unused, mallory, database):
        mallorys, _ = register(mallory.open_session())
        response = sign_in_response(client, mallorys, credential_id=unused.passkeys[0].id)
        assert_error(response, *FAILED, details=ANYTHING)
        assert database.count("factors", "verified_at IS NULL") == 1

    def test_copy_verifies_nothing(self, client, laptop, database):
        authenticator, _ = make_unasked(laptop)
        database.run("UPDATE factors SET sign_count = 5")
        response = sign_in_response(client, authenticator, counter=3)
        assert_error(response, *FAILED, details=ANYTHING)
        assert database.count("factors", "verified_at IS NULL") == 1
        assert database.count("audit_log", "action = 'passkey_verified'") == 0

    def test_banned_user_verifies_nothing(self, client, alice, unused, service_role, database):
        client.put(f"/admin/users/{alice.id}", json={"ban_duration": "24h"}, headers=service_role)
        assert_error(sign_in_response(client, unused), 403, "user_banned")
        assert database.count("factors", "verified_at IS NULL") == 1

    def test_it_may_raise_a_session(self, client, laptop, unused, database):
        response = laptop.post("/reauthenticate", json=assertion(client, unused))
        assert session_of(client, response).claims["aal"] == "aal2"
        assert database.count("factors", "verified_at IS NOT NULL") == 1

    def test_change_of_an_address_from_before_is_withdrawn(self, client, laptop, unused, outbox):
        """A thief could confirm it later without the passkey."""
        assert laptop.put("/user", json={"email": "new@example.com"}).status_code == 200
        sign_in(client, unused)
        assert laptop.get("/user").json["new_email"] is None
        token = outbox.last("new@example.com", "email_change").token
        assert hand_in(client, "email_change", token).status_code == 403

    def test_registering_one_withdraws_such_a_change_too(self, laptop):
        assert laptop.put("/user", json={"email": "new@example.com"}).status_code == 200
        register(laptop)
        assert laptop.get("/user").json["new_email"] is None

    def test_app_after_a_passkey_is_the_first_that_sign_ins_ask_for(self, client, alice, laptop, unused):
        phone, session = alice.open_session(), sign_in(client, unused)
        set_up(session)
        assert_error(phone.get("/user"), 401, "session_not_found")
        assert_error(laptop.get("/user"), 401, "session_not_found")


class TestRaces:
    def test_first_uses_at_once_are_told_once(self, server, laptop, database):
        authenticator, _ = make_unasked(laptop, counts=False)
        bodies = [assertion(server, authenticator) for _ in range(5)]
        answers = at_once(5, lambda number: server.post(SIGN_IN, json=bodies[number]))
        assert {answer.status_code for answer in answers} == {200}
        assert database.count("audit_log", "action = 'passkey_verified'") == 1
        told = database.all("SELECT variables::text AS text FROM outbox WHERE kind = 'passkey_added'")
        assert "".join(row.text for row in told).count("first_used") == 1

    def test_first_use_during_a_removal_leaves_no_factor(self, server, laptop, unused, database):
        (entry,) = laptop.get("/passkeys").json
        body, session = assertion(server, unused), laptop.on(server)
        requests = (
            lambda: session.delete(f"/passkeys/{entry['id']}"),
            lambda: server.post(SIGN_IN, json=body),
        )
        removed, _ = at_once(2, lambda number: requests[number]())
        # After the first use, the laptop needs the passkey for the removal.
        assert removed.status_code in (200, 403)
        left = database.count("factors", "verified_at IS NOT NULL")
        assert left == (0 if removed.status_code == 200 else 1)
        assert database.count("sessions", "aal = 'aal2' AND ended_at IS NULL") == left


class TestTakingBack:
    """Mallory knows the password, and her browser makes a passkey."""

    def test_owner_sees_and_removes_it_after_a_mailed_recovery(self, client, alice, unused, outbox):
        client.post("/recover", json={"email": alice.email})
        response = hand_in(client, "recovery", outbox.last(alice.email, "recovery").token)
        (change,) = response.json["recent_changes"]
        assert change == {"id": A_UUID, "type": "passkey", "added_at": A_TIMESTAMP, "label": "Passkey"}
        owner = session_of(client, response)
        assert owner.put("/user", json={"remove": [change["id"]]}).status_code == 200
        assert_error(sign_in_response(client, unused), *FAILED, details=ANYTHING)

    def test_link_of_its_notice_removes_it(self, client, alice, unused, outbox, database):
        token = outbox.last(alice.email, "passkey_added").token
        press(client, "undo", token)
        assert database.count("factors") == 0
        assert_error(sign_in_response(client, unused), *FAILED, details=ANYTHING)

    def test_first_use_on_day_eight_is_told_and_taken_back_that_day(
        self, client, alice, unused, outbox, database
    ):
        age(database, 8)
        thief = sign_in(client, unused)
        token = outbox.last(alice.email, "passkey_added").token
        press(client, "undo", token)
        assert database.count("factors") == 0
        assert_error(thief.get("/user"), 401, "session_not_found")

    def test_link_of_another_notice_removes_an_old_one_that_was_not_used(
        self, client, alice, laptop, unused, outbox, database
    ):
        """Otherwise Mallory could wait until her passkey is no recent addition any more."""
        age(database, 8)
        assert [each["type"] for each in laptop.get("/user/recent_changes").json["recent_changes"]] == [
            "passkey"
        ]
        _, another = make_unasked(laptop)
        assert laptop.delete(f"/passkeys/{another['id']}").status_code == 200
        press(client, "undo", outbox.last(alice.email, "passkey_removed").token)
        assert database.count("factors") == 0

    def test_link_asks_for_no_passkey_that_was_not_used(self, client, alice, unused, outbox, database):
        """Or Mallory's would lock its owner out."""
        database.run("UPDATE factors SET created_at = created_at - interval '10 days'")
        press(client, "undo", outbox.last(alice.email, "passkey_added").token)
        assert database.count("factors") == 0

    def test_reset_by_an_operator_removes_it(self, app, alice, unused, database):
        result = run_command(app, "users", "remove-factors", alice.email, input="y\n")
        assert result.exit_code == 0, result.output
        assert database.count("factors") == 0


def test_authenticator_keeps_what_a_notice_may_bring_back(client, alice, database, parts):
    """Mallory removes Alice's passkey. Her browser must not delete it: the link of the notice asks for it."""
    db = parts.db
    authenticator, passkey = register(alice.open_session())
    id = encode(authenticator.passkeys[0].id)
    age(database, 8)
    session = sign_in(client, authenticator)
    assert session.delete(f"/passkeys/{passkey['id']}").status_code == 200
    assert accepted_ids(db, alice.id) == [id]
    assert accepted_ids(db, alice.id, except_id=passkey["id"]) == []
    # Nor is it called unknown, which deletes it for good.
    details = "credential: Could not verify authentication signature"
    assert_error(sign_in_response(client, authenticator), *FAILED, details=details)
    age(database, 8)
    assert accepted_ids(db, alice.id) == []
