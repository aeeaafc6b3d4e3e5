"""A grant to an application is an addition to the account, and is removed like one."""

import pytest

from tests.support.answers import A_TIMESTAMP, A_UUID
from tests.support.links import BROWSER, SITE, follow, fragment
from tests.support.openid import REDIRECT_URI, allow, authorize_path, insert_public_client, make_client
from tests.support.users import NEW_PASSWORD


@pytest.fixture
def grafana(database):
    return insert_public_client(database)


def state_of(database, session_id):
    """Return why a session has ended, `live`, or None if it is gone."""
    return database.value(
        "SELECT max(coalesce(end_reason, 'live')) FROM sessions WHERE id = %(id)s", id=session_id
    )


def recent_changes(session):
    return session.get("/user/recent_changes").json["recent_changes"]


class TestAsAnAddition:
    def test_recent_grant_is_listed_and_removed_with_the_rest(self, alice, grafana, database):
        session, other, app_session_id = alice.sign_in(), alice.sign_in(), allow(database, alice.id, grafana)
        (change,) = recent_changes(session)
        assert change == {"id": A_UUID, "type": "grant", "added_at": A_TIMESTAMP, "label": "Grafana"}
        assert session.put("/user", json={"remove": [change["id"]]}).status_code == 200
        assert (recent_changes(session), state_of(database, app_session_id)) == ([], None)
        # A caller who may remove a grant may not end the user's own sessions.
        assert other.get("/user").status_code == 200
        assert (
            database.count("audit_log", "action = 'grant_removed' AND details ->> 'client' = 'Grafana'") == 1
        )


def agree(session, client_id, scope="openid email"):
    """Allow an application as its user, by the JSON interface of consent."""
    redirect = session.client.get(authorize_path(client_id, scope=scope, redirect_uri=REDIRECT_URI))
    request = f"/oauth/authorizations/{redirect.location.partition('authorization_id=')[2]}"
    response = session.get(request)
    if "redirect_url" not in response.json:
        response = session.post(f"{request}/consent", json={"action": "approve"})
    assert response.status_code == 200, response.text


class TestNotice:
    def test_first_grant_is_mailed_with_a_link_that_undoes_it(self, client, alice, database, mailbox):
        grafana = make_client(database, name="Grafana")
        session = alice.sign_in()
        agree(session, grafana.id)
        (notice,) = mailbox.messages_to(alice.email)
        assert notice.subject == "An application was connected to your account"
        assert "sign in to “Grafana”. It can see the data you agreed to share." in notice.text
        agree(session, grafana.id, "openid email profile")
        assert len(mailbox.messages_to(alice.email)) == 1
        is_added = "action = 'grant_added' AND details ->> 'client' = 'Grafana'"
        assert database.count("audit_log", is_added) == 2
        response = client.get(mailbox.link_for(alice.email).removeprefix(SITE))
        assert fragment(response)["type"] == "undo"
        assert database.count("oauth_grants") == 0
        assert session.get("/user").status_code == 401

    def test_page_of_the_link_names_the_application(self, client, alice, database, outbox):
        agree(alice.sign_in(), make_client(database, name="<b>Grafana").id)
        notice = outbox.last(alice.email, "application_added")
        page = client.get(f"/verify?type=undo&token={notice.token}", headers=BROWSER).text
        assert 'The application <bdi translate="no">&lt;b&gt;Grafana</bdi>' in page

    def test_first_use_of_an_application_without_consent_is_mailed(self, alice, database, outbox):
        id = make_client(database, skip_consent=True).id
        for _ in range(2):
            agree(alice.sign_in(), id)
        assert (database.count("oauth_grants"), outbox.kinds()) == (1, [("application_added", alice.email)])

    def test_mail_does_not_contain_the_name_that_a_client_gave_itself(self, alice, database, mailbox):
        name = "Call 555 0100 to keep your account"
        agree(alice.sign_in(), make_client(database, name=name, is_dynamic=True).id)
        (notice,) = mailbox.messages_to(alice.email)
        assert "sign in to a new application" in notice.text
        assert "555" not in notice.text


class TestEnd:
    def test_request_in_progress_survives_a_new_password(self, client, alice, database):
        """The user may have started there and forgotten the password."""
        session, grafana = alice.sign_in(), make_client(database)
        url = client.get(authorize_path(grafana.id, redirect_uri=REDIRECT_URI)).location
        request = f"/oauth/authorizations/{url.partition('authorization_id=')[2]}"
        assert session.get(request).status_code == 200
        assert session.put("/user", json={"password": NEW_PASSWORD}).status_code == 200
        assert session.get(request).status_code == 200

    def test_first_proof_of_an_address_removes_what_a_stranger_allowed(
        self, client, grafana, database, outbox
    ):
        client.post("/signup", json={"email": "dave@example.com", "password": NEW_PASSWORD})
        owner = database.value("SELECT id::text FROM users WHERE email = 'dave@example.com'")
        allow(database, owner, grafana)
        assert follow(client, "signup", outbox.last("dave@example.com").token).status_code == 303
        assert database.count("oauth_grants") == 0
