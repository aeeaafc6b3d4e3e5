"""POST /magiclink, and what POST /otp by mail and POST /recover share with it: a link that signs in.

Each type of link and code is tested in test_verify_link.py and test_verify_code.py.
"""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.cases import cases
from tests.support.links import ON_ITS_WAY, PHONE, assert_dead, assert_signs_in, fragment, path, type_in
from tests.support.users import DAVE, PASSWORD, sign_in

TABLES = ("users", "identities", "one_time_tokens", "outbox", "sessions", "failure_counts")
# The routes, with the type of their link and that of their code.
ROUTES = [
    ("/magiclink", "magiclink", "magiclink"),
    ("/otp", "magiclink", "email"),
    ("/recover", "recovery", "recovery"),
]


@pytest.fixture
def ask(client, outbox):
    def ask(email, route="/magiclink"):
        assert_ok(client.post(route, json={"email": email}), ON_ITS_WAY)
        return outbox.last()

    return ask


@pytest.mark.parametrize(("route", "link", "code"), ROUTES, ids=lambda value: value)
class TestKnownAddress:
    def test_known_address_gets_one_link_and_code_and_keeps_password_and_sessions(
        self, client, alice, outbox, database, route, link, code
    ):
        other = alice.open_session()
        before = database.everything("users", "identities", "sessions")
        body = {"data": {"name": "Mallory"}, "create_user": True, "password": "Another-Horse-1"}
        response = client.post(route, json={"email": alice.email} | body)
        assert_ok(response, ON_ITS_WAY)
        assert database.value("SELECT id FROM outbox") == response.json["message_id"]
        (message,) = outbox.sent()
        assert (message.kind, message.channel, message.to) == (link, "email", alice.email)
        assert (message.lifetime, len(message.token)) == (3600, 43)
        assert (len(message.code), message.code.isdecimal()) == (6, True)
        assert database.everything("users", "identities", "sessions") == before
        session = assert_signs_in(client, link, message.token)
        assert session.get("/user").json == user(alice.email, id=alice.id, last_sign_in_at=A_TIMESTAMP)
        method = "recovery" if link == "recovery" else "otp"
        assert session.claims["amr"] == [{"method": method, "timestamp": session.claims["iat"]}]
        assert other.get("/user").status_code == 200
        assert alice.try_to_sign_in().status_code == 200

    def test_banned_user_is_sent_nothing(self, client, alice, outbox, database, route, link, code):
        database.run("UPDATE users SET banned_until = now() + interval '1 hour'")
        assert_ok(client.post(route, json={"email": alice.email}), ON_ITS_WAY)
        assert (outbox.sent(), outbox.suppressed(), database.count("one_time_tokens")) == ([], 1, 0)
        database.run("UPDATE users SET banned_until = now() - interval '1 second'")
        client.post(route, json={"email": alice.email})
        assert_signs_in(client, link, outbox.last().token)


def test_database_holds_neither_link_nor_code_in_clear(alice, ask, database):
    message = ask(alice.email)
    assert message.token not in str(database.everything())
    condition = "code_mac = sha256(%(code)s::bytea)"
    assert database.count("one_time_tokens", condition, code=message.code) == 0
    assert database.value("SELECT secret::text FROM outbox") is not None


class TestUnknownAddress:
    @pytest.mark.parametrize("route", ["/magiclink", "/otp"])
    @pytest.mark.parametrize(
        "body", [{}, {"create_user": True}, {"create_user": None, "data": {"x": 1, "y": None}}]
    )
    def test_link_to_unknown_address_makes_a_user(self, client, outbox, database, service_role, route, body):
        assert_ok(client.post(route, json={"email": DAVE} | body), ON_ITS_WAY)
        row = database.one("SELECT id, made_by, password_hash, email_proved FROM users")
        assert (row.made_by, row.password_hash, row.email_proved) == ("message", None, False)
        members = {"id": row.id, "confirmation_sent_at": A_TIMESTAMP}
        members["user_metadata"] = {"x": 1} if "data" in body else {}
        unconfirmed = user(DAVE, email_confirmed_at=None, confirmed_at=None, **members)
        assert_ok(client.get(f"/admin/users/{row.id}", headers=service_role), unconfirmed)
        assert_error(sign_in(client, DAVE), 401, "invalid_credentials")
        assert database.count("sessions") == 0
        session = assert_signs_in(client, "magiclink", outbox.last(DAVE).token)
        identities = [identity("email", DAVE, last_sign_in_at=A_TIMESTAMP)]
        assert session.get("/user").json == user(
            DAVE, last_sign_in_at=A_TIMESTAMP, identities=identities, **members
        )

    def test_data_does_not_change_a_user_created_by_an_earlier_request(self, client, outbox, database):
        client.post("/magiclink", json={"email": DAVE, "data": {"name": "Dave"}})
        client.post("/magiclink", json={"email": DAVE, "data": {"name": "Mallory", "x": 1}})
        assert database.all("SELECT user_metadata FROM users") == [({"name": "Dave"},)]
        assert len(outbox.sent()) == 2

    @pytest.mark.parametrize("is_disabled", [False, True], ids=["not wanted", "disabled"])
    @pytest.mark.parametrize(
        ("route", "address"),
        [
            ("/magiclink", {"email": DAVE}),
            ("/otp", {"email": DAVE}),
            ("/otp", {"phone": PHONE}),
            ("/recover", {"email": DAVE}),
        ],
    )
    def test_no_user_is_created_unless_allowed(self, make_app, outbox, database, route, address, is_disabled):
        client = make_app(**({"AUTH_DISABLE_SIGNUP": "true"} if is_disabled else {})).test_client()
        create_user = is_disabled or route == "/recover"
        body = address | {"data": {"name": "Dave"}, "create_user": create_user}
        assert_ok(client.post(route, json=body), ON_ITS_WAY)
        assert (outbox.sent(), outbox.suppressed()) == ([], 1)
        assert [database.count(table) for table in ("users", "identities", "one_time_tokens")] == [0, 0, 0]


class TestSeveralLinks:
    def test_fourth_link_voids_the_first(self, client, alice, ask):
        first, second, *_ = [ask(alice.email) for _ in range(4)]
        assert_dead(client, "magiclink", first.token)
        assert_signs_in(client, "magiclink", second.token)

    def test_spending_a_link_voids_the_others_of_the_user_alone(self, client, alice, bob, ask, database):
        messages = [(type, ask(alice.email, route)) for route, type, _ in (ROUTES[0], ROUTES[2], ROUTES[0])]
        bobs_message = ask(bob.email)
        assert_signs_in(client, "magiclink", messages[0][1].token)
        for type, message in messages:
            assert_dead(client, type, message.token)
            assert_error(type_in(client, type, alice.email, message.code), 403, "otp_expired")
        assert database.count("sessions") == 1
        assert_signs_in(client, "magiclink", bobs_message.token)

    @pytest.mark.parametrize("first", ["/magiclink", "/recover"])
    def test_only_the_newest_code_of_all_purposes_is_good(self, client, alice, ask, first):
        old, new = ask(alice.email, first), ask(alice.email)
        assert_error(type_in(client, old.kind, alice.email, old.code), 403, "otp_expired")
        assert type_in(client, "magiclink", alice.email, new.code).status_code == 200


@cases(
    "address",
    [
        *("{0}\r\nBcc: mallory@example.com", "{0}\n", "\n{0}", "{0}\u0000", "{0}\u2028"),
        *("mallory@example.com,{0}", "{0};mallory@example.com", "{0} mallory@example.com"),
        *("<{0}>", "Alice <{0}>", " {0}", "{0}\t", "{0}%0d%0abcc:mallory@example.com"),
        *("alice\uff20example.com", '"alice\r\n"@example.com', "mailto:{0}", "{0}@mallory.example"),
    ],
)
def test_address_that_mailers_misread_is_refused(client, alice, service_role, database, address):
    """On each route with an address: line breaks, commas and brackets could inject recipients or headers."""
    session, email = alice.open_session(), {"email": address.format(alice.email)}
    change = {"type": "email_change", "email": alice.email, "new_email": email["email"]}
    before = database.everything(*TABLES)
    for target, body in (
        *((route, email) for route, _, _ in ROUTES),
        ("/resend", {"type": "signup"} | email),
        ("/resend", {"type": "email_change"} | email),
        ("/signup", {"password": PASSWORD} | email),
        ("/verify", {"type": "magiclink", "token": "123456"} | email),
        ("/admin/generate_link", {"type": "magiclink"} | email),
        ("/admin/generate_link", {"type": "invite"} | email),
        ("/admin/generate_link", change),
        ("/admin/invite", email),
    ):
        headers = service_role if target.startswith("/admin") else {}
        response = client.post(target, json=body, headers=headers)
        assert (target, response.status_code) == (target, 400)
        assert response.json["error_code"] in ("validation_failed", "bad_json")
    assert session.put("/user", json=email).status_code == 400
    assert database.everything(*TABLES) == before


def test_host_headers_do_not_reach_the_link(client, alice, database, service_role):
    """An attacker who controls the host of a link in a mail receives its token."""
    headers = {
        "Host": "evil.example",
        "X-Forwarded-Host": "evil.example",
        "Forwarded": "host=evil.example",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Prefix": "/evil.example",
        "X-Original-Host": "evil.example",
        "Referer": "https://evil.example/",
    }
    session = alice.sign_in()
    for target, body in (
        *((route, {"email": alice.email}) for route, _, _ in ROUTES),
        ("/signup", {"email": DAVE, "password": PASSWORD}),
        ("/resend", {"type": "signup", "email": DAVE}),
        ("/admin/invite", {"email": "erin@example.com"}),
    ):
        credentials = service_role if target == "/admin/invite" else {}
        assert client.post(target, json=body, headers=headers | credentials).status_code in (200, 201)
    change = {"email": "new@example.com"}
    assert client.put("/user", json=change, headers=headers | session.authorization).status_code == 200
    body = {"type": "magiclink", "email": alice.email}
    response = client.post("/admin/generate_link", json=body, headers=headers | service_role)
    assert response.json["action_link"].startswith("http://localhost:8000/verify?")
    assert "evil" not in response.text
    assert "evil" not in str(database.everything())
    link = path("magiclink", response.json["hashed_token"])
    assert "evil" not in client.get(link, headers=headers | {"Accept": "text/html"}).text
    assert fragment(client.get(link, headers=headers))["type"] == "magiclink"


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM users WHERE id = %s", "UPDATE users SET email = 'moved@example.com' WHERE id = %s"],
)
class TestUserWhoLosesTheAddressMeanwhile:
    """The request has found the user, and waits for the act that takes the address away."""

    def test_nobody_gets_a_message_but_a_new_user(self, client, alice, database, outbox, change):
        with database.locked("users", alice.id, change) as lock:
            future = lock.start(lambda: client.post("/magiclink", json={"email": alice.email}))
        assert_ok(future.result(), ON_ITS_WAY)
        new = database.one("SELECT id, made_by FROM users WHERE email = %(email)s", email=alice.email)
        assert (new.id != alice.id, new.made_by) == (True, "message")
        session = assert_signs_in(client, "magiclink", outbox.last().token)
        assert session.get("/user").json["id"] == new.id

    def test_sign_up_gets_the_address(self, client, alice, database, outbox, change):
        body = {"email": alice.email, "password": PASSWORD}
        with database.locked("users", alice.id, change) as lock:
            future = lock.start(lambda: client.post("/signup", json=body))
        assert future.result().status_code == 201
        new = database.one("SELECT id, made_by FROM users WHERE email = %(email)s", email=alice.email)
        assert (new.id, new.made_by) == (future.result().json["id"], "signup")
        assert outbox.last().kind == "signup"
