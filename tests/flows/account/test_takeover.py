"""Mallory has stolen a session of Alice and adds ways to sign in. Alice gets her account back by following
the messages, and Mallory keeps nothing.
"""

import re
from pathlib import Path

import pytest

from tests.support import previous_release
from tests.support.answers import A_SENTENCE, A_TIMESTAMP, A_UUID, assert_error, assert_ok
from tests.support.factors import set_up
from tests.support.links import EXPIRED, OTHER_PHONE, PHONE, follow, fragment, hand_in, path, press, type_in
from tests.support.oauth import SITE, link
from tests.support.pages import Visitor
from tests.support.server import at_once
from tests.support.users import MALLORY, NEW_PASSWORD, PASSWORD, register, session_of

pytest_plugins = ["tests.support.oauth_fixtures"]
ROOT = Path(__file__).parents[3]
SQL = ROOT / "sql"
UNDONE = {
    "message": "The account was taken back, and its password removed; choose a new one to sign in",
    "type": "undo",
}
ADDED_PHONE = {"id": A_UUID, "type": "phone", "added_at": A_TIMESTAMP, "label": PHONE}
LAST_WAY = (422, "single_identity_not_deletable")


def age(database, days=30):
    for assignment in (
        "users SET created_at",
        "identities SET created_at",
        "identities SET updated_at",
        "sessions SET created_at",
    ):
        column = assignment.rpartition(" ")[2]
        database.run(f"UPDATE {assignment} = {column} - make_interval(days => %(days)s)", days=days)


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


def signs_in_by_phone(client, outbox, phone, user_id):
    client.post("/otp", json={"phone": phone, "create_user": False})
    messages = outbox.sent(phone, "sms")
    response = messages and type_in(client, "sms", phone, messages[-1].code)
    return bool(response) and response.status_code == 200 and response.json["user"]["id"] == user_id


def assert_taken_back(client, owner, outbox, thief):
    """Assert that no session and no password works, and that Alice gets in with her mailbox."""
    assert_error(thief.get("/user"), 401, "session_not_found")
    assert_error(thief.refresh(), 400, "refresh_token_not_found")
    assert_error(owner.try_to_sign_in(), 401, "invalid_credentials")
    session = session_of(client, recover(client, outbox, owner.email))
    assert session.put("/user", json={"password": NEW_PASSWORD}).status_code == 200
    assert owner.try_to_sign_in(NEW_PASSWORD).json["user"]["id"] == owner.id
    return session


class TestNotice:
    def test_added_phone_is_undone_by_the_link_in_the_mail(self, client, owner, thief, outbox, mailbox):
        by_phone = add_phone(thief, outbox)
        (notice,) = mailbox.messages_to(owner.email)
        assert "Not you? Secure your account." in notice.text
        assert fragment(open_link(client, mailbox, owner.email)) == UNDONE
        session = assert_taken_back(client, owner, outbox, thief)
        assert_error(by_phone.get("/user"), 401, "session_not_found")
        assert not signs_in_by_phone(client, outbox, PHONE, owner.id)
        assert session.get("/user").json["phone"] is None

    def test_page_lists_what_was_added_in_seven_days_and_keeps_what_the_user_unticks(
        self, service, owner, thief, outbox, database
    ):
        session, visitor = thief.on(service.client), Visitor(service.app)
        add_phone(session, outbox)
        age(database, days=8)
        link(service, owner.sign_in().on(service.client), "google")
        change_email(owner.sign_in().on(service.client), outbox)
        visitor.visit(path("undo", outbox.last(owner.email).token))
        assert 'and make <bdi translate="no">alice@example.com</bdi> its address' in visitor.page.text
        ids = visitor.page.forms[0].fields["shown"]
        assert ids == database.value("SELECT id::text FROM identities WHERE provider = 'google'")
        assert "…567" not in visitor.page.text
        visitor.press("verify", remove="")
        assert database.one("SELECT email, phone FROM users") == (owner.email, PHONE)
        assert database.count("identities", "provider = 'google'") == 1

    def test_additions_made_while_the_page_was_open_are_removed(self, client, owner, thief, outbox, database):
        add_phone(thief, outbox)
        token = outbox.last(owner.email, "phone_changed").token
        shown_id = "6e334b05-ee63-412a-a14e-8f0fe85097cd"
        assert press(client, "undo", token, shown=shown_id).status_code == 303
        assert database.value("SELECT phone FROM users") is None

    def test_holder_of_the_restored_address_is_told_without_a_link(self, client, owner, thief, outbox):
        change_email(thief, outbox)
        follow(client, "undo", outbox.last(owner.email, "email_changed").token)
        (notice,) = outbox.sent(MALLORY, "email_changed")
        assert notice.token is None

    def test_change_after_taking_back_is_told_apart_from_a_notice_that_is_void(
        self, client, owner, thief, outbox
    ):
        for number in range(3):
            add_phone(thief, outbox, f"+4917012345{number}0")
        first, second = outbox.sent(owner.email, "phone_changed")
        follow(client, "undo", first.token)
        assert fragment(follow(client, "undo", second.token)) == EXPIRED
        session = session_of(client, recover(client, outbox, owner.email))
        add_phone(session, outbox)
        assert fragment(follow(client, "undo", outbox.last(owner.email, "phone_changed").token)) == UNDONE


class TestFiftyAtOnce:
    def test_link_works_once(self, app, owner, thief, outbox, database):
        add_phone(thief, outbox)
        token = outbox.last(owner.email, "phone_changed").token
        answers = at_once(50, lambda _number: fragment(follow(app.test_client(), "undo", token)))
        assert sorted({answer.get("error_code", "") for answer in answers}) == ["", "otp_expired"]
        assert len([answer for answer in answers if answer == UNDONE]) == 1
        assert database.count("audit_log", "action = 'change_undone' AND reason IS NULL") == 1

    def test_links_of_several_notices_leave_no_later_one(self, app, owner, thief, outbox, database):
        tokens = []
        for number in range(5):
            add_phone(thief, outbox, f"+4917012345{number}0")
            tokens.append(outbox.last(owner.email, "phone_changed").token)
        answers = at_once(50, lambda number: fragment(follow(app.test_client(), "undo", tokens[number % 5])))
        undone = len([answer for answer in answers if answer == UNDONE])
        assert 1 <= undone <= 5
        assert (
            database.count(
                "one_time_tokens", "purpose = 'undo' AND spent_at IS NULL AND token_hash IS NOT NULL"
            )
            == 0
        )
        assert database.one("SELECT email, phone FROM users") == (owner.email, None)


class TestAddress:
    @pytest.mark.parametrize("is_proved", [False, True])
    def test_address_comes_back_unless_another_user_has_proved_it(
        self, client, owner, thief, outbox, database, is_proved
    ):
        add_phone(owner.sign_in(), outbox)
        age(database, 10)
        change_email(owner.sign_in(), outbox)
        token = outbox.last(owner.email, "email_changed").token
        client.post("/signup", json={"email": owner.email, "password": PASSWORD})
        if is_proved:
            type_in(client, "signup", owner.email, outbox.last(owner.email, "signup").code)
        follow(client, "undo", token)
        row = database.one("SELECT email, phone FROM users WHERE id = %(id)s", id=owner.id)
        assert row == (None if is_proved else owner.email, PHONE)
        assert database.count("users", "email IS NOT NULL") == 1

    def test_something_that_can_sign_in_remains_if_another_user_has_the_address(
        self, client, owner, thief, outbox, database
    ):
        change_email(thief, outbox)
        client.post("/magiclink", json={"email": owner.email})
        hand_in(client, "magiclink", outbox.last(owner.email, "magiclink").token)
        before = database.everything("users", "identities", "sessions", "one_time_tokens")
        response = follow(client, "undo", outbox.last(owner.email, "email_changed").token)
        assert fragment(response)["error_code"] == "single_identity_not_deletable"
        assert database.everything("users", "identities", "sessions", "one_time_tokens") == before

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

    def test_address_stays_with_a_user_who_gets_it_during_the_undo(
        self, app, bob, owner, thief, outbox, database
    ):
        change_email(thief, outbox)
        token = outbox.last(owner.email, "email_changed").token
        with database.locked(
            "users", bob.id, f"UPDATE users SET email = '{owner.email}' WHERE id = %s"
        ) as lock:
            future = lock.start(lambda: follow(app.test_client(), "undo", token))
        assert fragment(future.result())["error_code"] == "email_exists"
        assert thief.get("/user").status_code == 200
        assert database.value("SELECT email FROM users WHERE id = %(id)s", id=owner.id) == MALLORY


class TestLinksToTheThief:
    """An address that was the thief's for a while gets undo links too."""

    def six_days_later(self, database):
        database.run(
            "UPDATE one_time_tokens SET expires_at = expires_at - interval '6 days' WHERE purpose = 'undo'"
        )

    def test_links_to_the_thief_end_with_the_links_to_earlier_addresses(self, owner, thief, outbox, database):
        change_email(thief, outbox)
        self.six_days_later(database)
        change_email(thief, outbox, "mallory2@evil.example")
        assert 86_000 < outbox.last(MALLORY, "email_changed").lifetime <= 86_400
        condition = "purpose = 'undo' AND expires_at > now() + interval '1 day'"
        assert database.count("one_time_tokens", condition) == 0

    @pytest.mark.parametrize("change", [{"email": "alice@example.com"}, {"phone": None}], ids=str)
    def test_change_by_an_administrator_voids_links_to_the_thief(
        self, client, owner, thief, outbox, service_role, change
    ):
        add_phone(thief, outbox)
        change_email(thief, outbox)
        change_email(thief, outbox, "mallory2@evil.example")
        to_mallory = outbox.last(MALLORY, "email_changed").token
        response = client.put(f"/admin/users/{owner.id}", json=change, headers=service_role)
        assert response.status_code == 200
        assert fragment(follow(client, "undo", to_mallory)) == EXPIRED


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
        owners_session = session_of(client, response)
        assert_ok(owners_session.get("/user/recent_changes"), {"recent_changes": recent})
        answer = owners_session.put(
            "/user", json={"password": NEW_PASSWORD, "remove": [each["id"] for each in recent]}
        )
        assert answer.status_code == 200
        assert (answer.json["phone"], answer.json["app_metadata"]["providers"]) == (None, ["email"])
        for stolen in (session, by_phone):
            assert_error(stolen.get("/user"), 401, "session_not_found")
        assert not signs_in_by_phone(client, outbox, PHONE, owner.id)
        assert service.session(service.sign_in("google")).get("/user").json["id"] != owner.id
        assert recover(client, outbox, owner.email).json["recent_changes"] == []

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

    def test_administrator_removes_a_factor_that_was_added_and_its_sessions(
        self, client, owner, thief, outbox, service_role, database
    ):
        _, raised = set_up(thief)
        route = f"/admin/users/{owner.id}"
        (change,) = client.get(f"{route}/recent_changes", headers=service_role).json["recent_changes"]
        assert change["type"] == "totp"
        response = client.put(route, json={"remove": [change["id"]]}, headers=service_role)
        assert response.status_code == 200
        assert database.count("factors") == 0
        assert_error(raised.get("/user"), 401, "session_not_found")
        assert outbox.last(owner.email, "factor_removed")
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
    def test_address_is_removed_with_its_identity_after_a_proof(self, session, owner, outbox, database, kind):
        other = owner.sign_in()
        other.put("/user", json={"email": "later@example.com"})
        pending = outbox.last("later@example.com").token
        database.run("UPDATE sessions SET created_at = now() - interval '15 minutes'")
        refusal = session.remove_identity(kind)
        assert_error(refusal, 400, "reauthentication_needed", details=A_SENTENCE)
        address = session.get("/user").json[kind]
        response = session.remove_identity(kind, current_password=PASSWORD)
        assert_ok(response, {"message": "Identity unlinked", "timestamp": A_TIMESTAMP})
        user = session.get("/user").json
        assert (user[kind], user[f"{kind}_confirmed_at"]) == (None, None)
        remaining = "phone" if kind == "email" else "email"
        assert [each["provider"] for each in user["identities"]] == [remaining]
        statement = f"SELECT details FROM audit_log WHERE action = '{kind}_removed'"
        assert database.value(statement) == {f"old_{kind}": address}
        assert fragment(follow(session.client, "email_change", pending)) == EXPIRED
        notice = outbox.sent()[-1]
        assert (notice.kind, notice.to, notice.lifetime) == (f"{kind}_changed", owner.email, 7 * 86_400)
        assert_error(other.get("/user"), 401, "session_not_found")
        assert session.get("/user").status_code == 200

    def test_one_of_two_addresses_removed_concurrently_remains(self, app, session, database):
        def remove(kind):
            return session.on(app.test_client()).remove_identity(kind).status_code

        statuses = at_once(2, lambda index: remove(("email", "phone")[index]))
        assert sorted(statuses) == [200, 422]
        assert database.count("users", "num_nonnulls(email, phone) = 1") == 1

    def test_ids_that_are_not_recent_changes_of_the_user_are_refused(
        self, client, session, service_role, outbox, database
    ):
        bob = register(client, service_role, "bob@example.com").sign_in()
        add_phone(bob, outbox, OTHER_PHONE)
        bobs_identity = database.value("SELECT id::text FROM identities ORDER BY updated_at DESC LIMIT 1")
        for ids in ([bobs_identity], ["6e334b05-ee63-412a-a14e-8f0fe85097cd"], ["x"], "x", [1]):
            response = session.put("/user", json={"remove": ids})
            assert_error(response, 400, "validation_failed", details=A_SENTENCE)
        assert bob.get("/user").json["phone"] == OTHER_PHONE

    @pytest.mark.parametrize("kind", ["email", "phone"])
    def test_administrator_removes_an_address(self, client, session, owner, service_role, outbox, kind):
        number = len(outbox.sent())
        route = f"/admin/users/{owner.id}"
        response = client.put(route, json={kind: None}, headers=service_role)
        assert (response.status_code, response.json[kind]) == (200, None)
        assert_error(session.get("/user"), 401, "session_not_found")
        # An undo link might go to a thief.
        assert len(outbox.sent()) == number
        other = {"email": "phone", "phone": "email"}[kind]
        assert_error(client.put(route, json={other: None}, headers=service_role), *LAST_WAY)


@pytest.mark.parametrize(
    ("pattern", "homes"),
    [
        (r"INSERT INTO one_time_tokens [^;]*'undo'", ["factors.sql", "messages.sql"]),
        ("restores ->> 'provider'", ["functions/one_time_tokens.sql", "undo.sql"]),
    ],
    ids=["links of notices", "factors that were removed"],
)
def test_taking_back_has_one_home(pattern, homes):
    """Except for the copies of old factors, which rows without a link keep for seven days."""
    paths = sorted(path for path in SQL.rglob("*.sql") if not path.match("*/migrations/*"))
    files = [path for path in paths if path.name != previous_release.FILE]
    matches = [
        path
        for path in files
        if any(re.search(pattern, each, re.DOTALL) for each in path.read_text().split(";"))
    ]
    assert [str(path.relative_to(SQL)) for path in matches] == homes
