"""/oauth/authorizations/…, for the application's own consent page, and /oauth/continue."""

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.factors import set_up
from tests.support.links import BROWSER, SITE
from tests.support.openid import REDIRECT_URI, answer, authorize_path, grant, insert_client
from tests.support.pages import Visitor
from tests.support.server import at_once

CONSENT_URL = "https://app.example.com/consent"


@pytest.fixture
def app(make_app):
    return make_app(AUTH_OAUTH_CONSENT_URL=CONSENT_URL, AUTH_REDIRECT_ALLOW_LIST="https://spa.example.com/**")


@pytest.fixture
def client_id(database) -> str:
    return insert_client(database, uri="https://grafana.example.com")


@pytest.fixture
def session(app, alice):
    return alice.open_session(app.test_client())


@pytest.fixture
def begin(visitor, client_id):
    """Begin a request in a browser, and return its path of the JSON interface."""

    def begin(**parameters: str) -> str:
        url = visitor.visit(authorize_path(client_id, **parameters)).url
        assert url.startswith(f"{CONSENT_URL}?authorization_id=")
        return f"/oauth/authorizations/{parse_qs(urlsplit(url).query)['authorization_id'][0]}"

    return begin


@pytest.fixture
def visitor(app) -> Visitor:
    return Visitor(app)


def approve(session, path: str):
    return session.post(f"{path}/consent", json={"action": "approve"})


def url_of_approval(session, path: str) -> str:
    assert session.get(path).status_code == 200
    response = approve(session, path)
    assert response.status_code == 200, response.text
    return response.json["redirect_url"]


def test_user_sees_the_request_and_allows_it(session, begin, visitor, client_id, alice, database):
    path = begin()
    response = session.get(path)
    assert response.json == {
        "authorization_id": path.rpartition("/")[2],
        "redirect_uri": REDIRECT_URI,
        "client": {"id": client_id, "name": "Grafana", "uri": "https://grafana.example.com", "logo_uri": ""},
        "user": {"id": alice.id, "email": alice.email},
        "scope": "openid email",
        "resource": None,
    }
    # A reload of the page reads the same.
    assert session.get(path).json == response.json
    url = approve(session, path).json["redirect_url"]
    assert url.startswith(f"{SITE}/oauth/continue?authorization_id=")
    assert database.count("oauth_requests", "code_hash IS NOT NULL") == 0
    parameters = answer(visitor.visit(url).url)
    assert parameters == {"code": parameters["code"], "state": "a state & more", "iss": SITE}
    row = database.one("SELECT * FROM oauth_requests")
    assert (row.user_id, row.session_id, row.code_hash is not None) == (alice.id, session.id, True)
    assert database.value("SELECT scopes FROM oauth_grants") == ["openid", "email"]
    assert database.count("audit_log", "action = 'grant_added'") == 1


def test_denial_goes_back_with_access_denied_and_ends_the_request(session, begin, database):
    path = begin()
    session.get(path)
    url = session.post(f"{path}/consent", json={"action": "deny"}).json["redirect_url"]
    assert answer(url)["error"] == "access_denied"
    assert (database.count("oauth_requests"), database.count("oauth_grants")) == (0, 0)
    assert_error(session.get(path), 404, "oauth_authorization_not_found")


def test_grant_that_covers_the_scopes_approves_at_once(session, begin, visitor, alice, client_id, database):
    path = begin()
    grant(database, alice.id, client_id)
    assert session.get(path).json.keys() == {"redirect_url"}
    pending = "authorization_id: the request is no longer pending"
    assert_error(session.get(path), 400, "validation_failed", details=pending)
    assert "authorization_id" in session.get(begin(scope="openid groups")).json
    assert "authorization_id" in session.get(begin(prompt="consent")).json
    url = session.get(begin(scope="openid")).json["redirect_url"]
    assert answer(visitor.visit(url).url)["code"]


class TestBinding:
    def test_only_the_first_user_who_reads_the_request_may_decide(self, session, begin, bob, app):
        path, other = begin(), bob.open_session(app.test_client())
        # The request has no user yet.
        assert_error(approve(session, path), 404, "oauth_authorization_not_found")
        session.get(path)
        assert_error(other.get(path), 404, "oauth_authorization_not_found")
        assert_error(approve(other, path), 404, "oauth_authorization_not_found")
        assert approve(session, path).status_code == 200

    def test_code_is_given_only_in_the_browser_that_began_the_request(
        self, session, begin, visitor, app, database
    ):
        """An attacker begins a request, and has the victim approve it: the code is not the attacker's, nor
        does the victim get signed in to the attacker's client."""
        url = url_of_approval(session, begin())
        victim = Visitor(app)
        for _ in range(2):
            page = victim.visit(url)
            assert (page.status, page.url) == (404, url)
            assert "started in another browser" in page.text
            # The second time, the victim's browser has the cookie of a request of its own.
            victim.visit(authorize_path(insert_client(database)))
        assert database.count("oauth_requests", "code_hash IS NOT NULL") == 0
        assert answer(visitor.visit(url).url)["code"]

    def test_browser_alone_does_not_get_the_code(self, session, begin, visitor):
        """The attacker who began a request learns its id, but not the secret of the approval."""
        url = url_of_approval(session, path := begin())
        (approval,) = parse_qs(urlsplit(url).query)["approval"]
        for guess in ("", "x" * 43, path.rpartition("/")[2], approval[::-1]):
            assert visitor.visit(url.replace(approval, guess)).status == 404
        assert answer(visitor.visit(url).url)["code"]


class TestStates:
    @cases("state", ["expires_at = now()", "id_hash = sha256(id_hash)"])
    def test_expired_or_unknown_request_is_not_found(self, session, begin, visitor, database, state):
        path = begin()
        url = url_of_approval(session, begin())
        database.run(f"UPDATE oauth_requests SET {state} WHERE approval_hash IS NULL")
        assert_error(session.get(path), 404, "oauth_authorization_not_found")
        assert_error(approve(session, path), 404, "oauth_authorization_not_found")
        database.run(f"UPDATE oauth_requests SET {state} WHERE approval_hash IS NOT NULL")
        assert visitor.visit(url).status == 404
        database.run("DELETE FROM oauth_requests; DELETE FROM oauth_grants")

    @cases("body", [{}, {"action": "maybe"}, {"action": None}, {"action": ["approve"]}])
    def test_other_action_is_refused(self, session, begin, body):
        path = begin()
        session.get(path)
        response = session.post(f"{path}/consent", json=body)
        assert (response.status_code, response.json["error_code"]) == (400, "validation_failed")


class TestUsers:
    def test_session_that_lacks_a_step_is_refused(self, begin, alice, app):
        set_up(alice.open_session())
        session = alice.sign_in(client=app.test_client())
        path = begin()
        assert_error(session.get(path), 403, "insufficient_aal")
        assert_error(approve(session, path), 403, "insufficient_aal")


REFUSED = "https://evil.example http://app.example.com https://app.example.com.evil.example null"


class TestOrigins:
    @cases("origin", ["https://app.example.com", "https://spa.example.com", SITE, *REFUSED.split()])
    def test_page_that_may_receive_tokens_may_decide(self, session, begin, database, origin):
        database.run("DELETE FROM oauth_grants")
        path, headers = begin(), session.authorization | {"Origin": origin}
        answers = [session.client.get(path, headers=headers)]
        answers += [session.client.post(f"{path}/consent", json={"action": "approve"}, headers=headers)]
        for response in answers:
            if origin in REFUSED.split():
                details = "Origin: must be allowed by AUTH_REDIRECT_ALLOW_LIST"
                assert_error(response, 400, "validation_failed", details=details)
            else:
                assert response.status_code == 200


class TestRaces:
    """One of many requests at once wins."""

    def test_approvals_give_one_secret(self, session, begin, database):
        path = begin()
        session.get(path)
        responses = at_once(50, lambda _: approve(session, path))
        assert sorted(response.status_code for response in responses) == [200] + [400] * 49
        assert database.count("audit_log", "action = 'grant_added'") == 1

    def test_approvals_and_denials_have_one_winner(self, session, begin, database):
        path = begin()
        session.get(path)
        actions = ("approve", "deny")
        responses = at_once(
            50, lambda number: session.post(f"{path}/consent", json={"action": actions[number % 2]})
        )
        assert [response.status_code for response in responses].count(200) == 1
        assert database.count("oauth_requests") == database.count("oauth_grants")

    def test_request_is_bound_to_the_first_of_two_users(self, session, begin, bob, app):
        path, sessions = begin(), [session, bob.open_session(app.test_client())]
        statuses = at_once(50, lambda number: sessions[number % 2].get(path).status_code)
        assert sorted(statuses) == [200] * 25 + [404] * 25

    def test_continuations_give_one_code(self, session, begin, visitor, app, database):
        url = url_of_approval(session, begin()).removeprefix(SITE)
        headers = {"Cookie": "; ".join(f"{each.name}={each.value}" for each in visitor.cookies)} | BROWSER
        client = app.test_client(use_cookies=False)
        responses = at_once(50, lambda _: client.get(url, headers=headers))
        assert sorted(response.status_code for response in responses) == [302] + [404] * 49
        assert database.count("oauth_requests", "code_hash IS NOT NULL") == 1

    def test_deleted_client_leaves_nothing(self, session, begin, client_id, client, service_role, database):
        paths = [begin() for _ in range(20)]
        for path in paths:
            session.get(path)

        def send(number: int) -> int:
            if number < 20:
                return approve(session, paths[number]).status_code
            return client.delete(
                f"/auth/v1/admin/oauth/clients/{client_id}", headers=service_role
            ).status_code

        statuses = at_once(21, send)
        assert {*statuses} <= {200, 204, 404}
        assert statuses[20] == 204
        assert (database.count("oauth_requests"), database.count("oauth_grants")) == (0, 0)
