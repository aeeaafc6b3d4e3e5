"""Rules for every route and script of the pages."""

import re

import pytest

from tests.source.test_contract import is_limited, layers
from tests.support.contract import OPENAPI, page_routes


def test_every_form_is_bound_to_the_browser_before_a_limit_counts_it(app):
    for method, path, view in page_routes(app):
        assert method in {"get", "post"}, path
        if method == "post":
            decorators = [name.partition(".")[0] for _file, name in layers(view)]
            assert decorators.index("own_form") < decorators.index("limited"), path
            assert is_limited(view), path


@pytest.mark.parametrize("path", ["/sign-in", "/sign-up", "/forgot-password"])
def test_secrets_in_a_query_are_not_repeated(client, path):
    page = client.get(f"{path}?token=secret-of-a-link&password=Correct-Horse-1").text
    assert "secret-of-a-link" not in page
    assert "Correct-Horse-1" not in page


# HTML or code made from text, storage in the browser, messages of other windows, members set by a computed name.
_FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|\bFunction\(|set(Timeout|Interval)\([\"'`]"
    r"|localStorage|sessionStorage|indexedDB|\bcaches\b|document\.cookie|addEventListener\([\"']message|window\.onmessage|__proto__"
    r"|\w\[(?![\"'])[^]]+\] ?=[^=]"
)


def test_scripts_of_pages_run_no_text_and_keep_nothing():
    scripts = sorted((OPENAPI.parent / "auth").rglob("*.js"))
    assert len(scripts) >= 6
    assert [(path.name, match[0]) for path in scripts if (match := _FORBIDDEN.search(path.read_text()))] == []
