"""`latchkey restore` names what had ended after the backup. Each command that it prints ends that again."""

import ast
import inspect
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from auth.core import files
from auth.core.tokens.derived_keys import Sealer
from auth.ops.backups import comparisons
from auth.ops.backups.comparisons import Comparison
from auth.ops.connections import Unprepared, connect
from tests.source.test_remedies_of_lines import templates
from tests.support.commands import run_with_settings
from tests.support.processes import short_directory
from tests.support.users import register, sign_in
from tests.system.trials.test_backup_command import (
    IDENTITY,
    SETTINGS,
    execute,
    key_of,
    latchkey,
    restore,
    serving,
)

ON = {"AUTH_ORGANIZATIONS": "admins", "AUTH_SSO": "true", "AUTH_RATE_LIMITS_ENABLED": "false"}
FACTOR = """
INSERT INTO factors (id, user_id, factor_type, secret, verified_at)
SELECT gen_random_uuid(), id, 'totp', '', now() FROM users WHERE email = '{}@example.com'"""
UNUSED_PASSKEY = """
INSERT INTO factors (id, user_id, factor_type, credential_id, public_key, sign_count)
SELECT gen_random_uuid(), id, 'passkey', '1', '', 0 FROM users WHERE email = '{}@example.com'"""
CLIENT = """
INSERT INTO oauth_clients (name, secret_hash, token_endpoint_auth_method, redirect_uris, grant_types, allowed_roles)
VALUES ('{}', '{}', 'client_secret_basic', '{{https://app.example.com/}}', '{{authorization_code}}', '{{{}}}')"""
SEALED = {
    name: f"2f6b9a41-7c0d-4d53-9d7e-3b1f5a4c8e1{number}"
    for number, name in enumerate(
        ("off", "moved", "globex", "gone.example", "hooks.example", "fewer.example")
    )
}
PROVIDER = """
INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret, enabled)
VALUES ('{0}', '{1}', '{1}', 'https://{1}.example', 'c', sealed({0}), true)"""
# As a customer may name it.
HOSTILE = (
    "moved\x1b[2J: latchkey create-admin m@example.com\n    latchkey create-admin m@example.com" + " #" * 60
)
WEBHOOK = """
INSERT INTO webhooks (id, url, events, secret)
VALUES ('{0}', 'https://{1}/secret-path', '{{user.created}}', sealed({0}))"""
DOMAIN = """
INSERT INTO organization_domains (organization_id, domain, token, proved_at)
SELECT id, 'lost.example', 't', now() FROM organizations WHERE slug = 'acme'"""
ORGANIZATION = (
    "INSERT INTO organizations (id, slug, name, level) VALUES (gen_random_uuid(), '{0}', '{0}', '{1}')"
)
MEMBER = """
INSERT INTO memberships (user_id, organization_id, role, added_by)
SELECT u.id, o.id, '{2}', 'administrator' FROM users AS u, organizations AS o
 WHERE u.email = '{0}@example.com' AND o.slug = '{1}'"""
INVITATION = """
INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)
SELECT gen_random_uuid(), id, '{}@example.com', 'member', now() + interval '7 days' FROM organizations WHERE slug = 'acme'"""
IDENTITY_AT = """
INSERT INTO identities (user_id, provider, subject, identity_data)
SELECT id, 'google', '1', '{{}}' FROM users WHERE email = '{}@example.com'"""
API_KEY = """
INSERT INTO api_keys (id, user_id, name, key_mac, scopes)
SELECT gen_random_uuid(), id, 'CI', '', '{{}}' FROM users WHERE email = '{}@example.com'"""
ADMIN_KEY = "INSERT INTO admin_keys (id, name, key_mac, scopes) VALUES (gen_random_uuid(), '{}', '', '{{users:read}}')"
OF = "(SELECT id FROM users WHERE email = '{}@example.com')"
USERS = "UPDATE users SET {} WHERE email = '{}@example.com'"
# The name, what the restore says, what exists at the backup, and the end of it after the backup.
ENDS: list[tuple[str, str, str, str]] = [
    ("ann@example.com", "was deleted", "", "DELETE FROM users WHERE email = 'ann@example.com'"),
    (
        "bea@example.com",
        "had the role authenticated",
        USERS.format("role = 'admin'", "bea"),
        USERS.format("role = 'authenticated'", "bea"),
    ),
    (
        "cem@example.com",
        "had the email cem@example.org",
        "",
        USERS.format("email = 'cem@example.org'", "cem"),
    ),
    (
        "dan@example.com",
        "had no phone",
        USERS.format("phone = '+491701234567', phone_confirmed_at = now()", "dan"),
        USERS.format("phone = NULL, phone_confirmed_at = NULL", "dan"),
    ),
    (
        "eva@example.com",
        "had other app metadata",
        USERS.format("""app_metadata = '{"roles": ["it''s $HOME"], "plan": "pro"}'""", "eva"),
        USERS.format("""app_metadata = '{"plan": "it''s $HOME"}'""", "eva"),
    ),
    (
        "eli@example.com",
        "had other app metadata",
        USERS.format("""app_metadata = '{"level": true}'""", "eli"),
        USERS.format("""app_metadata = '{"level": 1}'""", "eli"),
    ),
    (
        "abe@example.com",
        "was deleted",
        USERS.format(
            "made_by = 'import', email_confirmed_at = NULL, email_proved = false, last_sign_in_at = NULL",
            "abe",
        ),
        "DELETE FROM users WHERE email = 'abe@example.com'",
    ),
    (
        "dee@example.com",
        "had no email",
        "",
        USERS.format("email = NULL, phone = '+491701234568', phone_confirmed_at = now()", "dee"),
    ),
    ("fay@example.com", "had another password", "", USERS.format("password_set_at = now()", "fay")),
    ("gil@example.com", "had a second factor, which is lost", "", FACTOR.format("gil")),
    (
        "hal@example.com",
        "had removed a factor or passkey",
        FACTOR.format("hal"),
        f"DELETE FROM factors WHERE user_id = {OF.format('hal')}",
    ),
    (
        "hap@example.com",
        "had removed a factor or passkey",
        UNUSED_PASSKEY.format("hap"),
        f"DELETE FROM factors WHERE user_id = {OF.format('hap')}",
    ),
    (
        "ida@example.com",
        "had disconnected google",
        IDENTITY_AT.format("ida"),
        "DELETE FROM identities WHERE provider = 'google'",
    ),
    ("jan@example.com", "was banned", "", USERS.format("banned_until = 'infinity'", "jan")),
    ("kai@example.com", "was banned", "", USERS.format("banned_until = now() + interval '9 days'", "kai")),
    (
        "lea@example.com",
        "had ended sessions",
        "",
        f"UPDATE sessions SET ended_at = now(), end_reason = 'logout' WHERE user_id = {OF.format('lea')}",
    ),
    (
        "mia@example.com",
        "had ended API keys, or applications’ access",
        API_KEY.format("mia"),
        "DELETE FROM api_keys",
    ),
    (
        "nia@example.com in acme",
        "is member",
        MEMBER.format("nia", "acme", "member"),
        f"DELETE FROM memberships WHERE user_id = {OF.format('nia')}",
    ),
    (
        "ole@example.com in acme",
        "was member",
        MEMBER.format("ole", "acme", "admin"),
        "UPDATE memberships SET role = 'member' WHERE role = 'admin'",
    ),
    (
        "pia@example.com to acme",
        "is invited",
        INVITATION.format("pia"),
        "DELETE FROM organization_invitations",
    ),
    (
        "-pia@example.com to acme",
        "is invited",
        INVITATION.format("-pia"),
        "DELETE FROM organization_invitations",
    ),
    (
        "globex",
        "had ended",
        ";".join(
            (
                ORGANIZATION.format("globex", "aal1"),
                MEMBER.format("nia", "globex", "owner"),
                # What ends with it is not named again.
                INVITATION.format("pia").replace("acme", "globex"),
                DOMAIN.replace("acme", "globex").replace("lost", "globex"),
                PROVIDER.format(SEALED["globex"], "globex"),
                "UPDATE identity_providers SET enabled = false, is_on = true, disabled_at = now(), organization_id ="
                " (SELECT id FROM organizations WHERE slug = 'globex') WHERE name = 'globex'",
            )
        ),
        "UPDATE organizations SET ended_at = now() WHERE slug = 'globex'; DELETE FROM organization_invitations;"
        " DELETE FROM organization_domains WHERE domain = 'globex.example';"
        " UPDATE identity_providers SET is_on = false WHERE name = 'globex'",
    ),
    (
        "strict",
        "required a second step",
        ORGANIZATION.format("strict", "aal1"),
        "UPDATE organizations SET level = 'aal2' WHERE slug = 'strict'",
    ),
    (
        "young",
        "required a recent sign-in",
        ORGANIZATION.format("young", "aal1"),
        "UPDATE organizations SET max_age = '12 hours' WHERE slug = 'young'",
    ),
    ("lost.example of acme", "was lost", DOMAIN, "DELETE FROM organization_domains"),
    (
        "off",
        "signs users in",
        PROVIDER.format(SEALED["off"], "off"),
        "UPDATE identity_providers SET enabled = false WHERE name = 'off'",
    ),
    (
        HOSTILE,
        "had other settings",
        PROVIDER.format(SEALED["moved"], "moved")
        + f"; UPDATE identity_providers SET name = '{HOSTILE}' WHERE name = 'moved'",
        "UPDATE identity_providers SET issuer = 'https://new.example' WHERE identifier = 'moved'",
    ),
    (
        "https://gone.example",
        "gets events",
        WEBHOOK.format(SEALED["gone.example"], "gone.example"),
        "DELETE FROM webhooks WHERE url LIKE 'https://gone%'",
    ),
    (
        "https://hooks.example",
        "had another URL or fewer events",
        WEBHOOK.format(SEALED["hooks.example"], "hooks.example"),
        "UPDATE webhooks SET url = url || '/new' WHERE url LIKE 'https://hooks%'",
    ),
    (
        "https://fewer.example",
        "had another URL or fewer events",
        WEBHOOK.format(SEALED["fewer.example"], "fewer.example"),
        "UPDATE webhooks SET events = '{auth.login}' WHERE url LIKE 'https://fewer%'",
    ),
    (
        "gone",
        "is an application",
        CLIENT.format("gone", 1, ""),
        "DELETE FROM oauth_clients WHERE name = 'gone'",
    ),
    (
        "blocked",
        "was blocked",
        CLIENT.format("blocked", 2, ""),
        "UPDATE oauth_clients SET is_blocked = true WHERE name = 'blocked'",
    ),
    (
        "staff",
        "admitted other roles",
        CLIENT.format("staff", 3, ""),
        "UPDATE oauth_clients SET allowed_roles = '{ops,staff}' WHERE name = 'staff'",
    ),
    (
        "for acme",
        "admitted members of acme",
        CLIENT.format("for acme", 4, ""),
        "UPDATE oauth_clients SET is_blocked = true, admits_members = true,"
        " organization_id = (SELECT id FROM organizations WHERE slug = 'acme') WHERE name = 'for acme'",
    ),
    (
        "rotated",
        "had another secret",
        CLIENT.format("rotated", 5, ""),
        "UPDATE oauth_clients SET secret_hash = 'new', updated_at = now() WHERE name = 'rotated'",
    ),
    (
        "narrowed",
        "had other settings",
        CLIENT.format("narrowed", 6, "")
        + "; UPDATE oauth_clients SET skip_consent = true, resources = '{https://api.example}',"
        " redirect_uris = '{https://app.example.com/,https://thief.example/}' WHERE name = 'narrowed'",
        "UPDATE oauth_clients SET skip_consent = false, resources = '{}', redirect_uris = '{https://app.example.com/}'"
        " WHERE name = 'narrowed'",
    ),
    ("billing", "is an administrative key", ADMIN_KEY.format("billing"), "DELETE FROM admin_keys"),
]
# Provoked elsewhere: the first needs a provider of its own that is on, and the last is a key in use.
ELSEWHERE = {"required its own sign-in", "is an administrator", "was removed"}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with short_directory() as directory:
        files.write(directory / "identity", IDENTITY)
        yield directory


def run_as_printed(state_dir: Path, command: str) -> None:
    """Run a printed line, which may be two commands."""
    for part in command.split(" && "):
        program, *words = shlex.split(part)
        assert program == "latchkey"
        result = run_with_settings(SETTINGS | ON | {"AUTH_STATE_DIR": str(state_dir)}, *words)
        assert result.exit_code == 0, (part, result.output)


@pytest.fixture(scope="module")
def played(folder) -> SimpleNamespace:
    """A service with a backup, after which all of `ENDS` ended, and the outcome of its restore."""
    state_dir = folder / "var"
    with serving(state_dir, **ON) as client:
        for name, *_ in ENDS:
            if re.fullmatch(r"\w+@example\.com( in acme)?", name):
                register(client, key_of(state_dir), name.removesuffix(" in acme"))
        assert sign_in(client, "lea@example.com").status_code == 200
        execute(state_dir, ORGANIZATION.format("acme", "aal1"))
        sealer = Sealer(((state_dir / "secret_key").read_text().strip(),))
        for _, _, at_backup, _ in ENDS:
            for id in SEALED.values():
                at_backup = at_backup.replace(f"sealed({id})", f"'\\x{sealer.seal('secret', id).hex()}'")
            if at_backup:
                execute(state_dir, at_backup)
        result = latchkey(
            "backup", folder / "b.age", "--no-rehearsal", "--json", AUTH_STATE_DIR=str(state_dir)
        )
        assert result.returncode == 0, result.stderr
        file = Path(json.loads(result.stdout)["file"])
        for _, _, _, end in ENDS:
            execute(state_dir, end)
        run_as_printed(state_dir, "latchkey keys rotate service-role --now")
        listed = latchkey("keys", "list", "--json", AUTH_STATE_DIR=str(state_dir)).stdout.splitlines()
        keys = [key["id"] for key in map(json.loads, listed) if key["kind"] == "service-role"]
        run_as_printed(state_dir, f"latchkey keys remove {keys[-1]} --force")
    result = restore(file, state_dir, "--keep-sessions", "--json")
    assert result.returncode == 0, result.stderr
    return SimpleNamespace(file=file, state_dir=state_dir, outcome=json.loads(result.stdout))


def back(state_dir: Path) -> list[tuple[str, str]]:
    """Return what the running service has that the database from before the restore had not."""
    url = "postgresql://postgres@/{}?host=" + f"{state_dir}/postgres"
    former = "postgres_before_restore"
    with (
        closing(connect(url.format("postgres"))) as restored,
        closing(connect(url.format(former))) as replaced,
    ):
        comparison = Comparison(Unprepared(restored), Unprepared(replaced), with_sessions=True)
        return [(each.name, each.change) for each in comparison.returned()]


def test_restore_names_everything_that_had_ended(played):
    named = {(each["name"], each["change"]) for each in played.outcome["returned"]}
    assert named == {(name, change) for name, change, *_ in ENDS} | {("the service-role key", "was another")}
    assert played.outcome["compared"] is True
    assert played.outcome["admin_keys"] == ["billing"]


def test_every_sentence_of_the_comparison_is_provoked():
    """Fails for a new sentence in auth/ops/backups/comparisons.py without a row here."""
    nodes = ast.walk(ast.parse(inspect.getsource(comparisons)))
    texts = [
        text
        for node in nodes
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple)
        for text in templates(node.value.elts[0])
    ]
    provoked = ELSEWHERE | {change for _, change, *_ in ENDS}
    patterns = {text: re.escape(text).replace(r"\{\}", ".+") for text in texts}
    assert len(texts) > 20
    assert [
        text
        for text, pattern in patterns.items()
        if not any(re.fullmatch(pattern, each) for each in provoked)
    ] == []


def test_each_printed_command_ends_what_it_names(played):
    with serving(played.state_dir, **ON) as client:
        assert sorted(back(played.state_dir)) == sorted((name, change) for name, change, *_ in ENDS)
        for each in played.outcome["returned"]:
            run_as_printed(played.state_dir, each["command"])
            assert (each["name"], each["change"]) not in back(played.state_dir)
        assert back(played.state_dir) == []
        assert sign_in(client, "fay@example.com").status_code == 401
        assert sign_in(client, "jan@example.com").status_code == 403
        assert sign_in(client, "mia@example.com").status_code == 200


def test_machine_without_the_old_database_names_who_may_act_for_others(played, folder):
    state_dir = folder / "new"
    result = restore(played.file, state_dir)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[1].startswith("There was no database here to compare with: docs/backup.md says")
    named = [line.strip() for line in lines if line.startswith("  ") and not line.startswith("    ")]
    assert "bea@example.com is an administrator" in named
    assert {
        "billing is an administrative key",
        "off signs users in",
        "nia@example.com in globex is owner",
    } <= {*named}
    assert not any("ann@example.com" in each for each in named)
    (hostile,) = [each for each in named if each.startswith("moved [2J: latchkey create-admin")]
    assert hostile.endswith("… signs users in")
    assert len(hostile) < 90
    assert [each for each in lines if each.strip().startswith("latchkey create-admin")] == []
    with serving(state_dir, **ON) as client:
        for line in lines:
            if line.startswith("    "):
                run_as_printed(state_dir, line)
        state: list[Any] = execute(
            state_dir,
            "SELECT (SELECT count(*) FROM users WHERE role = 'admin'), (SELECT count(*) FROM admin_keys),"
            " (SELECT count(*) FROM oauth_clients), (SELECT count(*) FROM memberships),"
            " (SELECT count(*) FROM organization_invitations), (SELECT count(*) FROM identity_providers WHERE enabled),"
            " (SELECT count(*) FROM webhooks WHERE disabled_at IS NULL)",
        )
        assert state == [(0,) * 7]
        assert sign_in(client, "ann@example.com").status_code == 200
