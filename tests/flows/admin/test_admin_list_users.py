"""GET /admin/users: administrators find users."""

import re
from urllib.parse import quote
from uuid import uuid4

import pytest

from tests.support.answers import A_SENTENCE, INVALID, assert_error, assert_ok, page_of, user
from tests.support.cases import cases
from tests.support.query_plans import plan_of

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
    # Under /auth/v1 the list is that of the dialect.
    return [each["email"] for each in response.json["data" if "data" in response.json else "users"]]


def names(response):
    return " ".join(email.removesuffix("@example.com") for email in emails(response))


def links(response):
    """Return the targets of the Link header by their relation."""
    header = response.headers.get("Link", "")
    pairs = re.findall(r'<([^<>]*)>; rel="(\w+)"', header)
    assert ", ".join(f'<{target}>; rel="{rel}"' for target, rel in pairs) == header
    return {rel: target for target, rel in pairs}


def test_list_contains_whole_user_objects(find, client, service_role, alice, carol):
    body = {"phone": "+491701234567", "user_metadata": {"a": 1}, "ban_duration": "permanent"}
    client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)
    objects = [client.get(f"/admin/users/{each.id}", headers=service_role).json for each in (carol, alice)]
    response = find()
    assert_ok(response, {"data": objects, "pagination": page_of(1, 20, 2, 1)})
    assert response.json["data"][0] == user(carol.email, id=carol.id, role="admin")
    assert response.headers["X-Total-Count"] == "2"
    url = "/admin/users?page=1&per_page=20"
    assert links(response) == {"first": url, "last": url}
    assert carol.open_session().get("/admin/users").json["data"][1] == objects[1]


@cases(
    ("query", "expected"),
    [
        ("email=ADA@Example.COM", "ada"),
        ("email=ad@example.com", ""),
        ("email=_da@example.com", ""),
        ("role=admin", "carol"),
        *((f"role={role}", "") for role in ("adm", "ADMIN", "%25", "' OR true --")),
        ("role=admin&email=carol@example.com&q=car", "carol"),
        ("role=authenticated&q=car", ""),
    ],
)
def test_filters_are_exact_and_combined_with_and(find, five, carol, query, expected):
    response, total = find(f"?{query}"), len(expected.split())
    assert (names(response), response.headers["X-Total-Count"]) == (expected, str(total))
    assert response.json["pagination"] == page_of(1, 20, total, min(total, 1))


@cases(
    ("names", "values"),
    [
        (["q"], ["a" * 2049]),
        (["q", "role", "email", "sort"], ["a\0"]),
        (["email"], ["", "ada", "%", "@example.com", "' OR true --"]),
        (
            ["sort"],
            ["", "id", "password_hash", "Email", "email desc", "email,id", "-email", "1", "(SELECT 1)"],
        ),
        (["order"], ["", "up", "DESC", "desc,id", "asc;SELECT pg_sleep(5)", "desc NULLS LAST"]),
    ],
)
def test_invalid_or_repeated_parameter_is_400(find, names, values):
    for name in names:
        for value in values:
            assert_error(find(f"?{name}={quote(value)}"), *INVALID, details=A_SENTENCE)
        assert_error(find(f"?{name}=1&{name}=1"), *INVALID, details=f"{name}: must be given once")


@cases(
    "path",
    [
        *("/admin/users", "/admin/audit", "/admin/webhooks", "/admin/oauth/clients"),
        *(f"/admin/users/{uuid4()}/timeline", f"/admin/webhooks/{uuid4()}/deliveries"),
    ],
)
def test_unknown_parameter_is_400_in_every_list_outside_the_dialect(client, service_role, path):
    query = "limit=1&x=%00&x=1&filter[role]=admin"
    details = "; ".join(f"{name}: is not a parameter of this list" for name in ("filter[role]", "limit", "x"))
    assert_error(client.get(f"{path}?{query}", headers=service_role), *INVALID, details=details)
    assert client.get(f"/auth/v1{path}?{query}", headers=service_role).status_code in (200, 404)


class TestSearch:
    @pytest.fixture(autouse=True)
    def _users(self, client, service_role, database):
        for email, phone in (
            ("ada@example.com", "+491701234567"),
            ("adam@test.example.org", None),
            ("x.ada@sample.org", "+15551234567"),
        ):
            body = {"email": email, "email_confirm": True} | ({"phone": phone} if phone else {})
            if "test" in email:
                body["user_metadata"] = {"name": "Augusta Lovelace"}
            assert client.post("/admin/users", json=body, headers=service_role).status_code == 200

    @cases(
        ("q", "expected"),
        [
            (" ADA ", {"ada@example.com", "adam@test.example.org", "x.ada@sample.org"}),
            ("ada@", {"ada@example.com", "x.ada@sample.org"}),
            ("da", set()),
            ("lovelace adam", {"adam@test.example.org"}),
            ("lovelace x", set()),
            ("@test", {"adam@test.example.org"}),
            ("+49", {"ada@example.com"}),
            ("49", set()),
            (" ", {"ada@example.com", "adam@test.example.org", "x.ada@sample.org"}),
        ],
    )
    def test_q_finds_words_of_a_name_and_email_or_the_beginning_of_a_phone(self, find, q, expected):
        assert set(emails(find(f"?q={quote(q)}"))) == expected

    def test_special_characters_in_q_separate_words(self, find, client, service_role):
        for q in (
            *("%", "_da", "%da", "*", ".*", "\\", "'", '"', "&|!", "<->", "ada' OR true --", "(ada", "da:*"),
            *("ada'; DROP TABLE users; --", "%(q)s", ":q", "$1", "\U0010ffff", "ADA\u0130"),
            *(b"\xff", b"ada\xc3(", b"\xed\xa0\x80", "a" * 2048, "a " * 1024),
        ):
            assert len(emails(find(f"?q={quote(q)}"))) == (3 if q in ("(ada", "a " * 1024) else 0), q
        for email in ("a_b@example.com", "a%b@example.com", "axb@example.com"):
            assert client.post("/admin/users", json={"email": email}, headers=service_role).status_code == 200
        assert set(emails(find("?q=a_b"))) == {"a_b@example.com", "a%b@example.com"}


class TestSorting:
    @pytest.fixture(autouse=True)
    def _users(self, five, database):
        # Each of the four columns sorts them differently; the last one has two nulls.
        for email, updated, hours in zip(EMAILS, (3, 1, 5, 2, 4), (2, None, 1, None, 3), strict=True):
            statement = "UPDATE users SET updated_at = now() + make_interval(hours => %(updated)s), last_sign_in_at = now() - make_interval(hours => %(ago)s)"
            database.run(f"{statement} WHERE email = %(email)s", email=email, updated=updated, ago=hours)

    @cases(
        ("query", "expected"),
        [
            ("", "ada bea cleo dora ella"),
            ("?order=asc", "ella dora cleo bea ada"),
            ("?sort=updated_at&order=asc", "bea dora ada ella cleo"),
            ("?sort=updated_at&order=desc", "cleo ella ada dora bea"),
            ("?sort=email&order=desc", "ella dora cleo bea ada"),
        ],
    )
    def test_list_is_sorted_as_requested(self, find, query, expected):
        assert names(find(query)) == expected

    @cases("direction", ["asc", "desc"])
    @cases("sort", ["created_at", "updated_at", "last_sign_in_at"])
    def test_ties_are_broken_by_id(self, find, database, sort, direction):
        database.run(f"UPDATE users SET {sort} = '2026-01-01T00:00:00Z'")
        query = f"?sort={sort}&order={direction}&per_page=1&page="
        pages = [find(f"{query}{page}").json["data"][0]["id"] for page in range(1, 6)]
        assert pages == sorted(set(pages), reverse=direction == "desc")


class TestPages:
    @pytest.mark.parametrize("prefix", ["", "/auth/v1"])
    def test_following_the_links_yields_each_user_once(self, client, service_role, five, prefix):
        query = "role=authenticated&q=%40example.com&sort=email&order=asc"
        path, listed_emails = f"{prefix}/admin/users?{query}&per_page=2", []
        while path:
            response = client.get(path, headers=service_role)
            listed_emails += emails(response)
            path = links(response).get("next")
            # The number of the page comes first.
            assert path in (
                None,
                f"{prefix}/admin/users?page={len(listed_emails) // 2 + 1}&per_page=2&{query}",
            )
        assert listed_emails == EMAILS

    @cases("value", ['">x', "a>; rel=next, <http://evil.example", "a\r\nX-Evil: 1", "\U0001f600", "a&page=9"])
    def test_parameters_cannot_break_out_of_the_link_header(self, client, service_role, five, value):
        # In the dialect, which ignores unknown parameters.
        path = "/auth/v1/admin/users"
        response = client.get(f"{path}?per_page=2&x={quote(value)}", headers=service_role)
        query = f"per_page=2&x={quote(value, safe='').replace('%20', '+')}"
        pages = {"first": 1, "next": 2, "last": 3}
        assert links(response) == {rel: f"{path}?page={page}&{query}" for rel, page in pages.items()}
        assert "X-Evil" not in response.headers


def test_totals_are_exact_above_ten_thousand_users(find, database, database_url):
    database.run(
        "INSERT INTO users (email, email_confirmed_at, made_by, created_at)"
        " SELECT 'user' || lpad(number::text, 5, '0') || '@example.com', now(), 'administrator', now() - number * interval '1 second'"
        "   FROM generate_series(1, 10500) AS number;"
        "ANALYZE users, user_objects"
    )
    response = find("?q=user")
    assert response.json["pagination"] == page_of(1, 20, 10_500, 525)
    assert response.headers["X-Total-Count"] == "10500"
    assert emails(find("?q=user&page=525&sort=email&order=asc"))[-1] == "user10500@example.com"
    assert find("?q=user0").headers["X-Total-Count"] == "9999"
    assert find("?q=user00001").headers["X-Total-Count"] == "1"
    page = {"page_size": 20, "page_offset": 0, "most": 1000, "audience": "authenticated"}
    for statement, q, sort, index in (
        ("list_users", None, "created_at", "users_created_at"),
        ("list_users", "user", "created_at", "users_created_at"),
        ("list_users", None, "email", "users_email_key"),
        ("find_users", "user00001", "created_at", "users_names"),
    ):
        for descending in (False, True) if sort == "created_at" else (False,):
            parameters = {"q": q, "sort": sort, "descending": descending}
            plan = plan_of(database_url, statement, None, "force_custom_plan", **parameters, **page)
            assert index in plan.indexes, parameters
    database.truncate()
