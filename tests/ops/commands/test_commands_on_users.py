"""`latchkey users show`, `ban` and others: one user, as in the console."""

import csv
import json

import pytest

from tests.support.answers import assert_error
from tests.support.commands import run_command
from tests.support.factors import set_up
from tests.support.passkeys import register
from tests.support.users import sign_in

BY_ANN = {"SUDO_USER": "ann"}


@pytest.fixture
def run(app):
    def run(command, *arguments, status=0, **options):
        result = run_command(app, "users", command, *arguments, env=BY_ANN, **options)
        assert result.exit_code == status, result.output
        return result.output

    return run


def last_audit_entry(database):
    return tuple(
        database.one(
            "SELECT action, actor, details ->> 'system_user' AS system_user FROM audit_log ORDER BY at DESC, id LIMIT 1"
        )
    )


def test_user_is_shown_by_address_and_id(run, alice, client, service_role):
    lines = run("show", alice.email).splitlines()
    assert lines[0].startswith(f"user          {alice.id}, authenticated, created ")
    shown = json.loads(run("show", alice.id.upper(), "--json"))
    assert shown == client.get(f"/admin/users/{alice.id}", headers=service_role).json


@pytest.mark.parametrize("text", ["ALIC", "alice@ex", "@example.com", "+49 (170) 12", "{id}"])
def test_users_are_found_by_a_part_of_the_address_or_id(run, alice, database, text):
    database.run("UPDATE users SET phone = '+491701234567'")
    text = text.format(id=alice.id[:12])
    assert run("find", text) == f"{alice.id}  alice@example.com\n"
    assert json.loads(run("find", text, "--json"))["id"] == alice.id


@pytest.mark.parametrize("arguments", [("find", "\udcff"), ("change", "\udcff", "--role", "staff")])
def test_argument_that_is_not_text_is_refused_in_a_sentence(run, alice, arguments):
    assert "Error: " in run(*arguments, status=2 if arguments[0] == "find" else 3)


def test_users_are_found_by_a_part_of_the_name(run, alice, bob, database):
    database.run(
        """UPDATE users SET user_metadata = '{"name": "Anna Neumann"}' WHERE id = %(id)s""", id=bob.id
    )
    run("ban", bob.id)
    assert run("find", "neum") == f"{bob.id}  bob@example.com  Anna Neumann  banned\n"
    remedy = "Try the start of a name or an address."
    for text in ("nobody", "@", " "):
        assert run("find", text, status=3) == f"Error: No users match {text}. {remedy}\n"


def test_list_of_users_is_that_of_the_console_as_lines_json_and_csv(run, carol, alice, database):
    lines = [f"{user.id}  {user.email}" for user in sorted((alice, carol), key=lambda user: user.id)]
    assert run("list").splitlines() == lines
    assert [json.loads(line)["id"] for line in run("list", "--json").splitlines()] == [
        line.partition(" ")[0] for line in lines
    ]
    database.run("""UPDATE users SET user_metadata = '{"name": "A\\u001b[2J"}'""")
    rows = list(csv.DictReader(run("list", "--csv").splitlines()))
    assert [f"{row['id']}  {row['email']}" for row in rows] == lines
    assert {row["name"] for row in rows} == {"A [2J"}
    assert last_audit_entry(database) == ("users_exported", "command", "ann")


def test_emails_of_a_file_are_invited_and_refused_ones_named(run, alice, outbox, database, tmp_path):
    path = tmp_path / "team.txt"
    path.write_text("\ufeffDave@example.com\nalice@example.com; erin@example.com\n")
    lines = run("invite", str(path), status=3).splitlines()
    assert (lines[0], lines[2]) == ("dave@example.com is invited.", "erin@example.com is invited.")
    assert lines[1].startswith("alice@example.com: refused: ")
    assert outbox.kinds() == [("invite", "dave@example.com"), ("invite", "erin@example.com")]
    by_ann = "action = 'invited' AND actor = 'command' AND details ->> 'system_user' = 'ann'"
    assert database.count("audit_log", by_ann) == 2
    assert json.loads(run("invite", "dave@example.com", "--json")) == {
        "email": "dave@example.com",
        "reason": None,
    }
    assert "must be email addresses, not team" in run("invite", "team", status=2)


def test_groups_of_several_invitations_add_up(run, database):
    def groups():
        return database.value("SELECT app_metadata -> 'groups' FROM users")

    run("invite", "dave@example.com", "--groups", "staff, ops")
    assert groups() == ["staff", "ops"]
    run("invite", "dave@example.com", "--groups", "sales,ops,")
    assert sorted(groups()) == ["ops", "sales", "staff"]
    run("invite", "dave@example.com")
    assert sorted(groups()) == ["ops", "sales", "staff"]
    refused = run("invite", "dave@example.com", "--groups", f"a,{'x' * 65}", status=2)
    assert "groups: must be names of at most 64 visible characters with commas between them" in refused


def test_ban_is_permanent_unless_it_has_an_end_and_can_void_the_password_when_it_is_lifted(run, alice):
    assert json.loads(run("ban", alice.email, "--json"))["banned_until"].startswith("9999")
    assert run("unban", alice.email) == "alice@example.com is not banned.\n"
    assert alice.try_to_sign_in().status_code == 200
    run("ban", alice.email)
    run("unban", alice.email, "--void-password")
    assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")


def test_role_addresses_metadata_and_password_are_changed(run, alice, database, outbox):
    database.run(
        """UPDATE users SET role = 'staff', phone = '+491701234567', app_metadata = '{"plan": "pro"}'"""
    )
    session = alice.sign_in()
    options = ["--role", "authenticated", "--email", "Alice@example.org", "--phone", "", "--void-password"]
    metadata = '{"plan": null, "roles": ["it\'s $HOME"]}'
    changed = json.loads(run("change", alice.email, *options, "--app-metadata", metadata, "--json"))
    assert (changed["role"], changed["email"], changed["phone"]) == (
        "authenticated",
        "alice@example.org",
        None,
    )
    assert changed["email_confirmed_at"] is not None
    assert changed["app_metadata"]["roles"] == ["it's $HOME"]
    assert "plan" not in changed["app_metadata"]
    assert_error(session.get("/user"), 401, "session_not_found")
    assert_error(sign_in(alice.client, "alice@example.org"), 401, "invalid_credentials")
    assert run("change", alice.id, "--role", "authenticated") == "alice@example.org is changed.\n"


def test_void_password_gives_none_to_a_user_without_one(run, alice, database):
    session = alice.sign_in()
    database.run("UPDATE users SET password_hash = NULL")
    run("change", alice.email, "--void-password")
    assert database.value("SELECT password_hash FROM users") is None
    assert session.get("/user").status_code == 200
    assert database.count("audit_log", "action = 'password_changed'") == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "There is nothing to change. Add an option, such as --role authenticated."),
        (["--role", ""], "--role must not be empty."),
        (["--app-metadata", '{"a": "\udcff"}'], "An argument is not text in UTF-8."),
        (["--role", "admin"], "Run latchkey create-admin EMAIL instead"),
        (["--role", "a b"], "role: "),
        (["--email", "alice"], "email: "),
        (["--email", "bob@example.com"], "already"),
        (["--app-metadata", "[]"], "It must be a JSON object. Give an object such as"),
        (["--app-metadata", '{"x": "' + 9000 * "x" + '"}'], "App metadata is too large"),
        (["--app-metadata", "{"], "It must be valid JSON. Give an object such as"),
    ],
)
def test_change_that_is_wrong_is_refused_and_changes_nothing(run, alice, bob, database, options, problem):
    before = database.everything("users")
    status = 3 if problem == "already" else 2
    assert problem in " ".join(run("change", alice.email, *options, status=status).split())
    assert database.everything("users") == before


def test_unlock_lets_a_locked_user_try_again_as_explain_says(run, alice, make_app, database):
    client = make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client()
    for _ in range(11):
        sign_in(client, alice.email, "wrong")
    assert alice.try_to_sign_in(client=client).status_code == 429
    explained = run_command(client.application, "explain", alice.email).output
    assert explained.endswith("\nWhat to do:\n  latchkey users unlock alice@example.com\n")
    assert run("unlock", alice.email) == "alice@example.com can try again.\n"
    assert "has no wrong" in run("unlock", alice.email)
    assert last_audit_entry(database) == ("lock_cleared", "command", "ann")
    assert alice.try_to_sign_in(client=client).status_code == 200


def test_removal_of_factors_includes_passkeys_and_recovery_codes_and_is_notified(run, alice, database):
    _app, session = set_up(alice.open_session())
    # Releases before 0.7.0 stored names with control characters.
    database.run("UPDATE factors SET friendly_name = %(name)s", name="Pho\x1b[2Jne")
    register(session)
    session.post("/factors/recovery-codes")
    output = run("remove-factors", alice.email, status=1, input="n\n")
    assert ("Nothing was changed" in output, "\x1b" in output + run("show", alice.email)) == (True, False)
    assert database.count("factors") == 2
    assert "has no second factor" in run("remove-factors", alice.email, input="y\n")
    assert (database.count("factors"), database.count("recovery_codes")) == (0, 0)
    kinds = {row.kind for row in database.all("SELECT kind FROM outbox")}
    assert {"factor_removed", "passkey_removed"} <= kinds
    assert alice.sign_in().get("/user").json["id"] == alice.id


def test_deletion_needs_a_yes(run, alice, database):
    for answer in ("n\n", None):
        assert "Nothing was changed." in run("delete", alice.email, status=1, input=answer)
    assert database.count("users") == 1


@pytest.mark.parametrize("command", ["show", "ban", "remove-factors"])
def test_unknown_user_and_wrong_arguments_have_an_exit_status(run, app, database, command):
    for subject in ("nobody@example.com", "11111111-1111-1111-1111-111111111111", "nonsense"):
        remedy = "Find the user by: latchkey users find TEXT"
        assert (
            run(command, subject, status=3) == f"Error: No user has the address or ID {subject}. {remedy}\n"
        )
    assert "Must be a duration such as 90m, 24h or 30d, or permanent." in run(
        "ban", "a@example.com", "--for", "soon", status=2
    )


def test_explain_names_the_command_that_lifts_a_ban(run, app, alice, database):
    run("ban", alice.email)
    assert "by a command of ann\n" in run_command(app, "explain", alice.email).output
    database.run("UPDATE users SET email = '`reboot`&@example.com'")
    explained = run_command(app, "explain", alice.id).output
    assert "\n  latchkey users unban '`reboot`&@example.com'\n" in explained
