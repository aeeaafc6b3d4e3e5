"""POST /verify with a code of six digits."""

import base64

import pytest

from tests.support.answers import A_SENTENCE, assert_error
from tests.support.links import (
    ACCEPTING,
    BY_CODE,
    OTHER_PHONE,
    TYPES,
    assert_dead,
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
ERIN = "erin@example.com"


def assert_expired(response):
    assert_error(response, 403, "otp_expired")


@pytest.fixture(name="type")
def default_type():
    return "magiclink"


@pytest.fixture
def message(client, service_role, outbox, type):
    return send(type, client, service_role, outbox)


@pytest.fixture
def unspent(client, database, type, message, bob):
    """Assert that the requests of a test have no effect, and that the code works after them."""
    database.run("UPDATE users SET phone = %(phone)s WHERE id = %(id)s", phone=OTHER_PHONE, id=bob.id)
    before = database.everything(*EFFECTS)
    yield
    assert database.everything(*EFFECTS) == before
    assert type_in(client, type, message.to, message.code).status_code == 200


@pytest.mark.parametrize("type", BY_CODE)
class TestEachType:
    @pytest.mark.parametrize("tries", [4, 5])
    def test_code_is_refused_after_five_wrong_tries_but_no_link(self, client, message, database, type, tries):
        before = database.everything(*EFFECTS)
        for number in range(tries):
            assert_expired(type_in(client, type, message.to, message.wrong_code))
            assert counted(database, f"code {message.to} 127.0.0.1") == number + 1
        assert database.everything(*EFFECTS) == before
        response = type_in(client, type, message.to, message.code)
        if tries == 4:
            assert response.status_code == 200
            return
        assert_expired(response)
        assert database.everything(*EFFECTS) == before
        if message.token:
            assert fragment(follow(client, type, message.token))["type"] == type

    def test_code_expires_after_its_lifetime(self, client, message, database, type):
        later(database, secs=600 if message.channel == "sms" else 3600)
        before = database.everything(*EFFECTS)
        assert_expired(type_in(client, type, message.to, message.code))
        assert database.everything(*EFFECTS) == before

    @pytest.mark.usefixtures("unspent")
    def test_code_is_refused_for_other_types_and_addresses(self, client, message, bob, type):
        """A code is a MAC over its address: Mallory's own code must not open Bob's account."""
        for other in TYPES.keys() - ACCEPTING[TYPES[type][1]]:
            assert_expired(type_in(client, other, message.to, message.code))
        for address in (bob.email, OTHER_PHONE, "nobody@example.com", "+15550100"):
            assert_expired(type_in(client, type, address, message.code))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(
    "change",
    [{"email": "elsewhere@example.com"}, {"password": "Another-Horse-1"}, {"ban_duration": "1h"}, None],
    ids=["address", "password", "ban", "deletion"],
)
def test_link_and_code_are_void_after_a_change(client, service_role, message, database, type, change):
    path = f"/admin/users/{database.value('SELECT user_id FROM one_time_tokens')}"
    if change is None:
        assert client.delete(path, headers=service_role).status_code == 200
    else:
        by_sms = "email" in change and message.channel == "sms"
        body = {"phone": OTHER_PHONE, "phone_confirm": True} if by_sms else change
        assert client.put(path, json=body, headers=service_role).status_code == 200
        client.put(path, json={"ban_duration": None}, headers=service_role)
    before = database.everything("sessions")
    if message.code:
        assert_expired(type_in(client, type, message.to, message.code))
    if message.token:
        assert_dead(client, type, message.token)
    assert database.everything("sessions") == before


class TestDailyLimitOfTries:
    """Twenty wrong tries a day for all codes of one address; links are not affected."""

    @pytest.fixture
    def ask(self, client, outbox, message):
        def ask(kind="magiclink"):
            client.post("/recover" if kind == "recovery" else "/magiclink", json={"email": ERIN})
            return outbox.last(ERIN, kind)

        return ask

    @pytest.fixture
    def waste(self, client, ask):
        def waste(tries, addresses=(ERIN,), client=client):
            wrong_code = ""
            for number in range(tries):
                wrong_code = ask().wrong_code if number % 5 == 0 else wrong_code
                assert_expired(type_in(client, "magiclink", addresses[number % len(addresses)], wrong_code))

        return waste

    def test_codes_are_refused_after_twenty_wrong_tries_but_links_work(self, client, ask, waste):
        waste(20)
        message = ask()
        assert_expired(type_in(client, "magiclink", ERIN, message.code))
        assert_signs_in(client, "magiclink", message.token)

    def test_malformed_code_does_not_count_as_a_try(self, client, message, database):
        for code in ("", "12345", "abcdef", "x" * 43):
            assert_expired(type_in(client, "magiclink", message.to, code))
        assert database.count("failure_counts", "count > 0") == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda code: f" {code[:3]} {code[3:]}",
        lambda code: f"{code[:3]}-{code[3:]}\n",
        lambda code: code.translate({48 + digit: 0x0660 + digit for digit in range(10)}),
    ],
)
def test_code_as_people_type_it_signs_in_once(client, message, change):
    assert type_in(client, "magiclink", message.to, change(message.code)).status_code == 200
    assert_expired(type_in(client, "magiclink", message.to, message.code))


class TestMisplacedCodes:
    @pytest.mark.usefixtures("unspent")
    def test_code_and_the_token_of_its_link_are_not_confused(self, client, message):
        code = {"type": "magiclink", "token": message.code}
        link_response = follow(client, "magiclink", message.code, email=message.to)
        assert fragment(link_response)["error_code"] == "otp_expired"
        assert_expired(hand_in(client, "magiclink", message.code))
        assert_expired(type_in(client, "magiclink", message.to, message.token))
        assert_expired(client.post("/verify", json=code | {"token_hash": "x" * 43, "email": message.to}))
        assert_error(client.post("/verify", json=code), 400, "validation_failed", details=A_SENTENCE)
        form_response = client.post("/verify", data=code | {"email": message.to} | own_form(client))
        assert fragment(form_response)["error_code"] == "otp_expired"

    @pytest.mark.parametrize("type", ["invite"])
    def test_invitation_has_no_code(self, client, message, type):
        assert message.code is None
        for code in ("000000", "", "None", "null"):
            assert_expired(type_in(client, "invite", message.to, code))
        assert_signs_in(client, "invite", message.token)

    @pytest.mark.usefixtures("unspent")
    def test_stored_mac_is_refused_as_a_code(self, client, message, database):
        mac, hash = database.one("SELECT encode(code_mac, 'hex'), token_hash FROM one_time_tokens")
        assert_expired(type_in(client, "magiclink", message.to, mac))
        assert_expired(hand_in(client, "magiclink", base64.urlsafe_b64encode(hash).decode().rstrip("=")))
