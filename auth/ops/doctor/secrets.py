"""Checks of the keys, and of the state directory that holds them."""

import errno
import os
import stat
import tempfile

from auth.core.checks import Context, Failure, NotChecked, Note, check
from auth.core.files import exposure, is_shared
from auth.core.keys import fingerprints, key_kinds, resealing
from auth.core.keys.fingerprints import OtherKeys
from auth.core.settings import name_of, running
from auth.core.tokens.derived_keys import format_time
from sql import queries

OLDEST_KEY = 400  # days
LEAST_FREE = 256 * 1024 * 1024  # bytes
_TEST_BYTES = 1024 * 1024
_KINDS = {
    "AUTH_JWT_KEYS": "signing",
    "AUTH_SECRET_KEY": "secret",
    "AUTH_SERVICE_ROLE_KEY": "service-role",
    "the OpenID provider": key_kinds.OPENID,
}


@check("keys", "The keys match the database")
def _fit(context: Context) -> Failure | None:
    try:
        fingerprints.check(context.db, context.settings)
    except OtherKeys as error:
        names = ", ".join(map(name_of, error.fields))
        files = context.settings.key_files
        remedies = [
            f"Copy {files[field]} from another node, or restore it from a backup."
            if field in files
            else f"Set {name_of(field)} to its value on the other nodes, or in a backup."
            for field in error.fields
        ]
        return Failure(
            f"This database was last used with other keys in {names}. This node does not start, and the"
            " others refuse its tokens.",
            " ".join(remedies),
        )
    problem = resealing.unopened(queries.list_sealed_secrets(context.db), context.settings.secret_key)
    return Failure(f"{problem[0]}. Backups fail.", problem[1]) if problem else None


@check("key-age", "No key is old")
def _ages(context: Context) -> Failure | None:
    old = [row for row in queries.list_key_ages(context.db) if row.days > OLDEST_KEY]
    if not old:
        return None
    ages = " and ".join(f"a key of {row.setting} is {row.days} days old" for row in old)
    sentence = f"{ages[0].upper()}{ages[1:]}: replace keys after {OLDEST_KEY} days at the latest."
    kind = _KINDS[old[0].setting]
    remedy = f"Run latchkey keys rotate {kind} and, when latchkey doctor says so: latchkey keys remove ID"
    # A rotation puts the new key first.
    newest, *others = key_kinds.KINDS[kind].keys(context.db, context.settings)
    if others:
        moment = f"after {format_time(newest.active_from)}" if newest.waits else "now"
        remedy = f"Run {moment}: latchkey keys remove {others[-1].id}"
    return Failure(sentence, remedy)


@check("state-directory", "Only the service can read its secrets")
def _modes(context: Context) -> Failure | None:
    directory = context.settings.state_dir
    exposed = [path for path in context.settings.key_files.values() if path.exists() and exposure(path)]
    # Under root, the account of Postgres needs to pass through the directory.
    right_modes = {directory: 0o711 if os.geteuid() == 0 else 0o700} | dict.fromkeys(exposed, 0o600)
    for path, right_mode in right_modes.items():
        if path.exists() and (mode := stat.S_IMODE(path.stat().st_mode)) & ~right_mode:
            return Failure(
                f"Other users of this machine have access to {path} (mode {mode:o}).",
                f"Run: chmod {right_mode:o} {path}",
            )
    for path in context.settings.key_files.values():
        if path.exists() and is_shared(status := path.stat()):
            return Note(
                f"The members of the group {status.st_gid} can read {path}.",
                f"Unless that is the fsGroup of a pod, run: chmod 600 {path}",
            )
    return None


@check("disk", "The disk has free space")
def _disk(context: Context) -> Failure | None:
    directory = context.settings.state_dir
    remedy = f"Free space on the disk of {directory}, or raise its quota."
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"\0" * _TEST_BYTES)
            file.flush()
            os.fsync(file.fileno())
        disk = os.statvfs(directory)
    except FileNotFoundError:
        raise NotChecked("there is no state directory") from None
    except OSError as error:
        if error.errno == errno.EROFS:
            remedy = f"Find the error of the file system of {directory} (dmesg), then mount it for writing."
        elif error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            remedy = f"Run this as the user of the service, which must own {directory}."
        return Failure(f"{directory} cannot be written: {error.strerror}.", remedy)
    free = disk.f_bavail * disk.f_frsize
    if free < LEAST_FREE or (disk.f_files and disk.f_favail < 1000):
        return Failure(f"The disk of {directory} is nearly full: {free // 1024 // 1024} MiB free.", remedy)
    return None


@check("last-start", "The last start succeeded")
def _start(context: Context) -> Failure | None:
    problem = running.last_error(context.settings.state_dir)
    if problem is None:
        return None
    return Failure(
        f"The last start failed: {problem.rstrip('.')}.",
        "Fix that, then start the service. For the whole log, run: journalctl -u latchkey",
    )


CHECKS = (_fit, _ages, _modes, _disk, _start)
