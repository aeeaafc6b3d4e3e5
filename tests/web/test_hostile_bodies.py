"""Hostile bodies: each is refused with the envelope and changes nothing."""

import json
from typing import Any, NamedTuple

import pytest

from tests.support.answers import A_SENTENCE, ANYTHING, assert_error
from tests.support.cases import cases
from tests.support.links import SITE
from tests.support.users import PASSWORD

# Fields with another type than text.
TYPES: dict[str, type] = dict.fromkeys(("data", "user_metadata", "app_metadata"), dict)
TYPES |= dict.fromkeys(("email_confirm", "phone_confirm"), bool)


class Endpoint(NamedTuple):
    """A request that would succeed, with the names of its fields."""

    method: str
    path: str
    caller: str
    body: dict[str, Any]
    required: str
    optional: str = ""

    def type_of(self, name: str) -> type:
        return TYPES.get(name, str)


CREDENTIALS = {"email": "alice@example.com", "password": PASSWORD}
SIGN_UP = {"email": "dave@example.com", "password": PASSWORD, "data": {"x": 1}, "redirect_to": f"{SITE}/x"}
USER_FIELDS = "email phone password data nonce current_password"
ADMIN_FIELDS = "phone password role email_confirm phone_confirm user_metadata app_metadata"
REFRESH_PATH = "/token?grant_type=refresh_token"
REFRESH_BODY = {"refresh_token": "$refresh_token"}
ENDPOINTS = [
    Endpoint("POST", "/signup", "nobody", SIGN_UP, "email password", "data redirect_to"),
    Endpoint("POST", "/token?grant_type=password", "nobody", CREDENTIALS, "email password", "phone"),
    Endpoint("POST", REFRESH_PATH, "nobody", REFRESH_BODY, "refresh_token"),
    Endpoint("PUT", "/user", "alice", {"data": {"x": 1}}, "", USER_FIELDS),
    Endpoint("DELETE", "/user", "alice", {}, "", "nonce current_password"),
    Endpoint("POST", "/admin/users", "service role", {"email": "dave@example.com"}, "email", ADMIN_FIELDS),
]
WRONG = {
    str: [1, 1.5, True, [], ["x"], {}, {"x": "y"}],
    dict: [1, True, "{}", "", [], [{}]],
    bool: ["true", "false", "on", "", 0, 1, [], {}],
}
LONG = "x" * 15_000
# Escaped in JSON; UTF-8 cannot encode the lone surrogates.
REFUSED_CHARACTERS = ("\0", "\ud800", "\udc00", "\ud83d\\\udc00", "\udc00\ud83d")

FIELDS = [(each, name) for each in ENDPOINTS for name in f"{each.required} {each.optional}".split()]
# Refused bodies change nothing, so one test may send all.
in_each_field = cases(("endpoint", "name"), FIELDS)
in_each_body = cases("endpoint", ENDPOINTS)
each_endpoint = pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: f"{each.method} {each.path}")


@pytest.fixture
def send(client, alice, service_role, database):
    session = alice.open_session()
    callers = {"nobody": {}, "alice": session.authorization, "service role": service_role}
    snapshot = None

    def send(endpoint, text, content_type="application/json"):
        """Send a body, and check that nothing has changed unless it was accepted."""
        nonlocal snapshot
        text = text.replace("$refresh_token", session.refresh_token) if isinstance(text, str) else text
        before = snapshot or database.everything()
        options = {"content_type": content_type, "headers": callers[endpoint.caller]}
        response = client.open(endpoint.path, method=endpoint.method, data=text, **options)
        snapshot = database.everything() if response.status_code >= 400 else None
        assert snapshot in (None, before)
        return response

    return send


def assert_refused(response, *error_codes):
    assert 400 <= response.status_code < 500, response.text
    assert response.json["error_code"] in (error_codes or ("validation_failed", "bad_json"))
    assert_error(response, response.status_code, response.json["error_code"], details=A_SENTENCE)


class TestEachField:
    @in_each_field
    def test_field_of_another_type_is_refused(self, send, endpoint, name):
        for value in WRONG[endpoint.type_of(name)]:
            response = send(endpoint, json.dumps(endpoint.body | {name: value}))
            assert_refused(response, "validation_failed")
            assert response.json["details"].startswith(f"{name}: must be "), response.json

    @pytest.mark.parametrize(("endpoint", "name"), FIELDS)
    def test_null_field_is_absent(self, send, endpoint, name):
        response = send(endpoint, json.dumps(endpoint.body | {name: None}))
        if name in endpoint.required.split():
            assert_refused(response, "validation_failed")
        else:
            assert response.status_code < 300

    @in_each_field
    def test_long_field_is_refused(self, send, endpoint, name):
        value = {"x": LONG} if endpoint.type_of(name) is dict else LONG
        assert_refused(send(endpoint, json.dumps(endpoint.body | {name: value})), "validation_failed")

    @in_each_field
    def test_nul_and_lone_surrogates_are_refused(self, send, endpoint, name):
        for character in REFUSED_CHARACTERS:
            text = f"a{character}b@example.com"
            values: list[Any] = [text, character]
            if endpoint.type_of(name) is dict:
                values = [{"x": text}, {text: 1}, {"x": [{"y": [text]}]}]
            for value in values:
                assert_refused(send(endpoint, json.dumps(endpoint.body | {name: value})), "bad_json")

    @in_each_field
    def test_repeated_field_is_refused(self, send, endpoint, name):
        kind = endpoint.type_of(name)
        value = endpoint.body.get(name, {"x": 1} if kind is dict else kind(1))
        member = f'"{name}": {json.dumps(value)}'
        body = json.dumps(endpoint.body | {name: value})
        assert_refused(send(endpoint, f"{{{member}, {body[1:]}"), "bad_json")


class TestEachBody:
    @in_each_body
    def test_body_that_is_not_a_json_object_is_refused(self, send, endpoint):
        others = ("[]", "[{}]", '"x"', "1", "true", "null", "-0")
        syntax = ("{", "}", "{]", '{"x"}', "{'x': 1}", '{"x": 1,}', "{} {}", "{}x", "<x/>")
        for text in (*others, *syntax, '{"x": 01}', '{"x": "\n"}', '{"x": undefined}'):
            assert_refused(send(endpoint, text), "bad_json")

    @in_each_body
    def test_numbers_out_of_range_are_refused(self, send, endpoint):
        for number in ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 5000):
            text = f'{{"data": {{"x": {number}}}, "user_metadata": {{"x": {number}}}}}'
            assert_refused(send(endpoint, text), "bad_json")

    @in_each_body
    def test_deeply_nested_body_is_refused(self, send, endpoint):
        for depth in (33, 500, 2000):
            for nested in ("[" * depth + "]" * depth, '{"x":' * depth + "1" + "}" * depth):
                assert_refused(send(endpoint, f'{{"data": {nested}}}'), "bad_json")

    @in_each_body
    def test_body_that_is_not_utf_8_is_refused(self, send, endpoint):
        others = [json.dumps({"x": 1}).encode(encoding) for encoding in ("utf-16", "utf-16-le", "utf-32")]
        for body in (b'{"x": "\xff"}', b'{"x": "\xed\xa0\x80"}', b'{"x": "\xc0\x80"}', *others):
            assert_refused(send(endpoint, body), "bad_json")

    @each_endpoint
    @pytest.mark.parametrize("content_type", ["application/json", 'APPLICATION/JSON;charset="UTF-8"; x=y'])
    def test_valid_body_is_accepted(self, send, endpoint, content_type):
        unknown = {"x": {"y": [1, None]}, "": 1, "__proto__": {}, "gotrue_meta_security": {}}
        # tests/flows/admin checks that administrative operations refuse them.
        members = {} if endpoint.path.startswith("/admin/") else unknown
        assert send(endpoint, json.dumps(endpoint.body | members), content_type).status_code < 300


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


CHARACTERS = [*range(1, 0x80), 0xA0, 0xFFFD, 0xFFFF, 0x10000, 0x10FFFF, 0x200B, 0x202E, 0xFEFF]
EVERY_CHARACTER = "".join(map(chr, CHARACTERS))


class TestAcceptedBodies:
    @pytest.mark.parametrize(
        "data",
        [
            *({"x": number} for number in (0, -1, 1.5, 1e15, 2**63, 10**400, 1e-400)),
            pytest.param({"x": nested(29)}, id="nested up to the limit"),
            pytest.param({EVERY_CHARACTER: EVERY_CHARACTER}, id="every character"),
            {"x": {"x": {"x": 1}}},
            pytest.param({"x": [[]] * 2045}, id="8 KiB of brackets"),
            pytest.param({"x": '\\"[{,' * 100}, id="brackets and quotes in a string"),
            {"x": "\\ud800 \\u0000 \\\\udc00"},
        ],
    )
    def test_metadata_is_kept_as_it_is_sent(self, alice, data):
        assert alice.open_session().put("/user", json={"data": data}).json["user_metadata"] == data

    def change(self, user, text):
        return user.open_session().put("/user", data=text, content_type="application/json")

    def test_surrogate_pair_is_one_character(self, alice):
        response = self.change(alice, r'{"data": {"x": "\ud83d\ude00"}}')
        assert response.json["user_metadata"] == {"x": "😀"}

    def test_repeated_name_in_a_nested_object_is_refused(self, alice):
        response = self.change(alice, '{"data": {"x": 1, "x": 2}}')
        assert_error(response, 400, "bad_json", details="the body must not repeat a member")

    def test_body_that_is_not_expected_is_ignored(self, client, alice):
        assert alice.open_session().post("/logout", json={"x": 1}).status_code == 200
        assert client.get("/settings", data="x", content_type="text/plain").status_code == 200


@cases(("email", "password"), [("<script>alert(1)</script>", PASSWORD), (PASSWORD, "<b>weak</b>")])
def test_errors_do_not_repeat_the_input(client, email, password):
    response = client.post("/signup", json={"email": email, "password": password})
    assert response.status_code in (400, 422)
    assert "<script>" not in response.text
    assert "<b>" not in response.text
    assert response.json["details"] == ANYTHING
