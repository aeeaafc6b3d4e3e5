"""Refresh tokens, codes and costs of applications' sessions for an organization: as for other sessions."""

import pytest

from tests.support.answers import assert_error
from tests.support.checked_rows import statements_run
from tests.support.openid import assert_refused, claims_of, make_client
from tests.support.pages import Visitor

SCOPE = "openid organization"
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"


def test_lost_answer_is_repeated_and_a_dead_token_ends_the_session(
    alice, acme, tokens, application, database
):
    first = tokens(alice)["refresh_token"]
    second = application.refresh(first).json["refresh_token"]
    repeated = application.refresh(first).json
    assert claims_of(repeated["access_token"])["organization"]["slug"] == "acme"
    assert repeated["refresh_token"] == second
    application.refresh(second)
    database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '1 hour', echoes = '[]'")
    assert_refused(application.refresh(first), "invalid_grant")
    reasons = database.all("SELECT end_reason FROM sessions WHERE organization_id IS NOT NULL")
    assert reasons == [("refresh_token_reused",)]


def test_token_that_does_not_rotate_still_needs_the_membership(alice, acme, make_app, application, database):
    app = make_app(AUTH_ORGANIZATIONS="users", AUTH_REFRESH_TOKEN_ROTATION="false")
    application.http = app.test_client()
    token = application.tokens(Visitor(app).with_session_of(alice), scope=SCOPE)["refresh_token"]
    assert application.refresh(token).json["refresh_token"] == token
    database.run("UPDATE organizations SET level = 'aal2'")
    assert_refused(application.refresh(token), "invalid_grant")


def test_refresh_token_is_no_users_and_can_be_revoked(alice, acme, tokens, application, client, database):
    token = tokens(alice)["refresh_token"]
    response = client.post("/token?grant_type=refresh_token", json={"refresh_token": token})
    assert_error(response, 400, "refresh_token_not_found")
    assert application.client.post(client, "/oauth/revoke", token=token).status_code == 200
    assert_refused(application.refresh(token), "invalid_grant")
    assert database.count("sessions", "organization_id IS NOT NULL AND end_reason = 'logout'") == 1


def test_session_stays_with_its_organization_when_the_short_name_moves(
    alice, acme, beta, tokens, application, client, service_role
):
    token = tokens(alice, "openid organization:acme")["refresh_token"]
    for path, slug in ((acme, "old"), (beta, "acme")):
        assert client.put(path, json={"slug": slug}, headers=service_role).status_code == 200
    organization = claims_of(application.refresh(token).json["access_token"])["organization"]
    assert (organization["id"], organization["slug"]) == (acme.rpartition("/")[2], "old")


@pytest.mark.parametrize("name", ["user", "refresh", "userinfo", "introspection"])
def test_statements_are_as_many_with_a_membership_as_without(
    alice, bob, acme, tokens, application, client, name
):
    counts = []
    for person, scope in ((bob, "openid"), (alice, "openid"), (alice, SCOPE)):
        answer, session = tokens(person, scope), person.open_session(client)
        requests = {
            "user": lambda session=session: session.get("/user"),
            "refresh": lambda answer=answer: application.refresh(answer["refresh_token"]),
            "userinfo": lambda answer=answer: application.userinfo(answer["access_token"]),
            "introspection": lambda answer=answer: application.client.post(
                client, "/introspect", token=answer["access_token"]
            ),
        }
        before = statements_run()
        assert requests[name]().status_code == 200
        counts.append(statements_run() - before)
    assert counts == counts[:1] * 3


class TestWaiting:
    """A membership that is lost meanwhile, and comes back."""

    @pytest.fixture
    def lose(self, bob, acme, owner, join):
        def lose():
            assert owner.delete(f"{acme}/members/{bob.id}").status_code == 204
            join(bob, acme)

        return lose

    def test_approval_gives_no_code_once_the_membership_was_lost(
        self, bob, acme, join, lose, application, make_app
    ):
        member = join(bob, acme)
        consent_url = "https://app.example.com/consent"
        visitor = Visitor(make_app(AUTH_ORGANIZATIONS="users", AUTH_OAUTH_CONSENT_URL=consent_url))
        page = application.begin(visitor, scope=SCOPE)
        path = f"/oauth/authorizations/{page.url.rpartition('=')[2]}"
        assert member.get(path).status_code == 200
        url = member.post(f"{path}/consent", json={"action": "approve"}).json["redirect_url"]
        lose()
        page = visitor.visit(url)
        assert (page.status, "code=" in page.url) == (404, False)

    def test_code_of_a_device_gives_nothing_once_the_membership_was_lost(
        self, bob, acme, join, lose, client, database, browser
    ):
        join(bob, acme)
        television = make_client(database, grant_types=[DEVICE_CODE])
        codes = television.post(client, "/oauth/device_authorization", scope=SCOPE).json
        visitor = browser(bob)
        database.run("UPDATE sessions SET reauthenticated_at = now()")
        visitor.visit(f"/device?user_code={codes['user_code']}")
        visitor.submit(user_code=codes["user_code"])
        visitor.submit(action="approve")
        assert database.count("oauth_requests", "decision = 'approved'") == 1
        lose()
        form = {"grant_type": DEVICE_CODE, "device_code": codes["device_code"]}
        assert_refused(television.post(client, "/oauth/token", **form), "invalid_grant")
        assert database.count("sessions", "grant_id IS NOT NULL") == 0
