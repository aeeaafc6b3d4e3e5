"""A hundred log-ins at once with each kind of hash at the most that it may cost: others are served."""

from collections.abc import Iterator

import pytest

from tests.passwords.test_simultaneous_log_ins import dearest, give
from tests.support.server import ServerClient, at_once, until_served
from tests.support.users import sign_in

pytestmark = pytest.mark.selection


@pytest.fixture(scope="module")
def dear_server(serve) -> Iterator[ServerClient]:
    with serve(AUTH_BCRYPT_COST="10") as (service, client):
        yield client
        assert "hashing_stuck" not in service.log()


@pytest.mark.parametrize("stored", dearest(10).values(), ids=list(dearest(10)))
def test_hundred_log_ins_are_answered_and_other_users_sign_in(dear_server, database, alice, bob, stored):
    give(database, alice, stored)

    def act(number):
        if number < 100:
            return sign_in(dear_server, alice.email, "Wrong-Horse-1").status_code
        if number == 100:
            return until_served(lambda: sign_in(dear_server, bob.email)).status_code
        return dear_server.get("/settings").status_code

    *attempts, signed_in, settings = at_once(102, act)
    assert 401 in attempts
    assert set(attempts) <= {401, 503}
    assert (signed_in, settings) == (200, 200)
