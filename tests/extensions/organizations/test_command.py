"""latchkey organizations: what operators do on the command line."""

import json

import pytest

from tests.support.commands import run_command

UNKNOWN = "3f0c5bd4-0a55-4d8e-9d92-5ddf13ed0a01"


@pytest.fixture
def run(client):
    """Run a command line, and return its lines; as JSON, its objects."""

    def run(*arguments, status=0):
        result = run_command(client.application, "organizations", *map(str, arguments))
        assert result.exit_code == status, result.output
        lines = result.stdout.splitlines()
        return [json.loads(line) for line in lines] if "--json" in arguments else lines

    return run


@pytest.fixture
def id(acme):
    return acme.rpartition("/")[2]


def role_of(database, person):
    return database.value("SELECT max(role) FROM memberships WHERE user_id = %(id)s", id=person.id)


def test_organization_is_created_with_an_owner_and_shown(run, alice, database):
    (created,) = run("create", "Acme Inc.", "--slug", "acme", "--owner", alice.email, "--json")
    assert (created["slug"], created["name"], created["requires"]) == ("acme", "Acme Inc.", {"aal": "aal1"})
    assert role_of(database, alice) == "owner"
    (organization,) = run("show", "acme", "--json")
    assert organization["id"] == created["id"]
    assert [(each["email"], each["role"]) for each in organization["members"]] == [
        ("alice@example.com", "owner")
    ]
    assert f"member: {alice.id}  alice@example.com  owner  no second factor" in run("show", created["id"])


def test_organizations_are_listed_and_searched(run, acme, database):
    database.run(
        "INSERT INTO organizations (id, slug, name)"
        " SELECT gen_random_uuid(), 'o' || n, 'Other ' || n FROM generate_series(1, 130) AS n"
    )
    assert len(run("list")) == 131
    (organization,) = run("list", "--q", "acm", "--json")
    assert (organization["slug"], organization["members"]) == ("acme", 1)
    # The former name of the option.
    assert run("list", "--search", "acm", "--json") == [organization]
    database.run("UPDATE organizations SET level = 'aal2', needs_own_provider = true")
    (line,) = run("list", "--q", "acm")
    assert line == f"{organization['id']}  acme  Acme  1 member  requires a second factor and its own sign-in"


@pytest.fixture
def others(acme, database):
    """130 members of Acme besides Alice, each with a name."""
    database.run(
        """WITH made AS (
             INSERT INTO users (email, email_proved, made_by, user_metadata, created_at)
             SELECT 'm' || n || '@example.com', true, 'administrator', jsonb_build_object('name', 'Member ' || n), now() + n * interval '1 second'
               FROM generate_series(1, 130) AS n RETURNING id, created_at
           )
           INSERT INTO memberships (user_id, organization_id, role, added_by, created_at)
           SELECT made.id, o.id, 'member', 'administrator', made.created_at FROM made CROSS JOIN organizations AS o"""
    )


def test_members_are_listed_and_searched(run, others, alice, database):
    lines = run("members", "acme")
    assert len(lines) == 131
    assert lines[0] == f"{alice.id}  alice@example.com  owner  no second factor"
    (member,) = run("members", "acme", "--q", "m77", "--json")
    assert sorted(member) == [
        "added_by", "created_at", "email", "has_second_factor", "name", "role", "user_id",
    ]  # fmt: skip
    assert (member["email"], member["name"]) == ("m77@example.com", "Member 77")
    expected = f"{member['user_id']}  m77@example.com  member  no second factor  Member 77"
    assert run("members", "acme", "--q", "member 77") == [expected]
    assert run("members", "acme", "--q", "nobody") == []
    run("members", "nowhere", status=3)


def test_show_prints_a_hundred_members_and_names_the_command_for_all(run, others):
    lines = run("show", "acme")
    assert len([line for line in lines if line.startswith("member: ")]) == 100
    assert "31 more members: latchkey organizations members acme" in lines
    (organization,) = run("show", "acme", "--json")
    assert len(organization["members"]) == 131


def test_list_says_that_members_are_counted_to_a_thousand(run, acme, database):
    database.run(
        """WITH made AS (INSERT INTO users (made_by) SELECT 'administrator' FROM generate_series(1, 1100) RETURNING id)
           INSERT INTO memberships (user_id, organization_id, role, added_by)
           SELECT made.id, o.id, 'member', 'administrator' FROM made CROSS JOIN organizations AS o"""
    )
    (line,) = run("list")
    assert line.endswith("  acme  Acme  1,000 members or more")


def test_user_who_is_no_member_is_not_looked_for_in_a_list_of_organizations(client, acme, bob):
    result = run_command(client.application, "organizations", "remove", "acme", bob.email)
    assert (result.exit_code, result.stderr.strip()) == (3, "Error: This user is not a member.")


def test_member_is_added_changed_and_removed(run, id, bob, database):
    assert run("add", "acme", bob.email) == ["bob@example.com is member of acme."]
    assert run("add", id, bob.id, "--role", "admin", "--json") == [{"user_id": bob.id, "role": "admin"}]
    assert role_of(database, bob) == "admin"
    run("remove", "acme", bob.email)
    assert role_of(database, bob) is None
    entry = database.one("SELECT actor, details FROM audit_log WHERE action = 'membership_removed'")
    assert entry.actor == "command"
    assert "system_user" in entry.details


def test_last_owner_is_removed_by_the_operator(run, id, alice, database):
    run("remove", "acme", alice.email)
    assert database.count("memberships") == 0


def test_address_is_invited(run, id, database):
    (invitation,) = run("invite", "acme", "New@Example.com", "--role", "billing", "--json")
    assert (invitation["email"], invitation["role"]) == ("new@example.com", "billing")
    assert database.count("outbox", "kind = 'organization_invitation'") == 1


def test_member_is_not_invited_again(run, id, bob, database):
    run("add", "acme", bob.email)
    run("invite", "acme", "Bob@Example.com", "--role", "admin", status=3)
    assert database.count("organization_invitations") == 0
    assert database.value("SELECT role FROM memberships WHERE user_id = %(id)s", id=bob.id) == "member"


def test_invitation_is_withdrawn_by_its_address(run, id, client, database):
    run("invite", "acme", "new@example.com")
    (invitation,) = run("withdraw", "acme", "New@Example.com", "--json")
    assert invitation["email"] == "new@example.com"
    assert database.count("organization_invitations") == 0
    result = run_command(client.application, "organizations", "withdraw", "acme", "new@example.com")
    assert (result.exit_code, result.stderr) == (
        3,
        "Error: new@example.com has no open invitation to acme.\n",
    )


def test_domain_is_taken_from_an_organization(run, id, client, database):
    database.run(
        "INSERT INTO organization_domains (organization_id, domain, token, proved_at)"
        " SELECT id, 'acme.example', 't', now() FROM organizations"
    )
    assert run("forget", "acme", "Acme.Example") == ["acme has acme.example no more."]
    assert database.count("organization_domains") == 0
    entry = database.one("SELECT action, actor FROM audit_log ORDER BY at DESC, id LIMIT 1")
    assert tuple(entry) == ("domain_lost", "command")
    assert run_command(client.application, "organizations", "forget", "acme", "acme.example").exit_code == 3


def test_requirement_is_made_and_lifted(run, id, database):
    assert "requires: a second factor" in run("require", "acme", "aal2")
    assert database.value("SELECT level FROM organizations") == "aal2"
    assert run("require", "acme", "aal1", "--json")[0]["requires"] == {"aal": "aal1"}


def test_age_of_sign_ins_is_limited_and_the_limit_lifted(run, id, database):
    assert "requires: a sign-in of the last 12 hours" in run("require", "acme", "max-age", "43200")
    assert database.value("SELECT extract(epoch FROM max_age)::int FROM organizations") == 43_200
    for wrong in (
        ["max-age"],
        ["max-age", "899"],
        ["max-age", "31536001"],
        ["aal2", "900"],
        ["any-age", "900"],
    ):
        run("require", "acme", *wrong, status=2)
    assert database.value("SELECT max_age FROM organizations") is not None
    assert run("require", "acme", "any-age", "--json")[0]["requires"] == {"aal": "aal1"}


def test_explanation_of_a_member_names_the_age(client, id, alice, database):
    database.run("UPDATE organizations SET max_age = '12 hours'")
    explained = run_command(client.application, "explain", alice.email).output
    assert "Acme asks for a sign-in of the last 12 hours, without which membership doesn’t count" in " ".join(
        explained.split()
    )


def test_organization_is_ended(run, id, database):
    assert run("end", "acme", "--yes", "--json") == [{"id": id, "slug": "acme"}]
    assert database.count("organizations", "ended_at IS NOT NULL") == 1
    run("show", "acme", status=3)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["show", "nowhere"], 3),
        (["add", "acme", "nobody@example.com"], 3),
        (["add", "acme", "bob@example.com", "--role", "Not A Role"], 2),
        (["create", "Acme", "--slug", "Not A Slug"], 2),
        (["create", "Acme", "--slug", "acme"], 3),
        (["end", "acme"], 1),
        (["import", "/dev/zero/none"], 2),
    ],
)
def test_refused_command_changes_nothing(run, id, bob, database, arguments, status):
    before = database.everything("organizations", "memberships")
    run(*arguments, status=status)
    assert database.everything("organizations", "memberships") == before


class TestTransfer:
    @pytest.fixture
    def file(self, run, acme, join, bob, mallory, owner, tmp_path):
        """A file with Acme, of Alice, Bob and Mallory."""
        join(bob, acme, "billing")
        join(mallory, acme)
        run("require", "acme", "aal2")
        file = tmp_path / "organizations.jsonl"
        (outcome,) = run("export", file, "--json")
        assert outcome == {"organizations": 1, "file": str(file)}
        return file

    def test_line_has_the_organization_and_its_members(self, file, id, alice, bob):
        assert file.stat().st_mode & 0o077 == 0
        (line,) = map(json.loads, file.read_text().splitlines())
        members = line.pop("members")
        assert line == {
            "id": id,
            "slug": "acme",
            "name": "Acme",
            "requires": {"aal": "aal2", "own_provider": False},
            "domains": [],
            "providers": [],
            "app_metadata": {},
        }
        assert {"user_id": bob.id, "email": bob.email, "role": "billing"} in members
        assert len(members) == 3

    def test_import_restores_what_was_lost_and_tells_nobody(self, run, file, id, bob, database):
        before = database.all("SELECT user_id, organization_id, role FROM memberships ORDER BY user_id")
        messages = database.count("outbox", "channel <> 'webhook'")
        database.run("DELETE FROM organizations")
        assert run("import", file)[-1] == (
            "Organizations created: 1. Members added: 3. Domains named: 0. Providers connected: 0."
            " Already existed: 0. Refused: 0."
        )
        after = database.all("SELECT user_id, organization_id, role FROM memberships ORDER BY user_id")
        assert after == before
        assert database.value("SELECT level FROM organizations") == "aal2"
        assert database.count("outbox", "channel <> 'webhook'") == messages

    def test_age_that_an_organization_requires_is_exported_and_imported(self, run, file, database):
        database.run("UPDATE organizations SET max_age = '12 hours'")
        run("export", file.with_name("aged"))
        line = json.loads(file.with_name("aged").read_text())
        assert line["requires"] == {"aal": "aal2", "own_provider": False, "max_age": 43_200}
        database.run("DELETE FROM organizations")
        run("import", file.with_name("aged"))
        assert database.value("SELECT extract(epoch FROM max_age)::int FROM organizations") == 43_200
        database.run("DELETE FROM organizations")
        file.with_name("wrong").write_text(json.dumps(line | {"requires": {"max_age": 899}}))
        run("import", file.with_name("wrong"), status=2)
        assert database.count("organizations") == 0

    def test_file_that_was_saved_on_windows_is_imported(self, run, file, database):
        database.run("DELETE FROM organizations")
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
        totals = run("import", file, "--json")[-1]
        assert totals == {"created": 1, "added": 3, "named": 0, "connected": 0, "exists": 0, "refused": 0}

    def test_import_before_that_of_the_users_names_each_organization_once(self, app, file, database):
        database.run("DELETE FROM memberships; DELETE FROM users; DELETE FROM organizations")
        result = run_command(app, "organizations", "import", str(file))
        assert result.exit_code == 3
        assert result.output == (
            "acme: created\n"
            "acme: its members are not added: there are no users yet. Import them, then run this again\n"
            "Organizations created: 1. Members added: 0. Domains named: 0. Providers connected: 0."
            " Already existed: 0. Refused: 1.\n"
        )
        assert database.count("memberships") == 0

    def test_second_import_changes_nothing(self, run, file, database, bob):
        run("add", "acme", bob.email, "--role", "admin")
        before = database.everything("organizations", "memberships")
        totals = run("import", file, "--json")[-1]
        assert totals == {"created": 0, "added": 0, "named": 0, "connected": 0, "exists": 4, "refused": 0}
        assert database.everything("organizations", "memberships") == before

    @pytest.mark.parametrize(
        "spoil",
        [
            "UPDATE users SET email = 'other@example.com' WHERE id = %(id)s",
            "UPDATE users SET email_proved = false, email_confirmed_at = NULL WHERE id = %(id)s",
            "DELETE FROM users WHERE id = %(id)s",
        ],
    )
    def test_member_whose_user_is_another_is_reported_and_not_added(self, run, file, bob, database, spoil):
        database.run("DELETE FROM organizations")
        database.run(spoil, id=bob.id)
        *outcomes, totals = run("import", file, "--json", status=3)
        assert totals == {"created": 1, "added": 2, "named": 0, "connected": 0, "exists": 0, "refused": 1}
        (refusal,) = [each for each in outcomes if each["status"] == "refused"]
        assert (refusal["user_id"], refusal["email"]) == (bob.id, bob.email)
        assert "no user has this ID and has proved this address" in refusal["reason"]
        assert role_of(database, bob) is None

    def test_short_name_of_another_organization_is_refused(self, run, file, database, alice):
        database.run("DELETE FROM organizations")
        database.run("INSERT INTO organizations (id, slug, name) VALUES (%(id)s, 'acme', 'Acme')", id=UNKNOWN)
        *outcomes, totals = run("import", file, "--json", status=3)
        assert totals == {"created": 0, "added": 0, "named": 0, "connected": 0, "exists": 0, "refused": 1}
        assert "short name" in outcomes[0]["reason"]

    @pytest.mark.parametrize("line", ["nonsense", "[]", "{}", '{"id": 1}', '{"slug": "acme", "members": 5}'])
    def test_line_that_is_no_organization_is_named(self, client, file, tmp_path, line):
        file.write_text(f"{file.read_text()}{line}\n")
        result = run_command(client.application, "organizations", "import", str(file))
        assert result.exit_code == 2
        assert f"{file}, line 2: " in result.output


def test_client_of_an_organization_is_made_shown_and_opened_to_all(client, acme):
    def run_clients(*arguments):
        result = run_command(client.application, "clients", *arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout.splitlines()[0])

    created = run_clients("create", "Wiki", "https://wiki.example.com/", "--organization", "acme")
    assert created["organization_id"] == acme.rpartition("/")[2]
    for command in (("show", created["client_id"]), ("list",)):
        client_object = run_clients(*command)
        assert (client_object["organization_id"], client_object["is_blocked"]) == (
            created["organization_id"],
            False,
        )
    assert "organization_id" not in run_clients("update", created["client_id"], "--organization", "")
