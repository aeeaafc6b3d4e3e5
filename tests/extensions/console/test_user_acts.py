"""Actions of administrators on users in the console."""

import pytest

from auth.extensions.console.user_actions import USER_ACTIONS
from tests.support.answers import assert_error
from tests.support.audit import clear_history
from tests.support.cases import cases
from tests.support.factors import set_up
from tests.support.links import PHONE, type_in
from tests.support.pages import words
from tests.support.passkeys import register as register_passkey
from tests.support.users import NEW_EMAIL

CAROL = ("user", "carol@example.com")
ONLY_THE_KEY = "Only the service role key can change"


@pytest.fixture
def open_confirmation(armed):
    """Open the confirmation of an action, and return its text."""

    def open_confirmation(person, action):
        page = armed.visit(f"/console/users/{person.id}/{action}")
        assert page.status == 200, words(page)
        return words(page)

    return open_confirmation


def actions_of(database, person):
    """Return the audited actions on a person, with the administrator who did each."""
    rows = database.all(
        "SELECT action, actor, details ->> 'administrator' AS by FROM audit_log WHERE user_id = %(id)s AND reason IS NULL ORDER BY at, action",
        id=person.id,
    )
    return [(row.action, row.actor, row.by) for row in rows]


class TestActs:
    def test_one_session_ends(self, armed, alice, bob, database):
        laptop, phone, bobs = alice.open_session(), alice.open_session(), bob.open_session()
        clear_history(database)
        path = f"/console/users/{alice.id}/sessions"
        assert "Ends 1 session: Unknown device" in words(armed.visit(f"{path}/{phone.id}/end"))
        assert "Session ended." in words(armed.press("/end"))
        assert [each.get("/user").status_code for each in (laptop, phone, bobs)] == [200, 401, 200]
        assert actions_of(database, alice) == [("session_ended", *CAROL)]
        assert "session ended, by administrator carol@example.com" in armed.page.text

    def test_present_addresses_withdraw_pending_changes(
        self, armed, open_confirmation, codes, client, alice, database, outbox
    ):
        session = alice.open_session()
        session.put("/user", json={"email": NEW_EMAIL, "phone": PHONE})
        messages = [outbox.last(NEW_EMAIL, "email_change"), outbox.last(PHONE, "phone_change")]
        clear_history(database)
        text = open_confirmation(alice, "addresses")
        for pending in (NEW_EMAIL, PHONE):
            assert f"Withdraws the change to {pending}, which isn’t confirmed yet." in text
        assert "Addresses saved." in words(armed.press("addresses", factor_code=codes.code(1)))
        expected = [("email_change_withdrawn", *CAROL), ("phone_change_withdrawn", *CAROL)]
        assert actions_of(database, alice) == expected
        for message in messages:
            assert_error(type_in(client, message.kind, message.to, message.code), 403, "otp_expired")
        # No user is signed out, and no address has changed.
        assert session.get("/user").json["email"] == alice.email

    def test_lock_of_wrong_passwords_and_codes_is_cleared(
        self, armed, open_confirmation, alice, bob, database, client
    ):
        keys_of_alice = [
            f"login {alice.email} 10.0.0.1",
            f"account {alice.email}",
            f"user {alice.id} 10.0.0.1",
        ]
        keys_of_alice += [f"user {alice.id}", f"totp {alice.id}", f"recovery {alice.id} 10.0.0.1"]
        keys_of_alice += [f"code {alice.email}", f"try {alice.email} 10.0.0.1", f"nobody {alice.email}"]
        # The locks of the owner of the address that Alice wants, and of a longer address, stay.
        other_keys = [f"login {bob.email} 10.0.0.1", f"totp {bob.id}", f"message {alice.email} 3600"]
        other_keys += [f"code {alice.email}.au"]
        client.post("/recover", json={"email": alice.email})
        statement = "SELECT id FROM one_time_tokens WHERE purpose = 'recovery'"
        keys_of_alice.append(f"try {database.value(statement)} 10.0.0.1")
        database.run("UPDATE users SET new_email = %(to)s WHERE id = %(id)s", to=bob.email, id=alice.id)
        database.run("DELETE FROM failure_counts")
        assert "Clear the lock" not in words(armed.visit(f"/console/users/{alice.id}"))
        for key in keys_of_alice + other_keys:
            database.run(
                "INSERT INTO failure_counts SELECT %(key)s, 20, now() + interval '1 hour', parts[1], parts[2], parts[3]"
                "  FROM string_to_array(%(key)s, ' ') AS parts",
                key=key,
            )
        assert "wrong authenticator codes" in words(armed.visit(f"/console/users/{alice.id}"))
        open_confirmation(alice, "unlock")
        text = words(armed.press("unlock"))
        assert ("Lock cleared." in text, "wrong authenticator codes" in text) == (True, False)
        assert {row.key for row in database.all("SELECT key FROM failure_counts")} == set(other_keys)

    def test_lost_factor_is_removed_with_a_code_for_it(self, armed, codes, alice, bob, database, outbox):
        lost, session = set_up(alice.open_session(), "Phone")
        register_passkey(session)
        clear_history(database)
        path = f"/console/users/{alice.id}/factors"
        text = words(armed.visit(f"{path}/{lost.id}/remove"))
        assert "Removes 1 authenticator app: Phone. Sessions that used it" in text
        assert armed.press("/remove", factor_code=codes.wrong_code()).status == 422
        assert database.count("factors", "user_id = %(id)s", id=alice.id) == 2
        code = codes.code(1)
        assert "Removed." in words(armed.press("/remove", factor_code=code))
        assert actions_of(database, alice) == [("factor_removed", *CAROL)]
        assert outbox.last(alice.email).kind == "factor_removed"
        (passkey,) = database.all("SELECT id FROM factors WHERE user_id = %(id)s", id=alice.id)
        armed.visit(f"{path}/{passkey.id}/remove")
        # A code is good once.
        assert armed.press("/remove", factor_code=code).status == 422

    def test_invited_user_gets_groups_but_an_administrator_is_left_alone(self, operator, database):
        def invite(email="dave@example.com"):
            operator.visit("/console/users/invite")
            return operator.press("invite", email=email, groups=" staff ,ops,staff")

        assert "The invitation is on its way." in words(invite("Dave@example.com"))
        groups = database.value("SELECT app_metadata -> 'groups' FROM users WHERE email = 'dave@example.com'")
        assert groups == ["staff", "ops"]
        database.run("UPDATE users SET role = 'admin' WHERE email = 'dave@example.com'")
        before = database.everything("users", "outbox", "one_time_tokens")
        page = invite()
        assert (page.status, ONLY_THE_KEY in page.text) == (403, True)
        assert database.everything("users", "outbox", "one_time_tokens") == before

    def test_invitation_is_named_and_sent_again_until_it_is_accepted(self, operator, database, outbox):
        operator.visit("/console/users/invite")
        text = words(operator.press("invite", email="dave@example.com"))
        assert "Invited just now . Hasn’t accepted yet. The invitation expires in 7 days. Details" in text
        assert "Send recovery email" not in text
        assert "dave@example.com Invited, expires in 7 days Email" in words(
            operator.visit("/console/users?status=invited")
        )
        assert "dave@example.com" not in words(operator.visit("/console/users?status=unconfirmed"))
        dave = database.value("SELECT id FROM users WHERE email = 'dave@example.com'")
        first_link = (
            operator.visit(f"/console/users/{dave}").text.partition('class="acts"')[2].partition("</a>")[0]
        )
        assert first_link.endswith(f'console/users/{dave}/invite-again">Send invitation again')
        operator.visit(f"/console/users/{dave}/invite-again")
        assert "The invitation is on its way." in words(operator.press("invite-again"))
        assert [kind for kind, _to in outbox.kinds()] == ["invite", "invite"]
        database.run("UPDATE one_time_tokens SET expires_at = now()")
        assert "dave@example.com Invitation expired" in words(operator.visit("/console/users"))
        assert "The invitation has expired." in words(operator.visit(f"/console/users/{dave}"))
        operator.visit(f"/console/users/{dave}/invite-again")
        database.run("UPDATE users SET email_confirmed_at = now() WHERE id = %(id)s", id=dave)
        assert operator.press("invite-again").status == 409
        assert len(outbox.kinds()) == 2
        text = words(operator.visit(f"/console/users/{dave}"))
        assert ("Send invitation again" in text, "Send recovery email" in text) == (False, True)


class TestRefusals:
    @cases(
        ("name", "fields", "status", "problem"),
        [
            ("ban", {"ban_duration": "x"}, 400, 'id="problem"'),
            ("metadata", {"user_metadata": '{"a": }'}, 400, "User metadata must be valid JSON"),
            ("metadata", {"app_metadata": '{"a": 1, "a": 2}'}, 400, "must not repeat a member"),
            ("addresses", {"email": "bob@example.com"}, 409, "Another user has this email address."),
            ("addresses", {"email": ""}, 422, "This would remove the last way to sign in"),
        ],
    )
    def test_mistake_is_shown_at_its_field_and_nothing_is_changed_or_lost(
        self, armed, codes, open_confirmation, alice, bob, database, name, fields, status, problem
    ):
        open_confirmation(alice, name)
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
        client.put(f"/admin/users/{alice.id}", json={"email": None}, headers=service_role)
        for action in (f"factors/{passkey['id']}/remove", "reset-two-step"):
            database.run("UPDATE factors SET last_step = NULL")
            armed.visit(f"/console/users/{alice.id}/{action}")
            page = armed.press(action.rpartition("/")[2], factor_code=codes.code(1))
            assert (page.status, "This would remove the last way to sign in" in page.text) == (422, True)
        assert database.count("factors", "factor_type = 'passkey'") == 1
        path = f"/admin/users/{alice.id}/passkeys/{passkey['id']}"
        assert client.delete(path, headers=service_role).status_code == 200
        assert database.count("factors", "factor_type = 'passkey'") == 0

    def test_change_of_another_meanwhile_is_not_overwritten(self, armed, open_confirmation, alice, database):
        open_confirmation(alice, "metadata")
        alice.sign_in().put("/user", json={"data": {"name": "Alice"}})
        note = '{"note": "mine"}'
        page = armed.press("metadata", user_metadata=note)
        assert (page.status, "This has changed since you opened it" in page.text) == (409, True)
        assert '{ "name": "Alice" }' in words(page)
        # Having seen the other change, the administrator may replace it.
        assert "Metadata saved." in words(armed.press("metadata"))
        metadata = database.value("SELECT user_metadata FROM users WHERE id = %(id)s", id=alice.id)
        assert metadata == {"note": "mine"}

    def test_actions_on_administrators_and_on_oneself_are_refused(self, armed, codes, carol, alice, database):
        for name in USER_ACTIONS:
            database.run("UPDATE users SET role = 'authenticated' WHERE id = %(id)s", id=alice.id)
            armed.visit(f"/console/users/{alice.id}/{name}")
            database.run("UPDATE users SET role = 'admin' WHERE id = %(id)s", id=alice.id)
            before = database.everything()
            fields = {"ban_duration": "1h", "factor_code": codes.code(1), "email": "x@example.com"}
            page = armed.press(name, **fields)
            assert (page.status, ONLY_THE_KEY in page.text) == (403, True), name
            assert armed.visit(f"/console/users/{carol.id}/{name}").status == 403
            assert database.everything() == before
        clear_history(database)
        assert armed.visit(f"/console/users/{alice.id}/ban").status == 403
        refusal = database.one("SELECT action, actor_id, user_id FROM audit_log WHERE reason IS NOT NULL")
        assert refusal == ("admin_refused", carol.id, alice.id)


@cases(
    ("path", "title", "back"),
    [
        ("users/{id}/ban", "Ban", "users/{id}"),
        ("users/{id}/sessions/{session}/end", "End this session", "users/{id}"),
        ("users/chosen/ban?id={id}", "Ban these users", "users"),
        ("users/invite-list", "Invite people", "users"),
    ],
)
def test_page_that_asks_for_a_proof_names_the_action_and_leads_back(
    operator, alice, database, path, title, back
):
    ids = {"id": alice.id, "session": alice.open_session().id}
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
    operator.visit("/console/" + path.format(**ids))
    assert "/account/confirm?" in operator.page.url
    assert f"We ask this before “{title}”." in words(operator.page)
    back_link = operator.link("Back to the console")
    assert back_link.endswith("/console/" + back.format(**ids))
    assert operator.visit(back_link).status == 200


class TestRaces:
    def test_recovery_email_is_not_sent_to_an_address_that_changes_meanwhile(self, operator, alice, database):
        operator.visit(f"/console/users/{alice.id}/recover")
        change = "UPDATE users SET email = 'new@example.com' WHERE id = %s"
        with database.locked("users", alice.id, change) as lock:
            request = lock.start(lambda: operator.press("recover"))
        assert request.result().status == 409
        assert database.count("outbox") == database.count("one_time_tokens") == 0

    def test_administrator_who_is_signed_out_meanwhile_does_not_act(self, operator, carol, alice, database):
        operator.visit(f"/console/users/{alice.id}/ban")
        end = "UPDATE sessions SET ended_at = now(), end_reason = 'logout' WHERE user_id = %(id)s"
        with database.locked("users", alice.id) as lock:
            request = lock.start(lambda: operator.press("ban", ban_duration="1h"))
            database.run(end, id=carol.id)
        assert (request.result().status, operator.page.url.endswith("/ban")) == (200, False)
        assert database.count("users", "banned_until IS NOT NULL") == 0
