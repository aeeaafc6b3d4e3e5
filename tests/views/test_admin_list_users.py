"""GET /admin/users: administrators find users."""

import re
from urllib.parse import quote

import pytest

from tests.support.answers import A_SENTENCE, assert_error, assert_ok, user
from tests.support.cases import cases

NAMES = ["ada", "bea", "cleo", "dora", "ella"]
EMAILS = [f"{name}@example.com" for name in NAMES]


@pytest.fixture
def find(client, service_role):
    return lambda query="": client.get(f"/admin/users{query}", headers=service_role)


def insert(database, count, email, age):
    """Insert users with an identity each; `email` and `age` are SQL expressions over `number`, from 1 to
    `count`.
    """
    database.run(
        f"WITH made AS (INSERT INTO users (email, email_confirmed_at, made_by, created_at, updated_at)"
        f" SELECT {email}, now(), 'administrator', now() - {age}, now() - {age} FROM generate_series(1, {count}) AS number RETURNING id, email)"
        " INSERT INTO identities (user_id, provider, subject, identity_data)"
        " SELECT id, 'email', id, jsonb_build_object('sub', id, 'email', email) FROM made"
    )


@pytest.fixture
def five(database):
    """Five users, created an hour apart, Ada last."""
    insert(database, 5, f"(ARRAY{EMAILS})[number]", "number * interval '1 hour'")


def emails(response):
    assert response.status_code == 200, response.text
    return [found["email"] for found in response.json["data"]]


def pagination(page, per_page, total, total_pages):
    return {"page": page, "per_page": per_page, "total": total, "total_pages": total_pages}


def links(response):
    """Return the targets of the Link header by their relation."""
    header = response.headers.get("Link", "")
    found = re.findall(r'<([^<>]*)>; rel="(\w+)"', header)
    assert ", ".join(f'<{target}>; rel="{rel}"' for target, rel in found) == header
    return {rel: target for target, rel in found}


class TestList:
    def test_list_contains_whole_user_objects(self, find, alice):
        response = find()
        assert_ok(response, {"data": [user(alice.email, id=alice.id)], "pagination": pagination(1, 20, 1, 1)})
        assert response.headers["X-Total-Count"] == "1"
        only = "/admin/users?page=1&per_page=20"
        assert links(response) == {"first": only, "last": only}

    def test_listed_user_equals_the_user_read_alone(self, find, client, service_role, alice):
        body = {
            "phone": "+491701234567",
            "user_metadata": {"a": 1},
            "app_metadata": {"b": 2},
            "ban_duration": "permanent",
        }
        client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)
        assert find().json["data"] == [client.get(f"/admin/users/{alice.id}", headers=service_role).json]

    def test_list_is_empty_without_users(self, find, database):
        response = find()
        assert_ok(response, {"data": [], "pagination": pagination(1, 20, 0, 0)})
        assert response.headers["X-Total-Count"] == "0"
        only = "/admin/users?page=1&per_page=20"
        assert links(response) == {"first": only, "last": only}

    def test_newest_users_come_first(self, find, five):
        assert emails(find()) == EMAILS

    def test_administrator_gets_the_same_list(self, find, five, carol):
        assert carol.sign_in().get("/admin/users").json == find().json

    def test_head_returns_the_headers_without_a_body(self, client, service_role, five):
        response = client.head("/admin/users?per_page=2", headers=service_role)
        assert (response.status_code, response.data, response.headers["X-Total-Count"]) == (200, b"", "5")

    def test_reading_changes_nothing(self, find, five, database):
        before = database.everything()
        find("?q=a&sort=email")
        assert database.everything() == before


class TestFilters:
    @pytest.mark.parametrize("spelling", ["ada@example.com", "ADA@Example.COM"])
    def test_filter_email_finds_the_user_in_any_spelling(self, find, five, spelling):
        response = find(f"?email={spelling}")
        assert emails(response) == ["ada@example.com"]
        assert response.json["pagination"] == pagination(1, 20, 1, 1)

    @pytest.mark.parametrize(
        "email", ["ad@example.com", "nobody@example.com", "ada@example.co", "_da@example.com"]
    )
    def test_filter_email_matches_neither_prefixes_nor_patterns(self, find, five, email):
        assert_ok(find(f"?email={email}"), {"data": [], "pagination": pagination(1, 20, 0, 0)})

    @cases("email", ["", "ada", "%25", "@example.com", "' OR true --"])
    def test_invalid_email_filter_is_400(self, find, email):
        assert_error(find(f"?email={email}"), 400, "validation_failed", details=A_SENTENCE)

    def test_filter_role_finds_users_of_that_role(self, find, five, carol):
        assert emails(find("?role=admin")) == ["carol@example.com"]
        assert sorted(emails(find("?role=authenticated"))) == EMAILS

    @pytest.mark.parametrize(
        "role", ["adm", "ADMIN", "admin%20", "%25", "_dmin", "service_role", "' OR true --"]
    )
    def test_filter_role_without_matches_is_empty(self, find, carol, role):
        assert emails(find(f"?role={role}")) == []

    def test_filters_are_combined_with_and(self, find, five, carol):
        assert emails(find("?role=admin&email=carol@example.com&q=car")) == ["carol@example.com"]
        assert emails(find("?role=authenticated&email=carol@example.com")) == []
        assert emails(find("?role=authenticated&q=car")) == []

    def test_total_counts_filtered_users(self, find, five, carol):
        response = find("?role=authenticated&per_page=2")
        assert response.headers["X-Total-Count"] == "5"
        assert response.json["pagination"] == pagination(1, 2, 5, 3)


class TestSearch:
    @pytest.fixture(autouse=True)
    def _users(self, client, service_role, database):
        for email, phone in (
            ("ada@example.com", "+491701234567"),
            ("adam@test.example.org", None),
            ("x.ada@sample.org", "+15551234567"),
        ):
            body = {"email": email, "email_confirm": True} | ({"phone": phone} if phone else {})
            assert client.post("/admin/users", json=body, headers=service_role).status_code == 200

    @cases(
        ("q", "found"),
        [
            ("ada", {"ada@example.com", "adam@test.example.org"}),
            ("ADA", {"ada@example.com", "adam@test.example.org"}),
            (" ada ", {"ada@example.com", "adam@test.example.org"}),
            ("ada@", {"ada@example.com"}),
            ("ada@example.com", {"ada@example.com"}),
            ("ada@example.com.", set()),
            ("da", set()),
            ("example", {"ada@example.com"}),
            ("@example", {"ada@example.com"}),
            ("test.example.org", {"adam@test.example.org"}),
            ("sample.org", {"x.ada@sample.org"}),
            ("org", set()),
            ("+49", {"ada@example.com"}),
            ("+491701234567", {"ada@example.com"}),
            ("49", set()),
            ("+", {"ada@example.com", "x.ada@sample.org"}),
            ("zzz", set()),
        ],
    )
    def test_q_finds_the_beginning_of_an_email_its_domain_or_a_phone(self, find, q, found):
        assert set(emails(find(f"?q={quote(q)}"))) == found

    @cases(
        "q",
        [
            "%",
            "_da",
            "a%",
            "a__",
            "%ada",
            "*",
            "a*",
            ".*",
            "\\",
            "ada\\",
            "'",
            '"',
            "ada' OR true --",
            "ada'; DROP TABLE users; --",
            "${7*7}",
            "%(q)s",
            ":q",
            "$1",
            "\U0010ffff",
            "ADA\u0130",
        ],
    )
    def test_special_characters_in_q_match_literally(self, find, database, q):
        assert emails(find(f"?q={quote(q)}")) == []
        assert database.count("users") == 3

    def test_underscore_and_percent_in_q_match_literally(self, find, client, service_role):
        for email in ("a_b@example.com", "a%b@example.com", "axb@example.com"):
            assert client.post("/admin/users", json={"email": email}, headers=service_role).status_code == 200
        assert emails(find("?q=a_b")) == ["a_b@example.com"]
        assert emails(find("?q=a%25b")) == ["a%b@example.com"]

    def test_empty_q_finds_all_users(self, find):
        assert len(emails(find("?q="))) == len(emails(find("?q=%20"))) == 3

    @cases("name", ["q", "role", "email", "sort", "page"])
    def test_nul_character_is_400(self, find, name):
        assert_error(find(f"?{name}=a%00"), 400, "validation_failed", details=A_SENTENCE)

    @pytest.mark.parametrize("q", ["%ff", "ada%c3%28", "%ed%a0%80"])
    def test_q_that_is_not_utf_8_finds_nothing(self, find, q):
        assert emails(find(f"?q={q}")) == []

    def test_overlong_q_is_400(self, find):
        assert find(f"?q={'a' * 2048}").status_code == 200
        assert_error(find(f"?q={'a' * 2049}"), 400, "validation_failed", details=A_SENTENCE)


class TestSorting:
    @pytest.fixture(autouse=True)
    def _users(self, five, database):
        # Each of the four columns sorts them differently.
        for email, updated, signed_in in zip(EMAILS, (3, 1, 5, 2, 4), (2, None, 1, None, 3), strict=True):
            statement = "UPDATE users SET updated_at = now() + make_interval(hours => %(updated)s), last_sign_in_at = now() - make_interval(hours => %(ago)s)"
            database.run(f"{statement} WHERE email = %(email)s", email=email, updated=updated, ago=signed_in)

    @pytest.mark.parametrize(
        ("query", "order"),
        [
            ("?sort=created_at&order=desc", "ada bea cleo dora ella"),
            ("?sort=created_at&order=asc", "ella dora cleo bea ada"),
            ("?sort=created_at", "ada bea cleo dora ella"),
            ("?order=asc", "ella dora cleo bea ada"),
            ("?sort=updated_at&order=asc", "bea dora ada ella cleo"),
            ("?sort=updated_at&order=desc", "cleo ella ada dora bea"),
            ("?sort=email&order=asc", "ada bea cleo dora ella"),
            ("?sort=email&order=desc", "ella dora cleo bea ada"),
        ],
    )
    def test_list_is_sorted_as_requested(self, find, query, order):
        assert [email.removesuffix("@example.com") for email in emails(find(query))] == order.split()

    @pytest.mark.parametrize(
        ("order", "signed_in"), [("desc", ["cleo", "ada", "ella"]), ("asc", ["ella", "ada", "cleo"])]
    )
    def test_users_that_never_signed_in_come_last(self, find, order, signed_in):
        found = [
            email.removesuffix("@example.com")
            for email in emails(find(f"?sort=last_sign_in_at&order={order}"))
        ]
        assert (found[:3], set(found[3:])) == (signed_in, {"bea", "dora"})

    @pytest.mark.parametrize("order", ["asc", "desc"])
    @pytest.mark.parametrize("sort", ["created_at", "updated_at", "last_sign_in_at"])
    def test_ties_are_broken_by_id(self, find, database, sort, order):
        database.run(f"UPDATE users SET {sort} = '2026-01-01T00:00:00Z'")
        pages = [
            find(f"?sort={sort}&order={order}&per_page=1&page={page}").json["data"][0]["id"]
            for page in range(1, 6)
        ]
        assert pages == sorted(pages, reverse=order == "desc")
        assert len(set(pages)) == 5

    @cases(
        "query",
        [
            "sort=",
            "sort=id",
            "sort=password_hash",
            "sort=Email",
            "sort=email%20desc",
            "sort=email,id",
            "sort=-email",
            "sort=1",
            "sort=(SELECT%201)",
            "sort=email;DROP%20TABLE%20users",
            "sort=CASE%20WHEN%20true%20THEN%20email%20END",
            "sort=email%00",
            "order=",
            "order=up",
            "order=DESC",
            "order=desc,id",
            "order=asc;SELECT%20pg_sleep(5)",
            "order=desc%20NULLS%20LAST",
        ],
    )
    def test_unknown_sort_or_order_is_400(self, find, database, query):
        assert_error(find(f"?{query}"), 400, "validation_failed", details=A_SENTENCE)
        assert database.count("users") == 5


class TestPages:
    def test_page_has_the_requested_size(self, find, five):
        response = find("?per_page=2")
        assert (emails(response), response.json["pagination"]) == (EMAILS[:2], pagination(1, 2, 5, 3))
        response = find("?per_page=2&page=3")
        assert (emails(response), response.json["pagination"]) == (EMAILS[4:], pagination(3, 2, 5, 3))

    @pytest.mark.parametrize("query", ["?page=&per_page=", "?page=1", "?per_page=20", "?page=01"])
    def test_empty_page_parameters_mean_the_default(self, find, five, query):
        response = find(query)
        assert (emails(response), response.json["pagination"]) == (EMAILS, pagination(1, 20, 5, 1))

    @pytest.mark.parametrize("per_page", ["101", "1000", "99999999999999999999"])
    def test_per_page_is_capped_at_100(self, find, client, service_role, database, per_page):
        insert(database, 101, "'user' || number || '@example.com'", "number * interval '1 second'")
        response = find(f"?per_page={per_page}")
        assert (len(emails(response)), response.json["pagination"]) == (100, pagination(1, 100, 101, 2))
        assert links(response) == {
            "first": "/admin/users?page=1&per_page=100",
            "next": "/admin/users?page=2&per_page=100",
            "last": "/admin/users?page=2&per_page=100",
        }

    @cases(
        "value",
        [
            "0",
            "-1",
            "00",
            "x",
            "1.0",
            "1e1",
            "+1",
            "%2B1",
            " 1",
            "1 ",
            "1_0",
            "٣",
            "null",
            "true",
            "1;SELECT 1",
            "%00",
            "9" * 21,
        ],
    )
    @cases("name", ["page", "per_page"])
    def test_page_that_is_not_a_positive_number_is_400(self, find, five, name, value):
        value = value if value.startswith("%") else quote(value)
        assert_error(find(f"?{name}={value}"), 400, "validation_failed", details=A_SENTENCE)

    @pytest.mark.parametrize("page", ["4", "1000000", "2147483648", "9223372036854775807", "9" * 20])
    def test_page_beyond_the_last_is_empty(self, find, five, page):
        response = find(f"?per_page=2&page={page}")
        assert emails(response) == []
        assert (response.json["pagination"]["total"], response.json["pagination"]["total_pages"]) == (5, 3)
        assert "next" not in links(response)
        assert (
            links(response).items()
            >= {"first": "/admin/users?page=1&per_page=2", "last": "/admin/users?page=3&per_page=2"}.items()
        )

    @cases("name", ["page", "per_page", "sort", "order", "q", "email", "role"])
    def test_repeated_parameter_is_400(self, find, name):
        assert_error(
            find(f"?{name}=1&{name}=1"), 400, "validation_failed", details=f"{name}: must be given once"
        )

    def test_unknown_parameter_is_ignored(self, find, five):
        assert emails(find("?limit=1&offset=3&x=%00&x=1&filter[role]=admin")) == EMAILS


class TestLinkHeader:
    @pytest.mark.parametrize(
        ("page", "rels"),
        [
            (1, {"first": 1, "next": 2, "last": 3}),
            (2, {"first": 1, "prev": 1, "next": 3, "last": 3}),
            (3, {"first": 1, "prev": 2, "last": 3}),
        ],
    )
    def test_link_header_names_existing_pages(self, find, five, page, rels):
        response = find(f"?per_page=2&page={page}")
        assert links(response) == {
            rel: f"/admin/users?page={number}&per_page=2" for rel, number in rels.items()
        }

    def test_page_is_the_first_parameter_of_a_link(self, find, five):
        assert find("?per_page=4").headers["Link"].startswith("</admin/users?page=1&per_page=4>; rel=")

    def test_links_have_the_prefix_of_the_request(self, client, service_role, five):
        response = client.get("/auth/v1/admin/users?per_page=2", headers=service_role)
        assert links(response)["next"] == "/auth/v1/admin/users?page=2&per_page=2"

    def test_following_the_links_yields_each_user_once(self, find, client, service_role, five):
        response, met = find("?per_page=2&sort=email&order=asc&q=%40example.com"), []
        while True:
            met += emails(response)
            if "next" not in links(response):
                break
            response = client.get(links(response)["next"], headers=service_role)
        assert met == EMAILS

    def test_links_keep_the_filters(self, find, five):
        query = "role=authenticated&q=%40example.com&sort=email&order=desc"
        assert links(find(f"?{query}&per_page=2"))["next"] == f"/admin/users?page=2&per_page=2&{query}"

    @pytest.mark.parametrize(
        "value",
        ['">x', "a>; rel=next, <http://evil.example", "a\r\nX-Evil: 1", "\U0001f600", "a&page=9", "%2e"],
    )
    def test_parameters_cannot_break_out_of_the_link_header(self, find, five, value):
        response = find(f"?per_page=2&x={quote(value)}")
        assert links(response) == {
            "first": f"/admin/users?page=1&per_page=2&x={quote(value, safe='').replace('%20', '+')}",
            "next": f"/admin/users?page=2&per_page=2&x={quote(value, safe='').replace('%20', '+')}",
            "last": f"/admin/users?page=3&per_page=2&x={quote(value, safe='').replace('%20', '+')}",
        }
        assert "X-Evil" not in response.headers


def test_totals_are_exact_above_ten_thousand_users(find, database):
    # Without triggers, which would write each user's object twice.
    database.run(
        "SET session_replication_role = replica;"
        "INSERT INTO users (email, email_confirmed_at, made_by, created_at)"
        " SELECT 'user' || lpad(number::text, 5, '0') || '@example.com', now(), 'administrator', now() - number * interval '1 second'"
        "   FROM generate_series(1, 10500) AS number;"
        "INSERT INTO user_objects (user_id, object) SELECT id, user_object(users, '[]', '{}') FROM users;"
        "SET session_replication_role = DEFAULT;"
        "ANALYZE users, user_objects"
    )
    response = find("?q=user")
    assert response.json["pagination"] == pagination(1, 20, 10_500, 525)
    assert response.headers["X-Total-Count"] == "10500"
    assert emails(find("?q=user&page=525&sort=email&order=asc"))[-1] == "user10500@example.com"
    assert find("?q=user0").headers["X-Total-Count"] == "9999"
    assert find("?q=user00001").headers["X-Total-Count"] == "1"
    database.truncate()


def test_list_is_served_under_the_prefix(client, service_role, five):
    response = client.get("/auth/v1/admin/users?per_page=2", headers=service_role)
    assert emails(response) == EMAILS[:2]
    assert client.get(links(response)["next"], headers=service_role).status_code == 200
