"""POST /signup: registration by an email or a phone number, and a password."""

from dataclasses import dataclass

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, identity, token_response, user
from tests.support.links import (
    EXPIRED,
    OTHER_PHONE,
    PHONE,
    assert_signed_in,
    decline,
    follow,
    fragment,
    hand_in,
    later,
    press,
    tokens_for,
    type_in,
)
from tests.support.server import at_once, until_served
from tests.support.users import NEW_PASSWORD, PASSWORD, session_of

ROWS = ("users", "identities", "sessions", "one_time_tokens")
# Settings that reveal whether an address is taken, by channel.
REVEALING = ["AUTH_AUTOCONFIRM", "AUTH_{}_CONFIRM_REQUIRED"]


@dataclass(frozen=True)
class Channel:
    """The differences between sign-ups by email and by phone."""

    name: str
    address: str
    free: str
    # The type of verification of its code, and the code's lifetime in seconds.
    type: str
    lifetime: int
    # The type of its message for POST /resend.
    resent: str

    @property
    def body(self):
        return {self.name: self.address, "password": PASSWORD}

    def sign_in(self, client, password=PASSWORD):
        return client.post("/token?grant_type=password", json=self.body | {"password": password})

    def confirm(self, client, code):
        return type_in(client, self.type, self.address, code)

    def signed_up_user(self, **changes):
        absent = dict.fromkeys(["email", "email_confirmed_at", "confirmed_at"])
        members = {self.name: self.address, "identities": [identity(self.name, self.address)]}
        return (
            user("") | absent | {"confirmation_sent_at": A_TIMESTAMP, "app_metadata": {}} | members | changes
        )

    def confirmed_user(self, **changes):
        names = [f"{self.name}_confirmed_at", "confirmed_at", "last_sign_in_at"]
        members = {
            "app_metadata": {"provider": self.name, "providers": [self.name]},
            "identities": [identity(self.name, self.address, last_sign_in_at=A_TIMESTAMP)],
        }
        return self.signed_up_user() | dict.fromkeys(names, A_TIMESTAMP) | members | changes


BY_EMAIL = Channel("email", "dave@example.com", "erin@example.com", "signup", 3600, "signup")
BY_PHONE = Channel("phone", PHONE, OTHER_PHONE, "sms", 600, "sms")
DAVE = BY_EMAIL.body


@pytest.fixture(params=[BY_EMAIL, BY_PHONE], ids=lambda channel: channel.name)
def channel(request):
    return request.param


def test_code_confirms_and_signs_in_the_user_of_a_sign_up(channel, client, service_role, outbox, database):
    data = {"name": "Dave", "pets": [{"kind": "cat"}, None], "größe": 1.5}
    response = client.post("/signup", json=channel.body | {"data": data})
    assert_ok(response, channel.signed_up_user(user_metadata=data), 201)
    # The metadata of a new user comes from its identity.
    id = response.json["id"]
    metadata = {"provider": channel.name, "providers": [channel.name]}
    user_response = client.get(f"/admin/users/{id}", headers=service_role)
    assert_ok(user_response, response.json | {"app_metadata": metadata})
    assert database.one(f"SELECT made_by, {channel.name}_proved FROM users") == ("signup", False)
    identity_data = {"sub": id, channel.name: channel.address}
    assert database.all("SELECT provider, identity_data FROM identities") == [(channel.name, identity_data)]
    assert database.count("sessions") == 0
    assert_error(channel.sign_in(client), 403, f"{channel.name}_not_confirmed")
    (message,) = outbox.sent()
    assert (message.kind, message.to, message.lifetime) == ("signup", channel.address, channel.lifetime)
    assert (message.channel, message.token is None) == (
        ("email", False) if channel is BY_EMAIL else ("sms", True)
    )
    assert len(message.code) == 6
    confirmation = channel.confirm(client, message.code)
    assert_signed_in(client, confirmation, channel.confirmed_user(id=id, user_metadata=data))


class TestTakenAddress:
    @pytest.fixture
    def owner(self, client, service_role):
        """The user who has the address of either channel."""
        body = DAVE | {"phone": PHONE, "email_confirm": True, "phone_confirm": True}
        return client.post("/admin/users", json=body, headers=service_role).json

    def test_taken_address_gets_the_same_response_as_a_free_one_without_effect(
        self, channel, client, owner, outbox, database, service_role
    ):
        session = session_of(client, channel.sign_in(client))
        before = database.everything(*ROWS)
        taken_response = client.post(
            "/signup", json=channel.body | {"password": NEW_PASSWORD, "data": {"name": "Mallory"}}
        )
        assert_ok(taken_response, channel.signed_up_user(user_metadata={"name": "Mallory"}), 201)
        assert taken_response.json["id"] != owner["id"]
        user_response = client.get(f"/admin/users/{taken_response.json['id']}", headers=service_role)
        assert_error(user_response, 404, "user_not_found")
        assert database.everything(*ROWS) == before
        assert session.get("/user").status_code == 200
        assert_error(channel.sign_in(client, NEW_PASSWORD), 401, "invalid_credentials")
        messages = [(message.kind, message.to, message.token, message.code) for message in outbox.sent()]
        by_mail = channel is BY_EMAIL
        assert messages == ([("signup_attempt", channel.address, None, None)] if by_mail else [])
        assert outbox.suppressed() == (0 if by_mail else 1)
        free_response = client.post("/signup", json=channel.body | {channel.name: channel.free})
        assert list(free_response.json) == list(taken_response.json)
        assert list(free_response.headers.keys()) == list(taken_response.headers.keys())

    @pytest.mark.parametrize("setting", REVEALING)
    def test_taken_address_is_409_if_settings_reveal_it(self, make_app, channel, owner, database, setting):
        value = "true" if setting == "AUTH_AUTOCONFIRM" else "false"
        client = make_app(**{setting.format(channel.name.upper()): value}).test_client()
        before = database.everything(*ROWS)
        assert_error(client.post("/signup", json=channel.body), 409, "user_already_exists")
        assert database.everything(*ROWS) == before
        assert database.count("outbox", "kind <> 'none'") == 0


class TestDoubleClick:
    """One person signs up twice: the second request has the same password."""

    @pytest.fixture(params=["code", "earlier link", "later link", "resent code"])
    def proof(self, request, channel, client, outbox):
        """Proves the address after two equal sign-ups."""

        def prove():
            if request.param == "resent code":
                client.post("/resend", json={"type": channel.resent, channel.name: channel.address})
            if "link" in request.param and channel is BY_EMAIL:
                earlier, later = (message.token for message in outbox.sent())
                return hand_in(client, "signup", earlier if request.param == "earlier link" else later)
            return channel.confirm(client, outbox.last().code)

        return prove

    def test_equal_passwords_are_one_sign_up(self, client, channel, proof):
        for _ in range(2):
            client.post("/signup", json=channel.body | {"data": {"name": "Dave"}})
        assert_error(channel.sign_in(client), 403, f"{channel.name}_not_confirmed")
        assert_error(channel.sign_in(client, NEW_PASSWORD), 401, "invalid_credentials")
        confirmation = proof()
        assert (confirmation.status_code, "password_removed" in confirmation.json) == (200, False)
        assert channel.sign_in(client).json["user"]["user_metadata"] == {"name": "Dave"}

    def test_data_that_differ_are_nobodys_unless_their_link_shows_whose_they_are(
        self, client, channel, proof
    ):
        for name in ("Dave", "Mallory"):
            client.post("/signup", json=channel.body | {"data": {"name": name}})
        assert proof().json["user"]["user_metadata"] == {}
        assert channel.sign_in(client).status_code == 200

    def test_first_log_in_gives_the_hash_a_salt_of_its_own(self, client, channel, outbox, database):
        client.post("/signup", json=channel.body)
        channel.confirm(client, outbox.last().code)
        statement = "SELECT password_hash FROM users"
        hashes = [database.value(statement)]
        for _ in range(2):
            assert channel.sign_in(client).status_code == 200
            hashes.append(database.value(statement))
        assert hashes[0] != hashes[1] == hashes[2]

    def test_salt_is_that_of_the_address_and_the_secret_key(self, make_app, channel):
        def hash_of(app, password, address):
            return app.extensions["latchkey"].passwords.hash(password, address)

        app, other = make_app(), make_app(AUTH_SECRET_KEY="another secret key of 32 characters")
        first = hash_of(app, PASSWORD, channel.address)
        assert hash_of(app, PASSWORD, channel.address) == first
        assert hash_of(app, PASSWORD, channel.free)[:38] != first[:38]
        assert hash_of(other, PASSWORD, channel.address)[:38] != first[:38]


class TestRepeatedSignUp:
    """Two people sign up with one address: only the page of a link confirms its own password and data."""

    @pytest.fixture
    def links(self, client, outbox):
        """The tokens of Mallory, who signs up first, and of Dave."""
        for password, name in ((NEW_PASSWORD, "Mallory"), (PASSWORD, "Dave")):
            response = client.post("/signup", json=DAVE | {"password": password, "data": {"name": name}})
            assert_ok(response, BY_EMAIL.signed_up_user(user_metadata={"name": name}), 201)
        return [message.token for message in outbox.sent()]

    @pytest.mark.parametrize("is_first", [True, False], ids=["earlier", "later"])
    def test_page_of_a_link_confirms_its_own_password_and_data(self, client, links, database, is_first):
        used_link, other_link = links if is_first else reversed(links)
        assert fragment(press(client, "signup", used_link)) == tokens_for("signup")
        assert fragment(follow(client, "signup", other_link)) == EXPIRED
        right_password, wrong_password = (NEW_PASSWORD, PASSWORD) if is_first else (PASSWORD, NEW_PASSWORD)
        assert BY_EMAIL.sign_in(client, right_password).status_code == 200
        assert_error(BY_EMAIL.sign_in(client, wrong_password), 401, "invalid_credentials")
        name = "Mallory" if is_first else "Dave"
        assert database.all("SELECT user_metadata FROM users") == [({"name": name},)]
        assert database.count("identities") == 1
        assert database.count("audit_log", "action = 'user_created'") == 1

    @pytest.mark.parametrize("between", ["nothing", "resend", "expiry"])
    @pytest.mark.parametrize(
        "passwords",
        [(NEW_PASSWORD, PASSWORD), (PASSWORD, NEW_PASSWORD)],
        ids=["stranger first", "owner first"],
    )
    def test_code_confirms_the_address_and_neither_password_nor_data(
        self, channel, client, outbox, database, passwords, between
    ):
        """Its message looks like those of the others, so the owner does not know whose it is."""
        first = client.post("/signup", json=channel.body | {"password": passwords[0], "data": {"x": 1}}).json
        old_code = outbox.last().code
        if between == "resend":
            client.post("/resend", json={"type": channel.resent, channel.name: channel.address})
        elif between == "expiry":
            later(database, hours=2)
        client.post("/signup", json=channel.body | {"password": passwords[1], "data": {"name": "Mallory"}})
        assert_error(channel.confirm(client, old_code), 403, "otp_expired")
        # The newest is told to confirm the address.
        assert_error(channel.sign_in(client, passwords[1]), 403, f"{channel.name}_not_confirmed")
        assert_error(channel.sign_in(client, passwords[0]), 401, "invalid_credentials")
        confirmation = channel.confirm(client, outbox.last().code)
        expected = channel.confirmed_user(id=first["id"])
        session = assert_signed_in(client, confirmation, expected, password_removed=True)
        for password in passwords:
            assert_error(channel.sign_in(client, password), 401, "invalid_credentials")
        assert session.put("/user", json={"password": "Fresh-Horse-2"}).status_code == 200
        assert channel.sign_in(client, "Fresh-Horse-2").status_code == 200

    def test_link_without_its_page_confirms_neither_password_nor_data(self, client, links, database):
        """An application that sends the token has not shown whose sign-up it is."""
        assert hand_in(client, "signup", links[1]).json["user"]["user_metadata"] == {}
        assert database.value("SELECT password_hash FROM users") is None

    @pytest.mark.parametrize("quota", ["1 per hour", "9 per hour"])
    def test_code_confirms_no_password_after_a_request_to_sign_in(
        self, make_app, channel, outbox, database, quota
    ):
        """A stranger signs up and resends the code after the owner has requested one, perhaps in vain."""
        settings = {
            "AUTH_RATE_LIMITS_ENABLED": "true",
            "AUTH_RATE_LIMIT_MESSAGES_PER_RECIPIENT": quota,
            "AUTH_RATE_LIMIT_SMS_PER_RECIPIENT": quota,
        }
        client = make_app(**settings).test_client()
        client.post("/signup", json=channel.body)
        client.post("/otp", json={channel.name: channel.address})
        client.post("/resend", json={"type": channel.resent, channel.name: channel.address})
        assert outbox.last().kind == "signup"
        code_type = "email" if channel is BY_EMAIL else "sms"
        assert type_in(client, code_type, channel.address, outbox.last().code).status_code == 200
        assert database.value("SELECT password_hash FROM users") is None

    def test_declining_one_sign_up_keeps_the_other(self, client, links):
        mallorys_link, daves_link = links
        assert decline(client, "signup", mallorys_link).status_code == 200
        assert fragment(follow(client, "signup", mallorys_link)) == EXPIRED
        assert fragment(press(client, "signup", daves_link)) == tokens_for("signup")
        assert BY_EMAIL.sign_in(client).status_code == 200


def test_fifty_concurrent_sign_ups_with_one_address_create_one_user(channel, server, database, outbox):
    answers = at_once(50, lambda _: until_served(lambda: server.post("/signup", json=channel.body)))
    assert [answer.status_code for answer in answers] == [201] * 50
    assert all(answer.json == channel.signed_up_user() for answer in answers)
    row = database.one("SELECT id FROM users")
    assert row.id in [answer.json["id"] for answer in answers]
    assert (database.count("identities"), database.count("one_time_tokens")) == (1, 50)
    # No sign-up sent the notice about a taken address.
    assert {message.kind for message in outbox.sent()} == {"signup"}
    assert "password_removed" not in channel.confirm(server, outbox.last().code).json
    assert channel.sign_in(server).status_code == 200


class TestSettings:
    def test_autoconfirm_signs_in_without_a_message_or_a_proof(self, make_app, channel, outbox, database):
        client = make_app(AUTH_AUTOCONFIRM="true").test_client()
        response = client.post("/signup", json=channel.body | {"data": {"name": "Dave"}})
        expected = channel.confirmed_user(confirmation_sent_at=None, user_metadata={"name": "Dave"})
        assert_ok(response, expected | {"app_metadata": {}} | token_response(expected), 201)
        session = session_of(client, response, 201)
        assert session.get("/user").json == session.user
        assert session.user["id"] == response.json["id"]
        assert session.refresh().status_code == 200
        assert channel.sign_in(client).status_code == 200
        assert database.value(f"SELECT {channel.name}_proved FROM users") is False
        assert (outbox.sent(), database.count("one_time_tokens")) == ([], 0)

    def test_unconfirmed_user_signs_in_when_confirmation_is_not_required(self, make_app, channel, outbox):
        client = make_app(**{f"AUTH_{channel.name.upper()}_CONFIRM_REQUIRED": "false"}).test_client()
        assert_ok(client.post("/signup", json=channel.body), channel.signed_up_user(), 201)
        confirmed_at = {f"{channel.name}_confirmed_at": None, "confirmed_at": None}
        session = session_of(client, channel.sign_in(client))
        assert session.get("/user").json == session.user == channel.confirmed_user(**confirmed_at)
        confirmed_user = channel.confirm(client, outbox.last().code).json["user"]
        assert confirmed_user[f"{channel.name}_confirmed_at"] == A_TIMESTAMP

    @pytest.mark.parametrize(
        ("setting", "value", "status", "error_code"),
        [
            ("AUTH_DISABLE_SIGNUP", "true", 403, "signup_disabled"),
            ("AUTH_{}_ENABLED", "false", 400, "{}_provider_disabled"),
        ],
    )
    def test_sign_up_can_be_disabled(self, make_app, channel, database, setting, value, status, error_code):
        client = make_app(**{setting.format(channel.name.upper()): value}).test_client()
        before = database.everything()
        response = client.post("/signup", json=channel.body)
        assert_error(response, status, error_code.format(channel.name))
        assert database.everything() == before


class TestRefusals:
    def test_numbers_that_postgres_writes_out_are_limited_too(self, client, database):
        response = client.post("/signup", json=DAVE | {"data": {"x": [1e300] * 100}})
        assert_error(response, 400, "validation_failed", details="data: must be at most 8 KiB as JSON")
        assert database.count("users") == 0

    @pytest.mark.parametrize("path", ["/signup", "/magiclink", "/otp"])
    @pytest.mark.parametrize("letter", ["y", "ü", "☃"])
    def test_stranger_stores_at_most_1_kib(self, client, database, alice, path, letter):
        space = (1024 - len('{"x": ""}')) // len(letter.encode())
        before = database.everything()
        for email in ("dave@example.com", alice.email):
            body = DAVE | {"email": email, "data": {"x": letter * (space + 1)}}
            details = "data: must be at most 1 KiB as JSON"
            assert_error(client.post(path, json=body), 400, "validation_failed", details=details)
        assert database.everything() == before
        assert client.post(path, json=DAVE | {"data": {"x": letter * space}}).status_code in (200, 201)
        statement = "SELECT user_metadata FROM users WHERE email = 'dave@example.com'"
        assert database.value(statement) == {"x": letter * space}
