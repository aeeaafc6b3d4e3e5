"""An open invitation lets the code of its address make a user while sign-up is closed, and tells nobody of it."""

import pytest

from tests.support.checked_rows import statements_run
from tests.support.links import Outbox, hand_in, type_in
from tests.support.pages import Visitor, words
from tests.support.users import session_of, sign_up_anonymously

NEW, STRANGER = "new@example.com", "stranger@example.com"


@pytest.fixture
def client(make_app):
    return make_app(AUTH_ORGANIZATIONS="users", AUTH_DISABLE_SIGNUP="true").test_client()


@pytest.fixture
def invitation_id(acme, owner):
    response = owner.post(f"{acme}/invitations", json={"email": NEW, "role": "member"})
    assert response.status_code == 201
    return response.json["id"]


@pytest.fixture
def outbox(client, database):
    return Outbox(client.application.extensions["latchkey"], database)


def ask(client, email, **members):
    return client.post("/otp", json={"email": email, **members})


def test_code_makes_the_user_of_an_invited_address(client, invitation_id, outbox, database):
    assert ask(client, NEW).status_code == 200
    assert database.count("users", "email = 'new@example.com' AND NOT email_proved") == 1
    assert type_in(client, "email", NEW, outbox.last(NEW, "magiclink").code).status_code == 200
    assert database.count("users", "email = 'new@example.com' AND email_proved") == 1
    assert database.count("memberships", "role = 'member'") == 0


def test_code_on_the_sign_in_page_makes_the_user_too(client, invitation_id, outbox):
    visitor = Visitor(client.application)
    visitor.visit("/sign-in")
    visitor.press("sign-in/code", email=NEW)
    visitor.press("sign-in/verify", code=outbox.last(NEW, "magiclink").code)
    assert "Your account" in words(visitor.page)


@pytest.mark.parametrize("spoil", ["expired", "ended", "other"])
def test_address_without_an_open_invitation_gets_no_user(client, invitation_id, database, spoil):
    if spoil == "expired":
        database.run("UPDATE organization_invitations SET expires_at = now()")
    if spoil == "ended":
        database.run("UPDATE organizations SET ended_at = now()")
    email = STRANGER if spoil == "other" else NEW
    assert ask(client, email).status_code == 200
    assert database.count("users", "email <> 'alice@example.com'") == 0


LAPSES = {
    "expired": "UPDATE organization_invitations SET expires_at = now()",
    "withdrawn": "DELETE FROM organization_invitations",
    "ended": "UPDATE organizations SET ended_at = now()",
}


@pytest.mark.parametrize("lapse", LAPSES)
def test_code_that_was_asked_for_before_the_invitation_lapsed_lets_nobody_in(
    client, invitation_id, outbox, database, service_role, lapse
):
    ask(client, NEW)
    database.run(LAPSES[lapse])
    response = type_in(client, "email", NEW, outbox.last(NEW).code)
    assert (response.status_code, response.json["error_code"]) == (403, "otp_expired")
    assert (
        database.count("sessions", "user_id IN (SELECT id FROM users WHERE email = 'new@example.com')") == 0
    )
    assert database.count("users", "email = 'new@example.com' AND NOT email_proved") == 1
    # Neither does a later one, nor a recovery: nothing is sent.
    ask(client, NEW)
    client.post("/recover", json={"email": NEW})
    assert len(outbox.sent(NEW)) == 2, "the invitation and the first code"
    # An operator's word does.
    invited = client.post("/admin/invite", json={"email": NEW}, headers=service_role)
    assert invited.status_code == 200
    assert hand_in(client, "invite", outbox.last(NEW, "invite").token).status_code == 200


def test_generated_link_lets_in_a_user_whose_invitation_has_lapsed(
    client, invitation_id, database, service_role
):
    ask(client, NEW)
    database.run(LAPSES["withdrawn"])
    body = {"type": "magiclink", "email": NEW}
    link = client.post("/admin/generate_link", json=body, headers=service_role).json
    assert hand_in(client, "magiclink", link["hashed_token"]).status_code == 200


def test_code_from_before_sign_up_was_closed_lets_in_no_new_user_and_everybody_else(
    make_app, client, alice, database
):
    open_client = make_app().test_client()
    outbox = Outbox(open_client.application.extensions["latchkey"], database)
    for email in (STRANGER, alice.email):
        ask(open_client, email)
    stranger = type_in(client, "email", STRANGER, outbox.last(STRANGER).code)
    assert (stranger.status_code, stranger.json["error_code"]) == (403, "otp_expired")
    assert type_in(client, "email", alice.email, outbox.last(alice.email).code).status_code == 200


def test_invitation_that_is_withdrawn_while_its_code_waits_lets_nobody_in(
    client, invitation_id, acme, owner, outbox, database
):
    ask(client, NEW)
    code, user_id = (
        outbox.last(NEW).code,
        database.value("SELECT id FROM users WHERE email = 'new@example.com'"),
    )
    with database.locked("users", user_id) as lock:
        answer = lock.start(lambda: type_in(client.application.test_client(), "email", NEW, code))
        assert owner.delete(f"{acme}/invitations/{invitation_id}").status_code == 204
    assert answer.result().status_code == 403
    assert database.count("users", "email_proved AND email = 'new@example.com'") == 0


def test_invitation_that_is_withdrawn_after_its_code_leaves_the_user(
    client, invitation_id, acme, owner, outbox
):
    ask(client, NEW)
    session = session_of(client, type_in(client, "email", NEW, outbox.last(NEW).code))
    assert owner.delete(f"{acme}/invitations/{invitation_id}").status_code == 204
    assert session.refreshed().get("/user").status_code == 200
    ask(client, NEW)
    assert type_in(client, "email", NEW, outbox.last(NEW).code).status_code == 200


@pytest.mark.parametrize(("email", "kind"), [(NEW, "email_change"), (STRANGER, "none")])
def test_anonymous_user_gets_a_message_at_an_invited_address_alone(
    make_app, invitation_id, database, email, kind
):
    anonymous = sign_up_anonymously(make_app(AUTH_ANONYMOUS_ENABLED="true").test_client())
    listed = make_app(AUTH_ORGANIZATIONS="users", AUTH_SIGNUP_DOMAINS="listed.example").test_client()
    database.run("DELETE FROM outbox")
    assert anonymous.on(listed).put("/user", json={"email": email}).status_code == 200
    assert database.all("SELECT kind FROM outbox WHERE channel IS DISTINCT FROM 'webhook'") == [(kind,)]
    assert database.count("one_time_tokens", "user_id IS NOT NULL AND purpose = 'email_change'") == (
        email == NEW
    )


def test_client_that_wants_no_user_gets_none(client, invitation_id, database):
    assert ask(client, NEW, create_user=False).status_code == 200
    assert database.count("users", "email = 'new@example.com'") == 0


def test_password_does_not_sign_an_invited_address_up(client, invitation_id, database):
    response = client.post("/signup", json={"email": NEW, "password": "Correct-Horse-1"})
    assert (response.status_code, response.json["error_code"]) == (403, "signup_disabled")
    assert database.count("users", "email = 'new@example.com'") == 0


def test_with_organizations_off_an_old_invitation_opens_nothing(make_app, invitation_id, database):
    client = make_app(AUTH_DISABLE_SIGNUP="true").test_client()
    assert ask(client, NEW).status_code == 200
    assert database.count("users", "email = 'new@example.com'") == 0


@pytest.mark.parametrize("create_user", [True, False])
def test_answer_statements_and_messages_are_the_same_for_all_addresses(
    client, invitation_id, alice, database, create_user
):
    answers = set()
    for email in (alice.email, NEW, STRANGER):
        before = statements_run(), database.count("outbox")
        response = ask(client, email, create_user=create_user)
        after = statements_run(), database.count("outbox")
        answer = {**response.json, "message_id": ""}
        answers.add((response.status_code, str(answer), after[0] - before[0], after[1] - before[1]))
    assert len(answers) == 1


def test_page_of_sign_in_runs_the_same_statements_for_all_addresses(client, invitation_id, alice):
    answers = set()
    for email in (alice.email, NEW, STRANGER):
        visitor = Visitor(client.application)
        visitor.visit("/sign-in")
        before = statements_run()
        visitor.press("sign-in/code", email=email)
        answers.add((statements_run() - before, words(visitor.page).replace(email, "")))
    assert len(answers) == 1
