"""docs/organizations.md: its policies check each row by the claims of members' tokens."""

import json
import re
from contextlib import closing

import psycopg2
import psycopg2.errors
import pytest

from tests.support.processes import CHECKOUT
from tests.system.examples.test_roles_page import block

PAGE = (CHECKOUT / "docs/organizations.md").read_text()
(POLICIES,) = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def api(new_database):
    """A connection of the API to a database with the policies of both pages."""
    url = new_database()
    with closing(psycopg2.connect(url)) as owner, closing(psycopg2.connect(url)) as api:
        with owner, owner.cursor() as cursor:
            cursor.execute(block("CREATE POLICY"))
            cursor.execute(POLICIES)
        with api, api.cursor() as cursor:
            cursor.execute("SET ROLE api")
        yield api
        api.close()
        with owner, owner.cursor() as cursor:
            cursor.execute("DROP OWNED BY api; DROP ROLE api")


def test_policies_of_the_page_show_members_the_projects_of_their_organizations(api, make_app, alice, bob):
    client = make_app(AUTH_ORGANIZATIONS="users").test_client()
    owner = alice.open_session(client)
    ids = [owner.post("/organizations", json={"name": name}).json["id"] for name in ("Acme", "Globex")]
    invitation = owner.post(
        f"/organizations/{ids[0]}/invitations", json={"email": bob.email, "role": "member"}
    )
    member = bob.open_session(client)
    assert member.post(f"/user/invitations/{invitation.json['id']}").status_code == 200

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
    assert run(member, select) == [(ids[0],)]
    assert run(member, "DELETE FROM projects") == 0
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        run(member, "INSERT INTO projects VALUES (%s, 'Evil')", ids[0])
    assert run(owner, "DELETE FROM projects") == 2
