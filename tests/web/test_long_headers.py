"""Routes without a rate limit read only the first KB of headers that are parsed item by item."""

import pytest

from tests.support.cases import cases

KILOBYTE, LONGEST = 1024, 32_768


@pytest.fixture
def client(make_app):
    return make_app().test_client(use_cookies=False)


def after(first: str, item: str, length: int) -> str:
    """Return a list with its first item, others that nothing knows, and an item that ends at a length."""
    fill = ("x/y," * length)[: length - len(first) - len(item) - 2]
    return f"{first},{fill},{item}"


@cases(("length", "is_read"), [(KILOBYTE, True), (KILOBYTE + 9, False), (LONGEST, False)])
def test_accept_is_read_up_to_a_kilobyte(client, length, is_read):
    header = after("application/json;q=0.1", "text/html", length)
    answer = client.get("/nowhere", headers={"Accept": header})
    assert (answer.status_code, answer.mimetype) == (404, "text/html" if is_read else "application/json")


@cases(("length", "is_read"), [(KILOBYTE, True), (KILOBYTE + 9, False), (LONGEST, False)])
def test_accept_encoding_is_read_up_to_a_kilobyte(client, length, is_read):
    answer = client.get("/openapi.yaml", headers={"Accept-Encoding": after("x", "gzip", length)})
    assert (answer.status_code, answer.headers.get("Content-Encoding")) == (200, "gzip" if is_read else None)


@cases(("length", "status"), [(KILOBYTE, 304), (KILOBYTE + 9, 200), (LONGEST, 200)])
def test_entity_tags_are_read_up_to_a_kilobyte(client, length, status):
    tag = client.get("/static/page.css").headers["ETag"]
    answer = client.get("/static/page.css", headers={"If-None-Match": after('"x"', tag, length)})
    assert answer.status_code == status


@cases("parameters", [";" * 1000, "; x=y" * 6000, ";" * 32_000])
def test_parameters_of_a_content_type_change_nothing(client, parameters):
    headers = {"Content-Type": f"application/json{parameters}"}
    answer = client.post("/token?grant_type=refresh_token", data='{"refresh_token": "x"}', headers=headers)
    assert (answer.status_code, answer.json["error_code"]) == (400, "refresh_token_not_found")
