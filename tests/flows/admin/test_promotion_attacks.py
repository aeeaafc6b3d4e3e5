"""Attacks on a promotion by the holder of an administrative key, who hides what it has set behind further steps."""

import pytest

from auth.delivery import janitor
from sql import queries
from tests.support import oauth, passkeys
from tests.support.admin_keys import make_admin_key
from tests.support.answers import assert_ok
from tests.support.authenticator import Authenticator
from tests.support.links import CHALLENGE, ON_ITS_WAY, PHONE, VERIFIER, hand_in, press, type_in
from tests.support.links import fragment as fragment_of
from tests.support.server import at_once
from tests.support.users import MALLORY, Session, session_of, sign_up_anonymously

pytest_plugins = ["tests.support.oauth_fixtures"]
PLANTED = "Planted-Horse-1"
GOOGLE = {"sub": "mallory", "email": "mallory@gmail.example", "email_verified": True, "name": "Mallory"}
# Addresses of the holder's own.
OWN_ADDRESSES = {"email": "mallory@new.example", "phone": "+4915100000077"}


@pytest.fixture
def client(service):
    return service.client


@pytest.fixture(autouse=True)
def _people(google) -> None:
    google.person = GOOGLE


def promote(client, service_role, user_id, **body):
    return client.put(f"/admin/users/{user_id}", json={"role": "admin", **body}, headers=service_role)


def link_of(client, parts, email, **body):
    """Return the token of a link that an administrative key has generated."""
    key = make_admin_key(parts, "links", name="mailing")
    body = {"type": "magiclink", "email": email} | body
    response = client.post("/admin/generate_link", json=body, headers=key.headers)
    assert response.status_code == 200, response.text
    return response.json["hashed_token"]


def keys_session(client, parts, person):
    """Return a session that the link of an administrative key has opened."""
    return session_of(client, hand_in(client, "magiclink", link_of(client, parts, person.email)))


def assert_refused(answer, kind):
    assert (answer.status_code, answer.json.get("error_code")) == (400, "validation_failed"), answer.text
    assert answer.json["msg"].startswith(f"An administrative key has set this {kind}: ")


class TestChains:
    """What the session of a key's link has set opens a second session, which sets a passkey."""

    @pytest.fixture
    def first_session(self, service, alice):
        return keys_session(service.client, service.parts, alice)

    def open_second_session(self, way, service, first_session, alice, google, outbox):
        """Return a session that something set in the first one has opened."""
        client = service.client
        if way == "passkey":
            return passkeys.sign_in(client, passkeys.register(first_session)[0])
        if way == "password":
            assert first_session.put("/user", json={"password": PLANTED}).status_code == 200
            return alice.sign_in(PLANTED, client)
        if way == "phone code":
            assert first_session.put("/user", json={"phone": PHONE}).status_code == 200
            assert type_in(client, "phone_change", PHONE, outbox.last(to=PHONE).code).status_code == 200
            assert_ok(client.post("/otp", json={"phone": PHONE}), ON_ITS_WAY)
            return session_of(client, type_in(client, "sms", PHONE, outbox.last(kind="sms").code))
        if way == "recovery":
            assert first_session.put("/user", json={"email": MALLORY}).status_code == 200
            assert type_in(client, "email_change", MALLORY, outbox.last(to=MALLORY).code).status_code == 200
            assert_ok(client.post("/recover", json={"email": MALLORY}), ON_ITS_WAY)
            return session_of(client, type_in(client, "recovery", MALLORY, outbox.last(kind="recovery").code))
        oauth.link(service, first_session, "google")
        if way == "identity":
            return service.signed_in("google")
        if way == "id_token":
            body = {"provider": "google", "id_token": google.id_token()}
            return session_of(client, client.post("/token?grant_type=id_token", json=body))
        challenge = {"code_challenge": CHALLENGE, "code_challenge_method": "s256"}
        code = oauth.query(service.sign_in("google", **challenge))["code"]
        return session_of(
            client, client.post("/token?grant_type=pkce", json={"auth_code": code, "code_verifier": VERIFIER})
        )

    @pytest.mark.parametrize(
        "way",
        ["passkey", "password", "phone code", "recovery", "identity", "id_token", "code of an identity"],
    )
    def test_passkey_of_a_second_session_ends_with_the_promotion(
        self, service, service_role, first_session, alice, google, outbox, way
    ):
        session = self.open_second_session(way, service, first_session, alice, google, outbox)
        passkey, _ = passkeys.register(session)
        # The operator takes the addresses away that a key has set.
        addresses = {"email": alice.email, "email_confirm": True, "phone": None}
        response = promote(service.client, service_role, alice.id, **addresses)
        assert response.status_code == 200, response.text
        remaining = {"email"} if way == "password" else {"email", "password"}
        assert {way["type"] for way in response.json["ways_to_sign_in"]} == remaining
        assert passkeys.sign_in_response(service.client, passkey).status_code != 200
        assert session.get("/admin/users").status_code in (401, 403)

    def test_passkey_of_a_browser_that_opened_the_link_ends_with_the_promotion(
        self, client, parts, service_role, alice
    ):
        tokens = fragment_of(press(client, "magiclink", link_of(client, parts, alice.email)))
        session = Session(client, tokens["access_token"], tokens["refresh_token"], {})
        passkey, _ = passkeys.register(session)
        assert promote(client, service_role, alice.id).status_code == 200
        assert passkeys.sign_in_response(client, passkey).status_code != 200

    def test_nothing_that_is_added_during_the_promotion_stays(
        self, service, service_role, first_session, alice, google, database
    ):
        client, key = service.client, make_admin_key(service.parts, "links", "users:write")
        body = {"type": "magiclink", "email": alice.email}
        link = client.post("/admin/generate_link", json=body, headers=key.headers).json
        authenticators = [Authenticator() for _ in range(6)]
        registrations = [
            first_session.post("/passkeys/registration/options", json={}).json for _ in authenticators
        ]

        def promote_or_attack(number):
            if number == 0:
                return promote(client, service_role, alice.id)
            if number % 4 == 1:
                credential = authenticators[number // 4].create(registrations[number // 4]["options"])
                body = {"challenge_id": registrations[number // 4]["challenge_id"], "credential": credential}
                return first_session.post("/passkeys/registration/verify", json=body)
            if number % 4 == 2:
                return hand_in(client, "magiclink", link["hashed_token"])
            if number % 4 == 3:
                path = f"/admin/users/{alice.id}"
                return client.put(path, json={"password": PLANTED}, headers=key.headers)
            return first_session.put("/user", json={"password": PLANTED})

        answers = at_once(24, promote_or_attack)
        assert answers[0].status_code == 200, answers[0].text
        types = {way["type"] for way in answers[0].json["ways_to_sign_in"]}
        assert types <= {"email", "password"}
        assert database.count("sessions", "ended_at IS NULL") == database.count("factors") == 0
        assert alice.try_to_sign_in(PLANTED, client).status_code == 401
        for authenticator in authenticators:
            assert passkeys.sign_in_response(client, authenticator).status_code != 200


class TestPendingAddress:
    """A change that a key or its session has asked for, and that another message confirms."""

    def confirm_again(self, client, outbox, kind):
        response = client.post("/resend", json={"type": f"{kind}_change", kind: OWN_ADDRESSES[kind]})
        assert response.status_code == 200, response.text
        return type_in(
            client, f"{kind}_change", OWN_ADDRESSES[kind], outbox.last(to=OWN_ADDRESSES[kind]).code
        )

    @pytest.mark.parametrize("kind", ["email", "phone"])
    @pytest.mark.parametrize("age", ["valid", "expired"])
    def test_pending_address_of_a_keys_session_stays_the_keys_when_its_message_is_sent_again(
        self, client, service_role, alice, parts, outbox, database, kind, age
    ):
        session = keys_session(client, parts, alice)
        assert session.put("/user", json={kind: OWN_ADDRESSES[kind]}).status_code == 200
        if age == "expired":
            database.run("UPDATE one_time_tokens SET expires_at = now() - interval '1 second'")
            janitor.keep_house(parts.settings, parts.db, parts.sealer)
        assert self.confirm_again(client, outbox, kind).status_code == 200
        assert_refused(promote(client, service_role, alice.id), kind)
        # Nothing waits for it any more.
        database.run("UPDATE one_time_tokens SET expires_at = now() - interval '1 second'")
        janitor.keep_house(parts.settings, parts.db, parts.sealer)
        assert database.count("one_time_tokens", "by_key") == 0

    def test_pending_address_of_a_keys_link_stays_the_keys_when_its_message_is_sent_again(
        self, client, service_role, alice, parts, outbox
    ):
        link_of(client, parts, alice.email, type="email_change", new_email=OWN_ADDRESSES["email"])
        assert self.confirm_again(client, outbox, "email").status_code == 200
        assert_refused(promote(client, service_role, alice.id), "email")

    def test_pending_address_in_a_backup_is_gone_when_it_is_restored(
        self, client, alice, parts, database, outbox
    ):
        link_of(client, parts, alice.email, type="email_change", new_email=OWN_ADDRESSES["email"])
        queries.void_restored(parts.db, resend=False)
        response = client.post("/resend", json={"type": "email_change", "email": OWN_ADDRESSES["email"]})
        assert (response.status_code, outbox.sent(OWN_ADDRESSES["email"])) == (200, [])
        assert alice.sign_in(client=client).get("/user").json["new_email"] is None

    def test_pending_address_of_the_user_counts_as_the_users_after_one_of_a_key(
        self, client, service_role, alice, parts, outbox
    ):
        link_of(client, parts, alice.email, type="email_change", new_email=MALLORY)
        session = alice.open_session(client)
        assert session.put("/user", json={"email": OWN_ADDRESSES["email"]}).status_code == 200
        assert self.confirm_again(client, outbox, "email").status_code == 200
        assert promote(client, service_role, alice.id).status_code == 200


class TestRestoredAddress:
    """The link of a notice gives an address back as it was."""

    def change(self, client, session, outbox, address):
        assert session.put("/user", json={"email": address}).status_code == 200
        return session_of(client, type_in(client, "email_change", address, outbox.last(to=address).code))

    def test_restored_address_of_a_key_counts_as_the_keys(self, client, service_role, alice, parts, outbox):
        session = self.change(client, keys_session(client, parts, alice), outbox, MALLORY)
        self.change(client, session, outbox, OWN_ADDRESSES["email"])
        press(client, "undo", outbox.last(MALLORY, "email_changed").token)
        assert_ok(client.post("/recover", json={"email": MALLORY}), ON_ITS_WAY)
        assert outbox.last(MALLORY).kind == "recovery"
        assert_refused(promote(client, service_role, alice.id), "email")

    def test_restored_address_of_the_user_counts_as_the_users(
        self, client, service_role, alice, parts, outbox
    ):
        self.change(client, keys_session(client, parts, alice), outbox, MALLORY)
        press(client, "undo", outbox.last(alice.email, "email_changed").token)
        response = promote(client, service_role, alice.id)
        assert (response.status_code, response.json["email"]) == (200, alice.email)


def test_email_of_an_identity_that_a_keys_session_links_counts_as_the_keys(make_service, service_role):
    """An anonymous user gets it with the first identity. The key's holder signs in to one by phone."""
    service = make_service(AUTH_ANONYMOUS_ENABLED="true", AUTH_PHONE_CONFIRM_REQUIRED="false")
    client, key = service.client, make_admin_key(service.parts, "users:write")
    user_id = sign_up_anonymously(client).user["id"]
    credentials = {"phone": PHONE, "password": PLANTED}
    assert client.put(f"/admin/users/{user_id}", json=credentials, headers=key.headers).status_code == 200
    oauth.link(
        service, session_of(client, client.post("/token?grant_type=password", json=credentials)), "google"
    )
    response = client.put(f"/admin/users/{user_id}", json={"phone": None}, headers=key.headers)
    assert response.json["email"] == GOOGLE["email"]
    assert_refused(promote(client, service_role, user_id), "email")
