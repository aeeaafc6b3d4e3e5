import pytest

from tests.support.console_ids import ids as ids
from tests.support.factors import set_up
from tests.support.pages import Visitor
from tests.support.users import PASSWORD


@pytest.fixture
def operator(app, carol) -> Visitor:
    """The browser of Carol, an administrator, after a sign-in, which is enough on this machine."""
    return Visitor(app).with_session_of(carol)


@pytest.fixture
def codes(app, carol):
    """The authenticator app of Carol, in whose browser `armed` is signed in with it."""
    return set_up(carol.open_session())[0]


@pytest.fixture
def armed(app, carol, codes):
    """The browser of Carol after both steps; codes of later steps remain for acts."""
    visitor = Visitor(app)
    visitor.visit("/sign-in?next=console")
    visitor.submit(email=carol.email, password=PASSWORD)
    visitor.press("second-step", code=codes.code())
    return visitor
