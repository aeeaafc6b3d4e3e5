"""Files that are replaced as a whole."""

import os
import stat
from pathlib import Path

import pytest

from auth.core import files


def test_failure_leaves_the_previous_file_and_success_a_private_one(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    path.chmod(0o644)
    with pytest.raises(StopIteration), files.replacing(path) as draft:
        draft.write(b"half" + next(iter([])))
    assert (path.read_text(), os.listdir(tmp_path)) == ("before", ["file"])
    # Only its owner can read its new content.
    with files.replacing(path) as draft:
        draft.write(b"secret")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("secret", 0o600)


@pytest.mark.root
def test_written_file_keeps_its_owner_and_mode_and_a_new_one_is_private(tmp_path):
    path, new = tmp_path / "file", tmp_path / "new"
    path.write_text("before")
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 65_534, 65_534)
    before = path.stat()
    for each in (path, new):
        files.write(each, "after")
    after = path.stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)
    assert (path.read_text(), stat.S_IMODE(new.stat().st_mode)) == ("after", 0o600)


@pytest.mark.parametrize(
    ("mode", "is_exposed"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True)]
)
def test_secret_that_others_have_access_to_is_exposed_unless_a_container_mounts_it(
    tmp_path, monkeypatch, mode, is_exposed
):
    path = tmp_path / "secret"
    path.touch()
    path.chmod(mode)
    problem = f"group or others have access to it (mode {mode:o}): chmod 600 {path}"
    assert files.exposure(path) == (problem if is_exposed else None)
    assert files.exposure(Path(os.devnull)) is None
    monkeypatch.setattr(files, "_MOUNTED_SECRETS", tmp_path.resolve())
    assert files.exposure(path) is None


@pytest.mark.parametrize(
    ("mode", "supplementary", "primary", "is_exposed"),
    [
        (0o660, True, False, False),
        (0o640, True, False, False),
        (0o664, True, False, True),
        (0o670, True, False, True),
        (0o660, False, False, True),
        (0o660, True, True, True),
        (0o640, False, True, True),
    ],
)
def test_group_may_read_a_secret_if_it_is_a_supplementary_one_as_that_of_a_pod(
    tmp_path, monkeypatch, mode, supplementary, primary, is_exposed
):
    path = tmp_path / "secret"
    path.touch()
    path.chmod(mode)
    group = path.stat().st_gid
    monkeypatch.setattr(os, "getgroups", lambda: [4000, group] if supplementary else [4000])
    monkeypatch.setattr(os, "getegid", lambda: group if primary else 4000)
    assert (files.exposure(path) is not None, files.is_shared(path.stat())) == (is_exposed, not is_exposed)


def test_drafts_of_killed_processes_are_removed_and_those_in_progress_stay(tmp_path):
    old, fresh, foreign = ".users.a1.latchkey-draft", ".users.b2.latchkey-draft", ".users.c3.draft"
    for name in (old, fresh, foreign):
        (tmp_path / name).write_text("half")
        if name != fresh:
            os.utime(tmp_path / name, (0, 0))
    files.write(tmp_path / "users", "all")
    assert sorted(os.listdir(tmp_path)) == [fresh, foreign, "users"]
