"""GET /admin/audit: administrators read acts and refusals."""

import itertools
from urllib.parse import quote

import pytest

from tests.flows.admin.test_admin_list_users import links
from tests.support.answers import A_SENTENCE, A_TIMESTAMP, A_UUID, assert_error, assert_ok, page_of
from tests.support.audit import FIREFOX, REQUEST_ID, record
from tests.support.cases import cases
from tests.support.query_plans import analyze, plan_of

ALICE, BOB = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"


@pytest.fixture
def list_audit(client, service_role):
    return lambda query="": client.get(f"/admin/audit{query}", headers=service_role)


@pytest.fixture
def five(database):
    """Five entries, a day apart, the last one on 5 January."""
    first = [(ALICE, "signed_in"), (BOB, "signed_in"), (ALICE, "banned")]
    entries = [*first, (ALICE, "unbanned"), (BOB, "signed_out")]
    for day, (subject, action) in enumerate(entries, 1):
        record(database, subject, action, origin={"request_id": f"request-{day}"})
        database.run(
            "UPDATE audit_log SET at = make_timestamptz(2026, 1, %(day)s, 12, 0, 0, 'UTC') WHERE at > now() - interval '1 minute'",
            day=day,
        )


def days(response):
    assert response.status_code == 200, response.text
    return [int(entry["at"][8:10]) for entry in response.json["data"]]


class TestList:
    def test_act_has_all_its_members(self, list_audit, database):
        record(database, ALICE, "signed_in", method="password")
        entry = {
            "id": A_UUID,
            "at": A_TIMESTAMP,
            "action": "signed_in",
            "reason": None,
            "count": 1,
            "user_id": ALICE,
            "actor": "user",
            "actor_id": ALICE,
            "ip": "198.51.100.7",
            "user_agent": FIREFOX,
            "request_id": REQUEST_ID,
            "details": {"method": "password"},
        }
        response = list_audit()
        assert_ok(response, {"data": [entry], "pagination": page_of(1, 20, 1, 1)})
        assert response.headers["X-Total-Count"] == "1"
        url = "/admin/audit?page=1&per_page=20"
        assert links(response) == {"first": url, "last": url}

    def test_newest_acts_come_first_and_ties_are_broken_by_id(self, list_audit, database, five):
        assert days(list_audit()) == [5, 4, 3, 2, 1]
        database.run("UPDATE audit_log SET at = '2026-01-01T00:00:00Z'")
        ids = [list_audit(f"?per_page=1&page={page}").json["data"][0]["id"] for page in range(1, 6)]
        assert ids == sorted(set(ids), reverse=True)


class TestFilters:
    @cases(
        ("query", "expected_days"),
        [
            (f"user={ALICE}", [4, 3, 1]),
            ("user=33333333-3333-3333-3333-333333333333", []),
            *((f"action={none}", []) for none in ("signed", "SIGNED_IN", "%25", "")),
            ("since=2026-01-04T12:00:00Z", [5, 4]),
            ("until=2026-01-02T12:00:00Z", [1]),
            ("since=2026-01-02T13:00:00%2B02:00&until=2026-01-04T00:00:00Z", [3, 2]),
            ("request_id=request-3", [3]),
            ("request_id=request", []),
            (f"user={ALICE}&action=signed_in", [1]),
            ("since=2026-01-03T00:00:00Z&until=2026-01-04T00:00:00Z&action=banned&request_id=request-3", [3]),
        ],
    )
    def test_filters_are_exact_and_combined_with_and(self, list_audit, five, query, expected_days):
        response = list_audit(f"?{query}")
        assert days(response) == expected_days
        assert response.json["pagination"]["total"] == len(expected_days)

    @cases(
        ("names", "values"),
        [
            (["user"], ["", "alice", "alice@example.com", "1", f"{{{ALICE}}}", "\0", "' OR true --"]),
            (
                ["since", "until"],
                ["", "yesterday", "2026-01-01", "2026-01-01T00:00:00", "1767225600", "infinity", "\0"],
            ),
        ],
    )
    def test_malformed_parameter_is_400(self, list_audit, names, values):
        for name, value in itertools.product(names, values):
            assert_error(list_audit(f"?{name}={quote(value)}"), 400, "validation_failed", details=A_SENTENCE)


@pytest.fixture(scope="class")
def many(all_rows, database_url):
    """120,000 rows of seven months, of 1,000 users; a few actions are rare."""
    all_rows.truncate()
    all_rows.fill(
        "audit_log",
        "INSERT INTO audit_log (at, action, user_id, actor, request_id)"
        " SELECT now() - number * interval '150 seconds',"
        "        CASE WHEN mod(number, 5000) = 0 THEN 'banned' WHEN mod(number, 3) = 0 THEN 'signed_out' ELSE 'signed_in' END,"
        "        lpad(mod(number, 1000)::text, 32, '1')::uuid, 'user', 'request-' || number"
        "   FROM generate_series(1, 120000) AS number",
    )
    analyze(database_url)
    yield
    all_rows.truncate()
    analyze(database_url)


# Filters of the list.
ONE = {"subject": "11111111-1111-1111-1111-111111111007"}
RARE, COMMON = {"action": "banned"}, {"action": "signed_in"}
WHEN = {"since": "2026-01-01T00:00:00Z", "until": "2099-01-01T00:00:00Z"}
REQUEST = {"request_id": "request-7"}


class TestManyRows:
    @cases(
        ("filters", "indexes"),
        [
            ({}, {"audit_log_at"}),
            (ONE, {"audit_log_user_id"}),
            (RARE, {"audit_log_action"}),
            (WHEN, {"audit_log_at"}),
            (REQUEST, {"audit_log_request_id"}),
            (ONE | RARE, {"audit_log_user_id", "audit_log_action"}),
            (ONE | COMMON | WHEN, {"audit_log_user_id"}),
        ],
    )
    @cases("offset", [0, 20])
    def test_page_is_read_from_an_index_in_its_order(self, many, database_url, filters, indexes, offset):
        plan = plan_of(database_url, "list_audit", page_size=20, page_offset=offset, **filters)
        assert plan.indexes
        assert plan.indexes <= indexes
        assert plan.read_whole == set()
        # Acts of one request and rare acts of a user are few and may be sorted; everything else must come in
        # order.
        assert not plan.sorts or filters.keys() & {"request_id"} or filters == ONE | RARE

    @cases("filters", [ONE, RARE, REQUEST, ONE | COMMON, ONE | WHEN, RARE | WHEN])
    def test_total_is_counted_from_an_index(self, many, database_url, filters):
        plan = plan_of(database_url, "count_audit", most=100_000, **filters)
        assert plan.read_whole == set()

    def test_total_is_counted_up_to_100_000(self, many, default_app, service_role):
        client = default_app.test_client()
        first = client.get("/admin/audit", headers=service_role)
        assert first.json["pagination"] == page_of(1, 20, 100_000, 5_000)
        assert len(client.get("/admin/audit?page=5000", headers=service_role).json["data"]) == 20
        assert client.get("/admin/audit?page=5001", headers=service_role).json["data"] == []
