"""Responses do not reveal whether an address has a user: same body, statements and commits for all."""

from typing import Any

import pytest

from tests.support.answers import A_TIMESTAMP, A_UUID, assert_error
from tests.support.cases import cases
from tests.support.checked_rows import statements_run
from tests.support.links import ON_ITS_WAY, Outbox, follow, hand_in, type_in
from tests.support.users import PASSWORD, session_of, sign_in

NOBODY, NOBODYS_PHONE = "nobody@example.com", "+15550100"
# Each endpoint that takes any address: path, the rest of the body, and the member with the address.
REQUESTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "/magiclink": ("/magiclink", {}, "email"),
    "/magiclink without create_user": ("/magiclink", {"create_user": False}, "email"),
    "/otp by email": ("/otp", {}, "email"),
    "/otp by phone": ("/otp", {}, "phone"),
    "/otp by phone without create_user": ("/otp", {"create_user": False}, "phone"),
    "/recover": ("/recover", {}, "email"),
    "/resend signup": ("/resend", {"type": "signup"}, "email"),
    "/resend email_change": ("/resend", {"type": "email_change"}, "email"),
    "/resend sms": ("/resend", {"type": "sms"}, "phone"),
    "/resend phone_change": ("/resend", {"type": "phone_change"}, "phone"),
    "/signup by email": ("/signup", {"password": PASSWORD}, "email"),
    "/signup by phone": ("/signup", {"password": PASSWORD}, "phone"),
}


def answer_of(client, name, address):
    """Return everything visible of a response except values that are unique each time."""
    path, body, field = REQUESTS[name]
    response = client.post(path, json=body | {field: address})
    members = response.json
    if path == "/signup":
        assert members[field] == address
        ids = (members["id"], members["identities"][0]["id"], members["created_at"])
        assert ids == (A_UUID, A_UUID, A_TIMESTAMP)
        unique = {"id", "email", "phone", "identities", "created_at", "updated_at", "confirmation_sent_at"}
    else:
        assert members == ON_ITS_WAY
        unique = {"message_id"}
    members = {name: value for name, value in members.items() if name not in unique}
    headers = dict(response.headers)
    for varying in ("X-Request-Id", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Content-Length"):
        headers.pop(varying, None)
    return response.status_code, members, headers


@pytest.fixture
def addresses_by_state(client, service_role, database):
    """Email and phone of a user in each state that an attacker might probe."""
    addresses = {}
    confirmed: dict[str, Any] = {"email_confirm": True, "phone_confirm": True}
    states = {
        "confirmed": confirmed | {"password": PASSWORD},
        "unconfirmed": {},
        "banned": confirmed | {"ban_duration": "permanent"},
        "passwordless": confirmed,
    }
    for number, (state, body) in enumerate(states.items()):
        addresses[state] = {"email": f"{state}@example.com", "phone": f"+1555020{number}"}
        response = client.post("/admin/users", json=addresses[state] | body, headers=service_role)
        assert response.status_code == 200
    client.post("/admin/invite", json={"email": "invited@example.com"}, headers=service_role)
    client.post("/signup", json={"email": "waiting@example.com", "password": PASSWORD})
    client.post("/signup", json={"phone": "+15550210", "password": PASSWORD})
    pending = session_of(client, sign_in(client, "confirmed@example.com"))
    pending.put("/user", json={"email": "pending@example.com", "phone": "+15550220"})
    return addresses | {
        "invited": {"email": "invited@example.com"},
        "waiting": {"email": "waiting@example.com", "phone": "+15550210"},
        "pending": {"email": "pending@example.com", "phone": "+15550220"},
        "unknown": {"email": NOBODY, "phone": NOBODYS_PHONE},
    }


class Work:
    """Counts what requests cost: statements, hashes, and messages."""

    def __init__(self, parts, database, hashes):
        self._count = lambda: (statements_run(), hashes.count, database.count("outbox"))

    def of(self, action):
        """Return the result of an action, and what it has cost."""
        before = self._count()
        result = action()
        return result, tuple(after - before for after, before in zip(self._count(), before, strict=True))


class TestResponse:
    @pytest.mark.parametrize("name", REQUESTS)
    def test_response_is_the_same_for_each_state(
        self, client, addresses_by_state, parts, database, hashes, name
    ):
        """Statements, commits and hashes are the same, too: one transaction writes a message, to be sent or not."""
        field, work = REQUESTS[name][2], Work(parts, database, hashes)
        outcomes = {
            state: work.of(lambda address=addresses[field]: answer_of(client, name, address))
            for state, addresses in addresses_by_state.items()
            if field in addresses
        }
        assert len(outcomes) >= 6
        assert {state: each for state, each in outcomes.items() if each != outcomes["unknown"]} == {}
        assert outcomes["unknown"][1][1:] == (1 if name.startswith("/signup") else 0, 1)

    def test_each_statement_is_one_transaction(self, client, database):
        """Connections commit each statement, so a request for an unknown address writes once."""
        client.post("/magiclink", json={"email": NOBODY})
        tables = ("users", "identities", "one_time_tokens", "outbox")
        union = " UNION ALL ".join(f"SELECT xmin::text AS writer FROM {table}" for table in tables)
        assert database.one(
            f"SELECT count(*) AS rows, count(DISTINCT writer) AS writers FROM ({union}) AS written"
        ) == (4, 1)

    @pytest.mark.parametrize(
        "name", ["/magiclink", "/otp by phone", "/recover", "/resend signup", "/signup by email"]
    )
    def test_response_is_the_same_with_limits_and_quotas(
        self, make_app, addresses_by_state, database, hashes, name
    ):
        field = REQUESTS[name][2]
        app = make_app(AUTH_RATE_LIMITS_ENABLED="true")
        client, work = app.test_client(), Work(app.extensions["latchkey"], database, hashes)
        outcomes = {
            (state, turn): work.of(
                lambda state=state: answer_of(client, name, addresses_by_state[state][field])
            )
            for state in ("confirmed", "unconfirmed", "unknown")
            for turn in ("first", "second")
        }
        assert {key: each for key, each in outcomes.items() if each != outcomes["unknown", "first"]} == {}
        assert outcomes["unknown", "first"][1][2] == 1

    @cases("name", REQUESTS)
    def test_invalid_request_is_refused_for_each_state(self, client, addresses_by_state, name):
        path, body, field = REQUESTS[name]
        changes: list[dict[str, Any]] = [
            *({"redirect_to": 1}, {"code_challenge": "x"}, {"code_challenge_method": "plain"}),
            *({"data": data} for data in ("x", {"x": "x" * 9000})),
        ]
        for change in changes if path in ("/magiclink", "/otp", "/signup") else changes[:3]:
            answers = [
                client.post(path, json=body | change | {field: addresses_by_state[state][field]})
                for state in ("confirmed", "waiting", "unknown")
            ]
            assert {answer.status_code for answer in answers} == {400}
            assert len({answer.text for answer in answers}) == 1

    def test_id_in_the_response_is_not_that_of_the_user(self, client, addresses_by_state, database):
        body = {"email": "confirmed@example.com"}
        ids = {client.post("/recover", json=body).json["message_id"] for _ in range(3)}
        assert len(ids) == 3
        assert database.count("users", "id::text = ANY (%(ids)s)", ids=list(ids)) == 0


class TestCodesAndLinks:
    def test_wrong_code_gets_the_same_response_for_each_state(self, client, addresses_by_state, parts):
        client.post("/magiclink", json={"email": "confirmed@example.com"})
        answers, work = set(), set()
        for addresses in addresses_by_state.values():
            for type in ("magiclink", "email", "signup", "recovery", "email_change"):
                before = statements_run()
                response = type_in(client, type, addresses["email"], "000000")
                assert_error(response, 403, "otp_expired")
                answers.add(response.text)
                work.add(statements_run() - before)
        assert (len(answers), len(work)) == (1, 1)

    def test_void_link_gets_the_same_response_as_an_unknown_one(self, client, alice, parts, database):
        outbox = Outbox(parts, database)
        client.post("/magiclink", json={"email": alice.email})
        token = outbox.last().token
        follow(client, "magiclink", token)
        assert follow(client, "magiclink", token).location == follow(client, "magiclink", "x" * 43).location
        assert hand_in(client, "magiclink", token).text == hand_in(client, "magiclink", "x" * 43).text

    def test_tries_of_a_code_run_out_for_unknown_addresses_too(self, client, alice):
        for email in (alice.email, NOBODY):
            responses = [type_in(client, "magiclink", email, f"{number:06}") for number in range(25)]
            assert {response.status_code for response in responses} == {403}
