"""docs/testing.md: its settings and tokens, and the interface for other languages.

tests/system/trials/test_kit_of_the_wheel.py plays its installations and the tests of an application.
"""

import inspect
import json
import re
from typing import Any

import jwt
import pytest

from auth.ops.testkit.running_service import Service
from latchkey_auth.testing import Control, Latchkey, Organization, User
from tests.support.guides import Guide
from tests.support.processes import CHECKOUT
from tests.support.terminals import checkout

GUIDE = Guide("testing.md")
PAGE = (CHECKOUT / "docs" / GUIDE.page).read_text()


def test_settings_of_the_page_start_a_service():
    namespace: dict[str, Any] = {"pytest": pytest}
    exec(GUIDE.block("def latchkey_settings").text, namespace)  # noqa: S102
    settings = namespace["latchkey_settings"].__wrapped__()
    with checkout() as terminal, terminal.run(GUIDE.command("test-server")) as shell:
        assert shell.stdout
        server = json.loads(shell.stdout.readline())
        assert server.keys() == {"control", "key"}
        latchkey = Control(server["control"], server["key"]).start(settings)
        assert latchkey.user(anonymous=True).email is None
        assert latchkey.organization("Acme", owner=latchkey.user()).slug == "acme"
        # It ends with its standard input.
        shell.communicate(timeout=60)
        assert shell.returncode == 0


def test_token_of_the_page_is_verified_by_its_keys():
    namespace: dict[str, Any] = {}
    exec(GUIDE.block("jwks, mint").text, namespace)  # noqa: S102
    (key,) = jwt.PyJWKSet.from_dict(namespace["keys"]).keys
    expected: Any = {"issuer": "http://localhost:8000", "audience": "authenticated"}
    assert jwt.decode(namespace["token"], key, ["ES256"], **expected)["role"] == "editor"


def test_interface_for_other_languages_is_the_list_of_the_page():
    """Each request with its members is on the page, and nothing else."""
    rows = re.findall(r"^- ((?:`/\w+`(?:, )?)+)(?:: (.*(?:\n  .*)*?))?(?: →.*)?$", PAGE, re.MULTILINE)
    listed = {path: members for paths, members in rows for path in re.findall(r"/(\w+)", paths)}
    source = (CHECKOUT / "auth" / "ops" / "testkit" / "__main__.py").read_text()
    acts = set(re.findall(r'"(\w+)"', source[source.index("_ACTS = {") : source.index("}  # fmt: skip")]))
    assert listed.keys() == acts
    for path, members in listed.items():
        if path != "user":  # which has those of the fixture's method
            parameters = inspect.signature(getattr(Service, path)).parameters
            assert re.findall(r"`(\w+)`", members.partition(" → ")[0]) == [*parameters][1:], path


@pytest.mark.parametrize(
    ("type", "own"),
    [
        (Latchkey, {"user", "users", "organization", "answer", "fail", "age", "reset"}),
        (Organization, {"add", "remove"}),
        (User, {"token", "headers", "session", "cookies", "supabase", "totp"}),
    ],
)
def test_methods_of_the_kit_are_on_the_page(type, own):
    methods = {name for name, each in vars(type).items() if inspect.isfunction(each) and name[0] != "_"} - {
        "act"
    }
    assert methods == own
    assert [name for name in methods if not re.search(rf"(?:latchkey|user|`)\.{name}\(", PAGE)] == []
