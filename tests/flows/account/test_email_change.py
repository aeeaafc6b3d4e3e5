"""Email changes: pending until the new address is proved, and undone by a link to the old address."""

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, DAY, assert_error, assert_ok, user
from tests.support.links import (
    BROWSER,
    CHALLENGE,
    EXPIRED,
    PHONE,
    SITE,
    VERIFIER,
    assert_dead,
    follow,
    fragment,
    hand_in,
    later,
    location,
    path,
    press,
    query,
    type_in,
)
from tests.support.server import at_once
from tests.support.users import MALLORY, NEW_EMAIL, PASSWORD, sign_in

TAKEN = EXPIRED | {
    "error_code": "email_exists",
    "error_description": "A user with this email address has already been registered",
}
RESTORED = {
    "message": "The account was taken back, and its password removed; choose a new one to sign in",
    "type": "undo",
}


@pytest.fixture
def session(alice):
    return alice.sign_in()


def request_change(session, email):
    response = session.put("/user", json={"email": email})
    assert (response.status_code, response.json["new_email"]) == (200, email)


def change(client, session, outbox, email):
    """Change the email of a session's user, and return the link that undoes it, sent to the old address."""
    old = session.get("/user").json["email"]
    request_change(session, email)
    assert_confirmed(follow(client, "email_change", outbox.last(email, "email_change").token))
    return outbox.last(old, "email_changed").token


def assert_confirmed(response, target=SITE):
    message = "The new email address is confirmed"
    assert fragment(response, target) == {"message": message, "type": "email_change"}


def expected_user(alice, email=NEW_EMAIL):
    """Return Alice's expected user object with another email."""
    return user(email, id=alice.id, last_sign_in_at=A_TIMESTAMP)


class TestRequest:
    def test_change_is_pending(self, client, session, alice, outbox):
        before = session.get("/user").json
        expected = before | {
            "new_email": NEW_EMAIL,
            "email_change_sent_at": A_TIMESTAMP,
            "updated_at": A_TIMESTAMP,
        }
        assert_ok(session.put("/user", json={"email": "New@Example.COM"}), expected)
        assert_ok(session.get("/user"), expected)
        # Only the new address is sent a link and a code.
        (message,) = outbox.sent()
        assert (message.kind, message.channel, message.to) == ("email_change", "email", NEW_EMAIL)
        assert (message.lifetime, len(message.token), len(message.code)) == (3600, 43, 6)
        assert alice.try_to_sign_in().status_code == 200
        assert_error(sign_in(client, NEW_EMAIL), 401, "invalid_credentials")

    def test_taken_address_is_409_and_the_current_one_is_not_a_change(self, session, bob, outbox):
        body = {"email": bob.email.upper(), "data": {"x": 1}, "password": "Another-Horse-1"}
        assert_error(session.put("/user", json=body), 409, "email_exists")
        current = session.get("/user").json
        assert (current["new_email"], current["user_metadata"]) == (None, {})
        for spelling in ("alice@example.com", "ALICE@example.com"):
            assert session.put("/user", json={"email": spelling}).json["new_email"] is None
        assert outbox.sent() == []

    def test_second_change_replaces_the_first(self, client, session, outbox):
        request_change(session, "first@example.com")
        request_change(session, NEW_EMAIL)
        first, second = outbox.sent()
        assert_dead(client, "email_change", first.token)
        assert_error(type_in(client, "email_change", "first@example.com", first.code), 403, "otp_expired")
        assert session.get("/user").json["email"] == "alice@example.com"
        assert_confirmed(follow(client, "email_change", second.token))


class TestLink:
    @pytest.mark.parametrize("use_link", [follow, press], ids=["opened link", "button"])
    def test_link_changes_the_address_without_a_sign_in(self, client, alice, outbox, database, use_link):
        # There is no session to give a code for, so the query has only what the fragment says.
        session, other = alice.sign_in(), alice.sign_in()
        for request in ("/magiclink", "/recover"):
            client.post(request, json={"email": alice.email})
        magiclink, recovery = outbox.sent()
        body = {"email": NEW_EMAIL, "code_challenge": CHALLENGE, "code_challenge_method": "s256"}
        assert session.put("/user", json=body).status_code == 200
        response = use_link(client, "email_change", outbox.last().token)
        assert_confirmed(response, location(response).partition("#")[0])
        assert "?message=The%20new%20email%20address%20is%20confirmed&type=email_change#" in location(
            response
        )
        assert_ok(session.get("/user"), expected_user(alice))
        assert (database.count("sessions"), database.count("authorization_codes")) == (2, 0)
        # All sessions end but the one that asked, and other links and codes are void.
        assert_error(other.get("/user"), 401, "session_not_found")
        assert_error(other.refresh(), 400, "refresh_token_not_found")
        assert_dead(client, "magiclink", magiclink.token)
        assert_dead(client, "recovery", recovery.token)
        assert_error(type_in(client, "magiclink", alice.email, magiclink.code), 403, "otp_expired")

    def test_new_address_signs_in_and_the_old_one_is_sent_a_link_that_undoes_the_change_for_seven_days(
        self, client, session, alice, outbox
    ):
        request_change(session, NEW_EMAIL)
        link = outbox.last(NEW_EMAIL, "email_change").token
        # If Mallory requested the change, the reader must see that the account is not theirs.
        text = client.get(path("email_change", link), headers=BROWSER).text.replace("<wbr>", "")
        assert ("a…@example.com" in text, NEW_EMAIL in text) == (True, True)
        assert_confirmed(follow(client, "email_change", link))
        notice = outbox.last(alice.email)
        assert (notice.channel, notice.code, notice.lifetime) == ("email", None, 7 * DAY)
        assert (len(notice.token), notice.variables["new_email"]) == (43, NEW_EMAIL)
        assert outbox.kinds() == [("email_change", NEW_EMAIL), ("email_changed", alice.email)]
        assert sign_in(client, NEW_EMAIL).status_code == 200
        assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")
        client.post("/magiclink", json={"email": alice.email, "create_user": False})
        assert outbox.sent(alice.email, "magiclink") == []

    def test_address_taken_meanwhile_is_refused(self, client, session, service_role, outbox, database):
        request_change(session, NEW_EMAIL)
        message = outbox.last()
        client.post("/admin/users", json={"email": NEW_EMAIL, "email_confirm": True}, headers=service_role)
        before = database.everything("users", "identities", "sessions", "one_time_tokens", "outbox")
        for use_link in (follow, press):
            assert fragment(use_link(client, "email_change", message.token)) == TAKEN
        assert_error(hand_in(client, "email_change", message.token), 409, "email_exists")
        assert_error(type_in(client, "email_change", NEW_EMAIL, message.code), 409, "email_exists")
        assert database.everything("users", "identities", "sessions", "one_time_tokens", "outbox") == before

    def test_one_of_an_owner_and_a_stranger_who_confirm_at_once_gets_the_address(
        self, app, client, session, outbox, database
    ):
        client.post("/signup", json={"email": NEW_EMAIL, "password": PASSWORD})
        request_change(session, NEW_EMAIL)
        tokens = [outbox.last(NEW_EMAIL, kind).token for kind in ("signup", "email_change")]
        kinds = ["signup", "email_change"] * 25
        at_once(50, lambda i: hand_in(app.test_client(), kinds[i], tokens[i % 2]))
        assert database.count("users", f"email = '{NEW_EMAIL}' AND email_proved") == 1

    def test_change_requested_with_a_new_password_is_not_voided_by_it(self, client, session, outbox):
        assert (
            session.put("/user", json={"email": NEW_EMAIL, "password": "Another-Horse-1"}).status_code == 200
        )
        assert_confirmed(follow(client, "email_change", outbox.last(NEW_EMAIL).token))
        assert sign_in(client, NEW_EMAIL, "Another-Horse-1").status_code == 200

    def test_password_change_removes_a_pending_change_for_good(self, client, session, outbox):
        request_change(session, NEW_EMAIL)
        session.put("/user", json={"password": "Another-Horse-1"})
        current = session.get("/user").json
        assert (current["new_email"], current["email_change_sent_at"]) == (None, None)
        before = outbox.kinds()
        client.post("/resend", json={"type": "email_change", "email": NEW_EMAIL})
        assert outbox.kinds() == before


class TestUndo:
    """Mallory stole Alice's session and took over the account; Alice still has her old mailbox."""

    @pytest.fixture
    def thief(self, client, alice):
        return alice.sign_in()

    @pytest.fixture
    def undo_token(self, client, thief, outbox):
        """The token of the link sent to Alice when Mallory changed the email."""
        return change(client, thief, outbox, MALLORY)

    @pytest.fixture
    def assert_restored(self, client, database):
        """Open a link that undoes a change, and assert that the address is restored without a sign-in."""

        def assert_restored(link, email="alice@example.com", use_link=follow, client=client):
            response = use_link(client, "undo", link)
            assert fragment(response) == RESTORED
            statement = "SELECT email, email_confirmed_at IS NOT NULL AS confirmed, email_proved, password_hash, new_email, new_phone FROM users WHERE email IS NOT NULL"
            assert tuple(database.one(statement)) == (email, True, True, None, None, None)
            is_of_user = "user_id = (SELECT id FROM users WHERE email IS NOT NULL)"
            assert database.count("sessions", f"ended_at IS NULL AND {is_of_user}") == 0

        return assert_restored

    def test_undo_restores_the_address_ends_all_sessions_and_voids_the_password(
        self, client, thief, undo_token, alice, database, service_role, assert_restored
    ):
        assert_restored(undo_token)
        assert_error(thief.get("/user"), 401, "session_not_found")
        assert_error(thief.refresh(), 400, "refresh_token_not_found")
        assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")
        assert_error(sign_in(client, MALLORY), 401, "invalid_credentials")
        response = client.get(f"/admin/users/{alice.id}", headers=service_role)
        assert_ok(response, expected_user(alice, alice.email))
        # The link works once.
        before = database.everything("users", "identities", "sessions", "outbox")
        for use_link in (follow, press):
            assert fragment(use_link(client, "undo", undo_token)) == EXPIRED
        assert database.everything("users", "identities", "sessions", "outbox") == before

    @pytest.mark.parametrize("is_late", [False, True])
    def test_browser_gets_a_page_first_for_seven_days(
        self, client, undo_token, database, assert_restored, is_late
    ):
        later(database, secs=7 * DAY - 60)
        before = database.everything("users", "sessions", "one_time_tokens")
        response = client.get(path("undo", undo_token), headers=BROWSER)
        assert (response.status_code, response.mimetype) == (200, "text/html")
        assert database.everything("users", "sessions", "one_time_tokens") == before
        if is_late:
            later(database, secs=60)
            assert fragment(follow(client, "undo", undo_token)) == EXPIRED
            assert database.value("SELECT email FROM users") == MALLORY
        else:
            assert_restored(undo_token, use_link=press)

    def test_undo_link_is_refused_for_other_types_and_by_json(
        self, client, undo_token, database, assert_restored
    ):
        for type in ("email_change", "magiclink", "recovery", "email", "signup", "invite"):
            assert fragment(follow(client, type, undo_token)) == EXPIRED
            assert_error(hand_in(client, type, undo_token), 403, "otp_expired")
        assert_error(hand_in(client, "undo", undo_token), 400, "validation_failed", details=A_SENTENCE)
        assert database.value("SELECT email FROM users") == MALLORY
        assert_restored(undo_token)

    @pytest.mark.parametrize("further", [1, 6])
    def test_undo_link_survives_further_email_changes(
        self, client, thief, undo_token, outbox, assert_restored, database, further
    ):
        links = [change(client, thief, outbox, f"mallory{number}@evil.example") for number in range(further)]
        assert_restored(undo_token)
        # Links sent to Mallory's own mailboxes do not revert the undo.
        for link in links:
            assert fragment(follow(client, "undo", link)) == EXPIRED
        assert database.value("SELECT email FROM users") == "alice@example.com"

    def test_undo_link_survives_the_undo_of_a_later_change(
        self, client, thief, undo_token, outbox, assert_restored
    ):
        """A to B to C: B undoes the second change, then A undoes the first."""
        assert_restored(change(client, thief, outbox, "mallory2@evil.example"), MALLORY)
        assert_restored(undo_token)

    def test_undo_voids_pending_changes_links_and_authorization_codes_of_the_thief(
        self, client, thief, undo_token, outbox, database, assert_restored
    ):
        thief.put("/user", json={"phone": PHONE})
        phone = outbox.last(PHONE).code
        request_change(thief, "mallory2@evil.example")
        pending = outbox.last("mallory2@evil.example").token
        # For five minutes, a code for grant_type=pkce is worth a session.
        client.post("/magiclink", json={"email": MALLORY, "code_challenge": CHALLENGE})
        code = query(follow(client, "magiclink", outbox.last().token))["code"]
        client.post("/magiclink", json={"email": MALLORY})
        magiclink = outbox.last().token
        assert_restored(undo_token)
        assert_dead(client, "email_change", pending)
        assert_dead(client, "magiclink", magiclink)
        assert_error(type_in(client, "phone_change", PHONE, phone), 403, "otp_expired")
        response = client.post("/token?grant_type=pkce", json={"auth_code": code, "code_verifier": VERIFIER})
        assert_error(response, 404, "flow_state_not_found")
        assert database.count("sessions", "ended_at IS NULL") == 0
        assert database.all("SELECT email, phone FROM users") == [("alice@example.com", None)]
