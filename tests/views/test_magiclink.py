"""POST /magiclink: a link by mail that signs in."""

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.cases import cases
from tests.support.cast import PASSWORD, sign_in
from tests.support.links import (
    ON_ITS_WAY,
    PHONE,
    assert_dead,
    assert_signed_in,
    assert_signs_in,
    follow,
    fragment,
    later,
    press,
    type_in,
)

DAVE = "dave@example.com"


def signed_in(email, **changes):
    """Return the expected user object after a sign-in by link or code."""
    return user(email, last_sign_in_at=A_TIMESTAMP, **changes)


class TestKnownAddress:
    def test_known_address_is_sent_one_link_and_code(self, client, alice, outbox):
        assert_ok(client.post("/magiclink", json={"email": alice.email}), ON_ITS_WAY)
        (message,) = outbox.sent()
        assert (message.kind, message.channel, message.to, message.lifetime) == (
            "magiclink",
            "email",
            alice.email,
            3600,
        )
        assert (len(message.token), len(message.code), message.code.isdecimal()) == (43, 6, True)

    def test_response_contains_the_id_of_the_message(self, client, alice, database):
        message_id = client.post("/magiclink", json={"email": alice.email}).json["message_id"]
        assert database.value("SELECT id FROM outbox") == message_id

    def test_link_signs_in(self, client, alice, outbox):
        client.post("/magiclink", json={"email": alice.email})
        session = assert_signs_in(client, "magiclink", outbox.last().token)
        assert session.get("/user").json == signed_in(alice.email, id=alice.id)
        assert session.claims["amr"] == [{"method": "otp", "timestamp": session.claims["iat"]}]

    def test_code_signs_in(self, client, alice, outbox):
        client.post("/magiclink", json={"email": alice.email})
        assert_signed_in(
            client,
            type_in(client, "magiclink", alice.email, outbox.last().code),
            signed_in(alice.email, id=alice.id),
        )

    def test_request_does_not_change_the_user(self, client, alice, database):
        session = alice.open_session()
        before = database.everything("users", "identities", "sessions")
        client.post(
            "/magiclink", json={"email": alice.email, "data": {"name": "Mallory"}, "create_user": True}
        )
        assert database.everything("users", "identities", "sessions") == before
        assert session.get("/user").status_code == 200

    def test_sign_in_keeps_the_password_and_other_sessions(self, client, alice, outbox):
        session = alice.open_session()
        client.post("/magiclink", json={"email": alice.email})
        assert_signs_in(client, "magiclink", outbox.last().token)
        assert session.get("/user").status_code == 200
        assert alice.try_to_sign_in().status_code == 200

    @pytest.mark.parametrize("email", ["ALICE@example.com", "Alice@Example.COM"])
    def test_email_may_be_spelled_differently(self, client, alice, outbox, email):
        client.post("/magiclink", json={"email": email})
        message = outbox.last(alice.email)
        assert type_in(client, "magiclink", email.swapcase(), message.code).status_code == 200

    def test_database_holds_neither_link_nor_code_in_clear(self, client, alice, outbox, database):
        client.post("/magiclink", json={"email": alice.email})
        message = outbox.last()
        assert message.token not in str(database.everything())
        assert (
            database.value(
                "SELECT count(*) FROM one_time_tokens WHERE code_mac = sha256(%(code)s::bytea)",
                code=message.code,
            )
            == 0
        )
        assert database.value("SELECT secret::text FROM outbox") is not None

    def test_banned_user_is_sent_nothing(self, client, alice, outbox, database):
        database.run("UPDATE users SET banned_until = now() + interval '1 hour'")
        assert_ok(client.post("/magiclink", json={"email": alice.email}), ON_ITS_WAY)
        assert (outbox.sent(), outbox.suppressed(), database.count("one_time_tokens")) == ([], 1, 0)

    def test_link_is_sent_again_after_a_ban(self, client, alice, outbox, database):
        database.run("UPDATE users SET banned_until = now() - interval '1 second'")
        client.post("/magiclink", json={"email": alice.email})
        assert_signs_in(client, "magiclink", outbox.last().token)


class TestUnknownAddress:
    @pytest.mark.parametrize("body", [{}, {"create_user": True}, {"create_user": None}])
    def test_unknown_address_is_sent_a_link_that_creates_a_user(
        self, client, outbox, database, service_role, body
    ):
        assert_ok(client.post("/magiclink", json={"email": DAVE} | body), ON_ITS_WAY)
        made = database.one("SELECT id, made_by, password_hash, email_proved FROM users")
        assert (made.made_by, made.password_hash, made.email_proved) == ("message", None, False)
        unconfirmed = user(
            DAVE, id=made.id, email_confirmed_at=None, confirmed_at=None, confirmation_sent_at=A_TIMESTAMP
        )
        assert_ok(client.get(f"/admin/users/{made.id}", headers=service_role), unconfirmed)
        session = assert_signs_in(client, "magiclink", outbox.last(DAVE).token)
        used = [identity("email", DAVE, last_sign_in_at=A_TIMESTAMP)]
        assert session.get("/user").json == signed_in(
            DAVE, id=made.id, confirmation_sent_at=A_TIMESTAMP, identities=used
        )

    def test_new_user_cannot_sign_in_before_the_link_is_used(self, client, database):
        client.post("/magiclink", json={"email": DAVE})
        assert_error(sign_in(client, DAVE), 401, "invalid_credentials")
        assert database.count("sessions") == 0

    def test_data_becomes_metadata_of_the_new_user(self, client, outbox):
        client.post("/magiclink", json={"email": DAVE, "data": {"name": "Dave", "none": None}})
        assert assert_signs_in(client, "magiclink", outbox.last().token).get("/user").json[
            "user_metadata"
        ] == {"name": "Dave"}

    def test_data_does_not_change_a_user_created_by_an_earlier_request(self, client, outbox, database):
        client.post("/magiclink", json={"email": DAVE, "data": {"name": "Dave"}})
        client.post("/magiclink", json={"email": DAVE, "data": {"name": "Mallory", "x": 1}})
        assert database.all("SELECT user_metadata FROM users") == [({"name": "Dave"},)]
        assert len(outbox.sent()) == 2

    @pytest.mark.parametrize("setting", [None, "AUTH_DISABLE_SIGNUP"])
    def test_nothing_happens_when_no_user_may_be_created(self, make_app, outbox, database, setting):
        client = make_app(**({setting: "true"} if setting else {})).test_client()
        body = {"email": DAVE, "data": {"name": "Dave"}, "create_user": bool(setting)}
        assert_ok(client.post("/magiclink", json=body), ON_ITS_WAY)
        assert (outbox.sent(), outbox.suppressed()) == ([], 1)
        assert [database.count(table) for table in ("users", "identities", "one_time_tokens")] == [0, 0, 0]

    def test_data_is_validated_even_when_ignored(self, client, alice, outbox):
        for email in (alice.email, DAVE):
            for create_user in (True, False):
                body = {"email": email, "data": {"x": "x" * 9000}, "create_user": create_user}
                assert_error(
                    client.post("/magiclink", json=body), 400, "validation_failed", details=A_SENTENCE
                )
        assert outbox.sent() == []


class TestSeveralLinks:
    def test_fourth_link_voids_the_first(self, client, alice, outbox):
        for _ in range(4):
            client.post("/magiclink", json={"email": alice.email})
        first, second, *_ = outbox.sent()
        assert_dead(client, "magiclink", first.token)
        assert_signs_in(client, "magiclink", second.token)

    def test_spending_a_link_voids_the_others(self, client, alice, outbox, database):
        for _ in range(3):
            client.post("/magiclink", json={"email": alice.email})
        first, second, third = outbox.sent()
        assert_signs_in(client, "magiclink", second.token)
        for message in (first, second, third):
            assert_dead(client, "magiclink", message.token)
            assert_error(type_in(client, "magiclink", alice.email, message.code), 403, "otp_expired")
        assert database.count("sessions") == 1

    def test_only_the_newest_code_is_good(self, client, alice, outbox):
        for _ in range(2):
            client.post("/magiclink", json={"email": alice.email})
        first, second = outbox.sent()
        assert_error(type_in(client, "magiclink", alice.email, first.code), 403, "otp_expired")
        assert type_in(client, "magiclink", alice.email, second.code).status_code == 200

    def test_only_the_newest_code_of_all_purposes_is_good(self, client, alice, outbox):
        client.post("/recover", json={"email": alice.email})
        client.post("/magiclink", json={"email": alice.email})
        recovery, magiclink = outbox.sent()
        assert_error(type_in(client, "recovery", alice.email, recovery.code), 403, "otp_expired")
        assert type_in(client, "magiclink", alice.email, magiclink.code).status_code == 200

    def test_link_that_signs_in_voids_one_that_recovers(self, client, alice, outbox):
        client.post("/magiclink", json={"email": alice.email})
        client.post("/recover", json={"email": alice.email})
        magiclink, recovery = outbox.sent()
        assert_signs_in(client, "magiclink", magiclink.token)
        assert_dead(client, "recovery", recovery.token)

    def test_spending_a_link_keeps_links_of_other_users(self, client, alice, bob, outbox):
        for person in (alice, bob):
            client.post("/magiclink", json={"email": person.email})
        assert_signs_in(client, "magiclink", outbox.last(alice.email).token)
        assert_signs_in(client, "magiclink", outbox.last(bob.email).token)


class TestTime:
    def test_link_and_code_work_for_an_hour(self, client, alice, outbox, database):
        client.post("/magiclink", json={"email": alice.email})
        later(database, secs=3590)
        assert_signs_in(client, "magiclink", outbox.last().token)
        client.post("/magiclink", json={"email": alice.email})
        later(database, secs=3590)
        assert type_in(client, "magiclink", alice.email, outbox.last().code).status_code == 200

    def test_link_and_code_expire_after_an_hour(self, client, alice, outbox, database):
        client.post("/magiclink", json={"email": alice.email})
        later(database, secs=3600)
        assert_dead(client, "magiclink", outbox.last().token)
        assert_error(type_in(client, "magiclink", alice.email, outbox.last().code), 403, "otp_expired")
        assert database.count("sessions") == 0


class TestRefusals:
    @cases(
        ("body", "details"),
        [
            ({}, "email: is required"),
            ({"email": None}, "email: is required"),
            ({"email": 1}, "email: must be a string"),
            ({"email": ["alice@example.com"]}, "email: must be a string"),
            ({"email": "alice"}, A_SENTENCE),
            ({"email": "alice@example.com", "create_user": "true"}, "create_user: must be true or false"),
            ({"email": "alice@example.com", "create_user": 1}, "create_user: must be true or false"),
            ({"email": "alice@example.com", "data": []}, "data: must be an object"),
            ({"email": "alice@example.com", "redirect_to": 1}, "redirect_to: must be a string"),
            ({"phone": PHONE}, "email: is required"),
        ],
    )
    def test_invalid_body_is_400(self, client, alice, outbox, database, body, details):
        assert_error(client.post("/magiclink", json=body), 400, "validation_failed", details=details)
        assert (database.count("outbox"), database.count("users")) == (0, 1)

    def test_form_is_refused(self, client, alice, database):
        assert_error(
            client.post("/magiclink", data={"email": alice.email}),
            415,
            "unsupported_media_type",
            details=A_SENTENCE,
        )
        assert database.count("outbox") == 0

    def test_request_is_refused_when_email_is_disabled(self, make_app, alice, database):
        client = make_app(AUTH_EMAIL_ENABLED="false").test_client()
        for request in ("/magiclink", "/otp", "/recover"):
            assert_error(client.post(request, json={"email": alice.email}), 400, "email_provider_disabled")
        assert database.count("outbox") == 0

    def test_get_is_refused(self, client):
        assert_error(client.get("/magiclink"), 405, "method_not_allowed")

    @cases(
        "address",
        [
            "{0}\r\nBcc: mallory@example.com",
            "{0}\nmallory@example.com",
            "{0}\r",
            "{0}\n",
            "\n{0}",
            "mallory@example.com,{0}",
            "{0},mallory@example.com",
            "{0}, mallory@example.com",
            "{0};mallory@example.com",
            "{0} mallory@example.com",
            "<{0}>",
            "{0}>",
            "<{0}",
            "Alice <{0}>",
            "{0}<mallory@example.com>",
            " {0}",
            "{0} ",
            "{0}\t",
            "{0}\u0000",
            "{0}\u2028",
            "{0}\u0085",
            "{0}%0d%0abcc:mallory@example.com",
            "alice\uff20example.com",
            "\uff41lice@example.com",
            '"alice\r\n"@example.com',
            '"alice,mallory"@example.com',
            "alice(\r\n)@example.com",
            "mailto:{0}",
            "alice@[127.0.0.1]",
            "alice@example.com@mallory.example",
        ],
    )
    def test_address_that_mail_software_reads_differently_is_refused(
        self, client, alice, service_role, database, address
    ):
        """On each route that takes an address: line breaks, commas and angle brackets could inject recipients
        or headers.
        """
        session, address = alice.open_session(), address.format("alice@example.com")
        before = database.everything(
            "users", "identities", "one_time_tokens", "outbox", "sessions", "failure_counts"
        )
        requests = [
            ("/magiclink", {"email": address}, {}),
            ("/otp", {"email": address}, {}),
            ("/recover", {"email": address}, {}),
            ("/resend", {"type": "signup", "email": address}, {}),
            ("/resend", {"type": "email_change", "email": address}, {}),
            ("/signup", {"email": address, "password": PASSWORD}, {}),
            ("/verify", {"type": "magiclink", "email": address, "token": "123456"}, {}),
            ("/admin/generate_link", {"type": "magiclink", "email": address}, service_role),
            ("/admin/generate_link", {"type": "invite", "email": address}, service_role),
            (
                "/admin/generate_link",
                {"type": "email_change", "email": alice.email, "new_email": address},
                service_role,
            ),
            ("/admin/invite", {"email": address}, service_role),
        ]
        for target, body, headers in requests:
            response = client.post(target, json=body, headers=headers)
            assert (target, response.status_code, response.json["error_code"]) in [
                (target, 400, "validation_failed"),
                (target, 400, "bad_json"),
            ]
        assert session.put("/user", json={"email": address}).status_code == 400
        assert (
            database.everything(
                "users", "identities", "one_time_tokens", "outbox", "sessions", "failure_counts"
            )
            == before
        )


def test_credentials_in_headers_are_ignored(client, alice, outbox):
    for headers in ({"Authorization": "Bearer nonsense"}, {"apikey": "nonsense"}):
        assert_ok(client.post("/magiclink", json={"email": alice.email}, headers=headers), ON_ITS_WAY)
    assert len(outbox.sent()) == 2


def test_host_headers_do_not_reach_the_link(client, alice, outbox, database, service_role):
    """An attacker who controls the host of a link in a mail receives its token."""
    headers = {
        "Host": "evil.example",
        "X-Forwarded-Host": "evil.example",
        "Forwarded": "host=evil.example",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Prefix": "/evil.example",
        "X-Original-Host": "evil.example",
        "Origin": "https://evil.example",
        "Referer": "https://evil.example/",
    }
    session = alice.sign_in()
    for target, body in (
        ("/magiclink", {"email": alice.email}),
        ("/otp", {"email": alice.email}),
        ("/recover", {"email": alice.email}),
        ("/signup", {"email": DAVE, "password": PASSWORD}),
        ("/resend", {"type": "signup", "email": DAVE}),
    ):
        assert client.post(target, json=body, headers=headers).status_code in (200, 201)
    assert session.put("/user", json={"email": "new@example.com"}).status_code == 200
    assert (
        client.put(
            "/user", json={"email": "newer@example.com"}, headers=headers | session.authorization
        ).status_code
        == 200
    )
    assert (
        client.post(
            "/admin/invite", json={"email": "erin@example.com"}, headers=headers | service_role
        ).status_code
        == 200
    )
    generated = client.post(
        "/admin/generate_link",
        json={"type": "magiclink", "email": alice.email},
        headers=headers | service_role,
    )
    assert generated.json["action_link"].startswith("http://localhost:8000/verify?")
    assert "evil" not in generated.text
    assert "evil" not in str(database.everything())
    assert (
        "evil"
        not in client.get(
            f"/verify?type=magiclink&token={generated.json['hashed_token']}",
            headers=headers | {"Accept": "text/html"},
        ).text
    )
    response = client.get(f"/verify?type=magiclink&token={generated.json['hashed_token']}", headers=headers)
    assert fragment(response)["type"] == "magiclink"


def test_magiclink_is_served_under_the_prefix(client, alice, outbox):
    assert_ok(client.post("/auth/v1/magiclink", json={"email": alice.email}), ON_ITS_WAY)
    token = outbox.last().token
    assert client.get(f"/auth/v1/verify?type=magiclink&token={token}").status_code == 303
    assert_dead(client, "magiclink", token)


def test_page_of_the_link_redirects_to_the_requested_target(make_app, alice, outbox):
    client = make_app(AUTH_REDIRECT_ALLOW_LIST="https://app.example.com/**").test_client()
    client.post("/magiclink", json={"email": alice.email, "redirect_to": "https://app.example.com/in"})
    client.post("/magiclink?redirect_to=https://app.example.com/in?x=1", json={"email": alice.email})
    _, query = outbox.sent()
    assert (
        fragment(press(client, "magiclink", query.token), "https://app.example.com/in?x=1")["type"]
        == "magiclink"
    )
    client.post("/magiclink", json={"email": alice.email, "redirect_to": "https://app.example.com/in"})
    assert (
        fragment(follow(client, "magiclink", outbox.last().token), "https://app.example.com/in")["type"]
        == "magiclink"
    )


def test_email_that_begins_with_a_plus_is_not_a_phone_number(client, outbox):
    assert_ok(client.post("/magiclink", json={"email": "+1555@example.com"}), ON_ITS_WAY)
    assert_signs_in(client, "magiclink", outbox.last("+1555@example.com").token)
