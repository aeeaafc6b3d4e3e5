"""The independence of the tests."""

from pathlib import Path

import pytest

from auth.web.context import EXTENSION
from tests.support.apps import Apps
from tests.support.order import SLOW, STORY


@pytest.fixture
def own_apps(environment, database):
    apps = Apps(environment)
    yield apps
    apps.close()


def test_application_that_a_test_leaves_changed_is_named_and_serves_no_later_test(own_apps):
    app = own_apps.take({})
    app.extensions[EXTENSION].codes.use(("another secret key of 32 characters",))
    own_apps.give_back({}, app)
    with pytest.raises(AssertionError, match=r"this test leaves codes\.\w+ of an application changed"):
        own_apps.check()
    assert own_apps.take({}) is not app


def test_unchanged_application_serves_later_tests(own_apps, alice):
    app = own_apps.take({})
    assert alice.sign_in(client=app.test_client()).get("/user").status_code == 200
    own_apps.give_back({}, app)
    own_apps.check()
    assert own_apps.take({}) is app


def test_each_slow_file_exists():
    files = {f"{path.parent.name}/{path.name}" for path in Path(__file__).parent.rglob("test_*.py")}
    assert {STORY, *SLOW} <= files
