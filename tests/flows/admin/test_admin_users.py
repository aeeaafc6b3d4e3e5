"""/admin/users/{id}: reading, deleting and signing out a user; the bodies that create or change one."""

import itertools
import uuid

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, INVALID, assert_error, assert_ok, identity, user
from tests.support.cases import cases
from tests.support.links import PHONE
from tests.support.server import at_once
from tests.support.users import LARGEST_METADATA, sign_in

GONE = (404, "user_not_found", "User not found")
SIGNED_OUT = {"message": "User signed out", "timestamp": A_TIMESTAMP}
A_TIME = "{}: must be an ISO 8601 timestamp with a time zone"
A_PHONE = "{}: must be a phone number in E.164 form, such as +491701234567"


@pytest.fixture(params=["POST", "PUT"])
def send(request, client, service_role, alice):
    """Create Dave, or change Alice."""
    path, body = "/admin/users", {"email": "dave@example.com"}
    if request.param == "PUT":
        path, body = f"{path}/{alice.id}", {}
    return lambda members: client.open(path, method=request.param, json=body | members, headers=service_role)


@pytest.fixture
def assert_refused(send, database):
    """Assert that a body is refused with an error and changes nothing."""

    def refuse(body, *error, **members):
        before = database.everything()
        assert_error(send(body), *error, **members)
        assert database.everything() == before

    return refuse


@cases(
    ("names", "values", "details"),
    [
        (
            ["email"],
            ["dave", "dave@", "@example.com", "d@@example.com", "dave@example", "", 1, []],
            A_SENTENCE,
        ),
        (
            ["phone"],
            ["0170 1234567", "+0491701234567", "+49", "+49170123456789012", "+٤٩١٧٠١٢٣٤٥٦٧"],
            A_PHONE,
        ),
        (["phone"], [49], A_SENTENCE),
        (
            ["password"],
            [1, True, ["x"], {"x": 1}, "Größe-1" * 120],
            "{}: must be a string of at most 1024 bytes",
        ),
        (["role"], ["service_role", "anon", "Admin", "1a", "a-b", "", "x" * 33, "admin\n", 1], A_SENTENCE),
        (["email_confirm", "phone_confirm"], ["true", 1, 0, "on", []], "{}: must be true or false"),
        (["user_metadata", "app_metadata"], ["x", 1, True, [], [{"a": 1}]], "{}: must be an object"),
        (["user_metadata", "app_metadata"], [{"x": "y" * 8184}], "{}: must be at most 8 KiB as JSON"),
        (
            ["ban_duration"],
            ["", "0s", "-1h", "1", "1y", "1 h", "1h\n", "1.5.5h", "1e3s", "\u0662h"],
            A_SENTENCE,
        ),
        (
            ["ban_duration"],
            ["infinity", "999999999999w", "9" * 9999 + "h", 24, True, {"hours": 24}],
            A_SENTENCE,
        ),
        (
            ["created_at", "banned_until", "data", "is_admin", "made_by"],
            ["x"],
            "{}: is not a member of this body",
        ),
    ],
)
def test_malformed_member_is_400(assert_refused, names, values, details):
    for name, value in itertools.product(names, values):
        expected = details.format(name) if isinstance(details, str) else details
        assert_refused({"user_metadata": {"y": 1}, name: value}, *INVALID, details=expected)


@cases(
    "value",
    [
        *("", "now", "infinity", "2026-01-31", "2026-01-31T12:00:00", "2026-02-30T12:00:00Z"),
        *("2026-01-31T25:00:00Z", "2026-01-31T12:00:00+99:00", "10000-01-01T00:00:00Z"),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "x" * 5000),
        *(0, 1.5, True, [], {}),
    ],
)
@pytest.mark.parametrize("send", ["PUT"], indirect=True)
def test_malformed_time_of_confirmation_is_400(assert_refused, value):
    for name in ("email_confirmed_at", "phone_confirmed_at"):
        assert_refused({name: value}, *INVALID, details=A_TIME.format(name))


@cases(
    ("password", "reasons"),
    [
        ("Ab1-", ["length"]),
        ("vbkqzhtw", ["characters"]),
        ("", ["length", "characters"]),
        ("password", ["characters", "common"]),
    ],
)
def test_weak_password_is_400(assert_refused, password, reasons):
    members = {"details": A_SENTENCE, "weak_password": {"reasons": reasons}}
    assert_refused({"password": password, "role": "editor"}, 400, "weak_password", **members)


def test_user_has_all_given_members(send, client, service_role, bob):
    session = bob.open_session()
    before = session.get("/user").json
    body = {
        "email": "Alicia@Example.com",
        "email_confirm": True,
        "phone": "+49 170 1234567",
        "phone_confirm": True,
        "password": "Another-Horse-1",
        "role": "editor",
        "user_metadata": {"name": "Alicia"},
        # The provider is computed.
        "app_metadata": {"plan": "gold", "provider": "google", "providers": ["google"]},
    }
    expected = user(
        "alicia@example.com",
        role="editor",
        phone=PHONE,
        phone_confirmed_at=A_TIMESTAMP,
        user_metadata={"name": "Alicia"},
        app_metadata={"plan": "gold", "provider": "email", "providers": ["email", "phone"]},
        identities=[identity("email", "alicia@example.com"), identity("phone", PHONE)],
    )
    response = send(body)
    assert_ok(response, expected)
    path = f"/admin/users/{response.json['id']}"
    assert_ok(client.get(path, headers=service_role), response.json)
    assert sign_in(client, "alicia@example.com", "Another-Horse-1").status_code == 200
    changed_user = client.put(path, json={"app_metadata": {"provider": None}}, headers=service_role).json
    assert changed_user["app_metadata"] == expected["app_metadata"]
    # Another user is unchanged.
    assert_ok(session.get("/user"), before)


def test_taken_email_or_phone_is_409(assert_refused, client, service_role, bob):
    client.put(f"/admin/users/{bob.id}", json={"phone": PHONE}, headers=service_role)
    msg = "A user with this {} has already been registered"
    for email in ("bob@example.com", "BOB@Example.com"):
        assert_refused({"email": email, "role": "editor"}, 409, "email_exists", msg.format("email address"))
    assert_refused({"phone": "+49 170 1234567"}, 409, "phone_exists", msg.format("phone number"))


@pytest.mark.parametrize("role", ["admin", "x" * 32])
def test_metadata_may_have_8_kib_and_the_service_role_key_may_set_a_role(send, role):
    metadata = {"user_metadata": LARGEST_METADATA, "app_metadata": LARGEST_METADATA}
    response = send({"role": role, **metadata})
    assert (response.status_code, response.json["role"]) == (200, role)
    assert response.json["user_metadata"] == LARGEST_METADATA
    assert response.json["app_metadata"]["x"] == LARGEST_METADATA["x"]


@cases("id", [str(uuid.UUID(int=0)), "me", "%00", "%25", "0" * 32, "' OR true --", f"{{{uuid.UUID(int=0)}}}"])
@cases(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("PUT", "", {}),
        ("PUT", "", {"role": "admin"}),
        ("PUT", "", {"password": "Another-Horse-1"}),
        ("DELETE", "", None),
        ("POST", "/logout", None),
    ],
)
def test_unknown_or_malformed_id_is_404(client, service_role, alice, method, path, body, id):
    session = alice.open_session()
    response = client.open(f"/admin/users/{id}{path}", method=method, json=body, headers=service_role)
    assert_error(response, *GONE)
    assert session.get("/user").status_code == 200


@pytest.fixture
def ask(client, service_role):
    """Send a request for a user."""
    return lambda method, id, path="", **options: client.open(
        f"/admin/users/{id}{path}", method=method, headers=service_role, **options
    )


def test_response_shows_a_ban_and_times_in_utc_with_microseconds(ask, alice, database):
    database.run(
        "UPDATE users SET banned_until = '9999-12-31T23:59:59Z', created_at = '2026-07-01T14:30:00.5+02:00'"
    )
    user_object = ask("GET", alice.id).json
    assert user_object["banned_until"] == "9999-12-31T23:59:59.000000Z"
    assert (user_object["created_at"], user_object["updated_at"]) == (
        "2026-07-01T12:30:00.500000Z",
        A_TIMESTAMP,
    )


class TestDeletion:
    def test_soft_deletion_is_refused(self, ask, alice):
        session = alice.open_session()
        for body, details in (
            ({"should_soft_delete": True}, "should_soft_delete: must be false"),
            ({"should_soft_delete": "false"}, "should_soft_delete: must be false"),
            ({"soft": True}, "soft: is not a member of this body"),
        ):
            assert_error(ask("DELETE", alice.id, json=body), *INVALID, details=details)
        assert session.get("/user").status_code == 200
        assert_ok(ask("DELETE", alice.id, json={"should_soft_delete": False}), {})

    def test_one_of_fifty_concurrent_requests_deletes_the_user(self, server, service_role, alice):
        answers = at_once(50, lambda _: server.delete(f"/admin/users/{alice.id}", headers=service_role))
        assert sorted(answer.status_code for answer in answers) == [200] + [404] * 49


class TestLogout:
    def test_logout_ends_all_sessions_of_the_user_alone(self, ask, alice, bob, database):
        sessions, other = [alice.open_session() for _ in range(3)], bob.open_session()
        assert_ok(ask("POST", alice.id, "/logout"), SIGNED_OUT)
        for session in sessions:
            assert_error(session.get("/user"), 401, "session_not_found")
            assert_error(session.refresh(), 400, "refresh_token_not_found")
        reasons = database.all("SELECT DISTINCT end_reason FROM sessions WHERE ended_at IS NOT NULL")
        assert reasons == [("ended_by_admin",)]
        assert (other.get("/user").status_code, other.refresh().status_code) == (200, 200)
        # A session that had ended keeps its reason and time.
        alice.open_session().post("/logout")
        before = database.everything("sessions")
        assert_ok(ask("POST", alice.id, "/logout", json={}), SIGNED_OUT)
        assert database.everything("sessions") == before

    def test_fifty_concurrent_requests_all_succeed(self, server, service_role, alice, database):
        alice.open_session()
        answers = at_once(50, lambda _: server.post(f"/admin/users/{alice.id}/logout", headers=service_role))
        assert {answer.status_code for answer in answers} == {200}
        assert database.count("sessions", "ended_at IS NULL") == 0
