import pytest

from tests.support.openid import Client, make_client
from tests.support.users import Session


@pytest.fixture
def session(alice) -> Session:
    """A session of Alice's, as after a sign-in with her password."""
    return alice.open_session()


@pytest.fixture
def app_client(database) -> Client:
    """An application with a secret."""
    return make_client(database)
