"""POST /admin/generate_link: a link and its code, which the deployment delivers itself."""

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, Like, assert_error, assert_ok, identity, user
from tests.support.cases import cases
from tests.support.cast import PASSWORD, register, session_of, sign_in
from tests.support.links import (
    EXPIRED,
    PHONE,
    SITE,
    assert_dead,
    assert_signs_in,
    follow,
    fragment,
    hand_in,
    later,
    tokens_for,
    type_in,
)

NEW = "Another-Horse-1"
DAVE = "dave@example.com"
# Where the links lead without `redirect_to`.
TARGETS = {"magiclink": SITE} | dict.fromkeys(("recovery", "invite"), f"{SITE}/new-password")
A_TOKEN = Like("a link's token", r"[\w-]{43}")
A_CODE = Like("a code", r"[0-9]{6}")


@pytest.fixture
def generate(client, service_role):
    """Generate a link and return the result."""

    def make(type, email, **others):
        response = client.post(
            "/admin/generate_link", json={"type": type, "email": email, **others}, headers=service_role
        )
        assert response.status_code == 200, response.text
        return response.json

    return make


def link_of(result, type, redirect_to=SITE, code=A_CODE, verification_type=None):
    """Check the link of a result and return the expected members other than those of the user."""
    parts = urlsplit(result["action_link"])
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{SITE}/verify"
    assert parse_qs(parts.query) == {
        "token": [result["hashed_token"]],
        "type": [type],
        "redirect_to": [redirect_to],
    }
    return {
        "action_link": result["action_link"],
        "email_otp": code,
        "hashed_token": A_TOKEN,
        "verification_type": verification_type or type,
        "redirect_to": redirect_to,
    }


def new_user(email, **changes):
    """Return the expected user object of a user created by a link."""
    return user(
        email, email_confirmed_at=None, confirmed_at=None, confirmation_sent_at=A_TIMESTAMP, **changes
    )


class TestResult:
    @pytest.mark.parametrize("type", ["magiclink", "recovery"])
    def test_result_for_a_user_has_the_user_and_the_link(self, client, service_role, generate, alice, type):
        result = generate(type, alice.email)
        assert result == user(alice.email, id=alice.id) | link_of(result, type, TARGETS[type])

    def test_result_for_a_sign_up_has_the_new_user_and_the_link(self, generate):
        result = generate("signup", DAVE, password=PASSWORD, data={"name": "Dave"})
        assert result == new_user(DAVE, user_metadata={"name": "Dave"}) | link_of(result, "signup")

    def test_result_for_an_invitation_has_the_new_user_and_the_link(self, generate):
        result = generate("invite", DAVE, data={"name": "Dave"})
        assert result == new_user(DAVE, user_metadata={"name": "Dave"}, invited_at=A_TIMESTAMP) | link_of(
            result, "invite", TARGETS["invite"]
        )

    @pytest.mark.parametrize("type", ["email_change", "email_change_current", "email_change_new"])
    def test_result_for_an_email_change_has_the_pending_address_and_the_link(self, generate, alice, type):
        result = generate(type, alice.email, new_email="New@example.com")
        pending = user(
            alice.email, id=alice.id, new_email="new@example.com", email_change_sent_at=A_TIMESTAMP
        )
        assert result == pending | link_of(result, "email_change", verification_type=type)

    @pytest.mark.parametrize(
        ("query", "body"),
        [
            ("", {"redirect_to": "https://app.example.com/x?y=1"}),
            ("?redirect_to=https://app.example.com/x%3Fy=1", {}),
        ],
    )
    def test_link_redirects_to_an_allowed_target(self, make_app, service_role, alice, query, body):
        client = make_app(AUTH_REDIRECT_ALLOW_LIST="https://app.example.com/**").test_client()
        result = client.post(
            f"/admin/generate_link{query}",
            json={"type": "magiclink", "email": alice.email} | body,
            headers=service_role,
        ).json
        assert result == user(alice.email, id=alice.id) | link_of(
            result, "magiclink", "https://app.example.com/x?y=1"
        )
        assert fragment(client.get(result["action_link"]), "https://app.example.com/x?y=1") == tokens_for(
            "magiclink"
        )

    def test_link_starts_with_the_configured_base_url(self, make_app, service_role, alice):
        client = make_app(
            AUTH_BASE_URL="https://auth.example.com/base", AUTH_SITE_URL="https://www.example.com"
        ).test_client()
        result = client.post(
            "/admin/generate_link", json={"type": "magiclink", "email": alice.email}, headers=service_role
        ).json
        assert result["action_link"].startswith("https://auth.example.com/base/verify?token=")
        assert result["redirect_to"] == "https://www.example.com"


class TestNothingIsSent:
    @pytest.mark.parametrize(
        ("type", "body"),
        [
            ("magiclink", {}),
            ("recovery", {}),
            ("email_change", {"new_email": "new@example.com"}),
            ("signup", {"password": PASSWORD}),
            ("invite", {}),
        ],
    )
    def test_nothing_is_sent_and_no_quota_is_used(self, make_app, service_role, database, alice, type, body):
        client = make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client()
        for number in range(31):
            email = (
                alice.email
                if type in ("magiclink", "recovery", "email_change")
                else f"dave{number % 5}@example.com"
            )
            assert (
                client.post(
                    "/admin/generate_link", json={"type": type, "email": email, **body}, headers=service_role
                ).status_code
                == 200
            )
        assert (database.count("outbox"), database.count("failure_counts")) == (0, 0)


class TestUse:
    @pytest.mark.parametrize("type", ["magiclink", "recovery"])
    def test_link_signs_in(self, client, generate, alice, type):
        result = generate(type, alice.email, redirect_to=SITE)
        assert fragment(client.get(result["action_link"])) == tokens_for(type)
        assert_dead(client, type, result["hashed_token"])

    @pytest.mark.parametrize("type", ["magiclink", "recovery"])
    def test_code_signs_in(self, client, generate, alice, type):
        response = type_in(client, type, alice.email, generate(type, alice.email)["email_otp"])
        assert response.json["user"]["id"] == alice.id

    @pytest.mark.parametrize("type", ["signup", "magiclink", "recovery"])
    def test_code_signs_in_as_type_email(self, client, generate, alice, type):
        email = DAVE if type == "signup" else alice.email
        code = generate(type, email, password=PASSWORD)["email_otp"]
        assert type_in(client, "email", email, code).json["user"]["email"] == email

    @pytest.mark.parametrize("by", ["link", "code"])
    def test_invitation_is_accepted(self, client, generate, by):
        result = generate("invite", DAVE)
        if by == "link":
            response = hand_in(client, "invite", result["hashed_token"])
        else:
            response = type_in(client, "invite", DAVE, result["email_otp"])
        assert response.json["user"]["email_confirmed_at"] is not None
        assert_dead(client, "invite", result["hashed_token"])
        assert_error(type_in(client, "invite", DAVE, result["email_otp"]), 403, "otp_expired")

    def test_hashed_token_equals_the_token_of_the_link(self, client, generate, alice):
        result = generate("magiclink", alice.email)
        assert parse_qs(urlsplit(result["action_link"]).query)["token"] == [result["hashed_token"]]
        assert hand_in(client, "magiclink", result["hashed_token"]).json["user"]["id"] == alice.id
        assert fragment(client.get(result["action_link"])) == EXPIRED

    @pytest.mark.parametrize("type", ["magiclink", "recovery", "signup", "invite", "email_change"])
    def test_link_expires_after_an_hour(self, client, generate, alice, database, type):
        email = DAVE if type in ("signup", "invite") else alice.email
        result = generate(type, email, password=PASSWORD, new_email="new@example.com")
        later(database, secs=3590)
        assert client.get(result["action_link"], headers={"Accept": "text/html"}).status_code == 200
        later(database, secs=10)
        assert_dead(client, type, result["hashed_token"])
        address = "new@example.com" if type == "email_change" else email
        assert_error(type_in(client, type, address, result["email_otp"]), 403, "otp_expired")

    @pytest.mark.parametrize("type", ["magiclink", "recovery", "signup", "invite", "email_change"])
    def test_link_is_refused_for_other_types(self, client, generate, alice, type):
        token = generate(
            type,
            DAVE if type in ("signup", "invite") else alice.email,
            password=PASSWORD,
            new_email="new@example.com",
        )["hashed_token"]
        accepted = {type} | ({"email"} if type in ("signup", "magiclink", "recovery") else set())
        for other in {
            "signup",
            "invite",
            "magiclink",
            "recovery",
            "email_change",
            "email",
            "sms",
            "undo",
            "email_change_new",
        } - accepted:
            assert fragment(follow(client, other, token)) == EXPIRED
        assert hand_in(client, type, token).status_code == 200

    def test_link_counts_among_the_mailed_links(self, client, generate, alice, outbox):
        client.post("/magiclink", json={"email": alice.email})
        result = generate("magiclink", alice.email)
        assert_error(type_in(client, "magiclink", alice.email, outbox.last().code), 403, "otp_expired")
        assert_signs_in(client, "magiclink", outbox.last().token)
        assert_dead(client, "magiclink", result["hashed_token"])

    def test_token_is_stored_as_a_hash(self, generate, alice, database):
        result = generate("magiclink", alice.email)
        assert result["hashed_token"] not in str(database.everything())


class TestSignUp:
    def test_link_confirms_the_sign_up_with_its_password(self, client, generate):
        result = generate("signup", DAVE, password=PASSWORD)
        assert_error(sign_in(client, DAVE), 403, "email_not_confirmed")
        assert fragment(client.get(result["action_link"])) == tokens_for("signup")
        assert sign_in(client, DAVE).status_code == 200

    def test_code_confirms_the_sign_up(self, client, generate):
        type_in(client, "signup", DAVE, generate("signup", DAVE, password=PASSWORD)["email_otp"])
        assert sign_in(client, DAVE).status_code == 200

    def test_confirmed_user_is_409(self, client, service_role, alice, database):
        before = database.everything()
        for type in ("signup", "invite"):
            response = client.post(
                "/admin/generate_link",
                json={"type": type, "email": alice.email, "password": NEW},
                headers=service_role,
            )
            assert_error(response, 409, "email_exists")
        assert database.everything() == before
        assert alice.try_to_sign_in().status_code == 200

    @pytest.mark.parametrize("type", ["signup", "invite"])
    def test_unconfirmed_user_is_taken_over_without_its_earlier_state(
        self, make_app, service_role, outbox, database, type
    ):
        """Mallory signed up with Dave's address and is signed in, because no confirmation is required."""
        client = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false").test_client()
        made = client.post("/signup", json={"email": DAVE, "password": "Mallorys-Horse-1"}).json
        link = outbox.last().token
        mallory = session_of(client, sign_in(client, DAVE, "Mallorys-Horse-1"))
        mallory.put("/user", json={"email": "mallory@evil.example"})
        pending = outbox.last("mallory@evil.example").token
        result = client.post(
            "/admin/generate_link",
            json={"type": type, "email": DAVE, "password": PASSWORD},
            headers=service_role,
        ).json
        assert result["id"] == made["id"]
        assert_error(mallory.get("/user"), 401, "session_not_found")
        assert_error(sign_in(client, DAVE, "Mallorys-Horse-1"), 401, "invalid_credentials")
        assert_dead(client, "signup", link)
        assert_dead(client, "email_change", pending)
        session = assert_signs_in(client, type, result["hashed_token"])
        assert session.get("/user").json["new_email"] is None
        assert (sign_in(client, DAVE).status_code == 200) == (type == "signup")

    @pytest.mark.parametrize("type", ["signup", "invite"])
    def test_phone_set_before_the_takeover_does_not_sign_in(
        self, make_app, service_role, outbox, database, type
    ):
        client = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false").test_client()
        client.post("/signup", json={"email": DAVE, "password": "Mallorys-Horse-1"})
        mallory = session_of(client, sign_in(client, DAVE, "Mallorys-Horse-1"))
        mallory.put("/user", json={"phone": PHONE})
        assert type_in(client, "phone_change", PHONE, outbox.last(PHONE).code).status_code == 200
        result = client.post(
            "/admin/generate_link",
            json={"type": type, "email": DAVE, "password": PASSWORD},
            headers=service_role,
        ).json
        session = assert_signs_in(client, type, result["hashed_token"])
        assert session.get("/user").json["phone"] is None
        assert session.get("/user").json["app_metadata"]["providers"] == ["email"]

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({}, 400),
            ({"password": None}, 400),
            ({"password": "short"}, 400),
            ({"password": "alllowercase1!"}, 400),
        ],
    )
    def test_missing_or_weak_password_is_refused(self, client, service_role, database, body, status):
        response = client.post(
            "/admin/generate_link", json={"type": "signup", "email": DAVE} | body, headers=service_role
        )
        assert response.status_code == status
        assert response.json["error_code"] == (
            "weak_password" if body.get("password") else "validation_failed"
        )
        assert database.count("users") == 0


class TestRecovery:
    def test_used_link_sets_the_password_and_ends_all_sessions(self, client, generate, alice, database):
        before = alice.open_session()
        result = generate("recovery", alice.email, password=NEW)
        assert alice.try_to_sign_in().status_code == 200
        assert_error(alice.try_to_sign_in(NEW), 401, "invalid_credentials")
        assert before.get("/user").status_code == 200
        session = assert_signs_in(client, "recovery", result["hashed_token"])
        assert_error(before.get("/user"), 401, "session_not_found")
        assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")
        assert alice.try_to_sign_in(NEW).status_code == 200
        assert session.get("/user").status_code == 200

    def test_used_code_sets_the_password(self, client, generate, alice):
        before = alice.open_session()
        assert (
            type_in(
                client, "recovery", alice.email, generate("recovery", alice.email, password=NEW)["email_otp"]
            ).status_code
            == 200
        )
        assert_error(before.get("/user"), 401, "session_not_found")
        assert alice.try_to_sign_in(NEW).status_code == 200

    def test_password_is_hashed_when_the_link_is_generated(self, generate, alice, database):
        generate("recovery", alice.email, password=NEW)
        assert NEW not in str(database.everything())
        assert database.value("SELECT password_hash LIKE 'latchkey1$2b$%%' FROM one_time_tokens") is True

    def test_other_link_of_the_user_does_not_set_the_password(self, client, generate, alice, outbox):
        generate("recovery", alice.email, password=NEW)
        client.post("/recover", json={"email": alice.email})
        assert_signs_in(client, "recovery", outbox.last().token)
        assert alice.try_to_sign_in().status_code == 200
        assert_error(alice.try_to_sign_in(NEW), 401, "invalid_credentials")

    def test_recovery_without_a_password_keeps_the_old_one(self, client, generate, alice):
        session = alice.open_session()
        assert_signs_in(client, "recovery", generate("recovery", alice.email)["hashed_token"])
        assert session.get("/user").status_code == 200
        assert alice.try_to_sign_in().status_code == 200

    def test_weak_password_is_refused(self, client, service_role, alice, database):
        response = client.post(
            "/admin/generate_link",
            json={"type": "recovery", "email": alice.email, "password": "short"},
            headers=service_role,
        )
        assert (response.status_code, response.json["error_code"]) == (400, "weak_password")
        assert database.count("one_time_tokens") == 0

    @pytest.mark.parametrize("type", ["magiclink", "invite", "email_change"])
    def test_password_is_ignored_for_other_types(self, client, generate, service_role, alice, type):
        email = DAVE if type == "invite" else alice.email
        result = generate(type, email, password=NEW, new_email="new@example.com")
        assert hand_in(client, type, result["hashed_token"]).status_code == 200
        address = "new@example.com" if type == "email_change" else email
        assert_error(sign_in(client, address, NEW), 401, "invalid_credentials")


class TestEmailChange:
    def test_link_confirms_the_new_address(self, client, generate, alice, service_role, outbox):
        session = alice.sign_in()
        result = generate("email_change_new", alice.email, new_email="new@example.com")
        assert fragment(client.get(result["action_link"]))["type"] == "email_change"
        expected = user(
            "new@example.com",
            id=alice.id,
            last_sign_in_at=A_TIMESTAMP,
            identities=[identity("email", "new@example.com", last_sign_in_at=A_TIMESTAMP)],
        )
        assert_ok(client.get(f"/admin/users/{alice.id}", headers=service_role), expected)
        assert_error(session.get("/user"), 401, "session_not_found")
        assert outbox.kinds() == [("email_changed", alice.email)]

    def test_code_belongs_to_the_new_address(self, client, generate, alice):
        code = generate("email_change", alice.email, new_email="new@example.com")["email_otp"]
        assert_error(type_in(client, "email_change", alice.email, code), 403, "otp_expired")
        assert (
            type_in(client, "email_change", "new@example.com", code).json["user"]["email"]
            == "new@example.com"
        )

    @pytest.mark.parametrize("new_email", ["bob@example.com", "BOB@example.com", "alice@example.com"])
    def test_taken_address_is_409(self, client, service_role, alice, bob, database, new_email):
        before = database.everything()
        body = {"type": "email_change", "email": alice.email, "new_email": new_email}
        assert_error(
            client.post("/admin/generate_link", json=body, headers=service_role), 409, "email_exists"
        )
        assert database.everything() == before

    @pytest.mark.parametrize("type", ["email_change", "email_change_current", "email_change_new"])
    def test_missing_new_address_is_400(self, client, service_role, alice, type):
        response = client.post(
            "/admin/generate_link", json={"type": type, "email": alice.email}, headers=service_role
        )
        assert_error(
            response, 400, "validation_failed", details="new_email: must be given for a change of email"
        )


class TestRefusals:
    @pytest.mark.parametrize("type", ["magiclink", "recovery", "email_change"])
    def test_unknown_user_is_404(self, client, service_role, database, type):
        body = {"type": type, "email": DAVE, "new_email": "new@example.com", "password": PASSWORD}
        assert_error(
            client.post("/admin/generate_link", json=body, headers=service_role), 404, "user_not_found"
        )
        assert database.count("users") == 0

    @cases(
        ("body", "details"),
        [
            ({}, A_SENTENCE),
            ({"type": "magiclink"}, "email: is required"),
            ({"email": DAVE}, "type: is required"),
            ({"type": "nonsense", "email": DAVE}, A_SENTENCE),
            ({"type": "sms", "email": DAVE}, A_SENTENCE),
            ({"type": "email", "email": DAVE}, A_SENTENCE),
            ({"type": "reauthentication", "email": DAVE}, A_SENTENCE),
            ({"type": "undo", "email": DAVE}, A_SENTENCE),
            ({"type": "magiclink", "email": "dave"}, A_SENTENCE),
            ({"type": "magiclink", "email": DAVE, "redirect_to": 1}, "redirect_to: must be a string"),
            ({"type": "signup", "email": DAVE, "password": 1}, A_SENTENCE),
            ({"type": "signup", "email": DAVE, "password": PASSWORD, "data": "x"}, "data: must be an object"),
        ],
    )
    def test_invalid_body_is_400(self, client, service_role, database, body, details):
        assert_error(
            client.post("/admin/generate_link", json=body, headers=service_role),
            400,
            "validation_failed",
            details=details,
        )
        assert (database.count("users"), database.count("one_time_tokens")) == (0, 0)

    def test_oversized_metadata_is_400(self, client, service_role, database):
        body = {"type": "invite", "email": DAVE, "data": {"x": "x" * 9000}}
        assert_error(
            client.post("/admin/generate_link", json=body, headers=service_role),
            400,
            "validation_failed",
            details=A_SENTENCE,
        )
        assert database.count("users") == 0

    def test_other_credentials_than_the_service_role_key_are_refused(self, client, alice, carol, database):
        body = {"type": "magiclink", "email": carol.email}
        assert_error(
            client.post("/admin/generate_link", json=body), 401, "no_authorization", details=A_SENTENCE
        )
        assert_error(
            client.post("/admin/generate_link", json=body, headers={"Authorization": "Bearer wrong"}),
            401,
            "bad_jwt",
        )
        assert client.post("/admin/generate_link", json=body, headers={"apikey": "wrong"}).status_code == 401
        for person in (alice, carol):
            assert_error(
                person.sign_in().post("/admin/generate_link", json=body), 403, "insufficient_permissions"
            )
        assert database.count("one_time_tokens") == 0

    def test_service_role_key_is_accepted_as_apikey(self, client, service_role, alice):
        key = service_role["Authorization"].removeprefix("Bearer ")
        response = client.post(
            "/admin/generate_link", json={"type": "magiclink", "email": alice.email}, headers={"apikey": key}
        )
        assert response.status_code == 200

    def test_form_is_refused(self, client, service_role):
        response = client.post("/admin/generate_link", data={"type": "magiclink"}, headers=service_role)
        assert_error(response, 415, "unsupported_media_type", details=A_SENTENCE)


def test_link_of_a_banned_user_does_not_sign_in(client, generate, alice, service_role, database):
    client.put(f"/admin/users/{alice.id}", json={"ban_duration": "1h"}, headers=service_role)
    result = generate("magiclink", alice.email)
    assert fragment(client.get(result["action_link"]))["error_code"] == "user_banned"
    assert database.count("sessions") == 0


def test_links_of_two_users_do_not_mix(client, service_role, generate):
    for name in ("erin", "finn"):
        register(client, service_role, f"{name}@example.com")
    results = {name: generate("magiclink", f"{name}@example.com") for name in ("erin", "finn")}
    assert_error(
        type_in(client, "magiclink", "erin@example.com", results["finn"]["email_otp"]), 403, "otp_expired"
    )
    for name, result in results.items():
        assert (
            hand_in(client, "magiclink", result["hashed_token"]).json["user"]["email"]
            == f"{name}@example.com"
        )
