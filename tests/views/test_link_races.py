"""Links and codes that are used at once: by many, and beside what ends them. Real processes, real sockets,
real locks.
"""

import itertools

import pytest

from tests.support.answers import assert_error
from tests.support.cast import PASSWORD, Session, session_of, sign_in
from tests.support.links import (
    BROWSER,
    BY_LINK,
    EXPIRED,
    ON_ITS_WAY,
    OTHER_PHONE,
    PHONE,
    VERIFIER,
    WITH_CHALLENGE,
    counted,
    follow,
    fragment,
    hand_in,
    path,
    press,
    query,
    send,
    type_in,
)
from tests.support.server import at_once

NEW = "new@example.com"
DAVE = "dave@example.com"


def succeeded(response):
    """Whether a link or code was taken; one that was not must have failed as it should."""
    if response.status_code == 303:
        answer = fragment(response)
        assert answer.get("error_code") in (None, "otp_expired", "user_banned", "email_exists"), answer
        return "error" not in answer
    if response.status_code != 200:
        assert_error(response, 403, "otp_expired")
    return response.status_code == 200


class TestFiftyAtOnce:
    @pytest.mark.parametrize("type", BY_LINK)
    def test_of_one_link_one_succeeds(self, server, client, service_role, outbox, database, type):
        """As a program, by the button and by JSON, all together."""
        message = send(type, client, service_role, outbox)
        before = database.count("sessions")
        answers = at_once(
            50, lambda number: (follow, press, hand_in)[number % 3](server, type, message.token)
        )
        assert [succeeded(answer) for answer in answers].count(True) == 1
        signs_in = type != "email_change" or 200 in [answer.status_code for answer in answers]
        assert database.count("sessions") == before + signs_in
        assert database.count("one_time_tokens", "purpose <> 'email_restore' AND spent_at IS NULL") == 0

    @pytest.mark.parametrize("type", ["magiclink", "signup", "email_change", "sms", "phone_change"])
    def test_of_one_code_one_succeeds(self, server, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        before = database.count("sessions")
        answers = at_once(50, lambda _: type_in(server, type, message.to, message.code))
        assert [succeeded(answer) for answer in answers].count(True) == 1
        assert database.count("sessions") == before + 1

    def test_of_a_link_and_its_code_one_succeeds(self, server, client, service_role, outbox, database):
        message = send("magiclink", client, service_role, outbox)

        def use(number):
            return (
                follow(server, "magiclink", message.token)
                if number % 2
                else type_in(server, "magiclink", message.to, message.code)
            )

        assert [succeeded(answer) for answer in at_once(50, use)].count(True) == 1
        assert database.count("sessions") == 1

    def test_of_three_links_of_one_user_one_succeeds(self, server, client, service_role, outbox, database):
        """Each voids the others, and none waits for another in a circle."""
        send("magiclink", client, service_role, outbox)
        for request in ("/magiclink", "/recover"):
            client.post(request, json={"email": "erin@example.com"})
        links = [
            ("recovery" if message.kind == "recovery" else "magiclink", message.token)
            for message in outbox.sent()
        ]
        answers = at_once(48, lambda number: follow(server, *links[number % 3]))
        assert [succeeded(answer) for answer in answers].count(True) == 1
        assert database.count("sessions") == 1

    def test_looking_spends_nothing(self, server, client, service_role, outbox, database):
        message = send("magiclink", client, service_role, outbox)
        url = path("magiclink", message.token)
        before = database.everything("one_time_tokens", "users", "sessions")
        answers = at_once(
            50, lambda number: server.open(url, "HEAD") if number % 2 else server.get(url, headers=BROWSER)
        )
        assert {answer.status_code for answer in answers} == {200}
        assert database.everything("one_time_tokens", "users", "sessions") == before
        assert succeeded(follow(server, "magiclink", message.token))

    def test_of_one_nonce_one_succeeds(self, server, client, alice, outbox, database):
        session = alice.sign_in()
        database.run("UPDATE sessions SET created_at = created_at - interval '1 day'")
        session.get("/reauthenticate")
        nonce = outbox.last().code
        answers = at_once(
            20,
            lambda number: session.on(server).put(
                "/user", json={"email": f"new{number}@example.com", "nonce": nonce}
            ),
        )
        assert sorted(answer.status_code for answer in answers) == [200] + [400] * 19
        assert {answer.json["error_code"] for answer in answers if answer.status_code == 400} == {
            "reauthentication_not_valid"
        }
        assert len(outbox.sent(kind="email_change")) == 1


class TestGuessingAtOnce:
    @pytest.mark.parametrize("type", ["magiclink", "recovery", "email_change"])
    def test_five_tries_are_counted_however_many_come(
        self, server, client, service_role, outbox, database, type
    ):
        message = send(type, client, service_role, outbox)
        guesses = [f"{number:06}" for number in range(60) if f"{number:06}" != message.code]
        answers = at_once(50, lambda number: type_in(server, type, message.to, guesses[number]))
        assert [answer.status_code for answer in answers] == [403] * 50
        assert database.value("SELECT tries FROM one_time_tokens") == 5
        assert_error(type_in(server, type, message.to, message.code), 403, "otp_expired")
        assert succeeded(follow(server, type, message.token))

    def test_the_right_one_among_them_is_no_exception(self, server, client, service_role, outbox, database):
        message = send("sms", client, service_role, outbox)
        codes = [message.wrong_code] * 49 + [message.code]
        answers = at_once(50, lambda number: type_in(server, "sms", message.to, codes[number]))
        right = succeeded(answers[-1])
        assert [answer.status_code for answer in answers[:-1]] == [403] * 49
        assert database.count("sessions") == int(right)
        assert right or database.value("SELECT tries FROM one_time_tokens") == 5

    def test_twenty_a_day_are_counted_however_many_come_and_of_whatever_type(
        self, server, client, service_role, outbox, database
    ):
        first = send("magiclink", client, service_role, outbox)
        wrong = f"{(int(first.code) + 7) % 1_000_000:06}"
        types = itertools.cycle(["magiclink", "recovery", "signup", "email", "email_change"])
        chosen = [next(types) for _ in range(50)]
        at_once(50, lambda number: type_in(server, chosen[number], first.to, wrong))
        assert counted(database, f"code {first.to}") == 50
        client.post("/recover", json={"email": first.to})
        message = outbox.last(kind="recovery")
        assert_error(type_in(server, "recovery", message.to, message.code), 403, "otp_expired")
        assert succeeded(follow(server, "recovery", message.token))

    def test_ten_codes_of_ten_users_do_not_disturb_each_other(self, server, client, outbox):
        for number in range(10):
            client.post("/otp", json={"email": f"user{number}@example.com"})
        messages = outbox.sent()
        answers = at_once(
            10, lambda number: type_in(server, "email", messages[number].to, messages[number].code)
        )
        assert sorted(answer.json["user"]["email"] for answer in answers) == sorted(
            message.to for message in messages
        )


class TestAskingAtOnce:
    @pytest.mark.parametrize(
        ("request_for", "address"), [("/magiclink", DAVE), ("/otp", DAVE), ("/otp", PHONE)]
    )
    def test_one_user_is_made(self, server, outbox, database, request_for, address):
        body = {"phone" if address.startswith("+") else "email": address}
        answers = at_once(50, lambda _: server.post(request_for, json=body))
        assert [answer.status_code for answer in answers] == [200] * 50
        assert [database.count(table) for table in ("users", "identities")] == [1, 1]
        assert database.count("outbox") == 50
        assert succeeded(type_in(server, "sms" if address == PHONE else "email", address, outbox.last().code))

    def test_fifty_sign_ups_by_phone_make_one_user(self, server, outbox, database):
        passwords = [f"Correct-Horse-{number}" for number in range(12)]
        answers = at_once(
            12, lambda number: server.post("/signup", json={"phone": PHONE, "password": passwords[number]})
        )
        assert {answer.status_code for answer in answers} <= {201, 503}
        assert [database.count(table) for table in ("users", "identities")] == [1, 1]
        made = database.value("SELECT id::text FROM users")
        (kept,) = [number for number, answer in enumerate(answers) if answer.json.get("id") == made]
        (message,) = [message for message in outbox.sent() if message.user_id == made]
        assert succeeded(type_in(server, "sms", PHONE, message.code))
        response = server.post(
            "/token?grant_type=password", json={"phone": PHONE, "password": passwords[kept]}
        )
        assert response.status_code == 200

    def test_links_for_a_user_to_be_made_make_one(self, server, service_role, database):
        body = {"type": "invite", "email": DAVE}
        answers = at_once(20, lambda _: server.post("/admin/generate_link", json=body, headers=service_role))
        assert {answer.status_code for answer in answers} <= {200, 409}
        assert [database.count(table) for table in ("users", "identities")] == [1, 1]
        good = [answer.json["hashed_token"] for answer in answers if answer.status_code == 200]
        assert [succeeded(hand_in(server, "invite", token)) for token in good].count(True) == 1


class TestOfTwoUsers:
    @pytest.mark.parametrize("kind", ["email", "phone"])
    def test_who_prove_one_new_address_one_has_it(self, server, client, alice, bob, outbox, database, kind):
        address = NEW if kind == "email" else PHONE
        messages = []
        for person in (alice, bob):
            assert person.sign_in().put("/user", json={kind: address}).status_code == 200
            messages.append(outbox.last(address))
        answers = at_once(2, lambda number: type_in(server, f"{kind}_change", address, messages[number].code))
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        assert database.count("users", f"{kind} = %(address)s", address=address) == 1


class TestBesideWhatEndsThem:
    """Two requests meet at one user's row, in either order: both are answered, and what should be dead is
    dead.
    """

    @pytest.fixture
    def race(self, database, app):
        """Start two requests while a user's row is locked: they go on in the order in which they came."""

        def run(id, first, second):
            with database.locked("users", id) as lock:
                started = [lock.start(lambda act=act: act(app.test_client())) for act in (first, second)]
            answers = [future.result() for future in started]
            assert [answer for answer in answers if answer.status_code >= 500] == []
            return answers

        return run

    def enders(self, alice, service_role, session):
        """What ends Alice's links, as functions of a client."""
        url, body = f"/admin/users/{alice.id}", {"headers": service_role}
        return {
            "a new password": lambda client: session.on(client).put(
                "/user", json={"password": "Another-Horse-1"}
            ),
            "an administrator's password": lambda client: client.put(
                url, json={"password": "Another-Horse-1"}, **body
            ),
            "an administrator's email": lambda client: client.put(
                url, json={"email": NEW, "email_confirm": True}, **body
            ),
            "a ban": lambda client: client.put(url, json={"ban_duration": "1h"}, **body),
            "a deletion": lambda client: client.delete(url, **body),
            "their own deletion": lambda client: session.on(client).delete("/user"),
        }

    NAMES = (
        "a new password",
        "an administrator's password",
        "an administrator's email",
        "a ban",
        "a deletion",
        "their own deletion",
    )

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("by", ["link", "code"])
    def test_after_it_they_fail(self, client, alice, service_role, outbox, database, race, name, by):
        session = alice.sign_in()
        client.post("/magiclink", json={"email": alice.email})
        message = outbox.last()
        verify = (
            (lambda c: follow(c, "magiclink", message.token))
            if by == "link"
            else (lambda c: type_in(c, "magiclink", alice.email, message.code))
        )
        ended, verified = race(alice.id, self.enders(alice, service_role, session)[name], verify)
        assert ended.status_code == 200
        assert not succeeded(verified)
        assert database.count("sessions", "ended_at IS NULL AND id <> %(id)s", id=session.id) == 0

    @pytest.mark.parametrize("name", NAMES)
    def test_before_it_the_session_that_they_make_ends(
        self, client, alice, service_role, outbox, database, race, name
    ):
        session = alice.sign_in()
        client.post("/magiclink", json={"email": alice.email})
        token = outbox.last().token
        verified, ended = race(
            alice.id, lambda c: follow(c, "magiclink", token), self.enders(alice, service_role, session)[name]
        )
        assert succeeded(verified)
        assert ended.status_code == 200
        made = Session(client, fragment(verified)["access_token"], fragment(verified)["refresh_token"], {})
        assert made.get("/user").status_code in (401, 403)
        assert made.refresh().status_code == 400

    @pytest.mark.parametrize("order", [0, 1])
    def test_two_links_of_one_user(self, client, alice, outbox, database, race, order):
        for _ in range(2):
            client.post("/magiclink", json={"email": alice.email})
        tokens = [message.token for message in outbox.sent()]
        answers = race(
            alice.id,
            lambda c: follow(c, "magiclink", tokens[order]),
            lambda c: follow(c, "magiclink", tokens[1 - order]),
        )
        assert [succeeded(answer) for answer in answers] == [True, False]
        assert database.count("sessions") == 1

    @pytest.mark.parametrize("order", [0, 1])
    def test_a_code_and_another_link_of_one_user(self, client, alice, outbox, database, race, order):
        for request in ("/magiclink", "/recover"):
            client.post(request, json={"email": alice.email})
        magiclink, recovery = outbox.sent()
        acts = [
            lambda c: type_in(c, "magiclink", alice.email, magiclink.code),
            lambda c: follow(c, "recovery", recovery.token),
        ]
        answers = race(alice.id, acts[order], acts[1 - order])
        assert [succeeded(answer) for answer in answers] == [True, False]
        assert database.count("sessions") == 1

    def test_a_sign_up_that_is_replaced(self, client, outbox, database, race):
        made = client.post("/signup", json={"email": DAVE, "password": PASSWORD}).json["id"]
        token = outbox.last().token
        again = {"email": DAVE, "password": "Another-Horse-1"}
        replaced, verified = race(
            made, lambda c: c.post("/signup", json=again), lambda c: follow(c, "signup", token)
        )
        assert replaced.status_code == 201
        assert not succeeded(verified)
        assert database.all("SELECT id::text, email_confirmed_at FROM users") == [(replaced.json["id"], None)]

    def test_a_sign_up_that_is_confirmed_first_is_not_replaced(self, client, outbox, database, race):
        made = client.post("/signup", json={"email": DAVE, "password": PASSWORD}).json["id"]
        token = outbox.last().token
        again = {"email": DAVE, "password": "Another-Horse-1"}
        verified, replaced = race(
            made, lambda c: follow(c, "signup", token), lambda c: c.post("/signup", json=again)
        )
        assert succeeded(verified)
        assert replaced.status_code == 201
        assert database.all("SELECT id::text FROM users") == [(made,)]
        assert sign_in(client, DAVE).status_code == 200

    @pytest.mark.parametrize("order", [0, 1])
    def test_this_was_not_me(self, client, outbox, database, race, order):
        made = client.post("/signup", json={"email": DAVE, "password": PASSWORD}).json["id"]
        token = outbox.last().token
        acts = [lambda c: press(c, "signup", token, action="decline"), lambda c: follow(c, "signup", token)]
        answers = race(made, acts[order], acts[1 - order])
        assert answers[0].status_code == (200, 303)[order]
        if order == 0:
            assert not succeeded(answers[1])
            assert database.count("users") == 0
        else:
            assert succeeded(answers[0])
            assert (answers[1].status_code, database.count("users")) == (403, 1)

    def test_an_address_that_changes_while_its_link_waits(self, client, alice, outbox, database, app):
        client.post("/magiclink", json={"email": alice.email})
        token = outbox.last().token
        change = "UPDATE users SET email = 'elsewhere@example.com' WHERE id = %s"
        with database.locked("users", alice.id, change) as lock:
            verified = lock.start(lambda: follow(app.test_client(), "magiclink", token))
        assert fragment(verified.result()) == EXPIRED
        assert database.count("sessions") == 0

    def test_a_ban_while_a_link_waits(self, client, alice, outbox, database, app):
        client.post("/magiclink", json={"email": alice.email})
        token = outbox.last().token
        with database.locked(
            "users", alice.id, "UPDATE users SET banned_until = 'infinity' WHERE id = %s"
        ) as lock:
            verified = lock.start(lambda: follow(app.test_client(), "magiclink", token))
        assert fragment(verified.result())["error_code"] in ("user_banned", "otp_expired")
        assert database.count("sessions") == 0

    def test_a_new_address_that_is_given_up_while_its_link_waits(self, client, alice, outbox, database, app):
        alice.sign_in().put("/user", json={"email": NEW})
        token = outbox.last().token
        with database.locked(
            "users", alice.id, "UPDATE users SET new_email = 'other@example.com' WHERE id = %s"
        ) as lock:
            verified = lock.start(lambda: follow(app.test_client(), "email_change", token))
        assert fragment(verified.result()) == EXPIRED
        assert database.value("SELECT email FROM users") == alice.email

    @pytest.mark.parametrize("order", [0, 1])
    def test_a_new_email_and_a_new_password(self, client, alice, outbox, database, race, order):
        session = alice.sign_in()
        session.put("/user", json={"email": NEW})
        token = outbox.last().token
        acts = [
            lambda c: session.on(c).put("/user", json={"password": "Another-Horse-1"}),
            lambda c: follow(c, "email_change", token),
        ]
        answers = race(alice.id, acts[order], acts[1 - order])
        changed, verified = answers if order == 0 else reversed(answers)
        assert changed.status_code == 200
        # Its link dies with a change of password, and a change of email leaves the session that asked for it.
        assert succeeded(verified) == (order == 1)
        assert session.get("/user").json["email"] == (NEW if order else alice.email)

    @pytest.mark.parametrize("order", [0, 1])
    def test_the_owner_who_undoes_a_change_and_the_thief_who_goes_on(
        self, client, alice, outbox, database, race, order
    ):
        thief = alice.sign_in()
        thief.put("/user", json={"email": "mallory@evil.example"})
        follow(client, "email_change", outbox.last().token)
        undo = outbox.last(alice.email).token
        thief.put("/user", json={"email": "mallory2@evil.example"})
        go_on = outbox.last("mallory2@evil.example").token
        acts = [lambda c: follow(c, "email_restore", undo), lambda c: follow(c, "email_change", go_on)]
        answers = race(alice.id, acts[order], acts[1 - order])
        assert succeeded(answers[order])
        assert database.value("SELECT email FROM users") == alice.email
        # Nor may the thief's own mailbox be able to undo it.
        for message in outbox.sent("mallory@evil.example", "email_changed"):
            assert fragment(follow(client, "email_restore", message.token)) == EXPIRED
        assert database.value("SELECT email FROM users") == alice.email
        assert database.count("sessions", "ended_at IS NULL") == 0

    def test_a_password_that_is_tried_while_its_owner_proves_the_address(self, make_app, outbox, database):
        """Mallory signs in with the password of her sign-up at the moment at which Dave's link drops it."""
        app = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false")
        client = app.test_client()
        made = client.post("/signup", json={"email": DAVE, "password": PASSWORD}).json["id"]
        client.post("/magiclink", json={"email": DAVE})
        token = outbox.last(kind="magiclink").token
        with database.locked("users", made) as lock:
            proved = lock.start(lambda: follow(app.test_client(), "magiclink", token))
            tried = lock.start(lambda: sign_in(app.test_client(), DAVE))
        assert succeeded(proved.result())
        assert_error(tried.result(), 401, "invalid_credentials")
        assert database.count("sessions", "ended_at IS NULL") == 1

    def test_a_session_that_begins_while_its_owner_proves_the_address(self, make_app, outbox, database):
        app = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false")
        client = app.test_client()
        made = client.post("/signup", json={"email": DAVE, "password": PASSWORD}).json["id"]
        client.post("/magiclink", json={"email": DAVE})
        token = outbox.last(kind="magiclink").token
        with database.locked("users", made) as lock:
            tried = lock.start(lambda: sign_in(app.test_client(), DAVE))
            proved = lock.start(lambda: follow(app.test_client(), "magiclink", token))
        mallory = session_of(client, tried.result())
        assert succeeded(proved.result())
        assert_error(mallory.get("/user"), 401, "session_not_found")

    @pytest.mark.parametrize("order", [0, 1])
    def test_an_authorization_code_and_a_new_password(self, client, alice, outbox, database, race, order):
        session = alice.sign_in()
        client.post("/magiclink", json={"email": alice.email} | WITH_CHALLENGE)
        exchange = {
            "auth_code": query(follow(client, "magiclink", outbox.last().token))["code"],
            "code_verifier": VERIFIER,
        }
        acts = [
            lambda c: session.on(c).put("/user", json={"password": "Another-Horse-1"}),
            lambda c: c.post("/token?grant_type=pkce", json=exchange),
        ]
        answers = race(alice.id, acts[order], acts[1 - order])
        assert answers[order].status_code == 200
        assert database.count("sessions", "ended_at IS NULL AND id <> %(id)s", id=session.id) == 0

    def test_a_phone_change_and_a_sign_in_by_the_old_number(self, client, alice, outbox, database, race):
        session = alice.sign_in()
        session.put("/user", json={"phone": PHONE})
        type_in(client, "phone_change", PHONE, outbox.last(PHONE).code)
        session.put("/user", json={"phone": OTHER_PHONE})
        new = outbox.last(OTHER_PHONE).code
        client.post("/otp", json={"phone": PHONE})
        old = outbox.last(PHONE).code
        changed, verified = race(
            alice.id,
            lambda c: type_in(c, "phone_change", OTHER_PHONE, new),
            lambda c: type_in(c, "sms", PHONE, old),
        )
        assert succeeded(changed)
        assert not succeeded(verified)

    @pytest.mark.parametrize(("kind", "address"), [("email", NEW), ("phone", PHONE)])
    def test_a_change_that_is_asked_for_and_sent_again_at_once(
        self, make_app, alice, outbox, database, kind, address
    ):
        """Both count a message to the new address, and both write to Alice's: neither may wait for the other
        in a circle.
        """
        app = make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_MESSAGES="100 per minute")
        session = alice.sign_in(client=app.test_client())
        assert session.put("/user", json={kind: address}).status_code == 200
        count = "SELECT FROM failure_counts WHERE key = %s FOR UPDATE"
        with database.locked("failure_counts", f"message {address} 3600", count) as lock:
            again = lock.start(
                lambda: app.test_client().post("/resend", json={"type": f"{kind}_change", kind: address})
            )
            asked = lock.start(lambda: session.on(app.test_client()).put("/user", json={kind: address}))
        assert (again.result().status_code, asked.result().status_code) == (200, 200)
        assert len(outbox.sent(address)) == 3


class TestAskingBesideADeletion:
    """A user is deleted, or a sign-up replaced, while a message is asked for: that is answered like any
    other.
    """

    DELETE = "DELETE FROM users WHERE id = %s"

    @pytest.mark.parametrize(
        ("request_for", "body"),
        [
            ("/magiclink", {"email": DAVE, "create_user": False}),
            ("/otp", {"email": DAVE, "create_user": False}),
            ("/recover", {"email": DAVE}),
            ("/resend", {"type": "signup", "email": DAVE}),
        ],
    )
    def test_of_a_link(self, client, outbox, database, app, request_for, body):
        made = client.post("/signup", json={"email": DAVE, "password": PASSWORD}).json["id"]
        with database.locked("users", made, self.DELETE) as lock:
            asked = lock.start(lambda: app.test_client().post(request_for, json=body))
        assert (asked.result().status_code, asked.result().json) == (200, ON_ITS_WAY)
        assert database.count("one_time_tokens") == 0

    @pytest.mark.parametrize(
        ("request_for", "body"), [("/otp", {"phone": PHONE}), ("/resend", {"type": "sms", "phone": PHONE})]
    )
    def test_of_a_code(self, client, outbox, database, app, request_for, body):
        made = client.post("/signup", json={"phone": PHONE, "password": PASSWORD}).json["id"]
        with database.locked("users", made, self.DELETE) as lock:
            asked = lock.start(lambda: app.test_client().post(request_for, json=body))
        assert (asked.result().status_code, asked.result().json) == (200, ON_ITS_WAY)

    @pytest.mark.parametrize("kind", ["email", "phone"])
    def test_of_what_proves_a_new_address(self, client, alice, outbox, database, app, kind):
        address = NEW if kind == "email" else PHONE
        alice.sign_in().put("/user", json={kind: address})
        with database.locked("users", alice.id, self.DELETE) as lock:
            asked = lock.start(
                lambda: app.test_client().post("/resend", json={"type": f"{kind}_change", kind: address})
            )
        assert (asked.result().status_code, asked.result().json) == (200, ON_ITS_WAY)

    def test_of_a_nonce(self, alice, database, app):
        session = alice.sign_in()
        with database.locked("users", alice.id, self.DELETE) as lock:
            asked = lock.start(lambda: session.on(app.test_client()).get("/reauthenticate"))
        assert asked.result().status_code == 401
        assert asked.result().json["error_code"] in ("user_not_found", "session_not_found")
        assert database.count("outbox") == 0
