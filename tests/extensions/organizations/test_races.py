"""Concurrent requests about one organization: its lock decides, after those of the users."""

import pytest

from tests.support.server import at_once
from tests.support.users import PASSWORD


@pytest.fixture
def two_owners(owner, acme, join, bob):
    """The sessions of two owners, each with the path of its membership."""
    second = join(bob, acme, "owner")
    return [(owner, f"{acme}/members/{owner.user['id']}"), (second, f"{acme}/members/{bob.id}")]


@pytest.mark.parametrize("way", ["leave", "remove each other", "lower each other", "delete themselves"])
def test_of_two_owners_one_remains(two_owners, database, way):
    (first, first_path), (second, second_path) = two_owners
    requests = {
        "leave": [lambda: first.delete(first_path), lambda: second.delete(second_path)],
        "remove each other": [lambda: first.delete(second_path), lambda: second.delete(first_path)],
        "lower each other": [
            lambda: first.put(second_path, json={"role": "member"}),
            lambda: second.put(first_path, json={"role": "member"}),
        ],
        "delete themselves": [
            lambda: first.delete("/user", json={}),
            lambda: second.delete("/user", json={}),
        ],
    }[way]
    at_once(2, lambda number: requests[number]().status_code)
    has_ended = database.count("organizations", "ended_at IS NOT NULL")
    # The second of two who delete themselves is alone, so that the organization ends with him.
    assert has_ended == (way == "delete themselves")
    assert database.count("memberships", "role = 'owner'") == (0 if has_ended else 1)


def test_invitation_is_accepted_or_withdrawn(owner, acme, bob, client, database):
    session = bob.open_session(client)
    invitation_id = owner.post(f"{acme}/invitations", json={"email": bob.email, "role": "member"}).json["id"]
    requests = [
        lambda: session.post(f"/user/invitations/{invitation_id}"),
        lambda: owner.delete(f"{acme}/invitations/{invitation_id}"),
    ]
    answers = at_once(2, lambda number: requests[number]().status_code)
    assert sorted(answers) in ([200, 404], [204, 404])
    assert database.count("memberships", "role = 'member'") == (200 in answers)


def test_invitation_is_accepted_while_it_is_sent_again(owner, acme, bob, client, database):
    session = bob.open_session(client)
    body = {"email": bob.email, "role": "member"}
    invitation_id = owner.post(f"{acme}/invitations", json=body).json["id"]
    requests = [
        lambda: session.post(f"/user/invitations/{invitation_id}"),
        lambda: owner.post(f"{acme}/invitations", json=body),
    ]
    for _ in range(5):
        answers = at_once(2, lambda number: requests[number]().status_code)
        assert answers in ([200, 201], [200, 409], [404, 409])
        # A member has no open invitation, which would let him in again after a removal.
        assert database.count("organization_invitations") == 0
    assert database.count("memberships", "role = 'member'") == 1


def test_owner_who_invites_again_while_the_user_joins_is_told_so(owner, acme, bob, client, database):
    session, body = bob.open_session(client), {"email": bob.email, "role": "admin"}
    invitation_id = owner.post(f"{acme}/invitations", json=body).json["id"]
    with database.locked("organization_invitations", invitation_id) as lock:
        joining = lock.start(lambda: session.post(f"/user/invitations/{invitation_id}").status_code)
        inviting = lock.start(lambda: owner.post(f"{acme}/invitations", json=body).status_code)
    assert (joining.result(), inviting.result()) == (200, 409)
    assert database.count("organization_invitations") == 0


def test_invitation_is_used_once(owner, acme, bob, client, database):
    session = bob.open_session(client)
    invitation_id = owner.post(f"{acme}/invitations", json={"email": bob.email, "role": "member"}).json["id"]
    answers = at_once(8, lambda _: session.post(f"/user/invitations/{invitation_id}").status_code)
    assert sorted(answers) == [200] + 7 * [404]
    assert database.count("audit_log", "action = 'membership_added' AND details ->> 'role' = 'member'") == 1


def test_forms_that_are_sent_at_once_stop_at_the_limit_of_open_invitations(acme, alice, browse, database):
    database.run(
        """INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)
           SELECT gen_random_uuid(), id, n || '@example.com', 'member', now() + interval '1 day'
             FROM organizations, generate_series(1, 90) AS n"""
    )
    visitors = [browse(alice) for _ in range(3)]
    for visitor in visitors:
        visitor.visit("/account/organizations/acme/invite")

    def invite(number):
        emails = " ".join(f"p{number}.{each}@example.com" for each in range(6))
        return visitors[number].press("invite", emails=emails, role="member")

    pages = at_once(3, invite)
    text = " ".join(page.text for page in pages if not page.url.endswith("#invitations"))
    assert text.count("There are already 100 open invitations.") == 8
    assert database.count("organization_invitations") == 100
    assert database.count("outbox", "kind = 'organization_invitation'") == 10
    assert database.count("audit_log", "action = 'member_invited'") == 10


def test_nobody_joins_an_organization_that_has_ended(owner, acme, bob, client, database):
    session = bob.open_session(client)
    invitation_id = owner.post(f"{acme}/invitations", json={"email": bob.email, "role": "member"}).json["id"]
    requests = [
        lambda: session.post(f"/user/invitations/{invitation_id}"),
        lambda: owner.delete(acme, json={}),
    ]
    answers = at_once(2, lambda number: requests[number]().status_code)
    assert answers[1] == 204
    assert "organizations" not in session.refreshed().claims


def test_deletion_and_removal_of_one_member_do_not_wait_in_a_circle(owner, acme, join, bob, database):
    session = join(bob, acme)
    requests = [
        lambda: session.delete("/user", json={}),
        lambda: owner.delete(f"{acme}/members/{bob.id}"),
    ]
    answers = at_once(2, lambda number: requests[number]().status_code)
    assert answers[0] == 200
    assert answers[1] in (204, 404)
    assert database.count("memberships") == 1


def test_raise_and_leave_of_the_last_owner_leave_an_owner(owner, acme, join, bob, database):
    join(bob, acme)
    path = f"{acme}/members/{owner.user['id']}"
    requests = [
        lambda: owner.put(f"{acme}/members/{bob.id}", json={"role": "owner"}),
        lambda: owner.delete(path),
    ]
    at_once(2, lambda number: requests[number]().status_code)
    assert database.count("memberships", "role = 'owner'") >= 1


def test_organizations_of_one_name_that_are_created_at_once_all_get_a_short_name(
    client, service_role, database
):
    body = {"name": "Acme"}
    answers = at_once(20, lambda _: client.post("/organizations", json=body, headers=service_role))
    assert [each.status_code for each in answers] == [201] * 20
    slugs = {each.json["slug"] for each in answers}
    assert len(slugs) == 20
    assert "acme" in slugs
    assert database.count("organizations", "name = 'Acme'") == 20
    assert database.count("audit_log", "action = 'organization_created'") == 20


def test_two_owners_who_set_an_age_at_once_both_do_and_one_stays(owner, acme, join, bob, database):
    sessions = {3_600: owner, 7_200: join(bob, acme, "owner")}

    def require(number):
        seconds, session = list(sessions.items())[number]
        body = {"requires": {"max_age": seconds}, "current_password": PASSWORD}
        return session.put(acme, json=body).status_code

    assert at_once(2, require) == [200, 200]
    assert database.value("SELECT extract(epoch FROM max_age)::int FROM organizations") in sessions
    logged = "action = 'organization_changed' AND details ? 'requires_max_age'"
    assert database.count("audit_log", logged) == 2


def test_refreshes_during_a_proof_end_nothing_and_the_next_says_the_membership(owner, acme, database):
    database.run(
        "UPDATE organizations SET max_age = '1 hour';"
        " UPDATE sessions SET created_at = created_at - interval '2 hours'"
    )

    def act(number):
        if number == 0:
            return owner.post("/reauthenticate", json={"current_password": PASSWORD}).status_code
        return owner.refresh().status_code

    assert at_once(6, act) == [200] * 6
    assert database.count("sessions", "ended_at IS NOT NULL") == 0
    assert owner.refreshed().claims["organizations"]


@pytest.mark.parametrize("max_age", ["1 hour", "3 hours"])
def test_act_that_waits_for_a_new_age_is_done_only_in_a_session_that_meets_it(
    owner, acme, client, database, max_age
):
    id = acme.rpartition("/")[2]
    database.run("UPDATE sessions SET created_at = created_at - interval '2 hours'")
    session = owner.on(client.application.test_client())
    body = {"email": "carol@example.com", "role": "member"}
    statement = f"UPDATE organizations SET max_age = '{max_age}' WHERE id = %s"
    with database.locked("organizations", id, statement) as lock:
        future = lock.start(lambda: session.post(f"{acme}/invitations", json=body))
    is_old = max_age == "1 hour"
    assert future.result().status_code == (403 if is_old else 201), future.result().text
    assert database.count("organization_invitations") == (0 if is_old else 1)
