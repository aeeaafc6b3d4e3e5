"""AUTH_OAUTH_API_SCOPES is checked by core, which knows neither the scopes of this extension nor the rules: it agrees
with both.
"""

import json
from itertools import product

import pytest

from auth.core.settings import SettingsError
from auth.extensions.openid.memberships import ALL, OF_USERS, ONE
from auth.rules.clients import is_same_resource

HOST = "https://api.example"


def refusal(load, pairs):
    """Return why these pairs of an API and its scopes are refused, empty if they are not."""
    members = ", ".join(f"{json.dumps(uri)}: {json.dumps(scopes)}" for uri, scopes in pairs)
    try:
        load(AUTH_OAUTH_API_SCOPES=f"{{{members}}}")
    except SettingsError as error:
        return str(error).removeprefix("AUTH_OAUTH_API_SCOPES: ")
    return ""


@pytest.mark.parametrize("scope", [*OF_USERS, ONE, ALL, f"{ONE}:acme"])
def test_scope_about_users_is_not_one_of_an_api(load, scope):
    assert "and none about users, such as openid" in refusal(load, [(HOST, f"read {scope}")])


def test_api_is_set_once_however_it_is_spelled(load):
    uris = [
        HOST,
        f"{HOST}/",
        f"{HOST}//",
        f"{HOST}?x",
        f"{HOST}/?x",
        f"{HOST}/x",
        f"{HOST}/x/",
        f"{HOST}:8443",
    ]
    for uri, other in product(uris, uris):
        twice = "Names an API twice. Give it all of its scopes at once."
        expected = twice if is_same_resource(uri, other) else ""
        assert refusal(load, [(uri, "read"), (other, "write")]) == expected, (uri, other)
