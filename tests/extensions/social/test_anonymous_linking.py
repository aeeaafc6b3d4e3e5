"""An anonymous user becomes permanent with the first identity of a provider."""

import pytest

from tests.support.answers import A_SENTENCE
from tests.support.links import follow
from tests.support.oauth import assert_failed, begin_linking, fragment, identities_of, link
from tests.support.server import at_once
from tests.support.users import register, session_of, sign_up_anonymously

pytest_plugins = ["tests.support.oauth_fixtures"]
ADDRESS = "dave@gmail.example"
DONE = {"message": A_SENTENCE, "type": "identity_linked"}


@pytest.fixture
def service(make_service):
    return make_service(AUTH_ANONYMOUS_ENABLED="true")


@pytest.fixture
def visitor(service):
    return sign_up_anonymously(service.client)


@pytest.fixture(autouse=True)
def person(google):
    google.person = {"sub": "dave-at-google", "email": ADDRESS, "email_verified": True}


@pytest.fixture
def hand_over(service, google):
    """Link the identity of an id_token."""

    def hand_over(session, client=service.client, **claims):
        body = {"provider": "google", "id_token": google.id_token(**claims), "link_identity": True}
        return client.post("/token?grant_type=id_token", json=body, headers=session.authorization)

    return hand_over


class TestFlow:
    def test_user_becomes_permanent_with_the_same_id_and_other_sessions_end(self, service, visitor, database):
        database.run("INSERT INTO sessions (user_id, method) SELECT id, 'anonymous' FROM users")
        # An old session of an anonymous user needs no reauthentication.
        database.run("UPDATE sessions SET created_at = created_at - interval '20 days'")
        assert fragment(link(service, visitor, "google")) == DONE
        user = visitor.get("/user").json
        assert (user["id"], user["is_anonymous"]) == (visitor.user["id"], False)
        assert (user["email"], list(identities_of(visitor))) == (ADDRESS, ["google", "email"])
        assert user["app_metadata"] == {"provider": "google", "providers": ["google", "email"]}
        assert database.value("SELECT email_proved FROM users") is True
        assert database.count("sessions", "end_reason = 'address_proved'") == 1
        assert visitor.refreshed().claims["is_anonymous"] is False
        assert service.signed_in("google").get("/user").json["id"] == visitor.user["id"]

    def test_email_of_an_untrusted_provider_is_not_proved(self, service, visitor, acme, outbox, database):
        acme.person = {"sub": "dave", "email": "dave@acme.example", "email_verified": True}
        link(service, visitor, "acme")
        row = database.one("SELECT email, email_proved, email_confirmed_at IS NOT NULL FROM users")
        assert row == ("dave@acme.example", False, True)
        assert outbox.sent() == []

    def test_taken_email_is_left_out(self, service, service_role, visitor, outbox):
        register(service.client, service_role, ADDRESS)
        assert fragment(link(service, visitor, "google")) == DONE
        user = visitor.get("/user").json
        assert (user["email"], user["is_anonymous"]) == (None, False)
        assert list(identities_of(visitor)) == ["google"]
        assert outbox.kinds() == []

    def test_flow_from_before_the_first_address_is_refused(self, service, visitor, outbox):
        browser = service.browser()
        page = browser.visit(begin_linking(service, visitor, "google"))
        assert "the account that requested this" in page.text
        visitor.put("/user", json={"email": "dave@example.com"})
        follow(service.client, "email_change", outbox.last(kind="email_change").token)
        assert_failed(browser.submit(), "reauthentication_needed")
        assert list(identities_of(visitor)) == ["email"]


class TestIdToken:
    def test_session_continues_as_that_of_a_permanent_user(self, service, visitor, hand_over, database):
        linked = session_of(service.client, hand_over(visitor))
        assert (linked.id, linked.user["id"]) == (visitor.id, visitor.user["id"])
        assert (linked.user["is_anonymous"], linked.claims["is_anonymous"]) == (False, False)
        assert (linked.user["email"], database.count("users")) == (ADDRESS, 1)
        rows = database.all("SELECT DISTINCT action FROM audit_log WHERE actor_id IS NOT NULL ORDER BY 1")
        assert {"identity_linked", "email_confirmed"} <= {row.action for row in rows}

    def test_one_of_several_concurrent_links_succeeds(self, service, visitor, hand_over, google, database):
        del google.person["email"]

        def hand_in(i):
            claims = {"sub": f"person-{i}", "jti": f"token-{i}"}
            return hand_over(visitor, service.app.test_client(), **claims).status_code

        statuses = at_once(20, hand_in)
        assert (statuses.count(200), set(statuses)) == (1, {200, 400})
        assert database.count("identities") == 1
