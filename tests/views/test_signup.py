"""POST /signup: registration by an email or a phone number, and a password."""

from dataclasses import dataclass

import pytest

from tests.support.answers import (
    A_SENTENCE,
    A_TIMESTAMP,
    A_UUID,
    assert_error,
    assert_ok,
    identity,
    token_response,
    user,
)
from tests.support.cases import cases
from tests.support.links import (
    EXPIRED,
    ON_ITS_WAY,
    OTHER_PHONE,
    PHONE,
    assert_signed_in,
    assert_signs_in,
    follow,
    fragment,
    later,
    press,
    type_in,
)
from tests.support.server import at_once, until_served
from tests.support.users import PASSWORD, session_of

NEW = "Another-Horse-1"
ROWS = ("users", "identities", "sessions", "one_time_tokens")
# Settings that tell whether an address is taken, by the channel.
REVEALING = ["AUTH_AUTOCONFIRM", "AUTH_{}_CONFIRM_REQUIRED"]


@dataclass(frozen=True)
class Channel:
    """What differs between a sign-up by email and one by phone."""

    name: str
    address: str
    free: str
    # The type of verification of its code, and the code's lifetime in seconds.
    type: str
    lifetime: int

    @property
    def body(self):
        return {self.name: self.address, "password": PASSWORD}

    def sign_in(self, client, password=PASSWORD):
        return client.post("/token?grant_type=password", json=self.body | {"password": password})

    def confirm(self, client, code):
        return type_in(client, self.type, self.address, code)

    def signed_up(self, **changes):
        """Return the expected user object of an unconfirmed sign-up."""
        none = dict.fromkeys(["email", "email_confirmed_at", "confirmed_at"])
        own = {self.name: self.address, "identities": [identity(self.name, self.address)]}
        return user("") | none | {"confirmation_sent_at": A_TIMESTAMP, "app_metadata": {}} | own | changes

    def confirmed(self, **changes):
        """Return the expected user object after confirmation and sign-in."""
        names = [f"{self.name}_confirmed_at", "confirmed_at", "last_sign_in_at"]
        own = {
            "app_metadata": {"provider": self.name, "providers": [self.name]},
            "identities": [identity(self.name, self.address, last_sign_in_at=A_TIMESTAMP)],
        }
        return self.signed_up() | dict.fromkeys(names, A_TIMESTAMP) | own | changes


BY_EMAIL = Channel("email", "dave@example.com", "erin@example.com", "signup", 3600)
BY_PHONE = Channel("phone", PHONE, OTHER_PHONE, "sms", 600)
DAVE = BY_EMAIL.body


@pytest.fixture(params=[BY_EMAIL, BY_PHONE], ids=lambda channel: channel.name)
def channel(request):
    return request.param


def test_sign_up_creates_an_unconfirmed_user_without_a_session(
    channel, client, service_role, outbox, database
):
    data = {"name": "Dave", "pets": [{"kind": "cat"}, None], "größe": 1.5}
    response = client.post("/signup", json=channel.body | {"data": data})
    assert_ok(response, channel.signed_up(user_metadata=data), 201)
    # The metadata of a new user comes from its identity.
    kept = client.get(f"/admin/users/{response.json['id']}", headers=service_role)
    metadata = {"provider": channel.name, "providers": [channel.name]}
    assert_ok(kept, response.json | {"app_metadata": metadata})
    assert database.one(f"SELECT made_by, {channel.name}_proved FROM users") == ("signup", False)
    of_user = {"sub": response.json["id"], channel.name: channel.address}
    assert database.all("SELECT provider, identity_data FROM identities") == [(channel.name, of_user)]
    assert database.count("sessions") == 0
    assert_error(channel.sign_in(client), 403, f"{channel.name}_not_confirmed")
    (message,) = outbox.sent()
    assert (message.kind, message.to, message.lifetime) == ("signup", channel.address, channel.lifetime)
    assert (message.channel, message.token is None) == (
        ("email", False) if channel is BY_EMAIL else ("sms", True)
    )
    assert len(message.code) == 6


def test_code_confirms_the_address_and_signs_in(channel, client, outbox):
    made = client.post("/signup", json=channel.body).json
    response = channel.confirm(client, outbox.last().code)
    assert_signed_in(client, response, channel.confirmed(id=made["id"]))
    assert channel.sign_in(client).status_code == 200


def test_mail_has_a_link(client, mailbox):
    client.post("/signup", json=DAVE)
    (letter,) = mailbox.messages()
    assert (letter.to, letter.subject) == ("dave@example.com", "Confirm your email address")
    assert mailbox.link_for("dave@example.com").startswith("http://localhost:8000/verify?token=")


def test_code_of_a_phone_is_refused_for_other_types_and_after_ten_minutes(client, outbox, database):
    client.post("/signup", json=BY_PHONE.body)
    code = outbox.last().code
    for type in ("signup", "magiclink", "email", "phone_change", "invite", "recovery", "email_change"):
        assert_error(type_in(client, type, PHONE, code), 403, "otp_expired")
    later(database, secs=590)
    assert BY_PHONE.confirm(client, code).status_code == 200
    client.post("/signup", json=BY_PHONE.body | {"phone": OTHER_PHONE})
    later(database, secs=600)
    assert_error(type_in(client, "sms", OTHER_PHONE, outbox.last().code), 403, "otp_expired")


@pytest.mark.parametrize(
    ("channel", "spelling"),
    [(BY_EMAIL, "Dave@EXAMPLE.com"), (BY_PHONE, "+49 170 1234567"), (BY_PHONE, "+49 (170) 123-45.67")],
    indirect=["channel"],
)
def test_spellings_of_an_address_have_one_user(client, outbox, database, channel, spelling):
    body = channel.body | {channel.name: spelling}
    assert_ok(client.post("/signup", json=body), channel.signed_up(), 201)
    client.post("/signup", json=channel.body)
    assert database.count("users") == 1
    code = outbox.last(channel.address).code
    assert type_in(client, channel.type, spelling, code).status_code == 200
    assert client.post("/token?grant_type=password", json=body).status_code == 200


def test_sign_up_ignores_credentials_and_fields_it_may_not_set(client, mallory):
    gold = {"plan": "gold"}
    fields = {"role": "admin", "email_confirm": True, "is_admin": True, "id": gold, "aud": gold}
    fields |= {"app_metadata": gold, "email_confirmed_at": gold, "user_metadata": gold, "banned_until": gold}
    assert_ok(client.post("/signup", json=DAVE | fields), BY_EMAIL.signed_up(), 201)
    for headers in ({"Authorization": "Bearer x"}, {"apikey": "x"}, mallory.sign_in().authorization):
        assert_ok(client.post("/signup", json=DAVE, headers=headers), BY_EMAIL.signed_up(), 201)


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
        taken = client.post("/signup", json=channel.body | {"password": NEW, "data": {"name": "Mallory"}})
        assert_ok(taken, channel.signed_up(user_metadata={"name": "Mallory"}), 201)
        assert taken.json["id"] != owner["id"]
        shown = client.get(f"/admin/users/{taken.json['id']}", headers=service_role)
        assert_error(shown, 404, "user_not_found")
        assert database.everything(*ROWS) == before
        assert session.get("/user").status_code == 200
        assert_error(channel.sign_in(client, NEW), 401, "invalid_credentials")
        told = [(message.kind, message.to, message.token, message.code) for message in outbox.sent()]
        by_mail = channel is BY_EMAIL
        assert told == ([("signup_attempt", channel.address, None, None)] if by_mail else [])
        assert outbox.suppressed() == (0 if by_mail else 1)
        free = client.post("/signup", json=channel.body | {channel.name: channel.free})
        assert list(free.json) == list(taken.json)
        assert list(free.headers.keys()) == list(taken.headers.keys())

    def test_taken_address_costs_the_same_statements_hashes_and_messages_as_a_free_one(
        self, channel, client, owner, parts, hashes, database
    ):
        work = []
        for address in (channel.address, channel.free):
            before = parts.db.statements_run, hashes.count, database.count("outbox")
            client.post("/signup", json=channel.body | {channel.name: address})
            after = parts.db.statements_run, hashes.count, database.count("outbox")
            work.append([now - then for now, then in zip(after, before, strict=True)])
        assert work[0] == work[1]
        assert work[0][1:] == [1, 1]

    def test_mail_to_a_taken_address_has_no_link(self, client, owner, mailbox):
        client.post("/signup", json=DAVE)
        (letter,) = mailbox.messages()
        assert letter.subject == "Someone tried to sign up with your email address"
        assert "/verify" not in letter.text

    @pytest.mark.parametrize("setting", REVEALING)
    def test_taken_address_is_409_when_settings_reveal_it_anyway(
        self, make_app, channel, owner, database, setting
    ):
        value = "true" if setting == "AUTH_AUTOCONFIRM" else "false"
        client = make_app(**{setting.format(channel.name.upper()): value}).test_client()
        before = database.everything(*ROWS)
        assert_error(client.post("/signup", json=channel.body), 409, "user_already_exists")
        assert database.everything(*ROWS) == before
        assert database.count("outbox", "kind <> 'none'") == 0

    def test_pending_change_to_a_number_does_not_reserve_it(self, client, alice, outbox):
        alice.sign_in().put("/user", json={"phone": PHONE})
        client.post("/signup", json=BY_PHONE.body)
        assert BY_PHONE.confirm(client, outbox.last(kind="signup").code).status_code == 200
        phone_change = outbox.last(kind="phone_change").code
        assert_error(type_in(client, "phone_change", PHONE, phone_change), 403, "otp_expired")


class TestRepeatedSignUp:
    """Two people sign up with one address: each link decides for its own password and data."""

    @pytest.fixture
    def links(self, client, outbox):
        """The tokens of Mallory, who signs up first, and of Dave."""
        for password, name in ((NEW, "Mallory"), (PASSWORD, "Dave")):
            response = client.post("/signup", json=DAVE | {"password": password, "data": {"name": name}})
            assert_ok(response, BY_EMAIL.signed_up(user_metadata={"name": name}), 201)
        return [message.token for message in outbox.sent()]

    @pytest.mark.parametrize("first", [True, False], ids=["earlier", "later"])
    def test_link_confirms_its_own_password_and_data(self, client, links, database, first):
        used, other = links if first else reversed(links)
        assert_signs_in(client, "signup", used)
        assert fragment(follow(client, "signup", other)) == EXPIRED
        right, wrong = (NEW, PASSWORD) if first else (PASSWORD, NEW)
        assert BY_EMAIL.sign_in(client, right).status_code == 200
        assert_error(BY_EMAIL.sign_in(client, wrong), 401, "invalid_credentials")
        name = "Mallory" if first else "Dave"
        assert database.all("SELECT user_metadata FROM users") == [({"name": name},)]
        assert database.count("identities") == 1
        assert database.count("audit_log", "action = 'user_created'") == 1

    def test_newest_code_to_a_phone_confirms_its_own_password_and_data(self, client, outbox):
        first = client.post("/signup", json=BY_PHONE.body | {"data": {"name": "Mallory"}}).json
        old = outbox.last().code
        client.post("/signup", json=BY_PHONE.body | {"password": NEW})
        assert_error(BY_PHONE.confirm(client, old), 403, "otp_expired")
        confirmed = BY_PHONE.confirm(client, outbox.last().code)
        assert_signed_in(client, confirmed, BY_PHONE.confirmed(id=first["id"]))
        assert_error(BY_PHONE.sign_in(client), 401, "invalid_credentials")
        assert BY_PHONE.sign_in(client, NEW).status_code == 200

    def test_link_survives_many_more_sign_ups(self, client, outbox):
        for number in range(6):
            client.post("/signup", json=DAVE | ({"password": NEW} if number else {}))
        assert [message.kind for message in outbox.sent()] == ["signup"] * 6
        assert_signs_in(client, "signup", outbox.sent()[0].token)
        assert BY_EMAIL.sign_in(client).status_code == 200

    def test_resent_link_does_not_confirm_a_password(self, client, links, outbox, database):
        client.post("/resend", json={"type": "signup", "email": "dave@example.com"})
        assert_signs_in(client, "signup", outbox.last().token)
        for password in (PASSWORD, NEW):
            assert_error(BY_EMAIL.sign_in(client, password), 401, "invalid_credentials")
        assert database.value("SELECT user_metadata FROM users") == {}

    def test_code_resent_to_a_phone_confirms_and_needs_no_password(self, client, outbox):
        client.post("/signup", json=BY_PHONE.body)
        assert_ok(client.post("/resend", json={"type": "sms", "phone": PHONE}), ON_ITS_WAY)
        assert BY_PHONE.confirm(client, outbox.last().code).json["user"]["id"] == A_UUID

    def test_sign_in_code_to_a_phone_removes_the_password_of_the_sign_up(self, client, outbox):
        client.post("/signup", json=BY_PHONE.body)
        client.post("/resend", json={"type": "sms", "phone": PHONE})
        client.post("/otp", json={"phone": PHONE})
        assert [message.kind for message in outbox.sent(PHONE)] == ["signup", "signup", "sms"]
        assert BY_PHONE.confirm(client, outbox.last(PHONE).code).status_code == 200
        assert_error(BY_PHONE.sign_in(client), 401, "invalid_credentials")

    def test_declining_one_sign_up_keeps_the_other(self, client, links):
        mallorys, daves = links
        assert press(client, "signup", mallorys, action="decline").status_code == 200
        assert fragment(follow(client, "signup", mallorys)) == EXPIRED
        assert_signs_in(client, "signup", daves)
        assert BY_EMAIL.sign_in(client).status_code == 200

    @pytest.mark.parametrize(
        "state",
        [
            "{0}_confirmed_at = now()",
            "last_sign_in_at = now()",
            "made_by = 'administrator'",
            "{1} = 'x', {1}_confirmed_at = now()",
        ],
        ids=["confirmed", "signed in once", "made by an administrator", "with another address"],
    )
    def test_user_that_is_not_an_unconfirmed_sign_up_is_not_replaced(
        self, channel, client, database, outbox, state
    ):
        client.post("/signup", json=channel.body)
        other = "phone" if channel is BY_EMAIL else "email"
        database.run("UPDATE users SET " + state.format(channel.name, other))
        before = database.everything("users", "identities", "one_time_tokens")
        answer = client.post("/signup", json=channel.body | {"password": NEW})
        assert_ok(answer, channel.signed_up(), 201)
        assert database.everything("users", "identities", "one_time_tokens") == before
        attempts = [] if channel is BY_PHONE else [("signup_attempt", channel.address)]
        assert outbox.kinds() == [("signup", channel.address), *attempts]

    def test_sign_up_is_not_replaced_when_users_may_sign_in_unconfirmed(self, make_app, database):
        client = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false").test_client()
        client.post("/signup", json=DAVE)
        before = database.everything("users", "identities", "one_time_tokens")
        assert_error(client.post("/signup", json=DAVE), 409, "user_already_exists")
        assert database.everything("users", "identities", "one_time_tokens") == before


class TestConcurrentSignUps:
    def test_fifty_concurrent_sign_ups_with_one_address_create_one_user(self, server, database, outbox):
        answers = at_once(50, lambda _: until_served(lambda: server.post("/signup", json=DAVE)))
        assert [answer.status_code for answer in answers] == [201] * 50
        assert all(answer.json == BY_EMAIL.signed_up() for answer in answers)
        made = database.one("SELECT id FROM users")
        assert made.id in [answer.json["id"] for answer in answers]
        assert (database.count("identities"), database.count("one_time_tokens")) == (1, 50)
        # No sign-up sent the notice about a taken address.
        assert {message.kind for message in outbox.sent()} == {"signup"}
        assert_signs_in(server, "signup", outbox.last().token)

    def test_fifty_concurrent_sign_ups_with_fifty_addresses_create_fifty_users(self, server, database):
        def sign_up(number):
            body = DAVE | {"email": f"user{number}@example.com"}
            return until_served(lambda: server.post("/signup", json=body))

        answers = at_once(50, sign_up)
        assert [answer.status_code for answer in answers] == [201] * 50
        made = {row.id for row in database.all("SELECT id FROM users")}
        assert {answer.json["id"] for answer in answers} == made

    def test_sign_up_and_the_link_it_replaces_do_not_deadlock(self, client, app, database, outbox):
        old = client.post("/signup", json=DAVE).json
        token = outbox.last().token
        # The sign-up queues for the user's row first, the link second; then both continue.
        with database.locked("users", old["id"]) as lock:
            sign_up = lock.start(lambda: app.test_client().post("/signup", json=DAVE))
            verify = lock.start(lambda: follow(app.test_client(), "signup", token))
        assert sign_up.result().status_code == 201
        assert verify.result().status_code == 303
        assert database.count("users") == 1


class TestSettings:
    def test_autoconfirm_signs_in_without_a_message_or_a_proof(self, make_app, channel, outbox, database):
        client = make_app(AUTH_AUTOCONFIRM="true").test_client()
        response = client.post("/signup", json=channel.body | {"data": {"name": "Dave"}})
        expected = channel.confirmed(confirmation_sent_at=None, user_metadata={"name": "Dave"})
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
        assert_ok(client.post("/signup", json=channel.body), channel.signed_up(), 201)
        confirmed_at = {f"{channel.name}_confirmed_at": None, "confirmed_at": None}
        session = session_of(client, channel.sign_in(client))
        assert session.get("/user").json == session.user == channel.confirmed(**confirmed_at)
        made = channel.confirm(client, outbox.last().code).json["user"]
        assert made[f"{channel.name}_confirmed_at"] == A_TIMESTAMP

    @pytest.mark.parametrize(
        ("setting", "value", "status", "error_code"),
        [
            ("AUTH_DISABLE_SIGNUP", "true", 403, "signup_disabled"),
            ("AUTH_{}_ENABLED", "false", 400, "{}_provider_disabled"),
        ],
    )
    def test_disabled_sign_up_or_channel_is_refused(
        self, make_app, channel, database, setting, value, status, error_code
    ):
        client = make_app(**{setting.format(channel.name.upper()): value}).test_client()
        before = database.everything()
        response = client.post("/signup", json=channel.body)
        assert_error(response, status, error_code.format(channel.name))
        assert database.everything() == before


class TestRefusals:
    @cases(
        ("body", "details"),
        [
            ({"password": PASSWORD}, "email: give either an email or a phone"),
            (DAVE | {"phone": PHONE}, "email: give either an email or a phone"),
            ({"email": "dave@example.com"}, "password: is required"),
            ({"phone": PHONE}, "password: is required"),
            (DAVE | {"email": "dave"}, A_SENTENCE),
            (BY_PHONE.body | {"phone": "0170 1234567"}, A_SENTENCE),
            (BY_PHONE.body | {"phone": 491701234567}, A_SENTENCE),
            (BY_PHONE.body | {"phone": "+49170123456x"}, A_SENTENCE),
            (BY_PHONE.body | {"phone": "+49\n1701234567"}, A_SENTENCE),
            (BY_PHONE.body | {"data": "x"}, "data: must be an object"),
            (
                {"email": 1, "data": []},
                "data: must be an object; email: must be a string; password: is required",
            ),
        ],
    )
    def test_invalid_body_is_400(self, client, parts, body, details):
        before = parts.db.statements_run
        assert_error(client.post("/signup", json=body), 400, "validation_failed", details=details)
        assert parts.db.statements_run == before

    def test_numbers_that_postgres_writes_out_are_limited_too(self, client, database):
        response = client.post("/signup", json=DAVE | {"data": {"x": [1e300] * 100}})
        assert_error(response, 400, "validation_failed", details="data: must be at most 8 KiB as JSON")
        assert database.count("users") == 0

    def test_weak_password_is_422(self, client, parts):
        before = parts.db.statements_run
        response = client.post("/signup", json=DAVE | {"password": "weak"})
        needed = "must be at least 8 characters and contain at least one character of each"
        details = f"password: {needed}: uppercase, numbers, symbols"
        weak = {"reasons": ["length", "characters"]}
        assert_error(response, 422, "weak_password", details=details, weak_password=weak)
        for password in ("short", "alllowercase1!", PHONE):
            response = client.post("/signup", json=BY_PHONE.body | {"password": password})
            assert (response.status_code, response.json["error_code"]) == (422, "weak_password")
        assert parts.db.statements_run == before

    @pytest.mark.parametrize("path", ["/signup", "/magiclink", "/otp"])
    @pytest.mark.parametrize("letter", ["y", "ü", "☃"])
    def test_stranger_stores_at_most_1_kib(self, client, database, alice, path, letter):
        room = (1024 - len('{"x": ""}')) // len(letter.encode())
        before = database.everything()
        for email in ("dave@example.com", alice.email):
            body = DAVE | {"email": email, "data": {"x": letter * (room + 1)}}
            details = "data: must be at most 1 KiB as JSON"
            assert_error(client.post(path, json=body), 400, "validation_failed", details=details)
        assert database.everything() == before
        assert client.post(path, json=DAVE | {"data": {"x": letter * room}}).status_code in (200, 201)
        of_dave = "SELECT user_metadata FROM users WHERE email = 'dave@example.com'"
        assert database.value(of_dave) == {"x": letter * room}


@pytest.mark.parametrize(
    ("query", "body", "target"),
    [
        ("", {}, "/start"),
        ("", {"redirect_to": "https://app.example.com/welcome?from=signup"}, "/welcome?from=signup"),
        ("?redirect_to=https%3A%2F%2Fapp.example.com%2Fwelcome", {}, "/welcome"),
        ("", {"redirect_to": "https://evil.example"}, "/start"),
    ],
    ids=["default", "in the body", "in the query", "forbidden"],
)
def test_link_redirects_to_an_allowed_target_or_the_site(make_app, outbox, query, body, target):
    client = make_app(AUTH_SITE_URL="https://app.example.com/start").test_client()
    assert client.post(f"/signup{query}", json=DAVE | body).status_code == 201
    assert_signs_in(client, "signup", outbox.last().token, "https://app.example.com" + target)


def test_phone_user_can_add_an_email_later(client, outbox):
    client.post("/signup", json=BY_PHONE.body)
    session = session_of(client, BY_PHONE.confirm(client, outbox.last().code))
    assert session.put("/user", json={"email": "dave@example.com"}).json["new_email"] == "dave@example.com"
    response = type_in(client, "email_change", "dave@example.com", outbox.last("dave@example.com").code)
    both = [identity("phone", PHONE, last_sign_in_at=A_TIMESTAMP), identity("email", "dave@example.com")]
    emailed = {"email": "dave@example.com", "email_confirmed_at": A_TIMESTAMP, "identities": both}
    metadata = {"app_metadata": {"provider": "phone", "providers": ["phone", "email"]}}
    assert_signed_in(client, response, BY_PHONE.confirmed(**emailed, **metadata))
    notices = [("email_change", "dave@example.com"), ("email_changed", PHONE)]
    assert outbox.kinds() == [("signup", PHONE), *notices]
