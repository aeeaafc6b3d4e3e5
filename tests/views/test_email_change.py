"""Email changes: pending until the new address is proved, and undone by a link to the old address."""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.cast import PASSWORD, session_of, sign_in
from tests.support.links import (
    BROWSER,
    CHALLENGE,
    EXPIRED,
    PHONE,
    VERIFIER,
    assert_dead,
    assert_signed_in,
    follow,
    fragment,
    hand_in,
    later,
    path,
    press,
    query,
    type_in,
)

NEW = "new@example.com"
TAKEN = EXPIRED | {
    "error_code": "email_exists",
    "error_description": "A user with this email address has already been registered",
}
RESTORED = {
    "message": "The change is undone, and what was added since is removed; sign in again with a new password",
    "type": "undo",
}
DAY = 86_400


@pytest.fixture
def session(alice):
    return alice.sign_in()


def ask(session, email):
    response = session.put("/user", json={"email": email})
    assert (response.status_code, response.json["new_email"]) == (200, email)
    return response


def change(client, session, outbox, email):
    """Change the email of a session's user, and return the link that undoes it, sent to the old address."""
    old = session.get("/user").json["email"]
    ask(session, email)
    assert (
        fragment(follow(client, "email_change", outbox.last(email, "email_change").token))["type"]
        == "email_change"
    )
    return outbox.last(old, "email_changed").token


def changed(alice, email=NEW, **others):
    """Return Alice's expected user object with another email."""
    expected = user(
        email,
        id=alice.id,
        last_sign_in_at=A_TIMESTAMP,
        identities=[identity("email", email, last_sign_in_at=A_TIMESTAMP)],
    )
    return expected | others


class TestRequest:
    def test_change_is_pending(self, session, alice):
        before = session.get("/user").json
        expected = before | {"new_email": NEW, "email_change_sent_at": A_TIMESTAMP, "updated_at": A_TIMESTAMP}
        assert_ok(session.put("/user", json={"email": "New@Example.COM"}), expected)
        assert_ok(session.get("/user"), expected)

    def test_only_the_new_address_is_sent_a_link_and_a_code(self, session, outbox):
        ask(session, NEW)
        (message,) = outbox.sent()
        assert (message.kind, message.channel, message.to, message.lifetime) == (
            "email_change",
            "email",
            NEW,
            3600,
        )
        assert (len(message.token), len(message.code)) == (43, 6)

    def test_old_address_stays_until_the_new_one_is_proved(self, client, session, alice):
        ask(session, NEW)
        assert alice.try_to_sign_in().status_code == 200
        assert_error(sign_in(client, NEW), 401, "invalid_credentials")

    def test_pending_change_does_not_reserve_the_address(self, client, session, outbox):
        ask(session, NEW)
        assert client.post("/signup", json={"email": NEW, "password": PASSWORD}).status_code == 201
        assert fragment(follow(client, "signup", outbox.last(NEW, "signup").token))["type"] == "signup"

    def test_taken_address_is_409(self, session, bob, outbox):
        assert_error(
            session.put(
                "/user", json={"email": bob.email.upper(), "data": {"x": 1}, "password": "Another-Horse-1"}
            ),
            409,
            "email_exists",
        )
        assert session.get("/user").json["new_email"] is None
        assert session.get("/user").json["user_metadata"] == {}
        assert outbox.sent() == []

    @pytest.mark.parametrize("spelling", ["alice@example.com", "ALICE@example.com"])
    def test_current_address_is_not_a_change(self, session, outbox, spelling):
        assert session.put("/user", json={"email": spelling}).json["new_email"] is None
        assert outbox.sent() == []

    def test_second_change_replaces_the_first(self, client, session, outbox):
        ask(session, "first@example.com")
        ask(session, NEW)
        first, second = outbox.sent()
        assert_dead(client, "email_change", first.token)
        assert_error(type_in(client, "email_change", "first@example.com", first.code), 403, "otp_expired")
        assert session.get("/user").json["email"] == "alice@example.com"
        assert fragment(follow(client, "email_change", second.token))["type"] == "email_change"


class TestLink:
    def test_opened_link_changes_the_address_without_a_sign_in(
        self, client, session, alice, outbox, database
    ):
        ask(session, NEW)
        response = follow(client, "email_change", outbox.last().token)
        assert fragment(response) == {"message": "The new email address is confirmed", "type": "email_change"}
        assert_ok(session.get("/user"), changed(alice))
        assert database.count("sessions") == 1

    def test_button_of_the_page_changes_the_address_without_a_sign_in(
        self, client, session, alice, outbox, database
    ):
        ask(session, NEW)
        assert fragment(press(client, "email_change", outbox.last().token))["type"] == "email_change"
        assert_ok(session.get("/user"), changed(alice))
        assert database.count("sessions") == 1

    def test_page_names_the_account_that_gets_the_address(self, client, session, outbox):
        """If Mallory requested the change, the person who opens the link must see that the account is not theirs."""
        ask(session, NEW)
        text = client.get(path("email_change", outbox.last().token), headers=BROWSER).text
        assert "a…@example.com" in text
        assert NEW in text

    def test_code_challenge_gives_no_authorization_code(self, client, session, outbox, database):
        body = {"email": NEW, "code_challenge": CHALLENGE, "code_challenge_method": "s256"}
        assert session.put("/user", json=body).status_code == 200
        assert fragment(follow(client, "email_change", outbox.last().token))["type"] == "email_change"
        assert database.count("authorization_codes") == 0

    @pytest.mark.parametrize("by", ["link", "code"])
    def test_link_or_code_sent_as_json_signs_in(self, client, session, alice, outbox, by):
        ask(session, NEW)
        message = outbox.last()
        response = (
            hand_in(client, "email_change", message.token)
            if by == "link"
            else type_in(client, "email_change", NEW, message.code)
        )
        assert_signed_in(client, response, changed(alice))

    def test_change_ends_all_sessions_but_the_one_that_requested_it(self, client, session, alice, outbox):
        other = alice.sign_in()
        ask(session, NEW)
        follow(client, "email_change", outbox.last().token)
        assert_error(other.get("/user"), 401, "session_not_found")
        assert_error(other.refresh(), 400, "refresh_token_not_found")
        assert session.get("/user").status_code == 200

    def test_change_voids_other_links_and_codes(self, client, session, alice, outbox):
        for request in ("/magiclink", "/recover"):
            client.post(request, json={"email": alice.email})
        magiclink, recovery = outbox.sent()
        ask(session, NEW)
        follow(client, "email_change", outbox.last().token)
        assert_dead(client, "magiclink", magiclink.token)
        assert_dead(client, "recovery", recovery.token)
        assert_error(type_in(client, "magiclink", alice.email, magiclink.code), 403, "otp_expired")

    def test_password_signs_in_only_with_the_new_address(self, client, session, alice, outbox):
        change(client, session, outbox, NEW)
        assert sign_in(client, NEW).status_code == 200
        assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")
        client.post("/magiclink", json={"email": alice.email, "create_user": False})
        assert outbox.sent(alice.email, "magiclink") == []

    def test_old_address_is_sent_a_link_that_undoes_the_change_for_seven_days(
        self, client, session, alice, outbox
    ):
        change(client, session, outbox, NEW)
        notice = outbox.last(alice.email)
        assert (notice.kind, notice.channel, notice.code, notice.lifetime) == (
            "email_changed",
            "email",
            None,
            7 * DAY,
        )
        assert (len(notice.token), notice.variables["new_email"]) == (43, NEW)
        assert outbox.kinds() == [("email_change", NEW), ("email_changed", alice.email)]

    def test_link_is_void_when_the_requesting_session_ended(self, client, session, alice, outbox):
        ask(session, NEW)
        session.post("/logout")
        other = alice.sign_in()
        follow(client, "email_change", outbox.last().token)
        assert_error(other.get("/user"), 401, "session_not_found")
        assert_error(session.get("/user"), 401, "session_not_found")

    @pytest.mark.parametrize("taker", ["signup", "admin"])
    def test_address_taken_meanwhile_is_refused(self, client, session, service_role, outbox, database, taker):
        ask(session, NEW)
        message = outbox.last()
        if taker == "signup":
            client.post("/signup", json={"email": NEW, "password": PASSWORD})
        else:
            client.post("/admin/users", json={"email": NEW, "email_confirm": True}, headers=service_role)
        before = database.everything("users", "identities", "sessions", "one_time_tokens", "outbox")
        assert fragment(follow(client, "email_change", message.token)) == TAKEN
        assert fragment(press(client, "email_change", message.token)) == TAKEN
        assert_error(hand_in(client, "email_change", message.token), 409, "email_exists")
        assert_error(
            type_in(client, "email_change", NEW, message.code),
            *((403, "otp_expired") if taker == "signup" else (409, "email_exists")),
        )
        assert database.everything("users", "identities", "sessions", "one_time_tokens", "outbox") == before

    def test_first_of_two_users_to_prove_an_address_gets_it(self, client, alice, bob, outbox, database):
        ask(alice.sign_in(), NEW)
        alices = outbox.last().token
        ask(bob.sign_in(), NEW)
        assert hand_in(client, "email_change", outbox.last().token).json["user"]["id"] == bob.id
        assert fragment(follow(client, "email_change", alices)) == TAKEN
        assert database.all("SELECT id::text FROM users WHERE email = %(email)s", email=NEW) == [(bob.id,)]

    def test_of_the_codes_of_several_users_for_one_address_only_the_newest_works(
        self, client, alice, bob, mallory, outbox
    ):
        for person in (alice, bob, mallory):
            ask(person.sign_in(), NEW)
        alices, bobs, _ = outbox.sent(NEW)
        for message in (alices, bobs):
            assert_error(type_in(client, "email_change", NEW, message.code), 403, "otp_expired")
        assert hand_in(client, "email_change", alices.token).json["user"]["id"] == alice.id

    def test_change_requested_with_a_new_password_is_not_voided_by_it(self, client, session, alice, outbox):
        assert session.put("/user", json={"email": NEW, "password": "Another-Horse-1"}).status_code == 200
        assert fragment(follow(client, "email_change", outbox.last(NEW).token))["type"] == "email_change"
        assert sign_in(client, NEW, "Another-Horse-1").status_code == 200

    def test_session_started_by_the_code_counts_toward_the_limit(self, make_app, alice, outbox, database):
        client = make_app(AUTH_SESSIONS_PER_USER="1").test_client()
        session = alice.sign_in(client=client)
        ask(session, NEW)
        latest = session_of(client, hand_in(client, "email_change", outbox.last().token))
        assert latest.get("/user").status_code == 200
        assert database.count("sessions", "ended_at IS NULL") == 1

    def test_change_by_an_administrator_voids_the_pending_one(
        self, client, session, service_role, alice, outbox
    ):
        ask(session, NEW)
        token = outbox.last().token
        client.put(
            f"/admin/users/{alice.id}",
            json={"email": "admin-says@example.com", "email_confirm": True},
            headers=service_role,
        )
        assert_dead(client, "email_change", token)
        got = client.get(f"/admin/users/{alice.id}", headers=service_role).json
        assert (got["email"], got["new_email"]) == ("admin-says@example.com", None)

    def test_password_change_removes_a_pending_change_for_good(self, client, session, alice, outbox):
        ask(session, NEW)
        session.put("/user", json={"password": "Another-Horse-1"})
        got = session.get("/user").json
        assert (got["new_email"], got["email_change_sent_at"]) == (None, None)
        before = outbox.kinds()
        client.post("/resend", json={"type": "email_change", "email": NEW})
        assert outbox.kinds() == before


class TestUndo:
    """Mallory stole Alice's session and took over the account; Alice still has her old mailbox."""

    @pytest.fixture
    def thief(self, client, alice):
        return alice.sign_in()

    @pytest.fixture
    def undo(self, client, thief, outbox):
        """The token of the link sent to Alice when Mallory changed the email."""
        return change(client, thief, outbox, "mallory@evil.example")

    def restored(self, database, email="alice@example.com"):
        row = database.one(
            "SELECT email, email_confirmed_at IS NOT NULL AS confirmed, email_proved, password_hash, new_email, new_phone FROM users WHERE email IS NOT NULL"
        )
        return tuple(row) == (email, True, True, None, None, None)

    def test_undo_restores_the_address_ends_all_sessions_and_voids_the_password(
        self, client, thief, undo, alice, database, service_role
    ):
        assert fragment(follow(client, "undo", undo)) == RESTORED
        assert self.restored(database)
        assert_error(thief.get("/user"), 401, "session_not_found")
        assert_error(thief.refresh(), 400, "refresh_token_not_found")
        assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")
        assert_error(sign_in(client, "mallory@evil.example"), 401, "invalid_credentials")
        expected = user(
            alice.email,
            id=alice.id,
            last_sign_in_at=A_TIMESTAMP,
            identities=[identity("email", alice.email, last_sign_in_at=A_TIMESTAMP)],
        )
        assert_ok(client.get(f"/admin/users/{alice.id}", headers=service_role), expected)

    def test_undo_does_not_sign_in(self, client, undo, database):
        assert "access_token" not in follow(client, "undo", undo).location
        assert database.count("sessions", "ended_at IS NULL") == 0

    def test_owner_recovers_the_account_after_the_undo(self, client, undo, alice, outbox):
        follow(client, "undo", undo)
        client.post("/recover", json={"email": alice.email})
        session = session_of(client, hand_in(client, "recovery", outbox.last().token))
        assert session.put("/user", json={"password": "Another-Horse-1"}).status_code == 200
        assert alice.try_to_sign_in("Another-Horse-1").status_code == 200

    def test_browser_gets_a_page_first(self, client, undo, thief, database):
        before = database.everything("users", "sessions", "one_time_tokens")
        response = client.get(path("undo", undo), headers=BROWSER)
        assert (response.status_code, response.mimetype) == (200, "text/html")
        assert database.everything("users", "sessions", "one_time_tokens") == before
        assert fragment(press(client, "undo", undo)) == RESTORED
        assert self.restored(database)

    def test_undo_works_once(self, client, undo, database):
        follow(client, "undo", undo)
        before = database.everything("users", "identities", "sessions", "outbox")
        assert fragment(follow(client, "undo", undo)) == EXPIRED
        assert fragment(press(client, "undo", undo)) == EXPIRED
        assert database.everything("users", "identities", "sessions", "outbox") == before

    def test_undo_link_expires_after_seven_days(self, client, undo, database):
        later(database, secs=7 * DAY - 10)
        assert client.get(path("undo", undo), headers=BROWSER).status_code == 200
        later(database, secs=10)
        assert fragment(follow(client, "undo", undo)) == EXPIRED
        assert database.value("SELECT email FROM users") == "mallory@evil.example"

    @pytest.mark.parametrize("type", ["email_change", "magiclink", "recovery", "email", "signup", "invite"])
    def test_undo_link_is_refused_for_other_types(self, client, undo, database, type):
        assert fragment(follow(client, type, undo)) == EXPIRED
        assert_error(hand_in(client, type, undo), 403, "otp_expired")
        assert fragment(follow(client, "undo", undo)) == RESTORED

    def test_undo_by_json_is_refused(self, client, undo, database):
        assert_error(
            hand_in(client, "undo", undo),
            400,
            "validation_failed",
            details="type: undo is for the link's page alone",
        )
        assert database.value("SELECT email FROM users") == "mallory@evil.example"

    def test_undo_link_survives_a_password_change(self, client, thief, undo, database):
        assert thief.put("/user", json={"password": "Mallorys-Horse-1"}).status_code == 200
        follow(client, "undo", undo)
        assert self.restored(database)
        assert_error(sign_in(client, "alice@example.com", "Mallorys-Horse-1"), 401, "invalid_credentials")

    def test_undo_link_survives_a_recovery_by_the_thief(self, client, thief, undo, database, outbox):
        client.post("/recover", json={"email": "mallory@evil.example"})
        other = session_of(client, hand_in(client, "recovery", outbox.last().token))
        follow(client, "undo", undo)
        assert self.restored(database)
        assert_error(other.get("/user"), 401, "session_not_found")

    @pytest.mark.parametrize("more", [1, 2, 3, 4, 6])
    def test_undo_link_survives_further_email_changes(self, client, thief, undo, outbox, database, more):
        later_links = [
            change(client, thief, outbox, f"mallory{number}@evil.example") for number in range(more)
        ]
        assert fragment(follow(client, "undo", undo)) == RESTORED
        assert self.restored(database)
        # Links sent to Mallory's own mailboxes do not revert the undo.
        for link in later_links:
            assert fragment(follow(client, "undo", link)) == EXPIRED
        assert self.restored(database)

    def test_undo_link_survives_the_undo_of_a_later_change(self, client, thief, undo, outbox, database):
        """A to B to C: B undoes the second change, then A undoes the first."""
        second = change(client, thief, outbox, "mallory2@evil.example")
        assert fragment(follow(client, "undo", second)) == RESTORED
        assert self.restored(database, "mallory@evil.example")
        assert fragment(follow(client, "undo", undo)) == RESTORED
        assert self.restored(database)

    def test_undo_link_survives_a_phone_change_and_removes_pending_ones(
        self, client, thief, undo, outbox, database
    ):
        thief.put("/user", json={"phone": PHONE})
        phone = outbox.last(PHONE).code
        ask(thief, "mallory2@evil.example")
        pending = outbox.last("mallory2@evil.example").token
        follow(client, "undo", undo)
        assert self.restored(database)
        assert_dead(client, "email_change", pending)
        assert_error(type_in(client, "phone_change", PHONE, phone), 403, "otp_expired")
        assert self.restored(database)

    def test_undo_voids_links_sent_to_the_thief(self, client, thief, undo, outbox, database):
        client.post("/magiclink", json={"email": "mallory@evil.example"})
        token = outbox.last().token
        follow(client, "undo", undo)
        assert_dead(client, "magiclink", token)
        assert database.count("sessions", "ended_at IS NULL") == 0

    def test_undo_voids_an_authorization_code_of_the_thief(self, client, thief, undo, outbox, database):
        """For five minutes, a code for grant_type=pkce is worth a session."""
        client.post("/magiclink", json={"email": "mallory@evil.example", "code_challenge": CHALLENGE})
        code = query(follow(client, "magiclink", outbox.last().token))["code"]
        follow(client, "undo", undo)
        response = client.post("/token?grant_type=pkce", json={"auth_code": code, "code_verifier": VERIFIER})
        assert_error(response, 404, "flow_state_not_found")
        assert database.count("sessions", "ended_at IS NULL") == 0

    def test_undo_removes_the_phone_of_the_thief(self, client, thief, undo, outbox, database):
        """The undo proves the owner's address; with the phone the thief could sign in again."""
        thief.put("/user", json={"phone": PHONE})
        assert type_in(client, "phone_change", PHONE, outbox.last(PHONE).code).status_code == 200
        follow(client, "undo", undo)
        client.post("/otp", json={"phone": PHONE, "create_user": False})
        code = outbox.last(PHONE).code
        assert_error(type_in(client, "sms", PHONE, code), 403, "otp_expired")
        assert database.count("sessions", "ended_at IS NULL") == 0

    def test_phone_set_before_the_theft_stays(self, client, thief, alice, outbox, database):
        database.run(
            "UPDATE users SET phone = %(phone)s, phone_confirmed_at = now() - interval '1 hour', phone_proved = true",
            phone=PHONE,
        )
        undo = change(client, thief, outbox, "mallory@evil.example")
        follow(client, "undo", undo)
        assert database.value("SELECT phone FROM users") == PHONE

    def test_undo_works_for_a_banned_user_without_lifting_the_ban(self, client, undo, database):
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert fragment(follow(client, "undo", undo)) == RESTORED
        assert self.restored(database)
        assert database.value("SELECT banned_until = 'infinity' FROM users") is True

    def test_undo_link_is_deleted_with_its_user(self, client, thief, undo, database):
        thief.delete("/user")
        assert fragment(follow(client, "undo", undo)) == EXPIRED
        assert database.count("users") == 0

    def test_thief_cannot_take_the_old_address_by_a_sign_up(self, client, undo, database, outbox):
        assert (
            client.post(
                "/signup", json={"email": "alice@example.com", "password": "Mallorys-Horse-1"}
            ).status_code
            == 201
        )
        assert database.count("users") == 2
        squatter = outbox.last("alice@example.com", "signup").token
        assert fragment(follow(client, "undo", undo)) == RESTORED
        assert self.restored(database)
        assert_dead(client, "signup", squatter)

    @pytest.mark.parametrize("request_for", ["/magiclink", "/otp"])
    def test_thief_cannot_take_the_old_address_by_requesting_a_link(
        self, client, undo, database, request_for
    ):
        client.post(request_for, json={"email": "alice@example.com"})
        assert database.count("users") == 2
        assert fragment(follow(client, "undo", undo)) == RESTORED
        assert self.restored(database)

    @pytest.mark.parametrize("setting", ["AUTH_EMAIL_CONFIRM_REQUIRED=false", "AUTH_AUTOCONFIRM=true"])
    def test_thief_cannot_take_the_old_address_by_an_unproved_sign_up(
        self, make_app, undo, database, setting
    ):
        client = make_app(**dict([setting.split("=")])).test_client()
        squatter = {"email": "alice@example.com", "password": "Mallorys-Horse-1"}
        assert client.post("/signup", json=squatter).status_code == 201
        assert sign_in(client, **squatter).status_code == 200
        assert fragment(follow(client, "undo", undo)) == RESTORED
        assert self.restored(database)

    def test_user_who_proved_the_old_address_meanwhile_keeps_it(self, client, undo, database, outbox):
        client.post("/magiclink", json={"email": "alice@example.com"})
        owner = session_of(client, hand_in(client, "magiclink", outbox.last().token))
        before = database.everything("users", "identities", "sessions")
        assert fragment(follow(client, "undo", undo)) == TAKEN
        assert database.everything("users", "identities", "sessions") == before
        assert owner.get("/user").json["email"] == "alice@example.com"

    def test_undo_leaves_other_users_unchanged(self, client, undo, bob, database):
        session = bob.sign_in()
        before = database.all("SELECT * FROM users WHERE id = %(id)s", id=bob.id)
        follow(client, "undo", undo)
        assert database.all("SELECT * FROM users WHERE id = %(id)s", id=bob.id) == before
        assert session.get("/user").status_code == 200

    def test_owner_can_change_and_undo_again(self, client, undo, alice, outbox, database):
        follow(client, "undo", undo)
        client.post("/magiclink", json={"email": alice.email})
        session = session_of(client, hand_in(client, "magiclink", outbox.last().token))
        again = change(client, session, outbox, NEW)
        assert fragment(follow(client, "undo", again)) == RESTORED
        assert self.restored(database)
