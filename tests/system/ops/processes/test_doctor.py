"""`latchkey doctor` as it runs: a healthy service, its output, its deadline, locks and an overloaded machine."""

import dataclasses
import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg2
import pytest

from auth.core.checks import Check
from auth.core.cores import cores

# Its first import reads the names of the checks, before a test replaces them.
from auth.ops.commands import doctor as _  # noqa: F401
from auth.ops.doctor import database as database_checks
from auth.ops.doctor import examination
from auth.ops.doctor.examination import CHECKS, examine
from sql import pool
from tests.support.admin_keys import make_admin_key
from tests.support.cases import cases
from tests.support.commands import run_command, run_with_settings
from tests.support.contract import OPENAPI
from tests.support.forwarder import Forwarder
from tests.support.processes import CHECKOUT, free_port, wait_until
from tests.support.smtp_server import BadMailServer

MAIL_FROM = "Example <no-reply@example.com>"
# Checks that do not concern a service on this machine that sends no mail.
INAPPLICABLE = {"backup", "certificate", "clock", "discovery", "hooks", "mail-server", "message-totals"}
INAPPLICABLE |= {"sender", "test-settings"}
# The doctor notes that one role serves and owns, as in TEST_DATABASE_URL.
NOTES = {"role": "note"} if "TEST_DATABASE_URL" in os.environ else {}


class TestHealthyService:
    def test_every_check_passes_and_leaves_nothing_behind(self, healthy, database):
        before = database.everything()
        results = examine(healthy)
        assert [result.check for result in results] == [check.name for check in CHECKS]
        statuses = {result.check: result.status for result in results if result.status != "ok"}
        assert statuses == dict.fromkeys(INAPPLICABLE, "skipped") | NOTES
        assert database.everything() == before

    def test_command_prints_ticks_and_skipped_checks(self, healthy, environment, base_url):
        urls = {"AUTH_BASE_URL": base_url, "AUTH_SITE_URL": base_url}
        result = run_with_settings({**environment, **urls}, "doctor")
        assert (result.exit_code, result.stderr) == (0, "")
        marks = [
            "-" if check.name in INAPPLICABLE else "i" if check.name in NOTES else "✓" for check in CHECKS
        ]
        # A remedy is indented.
        assert [line[0] for line in result.stdout.splitlines() if line[0] != " "] == ["✓", *marks]
        assert "\n- There is a recent backup: not checked, AUTH_BASE_URL is this machine\n" in result.stdout

    def test_page_explains_every_check(self):
        page = (OPENAPI.parent / "docs" / "doctor.md").read_text()
        named = re.findall(r"^- `([a-z-]+)`: ", page, re.MULTILINE)
        assert named == ["settings", *(check.name for check in CHECKS)]


def test_unused_administrative_keys_are_named(look, parts, database):
    for name in ("billing", "support", "new"):
        make_admin_key(parts, "users:read", name=name)
    assert look("admin-keys") is None
    database.run(
        "UPDATE admin_keys SET created_at = now() - interval '91 days',"
        " last_used_on = CASE name WHEN 'support' THEN CURRENT_DATE - 89 WHEN 'billing' THEN CURRENT_DATE - 92 END"
        " WHERE name <> 'new'"
    )
    assert look("admin-keys") == "End each by: latchkey keys end NAME"
    database.run("UPDATE admin_keys SET last_used_on = CURRENT_DATE WHERE name = 'billing'")
    assert look("admin-keys") is None
    database.run("UPDATE admin_keys SET last_used_on = NULL WHERE name = 'support'")
    assert look("admin-keys") is not None


class TestCommand:
    def test_failure_has_the_setting_to_write_and_an_exit_status(self, app, database):
        result = run_command(app, "doctor", "--skip", "public-url")
        lines = result.output.splitlines()
        position = lines.index("✗ There is no administrator, so the console admits no user.")
        assert (result.exit_code, lines[position + 1]) == (3, "  Run: latchkey create-admin EMAIL")
        assert "The public URL reaches this service" not in result.output

    @pytest.mark.parametrize(
        ("setting", "value"),
        [
            ("AUTH_SECRET_KEY", "changeme-changeme-changeme-changeme"),
            ("AUTH_BRAND_LOGO", "/nowhere.png"),
        ],
    )
    def test_settings_that_would_stop_the_start_are_failures(
        self, environment, healthy, setting, value, monkeypatch
    ):
        monkeypatch.setattr(examination, "CHECKS", ())
        result = run_with_settings(environment | {setting: value}, "doctor", "--json")
        first_line = json.loads(result.stdout.splitlines()[0])
        assert list(first_line) == ["check", "status", "text", "setting"]
        assert (result.exit_code, first_line["check"], first_line["status"]) == (3, "settings", "failed")
        assert first_line["setting"] == f"Correct it as docs/settings.md says: {setting}=…"

    @pytest.mark.parametrize(
        ("setting", "remedy"),
        [
            ("AUTH_MAIL_FORM", "Correct its name: AUTH_MAIL_FROM=…"),
            ("AUTH_RATE_LIMITS_ENABLE", "Correct its name: AUTH_RATE_LIMITS_ENABLED=…"),
            ("AUTH_OF_NOTHING", None),
        ],
    )
    def test_unknown_setting_has_the_right_name_as_its_remedy(
        self, environment, healthy, setting, remedy, monkeypatch
    ):
        monkeypatch.setattr(examination, "CHECKS", ())
        environment = environment | {"AUTH_MAIL_FROM": MAIL_FROM}
        result = run_with_settings(environment | {setting: "true"}, "doctor", "--json")
        first_line = json.loads(result.stdout.splitlines()[0])
        assert (first_line["check"], first_line["status"]) == ("settings", "failed")
        assert first_line["text"].startswith(f"{setting} is not a setting. ")
        assert first_line["setting"] == remedy
        if remedy:
            name = remedy.partition(": ")[2].partition("=")[0]
            fixed = run_with_settings(environment | {name: environment.get(name, "true")}, "doctor", "--json")
            assert "is not a setting" not in fixed.stdout


class TestDatabase:
    def test_database_that_is_away_is_one_failure(self, healthy):
        url = f"postgresql://u:topsecret@127.0.0.1:{free_port()}/d"
        results = {result.check: result for result in examine(dataclasses.replace(healthy, database_url=url))}
        assert "DATABASE_URL=" in str(results["database"].remedy)
        statuses = {name: results[name].status for name in ("schema", "clock", "keys", "webhooks")}
        assert statuses == dict.fromkeys(statuses, "skipped")
        assert "topsecret" not in str(results)

    def test_database_that_does_not_answer_is_found_in_time(self, healthy, database_url, monkeypatch):
        monkeypatch.setattr(pool, "DEADLINE", 2.4)
        with Forwarder(database_url) as forwarder, BadMailServer("GREETING", "hang") as silent:
            url = forwarder.url.replace(str(forwarder.port), str(silent.port))
            results = examine(dataclasses.replace(healthy, database_url=url))
        assert (results[0].check, results[0].status) == ("database", "failed")
        assert "no answer within" not in results[0].text


class TestLocks:
    @pytest.fixture(autouse=True)
    def _brief_waits(self, lock_timeout):
        """The checks that wait for the lock need not wait until the deadline of all checks."""
        lock_timeout("3s")

    def test_session_that_blocks_all_is_named_with_the_statement_that_ends_it(
        self, healthy, database_url, database
    ):
        with closing(psycopg2.connect(database_url, application_name="psql")) as holder:
            pid = holder.info.backend_pid
            holder.cursor().execute("LOCK TABLE users; SELECT 'a secret'")
            results = {result.check: result for result in examine(healthy)}
            result = results.pop("locks")
            text = (
                rf"Session {pid} \(psql as postgres, in a transaction for \d s: LOCK TABLE users; SELECT '…'\) blocks"
                r" \d+ statements?, one for \d s: (?P<waiting>.+)\. Requests that need this lock fail\."
            )
            assert re.fullmatch(text, result.text), result.text
            remedy = f"As postgres or a superuser, run in psql: SELECT pg_terminate_backend({pid})"
            assert result.remedy == remedy
            # Checks that wait for the lock report no other fault.
            assert {result.status for result in results.values()} <= {"ok", "skipped", *NOTES.values()}
            assert "not checked, see locks" in results["administrators"].text
            database.run(remedy.partition(": ")[2])
        assert {result.status for result in examine(healthy)} == {"ok", "skipped", *NOTES.values()}

    @pytest.mark.parametrize("first_look", [0.7, 0.01])
    def test_session_at_the_head_of_the_queue_is_named_however_late_the_wait_begins(
        self, look, database_url, database, monkeypatch, first_look
    ):
        monkeypatch.setattr(database_checks, "_LOCK_SECONDS", first_look)
        with (
            ThreadPoolExecutor(1) as thread,  # ends last: its statement waits while the holder is open
            closing(psycopg2.connect(database_url, application_name="migration")) as waiter,
            closing(psycopg2.connect(database_url, application_name="forgotten")) as holder,
        ):
            holder.cursor().execute("SELECT FROM users")
            change = "ALTER TABLE users ALTER COLUMN role DROP DEFAULT"
            waiting = thread.submit(waiter.cursor().execute, change)
            wait_until(lambda: database.run("SELECT FROM pg_locks WHERE NOT granted"))
            pid = holder.info.backend_pid
            assert look("locks").endswith(f": SELECT pg_terminate_backend({pid})")
            holder.rollback()
            waiting.result()
            waiter.rollback()
        assert look("locks") is None


class TestOverload:
    @pytest.fixture
    def load(self, monkeypatch):
        def load(times: float) -> None:
            monkeypatch.setattr(os, "getloadavg", lambda: (times * cores(), 0.0, 0.0))

        return load

    @cases(("times", "status"), [(1.9, 3), (2.5, 2)])
    def test_exit_status_tells_undone_checks_from_failed_ones(
        self, environment, healthy, load, monkeypatch, times, status
    ):
        load(times)
        hanging = Check("clock", "The clocks agree", lambda _context: time.sleep(5))
        monkeypatch.setattr(examination, "CHECKS", (hanging,))
        monkeypatch.setattr(examination, "SECONDS", 0.5)
        monkeypatch.setattr(examination, "_LEAST_SECONDS", 0.1)
        result = run_with_settings(environment, "doctor")
        marked_lines = [line for line in result.stdout.splitlines() if line.startswith(("✗", "?"))]
        assert (result.exit_code, [line[0] for line in marked_lines]) == (
            status,
            ["?" if status == 2 else "✗"],
        )


class TestDeadline:
    def test_check_that_hangs_or_breaks_does_not_hold_up_the_others(self, healthy, replaced, monkeypatch):
        checks = replaced(clock=lambda over: over.wait(), redis=lambda _over: 1 / 0)
        monkeypatch.setattr(examination, "CHECKS", (*checks, *(c for c in CHECKS if c.name == "schema")))
        monkeypatch.setattr(examination, "SECONDS", 3.0)
        results = {result.check: result for result in examine(healthy)}
        statuses = {name: result.status for name, result in results.items()}
        assert statuses == {"clock": "failed", "redis": "failed", "schema": "ok"}
        assert "no answer within 3 s" in results["clock"].text
        assert str(results["clock"].remedy).startswith("Wait until the network, DNS, the disk and Postgres")
        assert "ZeroDivisionError: division by zero" in results["redis"].text
        assert str(results["redis"].remedy).endswith(": latchkey doctor --skip redis")

    def test_report_is_complete_if_everything_hangs(self, environment):
        with BadMailServer("GREETING", "hang") as silent:
            address = f"127.0.0.1:{silent.port}"
            settings = {"DATABASE_URL": f"postgresql://{address}/d", "AUTH_BASE_URL": f"http://{address}"}
            settings |= {
                "AUTH_SMTP_URL": f"smtp://{address}",
                "AUTH_RATE_LIMIT_STORAGE": f"redis://{address}",
            }
            settings |= {"AUTH_RATE_LIMITS_ENABLED": "true", "PATH": os.environ["PATH"]}
            command = [sys.executable, str(CHECKOUT / "latchkey_auth" / "__main__.py"), "doctor", "--json"]
            process = subprocess.run(command, env=environment | settings, capture_output=True, check=False)
        results = {each["check"]: each["status"] for each in map(json.loads, process.stdout.splitlines())}
        assert (process.stderr, [*results]) == (b"", ["settings", *(check.name for check in CHECKS)])
        hanging = {results[name] for name in ("database", "redis", "public-url", "mail-server")}
        # On a busy machine, the doctor does not get to the checks.
        assert (process.returncode, hanging) in ((3, {"failed"}), (2, {"unknown"}))
        assert {results[name] for name in ("schema", "keys", "delivery")} <= {"skipped", "unknown"}

    @pytest.fixture
    def replaced(self):
        """Return a function that replaces what checks do. Their functions get an event that is set at the end."""
        over = threading.Event()

        def replaced(**looks):
            checks = {check.name: check for check in CHECKS}

            def replace(name, look):
                return dataclasses.replace(checks[name], look=lambda _context: look(over))

            return tuple(replace(name, look) for name, look in looks.items())

        yield replaced
        over.set()
