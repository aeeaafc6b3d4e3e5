"""Mallory has stolen a session of Alice and adds ways to sign in. Alice gets her account back by following
the messages, and Mallory keeps nothing.
"""

import re

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, A_UUID, assert_error, assert_ok
from tests.support.links import (
    BROWSER,
    EXPIRED,
    OTHER_PHONE,
    PHONE,
    assert_signs_in,
    follow,
    fragment,
    hand_in,
    path,
    type_in,
)
from tests.support.oauth import SITE, identities_of, link
from tests.support.server import at_once
from tests.support.users import PASSWORD, register, session_of, sign_in

pytest_plugins = ["tests.support.oauth_fixtures"]
MALLORY = "mallory@evil.example"
NEW = "Another-Horse-1"
UNDONE = {
    "message": "The change was undone, and everything added since was removed; sign in again with a new password",
    "type": "undo",
}
ADDED_PHONE = {"id": A_UUID, "type": "phone", "added_at": A_TIMESTAMP, "label": PHONE}
LAST_WAY = (422, "single_identity_not_deletable")


def age(database, days=30):
    for moved in (
        "users SET created_at",
        "identities SET created_at",
        "identities SET updated_at",
        "sessions SET created_at",
    ):
        column = moved.rpartition(" ")[2]
        database.run(f"UPDATE {moved} = {column} - make_interval(days => %(days)s)", days=days)


@pytest.fixture
def owner(alice, database):
    """Alice, whose account is a month old."""
    age(database)
    return alice


@pytest.fixture
def thief(owner):
    return owner.sign_in()


@pytest.fixture(autouse=True)
def _mallory_at_google(google):
    google.person = {"sub": "mallory", "email": "m@gmail.example", "email_verified": True, "name": "M"}


def add_phone(session, outbox, phone=PHONE):
    assert session.put("/user", json={"phone": phone}).status_code == 200
    response = type_in(session.client, "phone_change", phone, outbox.last(phone, "phone_change").code)
    return session_of(session.client, response)


def change_email(session, outbox, email=MALLORY):
    assert session.put("/user", json={"email": email}).status_code == 200
    response = follow(session.client, "email_change", outbox.last(email, "email_change").token)
    assert fragment(response)["type"] == "email_change"


def open_link(client, mailbox, address):
    """Open the link of the newest message to an address, as its text asks."""
    url = mailbox.link_for(address)
    assert url.startswith(f"{SITE}/verify?")
    return client.get(url.removeprefix(SITE))


def recover(client, outbox, email):
    client.post("/recover", json={"email": email})
    return hand_in(client, "recovery", outbox.last(email, "recovery").token)


def sign_in_by_phone(client, outbox, **options):
    client.post("/otp", json={"phone": PHONE, "create_user": False} | options)
    return session_of(client, type_in(client, "sms", PHONE, outbox.last(PHONE, "sms").code))


def signs_in_by_phone(client, outbox, phone, user_id):
    client.post("/otp", json={"phone": phone, "create_user": False})
    sent = outbox.sent(phone, "sms")
    response = sent and type_in(client, "sms", phone, sent[-1].code)
    return bool(response) and response.status_code == 200 and response.json["user"]["id"] == user_id


def assert_taken_back(client, owner, outbox, thief):
    """Assert that no session and no password works, and that Alice gets in by her mailbox alone."""
    assert_error(thief.get("/user"), 401, "session_not_found")
    assert_error(thief.refresh(), 400, "refresh_token_not_found")
    assert_error(owner.try_to_sign_in(), 401, "invalid_credentials")
    session = session_of(client, recover(client, outbox, owner.email))
    assert session.put("/user", json={"password": NEW}).status_code == 200
    assert owner.try_to_sign_in(NEW).json["user"]["id"] == owner.id
    return session


class TestNotice:
    def test_added_phone_is_undone_by_the_link_in_the_mail(self, client, owner, thief, outbox, mailbox):
        by_phone = add_phone(thief, outbox)
        (notice,) = mailbox.messages_to(owner.email)
        assert "If this wasn’t you, undo the change." in notice.text
        assert fragment(open_link(client, mailbox, owner.email)) == UNDONE
        session = assert_taken_back(client, owner, outbox, thief)
        assert_error(by_phone.get("/user"), 401, "session_not_found")
        assert not signs_in_by_phone(client, outbox, PHONE, owner.id)
        assert session.get("/user").json["phone"] is None

    def test_linked_identity_is_undone_by_the_link_in_the_mail(self, service, owner, thief, outbox, mailbox):
        session = thief.on(service.client)
        link(service, session, "google")
        by_provider = service.signed_in("google")
        assert fragment(open_link(service.client, mailbox, owner.email)) == UNDONE
        assert_error(by_provider.get("/user"), 401, "session_not_found")
        session = assert_taken_back(service.client, owner, outbox, session)
        assert [each["provider"] for each in session.get("/user").json["identities"]] == ["email"]
        assert service.session(service.sign_in("google")).get("/user").json["id"] != owner.id

    def test_undo_of_an_email_change_removes_what_the_session_added_first_even_weeks_ago(
        self, service, owner, thief, outbox, mailbox, database
    ):
        client, session = service.client, thief.on(service.client)
        add_phone(session, outbox)
        link(service, session, "google")
        age(database, days=20)
        assert session.post("/reauthenticate", json={"current_password": PASSWORD}).status_code == 200
        change_email(session, outbox)
        # The page lists what it removes.
        page = client.get(path("undo", outbox.last(owner.email).token), headers=BROWSER).text
        assert "This will be removed:" in page
        assert re.search(rf"<li>.*…{PHONE[-3:]}.*</li>", page)
        assert PHONE not in page
        assert fragment(open_link(client, mailbox, owner.email)) == UNDONE
        back = assert_taken_back(client, owner, outbox, session).get("/user").json
        assert (back["email"], back["phone"]) == (owner.email, None)
        assert back["app_metadata"]["providers"] == ["email"]
        assert not signs_in_by_phone(client, outbox, PHONE, owner.id)

    @pytest.mark.parametrize(("days", "kept"), [(6, None), (8, PHONE)])
    def test_undo_removes_what_was_added_in_seven_days(self, client, owner, outbox, database, days, kept):
        add_phone(owner.sign_in(), outbox)
        age(database, days)
        change_email(owner.sign_in(), outbox)
        follow(client, "undo", outbox.last(owner.email, "email_changed").token)
        assert database.value("SELECT phone FROM users") == kept

    def test_addresses_that_the_user_was_created_with_are_kept(self, client, service_role, outbox, database):
        body = {"email": "dora@example.com", "password": PASSWORD, "phone": PHONE}
        confirmed = {"email_confirm": True, "phone_confirm": True}
        client.post("/admin/users", json=body | confirmed, headers=service_role)
        session = session_of(client, sign_in(client, "dora@example.com"))
        change_email(session, outbox)
        follow(client, "undo", outbox.last("dora@example.com", "email_changed").token)
        assert database.value("SELECT phone FROM users") == PHONE

    def test_links_mailed_by_the_release_before_still_work(self, client, owner, thief, outbox, database):
        change_email(thief, outbox)
        database.run("UPDATE one_time_tokens SET purpose = 'email_restore' WHERE purpose = 'undo'")
        token = outbox.last(owner.email, "email_changed").token
        assert client.get(path("email_restore", token), headers=BROWSER).status_code == 200
        assert fragment(follow(client, "email_restore", token)) == UNDONE | {"type": "email_restore"}
        assert database.value("SELECT email FROM users") == owner.email


class TestRestoring:
    @pytest.fixture
    def with_phone(self, owner, outbox, database):
        add_phone(owner.sign_in(), outbox)
        age(database, 10)
        return owner

    def undo_last(self, client, owner, outbox, kind):
        assert fragment(follow(client, "undo", outbox.last(owner.email, kind).token)) == UNDONE

    @pytest.mark.parametrize("to", [OTHER_PHONE, None])
    def test_replaced_or_removed_phone_is_restored(self, client, with_phone, outbox, database, to):
        thief = with_phone.sign_in()
        before = database.all("SELECT * FROM identities ORDER BY created_at")
        if to:
            add_phone(thief, outbox, to)
        else:
            assert thief.put("/user", json={"phone": None}).status_code == 200
        self.undo_last(client, with_phone, outbox, "phone_changed")
        assert database.value("SELECT phone FROM users") == PHONE
        assert database.all("SELECT * FROM identities ORDER BY created_at") == before
        assert signs_in_by_phone(client, outbox, PHONE, with_phone.id)

    def test_removed_email_is_restored(self, client, with_phone, outbox):
        thief = with_phone.sign_in()
        assert thief.put("/user", json={"email": None}).json["email"] is None
        self.undo_last(client, with_phone, outbox, "email_changed")
        assert_taken_back(client, with_phone, outbox, thief)

    def test_unlinked_identity_is_restored(self, service, owner, outbox, database):
        session = owner.sign_in().on(service.client)
        link(service, session, "google")
        age(database, 10)
        thief = owner.sign_in().on(service.client)
        assert thief.delete(f"/user/identities/{identities_of(thief)['google']}").status_code == 200
        self.undo_last(service.client, owner, outbox, "identity_unlinked")
        assert service.signed_in("google").get("/user").json["id"] == owner.id

    def test_phone_of_the_thief_does_not_come_back(self, client, owner, thief, outbox, database):
        add_phone(thief, outbox, PHONE)
        add_phone(thief, outbox, OTHER_PHONE)
        self.undo_last(client, owner, outbox, "phone_changed")
        assert database.value("SELECT phone FROM users") is None

    @pytest.mark.parametrize("is_proved", [False, True])
    def test_phone_comes_back_unless_proved_by_another(self, client, with_phone, outbox, database, is_proved):
        add_phone(with_phone.sign_in(), outbox, OTHER_PHONE)
        keeper = with_phone.id
        if is_proved:
            client.post("/otp", json={"phone": PHONE})
            keeper = type_in(client, "sms", PHONE, outbox.last(PHONE, "sms").code).json["user"]["id"]
        else:
            client.post("/signup", json={"phone": PHONE, "password": PASSWORD})
        self.undo_last(client, with_phone, outbox, "phone_changed")
        assert signs_in_by_phone(client, outbox, PHONE, keeper)
        assert database.count("users") == 1 + is_proved
        phone = database.value("SELECT phone FROM users WHERE id = %(id)s", id=with_phone.id)
        assert phone == (None if is_proved else PHONE)

    def test_user_without_an_email_gets_the_link_by_sms(self, client, outbox, mailbox, database):
        client.post("/otp", json={"phone": PHONE})
        thief = session_of(client, type_in(client, "sms", PHONE, outbox.last(PHONE, "sms").code))
        age(database)
        database.run("UPDATE sessions SET created_at = now()")
        add_phone(thief, outbox, OTHER_PHONE)
        assert fragment(open_link(client, mailbox, PHONE)) == UNDONE
        assert_error(thief.get("/user"), 401, "session_not_found")
        assert signs_in_by_phone(client, outbox, PHONE, thief.user["id"])
        assert not signs_in_by_phone(client, outbox, OTHER_PHONE, thief.user["id"])


class TestLinksToTheThief:
    """An address that was the thief's for a while gets undo links too."""

    def six_days_later(self, database):
        database.run(
            "UPDATE one_time_tokens SET expires_at = expires_at - interval '6 days' WHERE purpose = 'undo'"
        )

    def test_they_end_with_the_links_to_earlier_addresses(self, owner, thief, outbox, database):
        change_email(thief, outbox)
        self.six_days_later(database)
        change_email(thief, outbox, "mallory2@evil.example")
        assert 86_000 < outbox.last(MALLORY, "email_changed").lifetime <= 86_400
        later = "purpose = 'undo' AND expires_at > now() + interval '1 day'"
        assert database.count("one_time_tokens", later) == 0

    def test_several_links_to_one_address_last_seven_days_each(self, owner, thief, outbox, database):
        add_phone(thief, outbox)
        self.six_days_later(database)
        change_email(thief, outbox)
        assert outbox.last(owner.email, "email_changed").lifetime == 7 * 86_400

    @pytest.mark.parametrize("change", [{"email": "alice@example.com"}, {"phone": None}], ids=str)
    def test_change_by_an_administrator_voids_them(self, client, owner, thief, outbox, service_role, change):
        add_phone(thief, outbox)
        change_email(thief, outbox)
        change_email(thief, outbox, "mallory2@evil.example")
        to_mallory = outbox.last(MALLORY, "email_changed").token
        response = client.put(f"/admin/users/{owner.id}", json=change, headers=service_role)
        assert response.status_code == 200
        assert fragment(follow(client, "undo", to_mallory)) == EXPIRED

    def test_removal_voids_them_and_is_told_to_the_address_before(self, client, owner, outbox, database):
        add_phone(owner.sign_in(), outbox)
        age(database, 10)
        change_email(owner.sign_in(), outbox)
        session = sign_in_by_phone(client, outbox)
        add_phone(session, outbox, OTHER_PHONE)
        to_mallory = outbox.last(MALLORY, "phone_changed").token
        recent = session.get("/user/recent_changes").json["recent_changes"]
        ids = [way["id"] for way in recent if way["type"] == "email"]
        assert session.put("/user", json={"remove": ids}).status_code == 200
        assert fragment(follow(client, "undo", to_mallory)) == EXPIRED
        assert database.count("one_time_tokens", f"purpose = 'undo' AND target = '{MALLORY}'") == 0
        assert database.value("SELECT email FROM users") is None
        follow(client, "undo", outbox.last(owner.email, "email_changed").token)
        assert database.one("SELECT email, phone FROM users") == (owner.email, None)

    def test_removal_of_another_recent_address_is_told_to_the_present_one(self, owner, outbox):
        session = owner.sign_in()
        change_email(session, outbox, "new@example.com")
        add_phone(session, outbox)
        assert session.put("/user", json={"phone": None}).status_code == 200
        assert outbox.last().to == "new@example.com"

    def test_removal_of_an_address_without_earlier_links_keeps_them(self, client, outbox, database):
        sign_in_by_phone(client, outbox, create_user=True)
        age(database, 10)
        session = sign_in_by_phone(client, outbox)
        change_email(session, outbox, "owner@example.com")
        database.run("DELETE FROM one_time_tokens")
        thief = sign_in_by_phone(client, outbox)
        add_phone(thief, outbox, OTHER_PHONE)
        token = outbox.last("owner@example.com", "phone_changed").token
        assert thief.put("/user", json={"email": None}).status_code == 200
        assert outbox.last("owner@example.com", "email_changed").lifetime == 7 * 86_400
        assert fragment(follow(client, "undo", token)) == UNDONE


class TestRecovery:
    def test_recovery_shows_what_was_added_and_removes_it(self, service, owner, thief, outbox):
        client, session = service.client, thief.on(service.client)
        by_phone = add_phone(session, outbox)
        link(service, session, "google")
        response = recover(client, outbox, owner.email)
        recent = response.json["recent_changes"]
        assert [each | {"label": each["label"].split()[0]} for each in recent] == [
            ADDED_PHONE,
            {"id": A_UUID, "type": "identity", "added_at": A_TIMESTAMP, "label": "google"},
        ]
        back = session_of(client, response)
        changed = back.put("/user", json={"password": NEW, "remove": [each["id"] for each in recent]})
        assert changed.status_code == 200
        assert (changed.json["phone"], changed.json["app_metadata"]["providers"]) == (None, ["email"])
        for stolen in (session, by_phone):
            assert_error(stolen.get("/user"), 401, "session_not_found")
        assert not signs_in_by_phone(client, outbox, PHONE, owner.id)
        assert service.session(service.sign_in("google")).get("/user").json["id"] != owner.id
        assert recover(client, outbox, owner.email).json["recent_changes"] == []

    def test_owner_who_recovers_by_the_link_of_the_mail_sees_and_removes_the_same(
        self, client, owner, thief, outbox
    ):
        add_phone(thief, outbox)
        client.post("/recover", json={"email": owner.email})
        back = assert_signs_in(client, "recovery", outbox.last(owner.email, "recovery").token)
        (change,) = back.get("/user/recent_changes").json["recent_changes"]
        assert change == ADDED_PHONE
        assert back.put("/user", json={"remove": [change["id"]]}).json["phone"] is None
        assert_error(thief.get("/user"), 401, "session_not_found")
        assert_ok(back.get("/user/recent_changes"), {"recent_changes": []})

    def test_only_recoveries_list_changes_and_only_recent_ones(self, client, owner, thief, outbox, database):
        add_phone(thief, outbox)
        client.post("/magiclink", json={"email": owner.email})
        response = hand_in(client, "magiclink", outbox.last(owner.email, "magiclink").token)
        assert "recent_changes" not in response.json
        age(database, 8)
        assert recover(client, outbox, owner.email).json["recent_changes"] == []

    @pytest.mark.parametrize("end", ["recovery", "password"])
    def test_pending_change_of_the_thief_cannot_be_confirmed_later(self, client, owner, thief, outbox, end):
        thief.put("/user", json={"phone": PHONE})
        if end == "recovery":
            session_of(client, recover(client, outbox, owner.email))
        else:
            owner.sign_in().put("/user", json={"password": NEW})
        code = outbox.last(PHONE, "phone_change").code
        assert_error(type_in(client, "phone_change", PHONE, code), 403, "otp_expired")
        client.post("/resend", json={"type": "phone_change", "phone": PHONE})
        assert len(outbox.sent(PHONE, "phone_change")) == 1

    def test_administrator_sees_and_removes_what_was_added(self, client, owner, thief, outbox, service_role):
        by_phone = add_phone(thief, outbox)
        route = f"/admin/users/{owner.id}"
        response = client.get(f"{route}/recent_changes", headers=service_role)
        (change,) = response.json["recent_changes"]
        assert change == ADDED_PHONE
        response = client.put(route, json={"remove": [change["id"].upper()]}, headers=service_role)
        assert (response.status_code, response.json["phone"]) == (200, None)
        for stolen in (thief, by_phone):
            assert_error(stolen.get("/user"), 401, "session_not_found")
        assert_ok(client.get(f"{route}/recent_changes", headers=service_role), {"recent_changes": []})


class TestRemoval:
    @pytest.fixture
    def session(self, owner, outbox, database):
        """Alice, who has had an email and a phone for a month."""
        session = add_phone(owner.sign_in(), outbox)
        age(database)
        database.run("UPDATE sessions SET created_at = now()")
        return session

    @pytest.mark.parametrize("kind", ["email", "phone"])
    def test_null_removes_an_address_after_a_proof(self, session, owner, outbox, database, kind):
        other = owner.sign_in()
        database.run("UPDATE sessions SET created_at = now() - interval '15 minutes'")
        refused = session.put("/user", json={kind: None})
        assert_error(refused, 400, "reauthentication_needed", details=A_SENTENCE)
        response = session.put("/user", json={kind: None, "current_password": PASSWORD})
        assert (response.status_code, response.json[kind]) == (200, None)
        assert response.json[f"{kind}_confirmed_at"] is None
        remaining = "phone" if kind == "email" else "email"
        assert [each["provider"] for each in response.json["identities"]] == [remaining]
        notice = outbox.sent()[-1]
        assert (notice.kind, notice.to, notice.lifetime) == (f"{kind}_changed", owner.email, 7 * 86_400)
        assert_error(other.get("/user"), 401, "session_not_found")
        assert session.get("/user").status_code == 200

    def test_last_address_stays_although_there_is_a_password(self, owner, outbox):
        session = owner.sign_in()
        assert_error(session.put("/user", json={"email": None}), *LAST_WAY)
        assert session.get("/user").json["email"] == owner.email
        assert outbox.sent() == []

    @pytest.mark.parametrize(
        ("settings", "change", "removed"),
        [
            ({}, "role = role", {"email": None, "phone": None}),
            ({}, "email_proved = false", {"phone": None}),
            ({"AUTH_PHONE_ENABLED": "false"}, "role = role", {"email": None}),
        ],
        ids=["both", "unproved email", "disabled phone"],
    )
    def test_last_usable_address_stays(self, make_app, session, database, settings, change, removed):
        database.run(f"UPDATE users SET {change}")
        tables = ("users", "identities", "sessions", "one_time_tokens", "outbox")
        before = database.everything(*tables)
        client = make_app(**settings).test_client()
        assert_error(session.on(client).put("/user", json=removed), *LAST_WAY)
        assert database.everything(*tables) == before

    def test_one_of_two_addresses_removed_concurrently_remains(self, app, session, database):
        def remove(kind):
            return session.on(app.test_client()).put("/user", json={kind: None}).status_code

        statuses = at_once(2, lambda index: remove(("email", "phone")[index]))
        assert sorted(statuses) == [200, 422]
        assert database.count("users", "num_nonnulls(email, phone) = 1") == 1

    def test_ids_that_are_not_recent_changes_of_the_user_are_refused(
        self, client, session, service_role, outbox, database
    ):
        bob = register(client, service_role, "bob@example.com").sign_in()
        add_phone(bob, outbox, OTHER_PHONE)
        bobs = database.value("SELECT id::text FROM identities ORDER BY updated_at DESC LIMIT 1")
        for ids in ([bobs], ["6e334b05-ee63-412a-a14e-8f0fe85097cd"], ["x"], "x", [1]):
            response = session.put("/user", json={"remove": ids})
            assert_error(response, 400, "validation_failed", details=A_SENTENCE)
        assert bob.get("/user").json["phone"] == OTHER_PHONE

    @pytest.mark.parametrize("kind", ["email", "phone"])
    def test_administrator_removes_an_address(self, client, session, owner, service_role, outbox, kind):
        sent = len(outbox.sent())
        route = f"/admin/users/{owner.id}"
        response = client.put(route, json={kind: None}, headers=service_role)
        assert (response.status_code, response.json[kind]) == (200, None)
        assert_error(session.get("/user"), 401, "session_not_found")
        # An undo link might go to a thief.
        assert len(outbox.sent()) == sent
        other = {"email": "phone", "phone": "email"}[kind]
        assert_error(client.put(route, json={other: None}, headers=service_role), *LAST_WAY)

    def test_administrator_replaces_the_only_address(self, client, owner, service_role):
        change = {"email": None, "phone": PHONE, "phone_confirm": True}
        response = client.put(f"/admin/users/{owner.id}", json=change, headers=service_role)
        assert (response.status_code, response.json["email"], response.json["phone"]) == (200, None, PHONE)
