"""`latchkey explain`: the reasons why a user cannot sign in, and the user's timeline."""

import re
from contextlib import closing

import pytest

from auth.delivery.deliverer import Deliverer
from tests.support.answers import assert_error
from tests.support.api_keys import make_key
from tests.support.audit import REQUEST_ID, SOMEWHERE, clear_history, record
from tests.support.commands import run_command
from tests.support.factors import set_up, verify
from tests.support.links import PHONE, follow
from tests.support.openid import allow, insert_public_client
from tests.support.smtp_server import MailServer, sender
from tests.support.users import PASSWORD, Session, session_of, sign_in

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
FROM_FIREFOX = ", from 198.51.100.7 (Firefox on Linux)"
CAN_SIGN_IN = "alice@example.com: can sign in."
MAY_FAIL = "alice@example.com: sign-in may fail:"


@pytest.fixture
def explain(app):
    """Return a function that runs the command and returns its lines, with each time as TIME."""

    def explain(*arguments, on=app):
        result = run_command(on, "explain", *arguments)
        assert result.exit_code == 0, result.output
        return re.sub(TIME, "TIME", result.output).splitlines()

    return explain


def obstacles(lines):
    assert lines[0] == MAY_FAIL
    return [line.removeprefix("  - ") for line in lines[1 : lines.index("")]]


def without_end(line):
    """Return a line without the end of its limit."""
    return re.sub(r", until [-\d]+ \d\d:\d\d", "", line)


UNCONFIRMED = "the {} isn’t confirmed, so the password won’t work. A {} confirms it"
EMAIL_IS_OFF = "email sign-in is turned off (AUTH_EMAIL_ENABLED)"
UNKNOWN = ["nonsense", REQUEST_ID, "5", "'; DROP TABLE users; --", "%", "nobody@example.com", PHONE]
WAITING_MESSAGE = "email (password recovery) to alice@example.com waiting to be sent"
FAILED_MESSAGE = "email (password recovery) to alice@example.com failed after 1 attempt: 550 no such mailbox"


class TestObstacles:
    def test_summary_shows_user_methods_and_sessions(self, explain, alice, database):
        alice.sign_in()
        clear_history(database)
        assert explain(alice.email) == [
            CAN_SIGN_IN,
            "",
            f"user          {alice.id}, authenticated, created TIME by an administrator",
            "email         alice@example.com, confirmed TIME",
            "signs in with password, email",
            "sessions      1 live",
            "last sign-in  TIME",
            "",
            "Timeline:",
            "  TIME  session started with a password, from 127.0.0.1",
        ]

    def test_refusal_of_a_hook_is_an_obstacle(self, make_app, explain, database, alice, client):
        refusing = "begin return jsonb_build_object('error', jsonb_build_object('http_code', 403, 'message', 'Not before Monday')); end;"
        database.run("CREATE SCHEMA test_hooks; GRANT USAGE ON SCHEMA test_hooks TO PUBLIC")
        try:
            database.run(
                "CREATE FUNCTION test_hooks.refuse(event jsonb) RETURNS jsonb LANGUAGE plpgsql"
                f" AS $${refusing}$$"
            )
            hooked = make_app(AUTH_HOOK_CUSTOM_ACCESS_TOKEN="pg-functions://postgres/test_hooks/refuse")
            assert explain(alice.email, on=hooked)[0] == CAN_SIGN_IN
            assert sign_in(hooked.test_client(), alice.email).status_code == 403
            lines = explain(alice.email, on=hooked)
            refusal = "the hook customize-access-token refused at TIME: “403 Not before Monday”"
            assert obstacles(lines) == [refusal]
            remedy = "latchkey hooks test custom-access-token asks it again. Change what it decides by."
            assert lines[-1] == f"  {remedy}"
            assert sign_in(client, alice.email).status_code == 200
            assert explain(alice.email, on=hooked)[0] == CAN_SIGN_IN
        finally:
            database.run("DROP SCHEMA test_hooks CASCADE")

    def test_api_key_and_grant_from_before_a_factor_was_demanded_are_shown_as_refused(
        self, explain, make_app, alice, database
    ):
        allow(database, alice.id, insert_public_client(database))
        app = make_app(AUTH_API_KEYS="true")
        make_key(alice.open_session(app.test_client()))
        expected = {"applications  Grafana; 1 live sessions", "API keys      1"}
        assert expected <= set(explain(alice.email))
        lines = explain(alice.email, on=make_app(AUTH_API_KEYS="true", AUTH_MFA_REQUIRED="all"))
        assert {f"{line}, 1 refused: from before the second factor" for line in expected} <= set(lines)

    @pytest.mark.parametrize(
        ("change", "obstacle", "settings"),
        [
            ("banned_until = now() + interval '1 hour'", "banned until TIME UTC", {}),
            ("banned_until = '9999-12-31'", "banned permanently", {}),
            ("banned_until = now()", None, {}),
            ("email_confirmed_at = NULL", UNCONFIRMED.format("email", "link or code"), {}),
            ("email_confirmed_at = NULL", None, {"AUTH_EMAIL_CONFIRM_REQUIRED": "false"}),
            ("phone = '+491701234567'", UNCONFIRMED.format("phone", "code"), {}),
            ("role = role", EMAIL_IS_OFF, {"AUTH_EMAIL_ENABLED": "false"}),
            (
                "password_hash = NULL",
                "no password: sign-in works only with a link, code, provider or passkey",
                {},
            ),
        ],
    )
    def test_state_of_the_user_is_an_obstacle(
        self, explain, alice, database, app, make_app, change, obstacle, settings
    ):
        database.run(f"UPDATE users SET {change}")
        lines = explain(alice.email, on=make_app(**settings) if settings else app)
        assert lines[:1] == [CAN_SIGN_IN] if obstacle is None else obstacles(lines) == [obstacle]

    def test_message_that_did_not_arrive_is_an_obstacle(self, explain, alice, client, database):
        client.post("/recover", json={"email": alice.email})
        assert explain(alice.email)[0] == CAN_SIGN_IN
        database.run(
            "UPDATE outbox SET outcome = 'failed', finished_at = now(), secret = NULL, attempts = 1, last_error = '550 no such mailbox'"
        )
        assert obstacles(explain(alice.email)) == [FAILED_MESSAGE]
        client.post("/recover", json={"email": alice.email})
        assert explain(alice.email)[0] == CAN_SIGN_IN
        database.run("UPDATE outbox SET created_at = created_at - interval '2 minutes'")
        database.run("DELETE FROM outbox WHERE outcome IS NOT NULL")
        assert obstacles(explain(alice.email)) == [WAITING_MESSAGE]

    def test_user_without_any_way_to_sign_in_is_recognised(self, explain, alice, database):
        user_id = database.value("INSERT INTO users (made_by) VALUES ('anonymous') RETURNING id::text")
        database.run("UPDATE users SET email = NULL")
        for id, obstacle in (
            (user_id, "anonymous: can only use an existing session"),
            (alice.id, "no address, provider or passkey that is turned on"),
        ):
            assert explain(id)[:2] == [f"{id}: sign-in may fail:", f"  - {obstacle}"]

    def test_exceeded_limit_of_wrong_passwords_is_an_obstacle_until_it_expires(
        self, explain, alice, make_app, database
    ):
        app = make_app(AUTH_RATE_LIMITS_ENABLED="true")

        def fail(times):
            for _ in range(times):
                alice.try_to_sign_in("wrong", app.test_client())
            return explain(alice.email, on=app)

        wrong = "{} of 10 wrong passwords for {} from 127.0.0.1"
        lines = fail(9)
        assert lines[0] == CAN_SIGN_IN
        assert f"limit         {wrong.format(9, alice.email)}, until" in " ".join(lines)
        assert [without_end(line) for line in obstacles(fail(2))] == [
            f"{wrong.format(10, subject)}; further attempts are refused"
            for subject in (alice.email, "any of the user's addresses")
        ]
        database.run("UPDATE failure_counts SET expires_at = now()")
        assert explain(alice.email, on=app)[0] == CAN_SIGN_IN

    def test_exceeded_limit_of_wrong_codes_is_an_obstacle_except_for_links(self, explain, alice, client):
        for number in range(20):
            if number % 5 == 0:
                client.post("/recover", json={"email": alice.email})
            client.post("/verify", json={"type": "recovery", "email": alice.email, "token": "000000"})
        assert [without_end(locked) for locked in obstacles(explain(alice.email))] == [
            f"20 of 20 wrong codes for alice@example.com{origin}; further codes are refused, links still work"
            for origin in (", from networks that are not known", " from 127.0.0.1")
        ]

    def test_factors_and_their_wrong_codes_are_shown(self, explain, alice, database):
        app, session = set_up(alice.open_session(), "Phone")
        session.post("/factors/recovery-codes")
        assert "factors       totp Phone; 10 recovery codes left" in explain(alice.email)
        database.run("UPDATE known_networks SET passed_at = NULL")
        for _ in range(20):
            verify(session, app, app.wrong_code())
        wrong = "20 of 20 wrong authenticator codes"
        strangers = "networks where the user has neither passed the second step nor used an emailed link"
        assert [without_end(lock) for lock in obstacles(explain(alice.email))] == [
            f"{wrong}, from {strangers}; further codes are refused",
            f"{wrong} from 127.0.0.1; further codes are refused",
        ]

    @pytest.mark.parametrize(
        ("path", "body", "subject"),
        [
            ("/recover", {"email": "alice@example.com"}, "messages for alice@example.com from 127.0.0.1"),
            ("/otp", {"phone": PHONE}, "SMS in total"),
        ],
    )
    def test_exceeded_limit_of_messages_is_shown_but_is_not_an_obstacle(
        self, explain, alice, make_app, path, body, subject
    ):
        app = make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_SMS_TOTAL="1 per day")
        app.test_client().post(path, json=body)
        lines = explain(alice.email, on=app)
        assert lines[0] == CAN_SIGN_IN
        line = next(line for line in lines if line.startswith("limit "))
        assert without_end(line) == f"limit         1 of 1 {subject}; no more are sent"


class TestTimeline:
    def test_timeline_shows_changes_refusals_messages_and_sessions(
        self, explain, make_app, service_role, outbox, parts, database
    ):
        app = make_app(AUTH_RATE_LIMITS_ENABLED="true")
        client, dave = app.test_client(), "dave@example.com"
        client.post("/signup", json={"email": dave, "password": PASSWORD})
        link = outbox.last(dave).token
        with MailServer() as server, closing(sender(server.url())) as mail:
            Deliverer(parts.settings, parts.db, parts.sealer, {"email": mail}).deliver_due()
        sign_in(client, dave)
        follow(client, "signup", link)
        session = session_of(client, sign_in(client, dave))
        newest = session.refreshed()
        database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '2 minutes'")
        newest = newest.refreshed()
        session.refresh()
        assert_error(newest.get("/user"), 401, "session_not_found")
        sign_in(client, dave, "wrong")
        client.put(f"/admin/users/{session.user['id']}", json={"ban_duration": "1h"}, headers=service_role)
        lines = explain(dave, on=app)
        assert lines[:3] == ["dave@example.com: sign-in may fail:", "  - banned until TIME UTC", ""]
        refused = lines.index("Last refusals:")
        assert lines[refused + 1 : refused + 4] == [
            "  TIME  sign-in failed: wrong password, attempt 1 of 10, from 127.0.0.1",
            "  TIME  sign-in failed: email not confirmed, from 127.0.0.1",
            "",
        ]
        assert lines[lines.index("Timeline:") + 1 :] == [
            "  TIME  user created by signing up, from 127.0.0.1",
            "  TIME  email (sign-up) to dave@example.com accepted by 127.0.0.1: 250 2.0.0 Ok: queued as 1",
            "  TIME  sign-in failed: email not confirmed, from 127.0.0.1",
            "  TIME  email confirmed, from 127.0.0.1",
            "  TIME  signed in with a link or code (sign-up), from 127.0.0.1",
            "  TIME  signed in with a password, from 127.0.0.1",
            "  TIME  session ended: refresh token reused after rotation, from 127.0.0.1",
            "  TIME  sign-in failed: wrong password, attempt 1 of 10, from 127.0.0.1",
            "  TIME  banned until TIME UTC, by the service role key, from 127.0.0.1",
            "  TIME  session ended: banned",
            "",
            "What to do:",
            "  latchkey users unban dave@example.com",
        ]

    def test_option_most_shortens_the_timeline(self, explain, alice, database):
        clear_history(database)
        for ago in (4, 3, 2, 1):
            record(database, alice.id, "banned" if ago > 2 else "unbanned")
            database.run(
                "UPDATE audit_log SET at = at - make_interval(hours => %(ago)s) WHERE at > now() - interval '1 minute'",
                ago=ago,
            )
        at = (lines := explain(alice.email, "--most", "2")).index("Timeline:")
        assert lines[at + 1 :] == [
            "  … earlier entries left out; use --most to show more",
            *["  TIME  ban lifted" + FROM_FIREFOX] * 2,
        ]

    def test_control_characters_are_not_printed(self, explain, alice, database):
        clear_history(database)
        record(database, alice.id, "signed_in", method="\x1b[2J\u202emoc")
        assert not set("".join(explain(alice.email))) & {"\x1b", "\u202e"}

    def test_secrets_are_not_printed(self, explain, alice, client, outbox, database):
        session: Session = alice.sign_in()
        client.post("/recover", json={"email": alice.email})
        sent = outbox.last(alice.email)
        text = "\n".join(explain(alice.email))
        password_hash = database.value("SELECT password_hash FROM users")
        for secret in (
            sent.token,
            sent.code,
            session.access_token,
            session.refresh_token,
            password_hash,
            PASSWORD,
        ):
            assert secret not in text


class TestSubject:
    @pytest.mark.parametrize(
        "spelling", ["Alice@EXAMPLE.com", " alice@example.com ", "ID", "+49 170 123-4567"]
    )
    def test_user_is_found_by_any_spelling_of_an_address_or_the_id(self, explain, alice, database, spelling):
        database.run("UPDATE users SET phone = %(phone)s, phone_confirmed_at = now()", phone=PHONE)
        assert explain(alice.id.upper() if spelling == "ID" else spelling)[0] == CAN_SIGN_IN

    def test_deleted_user_has_a_timeline_and_the_address_its_messages(
        self, explain, alice, client, service_role, database
    ):
        record(database, alice.id, "user_deleted")
        client.post("/recover", json={"email": alice.email})
        client.delete(f"/admin/users/{alice.id}", headers=service_role)
        lines = explain(alice.id)
        assert lines[0] == f"User {alice.id} no longer exists."
        assert "  TIME  user deleted" + FROM_FIREFOX in lines
        assert explain(alice.email) == [
            "alice@example.com: no user has this address.",
            "",
            "Messages to it:",
            f"  TIME  {WAITING_MESSAGE} (user {alice.id})",
        ]

    def test_unknown_address_shows_users_changing_to_it(self, explain, alice, bob):
        alice.sign_in().put("/user", json={"email": "new@example.com"})
        bob.sign_in().put("/user", json={"phone": PHONE})
        for address, person in (("new@example.com", alice), (PHONE, bob)):
            line = f"  - {person.email} ({person.id}) requested it, but has not confirmed it"
            assert explain(address)[1] == line
        email = "email         alice@example.com, confirmed TIME; new@example.com not confirmed yet"
        assert email in explain(alice.email)

    @pytest.mark.parametrize("request_id", [REQUEST_ID, "a.request_of-mine.1"])
    def test_request_id_shows_changes_and_their_users(self, explain, alice, bob, database, request_id):
        record(database, alice.id, "banned", origin={"actor": "service_role", "request_id": request_id})
        record(database, None, "webhook_created", origin={"actor": "service_role", "request_id": request_id})
        record(database, bob.id, "banned", origin=SOMEWHERE | {"request_id": "another request"})
        assert explain(request_id) == [
            f"Request {request_id}:",
            f"  TIME  banned, by the service role key{FROM_FIREFOX} (alice@example.com, user {alice.id})",
            f"  TIME  webhook created, by the service role key{FROM_FIREFOX}",
            "",
            "What to do:",
            "  latchkey explain alice@example.com",
        ]

    @pytest.mark.parametrize(
        ("subject", "status", "reason"),
        [
            *((subject, 3, f"Nothing is known about {subject}") for subject in UNKNOWN),
            *((subject, 2, "Must be") for subject in ("alice@", "+4917", "@")),
        ],
    )
    def test_unknown_subject_or_malformed_address_is_reported(self, app, subject, status, reason):
        result = run_command(app, "explain", subject)
        assert (result.exit_code, reason in result.output) == (status, True)

    def test_unknown_request_id_is_answered_with_how_to_search_the_log(self, make_app):
        for url, log in [
            ("http://localhost:8000", "what make run prints"),
            ("https://auth.example.com", "journalctl -u latchkey --grep 'an id; of a request'"),
        ]:
            app = make_app(AUTH_BASE_URL=url, AUTH_SMTP_URL="console")
            output = run_command(app, "explain", "an id; of a request").output
            assert output.endswith(f"each request: {log}\n")

    def test_explaining_changes_nothing(self, explain, alice, database):
        before = database.everything()
        explain(alice.email)
        assert database.everything() == before
