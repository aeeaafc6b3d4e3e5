"""Backups name the oldest version of the schema whose releases can use them, whichever releases the database had."""

import pytest

from sql import DIRECTORY, load_statements, schema
from tests.support import oldest_release, previous_release
from tests.support.databases import run
from tests.system.sql.test_upgrades import COMMITS, OLDER

# The version that a backup by the last release of each way names.
WAYS = {("0.7.0",): 55, ("0.6.1", "0.7.0"): 55, ("0.6.1", "0.7.1"): 61}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files of each release."""
    return {
        name: oldest_release.unpack(tmp_path_factory.mktemp("release"), commit)
        for name, commit in (OLDER | COMMITS).items()
    }


def version_in_backup(release, url):
    """Return the version that a backup by the statement of a release names."""
    ((_snapshot, _created_at, version, *_),) = run(
        url, load_statements(release / "sql")["export_snapshot"].direct
    )
    return version


@pytest.mark.parametrize("way", WAYS, ids=" to ".join)
def test_release_before_can_restore_what_is_backed_up_after_an_upgrade(way, files, new_database, tmp_path):
    url = new_database()
    for name in way:
        oldest_release.migrate(files[name], url, tmp_path)
    ours, theirs = DIRECTORY.parent, files[previous_release.NAME]
    assert version_in_backup(ours, url) == WAYS[way]
    schema.apply(url)
    assert run(url, "SELECT version FROM schema_version WHERE usable_from IS NULL AND version > 55") == []
    assert version_in_backup(ours, url) == version_in_backup(theirs, url) == schema.usable_from()
    newest = max(int(path.name[:4]) for path in (theirs / "sql" / "migrations").glob("*.sql"))
    assert schema.usable_from() <= newest
