"""The overview, and the counts behind its charts."""

import re

import pytest

from auth.delivery import janitor
from tests.support.pages import Visitor, words
from tests.support.query_plans import analyze, estimated

INSERT_MESSAGE = "INSERT INTO outbox (id, channel, kind, outcome, finished_at) SELECT gen_random_uuid(), 'email', 'signup', %(outcome)s, now() - %(age)s::interval"


@pytest.fixture
def count_now(parts, database):
    """Count what the charts draw, as the delivery process does every minute."""
    return lambda: janitor.count_hours(parts.db)


def insert_acts(database, name: str, age: str, count: int = 1, reason: str | None = None) -> None:
    database.run(
        "INSERT INTO audit_log (action, actor, at, count, reason)"
        " VALUES (%(name)s, 'user', now() - %(age)s::interval, %(count)s, %(reason)s)",
        name=name,
        age=age,
        count=count,
        reason=reason,
    )


def counts(database) -> dict[str, int]:
    return dict(database.all("SELECT name, sum(count)::integer FROM hourly_counts GROUP BY name"))


def test_first_count_takes_in_the_month_before_and_later_ones_count_nothing_twice(count_now, database):
    for age in ("1 minute", "70 minutes", "3 days", "29 days", "40 days"):
        insert_acts(database, "signed_in", age)
    for outcome in ("sent", "failed", "failed", "none"):
        database.run(INSERT_MESSAGE, outcome=outcome, age="5 minutes")
    count_now()
    messages = {"messages_sent": 1, "messages_failed": 2}
    assert counts(database) == {"signed_in": 4} | messages
    # Late commits are counted.
    insert_acts(database, "signed_in", "50 minutes")
    insert_acts(database, "sign_in_refused", "1 minute", 7, "invalid_credentials")
    for _ in range(2):
        count_now()
        assert counts(database) == {"signed_in": 5, "sign_in_refused": 7} | messages


def test_overview_draws_a_bar_for_each_day_and_has_the_numbers_in_a_table(operator, count_now, database):
    text = operator.visit("/console").text
    assert "The delivery process counts sign-ins and new users every minute" in text
    assert "not running" in text
    database.run("DELETE FROM audit_log")
    for age, times in (("0 days", 3), ("2 days", 1204), ("35 days", 900), ("70 days", 8000)):
        insert_acts(database, "signed_in", age, times)
    insert_acts(database, "user_created", "2 days", 5)
    insert_acts(database, "sign_in_refused", "10 minutes", 1234, "invalid_credentials")
    database.run("INSERT INTO last_done (task, at) VALUES ('counts', now() - interval '71 days')")
    count_now()
    text = operator.visit("/console").text
    assert text.count("<g>") == 3 * 30
    assert re.search(r'<th scope="row">[\d-]+</th><td class="number" data-label="Sign-ins">1,204</td>', text)
    text = words(operator.page)
    for part in (
        "Sign-ins 1,207 3 today +34% from 900 in the 30 days before 1,400 700 0",
        "New users 5 0 today None in the 30 days before 6 3 0",
        "Sign-in failed 1,234",
    ):
        assert part in text


def test_overview_begins_with_problems_and_is_quiet_without_one(operator, count_now, hooks, database):
    count_now()
    set_running = "INSERT INTO last_done (task, at) SELECT 'delivery', now() ON CONFLICT (task) DO UPDATE SET at = now()"
    assert "The delivery process isn’t running" in words(operator.visit("/console"))
    database.run(set_running)
    assert words(operator.visit("/console")).startswith("Overview Users 1 ")
    hooks.register("http://127.0.0.1:9/old")
    database.run("UPDATE webhooks SET failing_since = now() - interval '1 day'")
    text = words(operator.visit("/console"))
    assert text.startswith("Overview 1 webhook is failing. Show Users 1 Active users ")
    assert "schema" not in text
    assert "Latchkey " in words(operator.visit("/console/settings")).partition("Name")[0]


def test_head_says_console_and_the_host(operator):
    head = operator.visit("/console").text.partition("<header>")[2].partition("</header>")[0]
    for part in ('<span class="initial"', ">Console</span>", "localhost:8000</span>"):
        assert part in head


def test_users_active_in_the_last_30_days_are_counted(operator, parts, database, database_url, alice, bob):
    analyze(database_url)
    for person in (alice, alice, bob):
        person.sign_in()
    make_old = "UPDATE sessions SET refreshed_at = now() - interval '31 days' WHERE user_id = %(id)s"
    database.run(make_old, id=bob.id)
    assert "Users 3 Active users 2 in the last 30 days Sign-ins" in words(operator.visit("/console"))
    # More sessions than are counted for each page.
    with estimated(database_url, "sessions", 10_000):
        assert "Active users not counted yet" in words(operator.visit("/console"))
        janitor.keep_house(parts.settings, parts.db, parts.sealer)
        text = words(operator.visit("/console"))
    assert "Users 3 Active users 2 in the last 30 days, counted hourly" in text


def test_totals_of_messages_say_when_three_quarters_are_requested(make_app, carol, database):
    app = make_app(AUTH_CONSOLE="true", AUTH_RATE_LIMITS_ENABLED="true")
    console = Visitor(app).with_session_of(carol)
    insert = "INSERT INTO failure_counts (key, count, expires_at, kind, seconds) VALUES"
    hour = "now() + interval '1 hour'"
    database.run(f"{insert} ('mail 3600', 750, {hour}, 'mail', 3600), ('sms 3600', 149, {hour}, 'sms', 3600)")
    text = words(console.visit("/console"))
    assert "Emails requested 750 of 1000 per 1 hour nearly used up" in text
    assert "SMS requested 149 of 200 per 1 hour Notices by SMS 0 of 200 per 1 hour Webhooks" in text
