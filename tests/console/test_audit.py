"""/console/audit: who did what, with filters, in pages of keys."""

from datetime import UTC, datetime, timedelta

import pytest

from auth.context import EXTENSION
from tests.support.audit import act, clear_history, refuse
from tests.support.cases import cases
from tests.support.plans import analyze, plan_of

ALICE = "11111111-1111-1111-1111-111111111111"
_BY_THE_KEY = {"actor": "service_role"}


@pytest.fixture
def look(operator, database):
    """Open the audit log, without what the fixtures did."""
    clear_history(database)

    def look(**query):
        page = operator.visit(
            "/console/audit?" + "&".join(f"{name}={value}" for name, value in query.items())
        )
        assert page.status == 200, page.text
        return page.text.partition("<tbody>")[2].partition("</tbody>")[0] or page.text

    return look


def test_empty_log_explains_what_it_will_show(look):
    assert "Nothing has happened yet" in look()


def test_entry_names_event_user_actor_and_network(look, database, alice, carol):
    act(
        database,
        alice.id,
        "banned",
        origin={"actor": "user", "actor_id": carol.id},
        banned_until="9999-12-31",
    )
    text = look()
    assert "banned permanently" in text
    assert f'href="../console/users/{alice.id}">alice@example.com</a>' in text
    assert f'href="../console/users/{carol.id}">carol@example.com</a>' in text
    assert "198.51.100.7" in text
    assert 'href="audit?request_id=5631c782-' in text


def test_deleted_users_and_other_actors_are_named(look, database):
    act(database, ALICE, "user_deleted", origin=_BY_THE_KEY)
    text = look()
    assert ">deleted</a>" in text
    assert "the service role key" in text


@pytest.mark.parametrize("by", ["CAROL@example.com", "{id}"])
def test_acts_of_an_administrator_are_found(look, database, alice, bob, carol, by):
    act(database, alice.id, "banned", origin={"actor": "user", "actor_id": carol.id})
    act(database, None, "webhook_deleted", origin={"actor": "user", "actor_id": carol.id})
    act(database, bob.id, "unbanned", origin=_BY_THE_KEY)
    act(database, carol.id, "signed_in", origin={"actor": "user", "actor_id": carol.id})
    text = look(by=by.format(id=carol.id))
    assert ("banned" in text, "webhook deleted" in text) == (True, True)
    assert "unbanned" not in text
    assert "signed in" not in text
    assert "unbanned" in look(by="service_role")


def test_filters_combine(look, database, alice, bob, carol):
    for person in (alice, bob):
        act(database, person.id, "banned", origin={"actor": "user", "actor_id": carol.id})
        act(database, person.id, "unbanned", origin=_BY_THE_KEY)
    text = look(user=alice.email, action="banned", by=carol.email)
    assert text.count("<tr>") == 1
    assert "alice@example.com" in text
    assert "No entries match" in look(user=alice.id, action="banned", by="service_role")


def test_time_range_is_a_filter(look, database, alice):
    act(database, alice.id, "banned")
    database.run("UPDATE audit_log SET at = '2026-01-02 12:00:30+00'")
    assert "banned" in look(since="2026-01-02T12:00", until="2026-01-02T12:01")
    assert "No entries match" in look(since="2026-01-02T12:01")
    assert "No entries match" in look(until="2026-01-02T12:00")


def test_request_of_an_entry_is_a_filter(look, database, alice, bob):
    act(database, alice.id, "banned", origin={"request_id": "one"})
    act(database, bob.id, "banned", origin={"request_id": "two"})
    assert "bob@" not in look(request_id="one")


def test_unknown_address_is_said(look):
    assert "No user has the address nobody@example.com" in look(user="nobody@example.com")
    assert "No user has the address nonsense" in look(by="nonsense")


def test_pages_of_keys_show_each_entry_once(look, operator, database, alice):
    act(database, alice.id, *(f"act_{number:03}" for number in range(120)))
    look()
    found = []
    while True:
        found += [number for number in range(120) if f"act {number:03}</td>" in operator.page.text]
        link = operator.page.text.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
        if 'rel="next"' not in operator.page.text:
            break
        operator.click(link.replace("&amp;", "&"))
    assert sorted(found) == list(range(120))
    assert len(found) == 120
    assert "First" in operator.page.text


def test_filters_that_rarely_meet_are_searched_in_steps(look, operator, database, alice, monkeypatch):
    monkeypatch.setattr("auth.console.audit.REACH", 10)
    act(database, alice.id, "banned", origin=_BY_THE_KEY)
    database.run("UPDATE audit_log SET at = at - interval '1 day'")
    for number in range(3):
        act(database, alice.id, *(f"act_{number}_{each}" for each in range(8)))
    look(user=alice.email, action="banned")
    for _ in range(2):
        assert "Searched back to" in operator.page.text
        assert "unbanned" not in operator.page.text
        link = operator.page.text.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
        operator.click(link.replace("&amp;", "&"))
    assert "banned" in operator.page.text.partition("<tbody>")[2]


def test_text_of_refusals_is_escaped(look, database, alice):
    refuse(database, alice.id, "sign_in_refused", "invalid_credentials", origin={"user_agent": '"><b>'})
    assert "&#34;&gt;&lt;b&gt;" in look()
    assert "<b>" not in look()


@pytest.fixture(scope="class")
def many(all_rows, database_url):
    """100,000 entries of 1,000 users, of which an administrator made 200."""
    all_rows.empty()
    all_rows.fill(
        "audit_log",
        """INSERT INTO audit_log (at, action, user_id, actor, actor_id)
           SELECT now() - make_interval(secs => n), CASE WHEN n %% 3 = 0 THEN 'signed_out' ELSE 'signed_in' END,
                  md5((n %% 1000)::text)::uuid, CASE WHEN n %% 500 = 1 THEN 'user' WHEN n %% 2 = 0 THEN 'service_role' ELSE 'user' END,
                  CASE WHEN n %% 500 = 1 THEN %(admin)s::uuid WHEN n %% 2 = 1 THEN md5((n %% 1000)::text)::uuid END
             FROM generate_series(1, 100000) AS n""",
        admin=ALICE,
    )
    analyze(database_url, "audit_log", "users")
    yield
    all_rows.truncate()
    analyze(database_url, "audit_log", "users")


class TestManyEntries:
    @cases(
        ("found", "indexes"),
        [
            ({}, {"audit_log_at"}),
            ({"first_subject": ALICE, "subject": ALICE, "action": "signed_in"}, {"audit_log_user_id"}),
            ({"first_done_by": ALICE, "done_by": ALICE}, {"audit_log_done_by"}),
            ({"first_done_by": "service_role", "action": "banned"}, {"audit_log_done_by"}),
            ({"first_action": "signed_in", "done_by": "command"}, {"audit_log_action", "audit_log_at"}),
            ({"first_request_id": "one"}, {"audit_log_request_id"}),
        ],
    )
    @cases("is_first", [True, False])
    def test_page_is_read_from_the_index_of_the_first_filter(
        self, many, database_url, found, indexes, is_first
    ):
        middle = datetime.now(UTC) - timedelta(seconds=50_000)
        page = {} if is_first else {"before_at": middle, "before_id": ALICE}
        plan = plan_of(database_url, "search_audit", reach=2000, most=26, **found, **page)
        assert plan.indexes & indexes
        assert "audit_log" not in plan.read_whole
        assert not plan.sorts or found.keys() & {"first_subject", "first_request_id"}

    def test_events_are_listed_by_jumps(self, many, database_url, default_app):
        plan = plan_of(database_url, "list_audit_actions")
        assert (plan.indexes, plan.read_whole) == ({"audit_log_action"}, set())
        assert [row.action for row in default_app.extensions[EXTENSION].db.all("list_audit_actions")] == [
            "signed_in",
            "signed_out",
        ]
