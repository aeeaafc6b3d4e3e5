"""The lists of the console are read from their indexes, however many rows there are."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.cases import cases
from tests.support.query_plans import analyze, plan_of

ID = "11111111-1111-1111-1111-111111111111"
LARGE = {"outbox", "oauth_clients", "oauth_grants", "users"}
AUDIT = """
INSERT INTO audit_log (at, action, user_id, actor, actor_id, details)
SELECT now() - make_interval(secs => n), CASE WHEN n %% 3 = 0 THEN 'signed_out' ELSE 'signed_in' END,
       md5((n %% 1000)::text)::uuid, CASE WHEN n %% 500 = 1 OR n %% 2 = 1 THEN 'user' ELSE 'service_role' END,
       CASE WHEN n %% 500 = 1 THEN %(id)s::uuid WHEN n %% 2 = 1 THEN md5((n %% 1000)::text)::uuid END,
       CASE WHEN n %% 200 = 0 THEN jsonb_build_object('organization', jsonb_build_object('id', %(id)s)) ELSE '{}' END
  FROM generate_series(1, 100000) AS n
"""
OTHERS = """
INSERT INTO outbox (id, channel, kind, recipient, outcome, finished_at, created_at)
SELECT gen_random_uuid(), (ARRAY['email', 'webhook', 'webhook'])[1 + n %% 3], 'magiclink',
       CASE WHEN n %% 3 = 1 THEN %(id)s ELSE n || '@example.com' END,
       CASE WHEN n %% 1000 = 1 THEN 'failed' ELSE 'sent' END, now(), now() - make_interval(secs => n)
  FROM generate_series(1, 30000) AS n;
INSERT INTO users (id, made_by) SELECT gen_random_uuid(), 'anonymous' FROM generate_series(1, 5000);
INSERT INTO oauth_clients (id, redirect_uris, grant_types, token_endpoint_auth_method, created_at)
SELECT CASE WHEN n = 1 THEN %(id)s::uuid ELSE gen_random_uuid() END, '{}', '{refresh_token}', 'none',
       now() - n * interval '1 hour' FROM generate_series(1, 5000) AS n;
INSERT INTO oauth_grants (user_id, client_id, scopes, granted_at)
SELECT u.id, c.id, '{openid}', now() - random() * interval '1 day' FROM users AS u
 CROSS JOIN (SELECT id FROM oauth_clients ORDER BY id = %(id)s DESC, id LIMIT 4) AS c;
"""


def filled(rows, url, table, statement):
    """Fill tables while nothing is in the others, which could change a plan."""
    rows.truncate()
    rows.fill(table, statement, id=ID)
    analyze(url)
    yield
    rows.truncate()
    analyze(url)


@pytest.fixture
def entries(all_rows, database_url):
    yield from filled(all_rows, database_url, "audit_log", AUDIT)


@pytest.fixture
def others(all_rows, database_url):
    yield from filled(all_rows, database_url, "outbox", OTHERS)


@cases(
    ("statement", "index", "parameters"),
    [
        ("search_clients", "oauth_clients_created_at", {"counted": 1000, "searched": 100}),
        ("search_client_grants", "oauth_grants_client_id", {"client_id": ID}),
    ],
)
def test_list_is_read_from_its_index(others, database_url, statement, index, parameters):
    plan = plan_of(database_url, statement, most=26, **parameters)
    assert (index in plan.indexes, plan.read_whole & LARGE) == (True, set())


@cases(
    ("statement", "index", "parameters"),
    [
        ("search_messages", "outbox_messages", {"states": ["waiting", "failed", "expired", "sent", "void"]}),
        ("search_messages", "outbox_messages", {"states": ["failed"]}),
        ("search_messages", "outbox_address", {"states": ["sent"], "recipient": "3@example.com"}),
        ("search_deliveries", "outbox_events", {"webhook_id": ID}),
        ("search_deliveries", "outbox_failed_events", {"webhook_id": ID, "outcome": "failed"}),
    ],
)
def test_search_is_read_from_the_index_of_its_filter(others, database_url, statement, index, parameters):
    plan = plan_of(database_url, statement, None, "force_custom_plan", most=26, **parameters)
    assert (index in plan.indexes, plan.read_whole & LARGE) == (True, set())


@cases(
    ("parameters", "indexes"),
    [
        ({}, {"audit_log_at"}),
        ({"first_subject": ID, "subject": ID, "action": "signed_in"}, {"audit_log_user_id"}),
        ({"first_done_by": ID, "done_by": ID}, {"audit_log_done_by"}),
        ({"first_done_by": "service_role", "action": "banned"}, {"audit_log_done_by"}),
        ({"first_action": "signed_in", "done_by": "command"}, {"audit_log_action", "audit_log_at"}),
        ({"first_request_id": "one"}, {"audit_log_request_id"}),
        ({"first_organization": ID, "organization": ID, "action": "banned"}, {"audit_log_organization"}),
    ],
)
@cases("is_first", [True, False])
def test_page_of_the_audit_log_is_read_from_the_index_of_its_filter(
    entries, database_url, parameters, indexes, is_first
):
    middle = datetime.now(UTC) - timedelta(seconds=50_000)
    page = {} if is_first else {"before_at": middle, "before_id": ID}
    plan = plan_of(database_url, "search_audit", reach=2000, most=26, **parameters, **page)
    assert plan.indexes & indexes
    assert "audit_log" not in plan.read_whole
    assert not plan.sorts or parameters.keys() & {"first_subject", "first_request_id", "first_organization"}


@pytest.mark.parametrize("statement", ["list_audit", "count_audit"])
def test_log_of_an_organization_is_read_from_its_index(entries, database_url, statement):
    place = {"page_size": 20, "page_offset": 0} if statement == "list_audit" else {"most": 1000}
    plan = plan_of(database_url, statement, organization=ID, **place)
    assert ("audit_log_organization" in plan.indexes, "audit_log" in plan.read_whole) == (True, False)


def test_audited_acts_are_listed_by_jumps(entries, database_url):
    plan = plan_of(database_url, "list_audit_actions")
    assert (plan.indexes, plan.read_whole) == ({"audit_log_action"}, set())
