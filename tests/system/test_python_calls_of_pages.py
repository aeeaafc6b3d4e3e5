"""The Python calls of pages, and of the refresh of an OpenID client, libraries included."""

import json

import pytest

from auth.core.tokens import one_time
from auth.html.forms import VISIT, token_of
from tests.support.links import BROWSER
from tests.support.openid import make_client, tokens_of
from tests.support.pages import Visitor
from tests.support.python_calls import Counter
from tests.support.users import PASSWORD, WRONG_PASSWORD

# The first requests fill caches, or prepare their statements on another connection.
TIMES = 6


@pytest.fixture
def counter(make_app) -> Counter:
    return Counter(make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_ORGANIZATIONS="users"))


def test_pages_run_no_more_python_calls_than_their_budgets(counter, alice, app):
    secret = one_time.new_token()
    with_form = BROWSER | {"Cookie": f"{VISIT}={secret}", "Sec-Fetch-Site": "same-origin"}
    form = {"form_token": token_of(secret), "email": alice.email, "password": PASSWORD}
    session = Visitor(app).with_session_of(alice).session_cookie
    assert session
    signed_in = BROWSER | {"Cookie": f"{session.name}={session.value}"}
    alice.open_session()
    for _ in range(TIMES):
        counter.send("GET /sign-in", headers=BROWSER)
        counter.send("GET /account", headers=signed_in)
        counter.send("POST /sign-in", "303 SEE OTHER", data=form, headers=with_form)
        wrong = form | {"password": WRONG_PASSWORD}
        counter.send("POST /sign-in wrong", "403 FORBIDDEN", data=wrong, headers=with_form)
    counter.check()


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_openid_refresh_runs_no_more_python_calls_than_its_budget(
    counter, client, database, alice, algorithm
):
    openid_client = make_client(database, id_token_signed_response_alg=algorithm)
    tokens = tokens_of(client, database, openid_client, alice, "openid email profile")
    for _ in range(TIMES):
        form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
        answer = counter.send(f"POST /oauth/token {algorithm}", data=form, headers=openid_client.basic)
        tokens = json.loads(answer)
        assert "id_token" in tokens
    counter.check()
