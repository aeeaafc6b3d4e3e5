import pytest

from tests.support.armed_console import act_at as act_at
from tests.support.armed_console import armed as armed
from tests.support.armed_console import codes as codes
from tests.support.console_ids import ids as ids
from tests.support.pages import Visitor


@pytest.fixture
def operator(app, carol) -> Visitor:
    """The browser of Carol, an administrator, after a sign-in, which is enough on this machine."""
    return Visitor(app).with_session_of(carol)
