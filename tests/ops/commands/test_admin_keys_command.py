"""`latchkey keys create`, `list` and `end`: administrative keys."""

import json
import re

import pytest

from sql import queries
from tests.support.commands import SYSTEM_USER, run_command


@pytest.fixture
def run(app):
    def run(*arguments, status=0):
        result = run_command(app, "keys", *arguments)
        assert result.exit_code == status, result.output
        return result.output

    return run


def admin_keys(run):
    keys = map(json.loads, run("list", "--json").splitlines())
    return [key for key in keys if key["kind"] == "admin"]


def test_key_is_printed_alone_and_opens_its_scopes(run, client, database):
    key = run("create", "billing", "--scope", "users:read", "--scope", "links", "--days", "90").strip()
    assert re.fullmatch(r"lka_[0-9a-f]{32}[0-9A-Za-z]{33}", key)
    assert client.get("/admin/users", headers={"apikey": key}).status_code == 200
    assert client.get("/admin/audit", headers={"apikey": key}).status_code == 403
    row = database.one("SELECT actor, details FROM audit_log WHERE action = 'admin_key_added'")
    assert (row.actor, row.details["system_user"]) == ("command", SYSTEM_USER)
    (listed,) = admin_keys(run)
    assert (listed["name"], listed["state"], listed["scopes"]) == (
        "billing",
        "in use",
        ["users:read", "links"],
    )
    assert listed["last_used_on"] == database.value("SELECT CURRENT_DATE::text")
    assert re.search(
        r"^admin +billing  in use, until 20\S+, users:read links, last used", run("list"), re.MULTILINE
    )


def test_key_ends_by_its_name_or_id(run, client):
    keys = [json.loads(run("create", name, "--scope", "users:read", "--json")) for name in ("one", "two")]
    assert run("end", "one") == "one is ended.\n"
    assert json.loads(run("end", keys[1]["id"], "--json")) == {"id": keys[1]["id"], "name": "two"}
    for key in keys:
        assert client.get("/admin/users", headers={"apikey": key["key"]}).status_code == 401
    assert admin_keys(run) == []
    assert "Find it by: latchkey keys list" in run("end", "one", status=3)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["create", "billing"], 2, "--scope"),
        (["create", "billing", "--scope", "everything"], 2, "everything"),
        (["create", "billing", "--scope", "users:read", "--days", "0"], 2, "--days"),
        (["create", " ", "--scope", "users:read"], 2, "must be 1 to 80 visible characters"),
    ],
)
def test_mistake_creates_no_key(run, database, arguments, status, message):
    assert message in run(*arguments, status=status)
    assert database.count("admin_keys") == 0


def test_second_key_of_a_name_is_refused(run, database):
    run("create", "billing", "--scope", "users:read")
    assert "Another key has this name." in run("create", "billing", "--scope", "links", status=2)
    assert database.count("admin_keys") == 1


def test_key_without_an_end_lasts_and_an_expired_one_is_listed_as_such(run, database):
    run("create", "billing", "--scope", "users:read")
    assert admin_keys(run)[0]["expires_at"] is None
    database.run("UPDATE admin_keys SET expires_at = now()")
    assert admin_keys(run)[0]["state"] == "expired"


def test_secret_key_of_an_administrative_key_is_needed(run, database, parts):
    """`keys remove` refuses, until the key has moved to the new secret."""
    run("create", "billing", "--scope", "users:read")
    database.run("UPDATE admin_keys SET key_mac = substr(key_mac, 1, 4)")
    mac = database.value("SELECT key_mac FROM admin_keys")
    rows = queries.count_needs_of_secret(parts.db, key_ids=[bytes(mac)], used_from=None, used_until=0.0)
    needs = {row.what: row.rows for row in rows}
    assert needs["administrative keys"] == 1
