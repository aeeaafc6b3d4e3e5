"""The account of the embedded Postgres, which refuses to run as root, if the service runs as root."""

import os
import pwd
import stat
from contextlib import suppress
from pathlib import Path


def choose_account(data: Path) -> pwd.struct_passwd:
    """Return the owner of the data. Data of root, or missing data, gets `postgres` or `nobody` as owner."""
    with suppress(FileNotFoundError, KeyError):
        owner = pwd.getpwuid(data.stat().st_uid)
        if owner.pw_uid != 0:
            return owner
    try:
        account = pwd.getpwnam("postgres")
    except KeyError:
        account = pwd.getpwnam("nobody")
    if data.exists():  # root has restored a backup
        for path in (data, *data.rglob("*")):
            os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    return account


def open_parents(path: Path, account: pwd.struct_passwd) -> list[Path]:
    """Let the account pass through the directories above a path (o+x), and return the changed ones."""
    passable = []
    for directory in reversed(path.parents):
        status = directory.stat()
        if status.st_uid == account.pw_uid or status.st_mode & stat.S_IXOTH:
            continue
        try:
            directory.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)
        except OSError as error:
            reason = f"Postgres runs as {account.pw_name} and can't pass through {directory}"
            raise OSError(error.errno, f"{reason} ({error.strerror})") from None
        passable.append(directory)
    return passable
