"""Races of links and codes, with each other and with requests that void them, in real processes."""

from threading import Event

import pytest

from tests.support.answers import assert_error
from tests.support.links import ON_ITS_WAY, PHONE, counted, follow, fragment, hand_in, press, send, type_in
from tests.support.server import at_once
from tests.support.users import DAVE, NEW_EMAIL, NEW_PASSWORD, PASSWORD, Session, sign_in


def succeeded(response):
    """Return whether a link or code was accepted. If not, check that the error is an expected one."""
    if response.status_code == 303:
        answer = fragment(response)
        assert answer.get("error_code") in (None, "otp_expired", "user_banned", "email_exists"), answer
        return "error" not in answer
    if response.status_code != 200:
        assert_error(response, 403, "otp_expired")
    return response.status_code == 200


def number_of_requests(type):
    """Return fifty for the types that most users meet, and fewer for the others, which share their code."""
    return 50 if type in ("magiclink", "sms") else 20


def count_successes(answers):
    return [succeeded(answer) for answer in answers].count(True)


@pytest.fixture
def ask(client, service_role, outbox):
    return lambda type: send(type, client, service_role, outbox)


class TestRequestsAtOnce:
    # One function spends links of all types.
    @pytest.mark.parametrize("type", ["magiclink", "email_change"])
    def test_link_succeeds_once(self, server, ask, database, type):
        """By a program's GET, by the button of the page and by JSON."""
        message = ask(type)
        before = database.count("sessions")
        ways = (follow, press, hand_in)
        answers = at_once(
            number_of_requests(type), lambda number: ways[number % 3](server, type, message.token)
        )
        assert count_successes(answers) == 1
        signs_in = type != "email_change" or 200 in [answer.status_code for answer in answers]
        assert database.count("sessions") == before + signs_in
        assert database.count("one_time_tokens", "purpose <> 'undo' AND spent_at IS NULL") == 0

    @pytest.mark.parametrize("type", ["magiclink", "phone_change"])
    def test_code_succeeds_once(self, server, ask, database, type):
        message = ask(type)
        before = database.count("sessions")
        answers = at_once(number_of_requests(type), lambda _: type_in(server, type, message.to, message.code))
        assert count_successes(answers) == 1
        assert database.count("sessions") == before + 1

    def test_one_of_three_links_and_a_code_of_a_user_succeeds(self, server, client, ask, outbox, database):
        """Each voids the others, without a deadlock."""
        ask("magiclink")
        for request in ("/recover", "/magiclink"):
            client.post(request, json={"email": "erin@example.com"})
        messages = outbox.sent()
        requests = [
            *(lambda message=message: follow(server, message.kind, message.token) for message in messages),
            lambda: type_in(server, "magiclink", messages[-1].to, messages[-1].code),
        ]
        assert count_successes(at_once(24, lambda number: requests[number % 4]())) == 1
        assert database.count("sessions") == 1

    def test_nonce_succeeds_once(self, server, alice, outbox, database):
        session = alice.open_session()
        database.run("UPDATE sessions SET created_at = created_at - interval '1 day'")
        session.get("/reauthenticate")
        nonce = {"nonce": outbox.last().code}
        change = lambda number: {"email": f"new{number}@example.com"} | nonce  # noqa: E731
        answers = at_once(20, lambda number: session.on(server).put("/user", json=change(number)))
        codes = [answer.json.get("error_code") for answer in answers]
        assert sorted(codes, key=str) == [None] + ["reauthentication_not_valid"] * 19
        assert len(outbox.sent(kind="email_change")) == 1


class TestConcurrentGuesses:
    @pytest.mark.parametrize("type", ["magiclink"])
    def test_code_allows_five_of_fifty_concurrent_guesses(self, server, ask, database, type):
        message = ask(type)
        guesses = [f"{number:06}" for number in range(60) if f"{number:06}" != message.code]
        answers = at_once(
            number_of_requests(type), lambda number: type_in(server, type, message.to, guesses[number])
        )
        assert [answer.status_code for answer in answers] == [403] * number_of_requests(type)
        assert counted(database, f"code {message.to} 127.0.0.1") == 5
        assert_error(type_in(server, type, message.to, message.code), 403, "otp_expired")
        assert succeeded(follow(server, type, message.token))

    def test_daily_limit_counts_concurrent_guesses_of_all_types(self, server, client, ask, outbox, database):
        first = ask("magiclink")
        database.run(
            "INSERT INTO failure_counts VALUES (%(key)s, 18, now() + interval '1 day')",
            key=f"code {first.to}",
        )
        wrong_code = f"{(int(first.code) + 7) % 1_000_000:06}"
        types = ["magiclink", "recovery", "signup", "email", "email_change"]
        at_once(30, lambda number: type_in(server, types[number % 5], first.to, wrong_code))
        client.post("/recover", json={"email": first.to})
        message = outbox.last(kind="recovery")
        assert_error(type_in(server, "recovery", message.to, message.code), 403, "otp_expired")
        assert succeeded(follow(server, "recovery", message.token))


class TestConcurrentRequestsOfLinks:
    @pytest.mark.parametrize(
        ("request_for", "address", "count"),
        [("/magiclink", DAVE, 50), ("/otp", DAVE, 20), ("/otp", PHONE, 20)],
    )
    def test_concurrent_requests_make_one_user(self, server, outbox, database, request_for, address, count):
        body = {"phone" if address.startswith("+") else "email": address}
        answers = at_once(count, lambda _: server.post(request_for, json=body))
        assert [answer.status_code for answer in answers] == [200] * count
        assert [database.count(table) for table in ("users", "identities", "outbox")] == [1, 1, count]
        assert succeeded(type_in(server, "sms" if address == PHONE else "email", address, outbox.last().code))

    def test_generated_invitations_make_one_user(self, server, service_role, database):
        body = {"type": "invite", "email": DAVE}
        answers = at_once(20, lambda _: server.post("/admin/generate_link", json=body, headers=service_role))
        assert {answer.status_code for answer in answers} <= {200, 409}
        assert [database.count(table) for table in ("users", "identities")] == [1, 1]
        tokens = [answer.json["hashed_token"] for answer in answers if answer.status_code == 200]
        assert count_successes([hand_in(server, "invite", token) for token in tokens]) == 1


@pytest.mark.parametrize("codes_wait", [False, True])
def test_new_email_is_either_confirmed_or_withdrawn(server, alice, outbox, database, codes_wait):
    """Fifty requests at once, or codes once the first request that withdraws the change is answered."""
    session, withdrawn = alice.open_session(), Event()
    session.put("/user", json={"email": NEW_EMAIL})
    code, server_session = outbox.last().code, session.on(server)

    def withdraw_or_confirm(number):
        if number % 2 == 0:
            answer = server_session.put("/user", json={"email": alice.email})
            withdrawn.set()
            return answer
        if codes_wait:
            assert withdrawn.wait(60)
        return type_in(server, "email_change", NEW_EMAIL, code)

    answers = at_once(50, withdraw_or_confirm)
    withdrawals, successes = answers[::2], count_successes(answers[1::2])
    assert {answer.status_code for answer in withdrawals} == {200}
    assert successes in ((0,) if codes_wait else (0, 1))
    # No answer claims that the old address stays if another says that the new one is confirmed.
    assert {answer.json["email"] for answer in withdrawals} == {NEW_EMAIL if successes else alice.email}
    assert {answer.json["new_email"] for answer in withdrawals} == {alice.email if successes else None}
    assert database.value("SELECT email FROM users") == (NEW_EMAIL if successes else alice.email)


# Requests that void Alice's links: by herself, or by an administrator; DELETE without a body.
VOIDING = {
    "a new password": ("/user", {"password": NEW_PASSWORD}),
    "deletion by the user": ("/user", None),
    "an administrator's password": ("/admin/users/{}", {"password": NEW_PASSWORD}),
    "an administrator's email": ("/admin/users/{}", {"email": NEW_EMAIL, "email_confirm": True}),
    "a ban": ("/admin/users/{}", {"ban_duration": "1h"}),
    "a deletion": ("/admin/users/{}", None),
}


class TestRacesWithRequestsThatVoidLinks:
    """Two requests wait for a user's row, in either order. Both get a response, and void links stay void."""

    @pytest.fixture
    def race(self, database, app):
        """Return a function that starts two requests while a user's row is locked. They run in this order."""

        def run(id, first, second):
            with database.locked("users", id) as lock:
                futures = [
                    lock.start(lambda request=request: request(app.test_client()))
                    for request in (first, second)
                ]
            answers = [future.result() for future in futures]
            assert [answer for answer in answers if answer.status_code >= 500] == []
            return answers

        return run

    @pytest.fixture
    def message(self, client, alice, outbox):
        client.post("/magiclink", json={"email": alice.email})
        return outbox.last()

    @pytest.fixture
    def void(self, alice, service_role, session):
        """Return a function that makes the request of a name, as a function of a client."""

        def request_of(name):
            url, body = VOIDING[name]
            headers = session.authorization if url == "/user" else service_role
            method = "DELETE" if body is None else "PUT"
            return lambda c: c.open(url.format(alice.id), method=method, json=body, headers=headers)

        return request_of

    @pytest.mark.parametrize("name", VOIDING)
    @pytest.mark.parametrize("way", ["link", "code"])
    def test_link_or_code_fails_after_a_request_that_voids_it(
        self, alice, session, message, database, race, void, name, way
    ):
        def verify(c):
            if way == "link":
                return follow(c, "magiclink", message.token)
            return type_in(c, "magiclink", alice.email, message.code)

        voided, verification = race(alice.id, void(name), verify)
        assert voided.status_code == 200
        assert not succeeded(verification)
        assert database.count("sessions", "ended_at IS NULL AND id <> %(id)s", id=session.id) == 0

    @pytest.mark.parametrize("name", VOIDING)
    def test_session_of_a_link_ends_with_a_request_that_voids_links(
        self, client, alice, message, race, void, name
    ):
        verification, voided = race(alice.id, lambda c: follow(c, "magiclink", message.token), void(name))
        assert succeeded(verification)
        assert voided.status_code == 200
        session = Session(
            client, fragment(verification)["access_token"], fragment(verification)["refresh_token"], {}
        )
        assert session.get("/user").status_code in (401, 403)
        assert session.refresh().status_code == 400

    @pytest.mark.parametrize("first_index", [0, 1])
    def test_sign_up_is_not_replaced_by_another_around_its_link(
        self, client, outbox, database, race, first_index
    ):
        user_id = client.post("/signup", json={"email": DAVE, "password": PASSWORD}).json["id"]
        token = outbox.last().token
        second = {"email": DAVE, "password": NEW_PASSWORD}
        requests = [lambda c: c.post("/signup", json=second), lambda c: press(c, "signup", token)]
        answers = race(user_id, requests[first_index], requests[1 - first_index])
        assert answers[first_index].status_code == 201
        assert succeeded(answers[1 - first_index])
        assert database.all("SELECT id::text FROM users") == [(user_id,)]
        assert sign_in(client, DAVE).status_code == 200
        assert sign_in(client, DAVE, NEW_PASSWORD).status_code == 401

    @pytest.mark.parametrize("first_index", [0, 1])
    def test_first_of_confirming_and_declining_a_sign_up_wins(
        self, client, outbox, database, race, first_index
    ):
        user_id = client.post("/signup", json={"email": DAVE, "password": PASSWORD}).json["id"]
        token = outbox.last().token
        requests = [
            lambda c: press(c, "signup", token, action="decline"),
            lambda c: follow(c, "signup", token),
        ]
        answers = race(user_id, requests[first_index], requests[1 - first_index])
        if first_index == 0:
            assert answers[0].status_code == 303
            assert not succeeded(answers[1])
        else:
            assert succeeded(answers[0])
            assert answers[1].status_code == 403
        assert database.count("users") == first_index

    @pytest.mark.parametrize(("kind", "address"), [("email", NEW_EMAIL), ("phone", PHONE)])
    def test_requests_for_a_change_do_not_deadlock(self, make_app, alice, outbox, database, kind, address):
        """Both requests lock the count of messages to the new address, and Alice's row."""
        app = make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_MESSAGES="100 per minute")
        session = alice.sign_in(client=app.test_client())
        assert session.put("/user", json={kind: address}).status_code == 200
        count = "SELECT FROM failure_counts WHERE key = %s FOR UPDATE"
        resend = {"type": f"{kind}_change", kind: address}
        with database.locked("failure_counts", f"message {address} 3600", count) as lock:
            resending = lock.start(lambda: app.test_client().post("/resend", json=resend))
            changing = lock.start(lambda: session.on(app.test_client()).put("/user", json={kind: address}))
        assert (resending.result().status_code, changing.result().status_code) == (200, 200)
        assert len(outbox.sent(address)) == 3


class TestRequestWhileTheUserIsDeleted:
    DELETE = "DELETE FROM users WHERE id = %s"

    @pytest.mark.parametrize(
        ("request_for", "body"),
        [
            ("/resend", {"type": "signup", "email": DAVE}),
            ("/resend", {"type": "email_change", "email": NEW_EMAIL}),
            ("/otp", {"phone": PHONE, "create_user": False}),
        ],
    )
    def test_response_does_not_reveal_the_deletion(self, client, alice, database, app, request_for, body):
        address = {kind: body[kind] for kind in ("email", "phone") if kind in body}
        if body.get("type") == "email_change":
            assert alice.open_session().put("/user", json=address).status_code == 200
            id = alice.id
        else:
            id = client.post("/signup", json=address | {"password": PASSWORD}).json["id"]
        with database.locked("users", id, self.DELETE) as lock:
            future = lock.start(lambda: app.test_client().post(request_for, json=body))
        assert (future.result().status_code, future.result().json) == (200, ON_ITS_WAY)
        assert database.count("one_time_tokens") == 0

    def test_request_of_a_nonce_is_401(self, alice, database, app):
        session = alice.open_session()
        with database.locked("users", alice.id, self.DELETE) as lock:
            future = lock.start(lambda: session.on(app.test_client()).get("/reauthenticate"))
        assert future.result().status_code == 401
        assert future.result().json["error_code"] in ("user_not_found", "session_not_found")
        assert database.count("outbox") == 0
