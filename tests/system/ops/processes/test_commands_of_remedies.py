"""What the doctor prints to paste is run as it is printed, with the operator's words in place of EMAIL, NAME and FILE."""

import dataclasses
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator

import pytest

from auth.core.checks import Check
from auth.core.keys.openid_keys import OpenIdKeys
from auth.core.tokens.derived_keys import Sealer
from auth.ops.doctor import delivery, examination, secrets
from auth.ops.doctor.examination import examine
from auth.ops.processes import start_checks
from tests.support.admin_keys import make_admin_key
from tests.support.commands import run_with_settings, start_process
from tests.support.http_target import HttpTarget
from tests.support.processes import wait_until

LOST_SEALER = Sealer(("a secret key that is lost",))
PROVIDER_ID = "2f6b9a41-7c0d-4d53-9d7e-3b1f5a4c8e10"
PROVIDER = f"""
INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret, enabled)
VALUES ('{PROVIDER_ID}', 'acme', 'Acme', %(issuer)s, 'c', %(secret)s, true)"""
PUBLIC = {"base_url": "https://auth.example.com", "site_url": "https://auth.example.com"}


@pytest.fixture
def paste(environment) -> Callable[..., None]:
    """Return a function that runs the commands of a remedy, in order, as at a terminal where the operator answers y."""

    def paste(remedy: str, **words: str) -> None:
        commands = re.findall(r"latchkey [^:,]+?(?= and,|\. Run|[,:]|$)", remedy)
        assert commands, remedy
        for command in commands:
            for name, word in words.items():
                command = command.replace(name, word)
            result = run_with_settings(environment, *shlex.split(command)[1:], input="y\n")
            assert result.exit_code == 0, (command, result.output)

    return paste


def test_administrator_is_made(look, paste, alice, database):
    database.run("UPDATE users SET banned_until = 'infinity' WHERE role = 'admin'")
    remedy = look("administrators")
    assert remedy == "Run: latchkey create-admin EMAIL"
    paste(remedy, EMAIL=alice.email)
    assert look("administrators") is None


def test_unused_administrative_key_is_ended(look, paste, parts, database):
    make_admin_key(parts, "users:read")
    database.run("UPDATE admin_keys SET created_at = now() - interval '91 days'")
    paste(look("admin-keys"), NAME="billing")
    assert look("admin-keys") is None
    assert database.count("admin_keys") == 0


@pytest.fixture
def deliverer(environment) -> Iterator[None]:
    """A delivery process, which takes what a command writes."""
    process = start_process(environment, "deliver")
    yield
    process.terminate()
    process.communicate()


@pytest.mark.usefixtures("deliverer")
def test_webhook_is_tried_and_enabled(look, paste, hooks, database, target):
    hooks.register(f"{target.url}/hook")
    database.run("UPDATE webhooks SET failing_since = now() - interval '2 days'")
    paste(look("webhooks"))
    assert len(target.requests) == 1
    database.run("UPDATE webhooks SET disabled_at = now(), disabled_reason = 'failing'")
    paste(look("webhooks"))
    assert look("webhooks") is None


def test_delivery_process_is_run(look, environment, database):
    database.run("DELETE FROM last_done WHERE task = 'delivery'")
    remedy = look("delivery", deliver=False)
    command = remedy.partition("or run: ")[2]
    assert command == "latchkey deliver"
    process = start_process(environment, *command.split()[1:])
    try:
        wait_until(lambda: look("delivery", deliver=False) is None, 60)
    finally:
        process.terminate()
        process.communicate()


def test_openid_key_of_a_lost_secret_is_replaced(look, paste, parts, database, no_openid_keys):
    OpenIdKeys(parts.db, LOST_SEALER).make_first()
    rotate, remove = look("keys").split(" and, a minute later: ")
    paste(rotate)
    database.run("UPDATE openid_keys SET active_from = active_from - interval '1 hour'")
    paste(f"Run: {remove}")
    assert look("keys") is None


def test_secret_of_a_provider_that_no_key_opens_is_set_again(look, paste, database, tmp_path):
    sealed = LOST_SEALER.seal("secret", PROVIDER_ID)
    database.run(PROVIDER, issuer="https://idp.acme.example", secret=sealed)
    (tmp_path / "secret").write_text("a new secret\n")
    (tmp_path / "secret").chmod(0o600)
    remedy = look("keys")
    assert remedy == f"Run: latchkey providers change {PROVIDER_ID} --secret-file FILE"
    paste(remedy, FILE=str(tmp_path / "secret"))
    assert look("keys") is None


def test_secret_of_a_webhook_that_no_key_opens_is_replaced_or_goes(
    look, hooks, database, client, service_role
):
    webhook = hooks.register("http://127.0.0.1:9/")
    lost = LOST_SEALER.seal("secret", webhook["id"])
    for method, body in (("PUT", {"rotate_secret": True}), ("DELETE", {})):
        database.run("UPDATE webhooks SET secret = %(lost)s", lost=lost)
        assert look("keys") == "Give the webhook a new secret in the console, or delete it."
        path = f"/admin/webhooks/{webhook['id']}"
        assert client.open(path, method=method, json=body, headers=service_role).status_code == 200
        assert look("keys") is None


def test_provider_of_this_machine_is_deleted_after_its_requirement_is_lifted(look, paste, parts, database):
    database.run(
        "INSERT INTO organizations (id, slug, name, needs_own_provider)"
        " VALUES (gen_random_uuid(), 'acme', 'Acme', true)"
    )
    database.run(PROVIDER, issuer="http://127.0.0.1:9000", secret=parts.sealer.seal("secret", PROVIDER_ID))
    database.run(
        "UPDATE identity_providers SET organization_id = (SELECT id FROM organizations), enabled = false, is_on = true"
    )
    remedy = look("providers", **PUBLIC)
    lift = "Run: latchkey organizations require acme any-sign-in. "
    assert remedy == f"{lift}Run: latchkey providers delete {PROVIDER_ID}"
    paste(remedy)
    assert look("providers", **PUBLIC) is None
    assert database.count("organizations", "NOT needs_own_provider") == 1


def test_url_of_another_database_is_corrected(look, base_url):
    with HttpTarget() as other:
        remedy = "Set AUTH_BASE_URL to the URL of this service, or DATABASE_URL to the database of that one."
        assert look("proxies", base_url=other.url) == remedy
    assert look("proxies", base_url=base_url) is None


def test_check_with_an_error_is_skipped_by_the_printed_option(healthy, monkeypatch):
    def look(_context: object) -> None:
        raise ValueError("a mistake")

    monkeypatch.setattr(examination, "CHECKS", (Check("disk", "The disk has free space", look),))
    (result,) = examine(healthy)
    remedy = "Report this error to the maintainers. Until it is mended: latchkey doctor --skip disk"
    assert result.remedy == remedy
    assert examine(healthy, skip=[remedy.split()[-1]]) == []


def test_directory_of_another_user_is_named(look, tmp_path, monkeypatch):
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", refuse)
        remedy = f"Run this as the user of the service, which must own {tmp_path}."
        assert look("disk", state_dir=tmp_path) == remedy
    monkeypatch.setattr(secrets, "LEAST_FREE", 0)
    assert look("disk", state_dir=tmp_path) is None


def test_schema_from_before_the_oldest_release_is_not_migrated(look, new_database, environment):
    url = new_database(
        "CREATE TABLE schema_version (version integer, usable_from integer, functions_digest text);"
        " INSERT INTO schema_version VALUES (40)"
    )
    assert look("schema", database_url=url) == "Install 0.7.1 first, as docs/deployment.md says."
    result = run_with_settings(environment | {"DATABASE_URL": url}, "migrate")
    assert result.exit_code == 1
    assert "Upgrade it to 0.7.1" in result.output


def test_node_with_one_worker_is_not_told_to_use_one_worker(look, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(start_checks, "SIZE", 1000)
        remedy = "Raise the limit of Postgres, of the role or of the database, or use PgBouncer."
        assert look("connections", workers=1) == remedy
        assert look("connections", workers=2) == remedy
    assert look("connections", workers=1) is None


def test_backup_from_before_a_restore_is_not_called_missing(healthy, database):
    database.run(
        "DELETE FROM last_done WHERE task = 'backup'; INSERT INTO last_done (task) VALUES ('restore')"
    )
    skip = {check.name for check in examination.CHECKS} - {"backup"}
    (result,) = examine(dataclasses.replace(healthy, **PUBLIC), skip)
    assert re.fullmatch(r"No backup has been made since the restore \d+ s ago\.", result.text)
    database.run("INSERT INTO last_done (task) VALUES ('backup')")
    (result,) = examine(dataclasses.replace(healthy, **PUBLIC), skip)
    assert (result.status, result.text) == ("ok", delivery.CHECKS[-1].title)
