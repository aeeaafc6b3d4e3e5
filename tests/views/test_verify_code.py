"""POST /verify with a code of six digits."""

from typing import Any

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, token_response, user
from tests.support.cases import cases
from tests.support.cast import session_of
from tests.support.links import (
    BY_CODE,
    BY_LINK,
    OTHER_PHONE,
    PHONE,
    TYPES,
    assert_signed_in,
    assert_signs_in,
    counted,
    follow,
    fragment,
    hand_in,
    later,
    own_form,
    send,
    type_in,
)

EFFECTS = ("users", "identities", "sessions", "outbox", "authorization_codes", "known_networks")


@pytest.fixture
def magiclink(client, service_role, outbox):
    """A message to Erin with a link and a code to sign in."""
    return send("magiclink", client, service_role, outbox)


@pytest.mark.parametrize("type", BY_CODE)
class TestEachType:
    def test_right_code_signs_in(self, client, service_role, outbox, type):
        message = send(type, client, service_role, outbox)
        response = type_in(client, type, message.to, message.code)
        recent: dict[str, Any] = {"recent_changes": []} if type == "recovery" else {}
        assert (response.status_code, response.json) == (200, token_response(response.json["user"]) | recent)
        session = session_of(client, response)
        assert session.get("/user").json == response.json["user"]
        method = "recovery" if type == "recovery" else "otp"
        assert session.claims["amr"] == [{"method": method, "timestamp": session.claims["iat"]}]
        confirmed = "phone_confirmed_at" if message.to.startswith("+") else "email_confirmed_at"
        assert response.json["user"]["phone" if message.to.startswith("+") else "email"] == message.to
        assert response.json["user"][confirmed] == A_TIMESTAMP

    def test_code_works_once_and_voids_its_link(self, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        assert type_in(client, type, message.to, message.code).status_code == 200
        before = database.everything(*EFFECTS)
        assert_error(type_in(client, type, message.to, message.code), 403, "otp_expired")
        if message.token:
            assert_error(hand_in(client, type, message.token), 403, "otp_expired")
        assert database.everything(*EFFECTS) == before

    def test_wrong_code_changes_nothing(self, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        before = database.everything(*EFFECTS)
        assert_error(type_in(client, type, message.to, message.wrong_code), 403, "otp_expired")
        assert database.everything(*EFFECTS) == before
        assert counted(database, f"code {message.to}") == 1

    def test_right_code_is_refused_after_five_wrong_tries_but_the_link_works(
        self, client, service_role, outbox, database, type
    ):
        message = send(type, client, service_role, outbox)
        for _ in range(5):
            assert_error(type_in(client, type, message.to, message.wrong_code), 403, "otp_expired")
        before = database.everything(*EFFECTS)
        assert_error(type_in(client, type, message.to, message.code), 403, "otp_expired")
        assert database.everything(*EFFECTS) == before
        if message.token:
            assert fragment(follow(client, type, message.token))["type"] == type

    def test_right_code_is_accepted_as_the_fifth_try(self, client, service_role, outbox, type):
        message = send(type, client, service_role, outbox)
        for _ in range(4):
            type_in(client, type, message.to, message.wrong_code)
        assert type_in(client, type, message.to, message.code).status_code == 200

    def test_code_expires_after_its_lifetime(self, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        later(database, secs=600 if message.channel == "sms" else 3600)
        before = database.everything(*EFFECTS)
        assert_error(type_in(client, type, message.to, message.code), 403, "otp_expired")
        assert database.everything(*EFFECTS) == before

    def test_code_is_refused_for_other_types(self, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        accepted = (
            {type}
            | ({"email"} if type in ("signup", "magiclink", "recovery") else set())
            | ({"magiclink"} if type == "email" else set())
        )
        before = database.everything(*EFFECTS)
        for other in set(TYPES) - accepted:
            assert_error(type_in(client, other, message.to, message.code), 403, "otp_expired")
        assert database.everything(*EFFECTS) == before
        assert type_in(client, type, message.to, message.code).status_code == 200

    def test_code_is_refused_for_other_addresses(self, client, service_role, outbox, database, bob, type):
        """A code is a MAC over its address: Mallory's own code must not open Bob's account."""
        message = send(type, client, service_role, outbox)
        database.run(
            "UPDATE users SET phone = %(phone)s, phone_confirmed_at = now() WHERE id = %(id)s",
            phone=OTHER_PHONE,
            id=bob.id,
        )
        before = database.everything(*EFFECTS)
        for address in (bob.email, OTHER_PHONE, "nobody@example.com", "+15550100"):
            assert_error(type_in(client, type, address, message.code), 403, "otp_expired")
        assert database.everything(*EFFECTS) == before
        assert type_in(client, type, message.to, message.code).status_code == 200

    def test_code_is_void_after_a_password_change(self, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        id = database.value("SELECT user_id FROM one_time_tokens")
        assert (
            client.put(
                f"/admin/users/{id}", json={"password": "Another-Horse-1"}, headers=service_role
            ).status_code
            == 200
        )
        assert_error(type_in(client, type, message.to, message.code), 403, "otp_expired")
        if message.token:
            assert_error(hand_in(client, type, message.token), 403, "otp_expired")

    def test_code_is_void_after_a_ban_even_when_it_is_lifted(
        self, client, service_role, outbox, database, type
    ):
        message = send(type, client, service_role, outbox)
        id = database.value("SELECT user_id FROM one_time_tokens")
        client.put(f"/admin/users/{id}", json={"ban_duration": "1h"}, headers=service_role)
        assert type_in(client, type, message.to, message.code).status_code == 403
        client.put(f"/admin/users/{id}", json={"ban_duration": None}, headers=service_role)
        assert_error(type_in(client, type, message.to, message.code), 403, "otp_expired")
        assert database.count("sessions", "ended_at IS NULL") == 0

    def test_code_is_void_after_deletion_of_its_user(self, client, service_role, outbox, database, type):
        message = send(type, client, service_role, outbox)
        id = database.value("SELECT user_id FROM one_time_tokens")
        assert client.delete(f"/admin/users/{id}", headers=service_role).status_code == 200
        assert_error(type_in(client, type, message.to, message.code), 403, "otp_expired")
        assert (database.count("users"), database.count("sessions")) == (0, 0)


@pytest.mark.parametrize("type", [type for type in BY_CODE if type in BY_LINK])
def test_spent_link_voids_its_code(client, service_role, outbox, type):
    message = send(type, client, service_role, outbox)
    assert fragment(follow(client, type, message.token))["type"] == type
    assert_error(type_in(client, type, message.to, message.code), 403, "otp_expired")


class TestDailyLimitOfTries:
    """Twenty wrong tries a day for all codes of one address; links are not affected."""

    def ask(self, client):
        client.post("/magiclink", json={"email": "erin@example.com"})

    def waste(self, client, outbox, tries, type="magiclink"):
        for number in range(tries):
            if number % 5 == 0:
                self.ask(client)
            assert_error(
                type_in(client, type, "erin@example.com", outbox.last().wrong_code), 403, "otp_expired"
            )

    def test_codes_are_refused_after_twenty_wrong_tries_but_links_work(
        self, client, magiclink, outbox, database
    ):
        self.waste(client, outbox, 20)
        self.ask(client)
        message = outbox.last()
        assert_error(type_in(client, "magiclink", message.to, message.code), 403, "otp_expired")
        assert_signs_in(client, "magiclink", message.token)

    def test_code_is_accepted_after_nineteen_wrong_tries(self, client, magiclink, outbox):
        self.waste(client, outbox, 19)
        self.ask(client)
        assert type_in(client, "magiclink", "erin@example.com", outbox.last().code).status_code == 200

    def test_codes_work_again_the_next_day(self, client, magiclink, outbox, database):
        self.waste(client, outbox, 21)
        later(database, days=1)
        self.ask(client)
        assert type_in(client, "magiclink", "erin@example.com", outbox.last().code).status_code == 200

    def test_tries_are_counted_over_all_types(self, client, magiclink, outbox):
        """Otherwise an attacker who requests a code of each type has five times as many guesses."""
        for number in range(20):
            if number % 4 == 0:
                self.ask(client)
                client.post("/recover", json={"email": "erin@example.com"})
            assert_error(
                type_in(
                    client,
                    ["magiclink", "recovery", "email", "signup"][number % 4],
                    "erin@example.com",
                    outbox.last().wrong_code,
                ),
                403,
                "otp_expired",
            )
        self.ask(client)
        client.post("/recover", json={"email": "erin@example.com"})
        for kind in ("magiclink", "recovery"):
            assert_error(
                type_in(client, kind, "erin@example.com", outbox.last(kind=kind).code), 403, "otp_expired"
            )
        assert_signs_in(client, "recovery", outbox.last(kind="recovery").token)

    def test_right_codes_do_not_count_as_tries(self, client, magiclink, outbox, database):
        for _ in range(22):
            self.ask(client)
            assert type_in(client, "magiclink", "erin@example.com", outbox.last().code).status_code == 200
        assert counted(database, "code erin@example.com") == 0

    def test_right_code_does_not_reset_the_count(self, client, magiclink, outbox, database):
        self.waste(client, outbox, 7)
        self.ask(client)
        assert type_in(client, "magiclink", "erin@example.com", outbox.last().code).status_code == 200
        assert counted(database, "code erin@example.com") == 7

    def test_malformed_code_does_not_count_as_a_try(self, client, magiclink, database):
        for code in ("", "12345", "abcdef", "x" * 43):
            assert_error(type_in(client, "magiclink", magiclink.to, code), 403, "otp_expired")
        assert counted(database, f"code {magiclink.to}") == 0
        assert database.value("SELECT tries FROM one_time_tokens") == 0

    def test_tries_are_counted_per_address(self, client, magiclink, outbox, alice):
        client.post("/magiclink", json={"email": alice.email})
        self.waste(client, outbox, 21)
        assert type_in(client, "magiclink", alice.email, outbox.last(alice.email).code).status_code == 200

    def test_tries_are_counted_over_all_spellings_of_an_address(self, client, magiclink, outbox, database):
        for number in range(20):
            if number % 5 == 0:
                self.ask(client)
            address = ["erin@example.com", "ERIN@example.com", "Erin@EXAMPLE.com"][number % 3]
            type_in(client, "magiclink", address, outbox.last().wrong_code)
        self.ask(client)
        assert_error(type_in(client, "magiclink", "erin@example.com", outbox.last().code), 403, "otp_expired")

    def test_tries_are_limited_with_rate_limits_disabled(self, make_app, magiclink, outbox):
        client = make_app(AUTH_RATE_LIMITS_ENABLED="false").test_client()
        self.waste(client, outbox, 20)
        self.ask(client)
        assert_error(type_in(client, "magiclink", magiclink.to, outbox.last().code), 403, "otp_expired")


class TestSpelling:
    @pytest.mark.parametrize(
        "change",
        [
            lambda code: f" {code}",
            lambda code: f"{code} ",
            lambda code: f"{code[:3]} {code[3:]}",
            lambda code: f"{code[:3]}-{code[3:]}",
            lambda code: f"{code}\n",
            lambda code: f"0{code}",
            lambda code: f"+{code}",
            lambda code: code.translate({48 + digit: 0xFF10 + digit for digit in range(10)}),
            lambda code: code.translate({48 + digit: 0x0660 + digit for digit in range(10)}),
            lambda code: code[:5],
        ],
    )
    def test_code_in_another_spelling_is_refused(self, client, magiclink, database, change):
        assert_error(type_in(client, "magiclink", magiclink.to, change(magiclink.code)), 403, "otp_expired")
        assert database.count("sessions") == 0
        assert type_in(client, "magiclink", magiclink.to, magiclink.code).status_code == 200

    def test_address_may_be_spelled_differently(self, client, magiclink):
        expected = user("erin@example.com", last_sign_in_at=A_TIMESTAMP)
        assert_signed_in(client, type_in(client, "magiclink", "ERIN@Example.com", magiclink.code), expected)


class TestMisplacedCodes:
    def test_code_is_refused_as_the_token_of_a_link(self, client, magiclink):
        assert (
            fragment(follow(client, "magiclink", magiclink.code, email=magiclink.to))["error_code"]
            == "otp_expired"
        )
        assert_error(hand_in(client, "magiclink", magiclink.code), 403, "otp_expired")
        assert type_in(client, "magiclink", magiclink.to, magiclink.code).status_code == 200

    def test_token_of_a_link_is_refused_as_a_code(self, client, magiclink):
        assert_error(type_in(client, "magiclink", magiclink.to, magiclink.token), 403, "otp_expired")
        assert_signs_in(client, "magiclink", magiclink.token)

    def test_code_without_an_address_is_refused(self, client, magiclink, database):
        response = client.post("/verify", json={"type": "magiclink", "token": magiclink.code})
        assert_error(response, 400, "validation_failed", details=A_SENTENCE)
        assert database.count("sessions") == 0

    def test_code_in_a_form_is_refused(self, client, magiclink, database):
        form = {"type": "magiclink", "token": magiclink.code, "email": magiclink.to} | own_form(client)
        response = client.post("/verify", data=form)
        assert fragment(response)["error_code"] == "otp_expired"
        assert database.count("sessions") == 0

    def test_code_sent_with_a_token_hash_is_ignored(self, client, magiclink, database):
        body = {"type": "magiclink", "token_hash": "x" * 43, "token": magiclink.code, "email": magiclink.to}
        assert_error(client.post("/verify", json=body), 403, "otp_expired")
        assert database.count("sessions") == 0

    def test_invitation_has_no_code(self, client, service_role, outbox):
        message = send("invite", client, service_role, outbox)
        assert message.code is None
        for code in ("000000", "", "None", "null"):
            assert_error(type_in(client, "invite", message.to, code), 403, "otp_expired")
        assert_signs_in(client, "invite", message.token)

    def test_stored_mac_is_refused_as_a_code(self, client, magiclink, database):
        mac = database.value("SELECT encode(code_mac, 'hex') FROM one_time_tokens")
        hash = (
            database.value("SELECT encode(token_hash, 'base64') FROM one_time_tokens")
            .rstrip("=")
            .replace("+", "-")
            .replace("/", "_")
        )
        assert_error(type_in(client, "magiclink", magiclink.to, mac), 403, "otp_expired")
        assert_error(hand_in(client, "magiclink", hash), 403, "otp_expired")
        assert database.count("sessions") == 0


class TestRefusals:
    @cases(
        ("body", "details"),
        [
            ({}, "type: is required"),
            ({"type": "magiclink"}, "token: give a token with an email or a phone, or a token_hash"),
            ({"type": "magiclink", "token": "123456"}, "email: give either an email or a phone"),
            (
                {"type": "magiclink", "token": "123456", "email": "erin@example.com", "phone": PHONE},
                "email: give either an email or a phone",
            ),
            ({"type": "magiclink", "email": "erin@example.com"}, A_SENTENCE),
            ({"type": "magiclink", "token": 123456, "email": "erin@example.com"}, "token: must be a string"),
            (
                {"type": "magiclink", "token": ["123456"], "email": "erin@example.com"},
                "token: must be a string",
            ),
            (
                {"type": "magiclink", "token": {"$gt": ""}, "email": "erin@example.com"},
                "token: must be a string",
            ),
            ({"type": "magiclink", "token_hash": True}, "token_hash: must be a string"),
            ({"type": "magiclink", "token_hash": "x" * 3000}, A_SENTENCE),
            ({"type": "nonsense", "token_hash": "x"}, A_SENTENCE),
            ({"type": "MAGICLINK", "token_hash": "x"}, A_SENTENCE),
            ({"type": "reauthentication", "token": "123456", "email": "erin@example.com"}, A_SENTENCE),
            ({"type": "sms_signup", "token": "123456", "phone": PHONE}, A_SENTENCE),
            ({"type": "undo", "token_hash": "x" * 43}, A_SENTENCE),
            ({"type": ["magiclink"], "token_hash": "x"}, "type: must be a string"),
            ({"type": "sms", "token": "123456", "phone": "49170"}, A_SENTENCE),
        ],
    )
    def test_invalid_body_is_refused(self, client, magiclink, database, body, details):
        before = database.everything()
        assert_error(client.post("/verify", json=body), 400, "validation_failed", details=details)
        assert database.everything() == before

    def test_other_content_type_is_refused(self, client, magiclink, database):
        body = f'{{"type": "magiclink", "email": "{magiclink.to}", "token": "{magiclink.code}"}}'
        for content_type in ("text/plain", "multipart/form-data; boundary=x", "application/xml", ""):
            assert_error(
                client.post("/verify", data=body, content_type=content_type),
                415,
                "unsupported_media_type",
                details=A_SENTENCE,
            )
        assert database.count("sessions") == 0

    @pytest.mark.parametrize("type", BY_LINK)
    def test_unknown_link_and_unknown_code_get_the_same_response(self, client, database, type):
        unknown = hand_in(client, type, "x" * 43)
        assert_error(unknown, 403, "otp_expired")
        assert type_in(client, type, "nobody@example.com", "123456").json == unknown.json

    def test_known_and_unknown_address_cost_the_same_statements(self, client, magiclink, parts):
        counts = []
        for address in (magiclink.to, "nobody@example.com"):
            before = parts.db.statements_run
            assert_error(type_in(client, "magiclink", address, magiclink.wrong_code), 403, "otp_expired")
            counts.append(parts.db.statements_run - before)
        assert counts == [2, 2]


def test_thirty_first_try_in_five_minutes_from_one_network_is_429(make_app, magiclink, database):
    client = make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client()
    for number in range(30):
        response = type_in(client, "magiclink", f"nobody{number}@example.com", "123456")
        assert_error(response, 403, "otp_expired")
        assert response.headers["X-RateLimit-Remaining"] == str(29 - number)
    before = database.everything("users", "sessions", "one_time_tokens", "failure_counts")
    assert_error(type_in(client, "magiclink", magiclink.to, magiclink.code), 429, "over_request_rate_limit")
    assert_error(
        client.post("/auth/v1/verify", json={"type": "magiclink", "token_hash": magiclink.token}),
        429,
        "over_request_rate_limit",
    )
    assert_error(
        client.post("/token?grant_type=pkce", json={"auth_code": "x", "code_verifier": "x" * 43}),
        429,
        "over_request_rate_limit",
    )
    assert database.everything("users", "sessions", "one_time_tokens", "failure_counts") == before
    later(database, mins=5)
    assert type_in(client, "magiclink", magiclink.to, magiclink.code).status_code == 200
