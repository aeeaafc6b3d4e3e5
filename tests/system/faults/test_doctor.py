"""The doctor's findings with real faults: a full or read-only disk, and a replica."""

import json
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.commands import run_process
from tests.support.environment import ENVIRONMENT
from tests.support.users import PASSWORD
from tests.system.faults.dependencies import Replica, url_of_both
from tests.system.faults.deployment import Deployment


def results_of(environment: dict[str, str], *options: str) -> tuple[int, dict[str, Any]]:
    process = run_process(environment, "doctor", "--json", *options)
    results = [json.loads(line) for line in process.stdout.splitlines()]
    return process.returncode, {each["check"]: each for each in reversed(results)}


def settings_of(deployment: Deployment, **changes: str) -> dict[str, str]:
    own_settings = {"DATABASE_URL": deployment.postgres.url, "AUTH_STATE_DIR": str(deployment.state_dir)}
    return {
        **ENVIRONMENT,
        "AUTH_DELIVER": "true",
        "AUTH_SMTP_URL": deployment.post.url,
        **own_settings,
        **changes,
    }


def test_full_disk_of_the_database_is_a_finding_until_there_is_room(small_disk):
    ballast, credentials = small_disk / "ballast", {"email": "a@example.com", "password": PASSWORD}
    with (
        Deployment(small_disk, max_wal_size="48MB", min_wal_size="32MB") as deployment,
        deployment.service() as service,
    ):
        client, settings = deployment.client(service), settings_of(deployment, PORT=str(service.port))
        assert results_of(settings)[1]["database-disk"]["status"] == "ok"
        fill(ballast)
        result = results_of(settings)[1]["database-disk"]
        assert result["status"] == "failed"
        assert (
            result["setting"]
            == "Free space on the disk of Postgres' data directory. Nothing needs a restart."
        )
        ballast.unlink()
        assert results_of(settings)[1]["database-disk"]["status"] == "ok"
        assert client.post("/signup", json=credentials).status_code == 201
        assert client.get("/health?strict").status_code == 200


def fill(ballast: Path) -> None:
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)


def test_read_only_file_system_of_the_state_directory_is_a_finding(small_disk, deployment):
    directory = small_disk / "var"
    with deployment.service() as service:
        shutil.copytree(deployment.state_dir, directory, ignore=shutil.ignore_patterns("metrics*", "lock"))
        settings = settings_of(deployment, AUTH_STATE_DIR=str(directory), PORT=str(service.port))
        remount("ro", small_disk)
        result = results_of(settings)[1]["disk"]
        assert result["status"] == "failed"
        assert (
            result["setting"]
            == f"Find the error of the file system of {directory} (dmesg), then mount it for writing."
        )
        remount("rw,size=400m", small_disk)
        assert results_of(settings)[1]["disk"]["status"] == "ok"


def remount(mode: str, directory: Path) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(directory)], check=True)


def test_replica_in_place_of_the_primary_is_a_finding_with_its_remedy(deployment):
    with deployment.service():
        replica = Replica(deployment.postgres, deployment.state_dir.parent / "replica")
        try:
            result = results_of(settings_of(deployment, DATABASE_URL=replica.url))[1]["database-version"]
            assert (
                result["setting"]
                == "List all hosts in DATABASE_URL, and add ?target_session_attrs=read-write to it."
            )
            url = url_of_both(replica, deployment.postgres)
            assert (
                results_of(settings_of(deployment, DATABASE_URL=url))[1]["database-version"]["status"] == "ok"
            )
        finally:
            deployment.postgres.run("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
            replica.stop()
