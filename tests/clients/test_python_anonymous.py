"""The official Python clients: anonymous users, and id_tokens."""

from collections.abc import Iterator
from typing import Any

import pytest

from auth.web.context import EXTENSION
from tests.support.apps import new_app
from tests.support.fake_provider import FakeProvider
from tests.support.links import DIGITS, PHONE
from tests.support.processes import free_port
from tests.support.python_clients import refused
from tests.support.server import ServerClient, served
from tests.support.user_agent import UserAgent
from tests.support.users import DAVE, PASSWORD


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider("keycloak") as provider:
        provider.person = {"sub": "dave-at-keycloak", "email": DAVE, "email_verified": True}
        yield provider


@pytest.fixture(scope="module")
def running(environment, provider) -> Iterator[ServerClient]:
    port = free_port()
    settings = {"AUTH_BASE_URL": f"http://localhost:{port}", "AUTH_ANONYMOUS_ENABLED": "true"}
    app = new_app({**environment, **settings, **provider.settings()})
    with served(app, port) as client:
        yield client
    app.extensions[EXTENSION].db.close()


@pytest.fixture
def service(running: ServerClient, database, app) -> ServerClient:
    return running


@pytest.fixture
def auth(connect, service) -> Any:
    return connect(of=service).auth


@pytest.fixture
def visitor(auth) -> Any:
    """A client with the session of an anonymous user."""
    auth.sign_in_anonymously()
    return auth


class TestAnonymousUser:
    def test_signs_in_and_refreshes(self, auth):
        response = auth.sign_in_anonymously({"options": {"data": {"theme": "dark"}}})
        assert (response.user.is_anonymous, response.user.email) == (True, "")
        assert response.user.user_metadata == {"theme": "dark"}
        assert auth.refresh_session().user.id == response.user.id
        assert auth.get_claims()["claims"]["is_anonymous"] is True

    def test_becomes_permanent_by_a_code(self, visitor, connect, service, outbox):
        user_id = visitor.get_user().user.id
        with refused(422, "validation_failed"):
            visitor.update_user({"password": PASSWORD})
        assert visitor.update_user({"email": DAVE}).user.new_email == DAVE
        code = outbox.last(DAVE, "email_change").code
        verified = visitor.verify_otp({"type": "email_change", "email": DAVE, "token": code})
        assert (verified.user.id, verified.user.is_anonymous) == (user_id, False)
        visitor.update_user({"password": PASSWORD})
        other = connect(of=service).auth
        assert other.sign_in_with_password({"email": DAVE, "password": PASSWORD}).user.id == user_id

    def test_user_becomes_permanent_by_a_link_that_does_not_sign_in(self, visitor, connect, service, outbox):
        visitor.update_user({"email": DAVE})
        link = {"type": "email_change", "token_hash": outbox.last(DAVE, "email_change").token}
        stranger = connect(of=service).auth
        response = stranger.verify_otp(link)
        assert (response.user, response.session, stranger.get_session()) == (None, None, None)
        assert visitor.refresh_session().user.email == DAVE
        assert visitor.get_claims()["claims"]["is_anonymous"] is False

    def test_becomes_permanent_by_a_phone(self, visitor, outbox):
        user_id = visitor.get_user().user.id
        visitor.update_user({"phone": DIGITS})
        code = outbox.last(PHONE).code
        verified = visitor.verify_otp({"type": "phone_change", "phone": DIGITS, "token": code})
        assert (verified.user.id, verified.user.phone) == (user_id, DIGITS)

    def test_becomes_permanent_by_a_provider(self, visitor):
        user_id, browser = visitor.get_user().user.id, UserAgent()
        browser.visit(visitor.link_identity({"provider": "keycloak"}).url)
        browser.submit()
        user = visitor.refresh_session().user
        assert (user.id, user.email, user.is_anonymous) == (user_id, DAVE, False)
        identities = visitor.get_user_identities().identities
        assert [identity.provider for identity in identities] == ["keycloak", "email"]


class TestIdToken:
    def test_signs_in(self, auth, provider):
        response = auth.sign_in_with_id_token({"provider": "keycloak", "token": provider.id_token()})
        assert (response.user.email, response.session.user.app_metadata["provider"]) == (DAVE, "keycloak")
        assert auth.get_user().user.id == response.user.id

    def test_works_once(self, auth, provider):
        credentials = {"provider": "keycloak", "token": provider.id_token()}
        auth.sign_in_with_id_token(credentials)
        with refused(400, "bad_oauth_callback", "Bad ID token"):
            auth.sign_in_with_id_token(credentials)
