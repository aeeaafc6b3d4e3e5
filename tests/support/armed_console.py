"""The browser of an administrator after both steps, and actions in it, each with a code."""

import pytest

from tests.support.factors import set_up
from tests.support.pages import Visitor, words
from tests.support.users import PASSWORD


@pytest.fixture
def codes(app, carol):
    """The authenticator app of Carol, in whose browser `armed` is signed in with it."""
    return set_up(carol.open_session())[0]


@pytest.fixture
def armed(app, carol, codes):
    """The browser of Carol after both steps; codes of later steps remain for actions."""
    visitor = Visitor(app)
    visitor.visit("/sign-in?next=console&way=password")
    visitor.submit(email=carol.email, password=PASSWORD)
    visitor.press("second-step", code=codes.code())
    return visitor


@pytest.fixture
def act_at(armed, codes, database):
    """Do an act of a list or subject with a code for it, and return the page that follows."""

    def act_at(place, path, **fields):
        database.run("UPDATE factors SET last_step = NULL")
        page = armed.visit(f"{place}/{path}")
        assert page.status == 200, words(page)
        return armed.press(path, factor_code=codes.code(1), **fields)

    return act_at
