"""A page whose URL was typed or pasted with a slash at its end."""

import pytest

from tests.support.answers import assert_error


@pytest.mark.parametrize("path", ["/sign-in/", "/account/email/", "/console/users/", "/docs/"])
def test_browser_is_led_to_the_page_without_the_slash_with_its_query(client, path):
    answer = client.get(f"{path}?a=b%20c&d", headers={"Accept": "text/html"})
    expected = "../" * (path.count("/") - 1) + path.strip("/") + "?a=b%20c&d"
    assert (answer.status_code, answer.headers["Location"]) == (303, expected)


@pytest.mark.parametrize("path", ["/health/", "/nothing/", "/sign-in//", "/verify%0d%0a/"])
def test_other_paths_are_not_found(client, path):
    answer = client.get(path, headers={"Accept": "text/html"})
    assert (answer.status_code, "Location" in answer.headers) == (404, False)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_only_an_opened_page_is_redirected(client, method):
    answer = client.open("/sign-up/", method=method, headers={"Accept": "text/html"})
    assert (answer.status_code, "Location" in answer.headers) == (404, False)


def test_program_is_told_the_path(client):
    hint = "Path not found. Leave out the last slash: /health"
    assert_error(client.get("/health/"), 404, "not_found", hint)
