import pytest


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
    """Have a person join an organisation, as invited by its owner; return the session."""

    def join(person, organization, role="member"):
        session = person.open_session(client)
        invited = owner.post(f"{organization}/invitations", json={"email": person.email, "role": role})
        assert invited.status_code == 201, invited.text
        assert session.post(f"/user/invitations/{invited.json['id']}").json["role"] == role
        return session.refreshed()

    return join
