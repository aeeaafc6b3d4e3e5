"""The user object follows the user's identities and carries the deployment's audience."""

import pytest

IDENTITY = "INSERT INTO identities (user_id, provider, subject, identity_data) VALUES (%(id)s, 'google', 'alice', '{\"sub\": \"alice\"}')"


@pytest.mark.parametrize(
    ("change", "provider", "providers"),
    [
        (IDENTITY, "email", ["email", "google"]),
        ("UPDATE identities SET provider = 'phone' WHERE user_id = %(id)s", "phone", ["phone"]),
        ("DELETE FROM identities WHERE user_id = %(id)s", None, []),
    ],
    ids=["added", "changed", "removed"],
)
def test_user_object_lists_the_identities_when_one_is(database, alice, change, provider, providers):
    session = alice.sign_in()
    database.run(change, id=alice.id)

    user = session.get("/user").json
    assert (user["app_metadata"]["provider"], user["app_metadata"]["providers"]) == (provider, providers)
    assert [identity["provider"] for identity in user["identities"]] == providers
    assert session.refreshed().get("/user").json == user


def test_user_object_escapes_the_audience(make_app):
    client = make_app(AUTH_JWT_AUDIENCE='"}, \\"', AUTH_AUTOCONFIRM="true").test_client()
    signed_up = client.post("/signup", json={"email": "dave@example.com", "password": "Correct-Horse-1"}).json

    answer = client.get("/user", headers={"Authorization": f"Bearer {signed_up['access_token']}"})
    assert answer.json == signed_up["user"]
    assert answer.json["aud"] == '"}, \\"'
