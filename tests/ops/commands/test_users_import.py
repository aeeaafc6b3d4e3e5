"""`latchkey users import`: the users that it creates, refuses or does not change."""

import json
import random

import bcrypt
import pytest

from tests.support.answers import assert_error
from tests.support.commands import SYSTEM_USER, run_command
from tests.support.users import DAVE, PASSWORD, sign_in

WEAK = bcrypt.hashpw(b"weak", bcrypt.gensalt(4)).decode()
GOOGLE = {"provider": "google", "subject": "12"}
# Longer than an entry of an index of Postgres, of characters that it cannot compress.
INCOMPRESSIBLE = "".join(map(chr, random.Random(1).choices(range(0x4E00, 0x9F00), k=2048)))
SUMMARY = "Users {}: {}. Already existed: {}. Rows refused: {}.\n"


def nested_line(member, depth):
    """Return a line of a user with an object in which lists are nested to a depth."""
    return f'{{"email": "dave@example.com", "{member}": {{"a": {"[" * depth}{"]" * depth}}}}}\n'


@pytest.fixture
def import_users(app, tmp_path):
    def run(*rows, options=(), on=app):
        path = tmp_path / "users.jsonl"
        path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
        return run_command(on, "users", "import", str(path), *options)

    return run


def outcomes(result):
    return [json.loads(line) for line in result.output.splitlines()]


class TestCreation:
    def test_user_signs_in_with_a_password_that_the_policy_would_refuse(self, import_users, client):
        row = {"email": "dave@example.com", "email_verified": True, "password_hash": WEAK}
        result = import_users(row)
        assert (result.exit_code, result.output) == (0, SUMMARY.format("created", 1, 0, 0))
        assert sign_in(client, "dave@example.com", "weak").status_code == 200
        assert_error(sign_in(client, "dave@example.com", "Weak"), 401, "invalid_credentials")

    def test_creation_is_audited_sends_nothing_and_takes_over_id_and_times(
        self, import_users, service_role, client, database
    ):
        times = {
            "email_confirmed_at": "2020-01-02T01:04:05.000000Z",
            "created_at": "2019-01-02T03:04:05.000000Z",
            "last_sign_in_at": "2021-01-02T03:04:05.000000Z",
            "banned_until": "2999-01-02T03:04:05.000000Z",
        }
        row = {"id": "11111111-2222-4333-8444-555555555555", "email": "Dave@Example.com"} | times
        row["email_confirmed_at"] = "2020-01-02T03:04:05+02:00"
        import_users(row | {"user_metadata": {"name": "Dave", "empty": None}})
        user = client.get(f"/admin/users/{row['id']}", headers=service_role).json
        expected = times | {"email": "dave@example.com", "user_metadata": {"name": "Dave"}}
        assert {name: user[name] for name in expected} == expected
        assert [each["provider"] for each in user["identities"]] == ["email"]
        entry = database.one("SELECT action, actor, user_id, details FROM audit_log")
        details = {"count": 1, "administrators": 0, "system_user": SYSTEM_USER}
        assert entry == ("users_imported", "command", None, details)
        assert database.count("outbox") == 0

    def test_many_batches_are_imported(self, import_users, database):
        rows = [{"email": f"user{number}@example.com"} for number in range(1201)]
        assert import_users(*rows).output == SUMMARY.format("created", "1,201", 0, 0)
        assert database.count("users") == database.count("identities") == 1201
        assert import_users(*rows).output == SUMMARY.format("created", 0, "1,201", 0)
        # A command writes one entry, so that its day does not count as one with 1,201 new users.
        (entry,) = database.all("SELECT action, details FROM audit_log")
        details = {"count": 1201, "administrators": 0, "system_user": SYSTEM_USER}
        assert entry == ("users_imported", details)


@pytest.mark.parametrize(
    ("options", "row", "expected"),
    [
        ([], {}, (False, False)),
        ([], {"email_verified": True}, (True, False)),
        ([], {"email_verified": False}, (False, False)),
        (["--trust-addresses"], {}, (True, True)),
        (["--trust-addresses"], {"email_verified": True}, (True, True)),
        (["--trust-addresses"], {"email_verified": False}, (False, False)),
        (["--trust-addresses"], {"email_verified": True, "email_proved": False}, (True, False)),
    ],
)
def test_address_is_proved_only_when_trusted_and_verified(import_users, database, options, row, expected):
    import_users({"email": "dave@example.com"} | row, options=options)
    assert database.one("SELECT email_confirmed_at IS NOT NULL, email_proved FROM users") == expected


class TestExistingUsers:
    def test_second_run_changes_nothing(self, import_users, database):
        rows = [
            {"email": "dave@example.com", "password_hash": WEAK},
            {"phone": "+491701234567"},
            {"identities": [{"provider": "twitter", "subject": "12"}]},
        ]
        import_users(*rows)
        before = database.everything()
        result = import_users(*rows)
        assert (result.exit_code, result.output) == (0, SUMMARY.format("created", 0, 3, 0))
        assert database.everything() == before

    @pytest.fixture
    def linked(self, alice, database):
        """Alice, with an identity of Google."""
        database.run(
            "INSERT INTO identities (user_id, provider, subject, identity_data) VALUES (%(id)s, 'google', '12', '{\"sub\": \"12\"}')",
            id=alice.id,
        )
        return alice

    @pytest.mark.parametrize("member", ["email", "id", "identities"])
    def test_user_with_the_same_email_id_or_identity_is_unchanged(
        self, import_users, linked, database, member
    ):
        before = database.everything()
        row = {"email": DAVE, "password_hash": WEAK, "user_metadata": {"name": "Mallory"}}
        row |= {member: {"email": linked.email, "id": linked.id, "identities": [GOOGLE]}[member]}
        assert import_users(row).output == SUMMARY.format("created", 0, 1, 0)
        assert database.everything() == before
        assert linked.try_to_sign_in(PASSWORD).status_code == 200

    @pytest.mark.parametrize("member", ["email", "identities"])
    def test_user_who_signs_up_or_links_an_identity_during_the_import_is_unchanged(
        self, import_users, linked, database, monkeypatch, member
    ):
        monkeypatch.setattr("auth.ops.transfer.importing.records.keys", lambda _row: iter([]))
        before = database.everything("users", "identities")
        rows = [{"email": f"user{number}@example.com"} for number in range(5)]
        conflicting = {"email": DAVE, "password_hash": WEAK}
        conflicting |= {member: {"email": linked.email, "identities": [GOOGLE]}[member]}
        assert import_users(*rows[:2], conflicting, *rows[2:]).output == SUMMARY.format("created", 5, 1, 0)
        database.run("DELETE FROM users WHERE email LIKE 'user%%'")
        assert database.everything("users", "identities") == before


class TestRefusals:
    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ("{broken\n", "is not JSON"),
            ("[1]\n", "is not a JSON object"),
            ({}, "has no email, phone, provider identity"),
            ({"email": "dave"}, "email: must be an email address"),
            ({"email": ["dave@example.com"]}, "email: must be a string"),
            ({"email": "dave@example.com", "phone": "12"}, "phone: must be a phone number"),
            ({"email": "dave@example.com", "id": "12"}, "id: must be a UUID"),
            ({"email": "dave@example.com", "mail": "x"}, "mail: is not a known field"),
            ({"email": "dave@example.com", "created_at": "2020-01-01"}, "created_at: must be"),
            ({"email": "dave@example.com", "password_hash": "secret"}, "has no supported scheme"),
            ({"email": "dave@example.com", "password_hash": f"$2b$14${WEAK[7:]}"}, "1024.0 log-ins"),
            ({"email": "dave@example.com", "role": "service_role"}, "role: must be"),
            ({"email": "dave@example.com", "role": "admin"}, "needs --allow-admins"),
            ({"email": "dave@example.com", "user_metadata": {"a": "\x00"}}, "a null character"),
            ({"email": "dave@example.com", "user_metadata": {"a": "\ud800"}}, "not valid Unicode"),
            ({"email": "dave@example.com", "user_metadata": {"a": "x" * 8192}}, "at most 8192 bytes"),
            ({"email": "dave@example.com", "app_metadata": []}, "app_metadata: must be an object"),
            (nested_line("user_metadata", 32), "user_metadata: must not be nested deeper than 32"),
            # The parser reads values only up to a depth in this range.
            *((nested_line("user_metadata", depth), "") for depth in range(900, 1000, 10)),
            ({"email": "dave@example.com", "user_metadata": {"a": float("nan")}}, "must not contain NaN"),
            (
                {"identities": [GOOGLE | {"identity_data": {"a": "x" * 8192}}]},
                "identities.identity_data: must be at most 8192 bytes",
            ),
            ({"identities": [GOOGLE | {"identity_data": {"a": 1e999}}]}, "must not contain Infinity"),
            ({"identities": [GOOGLE | {"subject": INCOMPRESSIBLE}]}, "exceeds btree"),
            ({"identities": [{"provider": "Google!", "subject": "1"}]}, "identities.provider: must be"),
            ({"identities": [{"provider": "google"}]}, "identities.0.subject: is required"),
            ({"identities": 2 * [{"provider": "google", "subject": "1"}]}, "at most one per provider"),
            (
                {"email": "ERIN@example.com"},
                "has the same id, email, phone, identity or credential as line 1",
            ),
        ],
    )
    def test_wrong_row_is_reported_with_its_line_and_stops_nothing(self, import_users, database, row, reason):
        before, after = {"email": "erin@example.com"}, {"email": "frank@example.com"}
        result = import_users(before, "\n", row, after, options=["--json"])
        assert result.exit_code == 3
        *rows, sums = outcomes(result)
        (refused,) = [each for each in rows if each["status"] == "refused"]
        assert refused["place"] == "line 3"
        assert reason in refused["reason"]
        assert sums == {"dry_run": False, "created": 2, "exists": 0, "refused": 1}
        emails = [each.email for each in database.all("SELECT email FROM users ORDER BY email")]
        assert emails == ["erin@example.com", "frank@example.com"]

    def test_existing_user_is_reported_with_the_id(self, import_users, alice, service_role, client):
        rows = [{"email": alice.email}, {"email": "erin@example.com"}]
        dry, new, _sums = outcomes(import_users(*rows, options=["--json", "--dry-run"]))
        existing, created, _sums = outcomes(import_users(*rows, options=["--json"]))
        assert (existing["status"], existing["user_id"], dry) == ("exists", alice.id, existing)
        assert new["user_id"] is None
        response = client.get(f"/admin/users/{created['user_id']}", headers=service_role)
        assert response.json["email"] == "erin@example.com"

    @pytest.mark.parametrize("depth", [33, *range(900, 1000, 10), 100_000])
    def test_deep_value_of_csv_is_reported_with_its_line(self, app, tmp_path, database, depth):
        path = tmp_path / "users.csv"
        value = '{""a"": ' + "[" * depth + "]" * depth + "}"
        path.write_text(f'email,user_metadata\ndave@example.com,"{value}"\nerin@example.com,\n')
        result = run_command(app, "users", "import", str(path))
        refused, summary = result.output.splitlines()
        assert refused.startswith("line 2: ")
        assert "user_metadata: must" in refused
        assert f"{summary}\n" == SUMMARY.format("created", 1, 0, 1)

    def test_unprintable_reason_is_printed_without_what_a_terminal_obeys(self, import_users, database):
        row = '{"email": "dave@example.com", "\\u001b]0;owned\\u0007\\ud800": 1}\n'
        result = import_users(row, {"email": "erin@example.com"})
        assert result.output == (
            "line 1: dave@example.com: refused:  ]0;owned  : is not a known field\n"
            + SUMMARY.format("created", 1, 0, 1)
        )

    def test_rows_of_csv_are_reported_with_their_lines(self, app, tmp_path, database):
        path = tmp_path / "users.csv"
        path.write_bytes(
            b"email,email_verified,user_metadata\n"
            b"dave@example.com,true\n"
            b"erin@example.com,perhaps,\n"
            b"frank@example.com,true,{\n"
            b"grace@example.com,true,{},extra\n"
            b"h\xffidi@example.com,true,\n"
        )
        result = run_command(app, "users", "import", str(path))
        assert result.exit_code == 3
        *lines, not_text, summary = result.output.splitlines()
        assert lines == [
            "line 3: refused: email_verified: must be true or false",
            "line 4: refused: user_metadata: must be JSON",
            "line 5: refused: has more columns than the header",
        ]
        assert (not_text[:9], summary) == ("line 6: h", SUMMARY.format("created", 1, 0, 4).strip())

    def test_rows_behind_an_open_quote_are_counted(self, app, tmp_path, database):
        path = tmp_path / "users.csv"
        rows = "".join(f"user{number}@example.com,true\n" for number in range(15_000))
        path.write_text(f'email,email_verified\ndave@example.com,true\n"erin@example.com,true\n{rows}')
        result = run_command(app, "users", "import", str(path))
        assert result.exit_code == 3
        (line, _) = result.output.splitlines()
        assert line.startswith("line 3: refused: is not CSV: ")
        assert line.endswith("; a quote is open, and the next 15,000 lines were not read")
        assert database.count("users") == 1

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"\x1f\x8b\x08\x00\nnot, decompressed\n", "it is neither JSON nor CSV. "),
            (b"number,colour\n1,red\n", "it is neither JSON nor CSV. "),
            (b'{"latchkey_backup": 1}\n\x1f\x8b', "it is a backup. Use latchkey restore."),
        ],
        ids=["compressed", "another table", "backup"],
    )
    def test_file_without_users_is_refused_as_a_whole(self, app, tmp_path, content, reason):
        path = tmp_path / "file"
        path.write_bytes(content)
        result = run_command(app, "users", "import", str(path))
        assert result.exit_code == 3
        assert result.stderr.startswith(f"Error: {path} cannot be used: {reason}")
        assert result.stderr.count("\n") == 1


def test_verbose_dry_run_reports_each_row_and_changes_nothing(import_users, alice, database):
    before = database.everything()
    rows = [{"email": DAVE}, {"email": alice.email}, {"email": "erin"}, {"email": f"\x1b[2J{DAVE}"}]
    result = import_users(*rows, options=["--dry-run", "--verbose"])
    created, exists, refused, *_ = result.output.splitlines()
    reason = "a user with this id, email, phone, identity or credential already exists"
    assert (result.exit_code, created) == (3, f"line 1: {DAVE}: created")
    assert exists == f"line 2: {alice.email}: exists: {reason}"
    assert refused.startswith("line 3: erin: refused: email: must be")
    assert result.output.endswith(SUMMARY.format("that would be created", 1, 1, 2))
    assert "\x1b" not in result.output  # a control character
    assert database.everything() == before


def test_dry_run_reports_refused_rows_and_totals(import_users, alice, database):
    before = database.everything()
    rows = [{"email": DAVE}, {"email": alice.email}, {"email": "erin"}]
    refused, *rest = import_users(*rows, options=["--dry-run"]).output.splitlines()
    assert refused.startswith("line 3: erin: refused: email: must be")
    assert rest == [SUMMARY.format("that would be created", 1, 1, 1).strip()]
    assert database.everything() == before


NAMES_IN_METADATA = {
    "Name": ("Dave", "", "Dave"),
    "name ": ("Dave", '{""name"": ""David"", ""age"": 7}', "David"),
    "NAME": ("", "", None),
}


@pytest.mark.parametrize("column", list(NAMES_IN_METADATA))
def test_name_of_a_row_is_in_the_metadata_unless_that_has_one(app, tmp_path, column, database):
    name, metadata, expected = NAMES_IN_METADATA[column]
    path = tmp_path / "users.csv"
    path.write_text(f'email,{column},user_metadata\n{DAVE},{name},"{metadata}"\n')
    result = run_command(app, "users", "import", str(path))
    assert (result.exit_code, result.output) == (0, SUMMARY.format("created", 1, 0, 0))
    assert database.one("SELECT user_metadata ->> 'name', count(*) FROM users GROUP BY 1") == (expected, 1)


def test_metadata_of_a_wrong_type_is_refused_in_a_row_with_a_name(import_users, database):
    result = import_users({"email": DAVE, "name": "Dave", "user_metadata": "text"})
    assert (result.exit_code, "user_metadata: must be" in result.output, "known" in result.output) == (
        3,
        True,
        False,
    )
    assert database.count("users") == 0


SPREADSHEETS = {
    "semicolons": ("Email;Email_Verified\r\n{};TRUE\r\n", "utf-8"),
    "semicolons and a mark": ('"Email";"Email Verified"\r\n"{}";"true"\r\n', "utf-8-sig"),
    "tabs in UTF-16": ("email\temail_verified\r\n{}\ttrue\r\n", "utf-16"),
    "tabs in the other UTF-16": ("\ufeffEMAIL\tEMAIL_VERIFIED\n{}\tTrue\n", "utf-16-be"),
    "spaces after commas": ('email, email_verified, user_metadata\n{}, true, "{{""a"": 1}}"\n', "utf-8"),
    "marks around": ("email,email_verified\n\u200e{}\u00a0,true\n", "utf-8"),
}


@pytest.mark.parametrize("kind", list(SPREADSHEETS))
def test_file_of_a_spreadsheet_is_read(app, tmp_path, kind, database):
    text, encoding = SPREADSHEETS[kind]
    path = tmp_path / "users.csv"
    path.write_bytes(text.format(DAVE).encode(encoding))
    result = run_command(app, "users", "import", str(path))
    assert (result.exit_code, result.output) == (0, SUMMARY.format("created", 1, 0, 0))
    assert database.count("users", "email = %(email)s AND email_confirmed_at IS NOT NULL", email=DAVE) == 1


UNREADABLE = {
    "another separator": (b"email|role\n", "with commas, semicolons or tabs between them"),
    "UTF-16 without a mark": ("email,role\n".encode("utf-16-le"), "or as UTF-16 with a byte order mark"),
    "JSON in UTF-16": (
        '{"email": "a@example.com"}'.encode("utf-16"),
        "it is JSON in UTF-16. Use UTF-8.",
    ),
    "half a character": (b"\xff\xfee", "it begins like UTF-16, but is not. Use UTF-8."),
}


@pytest.mark.parametrize("kind", list(UNREADABLE))
def test_file_that_cannot_be_read_is_refused_with_what_to_change(app, tmp_path, kind, database):
    content, reason = UNREADABLE[kind]
    path = tmp_path / "users.csv"
    path.write_bytes(content)
    result = run_command(app, "users", "import", str(path))
    assert (result.exit_code != 0, reason in " ".join(result.output.split())) == (True, True), result.output
    assert database.count("users") == 0
