"""Wrong codes of the second step: how many a user may enter, by network, wherever a code is asked for."""

import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.answers import A_SENTENCE, WRONG_CODE, assert_error
from tests.support.cases import cases
from tests.support.checked_rows import statements_run
from tests.support.elapsed import assert_left
from tests.support.factors import challenge, enrol, set_up, verify
from tests.support.links import counted, follow, hand_in, press, type_in
from tests.support.pages import Visitor
from tests.support.passkeys import register, sign_in
from tests.support.server import at_once, served
from tests.support.services import ELSEWHERE, HOME, OFFICE
from tests.support.users import Session

REFUSED = (429, "over_request_rate_limit")


@dataclass(frozen=True)
class Codes:
    """Alice's codes of one kind: how many wrong ones she has a day, and how to enter a wrong or a right one."""

    kind: str
    most: int
    guess: Callable[[Session], Any]
    enter: Callable[[Session], Any]

    @property
    def refusal(self) -> tuple[int, str]:
        return (429, "mfa_recovery_codes_locked") if self.kind == "recovery" else REFUSED


@pytest.fixture
def client_at(app):
    """Return a function that makes a client in a network."""

    def client_at(network, app=app):
        client = app.test_client()
        client.environ_base["REMOTE_ADDR"] = network
        return client

    return client_at


@pytest.fixture
def owner(alice, client_at):
    """Alice's authenticator app, and her session at home, where she has passed the second step."""
    return set_up(alice.open_session(client_at(HOME)))


@pytest.fixture
def app_codes(owner, database):
    app = owner[0]

    def enter(session):
        database.run("UPDATE factors SET last_step = NULL")
        return verify(session, app)

    return Codes("totp", 20, lambda session: verify(session, app, app.wrong_code()), enter)


@pytest.fixture(params=["app", "recovery"])
def codes(request, app_codes, owner):
    if request.param == "app":
        return app_codes
    unused = owner[1].post("/factors/recovery-codes").json["codes"]

    def send(session, code="00000-00000"):
        return session.post("/factors/recovery-codes/verify", json={"code": code})

    return Codes("recovery", 10, send, lambda session: send(session, unused.pop()))


@pytest.fixture
def use_up(alice, client_at, database):
    """Return a function that uses up the tries of all networks that are not Alice's, the last by a thief in her session."""

    def use_up(codes):
        database.run(
            "INSERT INTO failure_counts VALUES (%(key)s, %(count)s, now() + interval '1 day')"
            " ON CONFLICT (key) DO UPDATE SET count = excluded.count, expires_at = excluded.expires_at",
            key=f"{codes.kind} {alice.id}",
            count=codes.most - 1,
        )
        thief = alice.open_session(client_at("192.0.2.1"))
        assert_error(codes.guess(thief), *WRONG_CODE)
        assert_error(codes.guess(thief), *codes.refusal)

    return use_up


class TestNetworks:
    def test_thief_with_the_password_does_not_lock_the_owner_out_at_home(self, alice, client_at, codes):
        for number in range(codes.most):
            assert_error(codes.guess(alice.sign_in(client=client_at(f"192.0.2.{number}"))), *WRONG_CODE)
        thief = alice.sign_in(client=client_at(ELSEWHERE))
        for enter in (codes.guess, codes.enter):
            response = enter(thief)
            assert_error(response, *codes.refusal)
            assert_left(int(response.headers["Retry-After"]), of=86_400)
        assert codes.enter(alice.open_session(client_at(HOME))).status_code == 200

    @pytest.mark.parametrize("way", ["link", "code", "nonce", "passkey"])
    def test_mail_or_passkey_proof_gives_a_network_tries(
        self, way, alice, owner, client_at, codes, use_up, outbox
    ):
        authenticator = register(owner[1])[0]
        use_up(codes)
        client = client_at(OFFICE)
        session = alice.sign_in(client=client)
        assert_error(codes.enter(session), *codes.refusal)
        if way == "nonce":
            session.get("/reauthenticate")
            assert session.post("/reauthenticate", json={"nonce": outbox.last().code}).status_code == 200
        elif way == "passkey":
            sign_in(client, authenticator)
        else:
            client.post("/magiclink", json={"email": alice.email})
            message = outbox.last(alice.email, "magiclink")
            if way == "link":
                assert hand_in(client, "magiclink", message.token).status_code == 200
            else:
                assert type_in(client, "magiclink", alice.email, message.code).status_code == 200
        assert codes.enter(session).status_code == 200
        assert_error(codes.guess(alice.open_session(client_at(ELSEWHERE))), *codes.refusal)

    def test_networks_lose_their_tries_with_a_factor(self, alice, owner, client_at, app_codes, use_up):
        """A thief may have passed the second step with a factor that the owner has removed."""
        spare, session = set_up(owner[1], "Spare")
        unverified = session.post("/factors", json={"factor_type": "totp", "friendly_name": "x"}).json["id"]
        use_up(app_codes)
        at_home = alice.open_session(client_at(HOME))
        # For this, a password is enough.
        assert at_home.delete(f"/factors/{unverified}").status_code == 200
        assert_error(app_codes.guess(at_home), *WRONG_CODE)
        assert session.delete(f"/factors/{spare.id}").status_code == 200
        assert_error(app_codes.guess(at_home), *REFUSED)


class TestCounts:
    @pytest.mark.parametrize("networks", [50, 1])
    def test_fifty_concurrent_guesses_from_many_networks_gain_nothing(
        self, alice, owner, make_app, networks, database
    ):
        app, _session = owner
        with served(make_app(AUTH_TRUSTED_PROXIES="1")) as server:
            session = alice.sign_in(client=server)
            challenges = [challenge(session, app) for _ in range(5)]
            wrong_code = app.wrong_code()

            def guess(number):
                headers = session.authorization | {"X-Forwarded-For": f"192.0.2.{number % networks}"}
                body = {"challenge_id": challenges[number % 5], "code": wrong_code}
                return server.post(f"/factors/{app.id}/verify", json=body, headers=headers).json["error_code"]

            refusals = Counter(at_once(50, guess))
        # Some of the twenty were compared before others used up the tries of their challenge.
        assert 0 < refusals["mfa_verification_failed"] <= 20
        assert database.value("SELECT max(count) FROM failure_counts WHERE key LIKE 'totp%%'") == 20

    def test_code_counts_once_for_each_app_that_it_is_tried_against(self, owner, alice, database):
        app, session = owner
        for name in ("Tablet", "Spare"):
            _app, session = set_up(session, name)

        def reauthenticate(code):
            database.run("UPDATE factors SET last_step = NULL")
            return session.post("/reauthenticate", json={"factor_code": code})

        key = f"totp {alice.id} {HOME}"
        for number in range(6):
            response = reauthenticate(app.wrong_code())
            assert_error(response, 400, "reauthentication_not_valid", details=A_SENTENCE)
            assert counted(database, key) == 3 * (number + 1)
            assert number > 0 or reauthenticate(app.code()).status_code == 200
            assert counted(database, key) == 3 * (number + 1)
        for code in (app.wrong_code(), app.code()):
            assert_error(reauthenticate(code), *REFUSED)
        # This field is for a single app.
        assert verify(session, app).status_code == 200

    def test_undo_gives_three_networks_tries(
        self, client, owner, alice, client_at, app_codes, outbox, database
    ):
        app, session = owner
        database.run("UPDATE factors SET verified_at = now() - interval '8 days'")
        assert session.put("/user", json={"email": "new@example.com"}).status_code == 200
        follow(client, "email_change", outbox.last("new@example.com").token)
        token = outbox.last(alice.email, "email_changed").token
        database.run(
            "INSERT INTO failure_counts VALUES (%(key)s, 20, now() + interval '1 day')",
            key=f"totp {alice.id}",
        )
        networks = [f"203.0.113.{number}" for number in range(4)]
        for network in networks:
            assert press(client_at(network), "undo", token, factor_code=app.wrong_code()).status_code == 403
        assert [counted(database, f"totp {alice.id} {network}") for network in networks] == [1, 1, 1, 0]


CODE = {"factor_code": "{code}"}


class TestPlaces:
    @cases(
        ("method", "path", "body"),
        [
            ("post", "/factors/{app.id}/verify", {"code": "{code}", "challenge_id": "{challenge}"}),
            ("post", "/factors/recovery-codes/verify", {"code": "00000-00000"}),
            ("put", "/user", CODE | {"password": "Another-Horse-1"}),
            ("put", "/user", CODE | {"email": "new@example.com"}),
            ("post", "/factors", CODE | {"factor_type": "totp"}),
            *(("delete", path, CODE) for path in ("/factors/{app.id}", "/user")),
            *(("post", path, CODE) for path in ("/reauthenticate", "/factors/recovery-codes")),
            ("post", "/passkeys/registration/options", CODE),
        ],
    )
    def test_operation_counts_by_network(self, owner, alice, client_at, database, method, path, body):
        app, session = owner
        database.run(
            "UPDATE sessions SET created_at = now() - interval '2 days',"
            " reauthenticated_at = NULL, factor_proved_at = NULL"
        )
        database.run("DELETE FROM failure_counts")
        for kind, most in (("totp", 20), ("recovery", 10)):
            count = "INSERT INTO failure_counts VALUES (%(key)s, %(most)s, now() + interval '1 day')"
            database.run(count, key=f"{kind} {alice.id}", most=most)
        values = {"app": app, "code": app.wrong_code(), "challenge": challenge(session, app)}
        members = {name: value.format(**values) for name, value in body.items()}
        answers = [
            getattr(session.on(client_at(network)), method)(path.format(**values), json=members)
            for network in (ELSEWHERE, HOME)
        ]
        refusal = (429, "mfa_recovery_codes_locked") if path == "/factors/recovery-codes/verify" else REFUSED
        assert_error(answers[0], *refusal)
        assert answers[1].json["error_code"] in ("mfa_verification_failed", "reauthentication_not_valid")

    @pytest.mark.parametrize("form", ["second-step", "second-step/recovery", "console"])
    def test_page_counts_by_network(self, form, app, carol, alice, client_at, database):
        codes, session = set_up(carol.sign_in(client=client_at(HOME)))
        assert session.post("/factors/recovery-codes").status_code == 200
        visitor = Visitor(app).signed_in_as(carol)
        action, fields = form, {"code": codes.wrong_code(), "recovery_code": "00000-00000"}
        if form == "console":
            visitor.press("second-step", code=codes.code())
            visitor.visit(f"/console/users/{alice.id}/delete")
            action, fields = "delete", {"factor_code": codes.wrong_code()}
        database.run("UPDATE known_networks SET passed_at = NULL")
        database.run("UPDATE failure_counts SET count = 0")
        statuses = [visitor.press(action, **fields).status for _ in range(21)]
        most = 10 if "recovery" in form else 20
        assert statuses == [422] * most + [429] * (21 - most)
        hint = "try another way or network" if form == "console" else "a network where you’ve completed"
        assert hint in visitor.page.text
        kind = "recovery" if "recovery" in form else "totp"
        assert counted(database, f"{kind} {carol.id}") == most


class TestChallengeThatIsNotOpen:
    """A challenge that is not open refuses any code, so that no code is compared or counted."""

    @pytest.fixture(params=["unknown", "expired", "used up", "of another session", "of another factor"])
    def closed_challenge(self, request, alice, owner, database) -> str:
        app, session = owner
        if request.param == "unknown":
            return str(uuid.uuid4())
        if request.param == "of another session":
            return challenge(alice.open_session(), app)
        if request.param == "of another factor":
            return challenge(session, enrol(session, "other"))
        challenge_id = challenge(session, app)
        column, value = ("tries", "5") if request.param == "used up" else ("expires_at", "now()")
        database.run(
            f"UPDATE factor_challenges SET {column} = {value} WHERE id::text = %(id)s", id=challenge_id
        )
        return challenge_id

    def test_right_and_wrong_codes_are_refused_alike_and_count_nothing(
        self, owner, closed_challenge, database
    ):
        app, session = owner
        database.run("UPDATE factors SET last_step = NULL")
        costs, counts = set(), database.all("SELECT key, count FROM failure_counts")
        for code in [app.wrong_code(), app.code(), *[app.wrong_code()] * 25]:
            before = statements_run()
            assert_error(verify(session, app, code, closed_challenge), 422, "mfa_challenge_expired")
            costs.add(statements_run() - before)
        assert len(costs) == 1
        assert database.all("SELECT key, count FROM failure_counts") == counts
        assert database.value("SELECT last_step FROM factors WHERE verified_at IS NOT NULL") is None
        assert verify(session, app).status_code == 200

    def test_challenge_that_goes_after_the_look_leaves_the_verdict_counted(self, alice, owner, database):
        app, session = owner
        challenge_id = challenge(session, app)
        with database.locked("users", alice.id) as lock:
            answer = lock.start(lambda: verify(session, app, app.wrong_code(), challenge_id))
            database.run("DELETE FROM factor_challenges WHERE id::text = %(id)s", id=challenge_id)
        assert_error(answer.result(), 422, "mfa_challenge_expired")
        assert database.value("SELECT max(count) FROM failure_counts WHERE key LIKE 'totp%%'") == 1
