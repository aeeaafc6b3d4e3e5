"""The first proof of an address: what was there before, and is not proved by it, goes.

Mallory signs up with Dave's address and waits. Whatever she has set by the time that Dave proves the address
must not be hers afterwards. And a sign-up never changes a user that it did not make.
"""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.cast import PASSWORD, session_of, sign_in
from tests.support.links import OTHER_PHONE, PHONE, assert_dead, fragment, hand_in, press, type_in
from tests.support.oauth import Service, external

pytest_plugins = ["tests.support.oauth_fixtures"]
DAVE = "dave@example.com"
MALLORYS = "Mallorys-Horse-1"
# Where sign-ups are signed in before anything is proved.
LAX = {"AUTH_EMAIL_CONFIRM_REQUIRED": "false", "AUTH_PHONE_CONFIRM_REQUIRED": "false"}
AUTOCONFIRM = {"AUTH_AUTOCONFIRM": "true"}


@pytest.fixture
def settings():
    return LAX


@pytest.fixture
def lax(make_app, settings):
    """A client of a service that lets in whoever signs up."""
    return make_app(**settings).test_client()


@pytest.fixture
def mallory(lax):
    """Mallory's session, as a user with Dave's email."""
    assert lax.post("/signup", json={"email": DAVE, "password": MALLORYS}).status_code == 201
    return session_of(lax, sign_in(lax, DAVE, MALLORYS))


def by_magiclink(client, outbox, service_role):
    client.post("/magiclink", json={"email": DAVE})
    return hand_in(client, "magiclink", outbox.last(DAVE, "magiclink").token)


def by_code(client, outbox, service_role):
    client.post("/otp", json={"email": DAVE})
    return type_in(client, "email", DAVE, outbox.last(DAVE, "magiclink").code)


def by_recovery(client, outbox, service_role):
    client.post("/recover", json={"email": DAVE})
    return hand_in(client, "recovery", outbox.last(DAVE, "recovery").token)


def by_generated_link(client, outbox, service_role):
    link = client.post(
        "/admin/generate_link", json={"type": "magiclink", "email": DAVE}, headers=service_role
    ).json
    return hand_in(client, "magiclink", link["hashed_token"])


@pytest.mark.parametrize(
    ("settings", "prove"),
    [(LAX, by_magiclink), (LAX, by_code), (AUTOCONFIRM, by_recovery), (AUTOCONFIRM, by_generated_link)],
)
class TestByOtherMeansThanTheSignUp:
    def test_its_password_is_dropped(self, lax, mallory, outbox, service_role, prove):
        dave = session_of(lax, prove(lax, outbox, service_role))
        assert_error(sign_in(lax, DAVE, MALLORYS), 401, "invalid_credentials")
        assert dave.put("/user", json={"password": PASSWORD}).status_code == 200
        assert sign_in(lax, DAVE, PASSWORD).status_code == 200

    def test_its_sessions_end(self, lax, mallory, outbox, service_role, prove):
        dave = session_of(lax, prove(lax, outbox, service_role))
        assert_error(mallory.get("/user"), 401, "session_not_found")
        assert_error(mallory.refresh(), 400, "refresh_token_not_found")
        assert dave.get("/user").status_code == 200

    def test_its_phone_and_other_identities_are_dropped(
        self, lax, mallory, outbox, service_role, database, prove
    ):
        mallory.put("/user", json={"phone": PHONE})
        assert type_in(lax, "phone_change", PHONE, outbox.last(PHONE).code).status_code == 200
        id = database.value("SELECT id FROM users")
        database.run(
            "INSERT INTO identities (user_id, provider, subject, identity_data) VALUES (%(id)s, 'google', '1', '{\"sub\": \"1\"}')",
            id=id,
        )
        dave = session_of(lax, prove(lax, outbox, service_role))
        expected = dave.get("/user").json
        assert (expected["phone"], expected["phone_confirmed_at"], expected["app_metadata"]) == (
            None,
            None,
            {"provider": "email", "providers": ["email"]},
        )
        assert expected["identities"] == [identity("email", DAVE, last_sign_in_at=A_TIMESTAMP)]
        assert database.all("SELECT provider FROM identities") == [("email",)]
        assert_error(
            lax.post("/token?grant_type=password", json={"phone": PHONE, "password": MALLORYS}),
            401,
            "invalid_credentials",
        )

    def test_its_pending_changes_are_dropped(self, lax, mallory, outbox, service_role, prove):
        mallory.put("/user", json={"email": "mallory@evil.example", "phone": PHONE})
        dave = session_of(lax, prove(lax, outbox, service_role)).get("/user").json
        assert (dave["new_email"], dave["new_phone"]) == (None, None)
        assert_dead(lax, "email_change", outbox.last("mallory@evil.example").token)
        assert_error(type_in(lax, "phone_change", PHONE, outbox.last(PHONE).code), 403, "otp_expired")

    def test_the_proof_is_what_is_left(self, lax, mallory, outbox, service_role, database, prove):
        assert prove(lax, outbox, service_role).status_code == 200
        row = database.one(
            "SELECT email, email_proved, email_confirmed_at IS NOT NULL AS confirmed, password_hash, made_by FROM users"
        )
        assert tuple(row) == (DAVE, True, True, None, "signup")
        assert database.count("sessions", "ended_at IS NULL") == 1

    def test_it_happens_once(self, lax, mallory, outbox, service_role, prove):
        dave = session_of(lax, prove(lax, outbox, service_role))
        dave.put("/user", json={"password": PASSWORD})
        again = session_of(lax, prove(lax, outbox, service_role))
        assert sign_in(lax, DAVE, PASSWORD).status_code == 200
        assert (dave.get("/user").status_code, again.get("/user").status_code) == (200, 200)


def by_the_sign_ups_own_link(client, outbox, service_role):
    client.post("/resend", json={"type": "signup", "email": DAVE})
    return hand_in(client, "signup", outbox.last(DAVE, "signup").token)


def by_a_provider(client, outbox, service_role):
    return Service(client.application).signed_in("google").get("/user")


def by_an_administrator(client, outbox, service_role):
    return confirm(client, service_role, email_confirm=True)


def by_an_administrators_date(client, outbox, service_role):
    return confirm(client, service_role, email_confirmed_at="2026-01-31T12:00:00Z")


def confirm(client, service_role, **body):
    (found,) = client.get(f"/admin/users?email={DAVE}", headers=service_role).json["data"]
    return client.put(f"/admin/users/{found['id']}", json=body, headers=service_role)


@pytest.mark.parametrize(
    "prove",
    [
        by_the_sign_ups_own_link,
        by_magiclink,
        by_code,
        by_recovery,
        by_generated_link,
        by_a_provider,
        by_an_administrator,
        by_an_administrators_date,
    ],
)
def test_in_each_way_the_same_is_left(make_service, google, outbox, service_role, database, prove):
    client = make_service(**LAX).client
    google.person = {"sub": "dave-at-google", "email": DAVE, "email_verified": True}
    client.post("/signup", json={"email": DAVE, "password": MALLORYS})
    mallory = session_of(client, sign_in(client, DAVE, MALLORYS))
    mallory.put("/user", json={"phone": PHONE})
    assert type_in(client, "phone_change", PHONE, outbox.last(PHONE).code).status_code == 200
    id = mallory.user["id"]
    database.run(
        "INSERT INTO identities (user_id, provider, subject, identity_data) VALUES (%(id)s, 'github', '1', '{\"sub\": \"1\"}')",
        id=id,
    )
    assert (
        mallory.put("/user", json={"email": "mallory@evil.example", "phone": OTHER_PHONE}).status_code == 200
    )

    assert prove(client, outbox, service_role).status_code == 200
    proof = [external("google", "dave-at-google", DAVE, True)] if prove is by_a_provider else []
    identities = [identity("email", DAVE, last_sign_in_at=A_TIMESTAMP), *proof]
    expected = user(
        DAVE, id=id, confirmation_sent_at=A_TIMESTAMP, last_sign_in_at=A_TIMESTAMP, identities=identities
    )
    expected["app_metadata"] = {"provider": "email", "providers": [each["provider"] for each in identities]}
    assert_ok(client.get(f"/admin/users/{id}", headers=service_role), expected)
    row = database.one("SELECT email_proved, phone_proved, password_hash IS NOT NULL FROM users")
    assert row == (True, False, prove is by_the_sign_ups_own_link)
    assert database.count("one_time_tokens", "spent_at IS NULL") == 0
    assert_error(mallory.get("/user"), 401, "session_not_found")


class TestByTheSignUpsOwn:
    """Its link and code prove the sign-up: the password stays. The rest was never proved and goes."""

    @pytest.fixture
    def client(self, make_app):
        return make_app(**LAX).test_client()

    @pytest.mark.parametrize("by", ["link", "code", "page", "the second link", "type email"])
    def test_the_password_stays(self, client, outbox, by):
        client.post("/signup", json={"email": DAVE, "password": PASSWORD})
        if by == "the second link":
            client.post("/resend", json={"type": "signup", "email": DAVE})
        message = outbox.last()
        if by == "code":
            assert type_in(client, "signup", DAVE, message.code).status_code == 200
        elif by == "page":
            assert fragment(press(client, "signup", message.token))["type"] == "signup"
        else:
            assert (
                hand_in(client, "email" if by == "type email" else "signup", message.token).status_code == 200
            )
        assert sign_in(client, DAVE).status_code == 200

    @pytest.fixture
    def mallory(self, client):
        client.post("/signup", json={"email": DAVE, "password": MALLORYS})
        return session_of(client, sign_in(client, DAVE, MALLORYS))

    def test_sessions_of_before_end(self, client, mallory, outbox):
        dave = session_of(client, hand_in(client, "signup", outbox.last(DAVE, "signup").token))
        assert_error(mallory.get("/user"), 401, "session_not_found")
        assert dave.get("/user").status_code == 200

    def test_a_phone_of_before_is_dropped(self, client, mallory, outbox, database):
        mallory.put("/user", json={"phone": PHONE})
        # Which voids the sign-up's link: another one is asked for.
        assert type_in(client, "phone_change", PHONE, outbox.last(PHONE).code).status_code == 200
        client.post("/resend", json={"type": "signup", "email": DAVE})
        after = (
            session_of(client, hand_in(client, "signup", outbox.last(DAVE, "signup").token)).get("/user").json
        )
        assert (after["phone"], after["phone_confirmed_at"], after["app_metadata"]["providers"]) == (
            None,
            None,
            ["email"],
        )
        assert database.all("SELECT provider FROM identities") == [("email",)]

    def test_pending_changes_of_before_are_dropped(self, client, mallory, outbox):
        mallory.put("/user", json={"email": "mallory@evil.example", "phone": PHONE})
        after = (
            session_of(client, hand_in(client, "signup", outbox.last(DAVE, "signup").token)).get("/user").json
        )
        assert (after["new_email"], after["new_phone"]) == (None, None)

    def test_the_link_of_a_sign_up_that_was_replaced_proves_nothing(self, make_app, outbox, database):
        client = make_app().test_client()
        client.post("/signup", json={"email": DAVE, "password": MALLORYS})
        mallorys = outbox.last().token
        client.post("/signup", json={"email": DAVE, "password": PASSWORD})
        assert_dead(client, "signup", mallorys)
        assert hand_in(client, "signup", outbox.last().token).status_code == 200
        assert_error(sign_in(client, DAVE, MALLORYS), 401, "invalid_credentials")
        assert sign_in(client, DAVE, PASSWORD).status_code == 200


def by_sms(client, outbox):
    client.post("/otp", json={"phone": PHONE})
    return session_of(client, type_in(client, "sms", PHONE, outbox.last(PHONE).code))


@pytest.mark.parametrize("settings", [LAX, AUTOCONFIRM])
class TestAPhone:
    @pytest.fixture
    def mallory(self, lax):
        """Mallory's session, as a user with Dave's phone."""
        assert lax.post("/signup", json={"phone": PHONE, "password": MALLORYS}).status_code == 201
        return session_of(
            lax, lax.post("/token?grant_type=password", json={"phone": PHONE, "password": MALLORYS})
        )

    def test_proved_by_a_code_that_signs_in_it_drops_password_and_sessions(self, lax, mallory, outbox):
        dave = by_sms(lax, outbox)
        assert_error(mallory.get("/user"), 401, "session_not_found")
        assert_error(
            lax.post("/token?grant_type=password", json={"phone": PHONE, "password": MALLORYS}),
            401,
            "invalid_credentials",
        )
        assert dave.get("/user").json["phone_confirmed_at"] == A_TIMESTAMP

    def test_an_email_that_mallory_has_added_is_no_way_in_then(self, lax, mallory, outbox):
        """Otherwise she has an account that Dave uses, and that a link to her own mailbox opens."""
        mallory.put("/user", json={"email": "mallory@evil.example"})
        assert hand_in(lax, "email_change", outbox.last("mallory@evil.example").token).status_code == 200
        dave = by_sms(lax, outbox)
        assert_error(mallory.get("/user"), 401, "session_not_found")
        assert_error(sign_in(lax, "mallory@evil.example", MALLORYS), 401, "invalid_credentials")
        lax.post("/magiclink", json={"email": "mallory@evil.example"})
        opened = hand_in(lax, "magiclink", outbox.last("mallory@evil.example", "magiclink").token).json[
            "user"
        ]["id"]
        assert opened != dave.get("/user").json["id"]


class TestAPhoneOfItsOwner:
    def test_proved_by_the_sign_ups_own_code_the_password_stays(self, make_app, outbox):
        client = make_app(**LAX).test_client()
        client.post("/signup", json={"phone": PHONE, "password": PASSWORD})
        assert type_in(client, "sms", PHONE, outbox.last().code).status_code == 200
        assert (
            client.post("/token?grant_type=password", json={"phone": PHONE, "password": PASSWORD}).status_code
            == 200
        )

    def test_a_proved_email_is_not_dropped_by_a_phone_that_its_owner_has_added(
        self, client, alice, outbox, database
    ):
        session = alice.sign_in()
        session.put("/user", json={"phone": PHONE})
        type_in(client, "phone_change", PHONE, outbox.last(PHONE).code)
        by_sms(client, outbox)
        assert session.get("/user").json["email"] == alice.email
        assert alice.try_to_sign_in().status_code == 200

    def test_every_address_keeps_its_identity(self, client, service_role, outbox, database):
        """An administrator has made the user, with both addresses and neither confirmed; the phone is proved
        first.
        """
        made = client.post("/admin/users", json={"email": DAVE, "phone": PHONE}, headers=service_role).json
        after = by_sms(client, outbox).get("/user").json
        assert after["id"] == made["id"]
        providers = [name for name in ("email", "phone") if after[name]]
        assert sorted(entry["provider"] for entry in after["identities"]) == providers
        assert sorted(after["app_metadata"]["providers"]) == providers


class TestASignUpOfATakenAddress:
    """It changes nothing of a user that it did not make, whoever did, and whether or not anything is proved."""

    MAKERS = (
        "admin",
        "unconfirmed",
        "with both",
        "magiclink",
        "otp",
        "invite",
        "generated invite",
        "generated sign-up",
        "confirmed",
        "used",
        "changed",
    )

    def make(self, client, service_role, outbox, maker):
        if maker in ("admin", "unconfirmed", "with both"):
            body = {"email": DAVE, "password": PASSWORD, "email_confirm": maker == "admin"} | (
                {"phone": PHONE} if maker == "with both" else {}
            )
            client.post("/admin/users", json=body, headers=service_role)
        elif maker in ("magiclink", "otp"):
            client.post(f"/{maker}", json={"email": DAVE})
        elif maker == "invite":
            client.post("/admin/invite", json={"email": DAVE}, headers=service_role)
        elif maker.startswith("generated"):
            type = "invite" if maker == "generated invite" else "signup"
            client.post(
                "/admin/generate_link",
                json={"type": type, "email": DAVE, "password": PASSWORD},
                headers=service_role,
            )
        elif maker == "changed":
            client.post("/signup", json={"email": "erin@example.com", "password": PASSWORD})
            session = session_of(client, hand_in(client, "signup", outbox.last().token))
            session.put("/user", json={"email": DAVE})
            hand_in(client, "email_change", outbox.last(DAVE).token)
        else:
            client.post("/signup", json={"email": DAVE, "password": PASSWORD})
            hand_in(client, "signup", outbox.last().token)

    @pytest.mark.parametrize(
        ("maker", "settings"),
        [(maker, {}) for maker in MAKERS]
        + [
            ("unconfirmed", LAX),
            ("magiclink", LAX),
            ("confirmed", LAX),
            ("unconfirmed", AUTOCONFIRM),
            ("magiclink", AUTOCONFIRM),
        ],
    )
    def test_by_email(self, make_app, client, service_role, outbox, database, maker, settings):
        self.make(client, service_role, outbox, maker)
        if maker == "used":
            # It was confirmed, and an administrator has taken that back.
            database.run("UPDATE users SET email_confirmed_at = NULL, email_proved = false")
        before = database.everything("users", "identities", "sessions", "one_time_tokens", "known_networks")
        other = make_app(**settings).test_client() if settings else client
        response = other.post("/signup", json={"email": DAVE, "password": MALLORYS, "data": {"x": 1}})
        assert response.status_code == (409 if settings else 201)
        assert (
            database.everything("users", "identities", "sessions", "one_time_tokens", "known_networks")
            == before
        )
        assert_error(sign_in(other, DAVE, MALLORYS), 401, "invalid_credentials")

    @pytest.mark.parametrize("maker", ["with both", "confirmed phone", "otp"])
    def test_by_phone(self, client, service_role, outbox, database, maker):
        if maker == "otp":
            client.post("/otp", json={"phone": PHONE})
        else:
            self.make(client, service_role, outbox, "with both")
        if maker == "confirmed phone":
            database.run("UPDATE users SET phone_confirmed_at = now(), phone_proved = true")
        before = database.everything("users", "identities", "sessions", "one_time_tokens", "known_networks")
        assert client.post("/signup", json={"phone": PHONE, "password": MALLORYS}).status_code == 201
        assert (
            database.everything("users", "identities", "sessions", "one_time_tokens", "known_networks")
            == before
        )
        assert_error(
            client.post("/token?grant_type=password", json={"phone": PHONE, "password": MALLORYS}),
            401,
            "invalid_credentials",
        )

    def test_a_sign_up_that_is_replaced_takes_nobody_with_it(self, client, alice, outbox, database):
        """Alice waits for Dave's address and for his phone: her pending changes are her own."""
        session = alice.sign_in()
        session.put("/user", json={"email": DAVE, "phone": OTHER_PHONE})
        for _ in range(2):
            client.post("/signup", json={"email": DAVE, "password": PASSWORD})
            client.post("/signup", json={"phone": OTHER_PHONE, "password": PASSWORD})
        after = session.get("/user").json
        assert (after["id"], after["new_email"], after["new_phone"]) == (alice.id, DAVE, OTHER_PHONE)
        assert database.count("users") == 3


def test_an_administrators_confirmation_is_a_proof(client, service_role, outbox, database):
    """So a link afterwards drops nothing: the administrator has vouched for what is there."""
    made = client.post(
        "/admin/users",
        json={"email": DAVE, "password": PASSWORD, "email_confirm": True, "phone": PHONE},
        headers=service_role,
    ).json
    session = session_of(client, sign_in(client, DAVE))
    assert by_magiclink(client, outbox, service_role).json["user"]["id"] == made["id"]
    assert sign_in(client, DAVE).status_code == 200
    both = [identity("email", DAVE, last_sign_in_at=A_TIMESTAMP), identity("phone", PHONE)]
    expected = user(DAVE, id=made["id"], phone=PHONE, last_sign_in_at=A_TIMESTAMP, identities=both)
    assert session.get("/user").json == expected | {
        "app_metadata": {"provider": "email", "providers": ["email", "phone"]}
    }


def test_a_user_that_a_message_made_has_nothing_to_drop(client, outbox, service_role):
    assert by_magiclink(client, outbox, service_role).status_code == 200
    first = session_of(client, by_code(client, outbox, service_role))
    assert by_recovery(client, outbox, service_role).status_code == 200
    assert first.get("/user").status_code == 200
