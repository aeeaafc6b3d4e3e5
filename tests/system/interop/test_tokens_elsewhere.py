"""Which of our tokens go-oidc and openid-client accept."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.kinds_of_token import (
    FOR_USERINFO,
    NONCE,
    OTHER_RESOURCE,
    SETTINGS,
    make_notes,
    token_of_each_kind,
)
from tests.support.openid import RESOURCE

pytest_plugins = ["tests.support.browser_fixtures"]

INTEROP = Path(__file__).parent
CLIENTS = INTEROP.parent / "clients"


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return SETTINGS


@pytest.fixture
def client(make_app, origin):
    """The service in this process: the libraries ask the running one for its keys."""
    return make_app(**SETTINGS, AUTH_BASE_URL=origin).test_client()


@pytest.fixture
def notes(database):
    return make_notes(database)


@pytest.fixture
def tokens(client, database, alice, notes) -> dict[str, str]:
    return token_of_each_kind(client, database, alice, notes)


def go_oidc() -> list[str]:
    if not shutil.which("go"):
        pytest.skip("NOT TESTED: go-oidc, which needs go")
    build = ["go", "build", "-o", "target/verifier", "./verifier"]
    subprocess.run(build, cwd=INTEROP / "go", check=True)
    return [str(INTEROP / "go" / "target" / "verifier")]


def openid_client() -> list[str]:
    if not (CLIENTS / "node_modules").is_dir():
        pytest.skip("NOT TESTED: openid-client, which needs npm, then: make test-interop")
    return ["node", str(CLIENTS / "accepted-tokens.mjs")]


@pytest.mark.parametrize("library", [go_oidc, openid_client])
def test_library_accepts_exactly_the_tokens_for_its_audience(
    site, origin, tokens, notes, library: Callable[[], list[str]]
):
    program = library()
    accepted = {
        (RESOURCE, ""): {"client, with resource", "client_credentials, with resource"},
        (OTHER_RESOURCE, ""): {"another client, elsewhere"},
        (f"{origin}/oauth/userinfo", ""): FOR_USERINFO,
        (notes.id, NONCE): {"id token"},
    }
    for (audience, nonce), expected in accepted.items():
        result = subprocess.run(
            [*program, origin, audience, nonce],
            input=json.dumps(tokens),
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        assert set(json.loads(result.stdout)) == expected, audience
