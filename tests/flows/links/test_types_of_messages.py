"""Each message with each `type` of a verification: the purpose of the message decides the outcome."""

from typing import Any

import pytest

from tests.support.answers import assert_error
from tests.support.checked_rows import statements_run
from tests.support.links import ACCEPTING, SITE, TYPES, Sent, assert_signed_in, hand_in, press, send, type_in

EFFECTS = (
    *("users", "identities", "sessions", "outbox", "authorization_codes"),
    *("known_networks", "one_time_tokens", "browser_sessions"),
)


@pytest.fixture
def send_message(client, service_role, outbox, database, purpose):
    """Return a new message to a new user, and forget the others."""

    def send_message() -> Sent:
        database.run("DELETE FROM users")
        database.run("DELETE FROM failure_counts")
        return send(purpose, client, service_role, outbox)

    return send_message


def by_link(client: Any, type: str, message: Sent) -> Any:
    return hand_in(client, type, message.token)


def by_code(client: Any, type: str, message: Sent) -> Any:
    return type_in(client, type, message.to, message.code)


def ways_of(message: Sent) -> list[Any]:
    """Return how a message can be spent: an invitation has no code, an SMS no link."""
    return [by_link] * bool(message.token) + [by_code] * bool(message.code)


@pytest.mark.parametrize("purpose", ACCEPTING)
class TestEachPurpose:
    def test_message_is_spent_by_its_types_and_has_one_outcome(self, client, send_message, purpose):
        members: dict[str, Any] = {"recent_changes": []} if purpose == "recovery" else {}
        method = "recovery" if purpose == "recovery" else "otp"
        for type in ACCEPTING[purpose]:
            for spend in ways_of(send_message()):
                message = send_message()
                response = spend(client, type, message)
                session = assert_signed_in(client, response, response.json["user"], **members)
                assert [each["method"] for each in session.claims["amr"]] == [method], (type, spend)
                for spend_again in ways_of(message):
                    assert_error(spend_again(client, type, message), 403, "otp_expired")

    def test_other_types_are_refused_without_effect(self, client, send_message, database, purpose):
        message = send_message()
        before = database.everything(*EFFECTS)
        for type in TYPES.keys() - ACCEPTING[purpose]:
            for spend in ways_of(message):
                assert_error(spend(client, type, message), 403, "otp_expired")
        assert database.everything(*EFFECTS) == before
        assert ways_of(message)[0](client, purpose, message).status_code == 200

    def test_wrong_codes_cost_and_count_the_same_with_all_types(
        self, client, send_message, database, parts, purpose
    ):
        """The right code counts as a wrong one with a type that does not accept it."""
        message = send_message()
        if message.code is None:
            message = Sent(**vars(message) | {"code": "000000"})
        guesses = [(type, message.wrong_code) for type in TYPES]
        guesses += [(type, message.code) for type in TYPES.keys() - ACCEPTING[purpose]]
        outcomes = set()
        for type, code in guesses:
            database.run("DELETE FROM failure_counts")
            before = statements_run()
            response = type_in(client, type, message.to, code)
            assert_error(response, 403, "otp_expired")
            cost = statements_run() - before
            counts = database.all("SELECT kind, network, seconds, count FROM failure_counts ORDER BY 1, 2, 3")
            outcomes.add((response.text, cost, tuple(map(tuple, counts))))
        assert len(outcomes) == 1, outcomes


PAGE = f"{SITE}/new-password"


@pytest.mark.parametrize(
    ("purpose", "type", "page"),
    [("recovery", "magiclink", PAGE), ("recovery", "email", PAGE), ("invite", "email", f"{SITE}/join")],
)
def test_link_leads_to_the_page_of_what_was_sent(client, send_message, type, page):
    response = press(client, type, send_message().token, redirect_to=PAGE)
    assert (response.status_code, response.location) == (303, page)


@pytest.mark.parametrize("type", ["recovery", "magiclink", "email"])
def test_link_of_a_banned_user_leads_no_other_user_to_a_new_password(
    app, client, alice, bob, outbox, database, type
):
    client.post("/recover", json={"email": alice.email})
    token = outbox.last(alice.email, "recovery").token
    database.run("UPDATE users SET banned_until = 'infinity' WHERE id = %(id)s", id=alice.id)
    response = press(client, type, token, redirect_to=PAGE)
    assert (response.status_code, response.location.partition("?")[0]) == (303, f"{SITE}/sign-in")
