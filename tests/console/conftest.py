import pytest

from tests.support.pages import Visitor


@pytest.fixture
def operator(app, carol) -> Visitor:
    """The browser of Carol, an administrator, who has just signed in. On this machine that is enough."""
    return Visitor(app).signed_in_as(carol)
