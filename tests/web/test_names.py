"""Names that people, applications and providers have: one idea of what a name is at every door."""

from typing import Any

import pytest

from auth.core import normalize
from auth.core.text import names
from tests.support.api_keys import ROUTE as API_KEYS
from tests.support.cases import cases
from tests.support.passkeys import register

PERSIAN, SINHALA, EMOJI = "می\u200cشود", "ශ්\u200dරී ලංකා", "👩\u200d💻"
# Letters with a selector of their variant.
MONGOLIAN, KATSURAGI = "ᠠ\u180bᠮᠤᠷ", "葛\U000e0100城"
NAMES = {
    **{name: name for name in ("Ada", "O’Brien-Łuk", "李小龍", PERSIAN, SINHALA, EMOJI, "❤\ufe0f")},
    **{
        name: name
        for name in (
            MONGOLIAN,
            KATSURAGI,
            "O\u00b4Brien",
            "\uff33\uff4f\uff4e\uff59",
            "モーニング娘\u3002",
            "St. Gallen",
        )
    },
    **{"Ada\xa0Lovelace": "Ada Lovelace", " Ada\u3000": "Ada", "\u2009A B\u202f": "A B"},
}
HIDING = [
    f"A{char}B" for char in "\0\n\t\x1b\x7f\x85\xad\u200b\u200e\u200f\u202a\u202e\u2028\u2066\u2069\ufeff"
]
HIDING += [f"A{char}B" for char in "\u061c\u180e\ue000\U000e0041"]
HIDING += [
    f"A{char}B"
    for char in "\u034f\u115f\u1160\u17b4\u17b5\u2065\u2800\u3164\uffa0\ufff0\U00016fe4\U0001bca0\U0001d159\U0001d173"
]
BLANK = [" ", "\xa0", "\u3000 ", "\u200c", "\u200d \u200d", "\u2800", "\u3164", "\u115f\u1160", "\uffa0"]
BLANK += ["\u034f", "\u17b4", "\u180b", "\u180f", "\ufe00 \ufe0f", "\U000e0100", "\U0001d159", "\u200d\ufe0f"]


@cases(("name", "kept"), NAMES.items())
def test_letters_of_all_scripts_are_kept_and_spaces_are_plain(name, kept):
    assert normalize.name(name, 20) == kept


@cases("name", ["", *HIDING, *BLANK, "x" * 21, None, 1, ["Ada"], "A\ud800"])
def test_text_that_is_blank_or_hides_or_reorders_letters_is_no_name(name):
    assert normalize.name(name, 20) is None


LINKS = [
    "evil.example",
    "evil\uff0eexample",
    "evil\u3002example",
    "evil\u2024example",
    "evil\uff61example",
    "evil\ufe52example",
    "evil\u2488example",
]
LINKS += [f"evil.{char}example" for char in "\u200d\ufe0f\u180b"] + [
    "a\uff20b",
    "https\uff1aevil",
    "a\uff0fb",
    "a\u2100b",
]


@pytest.mark.parametrize("kind", [names.organization, names.person])
def test_name_that_looks_like_a_link_is_not_shown(kind):
    assert [name for name in LINKS if kind(name) is not None] == []
    assert [kind(name) for name in NAMES] == list(NAMES.values())


def test_name_of_an_application_that_nobody_sees_is_empty():
    assert [names.in_one_line(name) for name in ("A\u034fB", f" {PERSIAN} ", *BLANK)] == ["A B", PERSIAN] + [
        ""
    ] * len(BLANK)


@pytest.fixture
def doors(make_app, alice, service_role) -> Any:
    """Ways to give a name: each returns the response, and the name in it."""
    client = make_app(AUTH_API_KEYS="true", AUTH_SSO="true").test_client()
    session = alice.open_session(client)
    _, passkey = register(session)
    client_body = {"redirect_uris": ["https://app.example.com/cb"]}
    factor = {"factor_type": "totp"}

    def with_member(member: str, response: Any) -> tuple[Any, Any]:
        return response, response.json.get(member)

    return {
        "friendly_name of a passkey": lambda name: with_member(
            "friendly_name", session.patch(f"/passkeys/{passkey['id']}", json={"friendly_name": name})
        ),
        "friendly_name of a factor": lambda name: with_member(
            "friendly_name", session.prepared().post("/factors", json=factor | {"friendly_name": name})
        ),
        "name of a key": lambda name: with_member(
            "name", session.prepared().post(API_KEYS, json={"name": name})
        ),
        "client_name": lambda name: with_member(
            "client_name",
            client.post(
                "/admin/oauth/clients", json=client_body | {"client_name": name}, headers=service_role
            ),
        ),
    }


MOST = {
    "friendly_name of a passkey": 120,
    "friendly_name of a factor": 256,
    "name of a key": 80,
    "client_name": 1024,
}
MAY_BE_EMPTY = ("friendly_name of a factor", "client_name")


@pytest.mark.parametrize("door", MOST)
def test_each_door_takes_the_same_names(doors, door):
    for name, kept in NAMES.items():
        response, answered_name = doors[door](name)
        assert (response.status_code in (200, 201), answered_name) == (True, kept), response.json
    for name in HIDING[1:] + (BLANK[3:] if door in MAY_BE_EMPTY else BLANK):
        response, _ = doors[door](name)
        details = f"{door.partition(' ')[0]}: must be 1 to {MOST[door]} visible characters"
        assert (response.status_code, response.json.get("details") or response.json["msg"]) == (400, details)
