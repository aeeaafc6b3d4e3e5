"""AUTH_LOG_AUDIT: a line of the log for each entry of the audit log."""

import pytest
from structlog.testing import capture_logs

from auth.delivery import janitor
from auth.delivery.deliverer import Deliverer
from tests.support.deliverers import RunningDeliverer
from tests.support.processes import wait_until

# Moves the entries to an earlier minute, so that their lines are due even if a minute begins during the test.
DUE = (
    "UPDATE audit_log SET at = at - interval '1 hour';"
    "DELETE FROM last_done;"
    "INSERT INTO last_done (task, at) VALUES ('audit_lines', date_trunc('minute', now() - interval '2 hours'))"
)
MARK = "SELECT at FROM last_done WHERE task = 'audit_lines'"


def lines(parts):
    with capture_logs() as log:
        janitor.log_entries(parts.db)
    return [line for line in log if line["event"] == "auth_audit_event"]


def test_each_entry_is_logged_once_as_in_the_api(parts, client, alice, service_role, database):
    alice.try_to_sign_in("Wrong-Horse-1")
    alice.try_to_sign_in("Wrong-Horse-1")
    alice.sign_in()
    assert lines(parts) == []
    database.run(DUE)
    entries = client.get("/admin/audit", headers=service_role).json["data"]
    entries_of_lines = [
        {name: value for name, value in line.items() if name not in ("event", "log_level")}
        for line in lines(parts)
    ]
    assert entries_of_lines == sorted(entries, key=lambda entry: (entry["at"], entry["id"]))
    assert [(each["action"], each["count"]) for each in entries_of_lines if each["reason"]] == [
        ("sign_in_refused", 2)
    ]
    assert lines(parts) == []


@pytest.mark.parametrize("setting", ["true", "false"])
def test_delivery_process_writes_lines_if_the_setting_says_so(
    make_app, alice, database, monkeypatch, setting
):
    database.run(DUE)
    due = database.value(MARK)
    parts = make_app(AUTH_LOG_AUDIT=setting).extensions["latchkey"]
    events: list[str] = []
    monkeypatch.setattr(janitor.log, "info", lambda event, **_: events.append(event))
    process = Deliverer(parts.settings, parts.db, parts.sealer, {})
    count_runs = "SELECT count(*) FROM last_done WHERE task = 'counts'"
    with RunningDeliverer(process):
        wait_until(lambda: database.value(count_runs))
        wait_until(lambda: bool(events) == (setting == "true"))
    assert (database.value(MARK) > due) == (setting == "true")
