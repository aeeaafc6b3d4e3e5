"""An anonymous user becomes permanent with the first confirmed email or phone."""

import pytest

from tests.support import passkeys
from tests.support.answers import (
    A_SENTENCE,
    A_TIMESTAMP,
    A_UUID,
    NEEDED,
    assert_error,
    assert_ok,
    identity,
    user,
)
from tests.support.authenticator import Authenticator
from tests.support.links import (
    PHONE,
    assert_dead,
    assert_signs_in,
    decline,
    follow,
    fragment,
    hand_in,
    path,
    press,
    type_in,
)
from tests.support.server import at_once
from tests.support.users import DAVE, PASSWORD, register, sign_in, sign_up_anonymously

CONFIRMED = {"message": A_SENTENCE, "type": "email_change"}


@pytest.fixture
def client(make_app):
    return make_app(AUTH_ANONYMOUS_ENABLED="true").test_client()


@pytest.fixture
def visitor(client):
    return sign_up_anonymously(client)


@pytest.fixture
def link(visitor, outbox):
    """The token of the link that makes the visitor permanent."""
    assert visitor.put("/user", json={"email": DAVE}).status_code == 200
    return outbox.last(DAVE, "email_change").token


def age(database, days):
    """Move the sessions into the past."""
    database.run(f"UPDATE sessions SET created_at = created_at - make_interval(days => {days})")


def test_passkey_begun_without_a_proof_is_not_added_afterwards(client, visitor, link, database):
    options = visitor.post("/passkeys/registration/options", json={}).json
    follow(client, "email_change", link)
    body = {"challenge_id": options["challenge_id"], "credential": Authenticator().create(options["options"])}
    response = visitor.post("/passkeys/registration/verify", json=body)
    assert_error(response, 400, "webauthn_challenge_not_found")
    assert_error(visitor.post("/passkeys/registration/options", json={}), *NEEDED, details=A_SENTENCE)
    assert database.count("factors") == 0


def test_link_makes_the_user_permanent_with_the_same_id(client, visitor, link, database):
    before = visitor.get("/user").json
    assert (before["is_anonymous"], before["email"], before["new_email"]) == (True, None, DAVE)
    assert visitor.refreshed().claims["is_anonymous"] is True
    assert fragment(follow(client, "email_change", link)) == CONFIRMED
    expected = user(DAVE, last_sign_in_at=A_TIMESTAMP, id=visitor.user["id"])
    expected["identities"] = [identity("email", DAVE, last_sign_in_at=None)]
    assert visitor.get("/user").json == expected
    assert visitor.refreshed().claims["is_anonymous"] is False
    assert database.one("SELECT email_proved, made_by FROM users") == (True, "anonymous")
    query = "SELECT user_id::text, details FROM audit_log WHERE action = 'email_changed'"
    assert database.one(query) == (visitor.user["id"], {"method": "otp", "new_address": DAVE})
    assert visitor.put("/user", json={"password": PASSWORD}).status_code == 200
    assert sign_in(client, DAVE).json["user"]["id"] == visitor.user["id"]


def test_code_to_a_phone_makes_the_user_permanent_and_signs_in(client, visitor, outbox):
    visitor.put("/user", json={"phone": PHONE})
    response = type_in(client, "phone_change", PHONE, outbox.last(PHONE).code)
    assert response.json["user"]["id"] == visitor.user["id"]
    user_object = visitor.get("/user").json
    assert (user_object["phone"], user_object["is_anonymous"]) == (PHONE, False)
    assert outbox.last(PHONE).kind == "address_added"


class TestReaderOfTheLink:
    """The reader may be a stranger, or may have been sent the link by one."""

    @pytest.mark.parametrize("door", ["API", "dialect", "page"])
    def test_reader_is_not_signed_in(self, client, link, database, door):
        if door == "page":
            text = client.get(path("email_change", link), headers={"Accept": "text/html"}).text
            assert "an account that doesn’t have one yet" in text
            assert "This won’t sign you in." in text
            assert fragment(press(client, "email_change", link)) == CONFIRMED
        else:
            headers = {"X-Supabase-Api-Version": "2024-01-01"} if door == "dialect" else {}
            body = {"type": "email_change", "token_hash": link}
            response = client.post("/verify", json=body, headers=headers)
            expected = {"msg": A_SENTENCE, "code": "200"} if door == "dialect" else {"message": A_SENTENCE}
            assert_ok(response, expected)
        assert database.count("sessions") == 1

    def test_reader_declines_on_the_page(self, client, visitor, link, database):
        assert "The address wasn’t added" in decline(client, "email_change", link).text
        assert_dead(client, "email_change", link)
        user_object = visitor.get("/user").json
        assert (user_object["new_email"], user_object["is_anonymous"]) == (None, True)
        assert database.count("audit_log", "action = 'email_change_declined'") == 1

    def test_reader_undoes_the_addition_afterwards(self, client, visitor, link, outbox, database):
        follow(client, "email_change", link)
        visitor.put("/user", json={"password": PASSWORD})
        notice = outbox.last(DAVE, "address_added")
        assert fragment(press(client, "undo", notice.token))["type"] == "undo"
        assert_error(visitor.get("/user"), 401, "session_not_found")
        assert database.one("SELECT email, password_hash FROM users") == (DAVE, None)
        client.post("/magiclink", json={"email": DAVE})
        assert_signs_in(client, "magiclink", outbox.last(kind="magiclink").token)


class TestTakenAddress:
    @pytest.fixture
    def owner(self, client, service_role):
        return register(client, service_role, DAVE)

    def test_answer_about_a_taken_address_is_that_about_a_free_one_and_the_owner_is_told(
        self, client, owner, visitor, outbox, database
    ):
        taken_answer = visitor.put("/user", json={"email": DAVE})
        # No link, neither now nor later.
        client.post("/resend", json={"type": "email_change", "email": DAVE})
        assert (outbox.kinds(), database.count("one_time_tokens")) == ([("signup_attempt", DAVE)], 0)
        free_answer = sign_up_anonymously(client).put("/user", json={"email": "free@example.com"})
        names = ("created_at", "updated_at", "email_change_sent_at", "last_sign_in_at")
        others = {"id": A_UUID, "new_email": DAVE} | dict.fromkeys(names, A_TIMESTAMP)
        assert_ok(taken_answer, free_answer.json | others)
        assert visitor.get("/user").json["new_email"] == DAVE

    def test_address_that_is_taken_meanwhile_is_refused_and_a_taken_phone_sends_nothing(
        self, client, service_role, visitor, link, outbox
    ):
        body = {"email": DAVE, "phone": PHONE, "phone_confirm": True}
        client.post("/admin/users", json=body | {"email_confirm": True}, headers=service_role)
        assert fragment(follow(client, "email_change", link))["error_code"] == "email_exists"
        assert visitor.get("/user").json["is_anonymous"] is True
        assert visitor.put("/user", json={"phone": PHONE}).json["new_phone"] == PHONE
        assert (outbox.sent(PHONE), outbox.suppressed()) == ([], 1)

    @pytest.mark.parametrize(
        ("count", "refusal"), [(50, "email_exists"), (1, "otp_expired")], ids=["fifty users", "one link"]
    )
    def test_one_of_fifty_concurrent_confirmations_counts(self, client, outbox, database, count, refusal):
        for visitor in [sign_up_anonymously(client) for _ in range(count)]:
            assert visitor.put("/user", json={"email": DAVE}).status_code == 200
        links = [message.token for message in outbox.sent(DAVE, "email_change")] * (50 // count)
        assert len(links) == 50
        clients = [client.application.test_client() for _ in links]
        responses = at_once(50, lambda i: follow(clients[i], "email_change", links[i]))
        outcomes = [fragment(response).get("error_code", "done") for response in responses]
        assert sorted(outcomes) == ["done"] + [refusal] * 49
        assert database.count("users", f"email = '{DAVE}' AND converted_at IS NOT NULL") == 1
        assert database.count("users", "converted_at IS NOT NULL") == 1


class TestProofs:
    """An anonymous sign-in proves nothing, neither before nor after the first address."""

    @pytest.mark.parametrize(("body", "days"), [({"phone": PHONE}, 0), ({"password": PASSWORD}, 2)], ids=str)
    def test_next_address_or_password_needs_a_code(self, client, visitor, link, outbox, database, body, days):
        age(database, days=days)
        follow(client, "email_change", link)
        assert_error(visitor.put("/user", json=body), *NEEDED, details=A_SENTENCE)
        visitor.get("/reauthenticate")
        nonce = outbox.last(kind="reauthentication").code
        response = visitor.put("/user", json=body | {"nonce": nonce})
        assert (response.status_code, response.json["new_phone"]) == (200, body.get("phone"))

    def test_password_and_reauthentication_need_a_confirmed_address(self, visitor, link, database):
        for body in ({"password": PASSWORD}, {"password": PASSWORD, "email": DAVE}):
            assert_error(visitor.put("/user", json=body), 422, "validation_failed", details=A_SENTENCE)
        assert database.value("SELECT password_hash FROM users") is None
        assert_error(visitor.get("/reauthenticate"), 422, "validation_failed")
        response = visitor.post("/reauthenticate", json={"nonce": "123456"})
        assert_error(response, 400, "reauthentication_not_valid", details=A_SENTENCE)
        age(database, days=2)
        assert_error(visitor.delete("/user"), *NEEDED, details=A_SENTENCE)

    def test_concurrent_first_addresses_leave_one(self, client, visitor, outbox, database):
        visitor.put("/user", json={"email": DAVE})
        visitor.put("/user", json={"phone": PHONE})
        email = {"type": "email_change", "token_hash": outbox.last(DAVE).token}
        phone = {"type": "phone_change", "phone": PHONE, "token": outbox.last(PHONE).code}
        clients = [client.application.test_client() for _ in range(20)]
        at_once(20, lambda i: clients[i].post("/verify", json=(email, phone)[i % 2]))
        assert database.count("users", "(email IS NULL) <> (phone IS NULL)") == 1


class TestAutoconfirm:
    @pytest.fixture
    def client(self, make_app):
        return make_app(AUTH_ANONYMOUS_ENABLED="true", AUTH_AUTOCONFIRM="true").test_client()

    def test_email_and_password_take_effect_at_once(self, client, visitor, outbox, database):
        user_object = visitor.put("/user", json={"email": DAVE, "password": PASSWORD}).json
        assert (user_object["id"], user_object["email"], user_object["is_anonymous"]) == (
            visitor.user["id"],
            DAVE,
            False,
        )
        assert (user_object["email_confirmed_at"], user_object["new_email"]) == (A_TIMESTAMP, None)
        assert (outbox.kinds(), database.value("SELECT email_proved FROM users")) == ([], False)
        assert sign_in(client, DAVE).status_code == 200

    def test_one_of_twenty_concurrent_first_emails_counts(self, visitor, database):
        sessions = [visitor.on(visitor.client.application.test_client()) for _ in range(20)]
        responses = at_once(20, lambda i: sessions[i].put("/user", json={"email": f"u{i}@example.com"}))
        assert sorted(response.status_code for response in responses) == [200] + [400] * 19
        assert database.count("identities") == 1


class TestUserWithAPasskeyOnly:
    """This user is permanent, but may be as unknown to the owner of the address as an anonymous one."""

    @pytest.fixture
    def link(self, client, visitor, outbox):
        authenticator, _passkey = passkeys.register(visitor)
        assert passkeys.sign_in(client, authenticator).put("/user", json={"email": DAVE}).status_code == 200
        return outbox.last(DAVE, "email_change").token

    def test_owner_who_confirmed_is_not_signed_in_and_gets_a_notice(self, client, link, outbox, database):
        sessions = database.count("sessions")
        assert_ok(hand_in(client, "email_change", link), {"message": A_SENTENCE})
        assert database.count("sessions") == sessions
        notice = outbox.last(DAVE, "address_added")
        # The mailbox alone must not open an account that an old passkey protects.
        database.run("UPDATE factors SET verified_at = now() - interval '8 days'")
        assert press(client, "undo", notice.token).status_code == 403
        assert database.count("factors") == 1
