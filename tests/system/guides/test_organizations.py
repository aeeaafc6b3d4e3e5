"""docs/organizations.md: a developer's organization, from the founder to policies that check its members.

Its part for React is played by tests/system/trials/test_guides_of_frameworks.py.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import jwt
import psycopg2.errors
import pytest

from tests.support.browser import Browser, fill
from tests.support.commands import run_command
from tests.support.guides import Guide
from tests.support.openid_flow import make_application
from tests.support.pages import Visitor
from tests.support.processes import CHECKOUT, Service, wait_until
from tests.support.terminals import Terminal, beside_a_service
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

GUIDE = Guide("organizations.md")
ROLES = Guide("roles.md")
SETTINGS = GUIDE.block("AUTH_ORGANIZATIONS=users")


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Terminal, Service]]:
    with beside_a_service([SETTINGS.text]) as (terminal, service):
        yield terminal, service


def test_developer_founds_an_organization_invites_and_gives_a_role(running, page):
    terminal, service = running
    users, found, members = GUIDE.block("log_in()"), GUIDE.block("/invitations"), GUIDE.block("?q=hal")
    script = "\n".join([users.text, found.text, 'echo "Joined?"; read -r', members.text])
    with terminal.run(script) as shell:
        join(page, service)
        output, _ = shell.communicate("yes\n", timeout=120)
    lines = output.splitlines()
    place = lines.index("Joined?")
    founded, invitation = map(json.loads, lines[place - 2 : place])
    assert (founded["slug"], invitation["email"]) == ("globex", "hal@globex.example")
    listed, changed, own = map(json.loads, lines[place + 1 : place + 4])
    (hal,) = listed["data"]
    assert (hal["email"], hal["role"]) == ("hal@globex.example", "member")
    assert changed == {"user_id": hal["user_id"], "role": "admin"}
    shown = json.loads(GUIDE.block('"pagination"').text)
    assert own == shown | {"data": [shown["data"][0] | {"id": founded["id"]}]}
    check_tokens(service, founded["id"])
    check_team_menu(page, terminal)
    command = GUIDE.command("organizations members").replace(" acme ", " globex ")
    assert re.findall(r"\S+@globex\.example", terminal.finish(command)) == []
    assert "hal@globex.example  admin" in terminal.finish(command.replace("smi", "hal"))


def join(page: Browser, service: Service) -> None:
    """Open the invitation that the service prints, as Hal, and press Join."""
    pattern = re.compile(r"^http://localhost:\d+/organizations/globex/join$", re.MULTILINE)
    (link,) = wait_until(lambda: set(pattern.findall(service.text())))
    page.open(link)
    fill(page, email="hal@globex.example", password=PASSWORD)
    page.click("Sign in")
    page.wait_for("Join Globex as member?")
    page.click("Join")
    page.wait_for("You’re now a member of Globex")


def check_tokens(service: Service, id: str) -> None:
    """The claims of Hal's token are those of the page."""
    credentials = {"email": "hal@globex.example", "password": PASSWORD}
    url = f"http://localhost:{service.port}/token?grant_type=password"
    token = httpx.post(url, json=credentials, trust_env=False).json()["access_token"]
    claims = jwt.decode(token, options={"verify_signature": False})
    shown = json.loads(GUIDE.block('"organizations": {').text)
    assert shown.keys() <= claims.keys()
    assert (claims["organizations"], "admin") == ({id: "admin"}, next(iter(shown["organizations"].values())))


def check_team_menu(page: Browser, terminal: Terminal) -> None:
    """The link of the application leads to the organization, and back."""
    link = terminal.with_ports(GUIDE.block("?redirect_to=").text.strip())
    page.open(link)
    page.wait_for("Members")
    back = page.run("[...document.links].find((each) => each.text.startsWith('Back to ')).href")
    assert back == terminal.with_ports("http://localhost:3000/globex")


def test_parts_of_the_backend_are_those_of_the_examples():
    for block, example in (
        (GUIDE.block("HTTPException(404)"), "fastapi/api.py"),
        (GUIDE.block("hasOwn"), "express/api.mjs"),
    ):
        source = (CHECKOUT / "examples" / example).read_text()
        # The function that asks for the role, and the beginning of the one that changes something.
        parts = re.split(r"\n(?=@app|app\.)", block.text)
        assert [part for part in parts if part not in source] == [], example
        assert len(parts) == 2


def test_application_gets_the_claim_of_the_page_and_admits_members_alone(make_app, alice, database):
    client = make_app(AUTH_ORGANIZATIONS="users").test_client()
    organization = alice.open_session(client).post("/organizations", json={"name": "Acme"}).json
    application = make_application(client, database, name="Wiki")
    visitor = Visitor(client.application).with_session_of(alice)
    tokens = application.tokens(visitor, scope="openid organization")
    claims = jwt.decode(tokens["access_token"], options={"verify_signature": False})
    shown = json.loads(GUIDE.block('"organization": {').text)
    expected = {"id": organization["id"], "slug": "acme", "role": "owner"}
    assert (claims["organization"], shown["organization"].keys()) == (expected, expected.keys())
    command = GUIDE.command("clients update").replace("CLIENT_ID", application.client.id)
    assert run_as_printed(client.application, command) == 0
    assert database.value("SELECT organization_id::text FROM oauth_clients") == organization["id"]


def test_operator_lifts_the_requirement_of_a_sign_in_that_died_and_exports(
    make_app, alice, database, tmp_path, monkeypatch
):
    app = make_app(AUTH_ORGANIZATIONS="users", AUTH_SSO="true")
    alice.open_session(app.test_client()).post("/organizations", json={"name": "Acme"})
    database.run("UPDATE organizations SET needs_own_provider = true")
    assert run_as_printed(app, GUIDE.command("any-sign-in")) == 0
    assert database.value("SELECT needs_own_provider FROM organizations") is False
    monkeypatch.chdir(tmp_path)
    assert run_as_printed(app, GUIDE.command("organizations export")) == 0
    assert '"slug": "acme"' in (tmp_path / "organizations.jsonl").read_text()


def run_as_printed(app: Any, command: str) -> int:
    """Run a command of the page in this process, and return its exit status."""
    program, *arguments = command.split()
    assert program == ".venv/bin/latchkey"
    return run_command(app, *arguments).exit_code


def test_policies_show_members_the_projects_of_their_organizations(connect_as_api, make_app, alice, bob):
    api = connect_as_api(ROLES.block("CREATE ROLE api"), GUIDE.block("CREATE POLICY"))
    client = make_app(AUTH_ORGANIZATIONS="users").test_client()
    owner = alice.open_session(client)
    ids = [owner.post("/organizations", json={"name": name}).json["id"] for name in ("Acme", "Globex")]
    stranger = bob.open_session(client)
    invitation = owner.post(
        f"/organizations/{ids[0]}/invitations", json={"email": bob.email, "role": "member"}
    )

    def run(session, statement, *values):
        with api, api.cursor() as cursor:
            claims = json.dumps(session.refreshed().claims)
            cursor.execute("SELECT set_config('request.jwt.claims', %s, true)", [claims])
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else cursor.rowcount

    for id in ids:
        run(owner, "INSERT INTO projects VALUES (%s, 'Rocket')", id)
    select = "SELECT organization_id::text FROM projects ORDER BY organization_id"
    assert run(owner, select) == [(id,) for id in sorted(ids)]
    # A token without the claim.
    assert run(stranger, select) == []
    assert stranger.post(f"/user/invitations/{invitation.json['id']}").status_code == 200
    assert run(stranger, select) == [(ids[0],)]
    assert run(stranger, "DELETE FROM projects") == 0
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        run(stranger, "INSERT INTO projects VALUES (%s, 'Evil')", ids[0])
    assert run(owner, "DELETE FROM projects") == 2
