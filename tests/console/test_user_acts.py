"""What administrators do to users in the console."""

import json

import pytest

from auth.console.user_acts import USER_ACTS
from tests.support.audit import clear_history
from tests.support.cases import cases
from tests.support.cast import register
from tests.support.factors import set_up
from tests.support.links import PHONE, assert_signs_in
from tests.support.pages import Visitor, words
from tests.support.passkeys import register as register_passkey
from tests.support.server import at_once


@pytest.fixture
def go(operator):
    """Open the confirmation of an act, and return its text."""

    def go(person, act):
        page = operator.visit(f"/console/users/{person.id}/{act}")
        assert page.status == 200, words(page)
        return words(page)

    return go


@pytest.fixture
def act(operator, go):
    """Do an act, and return the text of the next page."""

    def act(person, name, **fields):
        go(person, name)
        return words(operator.press(name, **fields))

    return act


def acts_of(database, person):
    """Return the acts on a person, with the administrator who did each."""
    rows = database.all(
        "SELECT action, actor, details ->> 'administrator' AS by FROM audit_log WHERE user_id = %(id)s AND reason IS NULL ORDER BY at, action",
        id=person.id,
    )
    return [(row.action, row.actor, row.by) for row in rows]


def sent_again(page):
    """Return the fields of the form of metadata on a page."""
    return next(form.fields for form in page.forms if form.action.endswith("metadata"))


CAROL = ("user", "carol@example.com")


class TestSessions:
    def test_all_sessions_end(self, go, act, alice, database):
        laptop, phone = alice.open_session(), alice.open_session()
        clear_history(database)
        said = go(alice, "end-sessions")
        assert "Ends 2 sessions. This cannot be undone. They can sign in again." in said
        assert "All sessions have ended." in act(alice, "end-sessions")
        assert (laptop.get("/user").status_code, phone.refresh().status_code) == (401, 400)
        assert acts_of(database, alice) == [("signed_out", *CAROL)]

    def test_one_session_ends(self, operator, alice, bob, database):
        laptop, phone, bobs = alice.open_session(), alice.open_session(), bob.open_session()
        clear_history(database)
        path = f"/console/users/{alice.id}/sessions"
        assert operator.visit(f"{path}/{bobs.id}/end").status == 404
        assert "Ends 1 session: Unknown device" in words(operator.visit(f"{path}/{phone.id}/end"))
        assert "The session has ended." in words(operator.press("/end"))
        assert (laptop.get("/user").status_code, phone.get("/user").status_code) == (200, 401)
        assert acts_of(database, alice) == [("session_ended", *CAROL)]
        assert "session ended, by administrator carol@example.com" in operator.page.text
        assert bobs.get("/user").status_code == 200


class TestBan:
    def test_user_is_banned_and_let_in_again(self, go, act, alice, client, database):
        alice.sign_in()
        client.post("/recover", json={"email": alice.email})
        clear_history(database)
        assert "Ends 1 session. Voids 1 unused link or code. Lifting the ban" in go(alice, "ban")
        said = act(alice, "ban", ban_duration="24h")
        assert "The user is banned." in said
        assert "Cannot sign in: Banned until" in said
        assert alice.try_to_sign_in().status_code == 403
        assert "The ban is lifted." in act(alice, "unban")
        assert alice.try_to_sign_in().status_code == 200
        by_carol = [row for row in acts_of(database, alice) if row[1:] == CAROL]
        assert by_carol == [("banned", *CAROL), ("unbanned", *CAROL)]

    @cases("duration", ["", "x", "0s", "99999999w"])
    def test_malformed_duration_changes_nothing(self, operator, go, alice, database, duration):
        go(alice, "ban")
        before = database.everything("users", "sessions", "audit_log")
        page = operator.press("ban", ban_duration=duration)
        assert (page.status, 'id="problem"' in page.text) == (400, True)
        assert database.everything("users", "sessions", "audit_log") == before


class TestRecovery:
    def test_link_signs_in(self, act, alice, client, outbox, database):
        clear_history(database)
        assert "The recovery is on its way." in act(alice, "recover")
        assert acts_of(database, alice) == [("message_requested", *CAROL)]
        assert_signs_in(client, "recovery", outbox.last(alice.email, kind="recovery").token)

    def test_administrator_is_told_why_none_is_sent(self, operator, go, alice, database):
        go(alice, "recover")
        database.run("UPDATE users SET banned_until = 'infinity' WHERE id = %(id)s", id=alice.id)
        page = operator.press("recover")
        assert (page.status, "This message is not needed" in page.text) == (409, True)
        assert database.count("outbox") == 0


class TestMetadata:
    def test_members_are_added_changed_and_removed(self, act, alice, client, service_role, database):
        body = {"user_metadata": {"name": "Alice", "old": 1}, "app_metadata": {"big": 1.10}}
        client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)
        clear_history(database)
        wanted = {"name": "Ada", "nested": {"a": [1, None]}}
        said = act(
            alice, "metadata", user_metadata=json.dumps(wanted, indent=1), app_metadata='{"big": 1.10}'
        )
        assert "The metadata is saved." in said
        user = client.get(f"/admin/users/{alice.id}", headers=service_role).json
        assert user["user_metadata"] == wanted
        assert acts_of(database, alice) == [("user_changed", *CAROL)]

    @cases(
        ("field", "text", "problem"),
        [
            ("user_metadata", '{"a": }', "User metadata must be valid JSON"),
            ("app_metadata", "[1]", "App metadata must be a JSON object"),
            ("app_metadata", '{"a": 1, "a": 2}', "App metadata must not name a member twice"),
            ("user_metadata", json.dumps({"a": "x" * 9000}), "User metadata is too large"),
        ],
    )
    def test_mistake_is_shown_at_its_field_and_nothing_is_lost(
        self, operator, go, alice, database, field, text, problem
    ):
        go(alice, "metadata")
        before = database.everything("users", "audit_log")
        page = operator.press("metadata", **{field: text})
        assert (page.status, problem in words(page)) == (400, True)
        assert sent_again(page)[field] == text
        assert f'name="{field}" rows="10" spellcheck="false" required aria-invalid="true"' in page.text
        assert database.everything("users", "audit_log") == before

    def test_change_of_another_meanwhile_is_not_overwritten(self, operator, go, alice, database):
        go(alice, "metadata")
        alice.sign_in().put("/user", json={"data": {"name": "Alice"}})
        mine = '{"note": "mine"}'
        page = operator.press("metadata", user_metadata=mine)
        assert (page.status, "This was changed meanwhile" in page.text) == (409, True)
        assert '{ "name": "Alice" }' in words(page)
        assert sent_again(page)["user_metadata"] == mine
        # Having seen the other change, the administrator may replace it.
        assert "The metadata is saved." in words(operator.press("metadata"))
        assert database.value("SELECT user_metadata FROM users WHERE email = 'alice@example.com'") == {
            "note": "mine"
        }


class TestFactor:
    def test_lost_factor_is_removed_with_a_code_for_this_act(self, armed, codes, alice, database, outbox):
        lost, session = set_up(alice.open_session(), "Phone")
        register_passkey(session)
        clear_history(database)
        path = f"/console/users/{alice.id}/factors/{lost.id}/remove"
        assert "Removes 1 authenticator app: Phone. Sessions that it raised" in words(armed.visit(path))
        assert armed.press("/remove", factor_code=codes.wrong_code()).status == 422
        assert database.count("factors", "user_id = %(id)s", id=alice.id) == 2
        code = codes.code(1)
        assert "It is removed." in words(armed.press("/remove", factor_code=code))
        assert acts_of(database, alice) == [("factor_removed", *CAROL)]
        assert outbox.last(alice.email).kind == "factor_removed"
        (passkey,) = database.all("SELECT id FROM factors WHERE user_id = %(id)s", id=alice.id)
        armed.visit(f"/console/users/{alice.id}/factors/{passkey.id}/remove")
        # A code is good once.
        assert armed.press("/remove", factor_code=code).status == 422

    def test_factor_of_another_user_is_not_found(self, armed, alice, bob):
        lost, _session = set_up(bob.open_session())
        assert armed.visit(f"/console/users/{alice.id}/factors/{lost.id}/remove").status == 404


class TestAddresses:
    def test_email_is_changed_and_phone_added(self, armed, codes, alice, client, database):
        session = alice.open_session()
        clear_history(database)
        said = words(armed.visit(f"/console/users/{alice.id}/addresses"))
        assert "A changed email ends 1 session, as does a removed address." in said
        fields = {"email": "Ada@example.com", "phone": PHONE, "factor_code": codes.code(1)}
        said = words(armed.press("addresses", **fields))
        assert "The addresses are saved." in said
        assert "ada@example.com not confirmed" in said
        assert session.get("/user").status_code == 401
        assert acts_of(database, alice) == [
            (name, *CAROL) for name in ("email_changed", "email_unconfirmed", "phone_changed")
        ]

    @pytest.mark.parametrize(
        ("fields", "status", "problem"),
        [
            ({"email": "ada@"}, 400, "Enter an email address, such as"),
            ({"email": "bob@example.com"}, 409, "has already been registered"),
            ({"email": ""}, 422, "This would remove the last way to sign in"),
        ],
    )
    def test_refused_change_changes_nothing(
        self, armed, codes, alice, bob, database, fields, status, problem
    ):
        armed.visit(f"/console/users/{alice.id}/addresses")
        before = database.everything("users", "identities", "sessions", "one_time_tokens")
        page = armed.press("addresses", factor_code=codes.code(1), **fields)
        assert (page.status, problem in words(page)) == (status, True)
        assert f'value="{fields["email"]}" aria-invalid' in page.text or not fields["email"]
        assert database.everything("users", "identities", "sessions", "one_time_tokens") == before


class TestDeletion:
    def test_user_is_deleted(self, armed, codes, alice, database):
        alice.sign_in()
        clear_history(database)
        said = words(armed.visit(f"/console/users/{alice.id}/delete"))
        assert "Deletes 1 user with 1 identity, 1 session, 0 factors, and their metadata." in said
        assert "This cannot be undone." in said
        said = words(armed.press("delete", factor_code=codes.code(1)))
        assert "The user is deleted. This user no longer exists." in said
        assert "user deleted, by administrator carol@example.com" in said
        assert database.count("users", "id = %(id)s", id=alice.id) == 0
        assert acts_of(database, alice) == [("user_deleted", *CAROL)]

    def test_user_who_is_gone_is_not_found(self, armed, codes, alice, client, service_role):
        armed.visit(f"/console/users/{alice.id}/delete")
        client.delete(f"/admin/users/{alice.id}", headers=service_role)
        assert armed.press("delete", factor_code=codes.code(1)).status == 404


@pytest.mark.parametrize("first", ["delete", "ban"])
def test_deletion_and_ban_at_once_follow_each_other(
    armed, codes, app, client, service_role, alice, database, first
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
    second = "ban" if first == "delete" else "delete"
    clear_history(database)
    with database.locked("users", alice.id) as lock:
        answers = [lock.start(acts[first]), lock.start(acts[second])]
    assert [answer.result() for answer in answers] == ([200, 404] if first == "delete" else [200, 200])
    names = [row[0] for row in acts_of(database, alice) if row[0] != "signed_out"]
    assert names == ["user_deleted"] if first == "delete" else ["banned", "user_deleted"]
    assert database.count("users", "id = %(id)s", id=alice.id) == 0


class TestInvitation:
    def test_invited_user_gets_a_link(self, operator, client, outbox, database):
        operator.visit("/console/users/invite")
        said = words(operator.press("invite", email="Dave@example.com"))
        assert "The invitation is on its way." in said
        assert "invited, by administrator carol@example.com" in said
        assert_signs_in(client, "invite", outbox.last("dave@example.com").token)
        operator.visit("/console/users/invite")
        page = operator.press("invite", email="dave@example.com")
        assert (page.status, 'value="dave@example.com" aria-invalid' in page.text) == (409, True)

    def test_administrator_is_not_invited_again(self, operator, outbox, database):
        operator.visit("/console/users/invite")
        operator.press("invite", email="dave@example.com")
        database.run("UPDATE users SET role = 'admin' WHERE email = 'dave@example.com'")
        database.run("DELETE FROM request_counts")
        before = database.everything("users", "outbox", "one_time_tokens")
        operator.visit("/console/users/invite")
        page = operator.press("invite", email="dave@example.com")
        assert (page.status, "Only the service role key may change" in page.text) == (403, True)
        assert database.everything("users", "outbox", "one_time_tokens") == before


class TestAdministrators:
    def test_other_administrators_and_oneself_are_refused(self, armed, codes, carol, alice, database):
        for name in USER_ACTS:
            database.run("UPDATE users SET role = 'authenticated' WHERE id = %(id)s", id=alice.id)
            armed.visit(f"/console/users/{alice.id}/{name}")
            database.run("UPDATE users SET role = 'admin' WHERE id = %(id)s", id=alice.id)
            before = database.everything()
            filled = {"ban_duration": "1h", "factor_code": codes.code(1), "email": "x@example.com"}
            page = armed.press(name, **filled)
            assert (page.status, "Only the service role key may change" in page.text) == (403, True), name
            assert armed.visit(f"/console/users/{carol.id}/{name}").status == 403
            assert database.everything() == before

    def test_the_lock_decides_whether_the_user_is_an_administrator(self, operator, alice, database):
        operator.visit(f"/console/users/{alice.id}/ban")
        promotion = "UPDATE users SET role = 'admin' WHERE id = %s"
        with database.locked("users", alice.id, promotion) as lock:
            banned = lock.start(lambda: operator.press("ban", ban_duration="1h"))
        assert banned.result().status == 403
        assert database.value("SELECT banned_until FROM users WHERE id = %(id)s", id=alice.id) is None

    @pytest.mark.parametrize(
        ("end", "status"),
        [
            ("UPDATE users SET role = 'authenticated' WHERE id = %(id)s", 403),
            ("UPDATE sessions SET ended_at = now(), end_reason = 'logout' WHERE user_id = %(id)s", 200),
        ],
    )
    def test_administrator_who_is_demoted_or_signed_out_meanwhile_does_not_act(
        self, operator, carol, alice, database, end, status
    ):
        operator.visit(f"/console/users/{alice.id}/ban")
        with database.locked("users", alice.id) as lock:
            banned = lock.start(lambda: operator.press("ban", ban_duration="1h"))
            database.run(end, id=carol.id)
        assert (banned.result().status, operator.page.url.endswith("/ban")) == (status, status == 403)
        assert database.value("SELECT banned_until FROM users WHERE id = %(id)s", id=alice.id) is None

    def test_lock_decides_whether_a_recovery_is_for_an_administrator(self, operator, alice, database):
        operator.visit(f"/console/users/{alice.id}/recover")
        promotion = "UPDATE users SET role = 'admin' WHERE id = %s"
        with database.locked("users", alice.id, promotion) as lock:
            sent = lock.start(lambda: operator.press("recover"))
        assert sent.result().status == 403
        assert database.count("outbox") == database.count("one_time_tokens") == 0

    def test_recovery_does_not_go_to_an_address_that_the_user_gave_up(
        self, operator, alice, outbox, database
    ):
        operator.visit(f"/console/users/{alice.id}/recover")
        change = "UPDATE users SET email = 'new@example.com' WHERE id = %s"
        with database.locked("users", alice.id, change) as lock:
            sent = lock.start(lambda: operator.press("recover"))
        assert (sent.result().status, outbox.kinds()) == (409, [])

    def test_refusal_names_the_administrator_who_is_its_target(self, operator, carol, alice, database):
        database.run("UPDATE users SET role = 'admin' WHERE id = %(id)s", id=alice.id)
        assert operator.visit(f"/console/users/{alice.id}/ban").status == 403
        refusal = database.one("SELECT * FROM audit_log WHERE reason IS NOT NULL")
        assert (refusal.action, refusal.reason) == ("admin_refused", "insufficient_permissions")
        assert (refusal.actor_id, refusal.user_id) == (carol.id, alice.id)


def test_administrators_who_act_at_once_leave_one_outcome(app, client, service_role, database, alice):
    visitors = []
    for number in range(8):
        person = register(client, service_role, f"admin{number}@example.com", role="admin")
        visitors.append(Visitor(app).signed_in_as(person))
        visitors[-1].visit(f"/console/users/{alice.id}/{'ban' if number % 2 else 'end-sessions'}")
    alice.sign_in()
    clear_history(database)

    def press(number):
        return visitors[number].press("ban" if number % 2 else "end-sessions").status

    assert at_once(8, press) == [200] * 8
    assert database.count("sessions", "user_id = %(id)s AND ended_at IS NULL", id=alice.id) == 0
    assert sorted({row[0] for row in acts_of(database, alice)}) == ["banned", "signed_out"]
    assert len({row[2] for row in acts_of(database, alice)}) == 8
