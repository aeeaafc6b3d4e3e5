import pytest

from tests.support.pages import Visitor


@pytest.fixture
def visitor(app) -> Visitor:
    return Visitor(app)
