"""/console/audit: who did what, with filters, in pages of keys."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest

from auth.web.context import EXTENSION
from sql import queries
from tests.support.audit import act, clear_history
from tests.support.cases import cases
from tests.support.query_plans import analyze, plan_of

ALICE = "11111111-1111-1111-1111-111111111111"
_BY_THE_KEY = {"actor": "service_role"}


@pytest.fixture
def look(operator, database):
    """Open the audit log, without what the fixtures did."""
    clear_history(database)

    def look(**query):
        page = operator.visit(f"/console/audit?{urlencode(query)}")
        assert page.status == 200, page.text
        return page.text.partition("<tbody>")[2].partition("</tbody>")[0] or page.text

    return look


def test_entry_names_event_user_actor_network_and_details(alice, look, database, carol):
    assert "No activity yet" in look()
    by_carol = {"actor": "user", "actor_id": carol.id}
    act(database, alice.id, "banned", origin=by_carol, banned_until="9999-12-31")
    act(database, ALICE, "user_deleted", origin=_BY_THE_KEY)
    changed = {"old_email": f"{'a' * 200}@example.com", "new_email": "new@example.com"}
    act(database, alice.id, "email_changed", origin=by_carol, factor_id=ALICE, **changed)
    text = look()
    for shown in (
        "banned permanently",
        f'href="../console/users/{alice.id}">alice@example.com</a>',
        f'href="../console/users/{carol.id}">carol@example.com</a>',
        "198.51.100.7",
        'href="audit?request_id=5631c782-',
        ">deleted</a>",
        "the service role key",
        f'<div class="capital">email changed from {changed["old_email"]} to new@example.com</div>',
        f'<div class="quiet">factor ID: {ALICE}</div>',
    ):
        assert shown in text


def test_filters_combine(look, database, alice, bob, carol):
    clear_history(database)
    for person, time in ((alice, "12:00:30"), (bob, "13:00:30")):
        for name, origin in (("banned", {"actor": "user", "actor_id": carol.id}), ("unbanned", _BY_THE_KEY)):
            act(database, person.id, name, origin=origin | {"request_id": f"{name} {time[:2]}"})
        at = "UPDATE audit_log SET at = %(at)s WHERE user_id = %(id)s"
        database.run(at, id=person.id, at=f"2026-01-02 {time}+00")
    for filters, count in (
        ({"user": alice.email, "action": "banned", "by": carol.email}, 1),
        ({"user": alice.id, "action": "banned", "by": "service_role"}, 0),
        ({"since": "2026-01-02T12:00", "until": "2026-01-02T12:01"}, 2),
        ({"since": "2026-01-02T12:01"}, 2),
        ({"until": "2026-01-02T12:00"}, 0),
        ({"request_id": "banned 12"}, 1),
    ):
        text = look(**filters)
        assert (filters, text.count("<tr>")) == (filters, count)
        assert ("No entries match these filters" in text) is (count == 0)
    assert "No user has the address nobody@example.com" in look(user="nobody@example.com")
    assert "No user has the address nonsense" in look(by="nonsense")


def test_pages_of_keys_show_each_entry_once(look, operator, database, alice):
    act(database, alice.id, *(f"act_{number:03}" for number in range(120)))
    look()
    found = [number for page in operator.pages() for number in re.findall(r"act (\d+)</div>", page.text)]
    assert sorted(map(int, found)) == list(range(120))
    assert "First" in operator.page.text


def test_filters_that_rarely_meet_are_searched_in_steps(look, operator, database, alice, monkeypatch):
    monkeypatch.setattr("auth.extensions.console.audit.REACH", 10)
    act(database, alice.id, "banned", origin=_BY_THE_KEY)
    database.run("UPDATE audit_log SET at = at - interval '1 day'")
    for number in range(3):
        act(database, alice.id, *(f"act_{number}_{each}" for each in range(8)))
    look(user=alice.email, action="banned")
    *searched, last = [page.text for page in operator.pages()]
    assert ["Searched back to" in text for text in searched] == [True, True]
    assert "banned" in last.partition("<tbody>")[2]


@pytest.fixture(scope="class")
def many(all_rows, database_url):
    """100,000 entries of 1,000 users, of which an administrator made 200."""
    all_rows.truncate()
    all_rows.fill(
        "audit_log",
        """INSERT INTO audit_log (at, action, user_id, actor, actor_id)
           SELECT now() - make_interval(secs => n), CASE WHEN n %% 3 = 0 THEN 'signed_out' ELSE 'signed_in' END,
                  md5((n %% 1000)::text)::uuid, CASE WHEN n %% 500 = 1 THEN 'user' WHEN n %% 2 = 0 THEN 'service_role' ELSE 'user' END,
                  CASE WHEN n %% 500 = 1 THEN %(admin)s::uuid WHEN n %% 2 = 1 THEN md5((n %% 1000)::text)::uuid END
             FROM generate_series(1, 100000) AS n""",
        admin=ALICE,
    )
    analyze(database_url)
    yield
    all_rows.truncate()
    analyze(database_url)


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
    def test_page_is_read_from_the_index_of_its_filter(self, many, database_url, found, indexes, is_first):
        middle = datetime.now(UTC) - timedelta(seconds=50_000)
        page = {} if is_first else {"before_at": middle, "before_id": ALICE}
        plan = plan_of(database_url, "search_audit", reach=2000, most=26, **found, **page)
        assert plan.indexes & indexes
        assert "audit_log" not in plan.read_whole
        assert not plan.sorts or found.keys() & {"first_subject", "first_request_id"}

    def test_events_are_listed_by_jumps(self, many, database_url, default_app):
        plan = plan_of(database_url, "list_audit_actions")
        assert (plan.indexes, plan.read_whole) == ({"audit_log_action"}, set())
        assert [row.action for row in queries.list_audit_actions(default_app.extensions[EXTENSION].db)] == [
            "signed_in",
            "signed_out",
        ]
