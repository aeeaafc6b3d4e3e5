"""POST /signup: registration by email and password."""

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.answers import (
    A_SENTENCE,
    A_TIMESTAMP,
    AN_ACCESS_TOKEN,
    assert_error,
    assert_ok,
    identity,
    token_response,
    user,
)
from tests.support.cast import PASSWORD, session_of, sign_in
from tests.support.links import press
from tests.support.server import at_once, until_served

DAVE = {"email": "dave@example.com", "password": PASSWORD}


def signed_up(email, **changes):
    """Return the expected user object of an unconfirmed sign-up."""
    return user(
        email,
        email_confirmed_at=None,
        confirmed_at=None,
        confirmation_sent_at=A_TIMESTAMP,
        app_metadata={},
        **changes,
    )


def told_of_an_attempt(mailbox, address):
    return [letter for letter in mailbox.messages_to(address) if "tried to sign up" in letter.subject]


def test_sign_up_creates_an_unconfirmed_user(client, service_role, database):
    response = client.post("/signup", json=DAVE)
    assert_ok(response, signed_up("dave@example.com"), 201)
    # The metadata of a new user comes from its identity.
    kept = client.get(f"/admin/users/{response.json['id']}", headers=service_role)
    assert_ok(kept, response.json | {"app_metadata": {"provider": "email", "providers": ["email"]}})
    assert (database.count("users"), database.count("identities")) == (1, 1)


def test_sign_up_does_not_sign_in(client, database):
    response = client.post("/signup", json=DAVE)
    assert "access_token" not in response.json
    assert "refresh_token" not in response.json
    assert database.count("sessions") == 0
    assert_error(sign_in(client, DAVE["email"]), 403, "email_not_confirmed")


def test_sign_up_mails_one_link_to_the_address(client, mailbox):
    client.post("/signup", json=DAVE)
    (letter,) = mailbox.messages()
    assert letter.to == "dave@example.com"
    assert letter.subject == "Confirm your email address"
    assert mailbox.link_for("dave@example.com").startswith("http://localhost:8000/verify?token=")


def test_sign_up_stores_data_as_user_metadata(client):
    data = {"name": "Dave", "pets": [{"kind": "cat"}, None], "größe": 1.5}
    assert_ok(
        client.post("/signup", json=DAVE | {"data": data}),
        signed_up("dave@example.com", user_metadata=data),
        201,
    )


def test_sign_up_treats_all_spellings_of_an_address_as_one(client, mailbox, database):
    assert_ok(
        client.post("/signup", json=DAVE | {"email": "Dave@EXAMPLE.com"}), signed_up("dave@example.com"), 201
    )
    assert [letter.to for letter in mailbox.messages()] == ["dave@example.com"]
    client.post("/signup", json=DAVE)
    assert database.count("users") == 1


@pytest.mark.parametrize(
    "field",
    [
        "id",
        "role",
        "aud",
        "app_metadata",
        "email_confirmed_at",
        "email_confirm",
        "user_metadata",
        "banned_until",
        "is_admin",
    ],
)
def test_sign_up_ignores_fields_it_may_not_set(client, field):
    value = {"role": "admin", "email_confirm": True, "is_admin": True}.get(field, {"plan": "gold"})
    assert_ok(client.post("/signup", json=DAVE | {field: value}), signed_up("dave@example.com"), 201)


def test_sign_up_ignores_credentials(client, mallory):
    for headers in (
        {"Authorization": "Bearer nonsense"},
        {"apikey": "nonsense"},
        mallory.sign_in().authorization,
    ):
        assert_ok(client.post("/signup", json=DAVE, headers=headers), signed_up("dave@example.com"), 201)


class TestTakenAddress:
    def test_taken_address_gets_the_same_response_as_a_free_one(self, client, alice):
        free = client.post("/signup", json=DAVE)
        taken = client.post("/signup", json=DAVE | {"email": alice.email})
        assert_ok(taken, signed_up(alice.email), 201)
        assert list(taken.json) == list(free.json)
        assert dict(taken.headers).keys() == dict(free.headers).keys()

    def test_taken_address_costs_the_same_statements_and_hashes_as_a_free_one(
        self, client, alice, parts, hashes
    ):
        work = []
        for email in (alice.email, "dave@example.com"):
            statements, before = parts.db.statements_run, hashes.count
            client.post("/signup", json=DAVE | {"email": email})
            work.append((parts.db.statements_run - statements, hashes.count - before))
        assert work[0] == work[1]
        assert work[0][1] == 1

    def test_taken_and_free_address_each_write_one_message(self, client, alice, database):
        for number, email in enumerate((alice.email, "dave@example.com"), 1):
            client.post("/signup", json=DAVE | {"email": email})
            assert database.count("outbox") == number

    def test_response_to_a_taken_address_shows_a_user_that_does_not_exist(self, client, alice, service_role):
        made_up = client.post("/signup", json=DAVE | {"email": alice.email}).json
        assert made_up["id"] != alice.id
        assert_error(client.get(f"/admin/users/{made_up['id']}", headers=service_role), 404, "user_not_found")

    def test_taken_address_leaves_its_user_unchanged(self, client, alice, database):
        session = alice.open_session()
        before = database.everything("users", "identities", "sessions")
        client.post(
            "/signup",
            json=DAVE | {"email": alice.email, "password": "Another-Horse-1", "data": {"name": "Mallory"}},
        )
        assert database.everything("users", "identities", "sessions") == before
        assert session.get("/user").status_code == 200
        assert_error(alice.try_to_sign_in("Another-Horse-1"), 401, "invalid_credentials")

    def test_taken_address_is_mailed_a_notice_without_a_link(self, client, alice, mailbox):
        client.post("/signup", json=DAVE | {"email": alice.email})
        (letter,) = mailbox.messages()
        assert letter.to == alice.email
        assert letter.subject == "Someone tried to sign up with your email address"
        assert "/verify" not in letter.text

    @pytest.mark.parametrize("setting", ["AUTH_AUTOCONFIRM=true", "AUTH_EMAIL_CONFIRM_REQUIRED=false"])
    def test_taken_address_is_409_when_settings_reveal_it_anyway(self, make_app, alice, database, setting):
        client = make_app(**dict([setting.split("=")])).test_client()
        before = database.everything("users", "identities", "sessions", "one_time_tokens")
        response = client.post("/signup", json=DAVE | {"email": alice.email})
        assert_error(response, 409, "user_already_exists")
        assert database.everything("users", "identities", "sessions", "one_time_tokens") == before
        assert database.count("outbox", "kind <> 'none'") == 0


class TestRepeatedSignUp:
    """Two people sign up with one address: each link decides for its own password and data."""

    OTHER = "Another-Horse-1"

    @pytest.fixture
    def links(self, client, mailbox):
        """The links of Mallory, who signs up first, and of Dave."""
        made = []
        for password, name in ((self.OTHER, "Mallory"), (PASSWORD, "Dave")):
            response = client.post("/signup", json=DAVE | {"password": password, "data": {"name": name}})
            assert_ok(response, signed_up("dave@example.com", user_metadata={"name": name}), 201)
            made.append(mailbox.link_for("dave@example.com"))
        return made

    @pytest.mark.parametrize("first", [True, False], ids=["earlier", "later"])
    def test_link_confirms_its_own_password_and_data(self, client, links, database, first):
        used, other = links if first else reversed(links)
        assert "access_token=" in client.get(used).location
        assert "error_code=otp_expired" in client.get(other).location
        right, wrong = (self.OTHER, PASSWORD) if first else (PASSWORD, self.OTHER)
        assert sign_in(client, "dave@example.com", right).status_code == 200
        assert_error(sign_in(client, "dave@example.com", wrong), 401, "invalid_credentials")
        (row,) = database.all("SELECT user_metadata FROM users")
        assert row.user_metadata == {"name": "Mallory" if first else "Dave"}

    def test_link_survives_many_more_sign_ups(self, client, mailbox):
        client.post("/signup", json=DAVE)
        link = mailbox.link_for("dave@example.com")
        for _ in range(5):
            client.post("/signup", json=DAVE | {"password": self.OTHER})
        assert "access_token=" in client.get(link).location
        assert sign_in(client, "dave@example.com", PASSWORD).status_code == 200

    def test_resent_link_does_not_confirm_a_password(self, client, links, mailbox, database):
        client.post("/resend", json={"type": "signup", "email": "dave@example.com"})
        assert "access_token=" in client.get(mailbox.link_for("dave@example.com")).location
        for password in (PASSWORD, self.OTHER):
            assert_error(sign_in(client, "dave@example.com", password), 401, "invalid_credentials")
        assert database.value("SELECT user_metadata FROM users") == {}

    def test_declining_one_sign_up_keeps_the_other(self, client, links, database):
        mallorys, daves = links
        token = parse_qs(urlsplit(mallorys).query)["token"][0]
        assert press(client, "signup", token, action="decline").status_code == 200
        assert "error_code=otp_expired" in client.get(mallorys).location
        assert "access_token=" in client.get(daves).location
        assert sign_in(client, "dave@example.com", PASSWORD).status_code == 200

    def test_one_user_is_created_and_reported(self, client, links, database):
        assert [database.count(table) for table in ("users", "identities")] == [1, 1]
        assert database.count("audit_log", "action = 'user_created'") == 1

    def test_replaced_sign_up_mails_no_notice(self, client, mailbox):
        client.post("/signup", json=DAVE)
        client.post("/signup", json=DAVE)
        assert told_of_an_attempt(mailbox, "dave@example.com") == []

    @pytest.mark.parametrize(
        "state",
        ["email_confirmed_at = now()", "last_sign_in_at = now()", "made_by = 'administrator'"],
        ids=["confirmed", "signed in once", "made by an administrator"],
    )
    def test_user_that_is_not_an_unconfirmed_sign_up_is_not_replaced(self, client, database, mailbox, state):
        client.post("/signup", json=DAVE)
        mailbox.messages()
        database.run(f"UPDATE users SET {state}")
        before = database.everything("users", "identities", "one_time_tokens")
        assert_ok(client.post("/signup", json=DAVE), signed_up("dave@example.com"), 201)
        assert database.everything("users", "identities", "one_time_tokens") == before
        assert len(told_of_an_attempt(mailbox, "dave@example.com")) == 1

    def test_sign_up_is_not_replaced_when_users_may_sign_in_unconfirmed(self, make_app, database):
        client = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false").test_client()
        client.post("/signup", json=DAVE)
        before = database.everything("users", "identities", "one_time_tokens")
        assert_error(client.post("/signup", json=DAVE), 409, "user_already_exists")
        assert database.everything("users", "identities", "one_time_tokens") == before


class TestConcurrentSignUps:
    def test_fifty_concurrent_sign_ups_with_one_address_create_one_user(self, server, database, mailbox):
        answers = at_once(50, lambda _: until_served(lambda: server.post("/signup", json=DAVE)))
        assert [answer.status_code for answer in answers] == [201] * 50
        assert all(answer.json == signed_up("dave@example.com") for answer in answers)
        made = database.one("SELECT id FROM users")
        assert made.id in [answer.json["id"] for answer in answers]
        assert (database.count("identities"), database.count("one_time_tokens")) == (1, 50)
        # No sign-up sent the notice about a taken address.
        assert told_of_an_attempt(mailbox, "dave@example.com") == []
        assert "access_token=" in server.get(mailbox.link_for("dave@example.com")).location

    def test_fifty_concurrent_sign_ups_with_fifty_addresses_create_fifty_users(self, server, database):
        answers = at_once(
            50,
            lambda number: until_served(
                lambda: server.post("/signup", json=DAVE | {"email": f"user{number}@example.com"})
            ),
        )
        assert [answer.status_code for answer in answers] == [201] * 50
        assert {answer.json["id"] for answer in answers} == {
            row.id for row in database.all("SELECT id FROM users")
        }

    def test_sign_up_and_the_link_it_replaces_do_not_deadlock(self, client, app, database, mailbox):
        old = client.post("/signup", json=DAVE).json
        link = mailbox.link_for("dave@example.com")
        # The sign-up queues for the user's row first, the link second; then both continue.
        with database.locked("users", old["id"]) as lock:
            sign_up = lock.start(lambda: app.test_client().post("/signup", json=DAVE))
            verify = lock.start(lambda: app.test_client().get(link))
        assert sign_up.result().status_code == 201
        assert verify.result().status_code == 303
        assert database.count("users") == 1


class TestAutoconfirm:
    @pytest.fixture
    def client(self, make_app):
        return make_app(AUTH_AUTOCONFIRM="true").test_client()

    def test_autoconfirm_signs_the_user_in(self, client):
        response = client.post("/signup", json=DAVE | {"data": {"name": "Dave"}})
        confirmed = user("dave@example.com", user_metadata={"name": "Dave"}, last_sign_in_at=A_TIMESTAMP)
        assert_ok(response, confirmed | {"app_metadata": {}} | token_response(confirmed), 201)
        assert response.json["user"]["id"] == response.json["id"]
        assert (
            client.get("/user", headers={"Authorization": f"Bearer {response.json['access_token']}"}).json
            == response.json["user"]
        )
        assert (
            client.post(
                "/token?grant_type=refresh_token", json={"refresh_token": response.json["refresh_token"]}
            ).status_code
            == 200
        )

    def test_autoconfirm_sends_no_mail(self, client, mailbox, database):
        client.post("/signup", json=DAVE)
        assert mailbox.messages() == []
        assert database.count("one_time_tokens") == 0

    def test_autoconfirm_does_not_count_as_a_proof_of_the_address(self, client, database):
        client.post("/signup", json=DAVE)
        assert database.value("SELECT email_proved FROM users") is False


def test_unconfirmed_user_signs_in_when_confirmation_is_not_required(make_app, mailbox):
    client = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false").test_client()
    assert_ok(client.post("/signup", json=DAVE), signed_up("dave@example.com"), 201)
    session = session_of(client, sign_in(client, "dave@example.com"))
    assert session.access_token == AN_ACCESS_TOKEN
    assert session.user == user(
        "dave@example.com",
        email_confirmed_at=None,
        confirmed_at=None,
        confirmation_sent_at=A_TIMESTAMP,
        last_sign_in_at=A_TIMESTAMP,
        identities=[identity("email", "dave@example.com", last_sign_in_at=A_TIMESTAMP)],
    )
    assert mailbox.link_for("dave@example.com")


class TestRefusals:
    def refused(self, client, database, parts, body, *error, **members):
        before, hashed = database.everything(), parts.db.statements_run
        assert_error(client.post("/signup", json=body), *error, **members)
        assert database.everything() == before
        assert parts.db.statements_run == hashed

    def test_disabled_sign_up_is_refused(self, make_app, database, parts):
        client = make_app(AUTH_DISABLE_SIGNUP="true").test_client()
        self.refused(client, database, parts, DAVE, 403, "signup_disabled")

    def test_sign_up_by_email_is_refused_when_email_is_disabled(self, make_app, database, parts):
        client = make_app(AUTH_EMAIL_ENABLED="false").test_client()
        self.refused(client, database, parts, DAVE, 400, "email_provider_disabled")

    @pytest.mark.parametrize(
        ("field", "details"),
        [("email", "email: give either an email or a phone"), ("password", "password: is required")],
    )
    def test_missing_field_is_400(self, client, database, parts, field, details):
        body = {name: value for name, value in DAVE.items() if name != field}
        self.refused(client, database, parts, body, 400, "validation_failed", details=details)

    def test_invalid_email_is_400(self, client, database, parts):
        self.refused(
            client, database, parts, DAVE | {"email": "dave"}, 400, "validation_failed", details=A_SENTENCE
        )

    def test_response_names_all_invalid_fields(self, client):
        response = client.post("/signup", json={"email": 1, "data": []})
        assert_error(
            response,
            400,
            "validation_failed",
            details="data: must be an object; email: must be a string; password: is required",
        )

    def test_weak_password_is_422(self, client, database, parts):
        weak = {"reasons": ["length", "characters"]}
        details = (
            "password: must be at least 8 characters and"
            " contain at least one character of each: uppercase, numbers, symbols"
        )
        self.refused(
            client,
            database,
            parts,
            DAVE | {"password": "weak"},
            422,
            "weak_password",
            details=details,
            weak_password=weak,
        )

    @pytest.mark.parametrize("email", ["alice@example.com", "dave@example.com"], ids=["taken", "free"])
    def test_oversized_data_is_400(self, client, database, alice, email):
        before = database.everything()
        response = client.post("/signup", json=DAVE | {"email": email, "data": {"x": "y" * 1016}})
        assert_error(response, 400, "validation_failed", details=A_SENTENCE)
        assert database.everything() == before

    @pytest.mark.parametrize("path", ["/signup", "/magiclink", "/otp"])
    @pytest.mark.parametrize("letter", ["y", "ü", "☃"])
    def test_stranger_stores_at_most_1_kib(self, client, database, path, letter):
        room = (1024 - len('{"x": ""}')) // len(letter.encode())
        response = client.post(path, json=DAVE | {"data": {"x": letter * (room + 1)}})
        assert_error(response, 400, "validation_failed", details="data: must be at most 1 KiB as JSON")
        assert database.count("users") == 0
        assert client.post(path, json=DAVE | {"data": {"x": letter * room}}).status_code in (200, 201)
        assert database.value("SELECT user_metadata FROM users") == {"x": letter * room}

    def test_numbers_that_postgres_writes_out_are_limited_too(self, client, database):
        response = client.post("/signup", json=DAVE | {"data": {"x": [1e300] * 100}})
        assert_error(response, 400, "validation_failed", details="data: must be at most 8 KiB as JSON")
        assert database.count("users") == 0


class TestRedirectTo:
    def link(self, client, mailbox):
        response = client.get(mailbox.link_for("dave@example.com"))
        assert response.status_code == 303
        return response.location.split("#")[0]

    def test_link_redirects_to_the_site_by_default(self, make_app, mailbox):
        client = make_app(AUTH_SITE_URL="https://app.example.com/start").test_client()
        client.post("/signup", json=DAVE)
        assert self.link(client, mailbox) == "https://app.example.com/start"

    def test_link_redirects_to_the_target_of_the_body(self, make_app, mailbox):
        client = make_app(AUTH_SITE_URL="https://app.example.com").test_client()
        client.post("/signup", json=DAVE | {"redirect_to": "https://app.example.com/welcome?from=signup"})
        assert self.link(client, mailbox) == "https://app.example.com/welcome?from=signup"

    def test_link_redirects_to_the_target_of_the_query(self, make_app, mailbox):
        client = make_app(AUTH_SITE_URL="https://app.example.com").test_client()
        client.post("/signup?redirect_to=https%3A%2F%2Fapp.example.com%2Fwelcome", json=DAVE)
        assert self.link(client, mailbox) == "https://app.example.com/welcome"

    def test_link_redirects_to_the_site_when_the_target_is_not_allowed(self, make_app, mailbox):
        client = make_app(AUTH_SITE_URL="https://app.example.com").test_client()
        assert client.post("/signup", json=DAVE | {"redirect_to": "https://evil.example"}).status_code == 201
        assert self.link(client, mailbox) == "https://app.example.com"
