"""Lists of members and organizations read some rows of their tables and indexes, however many there are."""

from contextlib import closing

import pytest

from auth.extensions.organizations import lists
from tests.support.cases import cases
from tests.support.query_plans import Recorded, analyze, rows_read

LARGE, MIDDLE, SMALL = (f"00000000-0000-0000-0000-00000000000{number}" for number in (1, 2, 3))
# All 30,000 users are members of one organization, 4,286 of another, and 501 of a third. Four in five have an address at
# gmail.com. Of 25,279 who are called Common, one is a member of the second and third.
ROWS = f"""
INSERT INTO users (id, email, email_confirmed_at, email_proved, made_by, user_metadata)
SELECT md5('user' || n)::uuid,
       'first' || n % 700 || '.last' || n || CASE WHEN n % 5 < 4 THEN '@gmail.com' ELSE '@company' || n % 500 || '.example' END,
       now(), true, 'administrator',
       jsonb_build_object('name', 'First' || n % 700 || ' Last' || n
                                  || CASE WHEN n % 7 <> 0 AND n % 59 <> 0 THEN ' Common' ELSE '' END)
  FROM generate_series(1, 30000) AS n;
INSERT INTO identities (user_id, provider, subject, identity_data) SELECT id, 'email', id, '{{}}' FROM users;
INSERT INTO organizations (id, slug, name, created_at)
SELECT CASE WHEN n <= 3 THEN ('00000000-0000-0000-0000-00000000000' || n)::uuid ELSE md5('org' || n)::uuid END,
       'org' || n, CASE WHEN n % 5 < 2 THEN 'Acme' ELSE 'Other' END || ' Branch' || n, now() - n * interval '1 second'
  FROM generate_series(1, 30000) AS n;
INSERT INTO memberships (user_id, organization_id, role, added_by, created_at)
SELECT md5('user' || n)::uuid, id::uuid, 'member', 'administrator', now() - n * interval '1 second'
  FROM generate_series(1, 30000) AS n
 CROSS JOIN (VALUES ('{LARGE}', 1), ('{MIDDLE}', 7), ('{SMALL}', 59)) AS organization (id, step)
 WHERE n = 1 OR n % step = 0 AND (step < 59 OR n <= 500 * step);
"""


@pytest.fixture(scope="module")
def db(all_rows, database_url):
    all_rows.truncate()
    all_rows.run(ROWS.replace("%", "%%"))
    analyze(database_url)
    with closing(Recorded(database_url)) as db:
        yield db
    all_rows.truncate()
    analyze(database_url)


@pytest.fixture
def cost(db, database_url):
    """Return what a list reads, without the count of a large total, which is cached."""

    def cost(read):
        db.calls.clear()
        page = read(db)
        calls = [call for call in db.calls if not call[0].startswith("count_")]
        return rows_read(database_url, calls), page.total

    return cost


@cases(
    ("q", "with_addresses", "large", "middle", "small"),
    [
        (None, True, (30_000, 1_200), (4_286, 1_200), (501, 700)),
        ("last12390", True, (1, 3_000), (1, 3_000), (1, 2_000)),
        ("gmail", True, (1_000, 6_000), (1_000, 6_000), (401, 2_000)),
        ("first", True, (1_000, 5_000), (1_000, 5_000), (501, 2_000)),
        # The second organization has one Common of 25,279: of 20,000 users few are members, who are then read in order.
        ("common", True, (1_000, 6_000), (1, 40_000), (1, 2_000)),
        ("nobody", True, (0, 3_000), (0, 3_000), (0, 2_000)),
        ("gmail nobody", True, (0, 3_000), (0, 3_000), (0, 2_000)),
        # Members do not search addresses. Of the 24,000 that the index finds, all names are tested for the first
        # organization, which has more than 20,000 members; for the second, 20,000, and then those of its members.
        ("gmail", False, (0, 30_000), (0, 36_000), (0, 2_000)),
        ("last12390", False, (1, 3_000), (1, 3_000), (1, 2_000)),
        ("first", False, (1_000, 5_000), (1_000, 5_000), (501, 2_000)),
    ],
)
def test_first_page_of_members_reads_few_rows(cost, q, with_addresses, large, middle, small):
    for id, (total, most) in ((LARGE, large), (MIDDLE, middle), (SMALL, small)):
        rows, found = cost(
            lambda db, id=id: lists.members(
                db, id, q=q, with_addresses=with_addresses, page_size=20, page_offset=0
            )
        )
        assert found == total, (id, q)
        assert rows < most, (id, q, rows)


@cases(
    ("q", "total", "most"),
    [
        (None, 30_000, 4_500),
        ("branch12345", 1, 600),
        ("org12345", 1, 600),
        (LARGE, 1, 2_000),
        ("acme", 1_000, 4_500),
        ("org", 1_000, 4_500),
        ("nothing", 0, 600),
    ],
)
def test_first_page_of_organizations_reads_few_rows(cost, q, total, most):
    rows, found = cost(lambda db: lists.organizations(db, q=q, page_size=20, page_offset=0))
    assert found == total
    assert rows < most
