"""POST /admin/invite: an invitation by mail. test_verify_link.py tests what its link has in common with others."""

import pytest

from tests.support.answers import A_TIMESTAMP, A_UUID, assert_error, assert_ok, user
from tests.support.links import assert_dead, assert_signs_in, hand_in, later, type_in
from tests.support.server import at_once
from tests.support.users import DAVE, PASSWORD, sign_in

DAYS = 86_400


@pytest.fixture
def ask(client, service_role):
    """Ask for an invitation."""

    def ask(email=DAVE, path="/admin/invite", **others):
        return client.post(path, json={"email": email, **others}, headers=service_role)

    return ask


@pytest.fixture
def invite(ask):
    """Invite an address and return the result."""

    def invite(email=DAVE, **others):
        response = ask(email, **others)
        assert response.status_code == 200, response.text
        return response.json

    return invite


def invited_user(**changes):
    """Return the expected user object of an invitation."""
    unconfirmed = {"email_confirmed_at": None, "confirmed_at": None, "confirmation_sent_at": A_TIMESTAMP}
    return user(DAVE, invited_at=A_TIMESTAMP, **unconfirmed, **changes)


class TestInviting:
    @pytest.mark.parametrize("path", ["/admin/invite", "/invite"])
    def test_invitation_makes_a_user_and_a_link(self, client, service_role, ask, outbox, database, path):
        response = ask(path=path, data=None, options=None, redirect_to=None)
        assert_ok(response, {"user": invited_user(), "message_id": A_UUID})
        assert database.value("SELECT id FROM outbox") == response.json["message_id"]
        user_response = client.get(f"/admin/users/{response.json['user']['id']}", headers=service_role)
        assert_ok(user_response, response.json["user"])
        (message,) = outbox.sent()
        assert (message.kind, message.channel, message.to) == ("invite", "email", DAVE)
        assert (message.code, message.lifetime, len(message.token)) == (None, 7 * DAYS, 43)
        for code in ("000000", "123456", ""):
            assert_error(type_in(client, "invite", DAVE, code), 403, "otp_expired")
        assert_error(sign_in(client, DAVE), 401, "invalid_credentials")
        assert database.count("sessions") == 0

    def test_data_becomes_user_metadata_and_options_data_app_metadata(self, invite):
        options = {"data": {"team_id": 7, "provider": "google", "none": None}, "captcha_token": "x"}
        result = invite(data={"first_name": "Dave", "role": "admin", "none": None}, options=options)
        assert result["user"] == invited_user(
            user_metadata={"first_name": "Dave", "role": "admin"},
            app_metadata={"team_id": 7, "provider": "email", "providers": ["email"]},
        )


def test_opened_link_works_for_seven_days(client, invite, outbox, database):
    for email, seconds in ((DAVE, 60), ("erin@example.com", 0)):
        invite(email)
        later(database, secs=7 * DAYS - seconds)
        check = assert_signs_in if seconds else assert_dead
        check(client, "invite", outbox.last(email).token)
    assert database.value("SELECT email FROM users WHERE email_confirmed_at IS NOT NULL") == DAVE


class TestInvitingAgain:
    def test_second_invitation_keeps_user_and_link(self, client, service_role, invite, outbox, database):
        first = invite(data={"first_name": "Dave", "x": 1}, options={"data": {"team_id": 7}})["user"]
        path = f"/admin/users/{first['id']}"
        database.run("UPDATE users SET invited_at = invited_at - interval '1 day'")
        second = invite(data={"x": None, "last_name": "Davis"})["user"]
        assert second == invited_user(
            id=first["id"],
            user_metadata={"first_name": "Dave", "last_name": "Davis"},
            app_metadata={"team_id": 7, "provider": "email", "providers": ["email"]},
        )
        assert second["invited_at"] >= first["invited_at"]
        assert_ok(client.get(path, headers=service_role), second)
        assert (database.count("users"), len(outbox.sent())) == (1, 2)
        assert_signs_in(client, "invite", outbox.sent()[0].token)
        assert_dead(client, "invite", outbox.sent()[1].token)

    @pytest.mark.parametrize(
        ("path", "body", "next_step"),
        [
            ("/admin/users", {}, ""),
            ("/magiclink", {}, "ban"),
            ("/signup", {"password": PASSWORD}, "prove"),
            ("/admin/invite", {}, "prove"),
        ],
    )
    def test_other_user_is_409_unchanged(
        self, client, service_role, ask, outbox, database, path, body, next_step
    ):
        response = client.post(path, json={"email": DAVE} | body, headers=service_role)
        assert response.status_code in (200, 201)
        if next_step == "prove":
            message = outbox.last()
            hand_in(client, message.kind, message.token)
        elif next_step == "ban":
            database.run("UPDATE users SET banned_until = 'infinity'")
        before = database.everything()
        assert_error(ask(data={"x": 1}, options={"data": {"y": 1}}), 409, "email_exists")
        assert database.everything() == before

    def test_twenty_concurrent_invitations_create_one_user(self, server, service_role, database):
        body = {"email": DAVE}
        answers = at_once(20, lambda _: server.post("/admin/invite", json=body, headers=service_role))
        assert [answer.status_code for answer in answers] == [200] * 20
        assert (database.count("users"), database.count("identities"), database.count("outbox")) == (1, 1, 20)


class TestLimits:
    @pytest.fixture
    def client(self, make_app):
        return make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client()

    def test_three_a_day_to_an_address_and_thirty_an_hour_are_sent(self, ask, invite, outbox, database):
        def headers(email, **others):
            response = ask(email, **others)
            limit = [response.headers[f"X-RateLimit-{name}"] for name in ("Limit", "Remaining", "Reset")]
            return response.status_code, *limit[:2], int(limit[2]) > 3600

        assert headers("DAVE@example.com") == (200, "3", "2", True)
        assert headers("dave@EXAMPLE.com", path="/invite") == (200, "3", "1", True)
        assert [headers(DAVE) for _ in range(2)] == [(200, "3", "0", True), (429, "3", "0", True)]
        for number in range(26):
            invite(f"dave{number}@example.com")
        assert headers("erin@example.com") == (200, "30", "0", False)
        assert headers("frank@example.com") == (429, "30", "0", False)
        assert (database.count("users"), len(outbox.sent())) == (28, 30)
        later(database, hours=1)
        assert [headers(email)[0] for email in ("frank@example.com", DAVE)] == [200, 429]
        later(database, hours=23)
        assert headers(DAVE)[0] == 200
