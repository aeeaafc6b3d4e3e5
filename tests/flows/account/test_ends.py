"""Ends: each size of an end against everything that a user can hold."""

import re
from collections.abc import Callable
from typing import Any, get_args

import pytest

from auth.core.tokens import one_time
from auth.flows import ends
from auth.rules.ends import SIZES, ProviderReason, Reason, Size
from sql import acts, load_statements, queries, schema
from tests.support.api_keys import make_key, use
from tests.support.commands import run_command
from tests.support.contract import OPENAPI
from tests.support.factors import set_up
from tests.support.links import CHALLENGE, VERIFIER, follow, hand_in
from tests.support.openid import REDIRECT_URI, bearer, granted_code, make_client
from tests.support.users import session_of

ROOT = OPENAPI.parent
NEW_PASSWORD = "Another-Horse-2"
WAYS = ("session", "application", "client", "code", "request")
OWN, OTHER = ({f"{side} {way}" for way in WAYS} for side in ("own", "other"))
USERS = {"API key", "grant", "link"}
EVERYTHING = OWN | OTHER | USERS


class Holdings:
    """Holdings of a user: in two sessions their applications and clients, codes that were not redeemed, and a
    grant, an API key and a link. `own` is the session that acts.
    """

    def __init__(self, person: Any, client: Any, parts: Any, database: Any, outbox: Any) -> None:
        self.person, self.client, self.database = person, client, database
        self._parts, self._grafana = parts, make_client(database)
        self.sessions: dict[str, Any] = {}
        self._checks: dict[str, Callable[[], bool]] = {}
        for side in ("own", "other"):
            session = person.open_session(client)
            self.sessions[side] = session
            self._hold(side, session)
        self._key = make_key(self.own)[1]
        self._checks["API key"] = lambda: use(client, self._key).status_code == 200
        self._checks["grant"] = lambda: database.count("oauth_grants") == 1
        client.post("/magiclink", json={"email": person.email})
        link = outbox.last(person.email, "magiclink").token
        self._checks["link"] = lambda: hand_in(client, "magiclink", link).status_code == 200

    @property
    def own(self) -> Any:
        return self.sessions["own"]

    def _hold(self, side: str, session: Any) -> None:
        code, request_code = self._issue_code(session), granted_code(self.database, self._grafana, session)
        application = session_of(self.client, self._exchange(self._issue_code(session)))
        client_code = granted_code(self.database, self._grafana, session)
        tokens = self._grafana.redeem(self.client, client_code, redirect_uri=REDIRECT_URI).json
        userinfo = {"headers": bearer(tokens["access_token"])}
        self._checks |= {
            f"{side} session": lambda: session.get("/sessions").status_code not in (401, 404),
            f"{side} application": lambda: application.get("/sessions").status_code not in (401, 404),
            f"{side} client": lambda: self.client.get("/oauth/userinfo", **userinfo).status_code == 200,
            f"{side} code": lambda: self._exchange(code).status_code == 200,
            f"{side} request": lambda: self._redeem(request_code).status_code == 200,
        }

    def _issue_code(self, session: Any) -> str:
        """Return a code that the session has handed over to an application."""
        code = one_time.new_token()
        with acts.on(self._parts.db, self.person.id) as act:
            act.read(queries.select_person, user_id=self.person.id, session_id=None)
            queries.write_authorization_code(
                act,
                user_id=self.person.id,
                code_hash=one_time.hash_token(code),
                code_challenge=CHALLENGE,
                method="password",
                opened_by=session.id,
                provider=None,
                provider_term=None,
                by_key=False,
                authenticated_at=None,
                network=None,
                authorization_code_lifetime=300,
            )
        return code

    def _exchange(self, code: str) -> Any:
        proof = {"auth_code": code, "code_verifier": VERIFIER}
        return self.client.post("/token?grant_type=pkce", json=proof)

    def _redeem(self, code: str) -> Any:
        return self._grafana.redeem(self.client, code, redirect_uri=REDIRECT_URI)

    def working(self) -> set[str]:
        """Return the names of the holdings that work. This spends the codes, last."""
        spent = ("code", "request", "link")
        return {
            name
            for name, is_working in sorted(self._checks.items(), key=lambda named: named[0].endswith(spent))
            if is_working()
        }


@pytest.fixture
def client(make_app):
    return make_app(AUTH_API_KEYS="true").test_client()


@pytest.fixture
def holdings(alice, client, parts, database, outbox):
    return Holdings(alice, client, parts, database, outbox)


@pytest.fixture
def admin(client, alice, service_role):
    def admin(method: str, rest: str = "", **body: Any) -> Any:
        return client.open(f"/admin/users/{alice.id}{rest}", method=method, json=body, headers=service_role)

    return admin


# A user's action in a session, and the part of EVERYTHING that works afterwards.
USER_ACTIONS = {
    "nothing": (lambda own, _other: own.get("/user"), EVERYTHING),
    "sign out here": (lambda own, _other: own.post("/logout?scope=local"), OTHER | USERS),
    "sign out the other session": (lambda own, other: own.delete(f"/sessions/{other.id}"), OWN | USERS),
    "sign out elsewhere": (lambda own, _other: own.post("/logout?scope=others"), OWN | USERS),
    "sign out everywhere": (lambda own, _other: own.post("/logout?scope=global"), USERS),
    "password": (
        lambda own, _other: own.put("/user", json={"password": NEW_PASSWORD}),
        # A new password voids all links and codes.
        OWN - {"own code"} | USERS - {"link"},
    ),
    "first factor": (lambda own, _other: set_up(own), {"own session", "grant"}),
}


@pytest.mark.parametrize("action", USER_ACTIONS)
def test_act_of_a_user_ends_what_its_size_says(holdings, action):
    perform, expected = USER_ACTIONS[action]
    perform(holdings.own, holdings.sessions["other"])
    assert holdings.working() == expected


def test_stolen_refresh_token_ends_its_session_and_what_it_opened(holdings, database):
    assert holdings.own.refresh().status_code == 200
    database.run("UPDATE sessions SET counter = counter + 2 WHERE id = %(id)s", id=holdings.own.id)
    assert holdings.own.refresh().status_code == 400
    assert holdings.working() == OTHER | USERS


@pytest.mark.parametrize("type", ["recovery", "magiclink", "email"])
def test_recovery_ends_everything_with_its_new_password(holdings, outbox, type):
    holdings.client.post("/recover", json={"email": holdings.person.email})
    response = hand_in(holdings.client, type, outbox.last(holdings.person.email, "recovery").token)
    recovered = session_of(holdings.client, response)
    assert recovered.put("/user", json={"password": NEW_PASSWORD}).status_code == 200
    assert (holdings.working(), recovered.get("/user").status_code) == (set(), 200)


def test_undo_ends_everything(holdings, outbox):
    follow(holdings.client, "undo", outbox.last(holdings.person.email, "api_key_added").token)
    assert holdings.working() == set()


def test_application_that_an_application_let_in_ends_with_the_browser(holdings, database):
    application_id = database.value(
        "SELECT id::text FROM sessions WHERE opened_by = %(id)s AND grant_id IS NULL", id=holdings.own.id
    )
    database.run(
        "UPDATE sessions SET opened_by = %(by)s WHERE method = 'oauth_client' AND opened_by = %(id)s",
        by=application_id,
        id=holdings.own.id,
    )
    holdings.own.post("/logout?scope=local")
    assert holdings.working() == OTHER | USERS


# An operator's action, and the part of EVERYTHING that works afterwards.
OPERATOR_ACTIONS = {
    "password": (lambda admin, _link: admin("PUT", password=NEW_PASSWORD), set()),
    "email": (lambda admin, _link: admin("PUT", email="new@example.com", email_confirm=True), set()),
    "phone": (lambda admin, _link: admin("PUT", phone="+491701234567"), set()),
    "ban that is lifted": (
        lambda admin, _link: [admin("PUT", ban_duration="1h"), admin("PUT", ban_duration="none")],
        set(),
    ),
    "generated recovery": (lambda _admin, link: link("recovery"), set()),
    "generated sign-in": (
        lambda _admin, link: link("magiclink"),
        EVERYTHING - {"own code", "other code", "link"},
    ),
    "sign out": (lambda admin, _link: admin("POST", "/logout"), USERS),
    "promotion": (lambda admin, _link: admin("PUT", role="admin"), set()),
    "promotion twice": (lambda admin, _link: [admin("PUT", role="admin"), admin("PUT", role="admin")], set()),
    "metadata": (lambda admin, _link: admin("PUT", app_metadata={"team": "blue"}), EVERYTHING),
}


@pytest.mark.parametrize("action", OPERATOR_ACTIONS)
def test_act_of_an_operator_ends_what_its_size_says(holdings, admin, service_role, action):
    def link(type: str) -> Any:
        body = {"type": type, "email": holdings.person.email}
        response = holdings.client.post("/admin/generate_link", json=body, headers=service_role).json
        return hand_in(holdings.client, type, response["hashed_token"])

    perform, expected = OPERATOR_ACTIONS[action]
    perform(admin, link)
    assert holdings.working() == expected


def test_promotion_by_the_command_ends_what_that_by_the_api_ends(holdings, client):
    command = run_command(client.application, "create-admin", holdings.person.email, "--yes")
    assert (command.exit_code, holdings.working()) == (0, set())


def test_administrator_keeps_sessions_of_after_the_promotion(holdings, admin, client):
    """Another change of an administrator, or the command again, is no promotion."""
    admin("PUT", role="admin")
    session = holdings.person.open_session(client)
    admin("PUT", role="admin", user_metadata={"x": 1})
    run_command(client.application, "create-admin", holdings.person.email)
    assert session.get("/user").status_code == 200


def test_client_that_did_not_admit_its_user_for_a_while_has_no_session(holdings, admin, database):
    database.run("UPDATE oauth_clients SET allowed_roles = '{authenticated, staff}'")
    admin("PUT", role="editor")
    admin("PUT", role="authenticated")
    assert holdings.working() == EVERYTHING - {
        f"{side} {way}" for side in ("own", "other") for way in WAYS[2::2]
    }


def test_restored_backup_ends_what_an_end_of_everything_ends(holdings, alice, bob, database, parts):
    database.run(
        "INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret)"
        " VALUES (gen_random_uuid(), 'custom:acme', 'Acme', 'https://login.acme.example', 'x', '')"
    )
    move = (
        "INSERT INTO identity_provider_adoptions (user_id, provider_id) SELECT u.id, p.id"
        "  FROM users AS u CROSS JOIN identity_providers AS p WHERE u.email IN (%(one)s, %(other)s)"
    )
    database.run(move, one=alice.email, other=bob.email)
    database.run("INSERT INTO organizations (id, slug, name) VALUES (gen_random_uuid(), 'acme', 'Acme')")
    database.run(
        "INSERT INTO organization_invitations (id, organization_id, email, role, invited_by, expires_at)"
        " SELECT gen_random_uuid(), o.id, u.email, 'owner', u.id, now() + interval '7 days'"
        "   FROM users AS u CROSS JOIN organizations AS o WHERE u.email IN (%(one)s, %(other)s)",
        one=alice.email,
        other=bob.email,
    )
    queries.end_all_access(parts.db, **ends.of("restored"))
    # The links go with those of all users, and so do the codes if the operator keeps the sessions.
    assert holdings.working() == {"link"}
    assert database.count("identity_provider_adoptions") == 0
    assert database.count("organization_invitations") == 0


def test_session_that_is_one_too_many_ends_alone(alice, make_app, parts, database, outbox):
    client = make_app(AUTH_API_KEYS="true", AUTH_SESSIONS_PER_USER="5").test_client()
    holdings = Holdings(alice, client, parts, database, outbox)
    alice.open_session(client), alice.open_session(client)
    assert EVERYTHING - holdings.working() == {"own session", "own code", "own request"}


def test_each_reason_has_one_size(database):
    domain = database.value(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'session_end_reason_check'"
    )
    assert sorted(SIZES) == sorted(re.findall(r"'(\w+)'::text", domain))
    assert len(SIZES) == sum(len(get_args(reasons)) for reasons in (*get_args(Reason), ProviderReason))
    assert set(SIZES.values()) == set(get_args(Size))


def test_security_page_lists_the_reasons_of_the_sizes():
    page = (ROOT / "docs" / "security.md").read_text()
    reasons_by_size = {
        size: set(re.findall(r"`(\w+)`", rows))
        for size, rows in re.findall(r"^\| (others|provider|everything) \| (.+)$", page, re.MULTILINE)
    }
    for size, reasons in reasons_by_size.items():
        assert {reason for reason, size_of_reason in SIZES.items() if size_of_reason == size} == reasons
    assert reasons_by_size.keys() == {"others", "provider", "everything"}


# Statements that end something elsewhere than in sql/functions/ends.sql, and why.
ELSEWHERE = {
    "remove_api_keys": "its user removes a key",
    "delete_expired_api_keys": "they ended 30 days ago",
    "remove_grants": "its user removes a grant",
    "renew_session_credentials": "they are from before its session had its level or proof",
    "end_organization": "an organization, not what a user holds",
}
_END = re.compile(
    r"\bended_at = (?!NULL)|\bend_reason = |\bDELETE FROM (api_keys|oauth_grants|authorization_codes)\b"
)


def test_only_the_home_of_ends_ends_anything():
    statements = {name for name, each in load_statements().items() if _END.search(each.direct)}
    # Links and codes that were spent or have expired are void.
    void = {"delete_expired_authorization_codes", "void_restored"}
    assert statements - void == ELSEWHERE.keys()
    functions = {path.name for path in schema.FUNCTIONS.glob("*.sql") if _END.search(path.read_text())}
    # The second ends what goes with its grant or client.
    assert functions - {"previous.sql"} == {"ends.sql", "backchannel_logout.sql", "one_time_tokens.sql"}
