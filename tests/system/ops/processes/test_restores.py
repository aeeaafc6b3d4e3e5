"""Restoring into databases next to that of the tests."""

import dataclasses
from collections import deque
from contextlib import closing
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest

from auth.core import files
from auth.core.keys.openid_keys import OpenIdKeys
from auth.core.settings import kept_secrets
from auth.ops import UnusableFile
from auth.ops.backups import age, archive, comparisons, restores, writing
from auth.ops.backups.archive import BackupError
from auth.ops.backups.restored_secrets import RestoredSecrets
from auth.ops.commands.common import progress_of
from sql import queries
from tests.support.admin_keys import make_admin_key
from tests.support.cases import cases
from tests.support.processes import wait_until

RECIPIENT, IDENTITY = age.new_identity()
ROLE = "latchkey_restore_tests"
SECRETS = {
    "secret_key": "the secret key of this machine before",
    "service_role_key": "the service role key of this machine before",
}


@pytest.fixture
def url(database, database_url):
    """An empty database, which a role with few rights owns."""
    name = f"{ROLE}_{urlsplit(database_url).path[1:]}"
    drop = 'DROP DATABASE IF EXISTS "{}" WITH (FORCE)'
    if not database.value("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        pytest.skip("NOT TESTED: the role of TEST_DATABASE_URL cannot create roles")
    database.run(f"CREATE ROLE {ROLE}")
    database.run(f"GRANT {ROLE} TO current_user")
    database.run(f'CREATE DATABASE "{name}" OWNER {ROLE}')
    yield urlsplit(database_url)._replace(path=f"/{name}").geturl()
    for suffix in ("", "_restoring", "_before_restore"):
        database.run(drop.format(name + suffix))
    database.run(f"DROP ROLE {ROLE}")


@pytest.fixture
def backup(alice, parts, database_url, tmp_path):
    settings = dataclasses.replace(parts.settings, backup_recipients=(RECIPIENT,))
    OpenIdKeys(parts.db, parts.sealer).make_first()
    for task in ("backup", "verified_backup", "counts"):
        queries.record_done(parts.db, task=task)
    progress = partial(progress_of, "Backing up")
    file, _ = writing.write(settings, database_url, tmp_path / "backup.age", None, progress)
    return file


@pytest.fixture
def restore(backup, parts, tmp_path):
    """Return a function that restores into a database, with the secrets of a state directory."""

    def restore(url):
        manifest = archive.verify(backup, IDENTITY, lambda _: None)
        settings = dataclasses.replace(parts.settings, state_dir=tmp_path / "var")
        secrets = RestoredSecrets.of_backup(settings, manifest)
        plaintext = archive.read(backup, IDENTITY, lambda _: None)
        return restores.restore(url, plaintext, secrets, restores.Options())

    return restore


@pytest.fixture
def directory(tmp_path):
    directory = tmp_path / "var"
    directory.mkdir()
    for name, secret in SECRETS.items():
        files.write(directory / name, secret + "\n")
    return directory


def names_of(restored, kind):
    return {each.name for each in restored.returned if each.kind == kind}


def files_of(directory):
    return {path.name: path.read_text() for path in directory.iterdir()}


def query(url, statement):
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def test_role_without_the_right_to_create_databases_restores_into_an_empty_one(
    url, restore, directory, parts, database
):
    as_role = f"{url}{'&' if '?' in url else '?'}options=-c%20role%3D{ROLE}"
    assert restore(as_role).former is None
    assert query(url, "SELECT email FROM users") == [("alice@example.com",)]
    # Otherwise the doctor would accept the backup of another machine.
    assert query(url, "SELECT task FROM last_done ORDER BY task") == [("counts",), ("restore",)]
    assert query(url, "SELECT id FROM openid_keys") == [
        (key.kid,) for key in OpenIdKeys(parts.db, parts.sealer).all()
    ]
    assert query(url, "SELECT count(*) > 0 FROM pg_stats WHERE tablename = 'users'") == [(True,)]
    assert files_of(directory)["service_role_key"] == parts.settings.service_role_key[0] + "\n"

    # Postgres ends the backend of a closed connection a moment later.
    name = urlsplit(url).path[1:]
    clients = "SELECT count(*) FROM pg_stat_activity WHERE datname = %(name)s AND usesysid IS NOT NULL"
    wait_until(lambda: database.value(clients, name=name) == 0)
    with pytest.raises(BackupError, match="is not empty, and this role cannot replace it"):
        restore(as_role)


def test_database_in_use_is_refused(url, restore, directory):
    before = files_of(directory)
    with closing(psycopg2.connect(url)), pytest.raises(BackupError, match=r"has other connections \(1\)"):
        restore(url)
    assert files_of(directory) == before


def test_database_that_is_used_again_at_the_last_step_stays_with_its_secrets(
    url, restore, directory, database, monkeypatch
):
    monkeypatch.setattr(restores, "_check_target", lambda target: None)
    before = files_of(directory)
    with closing(psycopg2.connect(url)), pytest.raises(psycopg2.errors.ObjectInUse):
        restore(url)
    assert files_of(directory) == before
    assert query(url, "SELECT to_regclass('users')") == [(None,)]
    assert database.value("SELECT count(*) FROM pg_database WHERE datname LIKE '%%_restoring'") == 0


def test_former_keys_and_those_of_the_backup_are_accepted_until_the_databases_are_exchanged(
    url, restore, directory, parts, monkeypatch
):
    """A restore that is killed then leaves a service that starts, whichever database has the name."""
    meanwhile: dict[str, Any] = {}

    def look(*_):
        values = dict.fromkeys(("jwt_keys", "jwt_secret", "secret_key", "service_role_key"), "")
        problems = kept_secrets.add(values | {"state_dir": directory}, "refuse")
        meanwhile.update(problems=problems, **files_of(directory))

    run = restores.execute
    monkeypatch.setattr(
        restores,
        "execute",
        lambda on, text, *names: (look() if "RENAME" in text else None, run(on, text, *names)),
    )
    restore(url)
    assert meanwhile["problems"] == []
    assert meanwhile["secret_key"].strip().split(",") == [SECRETS["secret_key"], *parts.settings.secret_key]
    assert files_of(directory)["secret_key"].strip() == ",".join(parts.settings.secret_key)


def test_administrative_keys_that_work_again_are_named(request, url, directory, parts, database):
    """All keys are named if there is no former database that shows which of them have ended."""
    for name in ("billing", "support"):
        make_admin_key(parts, "users:read", name=name)
    restore = request.getfixturevalue("restore")
    assert names_of(restore(url), "admin_key") == {"billing", "support"}
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM admin_keys WHERE name = 'billing'")
    assert names_of(restore(url), "admin_key") == {"billing"}
    assert names_of(restore(url), "admin_key") == set()


def test_openid_key_that_is_back_is_named(url, restore, directory):
    restore(url)
    ((id,),) = query(url, "SELECT id FROM openid_keys")
    assert names_of(restore(url), "openid_key") == set()
    query(url, "UPDATE openid_keys SET id = 'new' RETURNING id")
    (returned,) = [each for each in restore(url).returned if each.kind == "openid_key"]
    assert (returned.id, returned.change) == (id, "was removed")
    assert returned.command == "latchkey keys rotate openid --now"


def test_user_with_the_first_id_is_compared(request, url, directory, alice, database):
    database.run(
        "INSERT INTO users (id, email, role, made_by) VALUES"
        " ('00000000-0000-0000-0000-000000000000', 'first@example.com', 'admin', 'import');"
        "INSERT INTO organizations (id, slug, name) VALUES ('00000000-0000-0000-0000-000000000000', 'acme', 'A');"
        "INSERT INTO memberships (user_id, organization_id, role, added_by) SELECT id, id, 'owner', 'founder'"
        " FROM organizations"
    )
    restore = request.getfixturevalue("restore")
    restored = restore(url)
    assert names_of(restored, "membership") == {"first@example.com in acme"}
    assert names_of(restored, "user") == {"first@example.com"}


def test_users_and_memberships_are_compared_page_by_page(
    request, url, directory, alice, bob, carol, database, monkeypatch
):
    monkeypatch.setattr(comparisons, "_PAGE", 2)
    everyone = {alice.email, bob.email, carol.email}
    for slug in ("acme", "globex"):
        database.run(
            "INSERT INTO organizations (id, slug, name) VALUES (gen_random_uuid(), %(slug)s, 'A');"
            " INSERT INTO memberships (user_id, organization_id, role, added_by)"
            " SELECT u.id, o.id, 'member', 'administrator' FROM organizations AS o, users AS u WHERE slug = %(slug)s",
            slug=slug,
        )
    restore = request.getfixturevalue("restore")
    memberships = {f"{email} in {slug}" for email in everyone for slug in ("acme", "globex")}
    assert names_of(restore(url), "membership") == memberships
    assert restore(url).returned == []
    query(url, "DELETE FROM memberships RETURNING role")
    assert names_of(restore(url), "membership") == memberships
    query(url, "DELETE FROM users RETURNING id")
    restored = restore(url)
    assert (names_of(restored, "user"), names_of(restored, "membership")) == (everyone, set())


def test_memberships_that_are_back_are_named(request, url, directory, alice, bob, database):
    for slug, person in (("acme", alice), ("acme", bob), ("globex", alice)):
        database.run(
            "INSERT INTO organizations (id, slug, name) VALUES (gen_random_uuid(), %(slug)s, 'A') ON CONFLICT DO NOTHING;"
            " INSERT INTO memberships (user_id, organization_id, role, added_by)"
            " SELECT %(user_id)s, id, 'member', 'administrator' FROM organizations WHERE slug = %(slug)s",
            slug=slug, user_id=person.id,
        )  # fmt: skip
    restore = request.getfixturevalue("restore")
    all_memberships = ["alice@example.com in acme", "bob@example.com in acme", "alice@example.com in globex"]
    assert names_of(restore(url), "membership") == {*all_memberships}
    query(url, f"DELETE FROM memberships WHERE user_id = '{bob.id}' RETURNING role")
    assert names_of(restore(url), "membership") == {"bob@example.com in acme"}


@pytest.mark.parametrize(
    "damage",
    [
        "ALTER TABLE users DROP COLUMN app_metadata CASCADE",
        "DROP TABLE memberships CASCADE",
        "ALTER TABLE schema_version RENAME COLUMN version TO number",
        "ALTER TABLE schema_version OWNER TO CURRENT_USER; ALTER TABLE oauth_clients OWNER TO CURRENT_USER",
        "UPDATE schema_version SET version = 54",
    ],
)
def test_database_that_cannot_be_read_is_replaced_all_the_same(
    request, url, directory, parts, database, damage
):
    make_admin_key(parts, "users:read", name="billing")
    restore = request.getfixturevalue("restore")
    as_role = f"{url}{'&' if '?' in url else '?'}options=-c%20role%3D{ROLE}"
    database.run(f"ALTER ROLE {ROLE} CREATEDB")
    restore(as_role)
    for name, secret in SECRETS.items():
        files.write(directory / name, secret + "\n")
    query(url, f"{damage} RETURNING 1" if damage.startswith("UPDATE") else f"{damage}; SELECT 1")
    restored = restore(as_role)
    assert (restored.former, restored.is_compared) == (f"{urlsplit(url).path[1:]}_before_restore", False)
    assert names_of(restored, "admin_key") == {"billing"}
    # The files of the state directory can be compared.
    assert names_of(restored, "key") == {"the secret key", "the service-role key"}
    assert query(url, "SELECT email FROM users") == [("alice@example.com",)]


def test_undo_that_fails_can_be_repeated(url, restore, directory, parts):
    restore(url)  # an empty database is not kept
    for name, secret in SECRETS.items():
        files.write(directory / name, secret + "\n")
    restore(url)
    (directory / "restored.env").touch()
    files_before = files_of(directory)
    settings = dataclasses.replace(parts.settings, state_dir=directory)
    former_url = urlsplit(url)._replace(path=f"{urlsplit(url).path}_before_restore").geturl()
    with closing(psycopg2.connect(former_url)):
        restores.forget_former(url, settings)  # as a backup does
        with pytest.raises(psycopg2.errors.ObjectInUse):
            restores.undo(url, settings)
    assert files_of(directory) == files_before
    restores.undo(url, settings)
    assert files_of(directory)["secret_key"].strip() == SECRETS["secret_key"]
    assert not (directory / "restored.env").exists()


@cases(
    ("beginning", "reason"),
    [
        ("", "backslash commands are restricted"),
        ("\\unrestrict known\n", "wrong key"),
        ("\\restrict known\nSELECT 1;\n\\unrestrict known\n", "wrong key"),
    ],
)
def test_commands_of_the_shell_in_a_dump_are_not_run(url, backup, tmp_path, beginning, reason):
    manifest = archive.verify(backup, IDENTITY, lambda _: None)
    dump = f"{beginning}\\! touch {tmp_path}/ran\n"
    plain = archive.plaintext(manifest, [dump.encode()], lambda _: None)
    with pytest.raises(BackupError, match=reason):
        restores.fill(url, *archive.parse(plain), restores.Options())
    assert not (tmp_path / "ran").exists()


def test_sql_is_decompressed_in_small_pieces_and_ends_where_the_file_does(backup):
    manifest = archive.verify(backup, IDENTITY, lambda _: None)
    plaintext = b"".join(archive.plaintext(manifest, [b"-" * 30_000_000], lambda _: None))
    lengths = [*map(len, archive.parse([plaintext])[1])]
    assert (sum(lengths), max(lengths) < 2_000_000) == (30_000_000, True)
    for changed_text in (plaintext + b"more", plaintext[:-9]):
        with pytest.raises(UnusableFile, match="cannot be decompressed"):
            deque(archive.parse([changed_text])[1], maxlen=0)
