"""All pages of the console in Chromium: accessible, and at home on any screen."""

import re

import pytest

from tests.console.test_user_stories import console, crawl, host  # noqa: F401
from tests.pages.test_accessibility import AXE, SCREENS, problems
from tests.support.factors import set_up

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]

_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def test_pages_of_the_console_are_accessible_and_fit_the_screen(
    console,  # noqa: F811
    here,
    site,
    alice,
    service_role,
    database,
):
    if not AXE.exists():
        pytest.skip("NOT TESTED: accessibility. It needs axe-core: npm ci in tests/clients")
    axe, checked = AXE.read_text(), set()
    set_up(alice.sign_in(client=site), "Phone")
    site.post("/recover", json={"email": alice.email})
    site.post("/admin/webhooks", json={"url": "https://hooks.example.com"}, headers=service_role)
    site.put(f"/admin/users/{alice.id}", json={"user_metadata": {"name": "Alice"}}, headers=service_role)
    for url in crawl(console, here, f"{here}/console"):
        # One page of each kind.
        kind = _ID.sub("", url.partition("?")[0])
        if kind in checked:
            continue
        checked.add(kind)
        console.run(axe)
        for width, height, dark in SCREENS:
            console.resize(width, height, dark=dark)
            assert problems(console) == [], (url, width)
            assert console.run("document.documentElement.scrollWidth <= innerWidth"), (url, width)
    assert {f"{here}/console/users/", f"{here}/console/users//sessions//end"} <= checked
