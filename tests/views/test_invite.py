"""POST /admin/invite: an invitation by mail."""

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, A_UUID, assert_error, assert_ok, identity, user
from tests.support.cases import cases
from tests.support.cast import PASSWORD, sign_in
from tests.support.links import PHONE, assert_dead, assert_signed_in, assert_signs_in, hand_in, later, type_in
from tests.support.server import at_once

DAVE = "dave@example.com"
DAYS = 86_400


@pytest.fixture
def invite(client, service_role):
    """Invite an address and return the result."""

    def send(email=DAVE, **others):
        response = client.post("/admin/invite", json={"email": email, **others}, headers=service_role)
        assert response.status_code == 200, response.text
        return response.json

    return send


def invited(**changes):
    """Return the expected user object of an invitation."""
    return user(
        DAVE,
        email_confirmed_at=None,
        confirmed_at=None,
        invited_at=A_TIMESTAMP,
        confirmation_sent_at=A_TIMESTAMP,
        **changes,
    )


class TestInviting:
    def test_response_has_the_user_and_the_message(self, client, service_role, database):
        response = client.post("/admin/invite", json={"email": DAVE}, headers=service_role)
        assert_ok(response, {"user": invited(), "message_id": A_UUID})
        assert database.value("SELECT id FROM outbox") == response.json["message_id"]
        kept = client.get(f"/admin/users/{response.json['user']['id']}", headers=service_role)
        assert_ok(kept, response.json["user"])

    def test_invitation_mails_a_link_without_a_code(self, invite, outbox):
        invite()
        (message,) = outbox.sent()
        assert (message.kind, message.channel, message.to, message.code, message.lifetime) == (
            "invite",
            "email",
            DAVE,
            None,
            7 * DAYS,
        )
        assert len(message.token) == 43

    def test_data_becomes_user_metadata_and_options_data_app_metadata(self, invite):
        result = invite(
            data={"first_name": "Dave", "role": "admin", "none": None},
            options={"data": {"team_id": 7, "provider": "google", "none": None}, "captcha_token": "x"},
        )
        assert result["user"] == invited(
            user_metadata={"first_name": "Dave", "role": "admin"},
            app_metadata={"team_id": 7, "provider": "email", "providers": ["email"]},
        )

    def test_short_path_invites_too(self, client, service_role, outbox):
        response = client.post("/invite", json={"email": DAVE}, headers=service_role)
        assert_ok(response, {"user": invited(), "message_id": A_UUID})
        assert outbox.kinds() == [("invite", DAVE)]

    def test_email_may_be_spelled_differently(self, invite, outbox, database):
        invite("Dave@EXAMPLE.com")
        invite()
        assert (database.count("users"), outbox.kinds()) == (1, [("invite", DAVE)] * 2)

    def test_invited_user_cannot_sign_in_before_the_link_is_used(self, client, invite, database):
        invite()
        assert_error(sign_in(client, DAVE), 401, "invalid_credentials")
        assert database.count("sessions") == 0


class TestAccepting:
    def test_link_confirms_the_address_and_signs_in(self, client, invite, outbox):
        made = invite(data={"first_name": "Dave"})["user"]
        accepted = invited(
            id=made["id"],
            last_sign_in_at=A_TIMESTAMP,
            user_metadata={"first_name": "Dave"},
            identities=[identity("email", DAVE, last_sign_in_at=A_TIMESTAMP)],
        )
        response = hand_in(client, "invite", outbox.last().token)
        session = assert_signed_in(
            client, response, accepted | {"email_confirmed_at": A_TIMESTAMP, "confirmed_at": A_TIMESTAMP}
        )
        assert session.put("/user", json={"password": PASSWORD}).status_code == 200
        assert sign_in(client, DAVE).status_code == 200

    def test_opened_link_redirects_to_the_site(self, client, invite, outbox):
        invite()
        assert_signs_in(client, "invite", outbox.last().token)
        assert_dead(client, "invite", outbox.last().token)

    def test_link_works_for_seven_days(self, client, invite, outbox, database):
        invite()
        later(database, secs=7 * DAYS - 10)
        assert_signs_in(client, "invite", outbox.last().token)

    def test_link_expires_after_seven_days(self, client, invite, outbox, database):
        invite()
        later(database, secs=7 * DAYS)
        assert_dead(client, "invite", outbox.last().token)
        assert database.value("SELECT email_confirmed_at FROM users") is None

    @pytest.mark.parametrize("type", ["signup", "magiclink", "email", "recovery", "email_change"])
    def test_link_is_refused_for_other_types(self, client, invite, outbox, type):
        invite()
        assert_dead(client, type, outbox.last().token)
        assert_signs_in(client, "invite", outbox.last().token)

    def test_other_proof_of_the_address_accepts_the_invitation(self, client, invite, outbox):
        invite()
        link = outbox.last().token
        client.post("/magiclink", json={"email": DAVE})
        session = assert_signs_in(client, "magiclink", outbox.last().token)
        assert session.get("/user").json["invited_at"] == A_TIMESTAMP
        assert_dead(client, "invite", link)


class TestInvitingAgain:
    def test_second_invitation_keeps_the_first_link(self, client, invite, outbox, database):
        first = invite(data={"first_name": "Dave", "x": 1}, options={"data": {"team_id": 7}})["user"]
        database.run("UPDATE users SET invited_at = invited_at - interval '1 day'")
        second = invite(data={"x": None, "last_name": "Davis"})["user"]
        expected = invited(id=first["id"], user_metadata={"first_name": "Dave", "last_name": "Davis"})
        assert second == expected | {
            "app_metadata": {"team_id": 7, "provider": "email", "providers": ["email"]}
        }
        assert second["invited_at"] >= first["invited_at"]
        assert (database.count("users"), len(outbox.sent())) == (1, 2)
        assert_signs_in(client, "invite", outbox.sent()[0].token)
        assert_dead(client, "invite", outbox.sent()[1].token)

    def test_second_invitation_returns_the_user_with_all_identities(self, client, service_role, invite):
        path = f"/admin/users/{invite()['user']['id']}"
        client.put(path, json={"phone": PHONE}, headers=service_role)
        again = invite()["user"]
        expected = invited(phone=PHONE, identities=[identity("email", DAVE), identity("phone", PHONE)])
        assert again == expected | {"app_metadata": {"provider": "email", "providers": ["email", "phone"]}}
        assert_ok(client.get(path, headers=service_role), again)

    def test_invitation_made_by_generate_link_can_be_repeated(self, client, service_role, invite, outbox):
        client.post("/admin/generate_link", json={"type": "invite", "email": DAVE}, headers=service_role)
        invite()
        assert outbox.kinds() == [("invite", DAVE)]

    @pytest.mark.parametrize(
        "maker", ["admin", "unconfirmed", "signup", "magiclink", "accepted", "with a password"]
    )
    def test_other_user_is_409_and_unchanged(self, client, service_role, invite, outbox, database, maker):
        if maker in ("accepted", "with a password"):
            invite()
        {
            "admin": lambda: client.post(
                "/admin/users", json={"email": DAVE, "email_confirm": True}, headers=service_role
            ),
            "unconfirmed": lambda: client.post("/admin/users", json={"email": DAVE}, headers=service_role),
            "signup": lambda: client.post("/signup", json={"email": DAVE, "password": PASSWORD}),
            "magiclink": lambda: client.post("/magiclink", json={"email": DAVE}),
            "accepted": lambda: hand_in(client, "invite", outbox.last().token),
            "with a password": lambda: database.run("UPDATE users SET password_hash = 'x'"),
        }[maker]()
        before = database.everything()
        response = client.post(
            "/admin/invite",
            json={"email": DAVE, "data": {"x": 1}, "options": {"data": {"y": 1}}},
            headers=service_role,
        )
        assert_error(response, 409, "email_exists")
        assert database.everything() == before

    def test_sign_up_does_not_change_an_invited_user(self, client, invite, outbox, database):
        invite(data={"first_name": "Dave"})
        before = database.everything("users", "identities", "one_time_tokens")
        assert client.post("/signup", json={"email": DAVE, "password": PASSWORD}).status_code == 201
        assert database.everything("users", "identities", "one_time_tokens") == before
        assert_error(sign_in(client, DAVE), 401, "invalid_credentials")
        assert_signs_in(client, "invite", outbox.last(kind="invite").token)
        assert_error(sign_in(client, DAVE), 401, "invalid_credentials")

    def test_twenty_concurrent_invitations_create_one_user(self, server, service_role, database):
        answers = at_once(
            20, lambda _: server.post("/admin/invite", json={"email": DAVE}, headers=service_role)
        )
        assert [answer.status_code for answer in answers] == [200] * 20
        assert (database.count("users"), database.count("identities"), database.count("outbox")) == (1, 1, 20)


class TestLimits:
    @pytest.fixture
    def client(self, make_app):
        return make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client()

    def test_three_invitations_a_day_go_to_one_address(self, client, service_role, invite, outbox, database):
        for _ in range(3):
            invite()
        before = database.everything("users", "identities", "one_time_tokens", "outbox")
        for path, email in (
            ("/admin/invite", DAVE),
            ("/invite", "DAVE@example.com"),
            ("/auth/v1/invite", DAVE),
        ):
            response = client.post(path, json={"email": email, "data": {"x": 1}}, headers=service_role)
            assert_error(response, 429, "over_email_send_rate_limit")
            assert 86_000 < int(response.headers["Retry-After"]) <= DAYS
        assert database.everything("users", "identities", "one_time_tokens", "outbox") == before
        assert (
            client.post("/admin/invite", json={"email": "erin@example.com"}, headers=service_role).status_code
            == 200
        )
        later(database, days=1)
        invite()

    def test_headers_describe_the_limit_with_least_left(self, client, service_role, invite):
        def headers(email=DAVE):
            response = client.post("/admin/invite", json={"email": email}, headers=service_role)
            reset = int(response.headers["X-RateLimit-Reset"])
            return (
                response.status_code,
                response.headers["X-RateLimit-Limit"],
                response.headers["X-RateLimit-Remaining"],
                reset > 3600,
            )

        assert [headers() for _ in range(4)] == [
            (200, "3", "2", True),
            (200, "3", "1", True),
            (200, "3", "0", True),
            (429, "3", "0", True),
        ]
        for number in range(26):
            invite(f"dave{number}@example.com")
        assert headers("erin@example.com") == (200, "30", "0", False)
        assert headers("frank@example.com") == (429, "30", "0", False)

    def test_thirty_invitations_an_hour_are_sent_in_all(self, client, service_role, invite, outbox, database):
        for number in range(30):
            invite(f"dave{number}@example.com")
        response = client.post("/admin/invite", json={"email": DAVE}, headers=service_role)
        assert_error(response, 429, "over_email_send_rate_limit")
        assert 3500 < int(response.headers["Retry-After"]) <= 3600
        assert (database.count("users"), len(outbox.sent())) == (30, 30)
        later(database, hours=1)
        invite()

    def test_invitation_refused_for_one_address_does_not_count_for_others(self, client, service_role, invite):
        for _ in range(40):
            client.post("/admin/invite", json={"email": DAVE}, headers=service_role)
        invite("erin@example.com")

    def test_invitation_refused_with_409_does_not_count(self, client, service_role, invite, alice):
        for _ in range(40):
            assert (
                client.post("/admin/invite", json={"email": alice.email}, headers=service_role).status_code
                == 409
            )
        invite()

    def test_invitations_do_not_use_up_the_message_quota_of_the_address(self, client, invite, outbox):
        invite()
        client.post("/magiclink", json={"email": DAVE})
        assert [kind for kind, _ in outbox.kinds()] == ["invite", "magiclink"]

    def test_concurrent_invitations_stay_within_the_limit(self, make_app, invite, service_role, database):
        app = make_app(AUTH_RATE_LIMITS_ENABLED="true")
        answers = at_once(
            10, lambda _: app.test_client().post("/admin/invite", json={"email": DAVE}, headers=service_role)
        )
        assert sorted(answer.status_code for answer in answers) == [200] * 3 + [429] * 7
        assert database.count("outbox") == 3


class TestRefusals:
    @cases(
        ("body", "details"),
        [
            ({}, "email: is required"),
            ({"email": None}, "email: is required"),
            ({"email": "dave"}, A_SENTENCE),
            ({"email": DAVE, "data": []}, "data: must be an object"),
            ({"email": DAVE, "options": []}, "options: must be an object"),
            ({"email": DAVE, "options": {"data": "x"}}, "options.data: must be an object"),
            ({"email": DAVE, "options": {"captcha_token": 1}}, "options.captcha_token: must be a string"),
            ({"email": DAVE, "redirect_to": {}}, "redirect_to: must be a string"),
            ({"email": DAVE, "data": {"x": "x" * 9000}}, A_SENTENCE),
            ({"email": DAVE, "options": {"data": {"x": "x" * 9000}}}, A_SENTENCE),
        ],
    )
    def test_invalid_body_is_400(self, client, service_role, database, body, details):
        assert_error(
            client.post("/admin/invite", json=body, headers=service_role),
            400,
            "validation_failed",
            details=details,
        )
        assert (database.count("users"), database.count("outbox")) == (0, 0)

    def test_other_credentials_than_the_service_role_key_are_refused(self, client, alice, carol, database):
        for path in ("/admin/invite", "/invite"):
            assert_error(client.post(path, json={"email": DAVE}), 401, "no_authorization", details=A_SENTENCE)
            assert_error(
                client.post(path, json={"email": DAVE}, headers={"Authorization": "Bearer wrong"}),
                401,
                "bad_jwt",
            )
            for person in (alice, carol):
                assert_error(
                    person.sign_in().post(path, json={"email": DAVE}), 403, "insufficient_permissions"
                )
        assert (database.count("users"), database.count("outbox")) == (2, 0)

    def test_null_means_absent(self, invite):
        assert invite(data=None, options=None, redirect_to=None)["user"] == invited()


def test_invitation_without_a_code_accepts_no_guess(client, invite):
    invite()
    for code in ("000000", "123456", ""):
        assert_error(type_in(client, "invite", DAVE, code), 403, "otp_expired")
