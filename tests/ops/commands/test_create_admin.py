"""`latchkey create-admin EMAIL`: the first administrator."""

import re

import pytest

from tests.support.answers import (
    A_SENTENCE,
    A_TIMESTAMP,
    NO_ID,
    assert_error,
    assert_ok,
    token_response,
    user,
)
from tests.support.commands import run_command
from tests.support.factors import App, set_up
from tests.support.pages import Visitor
from tests.support.users import PASSWORD, session_of, sign_in

CAROL = "carol@example.com"
CONSOLE = "Sign in to the console: http://localhost:8000/console\n"
CODE = re.compile(
    "Use this code within an hour to set up the first authenticator app or passkey: ([0-9]{6})\n$"
)


PASSWORD_IN_ENVIRONMENT = {"env": {"LATCHKEY_ADMIN_PASSWORD": PASSWORD}}


@pytest.fixture
def create_admin(app):
    def run(*arguments, **options):
        return run_command(app, "create-admin", *arguments, **options)

    return run


def log_in(client, email=CAROL, password=PASSWORD):
    return client.post("/login-admin", json={"email": email, "password": password})


def success(user_id, email=CAROL, created=""):
    return (0, f"{email} is an administrator{created}: {user_id}\n{CONSOLE}")


def outcome(result):
    return result.exit_code, CODE.sub("", result.stdout)


class TestNewUser:
    def test_new_user_is_confirmed_and_an_administrator(self, create_admin, client, database):
        result = create_admin(CAROL, **PASSWORD_IN_ENVIRONMENT)
        id = database.value("SELECT id FROM users")
        assert outcome(result) == success(id, created=" (new user)")
        details = {"id": id, "email": CAROL, "is_admin": True, "created_at": A_TIMESTAMP}
        expected = token_response(user(CAROL, id=id, role="admin", last_sign_in_at=A_TIMESTAMP))
        response = log_in(client)
        assert_ok(response, expected | {"admin_details": details})
        assert session_of(client, response).get("/admin/users").status_code == 200

    @pytest.mark.parametrize(
        ("email", "options", "password"),
        [
            (CAROL, {"input": f"{PASSWORD}\n"}, PASSWORD),
            (CAROL, {"input": PASSWORD}, PASSWORD),
            (CAROL, {"input": "Another-Horse-1\n", **PASSWORD_IN_ENVIRONMENT}, PASSWORD),
            ("Carol@EXAMPLE.com", PASSWORD_IN_ENVIRONMENT, PASSWORD),
            (CAROL, {"input": " Horse battery 1! \n"}, " Horse battery 1! "),
            (CAROL, {"input": "Gro\u0308\u00dfe-123\n"}, "Gr\u00f6\u00dfe-123"),
            # A file that was written on Windows.
            (CAROL, {"input": f"\ufeff{PASSWORD}\r\n"}, PASSWORD),
            (CAROL, {"env": {"LATCHKEY_ADMIN_PASSWORD": "Gro\u0308\u00dfe-123"}}, "Gr\u00f6\u00dfe-123"),
        ],
    )
    def test_new_administrator_logs_in_with_the_canonical_email_and_the_password_that_was_given(
        self, create_admin, client, email, options, password
    ):
        result = create_admin(email, **options)
        assert (result.exit_code, result.stderr, password in result.output) == (0, "", False)
        assert log_in(client, password=password).status_code == 200

    @pytest.mark.parametrize(
        ("typed", "reason"),
        [
            ("password\n", "The password must "),
            ("lowercase-only-1\n", "The password must "),
            ("x" * 2000, "The password must "),
            ("", "No password was given. Set LATCHKEY_ADMIN_PASSWORD"),
            ("\n", "No password was given. Set LATCHKEY_ADMIN_PASSWORD"),
            (f"{PASSWORD}\n{PASSWORD}\n", "Standard input has more than one line."),
            (b"Gr\xf6sse-Horse-1\n", "The password is not UTF-8."),
            ("Another-Horse-1".encode("utf-16-le"), "The password contains NUL characters."),
        ],
    )
    @pytest.mark.parametrize("variable", [{}, {"LATCHKEY_ADMIN_PASSWORD": ""}], ids=["unset", "empty"])
    def test_weak_missing_or_ambiguous_password_is_refused_by_one_line(
        self, create_admin, database, typed, reason, variable
    ):
        result = create_admin(CAROL, input=typed, env=variable)
        assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
        assert result.stderr.startswith(f"Error: {reason}")
        assert database.count("users") == 0

    @pytest.mark.parametrize("email", ["carol", "", "carol@example", f"{CAROL}, mallory@example.com"])
    def test_malformed_email_is_refused(self, create_admin, database, email):
        result = create_admin(email, **PASSWORD_IN_ENVIRONMENT)
        assert (result.exit_code, database.count("users")) == (2, 0)
        assert "Must be an email address" in result.output

    def test_two_commands_at_once_make_one_user(self, create_admin, database):
        insert = (
            "INSERT INTO users (id, email, email_confirmed_at, email_proved, made_by, role, admin_since)"
            f" VALUES (%s, '{CAROL}', now(), true, 'administrator', 'admin', now())"
        )
        with database.locked("users", NO_ID, insert) as lock:
            second = lock.start(lambda: create_admin(CAROL, **PASSWORD_IN_ENVIRONMENT))
        assert outcome(second.result()) == success(NO_ID)
        assert database.count("users") == 1


def test_without_a_console_no_address_is_printed(make_app):
    result = run_command(make_app(AUTH_CONSOLE="false"), "create-admin", CAROL, **PASSWORD_IN_ENVIRONMENT)
    assert (result.exit_code, "console" in result.output) == (0, False)


class TestExistingUser:
    def test_existing_user_becomes_an_administrator_who_signs_in_anew_and_keeps_everything_else(
        self, create_admin, client, service_role, alice, bob
    ):
        session = alice.open_session()
        before = session.get("/user").json
        assert outcome(create_admin(alice.email, "--yes", input="Another-Horse-1\n")) == success(
            alice.id, alice.email
        )
        assert_error(session.get("/user"), 401, "session_not_found")
        changed = {"role": "admin", "updated_at": A_TIMESTAMP, "last_sign_in_at": A_TIMESTAMP}
        session = alice.open_session()
        assert_ok(session.get("/user"), before | changed)
        assert session.get("/admin/users").status_code == 200
        assert_error(sign_in(client, alice.email, "Another-Horse-1"), 401, "invalid_credentials")
        assert log_in(client, alice.email).status_code == 200
        assert bob.sign_in().user["role"] == "authenticated"

    def test_administrator_is_left_unchanged(self, create_admin, carol, database):
        before = database.everything("users", "audit_log", "outbox")
        assert outcome(create_admin(carol.email)) == success(carol.id)
        assert database.everything("users", "audit_log", "outbox") == before

    def test_code_sets_up_the_first_factor_in_place_of_a_mail(self, create_admin, carol, database):
        # This holds even at an address that was changed lately: the operator has named it.
        database.run("UPDATE users SET created_at = now() - interval '1 month'")
        create_admin(carol.email)
        (code,) = CODE.findall(create_admin(carol.email).output)
        session = carol.open_session()
        enrolment = {"factor_type": "totp", "nonce": code}
        wrong = session.post("/factors", json=enrolment | {"nonce": f"{(int(code) + 1) % 1_000_000:06}"})
        assert_error(wrong, 400, "reauthentication_not_valid", details=A_SENTENCE)
        assert session.post("/factors", json=enrolment).status_code == 200

    def test_administrator_with_a_factor_gets_no_code(self, create_admin, carol):
        set_up(carol.open_session())
        assert not CODE.search(create_admin(carol.email).output)

    def test_ban_is_not_lifted(self, create_admin, client, service_role, alice):
        client.put(f"/admin/users/{alice.id}", json={"ban_duration": "1h"}, headers=service_role)
        create_admin(alice.email, "--yes")
        assert_error(log_in(client, alice.email), 403, "user_banned")

    def test_unproved_sign_up_does_not_become_an_administrator(self, make_app):
        # The address is unproved; password and session are Mallory's.
        app = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false")
        client = app.test_client()
        assert client.post("/signup", json={"email": CAROL, "password": PASSWORD}).status_code == 201
        mallory = session_of(client, sign_in(client, CAROL))
        run_command(app, "create-admin", CAROL, input="Another-Horse-1\n")
        assert mallory.get("/admin/users").status_code in (401, 403)
        assert log_in(client).status_code in (401, 403)
        assert log_in(client, password="Another-Horse-1").status_code == 200


class TestPublicUrl:
    """At a public URL, administrators need a second factor, and enrol the first with the code of the command."""

    PUBLIC = "https://auth.example.com"

    @pytest.fixture
    def public(self, make_app):
        return make_app(AUTH_BASE_URL=self.PUBLIC)

    @pytest.fixture
    def code(self, public):
        return CODE.findall(run_command(public, "create-admin", CAROL, **PASSWORD_IN_ENVIRONMENT).output)[0]

    def test_first_administrator_gets_in_by_the_api(self, public, code):
        client = public.test_client()
        session = session_of(client, log_in(client))
        assert (session.claims["aud"], session.claims["next_aal"]) == ("second_step", "aal2")
        for path in ("/admin/users", "/admin/audit", "/sessions"):
            assert_error(session.get(path), 403, "insufficient_aal")
        enrolment = {"factor_type": "totp"}
        assert_error(
            session.post("/factors", json=enrolment), 400, "reauthentication_needed", details=A_SENTENCE
        )
        enrolled = session.post("/factors", json=enrolment | {"nonce": code}).json
        app = App(enrolled["id"], enrolled["totp"]["secret"])
        challenge = session.post(f"/factors/{app.id}/challenge").json["id"]
        answer = {"challenge_id": challenge, "code": app.code()}
        raised = session_of(client, session.post(f"/factors/{app.id}/verify", json=answer))
        assert [raised.get(path).status_code for path in ("/admin/users", "/admin/audit")] == [200, 200]

    def test_first_administrator_gets_in_by_the_pages(self, public, code):
        visitor = Visitor(public, self.PUBLIC)
        visitor.visit("/console")
        visitor.press("sign-in", email=CAROL, password=PASSWORD)
        visitor.press("account/confirm", nonce=code)
        visitor.visit(visitor.link_to("account/two-step?next=console"))
        visitor.press("account/two-step")
        secret = visitor.page.text.partition('<code translate="no">')[2].partition("</code>")[0]
        visitor.press("two-step/verify", code=App("", secret.replace(" ", "")).code())
        page = visitor.visit("/console/users")
        assert (page.status, page.url, CAROL in page.text) == (200, f"{self.PUBLIC}/console/users", True)

    @pytest.mark.parametrize(
        "changes",
        [{"AUTH_MFA_REQUIRED": "none"}, {"AUTH_MFA_ENABLED": "false"}, {"AUTH_BASE_URL": None}],
        ids=str,
    )
    def test_password_alone_does_where_the_operator_says_so(self, make_app, changes):
        settings = {"AUTH_BASE_URL": self.PUBLIC} | changes
        public = make_app(**{name: value for name, value in settings.items() if value})
        run_command(public, "create-admin", CAROL, **PASSWORD_IN_ENVIRONMENT)
        client = public.test_client()
        assert session_of(client, log_in(client)).get("/admin/users").status_code == 200
