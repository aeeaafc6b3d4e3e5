"""Authorization requests of applications on our pages: sign-in, consent and what leads to them."""

import pytest

from tests.support.links import SITE
from tests.support.oauth_clients import REDIRECT_URI, answer, authorize_path, insert_client
from tests.support.pages import Visitor, words
from tests.support.users import PASSWORD


@pytest.fixture
def client_id(database) -> str:
    return insert_client(database)


def test_visitor_signs_in_agrees_and_goes_back_with_a_code(visitor, alice, client_id, database):
    visitor.visit(authorize_path(client_id))
    assert visitor.page.url.startswith(f"{SITE}/sign-in?next=oauth%2Fconsent")
    visitor.submit(email=alice.email, password=PASSWORD)
    assert visitor.page.url.startswith(f"{SITE}/oauth/consent?authorization_id=")
    said = words(visitor.page)
    assert "Grafana" in said
    assert "grafana.example.com" in said
    visitor.submit(action="approve")
    code = answer(visitor.page.url)
    assert {**code, "code": ""} == {"code": "", "state": "a state & more", "iss": SITE}
    row = database.one("SELECT * FROM oauth_requests")
    assert (row.user_id, row.redirect_uri, row.scopes) == (alice.id, REDIRECT_URI, ["openid", "email"])
    assert database.value("SELECT scopes FROM oauth_grants") == ["openid", "email"]


def test_second_visit_asks_nothing(app, alice, client_id):
    visitor = Visitor(app).with_session_of(alice)
    visitor.visit(authorize_path(client_id))
    visitor.submit(action="approve")
    codes = {answer(visitor.page.url)["code"]}
    codes.add(answer(visitor.visit(authorize_path(client_id)).url)["code"])
    codes.add(answer(visitor.visit(authorize_path(client_id, prompt="none")).url)["code"])
    assert len(codes) == 3
