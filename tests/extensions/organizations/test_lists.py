"""GET /organizations/{name}/members and GET /organizations: searches, totals and pages."""

import json
import re
from urllib.parse import quote

import pytest

from tests.support.answers import A_SENTENCE, INVALID, assert_error, assert_ok, page_of
from tests.support.cases import cases

MEMBERS = """
WITH made AS (
  INSERT INTO users (email, phone, email_proved, made_by, user_metadata, created_at)
  SELECT email, phone, true, 'administrator', metadata::jsonb, now()
    FROM (VALUES ('ada@gmail.com', '+491701234567', '{"name": "Ada Lovelace"}'),
                 ('grace.hopper@navy.example', NULL, '{"given_name": "Grace", "family_name": "O’Brien-Hopper"}'),
                 ('linus@gmail.com', NULL, '{"full_name": "Gmail Torvalds"}'),
                 (NULL, '+15551234567', '{}')) AS them (email, phone, metadata)
  RETURNING id, email
)
INSERT INTO memberships (user_id, organization_id, role, added_by, created_at)
SELECT made.id, o.id, 'member', 'administrator', now() + row_number() OVER (ORDER BY made.email) * interval '1 hour'
  FROM made CROSS JOIN organizations AS o
 WHERE o.slug = 'acme';
"""
EVERYBODY = ["alice@example.com", "ada@gmail.com", "grace.hopper@navy.example", "linus@gmail.com", None]
SPECIAL = [
    *("%", "_", "%da", "*", "\\", "'", '"', "&|!", "<->", "'; DROP TABLE users; --", "%(q)s", ":q", "$1"),
    *(
        "(ada):*",
        "ada' & !x",
        "\U0010ffff",
        "ADA\u0130",
        "a" * 2048,
        "a " * 1024,
        "…",
        "-",
        "@",
        "@@",
        "/",
        "::tsquery",
    ),
]


@pytest.fixture
def people(acme, database):
    """Alice owns Acme, and four others are members."""
    database.run(MEMBERS)


@pytest.fixture
def search(acme, owner):
    """Search as the owner, and return the addresses in the order of the list."""

    def search(q, session=owner):
        response = session.get(f"{acme}/members?q={quote(q)}")
        assert response.status_code == 200, response.text
        found = response.json["data"]
        total = len(found)
        assert response.json["pagination"] == page_of(1, 20, total, min(total, 1))
        assert response.headers["X-Total-Count"] == str(total)
        return [each.get("email", each["name"]) for each in found]

    return search


class TestSearchOfMembers:
    @cases(
        ("q", "expected"),
        [
            ("", EVERYBODY),
            (" ", EVERYBODY),
            ("ada", ["ada@gmail.com"]),
            (" LOVE ada ", ["ada@gmail.com"]),
            ("lovelace grace", []),
            ("da", []),
            ("gmail", ["ada@gmail.com", "linus@gmail.com"]),
            ("@gmail.com", ["ada@gmail.com", "linus@gmail.com"]),
            ("linus@gmail", ["linus@gmail.com"]),
            ("lin@", []),
            ("brien", ["grace.hopper@navy.example"]),
            ("O’B hop", ["grace.hopper@navy.example"]),
            ("alice", ["alice@example.com"]),
        ],
    )
    def test_each_word_begins_a_word_of_the_name_or_address(self, people, search, q, expected):
        assert search(q) == expected

    def test_member_searches_names_alone(self, people, acme, search, join, bob):
        session = join(bob, acme)
        for q, expected in (
            ("gmail", ["Gmail Torvalds"]),
            ("love", ["Ada Lovelace"]),
            ("linus", []),
            ("navy", []),
            ("example", []),
            ("@gmail.com", []),
        ):
            assert search(q, session) == expected, q

    @pytest.mark.parametrize("role", ["admin", "member"])
    def test_nobody_finds_a_phone_number(self, people, acme, search, join, bob, role):
        session = join(bob, acme, role)
        for q in ("+49", "+491701234567", "49", "1701", "+1"):
            assert search(q, session) == [], q

    def test_operator_searches_addresses(self, people, acme, client, service_role):
        response = client.get(f"{acme}/members?q=linus@", headers=service_role)
        assert [each["email"] for each in response.json["data"]] == ["linus@gmail.com"]

    def test_special_characters_separate_words_and_break_nothing(self, people, search, database):
        before = database.everything("memberships", "users")
        for q in SPECIAL:
            expected = {
                "(ada):*": ["ada@gmail.com"],
                "%da": [],
                "a " * 1024: ["alice@example.com", "ada@gmail.com"],
                "@": EVERYBODY,
            }
            assert search(q) == expected.get(q, []), q
        assert database.everything("memberships", "users") == before

    def test_words_beyond_the_tenth_are_ignored(self, people, search):
        assert search("ada " * 10 + "nobody") == ["ada@gmail.com"]
        assert search("ada " * 9 + "nobody") == []

    def test_invalid_or_repeated_q_is_400(self, acme, owner):
        for value in ("a" * 2049, "a\0"):
            assert_error(owner.get(f"{acme}/members?q={quote(value)}"), *INVALID, details=A_SENTENCE)
        assert_error(owner.get(f"{acme}/members?q=1&q=1"), *INVALID, details="q: must be given once")

    def test_search_finds_no_member_of_another_organization(self, people, beta, owner):
        for q in ("ada", "gmail", "a"):
            found = owner.get(f"{beta}/members?q={q}").json["data"]
            assert [each["email"] for each in found] == (["alice@example.com"] if q == "a" else [])

    def test_pages_of_a_search_keep_it_in_their_links(self, people, acme, owner):
        response = owner.get(f"{acme}/members?q=gmail&per_page=1")
        assert response.headers["Link"] == (
            f'<{acme}/members?page=1&per_page=1&q=gmail>; rel="first",'
            f' <{acme}/members?page=2&per_page=1&q=gmail>; rel="next",'
            f' <{acme}/members?page=2&per_page=1&q=gmail>; rel="last"'
        )
        response = owner.get(f"{acme}/members?q=gmail&per_page=1&page=2")
        assert [each["email"] for each in response.json["data"]] == ["linus@gmail.com"]
        assert response.json["pagination"] == page_of(2, 1, 2, 2)


class TestChangesOfMembers:
    def test_new_name_and_address_are_found_and_the_old_ones_are_not(self, people, search, database):
        for column, value, old, new in (
            ("user_metadata", json.dumps({"name": "Ada King"}), "lovelace", "king"),
            ("email", "countess@example.org", "ada@gmail", "countess"),
        ):
            database.run(
                f"UPDATE users SET {column} = %(value)s WHERE phone = '+491701234567'",
                value=value,
            )
            assert search(old) == []
            assert len(search(new)) == 1

    def test_name_that_a_member_gives_himself_is_found(self, acme, owner, join, bob, search):
        session = join(bob, acme)
        assert session.put("/user", json={"data": {"name": "Robert Tables"}}).status_code == 200
        assert search("tables") == ["bob@example.com"]
        assert session.put("/user", json={"data": {"name": None}}).status_code == 200
        assert search("tables") == []

    def test_removed_member_is_found_no_more(self, acme, owner, join, bob, search):
        join(bob, acme)
        assert search("bob") == ["bob@example.com"]
        assert owner.delete(f"{acme}/members/{bob.id}").status_code == 204
        assert search("bob") == []

    def test_long_names_are_found_by_their_beginning(self, acme, owner, search):
        for name in ("x" * 300, " ".join(f"word{number}" for number in range(900))):
            assert owner.put("/user", json={"data": {"name": name}}).status_code == 200
            assert search(name[:90].rpartition(" ")[2]) == ["alice@example.com"]


class TestLargeOrganization:
    """Alice owns Acme. Of 2,500 others, one in twelve is called Smith, and two are called Rare; their addresses are at
    gmail.com. 20 users who are no members are called Rare, too.
    """

    @pytest.fixture(autouse=True)
    def _members(self, acme, database):
        database.run(
            """WITH made AS (
                 INSERT INTO users (email, email_proved, made_by, user_metadata, created_at)
                 SELECT 'm' || lpad(n::text, 4, '0') || '@gmail.com', true, 'administrator',
                        jsonb_build_object('name', CASE WHEN n % 12 = 0 THEN 'Smith' WHEN n > 2500 OR n IN (700, 2499) THEN 'Rare'
                                                        ELSE 'Other' END || ' Person' || n), now() + n * interval '1 second'
                   FROM generate_series(1, 2520) AS n RETURNING id, email, created_at
               )
               INSERT INTO memberships (user_id, organization_id, role, added_by, created_at)
               SELECT made.id, o.id, 'member', 'administrator', made.created_at
                 FROM made CROSS JOIN organizations AS o WHERE o.slug = 'acme' AND made.email < 'm2501'""".replace(
                "%", "%%"
            )
        )

    @cases(
        ("query", "total", "first", "last"),
        [
            ("", 2501, "alice@example.com", "m2500@gmail.com"),
            ("q=smith&", 208, "m0012@gmail.com", "m2496@gmail.com"),
            ("q=rare&", 2, "m0700@gmail.com", "m2499@gmail.com"),
            ("q=rare%20gmail&", 2, "m0700@gmail.com", "m2499@gmail.com"),
            ("q=m0700&", 1, "m0700@gmail.com", "m0700@gmail.com"),
            ("q=nobody&", 0, None, None),
        ],
    )
    def test_total_and_order_are_those_of_all_matches(self, acme, owner, query, total, first, last):
        pages = -(-total // 100)
        response = owner.get(f"{acme}/members?{query}per_page=100")
        assert response.json["pagination"] == page_of(1, 100, total, pages)
        assert response.headers["X-Total-Count"] == str(total)
        found = [*response.json["data"]]
        for page in range(2, pages + 1):
            found += owner.get(f"{acme}/members?{query}per_page=100&page={page}").json["data"]
        emails = [each["email"] for each in found]
        assert len(emails) == len(set(emails)) == total
        assert (emails[:1], emails[-1:]) == ([first] * bool(total), [last] * bool(total))
        assert [each["created_at"] for each in found] == sorted(each["created_at"] for each in found)

    def test_member_searches_names_alone(self, acme, join, bob):
        session = join(bob, acme)
        for q, expected in (
            ("rare", ["Rare Person700", "Rare Person2499"]),
            ("person700 rare", ["Rare Person700"]),
            ("m0700", []),
            ("gmail", []),
            ("rare gmail", []),
        ):
            response = session.get(f"{acme}/members?q={quote(q)}")
            assert [each["name"] for each in response.json["data"]] == expected, q
            assert response.headers["X-Total-Count"] == str(len(expected))

    def test_total_of_a_common_word_counts_a_thousand_from_the_page_on_and_no_page_is_missing(
        self, acme, owner
    ):
        path, emails, totals = f"{acme}/members?q=gmail&per_page=100", [], []
        while path:
            response = owner.get(path)
            emails += [each["email"] for each in response.json["data"]]
            totals.append(response.json["pagination"]["total"])
            path = "".join(re.findall(r'<([^<>]*)>; rel="next"', response.headers["Link"]))
        assert emails == [f"m{number:04}@gmail.com" for number in range(1, 2501)]
        assert totals == [min(2500, 1000 + 100 * page) for page in range(25)]

    def test_page_beyond_the_last_is_empty(self, acme, owner):
        for q in ("", "gmail", "rare"):
            response = owner.get(f"{acme}/members?q={q}&page=1000")
            assert (response.status_code, response.json["data"]) == (200, [])

    def test_listed_organization_counts_its_members_to_a_thousand(self, acme, client, service_role):
        (organization,) = client.get("/organizations", headers=service_role).json["data"]
        assert organization["members"] == 1000


class TestSearchOfOrganizations:
    @pytest.fixture
    def find(self, client, service_role, acme, database):
        database.run(
            "INSERT INTO organizations (id, slug, name, created_at)"
            " SELECT md5(slug)::uuid, slug, name, now() + n * interval '1 hour'"
            " FROM (VALUES ('globex', 'Globex Corp.', 1), ('acme-east', 'East Side', 2), ('umbrella', 'The Acme-Umbrella', 3),"
            "  ('gone', 'Acme Gone', 4)) AS them (slug, name, n);"
            "UPDATE organizations SET ended_at = now() WHERE slug = 'gone'"
        )

        def find(q, name="q"):
            response = client.get(f"/organizations?{name}={quote(q)}", headers=service_role)
            assert response.status_code == 200, response.text
            slugs = [each["slug"] for each in response.json["data"]]
            total = len(slugs)
            assert response.json["pagination"] == page_of(1, 20, total, min(total, 1))
            return " ".join(slugs)

        return find

    @pytest.mark.parametrize("name", ["q", "search"])
    @cases(
        ("q", "expected"),
        [
            ("", "umbrella acme-east globex acme"),
            ("acme", "umbrella acme-east acme"),
            (" ACME ", "umbrella acme-east acme"),
            ("acme umb", "umbrella"),
            ("acme-", "umbrella acme-east acme"),
            ("acme-e", "acme-east"),
            ("corp", "globex"),
            ("lobex", ""),
            ("gone", ""),
            ("9f3ec5b5-1b0b-4d8e-9d92-5ddf13ed0a01", ""),
        ],
    )
    def test_short_name_or_words_of_the_name_begin_so(self, find, name, q, expected):
        assert find(q, name) == expected

    def test_id_finds_its_organization(self, find, acme):
        id = acme.rpartition("/")[2]
        assert find(id) == find(id.upper()) == "acme"
        assert find(id[:8]) == ""

    def test_q_goes_before_its_former_name(self, find, client, service_role):
        response = client.get("/organizations?q=globex&search=acme", headers=service_role)
        assert [each["slug"] for each in response.json["data"]] == ["globex"]

    def test_special_characters_break_nothing(self, find, database):
        before = database.everything("organizations")
        for q in SPECIAL:
            expected = {"a " * 1024: "umbrella acme", "@": "umbrella acme-east globex acme"}
            assert find(q) == expected.get(q, ""), q
        assert database.everything("organizations") == before

    def test_invalid_or_repeated_search_is_400(self, client, service_role):
        for name in ("q", "search"):
            for value in ("a" * 2049, "a\0"):
                response = client.get(f"/organizations?{name}={quote(value)}", headers=service_role)
                assert_error(response, *INVALID, details=A_SENTENCE)
            response = client.get(f"/organizations?{name}=1&{name}=1", headers=service_role)
            assert_error(response, *INVALID, details=f"{name}: must be given once")

    def test_user_sees_only_the_own_ones_whatever_the_search(self, find, owner, acme):
        response = owner.get("/organizations?q=globex")
        assert [each["slug"] for each in response.json["data"]] == ["acme"]

    def test_total_and_order_of_thousands_are_exact(self, find, client, service_role, database):
        database.run(
            "INSERT INTO organizations (id, slug, name, created_at)"
            " SELECT md5(n::text)::uuid, 'o' || n, CASE WHEN n %% 12 = 0 THEN 'Common' ELSE 'Branch' || n END || ' Ltd',"
            " now() - n * interval '1 hour' FROM generate_series(1, 1800) AS n"
        )
        for q, total, first in (
            ("", 1804, "umbrella"),
            ("common", 150, "o12"),
            ("branch7", 102, "o7"),
        ):
            response = client.get(f"/organizations?q={q}&per_page=100", headers=service_role)
            assert response.json["pagination"] == page_of(1, 100, total, -(-total // 100)), q
            assert response.json["data"][0]["slug"] == first
            last = client.get(f"/organizations?q={q}&page={total}&per_page=1", headers=service_role)
            assert_ok(last, {"data": last.json["data"], "pagination": page_of(total, 1, total, total)})
            assert len(last.json["data"]) == 1
