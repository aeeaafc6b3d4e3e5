"""Acts of administrators on users in the console."""

import json
from typing import NamedTuple

import pytest

from auth.extensions.console.user_acts import USER_ACTS
from auth.flows.admin.user_acts import ACTS
from tests.support.answers import assert_error
from tests.support.api_keys import insert_key
from tests.support.audit import clear_history
from tests.support.cases import cases
from tests.support.commands import run_command
from tests.support.effects import ALL_EVENTS
from tests.support.factors import set_up
from tests.support.links import PHONE, assert_signs_in, type_in
from tests.support.pages import Visitor, words
from tests.support.passkeys import register as register_passkey
from tests.support.users import NEW_EMAIL, register, sign_in

CAROL = ("user", "carol@example.com")
PROMOTION = "UPDATE users SET role = 'admin' WHERE id = %s"
ONLY_THE_KEY = "Only the service role key can change"


@pytest.fixture
def go(armed):
    """Open the confirmation of an act, and return its text."""

    def go(person, act):
        page = armed.visit(f"/console/users/{person.id}/{act}")
        assert page.status == 200, words(page)
        return words(page)

    return go


def acts_of(database, person):
    """Return the acts on a person, with the administrator who did each."""
    rows = database.all(
        "SELECT action, actor, details ->> 'administrator' AS by FROM audit_log WHERE user_id = %(id)s AND reason IS NULL ORDER BY at, action",
        id=person.id,
    )
    return [(row.action, row.actor, row.by) for row in rows]


def is_banned(database, person):
    return database.count("users", "id = %(id)s AND banned_until IS NOT NULL", id=person.id) == 1


class Done(NamedTuple):
    """An act on a user: its name and fields, what the confirmation and the next page say, what it records and
    sends, and a condition on users that only then is true. `command` is its command line, and what that says.
    """

    act: str
    fields: dict[str, str]
    confirms: str
    says: str
    acts: list[str]
    events: list[str]
    effect: str
    needs_factor: bool = False
    command: tuple[str, str] | None = None
    before: str = "SELECT 1"


WANTED = {"name": "Ada", "nested": {"a": [1, None]}}
DONE = [
    Done(
        *(
            "end-sessions",
            {},
            "Ends 1 session. Leaves 1 API key, which you can remove on the user’s page. This can’t",
        ),
        *("All sessions ended.", ["signed_out"], ["auth.logout"]),
        "NOT EXISTS (SELECT FROM sessions AS s WHERE s.user_id = users.id AND s.ended_at IS NULL)",
        command=("sign-out {}", "is signed out everywhere."),
    ),
    Done(
        *(
            "ban",
            {"ban_duration": "24h"},
            "Ends 1 session. Voids 1 unused link or code. Removes 1 API key. Lifting",
        ),
        *("User banned. Can’t sign in: Banned until", ["banned"], ["user.updated"]),
        "banned_until > now() + interval '23 hours'",
        command=("ban {} --for 24h", "is banned until"),
    ),
    Done(
        *("unban", {}, "Lets 1 user sign in again.", "Ban lifted.", ["unbanned"], ["user.updated"]),
        "banned_until IS NULL",
        command=("unban {}", "is not banned."),
        before="UPDATE users SET banned_until = 'infinity' WHERE email = 'alice@example.com'",
    ),
    Done(
        *("unlock", {}, "Lets alice@example.com try again now.", "Lock cleared.", ["lock_cleared"], []),
        "NOT EXISTS (SELECT FROM failure_counts WHERE subject = users.email)",
        command=("unlock {}", "can try again."),
        before="INSERT INTO failure_counts VALUES"
        " ('login alice@example.com ::1', 20, now() + interval '1 hour', 'login', 'alice@example.com', '::1')",
    ),
    Done(
        *("recover", {}, "Sends 1 email to alice@example.com", "The recovery email is on its way."),
        *(["message_requested"], [], "(SELECT count(*) = 2 FROM outbox WHERE kind = 'recovery')"),
    ),
    Done(
        "metadata",
        {"user_metadata": json.dumps(WANTED, indent=1), "app_metadata": '{"big": 1.10}'},
        *("metadata", "Metadata saved.", ["user_changed"], ["user.updated"]),
        f"user_metadata = '{json.dumps(WANTED)}'",
    ),
    Done(
        *("addresses", {"email": "Ada@example.com", "phone": PHONE}),
        *("Changing the email or removing an address ends 1 session.", "ada@example.com not confirmed"),
        *(["email_changed", "email_unconfirmed", "phone_changed"], ["user.updated"]),
        f"email = 'ada@example.com' AND phone = '{PHONE}' AND email_confirmed_at IS NULL",
        True,
    ),
    Done(
        *(
            "delete",
            {},
            "Deletes 1 user with 1 identity, 1 session, 0 factors, 1 API key, and their metadata.",
        ),
        *("User deleted. This user was deleted.", ["user_deleted"], ["user.deleted"]),
        "false",
        True,
        ("delete {} --yes", "is deleted."),
    ),
]


@pytest.fixture
def begin(alice, client, database):
    """Return a function that lets an act find Alice with a session, a link and a key, and a webhook for all events."""

    def begin(done):
        alice.open_session()
        client.post("/recover", json={"email": alice.email})
        insert_key(database, alice.id)
        webhook = "gen_random_uuid(), 'https://hooks.example.com/', %(events)s, ''"
        database.run(f"INSERT INTO webhooks (id, url, events, secret) VALUES ({webhook})", events=ALL_EVENTS)
        database.run(done.before)
        clear_history(database)

    return begin


def is_done(database, alice, done):
    return database.count("users", f"id = %(id)s AND {done.effect}", id=alice.id) == 1


def assert_done(database, alice, done, by):
    assert acts_of(database, alice) == [(act, *by) for act in done.acts]
    events = database.all("SELECT kind FROM outbox WHERE channel = 'webhook' ORDER BY kind")
    assert [row.kind for row in events] == done.events
    if done.act == "delete":
        assert database.count("users", "id = %(id)s", id=alice.id) == 0
    else:
        assert is_done(database, alice, done)


@pytest.mark.parametrize("done", DONE, ids=lambda done: done.act)
def test_act_says_what_it_will_do_and_is_recorded_with_its_administrator(
    armed, codes, go, begin, alice, database, done
):
    begin(done)
    assert done.confirms in go(alice, done.act)
    assert not is_done(database, alice, done)
    if done.needs_factor:
        assert armed.press(done.act, **done.fields).status == 422
        assert acts_of(database, alice) == []
    code = {"factor_code": codes.code(1)} if done.needs_factor else {}
    assert done.says in words(armed.press(done.act, **done.fields, **code))
    assert_done(database, alice, done, CAROL)


def test_every_declared_act_is_among_these():
    assert {done.act for done in DONE if done.command} == ACTS.keys()


@pytest.mark.parametrize("done", [done for done in DONE if done.command], ids=lambda done: done.act)
def test_act_does_the_same_by_a_command(app, begin, alice, database, done):
    begin(done)
    line, says = done.command
    result = run_command(app, "users", *line.format(alice.email).split())
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"alice@example.com {says}")
    assert_done(database, alice, done, ("command", None))


@pytest.mark.parametrize(
    "done", [done for done in DONE if done.act in ACTS and ACTS[done.act].many], ids=lambda done: done.act
)
def test_act_does_the_same_to_many_users(armed, codes, begin, alice, database, done):
    begin(done)
    armed.visit(f"/console/users/chosen/{done.act}?id={alice.id}")
    armed.press(done.act, **done.fields, **({"factor_code": codes.code(1)} if done.needs_factor else {}))
    assert not is_done(database, alice, done)
    assert "1 of 1 done." in words(armed.press(armed.page.url.rpartition("/")[2]))
    assert_done(database, alice, done, CAROL)


class TestActs:
    def test_one_session_ends(self, armed, alice, bob, database):
        laptop, phone, bobs = alice.open_session(), alice.open_session(), bob.open_session()
        clear_history(database)
        path = f"/console/users/{alice.id}/sessions"
        assert armed.visit(f"{path}/{bobs.id}/end").status == 404
        assert "Ends 1 session: Unknown device" in words(armed.visit(f"{path}/{phone.id}/end"))
        assert "Session ended." in words(armed.press("/end"))
        assert [each.get("/user").status_code for each in (laptop, phone, bobs)] == [200, 401, 200]
        assert acts_of(database, alice) == [("session_ended", *CAROL)]
        assert "session ended, by administrator carol@example.com" in armed.page.text

    def test_present_addresses_withdraw_pending_changes(
        self, armed, go, codes, client, alice, database, outbox
    ):
        session = alice.open_session()
        session.put("/user", json={"email": NEW_EMAIL, "phone": PHONE})
        sent = [
            outbox.last(address, f"{kind}_change")
            for kind, address in (("email", NEW_EMAIL), ("phone", PHONE))
        ]
        clear_history(database)
        said = go(alice, "addresses")
        for pending in (NEW_EMAIL, PHONE):
            assert f"Withdraws the change to {pending}, which isn’t confirmed yet." in said
        page = armed.press("addresses", factor_code=codes.code(1))
        assert "Addresses saved." in words(page)
        assert acts_of(database, alice) == [
            ("email_change_withdrawn", *CAROL),
            ("phone_change_withdrawn", *CAROL),
        ]
        assert "email change to new@example.com withdrawn" in words(page)
        assert "not confirmed yet" not in words(page)
        for message in sent:
            assert_error(type_in(client, message.kind, message.to, message.code), 403, "otp_expired")
        # No user is signed out, and no address has changed.
        assert session.get("/user").json["email"] == alice.email
        assert "Withdraws" not in go(alice, "addresses")

    def test_lock_of_wrong_passwords_and_codes_is_cleared(self, armed, go, alice, bob, database, client):
        alices = [f"login {alice.email} 10.0.0.1", f"account {alice.email}", f"user {alice.id} 10.0.0.1"]
        alices += [f"user {alice.id}", f"totp {alice.id}", f"recovery {alice.id} 10.0.0.1"]
        alices += [f"code {alice.email}", f"try {alice.email} 10.0.0.1", f"nobody {alice.email}"]
        # A pending change must not free the owner of that address, nor a name the names that begin like it.
        others = [f"login {bob.email} 10.0.0.1", f"totp {bob.id}", f"message {alice.email} 3600"]
        others += [f"code {alice.email}.au"]
        client.post("/recover", json={"email": alice.email})
        code = "SELECT id FROM one_time_tokens WHERE purpose = 'recovery'"
        alices.append(f"try {database.value(code)} 10.0.0.1")
        database.run("UPDATE users SET new_email = %(to)s WHERE id = %(id)s", to=bob.email, id=alice.id)
        database.run("DELETE FROM failure_counts")
        assert "Clear the lock" not in words(armed.visit(f"/console/users/{alice.id}"))
        for key in alices + others:
            database.run(
                "INSERT INTO failure_counts SELECT %(key)s, 20, now() + interval '1 hour', parts[1], parts[2], parts[3]"
                "  FROM string_to_array(%(key)s, ' ') AS parts",
                key=key,
            )
        assert "wrong authenticator codes" in words(armed.visit(f"/console/users/{alice.id}"))
        clear_history(database)
        assert f"{alice.id}/unlock" in armed.page.text
        assert f"Lets {alice.email} try again now." in go(alice, "unlock")
        said = words(armed.press("unlock"))
        assert "Lock cleared." in said
        assert "wrong authenticator codes" not in said
        assert {row.key for row in database.all("SELECT key FROM failure_counts")} == set(others)
        assert acts_of(database, alice) == [("lock_cleared", *CAROL)]

    def test_lost_factor_is_removed_with_a_code_for_it(self, armed, codes, alice, bob, database, outbox):
        bobs, _session = set_up(bob.open_session())
        lost, session = set_up(alice.open_session(), "Phone")
        register_passkey(session)
        clear_history(database)
        path = f"/console/users/{alice.id}/factors"
        assert armed.visit(f"{path}/{bobs.id}/remove").status == 404
        said = words(armed.visit(f"{path}/{lost.id}/remove"))
        assert "Removes 1 authenticator app: Phone. Sessions that used it" in said
        assert armed.press("/remove", factor_code=codes.wrong_code()).status == 422
        assert database.count("factors", "user_id = %(id)s", id=alice.id) == 2
        code = codes.code(1)
        assert "Removed." in words(armed.press("/remove", factor_code=code))
        assert acts_of(database, alice) == [("factor_removed", *CAROL)]
        assert outbox.last(alice.email).kind == "factor_removed"
        (passkey,) = database.all("SELECT id FROM factors WHERE user_id = %(id)s", id=alice.id)
        armed.visit(f"{path}/{passkey.id}/remove")
        # A code is good once.
        assert armed.press("/remove", factor_code=code).status == 422

    def test_user_is_created_with_a_name_and_a_password_of_the_policy(self, operator, client, database):
        fields = {"name": " Dave ", "email": "Dave@example.com", "phone": "", "password": "weak"}
        for wrong, status, problem in (
            ({}, 400, "password"),
            ({"password": "Correct-Horse-1", "email": ""}, 400, "Enter an email address"),
            ({"password": "Correct-Horse-1", "email": "carol@example.com"}, 409, "Another user has this"),
        ):
            operator.visit("/console/users/create")
            page = operator.press("create", **fields | wrong)
            assert (page.status, problem in words(page), "Correct-Horse" in page.text) == (
                status,
                True,
                False,
            )
        page = operator.press("create", **fields | {"password": "Correct-Horse-1", "is_confirmed": "yes"})
        assert "User created." in words(page)
        assert "user created by an administrator, carol@example.com" in words(page)
        user = database.one("SELECT user_metadata, role FROM users WHERE email = 'dave@example.com'")
        assert user == ({"name": "Dave"}, "authenticated")
        assert sign_in(client, "dave@example.com", "Correct-Horse-1").status_code == 200

    def test_invited_user_gets_a_link_but_an_administrator_does_not(self, operator, client, outbox, database):
        def invite(email="dave@example.com"):
            shown = operator.visit("/console/users/invite")
            assert ("In use: ops, staff." in shown.text) == bool(
                database.count("users", "email = 'dave@example.com'")
            )
            return operator.press("invite", email=email, groups=" staff ,ops,staff")

        said = words(invite("Dave@example.com"))
        assert "The invitation is on its way." in said
        assert "invited, by administrator carol@example.com" in said
        chosen = database.value("SELECT app_metadata -> 'groups' FROM users WHERE email = 'dave@example.com'")
        assert chosen == ["staff", "ops"]
        database.run("UPDATE users SET role = 'admin' WHERE email = 'dave@example.com'")
        database.run("DELETE FROM request_counts")
        before = database.everything("users", "outbox", "one_time_tokens")
        page = invite()
        assert (page.status, ONLY_THE_KEY in page.text) == (403, True)
        assert database.everything("users", "outbox", "one_time_tokens") == before
        database.run("UPDATE users SET role = 'authenticated' WHERE email = 'dave@example.com'")
        assert_signs_in(client, "invite", outbox.last("dave@example.com").token)
        page = invite()
        assert (page.status, 'value="dave@example.com" aria-invalid' in page.text) == (409, True)


class TestRefusals:
    @cases(
        ("name", "fields", "status", "problem"),
        [
            *(("ban", {"ban_duration": each}, 400, 'id="problem"') for each in ("", "x", "0s", "99999999w")),
            ("metadata", {"user_metadata": '{"a": }'}, 400, "User metadata must be valid JSON"),
            ("metadata", {"app_metadata": "[1]"}, 400, "App metadata must be a JSON object"),
            ("metadata", {"app_metadata": '{"a": 1, "a": 2}'}, 400, "must not repeat a member"),
            ("metadata", {"user_metadata": f'{{"a": "{"x" * 9000}"}}'}, 400, "User metadata is too large"),
            ("addresses", {"email": "ada@"}, 400, "Enter an email address, such as"),
            ("addresses", {"email": "bob@example.com"}, 409, "Another user has this email address."),
            ("addresses", {"email": ""}, 422, "This would remove the last way to sign in"),
        ],
    )
    def test_mistake_is_shown_at_its_field_and_nothing_is_changed_or_lost(
        self, armed, codes, go, alice, bob, database, name, fields, status, problem
    ):
        go(alice, name)
        database.run("UPDATE factors SET last_step = NULL")
        before = database.everything("users", "identities", "sessions", "one_time_tokens")
        page = armed.press(name, factor_code=codes.code(1), **fields)
        assert (page.status, problem in page.text) == (status, True)
        ((field, text),) = fields.items()
        # The durations of a ban are a list to choose from.
        assert name == "ban" or text in [form.fields.get(field) for form in page.forms]
        assert name == "ban" or not text or 'aria-invalid="true"' in page.text
        assert database.everything("users", "identities", "sessions", "one_time_tokens") == before

    def test_passkey_that_is_the_last_way_to_sign_in_is_removed_by_the_service_role_key_alone(
        self, armed, codes, alice, client, service_role, database
    ):
        _authenticator, passkey = register_passkey(alice.open_session())
        assert (
            client.put(f"/admin/users/{alice.id}", json={"email": None}, headers=service_role).status_code
            == 200
        )
        shown = armed.visit(f"/console/users/{alice.id}/factors/{passkey['id']}/remove")
        assert shown.status == 200, words(shown)
        page = armed.press("/remove", factor_code=codes.code(1))
        assert (page.status, "This would remove the last way to sign in" in page.text) == (422, True)
        assert database.count("factors", "factor_type = 'passkey'") == 1
        path = f"/admin/users/{alice.id}/passkeys/{passkey['id']}"
        assert client.delete(path, headers=service_role).status_code == 200
        assert database.count("factors", "factor_type = 'passkey'") == 0

    def test_change_of_another_meanwhile_is_not_overwritten(self, armed, go, alice, database):
        go(alice, "metadata")
        alice.sign_in().put("/user", json={"data": {"name": "Alice"}})
        mine = '{"note": "mine"}'
        page = armed.press("metadata", user_metadata=mine)
        assert (page.status, "This has changed since you opened it" in page.text) == (409, True)
        assert '{ "name": "Alice" }' in words(page)
        # Having seen the other change, the administrator may replace it.
        assert "Metadata saved." in words(armed.press("metadata"))
        found = database.value("SELECT user_metadata FROM users WHERE id = %(id)s", id=alice.id)
        assert found == {"note": "mine"}

    def test_act_that_is_not_needed_or_of_a_user_who_is_gone_is_refused(
        self, armed, codes, go, alice, database
    ):
        go(alice, "recover")
        database.run("UPDATE users SET banned_until = 'infinity' WHERE id = %(id)s", id=alice.id)
        page = armed.press("recover")
        assert (page.status, "needed: the address is confirmed" in page.text) == (409, True)
        assert database.count("outbox", "kind = 'recovery'") == 0
        go(alice, "delete")
        database.run("DELETE FROM users WHERE id = %(id)s", id=alice.id)
        assert armed.press("delete", factor_code=codes.code(1)).status == 404

    def test_other_administrators_and_oneself_are_refused(self, armed, codes, carol, alice, database):
        for name in USER_ACTS:
            database.run("UPDATE users SET role = 'authenticated' WHERE id = %(id)s", id=alice.id)
            armed.visit(f"/console/users/{alice.id}/{name}")
            database.run("UPDATE users SET role = 'admin' WHERE id = %(id)s", id=alice.id)
            before = database.everything()
            filled = {"ban_duration": "1h", "factor_code": codes.code(1), "email": "x@example.com"}
            page = armed.press(name, **filled)
            assert (page.status, ONLY_THE_KEY in page.text) == (403, True), name
            assert armed.visit(f"/console/users/{carol.id}/{name}").status == 403
            assert database.everything() == before
        clear_history(database)
        assert armed.visit(f"/console/users/{alice.id}/ban").status == 403
        refusal = database.one("SELECT * FROM audit_log WHERE reason IS NOT NULL")
        assert (refusal.action, refusal.reason) == ("admin_refused", "insufficient_permissions")
        assert (refusal.actor_id, refusal.user_id) == (carol.id, alice.id)


class TestRaces:
    @pytest.mark.parametrize(
        ("name", "change", "status"),
        [
            ("recover", PROMOTION, 403),
            ("recover", "UPDATE users SET email = 'new@example.com' WHERE id = %s", 409),
        ],
        ids=["recovery of an administrator", "recovery at an old address"],
    )
    def test_lock_decides_whom_an_act_is_for(self, operator, alice, database, name, change, status):
        operator.visit(f"/console/users/{alice.id}/{name}")
        with database.locked("users", alice.id, change) as lock:
            acted = lock.start(lambda: operator.press(name))
        assert acted.result().status == status
        assert database.count("outbox") == database.count("one_time_tokens") == 0

    def test_administrator_who_is_signed_out_meanwhile_does_not_act(self, operator, carol, alice, database):
        operator.visit(f"/console/users/{alice.id}/ban")
        end = "UPDATE sessions SET ended_at = now(), end_reason = 'logout' WHERE user_id = %(id)s"
        with database.locked("users", alice.id) as lock:
            banned = lock.start(lambda: operator.press("ban", ban_duration="1h"))
            database.run(end, id=carol.id)
        assert (banned.result().status, operator.page.url.endswith("/ban")) == (200, False)
        assert not is_banned(database, alice)

    @pytest.mark.parametrize("first", ["delete", "ban"])
    def test_deletion_and_ban_follow_each_other(
        self, armed, codes, app, client, service_role, alice, database, first
    ):
        dora = register(client, service_role, "dora@example.com", role="admin")
        banning = Visitor(app).signed_in_as(dora)
        banning.visit(f"/console/users/{alice.id}/ban")
        armed.visit(f"/console/users/{alice.id}/delete")
        code = codes.code(1)
        acts = {
            "ban": lambda: banning.press("ban", ban_duration="1h").status,
            "delete": lambda: armed.press("delete", factor_code=code).status,
        }
        clear_history(database)
        with database.locked("users", alice.id) as lock:
            answers = [lock.start(acts.pop(first)), lock.start(acts.popitem()[1])]
        is_deletion = first == "delete"
        assert [answer.result() for answer in answers] == ([200, 404] if is_deletion else [200, 200])
        names = [row[0] for row in acts_of(database, alice) if row[0] != "signed_out"]
        assert names == (["user_deleted"] if is_deletion else ["banned", "user_deleted"])
        assert database.count("users", "id = %(id)s", id=alice.id) == 0
