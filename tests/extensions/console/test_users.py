"""The list of users: search, filters, order, pages, and the plans of its statements with many rows."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import chain
from urllib.parse import quote

import pytest

from auth.extensions.console import users
from tests.support.pages import Visitor, words
from tests.support.query_plans import analyze, estimated, plan_of
from tests.support.users import register


@pytest.fixture
def find(operator):
    return lambda query="": operator.visit(f"/console/users{query}")


def insert(database, count: int, **columns: str) -> None:
    """Insert users; the columns are SQL expressions over `number`, from 1 to `count`."""
    columns = {"made_by": "'administrator'", "email": "number || '@example.com'"} | columns
    database.run(
        f"INSERT INTO users ({', '.join(columns)})"
        f" SELECT {', '.join(columns.values())} FROM generate_series(1, {count}) AS number"
    )


def addresses_on(page) -> list[str]:
    """Return the addresses of the users on a page, in order, which stand below their names."""
    assert page.status == 200, page.text
    cells = re.findall(r'<td class="who"><a [^>]*>(.*?)</a>(?:<div class="quiet">(.*?)</div>)?', page.text)
    return [unescape(re.sub("<[^>]*>", "", address or name)) for name, address in cells]


def count_on(page) -> str:
    (text,) = re.findall(r'<p class="quiet">([^<·]*)', page.text)
    return unescape(text).strip()


class TestSearch:
    @pytest.fixture(autouse=True)
    def _users(self, database):
        database.run(
            "INSERT INTO users (id, email, phone, new_email, made_by) VALUES"
            " ('12345678-0000-4000-8000-000000000001', 'ada@example.com', '+491701234567', NULL, 'signup'),"
            " ('aaaaaaaa-0000-4000-8000-000000000002', 'adam@sample.org', NULL, NULL, 'signup'),"
            " ('bbbbbbbb-0000-4000-8000-000000000003', '1234@example.com', '+15551234567', NULL, 'signup'),"
            " ('cccccccc-0000-4000-8000-000000000004', 'x%%y_z@example.com', NULL, 'new@example.com', 'signup')"
        )

    def test_search_finds_words_of_names_and_emails_and_the_beginning_of_others(self, find, database):
        database.run(
            """UPDATE users SET user_metadata = '{"name": "Zoë O’Brien-Neumann"}' WHERE email LIKE 'adam%%'"""
        )
        for text, names in {
            "ada": ["ada@example.com", "adam@sample.org"],
            "neumann": ["adam@sample.org"],
            "neumann sample adam": ["adam@sample.org"],
            "zoë ada@": [],
            "eumann": [],
            "y_z": ["x%y_z@example.com"],
            " ADA@ ": ["ada@example.com"],
            "+49170": ["ada@example.com"],
            "0049 170-12": ["ada@example.com"],
            "aaaaaaaa-00": ["adam@sample.org"],
            "@sample": ["adam@sample.org"],
            "%": [],
            "all": [],
            "a" * 2000: [],
            "' OR true --": [],
            "\U0010ffff": [],
            "@a@b": [],
        }.items():
            assert (text, sorted(addresses_on(find(f"?q={quote(text)}")))) == (text, names)
        assert "No users match <strong>Nemo</strong>" in find("?q=Nemo").text

    def test_search_offers_its_other_readings_and_users_who_have_requested_the_address(self, find, operator):
        assert addresses_on(find("?q=1234")) == ["1234@example.com"]
        assert addresses_on(operator.visit(operator.link("Search IDs"))) == ["ada@example.com"]
        page = find("?q=New@example.com")
        assert addresses_on(page) == []
        assert "x%y_z@example.com</a> requested a change to New@example.com" in page.text


class TestFilters:
    @pytest.fixture(autouse=True)
    def _users(self, database):
        """Users named after their state; Carol is an administrator, and has just signed in."""
        database.run(
            "INSERT INTO users (email, email_confirmed_at, made_by, banned_until, last_sign_in_at) VALUES"
            " ('banned@example.com', now(), 'signup', now() + interval '1 day', NULL),"
            " ('was-banned@example.com', now(), 'signup', now() - interval '1 day', now() - interval '2 days'),"
            " ('unconfirmed@example.com', NULL, 'signup', NULL, NULL),"
            " (NULL, NULL, 'anonymous', NULL, now() - interval '40 days'),"
            " ('google@example.com', now(), 'oauth', NULL, now() - interval '400 days'),"
            " ('factor@example.com', now(), 'signup', NULL, now() - interval '100 days')"
        )
        database.run(
            "INSERT INTO users (email, made_by, invited_at) VALUES ('invited@example.com', 'invitation', now())"
        )
        database.run(
            "INSERT INTO identities (user_id, provider, subject, identity_data)"
            " SELECT id, 'google', id, '{}' FROM users WHERE email = 'google@example.com'"
        )
        database.run(
            "INSERT INTO factors (id, user_id, factor_type, verified_at, secret)"
            " SELECT gen_random_uuid(), id, 'totp', now(), '' FROM users WHERE email = 'factor@example.com'"
        )

    def test_each_filter_admits_its_users(self, find):
        for query, names in {
            "status=banned": {"banned"},
            "status=unconfirmed": {"unconfirmed"},
            "status=invited": {"invited"},
            "status=anonymous": {"Anonymous"},
            "status=administrator": {"carol"},
            "provider=google": {"google"},
            "factor=yes": {"factor"},
            "factor=no": {"banned", "was-banned", "unconfirmed", "invited", "Anonymous", "google", "carol"},
            "signed_in=day": {"carol"},
            "signed_in=not_year": {"banned", "unconfirmed", "invited", "google"},
            "signed_in=never": {"banned", "unconfirmed", "invited"},
            "signed_in=never&status=banned": {"banned"},
            "factor=yes&signed_in=not_month": {"factor"},
            "q=b&status=banned": {"banned"},
            "q=example.com&signed_in=never&status=&provider=&sort=newest": {
                "banned",
                "unconfirmed",
                "invited",
            },
        }.items():
            names_on_page = {name.partition("@")[0] for name in addresses_on(find(f"?{query}"))}
            assert (query, names_on_page) == (query, names)

    def test_unknown_values_of_filters_are_400(self, find):
        # A time in a form that Postgres does not read.
        place = "after=2024-01-01T00:00:00~11111111-1111-1111-1111-111111111111"
        for query in ("status=x", "factor=x", "signed_in=x", "sort=x", "by=x", "q=a&q=b", "after=x", place):
            assert (query, find(f"?{query}").status) == (query, 400)


def test_list_is_quiet_and_sorted_by_its_headings(operator, alice, database):
    database.run("UPDATE users SET user_metadata = '{\"name\": \"Alice\"}' WHERE role <> 'admin'")
    page = operator.visit("/console/users?sort=last_sign_in")
    row = page.text.partition(f'users/{alice.id}"')[2].partition("</tr>")[0]
    assert ">Alice</a>" in row
    assert f'<div class="quiet">{alice.email}</div>' in row
    assert "Confirmed" not in row
    assert re.findall(r'<th scope="col"([^>]*)>(?:<a href="([^"]*)")?', page.text)[-2:] == [
        (' aria-sort="descending"', ""),
        ("", "?sort=newest&amp;by=all"),
    ]


class TestPages:
    @pytest.fixture
    def many(self, database, database_url, carol, monkeypatch):
        """Seven users in pages of three, with equal times; Carol is the newest."""
        monkeypatch.setattr(users, "PAGE_SIZE", 3)
        insert(
            database,
            6,
            created_at="now() - (1 + number / 3) * interval '1 day'",
            last_sign_in_at="CASE WHEN number > 2 THEN now() - (1 + number / 3) * interval '1 day' END",
        )
        analyze(database_url)

    @pytest.mark.parametrize("query", ["?sort=newest", "?sort=last_sign_in", "?q=example.com", "?q=@e"])
    def test_pages_lead_on_and_back_to_the_first(self, find, operator, many, query):
        assert count_on(find()) == "7 users"
        assert count_on(find("?status=administrator")) == "1 user"
        find(query)
        pages = [addresses_on(page) for page in operator.pages()]
        assert [len(page) for page in pages] == [3, 3, 1]
        assert len(set(chain(*pages))) == 7
        assert "7\u20137 of 7 users" in words(operator.page)
        assert addresses_on(operator.visit(operator.link("First"))) == pages[0]
        assert operator.link("First") is None


@pytest.fixture(scope="class")
def many_users(all_rows, database_url):
    """8,000 users: some are banned, not confirmed or anonymous, have a factor or the provider google."""
    # Truncated, not emptied: the space of deleted rows decides which pages ANALYZE samples.
    all_rows.truncate()
    # Triggers and the checks of foreign keys would take a second.
    all_rows.run(
        "SET session_replication_role = replica;"
        "INSERT INTO users (id, email, email_confirmed_at, phone, made_by, created_at, last_sign_in_at, banned_until)"
        " SELECT md5(number::text)::uuid, 'user' || number || '@' || mod(number, 200) || '.example',"
        "        CASE WHEN mod(number, 500) <> 1 THEN now() END, '+49170' || number,"
        "        CASE WHEN mod(number, 500) = 2 THEN 'anonymous' ELSE 'signup' END,"
        "        now() - number * interval '1 minute', now() - mod(number * 7919, 8000) * interval '2 hours',"
        "        CASE WHEN mod(number, 500) = 0 THEN now() + interval '1 day' END"
        "   FROM generate_series(1, 8000) AS number;"
        "INSERT INTO user_objects SELECT id, last_sign_in_at FROM users;"
        "INSERT INTO identities (user_id, provider, subject, identity_data)"
        " SELECT id, CASE WHEN mod(number, 100) = 0 THEN 'google' ELSE 'email' END, id, '{}'"
        "   FROM (SELECT id, row_number() OVER () AS number FROM users) AS numbered;"
        "INSERT INTO factors (id, user_id, factor_type, verified_at, secret)"
        " SELECT gen_random_uuid(), user_id, 'totp', now(), '' FROM identities WHERE provider = 'google';"
        "SET session_replication_role = DEFAULT"
    )
    analyze(database_url)
    yield
    all_rows.truncate()
    analyze(database_url)


class TestManyRows:
    @pytest.fixture
    def plan(self, many_users, database_url):
        def plan(name, **parameters):
            constants = {"page_size": 26, "seconds": 1.0, "in_order": False} | parameters
            result = plan_of(database_url, name, "bound_search", **constants)
            assert result.read_whole == set(), (name, parameters)
            return result

        return plan

    def test_orders_are_read_from_their_indexes(self, plan):
        middle_time = (datetime.now(UTC) - timedelta(days=3)).isoformat()
        middle_id = "77777777-0000-0000-0000-000000000000"
        for sort, index, place in (
            ("newest", "users_created_at", middle_time),
            ("last_sign_in", "user_objects_last_sign_in_at", middle_time),
            ("email", "users_email_key", "user7"),
            ("phone", "users_phone_key", "+491707"),
            ("id", "users_pkey", middle_id),
        ):
            filters = {sort: place} if sort in ("email", "phone") else {}
            for start in ({"place": place, "id": middle_id}, {}):
                result = plan("search_users", filters=filters, sort=sort, **start)
                assert index in result.indexes, (sort, result)
                assert not result.sorts, sort

    def test_rare_filters_are_read_from_their_indexes(self, plan):
        for filters, index, statement in (
            ({"status": "banned"}, "users_banned", "few_users"),
            ({"status": "unconfirmed"}, "users_unconfirmed", "few_users"),
            ({"status": "invited"}, "users_unconfirmed", "few_users"),
            ({"status": "anonymous"}, "users_anonymous", "few_users"),
            ({"status": "administrator"}, "users_role", "few_users"),
            ({"domain": "77.example"}, "users_email_domain", "few_users"),
            ({"words": "user77 77.ex"}, "users_names", "few_users"),
            ({"words": "user77", "common": "example"}, "users_names", "few_users"),
            ({"provider": "google"}, "users_pkey", "few_users_of_provider"),
            ({"status": "locked", "locks": {}}, "users_email_key", "few_locked_users"),
            ({"has_factor": True}, "factors_user_id", "few_users_with_factor"),
            ({"within": "1 day"}, "user_objects_last_sign_in_at", "few_users_by_sign_in"),
        ):
            assert index in plan(statement, filters=filters, few=500).indexes, filters
        common_words = {"filters": {"words": "user"}, "in_order": True, "sort": "newest"}
        assert not plan("search_users", **common_words).sorts
        result = plan(
            "search_users", **common_words | {"filters": {"within": "7 days"}, "sort": "last_sign_in"}
        )
        assert "user_objects_last_sign_in_at" in result.indexes
        assert not result.sorts
        among = ["77777777-0000-0000-0000-000000000000"] * 10
        result = plan("search_users", filters={}, among=among, sort="last_sign_in")
        assert "users_pkey" in result.indexes

    @pytest.fixture
    def operator(self, many_users, default_app, service_role):
        """The browser of Carol, who is not deleted: the other tests do not count her."""
        carol = register(default_app.test_client(), service_role, "carol@example.com", role="admin")
        yield Visitor(default_app).signed_in_as(carol)
        default_app.test_client().delete(f"/admin/users/{carol.id}", headers=service_role)

    def test_counts_end_at_500_except_that_of_all_users(self, operator):
        for query, count in {
            "": "About 8,000 users",
            "status=banned": "16 users",
            "provider=google": "80 users",
            "provider=email": "More than 500 users",
            "q=user": "More than 500 users with",
            # Carol is one of them.
            "signed_in=week": "85 users",
        }.items():
            assert (query, count_on(operator.visit(f"/console/users?{query}"))) == (query, count)

    def test_common_words_are_searched_in_the_order_of_the_list(self, operator, database_url):
        """Postgres is made to expect a million users."""
        queries = (
            "q=user77+77.exam",
            "q=exam+user77",
            "q=77+USER",
            "q=exam&status=banned",
            "q=example",
            "q=e+_",
        )
        before = [addresses_on(operator.visit(f"/console/users?{query}")) for query in queries]
        with estimated(database_url, "users", 1_000_000):
            for query, names in zip(queries, before, strict=True):
                assert addresses_on(operator.visit(f"/console/users?{query}")) == names, query
        assert count_on(operator.page) == "More than 25 users with"


def test_search_that_takes_too_long_asks_to_narrow_it(find, database, monkeypatch):
    monkeypatch.setattr(users, "_COUNTING", 0.1)
    monkeypatch.setattr(users, "_LISTING", 0.3)
    with database.locked("identities", "", "LOCK TABLE identities IN ACCESS EXCLUSIVE MODE; SELECT %s::text"):
        page = find("?provider=google")
    assert (page.status, "Type more of the name" in page.text) == (422, True)
