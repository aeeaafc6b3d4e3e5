"""The client that openapi-python-client generates from openapi.yaml."""

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.support.contract import OPENAPI
from tests.support.server import served
from tests.support.users import DAVE, PASSWORD

NAME = "generated_client"


@pytest.fixture(scope="module")
def modules(tmp_path_factory) -> Iterator[dict[str, Any]]:
    """The modules of a client by their names."""
    directory = tmp_path_factory.mktemp("generated")
    (directory / "config.yaml").write_text("post_hooks: []")
    command = [str(Path(sys.executable).with_name("openapi-python-client")), "generate", "--meta", "none"]
    command += ["--path", str(OPENAPI), "--output-path", NAME, "--config", "config.yaml"]
    subprocess.run(command, cwd=directory, capture_output=True, check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(directory)
        packages = pkgutil.walk_packages([str(directory / NAME)], f"{NAME}.")
        yield {name.removeprefix(f"{NAME}."): importlib.import_module(name) for _, name, _ in packages}


def test_generated_client_signs_a_user_up_and_in_and_out(modules, make_app, database):
    models, api = modules["models"], lambda name: modules[f"api.{name}"].sync
    with served(make_app(AUTH_AUTOCONFIRM="true")) as server:
        url = f"http://127.0.0.1:{server.port}"
        anyone = modules["client"].Client(base_url=url)
        sign_up = models.Signup(email=DAVE, password=PASSWORD)
        created = api("sign_in.signup")(client=anyone, body=sign_up)
        assert (type(created), type(created.id)) == (models.SignedUpUser, UUID)

        password = models.TokenGrant(email=DAVE, password=PASSWORD)
        get_tokens, grants = api("sign_in.token"), models.TokenGrantType
        tokens = get_tokens(client=anyone, body=password, grant_type=grants.PASSWORD)
        refresh = models.TokenGrant(refresh_token=tokens.refresh_token)
        refreshed = get_tokens(client=anyone, body=refresh, grant_type=grants.REFRESH_TOKEN)
        assert type(tokens) is type(refreshed) is models.UserTokens

        signed_in = modules["client"].AuthenticatedClient(base_url=url, token=refreshed.access_token)
        user = api("user.get_user")(client=signed_in)
        assert (type(user), user.id, user.email, user.phone) == (models.User, created.id, DAVE, None)
        assert (type(user.created_at), type(user.identities[0])) == (datetime, models.Identity)

        assert type(api("sessions.logout")(client=signed_in)) is models.Done
        error = api("user.get_user")(client=signed_in)
        assert (type(error), error.error_code) == (models.Error401, models.ErrorCode.SESSION_NOT_FOUND)
