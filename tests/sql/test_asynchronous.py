"""Commits that do not wait for the disk: those of counts of messages and of refusals, and no others."""

from urllib.parse import quote

import pytest

from sql import Database, queries

# A trigger on each of the tables, and what it saw.
TABLES = ("failure_counts", "audit_log", "outbox", "one_time_tokens")
WATCH = f"""
CREATE TABLE writes (name text, setting text);
GRANT ALL ON writes TO PUBLIC;
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO writes VALUES (tg_table_name, current_setting('synchronous_commit'));
  RETURN NULL;
END
$$;
{"; ".join(f"CREATE TRIGGER see AFTER INSERT OR UPDATE ON {table} EXECUTE FUNCTION see()" for table in TABLES)}
"""


@pytest.fixture
def writes(database):
    """Yield a function that returns the tables that were written, with the setting of each commit."""
    database.run(WATCH)
    yield lambda: {(row.name, row.setting) for row in database.all("SELECT * FROM writes")}
    database.run("DROP FUNCTION see CASCADE; DROP TABLE writes")


def durable_url(url):
    """Return the URL of a database for connections that wait for the disk; those of the tests do not."""
    return f"{url}{'&' if '?' in url else '?'}options={quote('-csynchronous_commit=on')}"


@pytest.fixture
def client(make_app, requests_url):
    settings = {"AUTH_RATE_LIMITS_ENABLED": "true", "DATABASE_URL": durable_url(requests_url)}
    return make_app(fresh=True, **settings).test_client()


def test_counts_of_a_message_do_not_wait_for_the_disk_but_the_message_does(client, alice, writes):
    assert client.post("/otp", json={"email": "alice@example.com"}).status_code == 200
    tables = ("audit_log", "one_time_tokens", "outbox")
    assert writes() == {("failure_counts", "off"), *((name, "on") for name in tables)}


def test_record_of_a_refusal_does_not_wait_for_the_disk_but_the_verdict_does(client, alice, writes):
    body = {"email": "alice@example.com", "password": "Wrong-Horse-1"}
    assert client.post("/token?grant_type=password", json=body).status_code == 401
    assert writes() == {("failure_counts", "on"), ("audit_log", "off")}


@pytest.mark.parametrize("prepare", [True, False])
def test_next_statement_of_the_connection_waits_for_the_disk_again(database_url, writes, prepare):
    db = Database(durable_url(database_url), size=1, prepare=prepare)
    assert queries.count_in_total(db.asynchronous, kind="mail", seconds=60).count == 1
    assert writes() == {("failure_counts", "off")}
    assert queries.count_in_total(db, kind="mail", seconds=60).count == 2
    assert writes() == {("failure_counts", "off"), ("failure_counts", "on")}
    db.close()
