"""The systemd units, Containerfile and compose file of deploy/."""

import json
import re
import shlex
from pathlib import Path

import jsonschema
import pytest
import yaml
from click import Context

from auth.core import settings
from auth.ops.commands import main as latchkey
from tests.support.processes import CHECKOUT

DEPLOY = CHECKOUT / "deploy"
UNITS = sorted(path.name for path in DEPLOY.glob("latchkey*.service"))
# Installed by Debian's docker-compose.
SCHEMA = Path("/usr/lib/python3/dist-packages/compose/config/compose_spec.json")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SETTINGS = f"deploy/{COMPOSE['services']['latchkey']['env_file']}"


@pytest.mark.parametrize("name", UNITS)
def test_unit_runs_a_command_that_exists(name):
    commands = re.findall(
        r"^ExecStart=/opt/latchkey/current/bin/latchkey (.+)$", (DEPLOY / name).read_text(), re.M
    )
    assert commands
    for command in commands:
        assert shlex.split(command)[0] in latchkey.list_commands(Context(latchkey))


def test_compose_file_follows_the_specification():
    if not SCHEMA.exists():
        pytest.skip(
            "DEPLOY/COMPOSE.YAML IS NOT CHECKED: there is no schema; apt-get install docker-compose brings it"
        )
    jsonschema.Draft7Validator(json.loads(SCHEMA.read_text())).validate(COMPOSE)


def test_compose_file_uses_what_exists():
    service, proxy = COMPOSE["services"]["latchkey"], COMPOSE["services"]["caddy"]
    context = (DEPLOY / service["build"]["context"]).resolve()
    assert (context / service["build"]["dockerfile"]).is_file()
    assert set(service["environment"]) <= set(settings.names())
    sources = {volume.split(":")[0] for each in (service, proxy) for volume in each["volumes"]}
    assert {name for name in sources if "/" not in name} == set(COMPOSE["volumes"])
    assert all((DEPLOY / name).is_file() for name in sources if "/" in name)
    caddyfile = (DEPLOY / "Caddyfile").read_text()
    assert all(f"{{${name}:" in caddyfile for name in proxy["environment"])
    # The service itself must not be reachable past the proxy.
    assert "ports" not in service


def test_settings_of_the_containers_are_not_committed():
    assert f"/{SETTINGS}" in (CHECKOUT / ".gitignore").read_text().splitlines()


def test_image_has_neither_secrets_nor_state_of_the_checkout():
    container_ignored = (CHECKOUT / ".containerignore").read_text().splitlines()
    git_ignored = (CHECKOUT / ".gitignore").read_text().splitlines()
    patterns = {each.strip("/") if each[0] == "/" else f"**/{each.strip('/')}" for each in git_ignored}
    assert {".git", ".env", ".venv", "var", SETTINGS} <= set(container_ignored)
    # Linters and tests write to the others during a build.
    assert {each for each in patterns if not each.startswith("tests/")} - set(container_ignored) == set()
    assert (CHECKOUT / ".dockerignore").read_text().splitlines() == container_ignored
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    assert lines.index("USER latchkey") < lines.index('CMD ["serve"]')
