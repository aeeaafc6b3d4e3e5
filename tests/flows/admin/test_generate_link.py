"""POST /admin/generate_link: a link and its code, which the deployment delivers itself."""

from urllib.parse import parse_qs

import pytest

from tests.support.answers import A_TIMESTAMP, Like, assert_error, user
from tests.support.cases import cases
from tests.support.links import PHONE, SITE, assert_dead, assert_signs_in, hand_in, type_in
from tests.support.users import DAVE, NEW_EMAIL, NEW_PASSWORD, PASSWORD, session_of, sign_in

PATH = "/admin/generate_link"
# The targets of links without `redirect_to`.
TARGETS = {"recovery": f"{SITE}/new-password", "invite": f"{SITE}/new-password"}
A_TOKEN = Like("a link's token", r"[\w-]{43}")
A_CODE = Like("a code", r"[0-9]{6}")
TYPES = ["magiclink", "recovery", "signup", "invite", "email_change"]
each_type = pytest.mark.parametrize("type", TYPES)
each_sign_up = pytest.mark.parametrize("type", ["signup", "invite"])


@pytest.fixture
def ask(client, service_role):
    """Request a link of a type."""

    def ask(type, email, client=client, **members):
        return client.post(PATH, json={"type": type, "email": email} | members, headers=service_role)

    return ask


@pytest.fixture
def generate(ask):
    """Generate a link and return the result."""

    def make(type, email, **others):
        response = ask(type, email, **others)
        assert response.status_code == 200, response.text
        return response.json

    return make


@pytest.fixture
def owner_of(alice):
    """Return the address of the user that a type of link is for, and the address whose code it is."""

    def owner_of(type):
        email = DAVE if type in ("signup", "invite") else alice.email
        return email, NEW_EMAIL if type == "email_change" else email

    return owner_of


def checked_link(result, type, redirect_to=None, verification_type=None):
    """Check the link of a result, and return its expected members without those of the user."""
    target = redirect_to or TARGETS.get(type, SITE)
    address, _, query = result["action_link"].partition("?")
    expected = {"token": [result["hashed_token"]], "type": [type], "redirect_to": [target]}
    assert (address, parse_qs(query)) == (f"{SITE}/verify", expected)
    return {
        "action_link": result["action_link"],
        "email_otp": A_CODE,
        "hashed_token": A_TOKEN,
        "verification_type": verification_type or type,
        "redirect_to": target,
    }


class TestResult:
    def test_result_for_a_user_has_the_user_and_the_link(self, generate, alice):
        for type in ("magiclink", "recovery"):
            result = generate(type, alice.email)
            expected = user(alice.email, id=alice.id) | checked_link(result, type)
            assert result == expected | {"confirmation_sent_at": result["confirmation_sent_at"]}

    def test_result_for_a_sign_up_has_the_new_user_and_the_link(self, generate):
        for type, email in (("signup", DAVE), ("invite", "erin@example.com")):
            result = generate(type, email, password=PASSWORD, data={"name": "Dave"})
            expected = user(
                email,
                email_confirmed_at=None,
                confirmed_at=None,
                confirmation_sent_at=A_TIMESTAMP,
                user_metadata={"name": "Dave"},
                invited_at=A_TIMESTAMP if type == "invite" else None,
            )
            assert result == expected | checked_link(result, type)

    @pytest.mark.parametrize("type", ["email_change", "email_change_current", "email_change_new"])
    def test_result_for_an_email_change_has_the_pending_address_and_link(self, ask, generate, alice, type):
        details = "new_email: must be given for a change of email"
        assert_error(ask(type, alice.email), 400, "validation_failed", details=details)
        result = generate(type, alice.email, new_email="New@example.com")
        pending = user(alice.email, id=alice.id, new_email=NEW_EMAIL, email_change_sent_at=A_TIMESTAMP)
        assert result == pending | checked_link(result, "email_change", verification_type=type)

    @each_type
    def test_nothing_is_sent_and_no_quota_is_used(self, make_app, generate, owner_of, database, type):
        client, (email, _) = make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client(), owner_of(type)
        for number in range(31):
            recipient = f"dave{number % 5}@example.com" if email == DAVE else email
            generate(type, recipient, client=client, password=PASSWORD, new_email=NEW_EMAIL)
        assert (database.count("outbox"), database.count("failure_counts")) == (0, 0)


@pytest.mark.parametrize("way", ["link", "code"])
@each_sign_up
def test_sign_up_or_invitation_is_accepted(client, generate, type, way):
    result = generate(type, DAVE, password=PASSWORD)
    token, code = result["hashed_token"], result["email_otp"]
    if type == "signup":
        assert_error(sign_in(client, DAVE), 403, "email_not_confirmed")
    response = hand_in(client, type, token) if way == "link" else type_in(client, type, DAVE, code)
    assert response.json["user"]["email_confirmed_at"] is not None
    assert_dead(client, type, token)
    assert_error(type_in(client, type, DAVE, code), 403, "otp_expired")
    assert sign_in(client, DAVE).status_code == (200 if type == "signup" else 401)


@each_sign_up
class TestSignUp:
    @pytest.fixture
    def squatted(self, make_app):
        """Dave's address, with which Mallory signed up and is signed in, because no confirmation is required:
        the client and the session.
        """
        client = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false").test_client()
        client.post("/signup", json={"email": DAVE, "password": "Mallorys-Horse-1"})
        return client, session_of(client, sign_in(client, DAVE, "Mallorys-Horse-1"))

    def test_unconfirmed_user_is_taken_over_without_its_earlier_state(self, generate, squatted, outbox, type):
        client, mallory = squatted
        link = outbox.last().token
        mallory.put("/user", json={"phone": PHONE})
        assert type_in(client, "phone_change", PHONE, outbox.last(PHONE).code).status_code == 200
        mallory.put("/user", json={"email": "mallory@evil.example"})
        pending = outbox.last("mallory@evil.example").token
        result = generate(type, DAVE, client=client, password=PASSWORD)
        assert result["id"] == mallory.user["id"]
        assert_error(mallory.get("/user"), 401, "session_not_found")
        assert_error(sign_in(client, DAVE, "Mallorys-Horse-1"), 401, "invalid_credentials")
        assert_dead(client, "signup", link)
        assert_dead(client, "email_change", pending)
        current_user = assert_signs_in(client, type, result["hashed_token"]).get("/user").json
        assert (current_user["phone"], current_user["new_email"]) == (None, None)
        assert current_user["app_metadata"]["providers"] == ["email"]
        assert (sign_in(client, DAVE).status_code == 200) == (type == "signup")


class TestPasswords:
    @pytest.mark.parametrize("way", ["link", "code"])
    def test_used_recovery_sets_the_password_and_ends_sessions(self, client, generate, alice, database, way):
        before = alice.open_session()
        result = generate("recovery", alice.email, password=NEW_PASSWORD)
        assert NEW_PASSWORD not in str(database.everything())
        assert database.value("SELECT password_hash LIKE 'latchkey1$2b$%%' FROM one_time_tokens") is True
        assert alice.try_to_sign_in().status_code == 200
        assert_error(alice.try_to_sign_in(NEW_PASSWORD), 401, "invalid_credentials")
        assert before.get("/user").status_code == 200
        if way == "link":
            session = assert_signs_in(client, "recovery", result["hashed_token"])
        else:
            session = session_of(client, type_in(client, "recovery", alice.email, result["email_otp"]))
        assert_error(before.get("/user"), 401, "session_not_found")
        assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")
        assert alice.try_to_sign_in(NEW_PASSWORD).status_code == 200
        assert session.get("/user").status_code == 200

    @pytest.mark.parametrize("way", ["mail", "second link"])
    def test_recovery_without_a_password_keeps_the_old_one(self, client, generate, alice, outbox, way):
        session = alice.open_session()
        generate("recovery", alice.email, password=NEW_PASSWORD)
        client.post("/recover", json={"email": alice.email})
        mailed_token = outbox.last().token
        token = mailed_token if way == "mail" else generate("recovery", alice.email)["hashed_token"]
        assert_signs_in(client, "recovery", token)
        # A mailed one ends everything with its new password.
        assert session.get("/user").status_code == (200 if way == "mail" else 401)
        assert alice.try_to_sign_in().status_code == 200
        assert_error(alice.try_to_sign_in(NEW_PASSWORD), 401, "invalid_credentials")

    @cases(
        ("type", "password", "error_code"),
        [
            ("signup", None, "validation_failed"),
            *((type, 1, "validation_failed") for type in ("signup", "recovery")),
            *((type, "short", "weak_password") for type in ("signup", "recovery")),
            *((type, "alllowercase1!", "weak_password") for type in ("signup", "recovery")),
        ],
    )
    def test_missing_or_weak_password_is_refused(self, ask, owner_of, database, type, password, error_code):
        response = ask(type, owner_of(type)[0], password=password)
        assert (response.status_code, response.json["error_code"]) == (400, error_code)
        assert (database.count("users"), database.count("one_time_tokens")) == (1, 0)


class TestRefusals:
    @cases(
        ("type", "members"),
        [
            *((type, {"password": NEW_PASSWORD}) for type in ("signup", "invite")),
            *(("email_change", {"new_email": f"{name}@example.com"}) for name in ("bob", "BOB", "alice")),
        ],
    )
    def test_taken_address_is_409(self, ask, alice, bob, database, type, members):
        before = database.everything()
        assert_error(ask(type, alice.email, **members), 409, "email_exists")
        assert database.everything() == before

    def test_unknown_user_is_404(self, ask, database):
        for type in ("magiclink", "recovery", "email_change"):
            response = ask(type, DAVE, new_email=NEW_EMAIL, password=PASSWORD)
            assert_error(response, 404, "user_not_found")
        assert database.count("users") == 0
