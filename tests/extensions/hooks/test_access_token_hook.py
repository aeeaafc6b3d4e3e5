"""AUTH_HOOK_CUSTOM_ACCESS_TOKEN: what a SQL function and an HTTP hook do to access tokens."""

import json
from collections.abc import Iterator

import pytest

from tests.support import api_keys, factors, passkeys
from tests.support.answers import NO_ID, assert_error
from tests.support.cases import cases
from tests.support.commands import run_command
from tests.support.hooks import verified
from tests.support.http_target import HttpTarget
from tests.support.links import follow, fragment, hand_in
from tests.support.pages import Visitor
from tests.support.server import at_once
from tests.support.users import PASSWORD, refresh, session_of, sign_in, sign_up_anonymously

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
FUNCTION = "pg-functions://postgres/of_tests/custom_access_token_hook"
FAILED = (503, "hook_failed")
# Like the examples of Supabase's documentation: roles from a table.
ROLES = """
begin
  return jsonb_set(event, '{claims,user_role}', coalesce(
    (select to_jsonb(role) from of_tests.user_roles where user_id = (event->>'user_id')::uuid), 'null'));
end;
"""
REFUSAL = {"error": {"http_code": 403, "message": "Not before Monday"}}
SAME = "begin return event; end;"
SLOW = "begin perform pg_sleep(30); return event; end;"


@pytest.fixture
def define(database) -> Iterator:
    """Define the SQL function with this body."""
    # The grants that an operator gives the role of requests.
    database.run(
        "CREATE SCHEMA of_tests; GRANT USAGE ON SCHEMA of_tests TO PUBLIC;"
        " ALTER DEFAULT PRIVILEGES IN SCHEMA of_tests GRANT SELECT, INSERT ON TABLES TO PUBLIC"
    )
    database.run("CREATE TABLE of_tests.user_roles (user_id uuid, role text)")

    def define(body: str) -> None:
        head = "CREATE OR REPLACE FUNCTION of_tests.custom_access_token_hook(event jsonb) RETURNS jsonb"
        database.run(f"{head} LANGUAGE plpgsql AS $hook${body}$hook$")

    yield define
    database.run("DROP SCHEMA of_tests CASCADE")


@pytest.fixture
def sql_client(make_app, define):
    """A client of an application whose hook is a SQL function."""
    define(SAME)
    return make_app(AUTH_HOOK_CUSTOM_ACCESS_TOKEN=FUNCTION, AUTH_ANONYMOUS_ENABLED="true").test_client()


@pytest.fixture
def http_hook() -> Iterator[HttpTarget]:
    with HttpTarget() as target:
        target.answer = lambda event: {"claims": event["claims"]}
        yield target


@pytest.fixture
def http_client(make_app, http_hook):
    """A client of an application whose hook is a server."""
    settings = {
        "AUTH_HOOK_CUSTOM_ACCESS_TOKEN": f"{http_hook.url}/hook",
        "AUTH_HOOK_CUSTOM_ACCESS_TOKEN_SECRETS": SECRET,
        "AUTH_ANONYMOUS_ENABLED": "true",
    }
    return make_app(**settings).test_client()


@pytest.fixture(params=["sql", "http"])
def either(request, make_app):
    """A client whose hook is of either kind, and a function that makes it answer with changed claims."""
    if request.param == "http":
        target, client = request.getfixturevalue("http_hook"), request.getfixturevalue("http_client")

        def answer(**changes) -> None:
            target.answer = lambda event: {"claims": event["claims"] | changes}

    else:
        define, client = request.getfixturevalue("define"), request.getfixturevalue("sql_client")

        def answer(**changes) -> None:
            added = json.dumps(changes).replace("'", "''").replace("%", "%%")
            define(f"begin return jsonb_set(event, '{{claims}}', event->'claims' || '{added}'); end;")

    return client, answer


def without_times(claims: dict) -> dict:
    """Leave out the claims that are written after the hook's answer, perhaps in the next second."""
    kept = {name: value for name, value in claims.items() if name not in {"iat", "exp"}}
    return kept | {"amr": [each["method"] for each in claims["amr"]]}


class TestFunctionOfSupabase:
    def test_role_comes_from_a_table_at_sign_in_and_refresh(self, sql_client, define, alice, bob, database):
        define(ROLES)
        database.run("INSERT INTO of_tests.user_roles VALUES (%(id)s, 'moderator')", id=alice.id)
        session = alice.sign_in(client=sql_client)
        assert session.claims["user_role"] == "moderator"
        assert session.get("/user").status_code == 200
        database.run("UPDATE of_tests.user_roles SET role = 'owner'")
        assert session.refreshed().claims["user_role"] == "owner"
        assert bob.sign_in(client=sql_client).claims["user_role"] is None

    def test_error_is_returned_to_the_client(self, sql_client, define, alice, database):
        define(f"begin return '{json.dumps(REFUSAL)}'::jsonb; end;")
        assert_error(alice.try_to_sign_in(client=sql_client), 403, "hook_refused", "Not before Monday")
        assert database.count("sessions") == 0

    def test_event_has_the_form_of_gotrues(self, sql_client, define, alice, database):
        database.run("CREATE TABLE of_tests.events (event jsonb)")
        define("begin insert into of_tests.events values (event); return event; end;")
        session = alice.sign_in(client=sql_client)
        session.refresh()
        signed_in, refreshed = (row.event for row in database.all("SELECT event FROM of_tests.events"))
        assert signed_in["metadata"].keys() == {"uuid", "time", "name", "ip_address"}
        assert signed_in["metadata"]["name"] == "customize-access-token"
        assert signed_in["user_id"] == alice.id
        assert without_times(signed_in["claims"]) == without_times(session.claims)
        assert signed_in["authentication_method"] == "password"
        assert refreshed["authentication_method"] == "token_refresh"


class TestClaims:
    def test_hook_may_add_claims_and_change_what_is_not_about_the_sign_in(self, either, alice):
        client, answer = either
        changes = {
            "role": "editor",
            "email": "",
            "phone": "+15005550006",
            "app_metadata": {"plan": "pro"},
            "user_metadata": {},
            "https://example.com/claim": [1, {"é": True}],
        }
        answer(**changes)
        session = alice.sign_in(client=client)
        assert session.claims | changes == session.claims
        # The hook decides about the claims, not about the user.
        assert session.get("/user").json["role"] == "authenticated"

    def test_introspection_has_the_claims_that_are_left_and_says_itself_what_is_active(
        self, make_app, define, alice, service_role, database
    ):
        """The claims are those of the token: the hook is not called about later changes."""
        settings = {"AUTH_HOOK_CUSTOM_ACCESS_TOKEN": FUNCTION, "AUTH_API_KEYS": "true"}
        client = make_app(**settings).test_client()

        def introspected(token):
            return client.post("/introspect", json={"token": token}, headers=service_role).json

        without_metadata = "event #- '{claims,app_metadata}'"
        define(f"""begin return jsonb_set({without_metadata}, '{{claims,active}}', '"no"'); end;""")
        session = alice.sign_in(client=client)
        assert (session.claims["active"], "app_metadata" in session.claims) == ("no", False)
        assert introspected(session.access_token) == session.claims | {"active": True}
        define("""begin return jsonb_set(event, '{claims,active}', '"no"'); end;""")
        token = api_keys.token_of(client, api_keys.make_key(session)[1])
        database.run("UPDATE users SET role = 'staff'")
        for access_token in (session.access_token, token):
            assert introspected(access_token) == api_keys.claims_of(access_token) | {"active": True}

    @cases(
        ("claim", "value"),
        [
            *{"sub": NO_ID, "session_id": NO_ID, "exp": 4_102_444_800, "iat": 0, "nbf": 0}.items(),
            ("jti", "1"),
            *{"iss": "https://mallory.example.com", "aud": ["authenticated", "second_step"]}.items(),
            *{"aal": "aal2", "amr": ["password"], "next_aal": None, "is_anonymous": 0}.items(),
            *{"client_id": "mine", "api_key_id": "mine", "scope": "all", "nonce": None}.items(),
            *(("role", role) for role in ("service_role", "supabase_admin", None)),
            *{"email": None, "phone": 15005550006, "app_metadata": [], "user_metadata": "{}"}.items(),
            ("large", "a" * 24 * 1024),
        ],
    )
    def test_hook_that_changes_another_claim_fails(self, either, alice, claim, value, database):
        client, answer = either
        answer(**{claim: value})
        response = alice.try_to_sign_in(client=client)
        assert (response.status_code, response.json["error_code"]) == FAILED
        assert claim not in response.text
        assert database.count("sessions") == 0

    @cases(
        "answer",
        ["null", "[]", "{}", '{"claims": null}', '{"claims": {}}', '{"claims": []}', '{"error": "no"}',
         '{"error": {"http_code": 200, "message": "Welcome"}}'],
    )  # fmt: skip
    def test_hook_without_a_valid_answer_fails(self, sql_client, define, alice, answer):
        define(f"begin return '{answer}'::jsonb; end;")
        response = alice.try_to_sign_in(client=sql_client)
        assert (response.status_code, response.json["error_code"]) == FAILED


class TestNothingIsLost:
    """A hook that refuses or fails leaves nothing behind."""

    def test_refresh_token_still_works_after_the_hook_failed(self, either, alice, database):
        client, answer = either
        session = alice.sign_in(client=client)
        before = database.all("SELECT counter, refreshed_at, ended_at FROM sessions")
        answer(sub="another")
        response = session.refresh()
        assert (response.status_code, response.json["error_code"]) == FAILED
        assert response.headers["Retry-After"] == "2"
        assert database.all("SELECT counter, refreshed_at, ended_at FROM sessions") == before
        row = database.one("SELECT * FROM audit_log WHERE action = 'refresh_refused'")
        assert (str(row.user_id), row.reason) == (alice.id, "hook_failed")
        assert row.details == {"hook": "customize-access-token", "said": "its answer changes sub"}
        # It counts, or a client could call the hook without limit.
        assert database.value("SELECT refreshes FROM sessions") == 1
        database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '1 hour'")
        answer(plan="pro")
        assert session.refreshed().claims["plan"] == "pro"

    def test_new_user_gets_no_session_when_the_hook_fails(self, either, database):
        client, answer = either
        answer(sub="another")
        assert client.post("/signup", json={}).status_code == 503
        assert (database.count("users"), database.count("sessions"), database.count("outbox")) == (1, 0, 0)
        answer(plan="pro")
        session = sign_up_anonymously(client)
        assert (session.claims["sub"], session.claims["plan"]) == (session.user["id"], "pro")
        assert session.get("/user").status_code == 200

    def test_session_whose_second_step_fails_goes_on(self, either, alice, database):
        client, answer = either
        app, _session = factors.set_up(alice.sign_in(client=client))
        low = alice.sign_in(client=client)
        answer(sub="another")
        assert factors.verify(low, app).status_code == 503
        assert low.get("/user").status_code == 200
        answer(plan="pro")
        low = low.refreshed()
        assert (low.claims["aal"], low.claims["aud"], low.claims["plan"]) == ("aal1", "second_step", "pro")
        assert factors.raised(low, app).claims["plan"] == "pro"

    def test_stolen_refresh_token_still_ends_the_session(self, either, alice, database):
        client, answer = either
        session = alice.sign_in(client=client)
        newer = session.refreshed()
        database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '1 hour'")
        newer.refresh()
        answer(sub="another")
        assert_error(session.refresh(), 400, "refresh_token_already_used")
        assert database.value("SELECT end_reason FROM sessions") == "refresh_token_reused"

    def test_right_password_does_not_count_as_a_guess(self, sql_client, make_app, define, alice, database):
        define("begin return null; end;")
        limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_LOGIN_FAILURES": "2/hour"}
        client = make_app(AUTH_HOOK_CUSTOM_ACCESS_TOKEN=FUNCTION, **limits).test_client()
        assert [alice.try_to_sign_in(client=client).status_code for _ in range(4)] == [503] * 4
        assert database.value("SELECT last_sign_in_at FROM users") is None


class TestWhatASignInMakesOfItsUser:
    """It is committed before the hook is asked. A link stays good until it has opened a session."""

    def test_address_is_proved_and_its_link_stays_good(self, http_client, http_hook, outbox, database):
        http_client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})
        token = outbox.last().token
        allow, http_hook.answer = http_hook.answer, lambda _event: REFUSAL
        assert fragment(follow(http_client, "signup", token))["error_code"] == "hook_refused"
        assert database.value("SELECT email_proved FROM users")
        assert database.count("sessions") == 0
        http_hook.answer = allow
        assert "access_token" in fragment(follow(http_client, "signup", token))
        assert "error_code" in fragment(follow(http_client, "signup", token))
        events = [row.action for row in database.all("SELECT action FROM audit_log ORDER BY at")]
        assert (events.count("email_confirmed"), events.count("signed_in")) == (1, 1)

    def test_link_of_a_banned_user_is_not_told_to_the_hook(
        self, http_client, alice, http_hook, outbox, database
    ):
        http_client.post("/magiclink", json={"email": alice.email})
        database.run("UPDATE users SET banned_until = 'infinity'")
        answer = hand_in(http_client, "magiclink", outbox.last().token)
        assert_error(answer, 403, "user_banned")
        assert (http_hook.requests, database.count("sessions")) == ([], 0)

    def test_wrong_code_is_not_told_to_the_hook_and_counts_once(
        self, http_client, alice, http_hook, database
    ):
        app, _session = factors.set_up(alice.sign_in(client=http_client))
        low = alice.sign_in(client=http_client)
        calls = len(http_hook.requests)
        assert_error(factors.verify(low, app, app.wrong_code()), 422, "mfa_verification_failed")
        assert len(http_hook.requests) == calls
        assert database.value("SELECT max(count) FROM failure_counts") == 1


class TestFunctionThatFails:
    @cases(
        ("body", "reason"),
        [
            ("begin raise exception E'no\\nroles %%', repeat('a', 1000); end;", f"P0001: no roles {'a' * 284}"),
            (SLOW, "57014: canceling statement due to statement timeout"),
            ("begin perform 1 / 0; end;", "22012: division by zero"),
            ("begin return jsonb_build_object('claims', repeat('a', 210000)); end;",
             "its answer has more than 204800 bytes"),
            ("begin delete from sessions; return '{}'; end;", "its answer has no claims"),
        ],
    )  # fmt: skip
    def test_audit_log_says_why_the_function_failed(self, sql_client, define, alice, database, body, reason):
        other = alice.open_session()
        define(body)
        assert alice.try_to_sign_in(client=sql_client).status_code == 503
        row = database.one("SELECT * FROM audit_log WHERE reason = 'hook_failed' ORDER BY at DESC LIMIT 1")
        assert (str(row.user_id), row.action) == (alice.id, "sign_in_refused")
        assert row.details["hook"] == "customize-access-token"
        assert row.details["said"].startswith(reason)
        assert len(row.details["said"]) <= 300
        assert other.get("/user").status_code == 200

    def test_missing_function_fails_and_nothing_else_does(self, make_app, alice):
        settings = {"AUTH_HOOK_CUSTOM_ACCESS_TOKEN": "pg-functions://postgres/nowhere/hook"}
        client = make_app(**settings).test_client()
        assert alice.try_to_sign_in(client=client).status_code == 503
        assert alice.open_session().on(client).get("/user").status_code == 200

    def test_name_of_the_function_is_quoted(self, make_app, database, define, alice):
        database.run(
            """CREATE FUNCTION of_tests."Select"(event json) RETURNS json LANGUAGE sql AS 'SELECT event'"""
        )
        url = "pg-functions://postgres/of_tests/Select"
        client = make_app(AUTH_HOOK_CUSTOM_ACCESS_TOKEN=url).test_client()
        assert alice.sign_in(client=client).get("/user").status_code == 200


class TestServer:
    def test_request_is_signed_and_the_session_is_the_one_of_the_token(
        self, http_client, http_hook, alice, database
    ):
        session = alice.sign_in(client=http_client)
        (posted,) = http_hook.requests
        event = verified(posted, SECRET)
        claims = event["claims"]
        assert {"sub": claims["sub"], "session_id": claims["session_id"]}.items() <= session.claims.items()
        assert claims["jti"] == session.claims["jti"]
        assert database.value("SELECT id::text FROM sessions") == session.id

    def test_concurrent_refreshes_get_the_same_refresh_token(self, http_client, alice):
        session = alice.sign_in(client=http_client)
        clients = [http_client.application.test_client() for _ in range(6)]
        answers = at_once(6, lambda number: refresh(clients[number], session.refresh_token))
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.json["refresh_token"] for answer in answers}) == 1


# What an administrator may do while the hook answers, each as method, path after that of the user, and body.
CHANGES = {
    "role": ("PUT", "", {"role": "editor"}),
    "ban": ("PUT", "", {"ban_duration": "1h"}),
    "email": ("PUT", "", {"email": "alice@example.org", "email_confirm": True}),
    "phone": ("PUT", "", {"phone": "+15005550006", "phone_confirm": True}),
    "app_metadata": ("PUT", "", {"app_metadata": {"plan": "pro"}}),
    "factor": ("DELETE", "/factors/{factor}", None),
    "session": ("POST", "/logout", {}),
    "user": ("DELETE", "", None),
}


class TestWhatChangesMeanwhile:
    """Nothing is locked while the hook answers, and a token whose facts have changed is not issued."""

    @pytest.fixture
    def change(self, alice, http_hook, service_role, database):
        """Change something once, by the admin API, while the hook answers."""

        def change(method, path, body):
            def answer(event):
                http_hook.answer = lambda event: {"claims": event["claims"]}
                factor = next((str(row.id) for row in database.all("SELECT id FROM factors")), None)
                url = f"/admin/users/{alice.id}{path.format(factor=factor)}"
                response = alice.client.open(url, method=method, json=body, headers=service_role)
                assert response.status_code in (200, 204), response.text
                return {"claims": event["claims"]}

            http_hook.answer = answer

        return change

    @pytest.fixture
    def session(self, http_client, alice):
        _app, session = factors.set_up(alice.sign_in(client=http_client))
        return session

    @pytest.mark.parametrize("fact", list(CHANGES))
    def test_refresh_is_unavailable_and_writes_nothing(self, session, change, database, fact):
        before = database.all("SELECT counter, refreshed_at FROM sessions")
        change(*CHANGES[fact])
        response = session.refresh()
        assert_error(response, 503, "service_unavailable")
        assert response.headers["Retry-After"] == "2"
        assert fact == "user" or database.all("SELECT counter, refreshed_at FROM sessions") == before
        if fact in ("role", "app_metadata", "factor"):
            assert session.refreshed().get("/user").status_code == 200

    @pytest.mark.parametrize("fact", [fact for fact in CHANGES if fact != "session"])
    def test_sign_in_is_unavailable_and_opens_no_session(
        self, http_client, session, change, alice, database, fact
    ):
        change(*CHANGES[fact])
        assert_error(alice.try_to_sign_in(client=http_client), 503, "service_unavailable")
        assert database.count("sessions") == (0 if fact == "user" else 1)
        assert database.count("failure_counts", "count > 0") == 0


class TestWaysToSignIn:
    """The hook decides about each token; a session on our pages has no token."""

    def test_hook_decides_about_tokens_of_passkeys_and_codes(self, either, alice, outbox):
        client, answer = either
        answer(plan="pro")
        session = alice.sign_in(client=client)
        authenticator, _ = passkeys.register(session)
        high = passkeys.sign_in(client, authenticator)
        reauthenticated = high.post("/reauthenticate", json=passkeys.assertion(client, authenticator))
        codes = high.post("/factors/recovery-codes").json["codes"]
        client.post("/magiclink", json={"email": alice.email})
        code = {"type": "email", "email": alice.email, "token": outbox.last().code}
        by_code = client.post("/verify", json=code)
        low = alice.sign_in(client=client)
        by_recovery_code = low.post("/factors/recovery-codes/verify", json={"code": codes[0]})
        for response in (reauthenticated, by_code, by_recovery_code):
            assert session_of(client, response).claims["plan"] == "pro"
        assert high.claims["plan"] == "pro"

    def test_sign_in_on_our_pages_does_not_call_the_hook(self, http_client, http_hook, alice):
        http_hook.status, http_hook.answer = 500, None
        visitor = Visitor(http_client.application)
        visitor.signed_in_as(alice)
        assert visitor.visit("/account").status == 200
        assert http_hook.requests == []

    def test_browser_stays_signed_in_when_the_hook_refuses_its_application(
        self, make_app, http_hook, alice, database
    ):
        settings = {
            "AUTH_HOOK_CUSTOM_ACCESS_TOKEN": http_hook.url,
            "AUTH_SITE_URL": "https://app.example.com",
        }
        visitor = Visitor(make_app(AUTH_HOOK_CUSTOM_ACCESS_TOKEN_SECRETS=SECRET, **settings))
        allow, http_hook.answer = http_hook.answer, lambda _event: REFUSAL
        visitor.visit("/sign-in?redirect_to=https://app.example.com/in")
        page = visitor.submit(email=alice.email, password=PASSWORD)
        assert "This isn’t allowed" in page.text
        assert visitor.session_cookie
        assert database.value("SELECT reason FROM audit_log WHERE action LIKE '%%_refused'") == "hook_refused"
        http_hook.answer = allow
        assert visitor.submit().url.startswith("https://app.example.com/in#access_token=")


def test_hook_reads_the_memberships_that_count_at_the_age_of_the_session(make_app, define, alice, database):
    define(SAME)
    settings = {"AUTH_HOOK_CUSTOM_ACCESS_TOKEN": FUNCTION, "AUTH_ORGANIZATIONS": "users"}
    client = make_app(**settings).test_client()
    session = session_of(client, sign_in(client, alice.email))
    id = session.post("/organizations", json={"name": "Acme"}).json["id"]
    database.run("UPDATE organizations SET max_age = '1 hour'")
    assert session.refreshed().claims["organizations"] == {id: "owner"}
    database.run("UPDATE sessions SET created_at = created_at - interval '2 hours'")
    late = session.refreshed()
    assert "organizations" not in late.claims
    # A second step authenticates the user, and so does another sign-in.
    _, raised = factors.set_up(session_of(client, sign_in(client, alice.email)))
    assert raised.claims["organizations"] == {id: "owner"}
    database.run(
        "UPDATE sessions SET created_at = created_at - interval '2 hours', reauthenticated_at = NULL"
    )
    assert "organizations" not in raised.refreshed().claims


def test_requirement_that_is_made_while_the_hook_is_asked_holds(make_app, define, alice, database):
    """The hook's function makes it, in the transaction in which it is asked: the token is not issued by its answer."""
    define(
        "begin update public.organizations set max_age = '15 minutes' where max_age is null; return event; end;"
    )
    database.run("GRANT UPDATE, SELECT ON organizations TO PUBLIC")
    settings = {"AUTH_HOOK_CUSTOM_ACCESS_TOKEN": FUNCTION, "AUTH_ORGANIZATIONS": "users"}
    client = make_app(**settings).test_client()
    session = session_of(client, sign_in(client, alice.email))
    session.post("/organizations", json={"name": "Acme"})
    assert session.refresh().status_code == 503
    assert session.refreshed().claims["organizations"]


class TestCommand:
    """`latchkey hooks test custom-access-token`."""

    ARGUMENTS = ("hooks", "test", "custom-access-token", "--user", "alice@example.com")

    def test_command_prints_what_a_function_answers_and_keeps_nothing(
        self, sql_client, define, alice, database
    ):
        define("begin insert into of_tests.user_roles values (null, 'tried'); return event; end;")
        command = run_command(sql_client.application, *self.ARGUMENTS, "--json")
        result = json.loads(command.output)
        assert (command.exit_code, result["verdict"], result["request"]["user_id"]) == (
            0,
            "accepted",
            alice.id,
        )
        assert result["answer"]["claims"] == result["request"]["claims"]
        assert database.value("SELECT count(*) FROM of_tests.user_roles") == 0

    def test_command_sends_the_claims_of_a_sign_in_with_memberships(self, make_app, define, alice):
        define(SAME)
        claims = {"AUTH_TOKEN_CLAIMS": '{"since": "created_at", "level": "session.aal"}'}
        settings = claims | {"AUTH_HOOK_CUSTOM_ACCESS_TOKEN": FUNCTION, "AUTH_ORGANIZATIONS": "users"}
        client = make_app(**settings).test_client()
        organization = session_of(client, sign_in(client, alice.email)).post(
            "/organizations", json={"name": "Acme"}
        )
        claims_of_token = without_times(session_of(client, sign_in(client, alice.email)).claims)
        assert claims_of_token["organizations"] == {organization.json["id"]: "owner"}
        command = run_command(client.application, *self.ARGUMENTS, "--json")
        claims_of_request = without_times(json.loads(command.output)["request"]["claims"])
        assert claims_of_request == claims_of_token | {
            name: claims_of_request[name] for name in ("jti", "session_id")
        }

    def test_command_says_what_is_wrong_with_the_answer(self, either, alice):
        client, answer = either
        answer(role="service_role")
        command = run_command(client.application, *self.ARGUMENTS)
        verdict = "verdict: customize-access-token failed: its answer has the role service_role"
        assert (command.exit_code, command.output.splitlines()[-1]) == (3, verdict)
