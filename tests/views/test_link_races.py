"""Races of links and codes, with each other and with requests that void them, in real processes."""

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
    """Whether a link or code was accepted. Otherwise checks that the error is an expected one."""
    if response.status_code == 303:
        answer = fragment(response)
        assert answer.get("error_code") in (None, "otp_expired", "user_banned", "email_exists"), answer
        return "error" not in answer
    if response.status_code != 200:
        assert_error(response, 403, "otp_expired")
    return response.status_code == 200


def crowd(type):
    """Fifty requests for the types that most users meet, and fewer for the others, which share their code."""
    return 50 if type in ("magiclink", "sms") else 20


class TestRequestsAtOnce:
    @pytest.mark.parametrize("type", BY_LINK)
    def test_link_succeeds_once(self, server, client, service_role, outbox, database, type):
        """By GET of a program, by the button of the page and by JSON."""
        message = send(type, client, service_role, outbox)
        before = database.count("sessions")
        answers = at_once(
            crowd(type), lambda number: (follow, press, hand_in)[number % 3](server, type, message.token)
        )
        assert [succeeded(answer) for answer in answers].count(True) == 1
        signs_in = type != "email_change" or 200 in [answer.status_code for answer in answers]
        assert database.count("sessions") == before + signs_in
        assert database.count("one_time_tokens", "purpose <> 'undo' AND spent_at IS NULL") == 0

    @pytest.mark.parametrize("type", ["magiclink", "signup", "email_change", "sms", "phone_change"])
    def test_code_succeeds_once(self, server, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        before = database.count("sessions")
        answers = at_once(crowd(type), lambda _: type_in(server, type, message.to, message.code))
        assert [succeeded(answer) for answer in answers].count(True) == 1
        assert database.count("sessions") == before + 1

    def test_either_a_link_or_its_code_succeeds(self, server, client, service_role, outbox, database):
        message = send("magiclink", client, service_role, outbox)

        def use(number):
            return (
                follow(server, "magiclink", message.token)
                if number % 2
                else type_in(server, "magiclink", message.to, message.code)
            )

        assert [succeeded(answer) for answer in at_once(20, use)].count(True) == 1
        assert database.count("sessions") == 1

    def test_one_of_three_links_of_a_user_succeeds(self, server, client, service_role, outbox, database):
        """Each voids the others, without a deadlock."""
        send("magiclink", client, service_role, outbox)
        for request in ("/magiclink", "/recover"):
            client.post(request, json={"email": "erin@example.com"})
        links = [
            ("recovery" if message.kind == "recovery" else "magiclink", message.token)
            for message in outbox.sent()
        ]
        answers = at_once(24, lambda number: follow(server, *links[number % 3]))
        assert [succeeded(answer) for answer in answers].count(True) == 1
        assert database.count("sessions") == 1

    def test_get_and_head_of_browsers_do_not_use_the_link(
        self, server, client, service_role, outbox, database
    ):
        message = send("magiclink", client, service_role, outbox)
        url = path("magiclink", message.token)
        before = database.everything("one_time_tokens", "users", "sessions")
        answers = at_once(
            20, lambda number: server.open(url, "HEAD") if number % 2 else server.get(url, headers=BROWSER)
        )
        assert {answer.status_code for answer in answers} == {200}
        assert database.everything("one_time_tokens", "users", "sessions") == before
        assert succeeded(follow(server, "magiclink", message.token))

    def test_nonce_succeeds_once(self, server, client, alice, outbox, database):
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


class TestConcurrentGuesses:
    @pytest.mark.parametrize("type", ["magiclink", "recovery", "email_change"])
    def test_code_allows_five_of_fifty_concurrent_guesses(
        self, server, client, service_role, outbox, database, type
    ):
        message = send(type, client, service_role, outbox)
        guesses = [f"{number:06}" for number in range(60) if f"{number:06}" != message.code]
        answers = at_once(crowd(type), lambda number: type_in(server, type, message.to, guesses[number]))
        assert [answer.status_code for answer in answers] == [403] * crowd(type)
        assert database.value("SELECT tries FROM one_time_tokens") == 5
        assert_error(type_in(server, type, message.to, message.code), 403, "otp_expired")
        assert succeeded(follow(server, type, message.token))

    def test_right_code_among_wrong_ones_signs_in_at_most_once(
        self, server, client, service_role, outbox, database
    ):
        message = send("sms", client, service_role, outbox)
        codes = [message.wrong_code] * 49 + [message.code]
        answers = at_once(50, lambda number: type_in(server, "sms", message.to, codes[number]))
        right = succeeded(answers[-1])
        assert [answer.status_code for answer in answers[:-1]] == [403] * 49
        assert database.count("sessions") == int(right)
        assert right or database.value("SELECT tries FROM one_time_tokens") == 5

    def test_daily_limit_of_codes_counts_concurrent_guesses_of_all_types(
        self, server, client, service_role, outbox, database
    ):
        first = send("magiclink", client, service_role, outbox)
        wrong = f"{(int(first.code) + 7) % 1_000_000:06}"
        types = itertools.cycle(["magiclink", "recovery", "signup", "email", "email_change"])
        chosen = [next(types) for _ in range(30)]
        at_once(30, lambda number: type_in(server, chosen[number], first.to, wrong))
        assert counted(database, f"code {first.to}") == 30
        client.post("/recover", json={"email": first.to})
        message = outbox.last(kind="recovery")
        assert_error(type_in(server, "recovery", message.to, message.code), 403, "otp_expired")
        assert succeeded(follow(server, "recovery", message.token))

    def test_codes_of_ten_users_all_succeed(self, server, client, outbox):
        for number in range(10):
            client.post("/otp", json={"email": f"user{number}@example.com"})
        messages = outbox.sent()
        answers = at_once(
            10, lambda number: type_in(server, "email", messages[number].to, messages[number].code)
        )
        assert sorted(answer.json["user"]["email"] for answer in answers) == sorted(
            message.to for message in messages
        )


class TestConcurrentRequestsOfLinks:
    @pytest.mark.parametrize(
        ("request_for", "address", "count"),
        [("/magiclink", DAVE, 50), ("/otp", DAVE, 20), ("/otp", PHONE, 20)],
    )
    def test_concurrent_requests_make_one_user(self, server, outbox, database, request_for, address, count):
        body = {"phone" if address.startswith("+") else "email": address}
        answers = at_once(count, lambda _: server.post(request_for, json=body))
        assert [answer.status_code for answer in answers] == [200] * count
        assert [database.count(table) for table in ("users", "identities")] == [1, 1]
        assert database.count("outbox") == count
        assert succeeded(type_in(server, "sms" if address == PHONE else "email", address, outbox.last().code))

    def test_twelve_sign_ups_by_phone_make_one_user(self, server, outbox, database):
        passwords = [f"Correct-Horse-{number}" for number in range(12)]
        answers = at_once(
            12, lambda number: server.post("/signup", json={"phone": PHONE, "password": passwords[number]})
        )
        assert {answer.status_code for answer in answers} <= {201, 503}
        assert [database.count(table) for table in ("users", "identities")] == [1, 1]
        made = database.value("SELECT id::text FROM users")
        message = outbox.last()
        assert message.user_id == made
        assert succeeded(type_in(server, "sms", PHONE, message.code))
        log_in = lambda password: server.post(  # noqa: E731
            "/token?grant_type=password", json={"phone": PHONE, "password": password}
        )
        assert sorted(log_in(password).status_code for password in passwords) == [200] + [401] * 11

    def test_generated_invitations_make_one_user(self, server, service_role, database):
        body = {"type": "invite", "email": DAVE}
        answers = at_once(20, lambda _: server.post("/admin/generate_link", json=body, headers=service_role))
        assert {answer.status_code for answer in answers} <= {200, 409}
        assert [database.count(table) for table in ("users", "identities")] == [1, 1]
        good = [answer.json["hashed_token"] for answer in answers if answer.status_code == 200]
        assert [succeeded(hand_in(server, "invite", token)) for token in good].count(True) == 1


class TestTwoUsers:
    def test_only_one_of_two_users_gets_the_new_address(self, server, client, alice, bob, outbox, database):
        tokens = []
        for person in (alice, bob):
            assert person.sign_in().put("/user", json={"email": NEW}).status_code == 200
            tokens.append(outbox.last(NEW).token)
        answers = at_once(2, lambda number: hand_in(server, "email_change", tokens[number]))
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        assert database.count("users", "email = %(email)s", email=NEW) == 1


class TestRacesWithRequestsThatVoidLinks:
    """Two requests wait for a user's row, in either order. Both get a response, and void links stay void."""

    @pytest.fixture
    def race(self, database, app):
        """Return a function that starts two requests while a user's row is locked. They run in this order."""

        def run(id, first, second):
            with database.locked("users", id) as lock:
                started = [lock.start(lambda act=act: act(app.test_client())) for act in (first, second)]
            answers = [future.result() for future in started]
            assert [answer for answer in answers if answer.status_code >= 500] == []
            return answers

        return run

    def voiding_requests(self, alice, service_role, session):
        """Requests that void Alice's links, as functions of a client."""
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
            "deletion by the user": lambda client: session.on(client).delete("/user"),
        }

    NAMES = (
        "a new password",
        "an administrator's password",
        "an administrator's email",
        "a ban",
        "a deletion",
        "deletion by the user",
    )

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("by", ["link", "code"])
    def test_link_or_code_fails_after_it(self, client, alice, service_role, outbox, database, race, name, by):
        session = alice.open_session()
        client.post("/magiclink", json={"email": alice.email})
        message = outbox.last()
        verify = (
            (lambda c: follow(c, "magiclink", message.token))
            if by == "link"
            else (lambda c: type_in(c, "magiclink", alice.email, message.code))
        )
        ended, verified = race(alice.id, self.voiding_requests(alice, service_role, session)[name], verify)
        assert ended.status_code == 200
        assert not succeeded(verified)
        assert database.count("sessions", "ended_at IS NULL AND id <> %(id)s", id=session.id) == 0

    @pytest.mark.parametrize("name", NAMES)
    def test_session_of_a_link_used_before_it_ends(
        self, client, alice, service_role, outbox, database, race, name
    ):
        session = alice.open_session()
        client.post("/magiclink", json={"email": alice.email})
        token = outbox.last().token
        verified, ended = race(
            alice.id,
            lambda c: follow(c, "magiclink", token),
            self.voiding_requests(alice, service_role, session)[name],
        )
        assert succeeded(verified)
        assert ended.status_code == 200
        made = Session(client, fragment(verified)["access_token"], fragment(verified)["refresh_token"], {})
        assert made.get("/user").status_code in (401, 403)
        assert made.refresh().status_code == 400

    @pytest.mark.parametrize("order", [0, 1])
    def test_first_of_two_links_of_a_user_succeeds(self, client, alice, outbox, database, race, order):
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
    def test_first_of_a_code_and_another_link_succeeds(self, client, alice, outbox, database, race, order):
        for request in ("/recover", "/magiclink"):
            client.post(request, json={"email": alice.email})
        recovery, magiclink = outbox.sent()
        acts = [
            lambda c: type_in(c, "magiclink", alice.email, magiclink.code),
            lambda c: follow(c, "recovery", recovery.token),
        ]
        answers = race(alice.id, acts[order], acts[1 - order])
        assert [succeeded(answer) for answer in answers] == [True, False]
        assert database.count("sessions") == 1

    def test_link_of_the_earlier_of_two_sign_ups_confirms_its_password(self, client, outbox, database, race):
        made = client.post("/signup", json={"email": DAVE, "password": PASSWORD}).json["id"]
        token = outbox.last().token
        again = {"email": DAVE, "password": "Another-Horse-1"}
        repeated, verified = race(
            made, lambda c: c.post("/signup", json=again), lambda c: follow(c, "signup", token)
        )
        assert repeated.status_code == 201
        assert succeeded(verified)
        assert database.all("SELECT id::text FROM users") == [(made,)]
        assert sign_in(client, DAVE).status_code == 200
        assert sign_in(client, DAVE, "Another-Horse-1").status_code == 401

    def test_confirmed_sign_up_is_not_replaced(self, client, outbox, database, race):
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
    def test_first_of_confirming_and_declining_a_sign_up_wins(self, client, outbox, database, race, order):
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

    def test_link_fails_when_the_address_changes_meanwhile(self, client, alice, outbox, database, app):
        client.post("/magiclink", json={"email": alice.email})
        token = outbox.last().token
        change = "UPDATE users SET email = 'elsewhere@example.com' WHERE id = %s"
        with database.locked("users", alice.id, change) as lock:
            verified = lock.start(lambda: follow(app.test_client(), "magiclink", token))
        assert fragment(verified.result()) == EXPIRED
        assert database.count("sessions") == 0

    def test_link_fails_when_the_user_is_banned_meanwhile(self, client, alice, outbox, database, app):
        client.post("/magiclink", json={"email": alice.email})
        token = outbox.last().token
        with database.locked(
            "users", alice.id, "UPDATE users SET banned_until = 'infinity' WHERE id = %s"
        ) as lock:
            verified = lock.start(lambda: follow(app.test_client(), "magiclink", token))
        assert fragment(verified.result())["error_code"] in ("user_banned", "otp_expired")
        assert database.count("sessions") == 0

    def test_link_to_a_new_address_fails_when_another_is_requested_meanwhile(
        self, client, alice, outbox, database, app
    ):
        alice.sign_in().put("/user", json={"email": NEW})
        token = outbox.last().token
        with database.locked(
            "users", alice.id, "UPDATE users SET new_email = 'other@example.com' WHERE id = %s"
        ) as lock:
            verified = lock.start(lambda: follow(app.test_client(), "email_change", token))
        assert fragment(verified.result()) == EXPIRED
        assert database.value("SELECT email FROM users") == alice.email

    @pytest.mark.parametrize("order", [0, 1])
    def test_new_password_voids_the_link_to_a_new_email_but_not_the_reverse(
        self, client, alice, outbox, database, race, order
    ):
        session = alice.open_session()
        session.put("/user", json={"email": NEW})
        token = outbox.last().token
        acts = [
            lambda c: session.on(c).put("/user", json={"password": "Another-Horse-1"}),
            lambda c: follow(c, "email_change", token),
        ]
        answers = race(alice.id, acts[order], acts[1 - order])
        changed, verified = answers if order == 0 else reversed(answers)
        assert changed.status_code == 200
        # A change of password voids the link; a change of email keeps the session that requested it.
        assert succeeded(verified) == (order == 1)
        assert session.get("/user").json["email"] == (NEW if order else alice.email)

    @pytest.mark.parametrize("order", [0, 1])
    def test_owner_restores_the_address_against_a_thief_changing_it_again(
        self, client, alice, outbox, database, race, order
    ):
        thief = alice.open_session()
        thief.put("/user", json={"email": "mallory@evil.example"})
        follow(client, "email_change", outbox.last().token)
        undo = outbox.last(alice.email).token
        thief.put("/user", json={"email": "mallory2@evil.example"})
        go_on = outbox.last("mallory2@evil.example").token
        acts = [lambda c: follow(c, "undo", undo), lambda c: follow(c, "email_change", go_on)]
        answers = race(alice.id, acts[order], acts[1 - order])
        assert succeeded(answers[order])
        assert database.value("SELECT email FROM users") == alice.email
        # The notices in the thief's mailbox must not restore it either.
        for message in outbox.sent("mallory@evil.example", "email_changed"):
            assert fragment(follow(client, "undo", message.token)) == EXPIRED
        assert database.value("SELECT email FROM users") == alice.email
        assert database.count("sessions", "ended_at IS NULL") == 0

    def test_password_of_a_squatter_fails_after_the_first_proof(self, make_app, outbox, database):
        """Mallory signs in with the password of her sign-up while Dave's link removes it."""
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

    def test_session_of_a_squatter_ends_with_the_first_proof(self, make_app, outbox, database):
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
    def test_new_password_leaves_no_session_of_an_authorization_code(
        self, client, alice, outbox, database, race, order
    ):
        session = alice.open_session()
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

    def test_code_to_the_old_number_fails_after_a_phone_change(self, client, alice, outbox, database, race):
        session = alice.open_session()
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
    def test_requesting_and_resending_a_change_do_not_deadlock(
        self, make_app, alice, outbox, database, kind, address
    ):
        """Both lock the count of messages to the new address, and Alice's row."""
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


class TestRequestWhileTheUserIsDeleted:
    """The response does not reveal the deletion."""

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
    def test_request_of_a_link(self, client, outbox, database, app, request_for, body):
        made = client.post("/signup", json={"email": DAVE, "password": PASSWORD}).json["id"]
        with database.locked("users", made, self.DELETE) as lock:
            asked = lock.start(lambda: app.test_client().post(request_for, json=body))
        assert (asked.result().status_code, asked.result().json) == (200, ON_ITS_WAY)
        assert database.count("one_time_tokens") == 0

    @pytest.mark.parametrize(
        ("request_for", "body"), [("/otp", {"phone": PHONE}), ("/resend", {"type": "sms", "phone": PHONE})]
    )
    def test_request_of_a_code(self, client, outbox, database, app, request_for, body):
        made = client.post("/signup", json={"phone": PHONE, "password": PASSWORD}).json["id"]
        with database.locked("users", made, self.DELETE) as lock:
            asked = lock.start(lambda: app.test_client().post(request_for, json=body))
        assert (asked.result().status_code, asked.result().json) == (200, ON_ITS_WAY)

    @pytest.mark.parametrize("kind", ["email", "phone"])
    def test_resending_a_change_of_address(self, client, alice, outbox, database, app, kind):
        address = NEW if kind == "email" else PHONE
        alice.sign_in().put("/user", json={kind: address})
        with database.locked("users", alice.id, self.DELETE) as lock:
            asked = lock.start(
                lambda: app.test_client().post("/resend", json={"type": f"{kind}_change", kind: address})
            )
        assert (asked.result().status_code, asked.result().json) == (200, ON_ITS_WAY)

    def test_request_of_a_nonce_is_401(self, alice, database, app):
        session = alice.open_session()
        with database.locked("users", alice.id, self.DELETE) as lock:
            asked = lock.start(lambda: session.on(app.test_client()).get("/reauthenticate"))
        assert asked.result().status_code == 401
        assert asked.result().json["error_code"] in ("user_not_found", "session_not_found")
        assert database.count("outbox") == 0
