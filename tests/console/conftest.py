import pytest

from tests.support.cast import PASSWORD
from tests.support.factors import set_up
from tests.support.pages import Visitor


@pytest.fixture
def operator(app, carol) -> Visitor:
    """The browser of Carol, an administrator, who has just signed in. On this machine that is enough."""
    return Visitor(app).signed_in_as(carol)


@pytest.fixture
def codes(app, carol):
    """The authenticator app of Carol, in whose browser `armed` is signed in with it."""
    return set_up(carol.sign_in())[0]


@pytest.fixture
def armed(app, carol, codes):
    """The browser of Carol after both steps; codes of later steps remain for acts."""
    visitor = Visitor(app)
    visitor.visit("/sign-in?next=console")
    visitor.submit(email=carol.email, password=PASSWORD)
    visitor.press("second-step", code=codes.code())
    return visitor
