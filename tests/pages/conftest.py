import pytest

from tests.support.pages import Visitor


@pytest.fixture
def visitor(app) -> Visitor:
    return Visitor(app)


@pytest.fixture
def desktop(app) -> Visitor:
    return Visitor(app)


@pytest.fixture
def phone(app) -> Visitor:
    return Visitor(app)
