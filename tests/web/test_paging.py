"""Common behaviour of all lists: their pages, the links between these, and the total."""

import pytest

from tests.support.answers import assert_error, page_of
from tests.support.audit import clear_history, record
from tests.support.openid import insert_client
from tests.support.users import register

URL = "https://192.0.1.1/"
LISTS = [
    *("/sessions", "/admin/users", "/admin/users/{user}/timeline", "/admin/audit"),
    *("/admin/webhooks", "/admin/webhooks/{webhook}/deliveries", "/admin/oauth/clients"),
]
MALFORMED = """
0 -1 00 x 1.0 1e1 1e3 +1 0x1 %201 %31%32%20 1_0 %D9%A1 one true %00
"""


@pytest.fixture(params=LISTS)
def path(request, client, service_role, database, alice, hooks) -> str:
    """The path of a list of five rows, which the client may read."""
    name = request.param.rpartition("/")[2]
    caller = alice.open_session().authorization if name == "sessions" else service_role
    client.environ_base["HTTP_AUTHORIZATION"] = caller["Authorization"]
    webhook = hooks.register(URL)["id"] if name == "deliveries" else ""
    clear_history(database)
    add = {
        "sessions": lambda _: alice.open_session(),
        "users": lambda number: register(client, service_role, f"user{number}@example.com"),
        "timeline": lambda _: record(database, alice.id, "banned"),
        "audit": lambda _: record(database, alice.id, "banned"),
        "webhooks": lambda number: hooks.register(f"{URL}{number}"),
        "deliveries": lambda _: hooks.emit(),
        "clients": lambda _: insert_client(database),
    }[name]
    # Alice and the session of the caller are rows too.
    for number in range(4 if name in ("sessions", "users") else 5):
        add(number)
    return request.param.format(user=alice.id, webhook=webhook)


def rows(response):
    assert response.status_code == 200, response.text
    return response.json.get("data", response.json.get("clients"))


def test_pages_follow_each_other_and_link_to_the_next_one(client, path):
    pages = [client.get(f"{path}?per_page=2&page={page}") for page in (1, 2, 3)]
    assert [row for page in pages for row in rows(page)] == rows(client.get(path))
    assert [len(rows(page)) for page in pages] == [2, 2, 1]
    for number, page in enumerate(pages, 1):
        assert page.json["pagination"] == page_of(number, 2, 5, 3)
        assert page.headers["X-Total-Count"] == "5"
        targets = {"first": 1, "prev": number - 1, "next": number + 1, "last": 3}
        links = [
            f'<{path}?page={target_page}&per_page=2>; rel="{rel}"'
            for rel, target_page in targets.items()
            if 0 < target_page < 4
        ]
        assert page.headers["Link"] == ", ".join(links)


def test_empty_parameters_mean_the_defaults_and_a_page_has_at_most_100_rows(client, path):
    whole = client.get(path).json
    assert whole["pagination"] == page_of(1, 20, 5, 1)
    for query in ("page=&per_page=", "page=1", "per_page=20", "page=01"):
        assert client.get(f"{path}?{query}").json == whole
    for per_page in (100, 101, 10**20 - 1):
        assert client.get(f"{path}?per_page={per_page}").json["pagination"] == page_of(1, 100, 5, 1)


def test_page_beyond_the_last_is_empty_and_links_to_the_others(client, path):
    for page in (4, 2**31 - 1):
        beyond = client.get(f"{path}?per_page=2&page={page}")
        pagination = beyond.json["pagination"]
        assert (rows(beyond), pagination) == ([], page_of(page, 2, 5, 3))
        for rel, target_page in (("first", 1), ("last", 3)):
            assert f'<{path}?page={target_page}&per_page=2>; rel="{rel}"' in beyond.headers["Link"]
        assert 'rel="next"' not in beyond.headers["Link"]


def test_parameter_that_is_repeated_or_not_a_positive_number_is_400(client, path):
    for name in ("page", "per_page"):
        repeated = client.get(f"{path}?{name}=1&{name}=1")
        assert_error(repeated, 400, "validation_failed", details=f"{name}: must be given once")
        for value in (*MALFORMED.split(), "9" * 400):
            response = client.get(f"{path}?{name}={value}")
            assert (value, response.status_code) == (value, 400)
            assert response.json["details"].startswith(f"{name}: ")


def test_page_that_no_list_has_is_400_and_never_another_page(client, path):
    for page in (2**31, 10**12, 2**63 - 1, 2**63, 10**20 - 1, 10**20):
        response = client.get(f"{path}?page={page}")
        details = "page: must be a whole number from 1 to 2147483647"
        assert_error(response, 400, "validation_failed", details=details)
