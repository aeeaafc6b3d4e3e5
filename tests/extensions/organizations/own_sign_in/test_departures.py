"""What becomes of the sign-in of somebody who is no member any more: the identity of an account that had moved to the
organization's provider goes, that of an employee whom the provider made stays. The page and the notice say which.
"""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from auth.delivery.rendering import load_templates
from tests.support import passkeys
from tests.support.commands import run_command
from tests.support.links import SITE, follow
from tests.support.oauth import assert_failed
from tests.support.own_providers import ALICE, PATH
from tests.support.pages import Visitor, words
from tests.support.users import PASSWORD, Person

CAROL = "carol@example.com"
IDENTITIES_OF_BOB = "provider LIKE 'sso:%%' AND subject = '9'"
JOINS = "The organization’s sign-in can still open it, which makes you a member again."
GONE = "You’re no longer a member of Acme at localhost:8000, and its sign-in no longer opens your account."
MAILBOX = (
    "The only other way to sign in is email to this address: whoever reads this mailbox can sign in as you."
)


@pytest.fixture
def moved(on, join, bob, acme, customers, press):
    """Bob, a member with a password, whose account has moved to the provider. His session by password."""
    session = join(bob, acme)
    customers.acme.be("9", bob.email)
    press(bob, "move")
    return session


@pytest.fixture
def by_provider(moved, service, provider):
    """A session of Bob's that the provider has opened."""
    return service.signed_in(f"custom:{provider}")


@pytest.fixture
def employee(on, customers, service, provider):
    """The session of Carol, whom the provider made."""
    customers.acme.be("10", CAROL)
    return service.signed_in(f"custom:{provider}")


@pytest.fixture
def remove(sign_in, acme):
    """Remove a member, as the owner."""

    def remove(user_id):
        assert sign_in.owner.delete(f"{acme}/members/{user_id}").status_code == 204

    return remove


@pytest.fixture
def read(service, outbox):
    """Return the last notice of a kind to an address, as it is sent."""
    templates = load_templates(service.parts.settings)

    def read(address, kind):
        message = outbox.last(address, kind)
        row = {"id": "5", "channel": message.channel, "kind": kind, "recipient": address, "expires_at": None}
        moment = {"created_at": datetime.now(UTC), "variables": message.variables}
        return templates.render(SimpleNamespace(**row, **moment), {}).text

    return read


@pytest.mark.parametrize("act", ["removed", "leaves"])
def test_account_that_had_moved_is_out_of_the_companys_hands(
    moved, by_provider, remove, act, acme, bob, provider, service, database, outbox, read
):
    if act == "removed":
        remove(bob.id)
    else:
        assert moved.delete(f"{acme}/members/{bob.id}").status_code == 204
    assert database.count("identities", IDENTITIES_OF_BOB) == 0
    assert by_provider.refresh().status_code == 400
    assert moved.refresh().status_code == 200
    assert_failed(service.sign_in(f"custom:{provider}"), "user_sso_conflict")
    assert database.count("memberships", "user_id = %(id)s", id=bob.id) == 0
    text = read(bob.email, "identity_unlinked")
    assert GONE in text
    assert "If you think the removal is a mistake, contact an owner of the organization." in text
    assert "you can ignore this email" not in text
    assert outbox.last(bob.email, "identity_unlinked").token
    assert database.count("outbox", "kind = 'membership_removed'") == 0
    entry = database.one("SELECT user_id::text, details FROM audit_log WHERE action = 'identity_unlinked'")
    assert entry == (bob.id, {"provider": f"sso:{provider}"})


def test_page_that_refuses_a_former_employee_of_a_provider_takes_the_password(moved, remove, bob, service):
    remove(bob.id)
    visitor = Visitor(service.app)
    visitor.visit("/sign-in")
    page = visitor.submit(email=bob.email, password=PASSWORD)
    assert f"You already have an account for {bob.email} ." in words(page)
    assert visitor.session_cookie is None
    assert visitor.submit(email=bob.email, password=PASSWORD).url == f"{SITE}/account/company"
    assert visitor.link("Not now") == f"{SITE}/sign-in"
    assert visitor.visit("/sign-in").url == f"{SITE}/account"


def test_what_was_added_since_the_account_had_moved_is_named(moved, by_provider, remove, bob, database, read):
    passkeys.register(by_provider)
    remove(bob.id)
    text = read(bob.email, "identity_unlinked")
    assert "Added to the account since you connected that sign-in: a passkey." in text
    assert MAILBOX not in text
    assert database.count("factors") == 1


def test_account_that_signs_in_by_the_companys_mailbox_alone_is_told_that(moved, remove, bob, database, read):
    database.run("UPDATE users SET password_hash = NULL WHERE id = %(id)s", id=bob.id)
    remove(bob.id)
    assert MAILBOX in read(bob.email, "identity_unlinked")


def test_identity_stays_where_nothing_else_signs_in(moved, by_provider, remove, bob, database, read):
    database.run(
        "UPDATE users SET email_proved = false, email_confirmed_at = NULL WHERE id = %(id)s", id=bob.id
    )
    remove(bob.id)
    assert database.count("identities", IDENTITIES_OF_BOB) == 1
    assert by_provider.refresh().status_code == 200


def test_account_that_somebody_prepared_before_its_first_proof_has_not_moved(
    on, customers, service, provider, remove, client, database, read
):
    assert client.post("/otp", json={"email": CAROL}).status_code == 200
    database.run(
        "UPDATE users SET created_at = created_at - interval '1 day' WHERE email = %(email)s", email=CAROL
    )
    customers.acme.be("10", CAROL)
    session = service.signed_in(f"custom:{provider}")
    remove(session.get("/user").json["id"])
    assert JOINS in read(CAROL, "membership_removed")
    assert service.signed_in(f"custom:{provider}").get("/user").json["email"] == CAROL


def test_employee_who_comes_back_with_another_subject_has_not_moved(
    employee, customers, provider, service, remove, read
):
    assert run_command(service.app, "providers", "adopt", provider, CAROL).exit_code == 0
    customers.acme.be("11", CAROL)
    session = service.signed_in(f"custom:{provider}")
    assert employee.refresh().status_code == 400
    remove(session.get("/user").json["id"])
    assert JOINS in read(CAROL, "membership_removed")


def test_employee_whom_the_provider_made_is_a_member_again_at_the_next_sign_in_and_is_told(
    employee, remove, provider, service, database, read
):
    user_id = employee.get("/user").json["id"]
    remove(user_id)
    assert employee.refresh().status_code == 200
    text = read(CAROL, "membership_removed")
    assert (JOINS in text, MAILBOX in text) == (True, True)
    service.signed_in(f"custom:{provider}")
    assert database.count("memberships", "user_id = %(id)s", id=user_id) == 1


def test_provider_that_adds_nobody_makes_no_member_again(employee, remove, read, database):
    database.run("UPDATE identity_providers SET member_role = NULL")
    remove(employee.get("/user").json["id"])
    assert "and the organization’s sign-in can still open it." in read(CAROL, "membership_removed")


def test_employee_who_is_removed_while_the_provider_is_off_is_told_what_it_does_once_it_is_on(
    employee, sign_in, provider, remove, read, browse, alice
):
    user_id = employee.get("/user").json["id"]
    assert sign_in.change(provider, enabled=False).json["enabled"] is False
    page = browse(alice).visit(f"{PATH}/members/{user_id}/remove")
    assert "can still open their account and makes them a member again" in words(page)
    remove(user_id)
    text = read(CAROL, "membership_removed")
    assert JOINS in text


def test_account_that_one_provider_made_keeps_its_identity_at_another_one_of_the_organization(
    employee, remove, database
):
    user_id = employee.get("/user").json["id"]
    database.run(
        """
        WITH other AS (
          INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret, enabled, organization_id)
          SELECT gen_random_uuid(), 'custom:other', 'Other', 'https://login.other.example', 'id', '', false, organization_id
            FROM identity_providers
          RETURNING id)
        INSERT INTO identities (user_id, provider, subject, identity_data) SELECT %(id)s, 'sso:' || id, '11', '{}' FROM other
        """,
        id=user_id,
    )
    remove(user_id)
    assert database.count("identities", "user_id = %(id)s AND provider LIKE 'sso:%%'", id=user_id) == 2
    assert database.count("outbox", "kind = 'identity_unlinked'") == 0


def test_member_without_an_identity_there_is_told_that_nothing_has_changed(join, bob, acme, owner, read):
    session = join(bob, acme)
    assert owner.delete(f"{acme}/members/{session.get('/user').json['id']}").status_code == 204
    text = read(bob.email, "membership_removed")
    assert ("Your account stays." in text, "still open" in text, MAILBOX in text) == (True, False, False)


@pytest.mark.parametrize(
    ("who", "of_owner", "of_member"),
    [
        (
            "moved",
            "will no longer open their account. Sessions that it opened end",
            "will no longer open your account. Sessions that it opened end",
        ),
        (
            "employee",
            "makes them a member again: remove them from your company’s directory first.",
            "can still open your account and makes you a member again.",
        ),
    ],
)
def test_pages_say_which_of_both_is_so(request, who, of_owner, of_member, browse, alice, service):
    session = request.getfixturevalue(who)
    user = session.get("/user").json
    page = browse(alice).visit(f"{PATH}/members/{user['id']}/remove")
    assert of_owner in words(page)
    visitor = Visitor(service.app).with_session_of(Person(service.client, user["id"], user["email"]))
    assert of_member in words(visitor.visit(f"{PATH}/leave"))


@pytest.mark.parametrize("is_removed_first", [True, False])
def test_removal_and_a_sign_in_with_the_provider_leave_no_session_in_either_order(
    moved, by_provider, sign_in, acme, bob, provider, service, database, is_removed_first
):
    browser = service.browser()
    url = service.return_url(browser, f"custom:{provider}")
    acts = {
        "removal": lambda: sign_in.owner.delete(f"{acme}/members/{bob.id}").status_code,
        "sign-in": lambda: browser.visit(url),
    }
    with database.locked("users", bob.id) as lock:
        names = sorted(acts, reverse=not is_removed_first)
        results = {name: lock.start(acts[name]) for name in names}
    assert results["removal"].result() == 204
    assert results["sign-in"].result().status in (200, 303)
    of_provider = "user_id = %(id)s AND provider_term IS NOT NULL AND ended_at IS NULL"
    assert database.count("sessions", of_provider, id=bob.id) == 0
    assert database.count("identities", IDENTITIES_OF_BOB) == 0


def test_turning_off_ends_what_the_provider_opened_and_nothing_else_of_a_member_who_had_moved(
    moved, by_provider, sign_in, provider, bob, client, database, outbox
):
    path = moved.post("/organizations", json={"name": "Globex", "slug": "globex"})
    assert path.status_code == 201, path.text
    body = {"email": "new@globex.example", "role": "member"}
    assert moved.post("/organizations/globex/invitations", json=body).status_code == 201
    client.post("/magiclink", json={"email": bob.email})
    assert sign_in.change(provider, enabled=False).json["enabled"] is False
    assert by_provider.refresh().status_code == 400
    assert moved.refresh().status_code == 200
    assert database.count("organization_invitations", "email = 'new@globex.example'") == 1
    assert (
        database.count(
            "one_time_tokens", "user_id = %(id)s AND spent_at IS NULL AND purpose = 'magiclink'", id=bob.id
        )
        == 1
    )
    assert database.count("identities", IDENTITIES_OF_BOB) == 1


def test_owner_and_the_password_stay(moved, remove, alice, bob, service, client):
    remove(bob.id)
    assert bob.sign_in(PASSWORD, client=client).get("/user").json["email"] == bob.email
    assert alice.email == ALICE


def test_name_that_looks_like_a_link_hides_nothing_of_the_notice(
    moved, by_provider, sign_in, acme, remove, bob, database, read
):
    assert sign_in.owner.put(acme, json={"name": "acme.com"}).status_code == 200
    passkeys.register(by_provider)
    remove(bob.id)
    text = read(bob.email, "identity_unlinked")
    assert "You’re no longer a member of an organization at localhost:8000, and its sign-in" in text
    assert "Added to the account since you connected that sign-in: a passkey." in text


@pytest.mark.parametrize("way", ["password", "passkey", "provider", "mailbox of another domain", "none"])
def test_only_who_has_no_way_in_but_the_companys_mailbox_is_warned(
    moved, by_provider, remove, way, bob, database, read
):
    if way != "password":
        database.run("UPDATE users SET password_hash = NULL WHERE id = %(id)s", id=bob.id)
    if way == "passkey":
        passkeys.register(by_provider)
    if way == "provider":
        database.run(
            "INSERT INTO identities (user_id, provider, subject, identity_data) VALUES (%(id)s, 'google', '1', '{}')",
            id=bob.id,
        )
    if way == "mailbox of another domain":
        database.run("UPDATE identity_provider_domains SET domain = 'acme.example'")
    remove(bob.id)
    assert (MAILBOX in read(bob.email, "identity_unlinked")) == (way == "none")


def test_taking_back_removes_the_identity_and_sends_no_notice_of_it(
    moved, by_provider, client, bob, database, outbox
):
    """Bob joined a moment ago, so a thief may have."""
    database.run("UPDATE identities SET created_at = created_at - interval '8 days'")
    database.run("UPDATE users SET created_at = created_at - interval '9 days'")
    follow(client, "undo", outbox.last(bob.email, "identity_linked").token)
    assert database.count("memberships", "user_id = %(id)s", id=bob.id) == 0
    assert database.count("identities", IDENTITIES_OF_BOB) == 0
    assert by_provider.refresh().status_code == 400
    assert outbox.sent(bob.email, "identity_unlinked") == []


INVITATION = "To come back, you need an invitation."
OF_OWNER = (
    "They can still move their account to the organization’s sign\N{NON-BREAKING HYPHEN}in, which makes them a member again:"
    " remove them from your company’s directory first."
)
OF_LEAVER = (
    "You can still move your account to the organization’s sign\N{NON-BREAKING HYPHEN}in,"
    " which makes you a member again."
)
IN_NOTICE = OF_LEAVER.replace("\N{NON-BREAKING HYPHEN}", "-")


@pytest.mark.parametrize("who", ["invited", "moved"])
def test_former_member_of_the_domain_comes_back_by_a_move_as_pages_and_notice_say(
    who, on, join, bob, acme, customers, press, browse, alice, remove, read, database
):
    join(bob, acme)
    customers.acme.be("9", bob.email)
    if who == "moved":
        press(bob, "move")
    page = words(browse(alice).visit(f"{PATH}/members/{bob.id}/remove"))
    assert OF_OWNER in page
    page = words(browse(bob).visit(f"{PATH}/leave"))
    assert (OF_LEAVER in page, INVITATION in page) == (True, False)
    remove(bob.id)
    assert IN_NOTICE in read(bob.email, "membership_removed" if who == "invited" else "identity_unlinked")
    press(bob, "move")
    assert database.count("memberships", "user_id = %(id)s", id=bob.id) == 1


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE identity_providers SET is_on = false",
        "UPDATE identity_providers SET member_role = NULL",
        "UPDATE identity_provider_domains SET domain = 'acme.example'",
        "UPDATE users SET email_proved = false, email_confirmed_at = NULL WHERE email = 'bob@example.com'",
    ],
    ids=["off", "adds nobody", "another domain", "unproved"],
)
def test_former_member_who_cannot_move_needs_an_invitation(
    change, on, join, bob, acme, browse, alice, remove, read, database
):
    join(bob, acme)
    database.run(change)
    assert "move their account" not in words(browse(alice).visit(f"{PATH}/members/{bob.id}/remove"))
    page = words(browse(bob).visit(f"{PATH}/leave"))
    assert ("move your account" in page, INVITATION in page) == (False, True)
    remove(bob.id)
    if "email_proved" not in change:
        assert "move your account" not in read(bob.email, "membership_removed")
