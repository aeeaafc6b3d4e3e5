"""Bodies that are refused with 400, by route: the answer has the reason, and nothing changes.

What no route takes is in tests/web/test_hostile_bodies.py, and challenges are in test_pkce_links.py.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from auth.core.net.webhook_urls import EVENTS
from tests.support.answers import A_SENTENCE, assert_error
from tests.support.api_keys import ROUTE as API_KEYS
from tests.support.cases import cases
from tests.support.links import PHONE, VERIFIER
from tests.support.users import ALICE, DAVE, PASSWORD

SIGN_UP = {"email": DAVE, "password": PASSWORD}
BY_PHONE = {"phone": PHONE, "password": PASSWORD}
EITHER = "email: give either an email or a phone"
CODE = {"type": "magiclink", "token": "123456", "email": ALICE}
PKCE = {"auth_code": "x" * 43, "code_verifier": VERIFIER}
URL = {"url": "https://192.0.1.1/hooks"}
NO_EVENTS = f"events: must be a list of at least one of {', '.join(EVENTS)}"
A_RANDOM_ID = "0f6d8c62-9a4c-4d4e-8a4e-2f8f5d2c7b11"
LONG = {"x": "x" * 9000}
NO_PHONES = (
    *("491701234567", "+0491701234567", "+49170", "+4917012345678901", "++491701234567"),
    *("+49170123456\uff17", f"{PHONE}\n", f"{PHONE},+15551234567", f"{PHONE};ext=1"),
)
NO_VERIFIERS = ("", "x" * 42, "x" * 129, *("x" * 42 + end for end in " é\n="), "ä" * 43)
TO_AN_EMAIL = (
    *((body, "email: is required") for body in ({}, {"email": None}, {"phone": PHONE})),
    ({"email": 1}, "email: must be a string"),
    ({"email": "alice@"}, A_SENTENCE),
    ({"email": ALICE, "redirect_to": 1}, "redirect_to: must be a string"),
)

BAD_EVENTS: list[Any] = [[], ["x"], ["user.created", 5], "user.created", {}]
INVITATIONS: list[tuple[dict[str, Any], Any]] = [
    ({"email": None}, "email: is required"),
    ({"email": "dave"}, A_SENTENCE),
    ({"data": []}, "data: must be an object"),
    ({"options": []}, "options: must be an object"),
    ({"options": {"data": "x"}}, "options.data: must be an object"),
    ({"options": {"captcha_token": 1}}, "options.captcha_token: must be a string"),
    ({"redirect_to": {}}, "redirect_to: must be a string"),
    *((each, A_SENTENCE) for each in ({"data": LONG}, {"options": {"data": LONG}})),
]
KEYS: list[dict[str, Any]] = [
    *({}, *({"name": name} for name in ("", " ", "x" * 81, 1, "a\u202eb"))),
    *({"name": "x", "expires_in": value} for value in (0, 59, -1, 315_360_001, "60", 60.0, True)),
    *({"name": "x", "scopes": each} for each in ("a", ["a b"], ['"'], [""], ["x" * 65], [1], ["a"] * 2)),
    {"name": "x", "scopes": [f"s{number}" for number in range(21)]},
]

# By route, bodies and their mistakes.
REFUSED: dict[str, Sequence[tuple[dict[str, Any], Any]]] = {
    "/signup": [
        ({"password": PASSWORD}, EITHER),
        (SIGN_UP | {"phone": PHONE}, EITHER),
        ({"phone": PHONE}, "password: is required"),
        (SIGN_UP | {"email": "dave"}, A_SENTENCE),
        (BY_PHONE | {"phone": "0170 1234567"}, A_SENTENCE),
        ({"email": 1, "data": []}, "data: must be an object; email: must be a string; password: is required"),
    ],
    **dict.fromkeys(["/magiclink", "/recover"], TO_AN_EMAIL),
    "/otp": [
        *((body, EITHER) for body in ({}, {"email": ALICE, "phone": PHONE})),
        ({"phone": 491701234567}, "phone: must be a string"),
        *(({"phone": malformed}, A_SENTENCE) for malformed in NO_PHONES),
        ({"phone": PHONE, "create_user": "yes"}, "create_user: must be true or false"),
    ],
    "/resend": [
        ({"email": DAVE}, "type: is required"),
        ({"type": "recovery", "email": DAVE}, "type: must be one of signup, email_change, sms, phone_change"),
        ({"type": 1, "email": DAVE}, "type: must be a string"),
        *(({"type": type, "email": DAVE}, A_SENTENCE) for type in ("magiclink", "invite", "undo")),
        ({"type": "reauthentication", "email": DAVE}, A_SENTENCE),
        ({"type": "sms_signup", "phone": PHONE}, A_SENTENCE),
        ({"type": "signup"}, A_SENTENCE),
        ({"type": "signup", "email": DAVE, "phone": PHONE}, A_SENTENCE),
        *(
            ({"type": type, "phone": PHONE}, f"email: must be given for type {type}")
            for type in ("signup", "email_change")
        ),
        *(
            ({"type": type, "email": DAVE}, f"phone: must be given for type {type}")
            for type in ("sms", "phone_change")
        ),
    ],
    "/verify": [
        ({}, "type: is required"),
        ({"type": "magiclink"}, "token: give a token with an email or a phone, or a token_hash"),
        ({"type": "magiclink", "token": "123456"}, EITHER),
        (CODE | {"phone": PHONE}, EITHER),
        ({"type": "magiclink", "email": ALICE}, A_SENTENCE),
        *((CODE | {"token": token}, "token: must be a string") for token in (123456, ["1"], {"$gt": ""})),
        (CODE | {"token_hash": True}, "token_hash: must be a string"),
        (CODE | {"token_hash": "x" * 3000}, A_SENTENCE),
        (CODE | {"type": ["magiclink"]}, "type: must be a string"),
        *((CODE | {"type": type}, A_SENTENCE) for type in ("nonsense", "MAGICLINK", "reauthentication")),
        ({"type": "sms_signup", "token": "123456", "phone": PHONE}, A_SENTENCE),
        ({"type": "sms", "token": "123456", "phone": "49170"}, A_SENTENCE),
        ({"type": "undo", "token_hash": "x" * 43}, A_SENTENCE),
    ],
    "/token?grant_type=pkce": [
        *(
            ({name: value for name, value in PKCE.items() if name != each}, f"{each}: is required")
            for each in PKCE
        ),
        *((PKCE | {name: None}, f"{name}: is required") for name in PKCE),
        *((PKCE | {"code_verifier": each}, "code_verifier: must be a string") for each in (1, ["x" * 43])),
        *((PKCE | {"code_verifier": malformed}, A_SENTENCE) for malformed in NO_VERIFIERS),
    ],
    "/token?grant_type=refresh_token": [
        *((body, "refresh_token: is required") for body in ({}, {"refresh_token": None})),
        ({"refresh_token": 1}, "refresh_token: must be a string"),
    ],
    "/token?grant_type=id_token": [
        ({"provider": provider, "id_token": id_token}, A_SENTENCE)
        for provider, id_token in ((None, "x"), (7, "x"), ("google", None), ("google", 7), (None, None))
    ],
    "/passkeys/authentication/verify": [
        (body, A_SENTENCE)
        for body in (
            {},
            {"challenge_id": "x", "credential": {}},
            {"challenge_id": A_RANDOM_ID, "credential": []},
        )
    ],
    API_KEYS: [(body, A_SENTENCE) for body in KEYS],
    "/admin/invite": [({"email": "erin@example.com"} | changes, details) for changes, details in INVITATIONS],
    "/admin/generate_link": [
        ({"type": "magiclink"}, "email: is required"),
        ({"email": DAVE}, "type: is required"),
        *(({"type": type, "email": DAVE}, A_SENTENCE) for type in ("sms", "email", "undo")),
        ({"type": "magiclink", "email": "dave"}, A_SENTENCE),
        ({"type": "magiclink", "email": DAVE, "redirect_to": 1}, "redirect_to: must be a string"),
        ({"type": "signup", "data": "x"} | SIGN_UP, "data: must be an object"),
        ({"type": "invite", "email": DAVE, "data": LONG}, A_SENTENCE),
    ],
    "/admin/webhooks": [
        *((URL | {"events": events}, NO_EVENTS) for events in BAD_EVENTS),
        ({}, "url: is required"),
        ({"url": 5}, "url: must be a string"),
        ({"url": URL["url"] + "x" * 2048}, "url: must be at most 2048 characters"),
        (URL | {"description": 5}, "description: must be a string"),
    ],
}
# The ways in which a request for a message may describe the user that it creates.
DESCRIPTIONS: list[tuple[dict[str, Any], Any]] = [
    ({"create_user": 1}, "create_user: must be true or false"),
    ({"data": []}, "data: must be an object"),
    *(({"data": LONG, "create_user": value}, A_SENTENCE) for value in (True, False)),
]


@pytest.fixture
def client(make_app):
    return make_app(AUTH_API_KEYS="true").test_client()


@pytest.fixture
def session(client, alice):
    return alice.open_session(client)


@pytest.fixture
def unchanged(client, session, database) -> Iterator[None]:
    """Assert that the requests of a test change nothing, neither a code that waits nor a sign-up."""
    client.post("/magiclink", json={"email": ALICE})
    client.post("/signup", json=SIGN_UP)
    before = database.everything()
    yield
    assert database.everything() == before


@pytest.mark.usefixtures("unchanged")
@cases(("path", "body", "details"), [(path, *row) for path, rows in REFUSED.items() for row in rows])
def test_invalid_body_is_400(client, session, service_role, path, body, details):
    headers = session.authorization if path == API_KEYS else service_role if "/admin" in path else {}
    response = client.post(path, json=body, headers=headers)
    assert_error(response, 400, "validation_failed", details=details)


@pytest.mark.usefixtures("unchanged")
@cases("path", ["/magiclink", "/otp"])
@cases("email", [ALICE, "erin@example.com"])
@cases(("body", "details"), DESCRIPTIONS)
def test_invalid_description_of_a_user_is_400(client, path, email, body, details):
    response = client.post(path, json={"email": email} | body)
    assert_error(response, 400, "validation_failed", details=details)
