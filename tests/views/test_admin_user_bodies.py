"""What the routes of /admin/users have in common: the bodies that create or change a user, and ids."""

import itertools
import json
import uuid

import pytest

from tests.support.answers import A_SENTENCE, assert_error
from tests.support.cases import cases
from tests.support.links import PHONE

INVALID = (400, "validation_failed")
A_TIME = "{}: must be an ISO 8601 timestamp with a time zone"
A_PHONE = "{}: must be a phone number in E.164 form, such as +491701234567"


@pytest.fixture(params=["POST", "PUT"])
def send(request, client, service_role, alice):
    """Create Dave, or change Alice."""
    path, body = "/admin/users", {"email": "dave@example.com"}
    if request.param == "PUT":
        path, body = f"{path}/{alice.id}", {}
    return lambda more: client.open(path, method=request.param, json=body | more, headers=service_role)


@pytest.fixture
def refused(send, database):
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
            ["0170 1234567", "+0491701234567", "+49", "+49170123456789012", "+49x1701234567"],
            A_PHONE,
        ),
        (["phone"], ["", "+٤٩١٧٠١٢٣٤٥٦٧"], A_PHONE),
        (["phone"], [49], A_SENTENCE),
        (
            ["password"],
            [1, True, ["x"], {"x": 1}, "Aa1-" * 257, "Größe-1" * 120],
            "{}: must be a string of at most 1024 bytes",
        ),
        (["role"], ["service_role", "supabase_admin", "anon", "postgres", "Admin", "1a", "_a"], A_SENTENCE),
        (["role"], ["a-b", "admin ", "", "x" * 33, "admin\n", "ádmin", 1, True, ["admin"]], A_SENTENCE),
        (["email_confirm", "phone_confirm"], ["true", 1, 0, "on", []], "{}: must be true or false"),
        (["user_metadata", "app_metadata"], ["x", 1, True, [], [{"a": 1}]], "{}: must be an object"),
        (["user_metadata", "app_metadata"], [{"x": "y" * 8184}], "{}: must be at most 8 KiB as JSON"),
        (
            ["ban_duration"],
            ["", "0s", "0h0m", "-1h", "+1h", "1", "h", "1y", "1H", "1 h", " 1h", "1h "],
            A_SENTENCE,
        ),
        (["ban_duration"], ["1h\n", "1.5h", "1e3s", "1h,30m", "\u0662h", "\uff11h", "Permanent"], A_SENTENCE),
        (
            ["ban_duration"],
            ["infinity", "null", "999999999999w", "9999999999999h", "9" * 9999 + "h"],
            A_SENTENCE,
        ),
        (["ban_duration"], [24, -1, 0, 1.5, True, False, ["24h"], {"hours": 24}], A_SENTENCE),
        (
            ["created_at", "banned_until", "data", "is_admin", "made_by"],
            ["x"],
            "{}: is not a member of this body",
        ),
    ],
)
def test_malformed_member_is_400(refused, names, values, details):
    for name, value in itertools.product(names, values):
        expected = details.format(name) if isinstance(details, str) else details
        refused({"user_metadata": {"y": 1}, name: value}, *INVALID, details=expected)


@cases(
    "sent",
    [
        *("", "now", "infinity", "2026-01-31", "2026-01-31T12:00:00", "2026-02-30T12:00:00Z"),
        *("2026-01-31T25:00:00Z", "2026-01-31T12:00:00+99:00", "10000-01-01T00:00:00Z"),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "x" * 5000),
        *(0, 1.5, True, [], {}),
    ],
)
@pytest.mark.parametrize("send", ["PUT"], indirect=True)
def test_malformed_time_of_confirmation_is_400(refused, sent):
    for name in ("email_confirmed_at", "phone_confirmed_at"):
        refused({name: sent}, *INVALID, details=A_TIME.format(name))


@cases(
    ("password", "reasons"),
    [
        ("Ab1-", ["length"]),
        ("abcdefgh", ["characters"]),
        ("", ["length", "characters"]),
        ("password", ["characters", "common"]),
    ],
)
def test_weak_password_is_400(refused, password, reasons):
    members = {"details": A_SENTENCE, "weak_password": {"reasons": reasons}}
    refused({"password": password, "role": "editor"}, 400, "weak_password", **members)


def test_taken_email_or_phone_is_409(refused, client, service_role, bob):
    client.put(f"/admin/users/{bob.id}", json={"phone": PHONE}, headers=service_role)
    msg = "A user with this {} has already been registered"
    for email in ("bob@example.com", "BOB@Example.com"):
        refused({"email": email, "role": "editor"}, 409, "email_exists", msg.format("email address"))
    refused({"phone": "+49 170 1234567"}, 409, "phone_exists", msg.format("phone number"))


@pytest.mark.parametrize("field", ["user_metadata", "app_metadata"])
def test_metadata_may_have_8_kib(send, field):
    value = "y" * (8192 - len(json.dumps({"x": ""})))
    response = send({field: {"x": value}})
    assert (response.status_code, response.json[field]["x"]) == (200, value)


@pytest.mark.parametrize("role", ["authenticated", "admin", "a", "a_1", "x" * 32])
def test_service_role_key_may_set_a_role(send, role):
    response = send({"role": role})
    assert (response.status_code, response.json["role"]) == (200, role)


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
    assert_error(response, 404, "user_not_found", "User not found")
    assert session.get("/user").status_code == 200


@cases(("method", "path", "body"), [("GET", "", None), ("PUT", "", {}), ("POST", "/logout", None)])
def test_id_is_case_insensitive(client, service_role, alice, method, path, body):
    path = f"/admin/users/{alice.id.upper()}{path}"
    response = client.open(path, method=method, json=body, headers=service_role)
    assert (response.status_code, response.json.get("id", alice.id)) == (200, alice.id)
