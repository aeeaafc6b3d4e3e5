"""The independence of the tests."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from auth.web.context import EXTENSION
from tests.support.apps import Apps
from tests.support.order import SLOW, STORY, shuffled


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


def test_shuffled_tests_stay_in_their_files_and_a_seed_gives_their_order_again():
    tests = [SimpleNamespace(path=number // 10, name=number) for number in range(100)]
    first = shuffled(tests, "1")
    assert sorted(test.name for test in first) == list(range(100))
    assert first == shuffled(tests, "1") != shuffled(tests, "2")
    files = [test.path for test in first]
    assert [files[place] for place in range(0, 100, 10)] != sorted(set(files))
    assert files == [path for path in files[::10] for _ in range(10)]
