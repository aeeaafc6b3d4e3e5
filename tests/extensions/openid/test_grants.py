"""GET and DELETE /user/oauth/grants."""

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error
from tests.support.openid import allow, insert_public_client

ROUTE = "/user/oauth/grants"


def grant_of(client_id, name, scopes=("openid", "email")):
    members = {"id": client_id, "name": name, "uri": "", "logo_uri": ""}
    return {"client": members, "scopes": list(scopes), "granted_at": A_TIMESTAMP}


@pytest.fixture
def grafana(database):
    return insert_public_client(database)


def test_grants_are_listed_newest_first_and_only_to_their_user(alice, bob, grafana, database):
    gitea = insert_public_client(database, name="Gitea")
    allow(database, alice.id, grafana, age="2 days", scopes=["openid", "groups"])
    allow(database, alice.id, gitea, age="1 day")
    response = alice.sign_in().get(ROUTE)
    assert response.json == [grant_of(gitea, "Gitea"), grant_of(grafana, "Grafana", ["openid", "groups"])]
    assert bob.sign_in().get(ROUTE).json == []


def test_removed_grant_takes_its_sessions_and_requests_along(alice, bob, grafana, database):
    gitea = insert_public_client(database, name="Gitea")
    for person, client in ((alice, grafana), (alice, gitea), (bob, grafana)):
        allow(database, person.id, client)
        database.run(
            "INSERT INTO oauth_requests (id_hash, client_id, browser_hash, redirect_uri, scopes, expires_at,"
            " user_id, session_id) VALUES (%(hash)s, %(client)s, '', '', '{}', now(), %(user)s, gen_random_uuid())",
            hash=f"{person.id}{client}".encode(),
            client=client,
            user=person.id,
        )
    session = alice.sign_in()
    response = session.delete(f"{ROUTE}?client_id={grafana}")
    assert (response.status_code, response.data) == (204, b"")
    remaining = {(alice.id, gitea), (bob.id, grafana)}
    for table in ("oauth_grants", "oauth_requests"):
        assert {(row.user_id, row.client_id) for row in database.all(f"SELECT * FROM {table}")} == remaining
    assert database.count("sessions", "grant_id IS NOT NULL") == 2
    assert session.get("/user").status_code == 200
    (row,) = database.all("SELECT user_id, details FROM audit_log WHERE action = 'grant_removed'")
    assert (row.user_id, row.details) == (alice.id, {"client_id": grafana, "client": "Grafana"})


@pytest.mark.parametrize("query", ["", "?client_id=", "?client_id=x"])
def test_client_id_must_be_a_uuid(alice, query):
    response = alice.sign_in().delete(f"{ROUTE}{query}")
    assert_error(response, 400, "validation_failed", details=A_SENTENCE)


def test_client_without_a_grant_is_not_found(alice, bob, grafana, database):
    allow(database, bob.id, grafana)
    response = alice.sign_in().delete(f"{ROUTE}?client_id={grafana}")
    assert_error(response, 404, "oauth_consent_not_found")
    assert database.count("oauth_grants") == 1
