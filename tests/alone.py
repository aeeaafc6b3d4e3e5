"""The tests that tests/system/test_extensions.py runs with all optional extensions off: the specification's service.

Only with TEST_EXTENSIONS=none, in a process of its own, before tests that import other extensions.
"""

import sys
from collections.abc import Callable
from typing import Any

from auth.registry import EXTENSIONS
from tests.support.fake_provider import FakeProvider
from tests.support.http_target import HttpTarget
from tests.support.links import BROWSER, Outbox, path
from tests.support.oauth import Service
from tests.support.users import PASSWORD
from tests.system.test_walkthrough import METER, Story

pytest_plugins = ["tests.support.oauth_fixtures"]
EMAIL = "alone@example.com"


def test_story_of_the_specification_plays(
    make_service: Callable[..., Service], acme: FakeProvider, target: HttpTarget, database: Any
) -> None:
    service = make_service(
        AUTH_RATE_LIMITS_ENABLED="true", AUTH_WEBHOOK_PRIVATE_NETWORKS="true", AUTH_API_KEYS=None
    )
    acme.person = {"sub": "1", "email": "heidi@example.com", "email_verified": True}
    with METER.installed():
        Story(service, Outbox(service.parts, database), METER, 1).play(target)


def test_link_that_a_browser_opens_shows_a_button_and_spends_nothing(client, outbox, database):
    assert client.post("/signup", json={"email": EMAIL, "password": PASSWORD}).status_code == 201
    link = path("signup", outbox.last(EMAIL).token)
    before = database.everything()
    page = client.get(link, headers=BROWSER)
    assert (page.status_code, page.mimetype) == (200, "text/html")
    assert "<button" in page.text
    assert database.everything() == before


def test_no_other_extension_is_imported():
    assert {name for name in EXTENSIONS if f"auth.extensions.{name}" in sys.modules} == {
        "social",
        "webhooks",
        "docs",
    }
    assert "auth.extensions.docs.rendered" not in sys.modules
