"""`latchkey doctor` where the service does not start."""

import json

import pytest

from tests.support.commands import run_with_settings
from tests.support.environment import make_keys
from tests.support.processes import Service, free_port, short_directory


@pytest.fixture
def state_dir():
    with short_directory() as directory:
        (directory / "var").mkdir(mode=0o700)
        make_keys(directory / "var")
        yield directory / "var"


@pytest.fixture
def doctor(state_dir):
    """Return a function that runs the doctor, and returns its results by check."""

    def doctor(**environment):
        process = run_with_settings({"AUTH_STATE_DIR": str(state_dir)} | environment, "doctor", "--json")
        assert process.exit_code == 3
        results = [json.loads(line) for line in process.stdout.splitlines()]
        # Keep the first result of each check.
        return {result["check"]: result for result in reversed(results)}

    return doctor


def test_files_and_settings_are_checked_without_a_database(doctor, state_dir):
    (state_dir / "secret_key").chmod(0o600)
    results = doctor()
    failed = [name for name, result in results.items() if result["status"] == "failed"]
    assert failed == ["database"]
    assert results["database"]["setting"] == "Fix what else fails here, then run: systemctl start latchkey"
    assert {results[name]["status"] for name in ("settings", "disk", "state-directory", "redirects")} == {
        "ok"
    }
    # A proxy would answer for the service.
    assert results["public-url"]["text"].endswith("not checked, the service does not run")
    with Service(state_dir, AUTH_WORKERS="1") as service:
        results = doctor(PORT=str(service.port))
        assert {results[name]["status"] for name in ("database", "public-url")} == {"ok"}


def test_error_of_the_last_start_is_shown_until_a_start_succeeds(doctor, state_dir):
    (state_dir / "postgres").mkdir()
    (state_dir / "postgres" / "PG_VERSION").write_text("9.6\n")
    service = Service(state_dir, AUTH_WORKERS="1")
    status, output = service.refuses_to_start()
    assert (status, "Postgres did not start" in output) == (1, True)
    result = doctor()["last-start"]
    assert (result["status"], "Postgres did not start" in result["text"]) == ("failed", True)
    assert (
        result["setting"]
        == "Fix that, then start the service. For the whole log, run: journalctl -u latchkey"
    )
    (state_dir / "postgres" / "PG_VERSION").unlink()
    (state_dir / "postgres").rmdir()
    with service:
        assert not (state_dir / "start_error").exists()
        assert doctor(PORT=str(service.port))["last-start"]["status"] == "ok"


def test_remedy_for_a_stopped_service_with_its_own_postgres_is_to_start_it(doctor, state_dir):
    port = str(free_port())
    results = doctor(DATABASE_URL=f"postgresql://127.0.0.1:{free_port()}/auth", PORT=port)
    remedy = "Start the service, which does not run with this state directory: systemctl start latchkey"
    assert results["public-url"]["setting"] == remedy
    with Service(state_dir, AUTH_WORKERS="1", PORT=port):
        assert doctor(PORT=port)["public-url"]["status"] == "ok"


def test_lost_key_is_named_and_the_rest_is_checked(doctor, state_dir):
    (state_dir / "secret_key").unlink()
    results = doctor()
    text = f"{state_dir}/secret_key: Is missing. Restore it from a backup, or copy it from another node."
    assert (results["settings"]["text"], results["settings"]["setting"]) == (text, None)
    assert results["disk"]["status"] == "ok"
