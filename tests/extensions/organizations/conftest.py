import pytest

from tests.support.links import Outbox
from tests.support.openid_flow import make_application
from tests.support.pages import Visitor


@pytest.fixture
def client(make_app):
    return make_app(AUTH_ORGANIZATIONS="users").test_client()


@pytest.fixture
def owner(alice, client):
    """Alice's session. She owns Acme."""
    return alice.open_session(client)


@pytest.fixture
def acme(owner) -> str:
    """The path of Acme."""
    response = owner.post("/organizations", json={"name": "Acme", "slug": "acme"})
    assert response.status_code == 201, response.text
    return f"/organizations/{response.json['id']}"


@pytest.fixture
def join(client, owner):
    """Have a person join an organization, as invited by its owner; return the session."""

    def join(person, organization, role="member"):
        session = person.open_session(client)
        response = owner.post(f"{organization}/invitations", json={"email": person.email, "role": role})
        assert response.status_code == 201, response.text
        assert session.post(f"/user/invitations/{response.json['id']}").json["role"] == role
        return session.refreshed()

    return join


@pytest.fixture
def application(client, database):
    return make_application(client, database, name="Wiki")


@pytest.fixture
def beta(owner) -> str:
    response = owner.post("/organizations", json={"name": "Beta", "slug": "beta"})
    assert response.status_code == 201, response.text
    return f"/organizations/{response.json['id']}"


@pytest.fixture
def browser(client):
    """Return a browser in which a person is signed in."""
    return lambda person: Visitor(client.application).with_session_of(person)


@pytest.fixture
def tokens(application, browser):
    """Return the tokens of a person who has allowed the application."""

    def tokens(person, scope="openid organization", **changes):
        return application.tokens(browser(person), scope=scope, **changes)

    return tokens


@pytest.fixture
def browse(client):
    """Return a browser in which a person is signed in, or nobody."""

    def browse(person=None):
        visitor = Visitor(client.application)
        return visitor.with_session_of(person) if person else visitor

    return browse


@pytest.fixture
def mails(client, database):
    return Outbox(client.application.extensions["latchkey"], database)


@pytest.fixture
def invite(acme, owner):
    def invite(email, role="member"):
        response = owner.post(f"{acme}/invitations", json={"email": email, "role": role})
        assert response.status_code == 201, response.text
        return response.json["id"]

    return invite
