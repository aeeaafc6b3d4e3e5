"""Access control: each route with each credential, and how soon changed rights apply.

The security of openapi.yaml says who may use a route.
"""

import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from auth.context import EXTENSION
from tests.conftest import SERVICE_ROLE_KEY, new_app
from tests.support.answers import ANYTHING, assert_error
from tests.support.cases import cases
from tests.support.server import ServerClient, at_once
from tests.support.users import PASSWORD, Session, register, session_of, sign_in
from tests.test_contract import OPERATIONS, SCHEMES, STATIC

NO_ID = "00000000-0000-0000-0000-000000000000"


# The codes of a credential that is not let in. A route may refuse others: an empty body, or an unknown id.
REFUSALS = {"no_authorization", "bad_jwt", "session_not_found", "not_admin", "insufficient_permissions"}


class Route(NamedTuple):
    """A request without a body or its parameters."""

    method: str
    path: str
    query: str = ""

    @property
    def url(self) -> str:
        return re.sub(r"\{\w+\}", NO_ID, self.path) + self.query

    def ask(self, client: Any, **options: Any) -> Any:
        body: dict[str, Any] = {} if self.method == "get" else {"json": {}}
        return client.open(self.url, method=self.method.upper(), **body, **options)


def open_to(guard: str | None) -> list[Route]:
    """Return the operations that openapi.yaml describes with the security of a guard."""
    return [
        Route(operation.method, operation.path, "?provider=github" if name == "authorize_identity" else "")
        for name, operation in OPERATIONS.items()
        if name != STATIC and operation.schemes() == SCHEMES[guard]
    ]


# Credentials make no difference.
PUBLIC = [
    *(route for route in open_to(None) if route.path != "/token"),
    Route("post", "/token", "?grant_type=password"),
    Route("post", "/token", "?grant_type=refresh_token"),
]
# Access tokens of users; the service role key, and access tokens of administrators; the key alone.
USER, ADMIN, SERVICE = open_to("access_token"), open_to("admin"), open_to("service_role")

each_guarded = cases("route", USER + ADMIN + SERVICE)


class Credential(NamedTuple):
    """Headers, and the status and error_code of each kind of route; None where they are let in."""

    headers: dict[str, str]
    by_user_routes: tuple[int, str] | None
    by_admin_routes: tuple[int, str] | None
    by_service_routes: tuple[int, str] | None

    def refusal(self, route: Route) -> tuple[int, str] | None:
        return (
            self.by_user_routes
            if route in USER
            else self.by_admin_routes
            if route in ADMIN
            else self.by_service_routes
        )


def expired(session: Session, app: Any) -> dict[str, str]:
    """Return headers with an expired token of a live session."""
    issued_at = session.claims["iat"] - 3601
    return bearer(
        app.extensions[EXTENSION].access_tokens.issue(session.user, session.id, issued_at, "aal1", [])
    )


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def everywhere(headers: dict[str, str], status: int, error_code: str) -> Credential:
    return Credential(headers, *[(status, error_code)] * 3)


@pytest.fixture(scope="module")
def default_app(environment):
    """An application with a provider, to link identities of."""
    app = new_app(
        environment
        | {"AUTH_PROVIDER_GITHUB_CLIENT_ID": "latchkey", "AUTH_PROVIDER_GITHUB_CLIENT_SECRET": "a secret"}
    )
    yield app
    app.extensions[EXTENSION].db.close()


@pytest.fixture
def open_session(client, service_role) -> Callable[..., Session]:
    """Open the session of a new user."""
    numbers = itertools.count()
    return lambda role=None: register(
        client, service_role, f"user{next(numbers)}@example.com", role
    ).open_session()


@pytest.fixture
def make_admitted(open_session, database) -> Callable[[], dict[str, Credential]]:
    """Make new credentials that some of the routes let in, each for another user."""
    no_admin, no_service = (403, "not_admin"), (403, "insufficient_permissions")

    def make() -> dict[str, Credential]:
        former = open_session("admin")
        database.run(
            "UPDATE users SET role = 'authenticated', admin_since = NULL WHERE id = %(id)s",
            id=former.user["id"],
        )
        public = {"apikey": "public"}
        return {
            "a user": Credential(open_session().authorization, None, no_admin, no_service),
            "a former administrator": Credential(former.authorization, None, no_admin, no_service),
            "an administrator": Credential(
                open_session("admin").prepared().authorization, None, None, no_service
            ),
            "the service role key": Credential(bearer(SERVICE_ROLE_KEY), (401, "bad_jwt"), None, None),
            "the service role key as apikey": Credential({"apikey": SERVICE_ROLE_KEY}, (401, ""), None, None),
            "a user with a public apikey": Credential(
                open_session().authorization | public, None, no_admin, no_service
            ),
            "an administrator with a public apikey": Credential(
                open_session("admin").prepared().authorization | public, None, None, no_service
            ),
        }

    return make


@pytest.fixture
def credentials(app, database, open_session, make_admitted) -> dict[str, Credential]:
    """All kinds of credentials."""
    deleted, banned, signed_out = open_session(), open_session(), open_session("admin")
    database.run("DELETE FROM users WHERE id = %(id)s", id=deleted.user["id"])
    database.run("UPDATE users SET banned_until = 'infinity' WHERE id = %(id)s", id=banned.user["id"])
    ended = "UPDATE sessions SET ended_at = now(), end_reason = 'logout' WHERE id = %(id)s"
    database.run(ended, id=signed_out.id)
    return {
        "no credential": everywhere({}, 401, "no_authorization"),
        "an empty one": everywhere({"Authorization": "", "apikey": ""}, 401, "no_authorization"),
        "garbage": everywhere(bearer("nonsense"), 401, "bad_jwt"),
        "another scheme": everywhere({"Authorization": f"Basic {SERVICE_ROLE_KEY}"}, 401, "bad_jwt"),
        "no scheme": everywhere({"Authorization": SERVICE_ROLE_KEY}, 401, "bad_jwt"),
        "a refresh token": everywhere(bearer(open_session("admin").refresh_token), 401, "bad_jwt"),
        "a longer key": everywhere(bearer(SERVICE_ROLE_KEY + "x"), 401, "bad_jwt"),
        "an expired token": everywhere(expired(open_session(), app), 401, "bad_jwt"),
        "an expired token of an administrator": everywhere(
            expired(open_session("admin"), app), 401, "bad_jwt"
        ),
        "an ended session of an administrator": everywhere(
            signed_out.authorization, 401, "session_not_found"
        ),
        "a deleted user": everywhere(deleted.authorization, 401, "user_not_found"),
        "a banned user": everywhere(banned.authorization, 403, "user_banned"),
    } | make_admitted()


# Also refused under the prefix and for HEAD, whose requests reach the same guards.
IN_EACH_FORM = {"no credential", "a banned user", "a user", "the service role key"}


def test_public_routes_ignore_credentials(client, credentials):
    names = IN_EACH_FORM | {"an empty one", "garbage", "an expired token", "an administrator"}
    chosen = {name: credentials[name] for name in names}
    for route in PUBLIC:
        expected = route.ask(client).status_code
        assert expected not in (401, 403, 429), route
        answers = {route.ask(client, headers=each.headers).status_code for each in chosen.values()}
        assert answers == {expected}, route


@each_guarded
def test_guarded_route_refuses_credentials(client, credentials, database, route):
    refused = {name: credential for name, credential in credentials.items() if credential.refusal(route)}
    before = database.everything()
    for name, credential in refused.items():
        status, error_code = credential.refusal(route) or (0, "")
        response = route.ask(client, headers=credential.headers)
        assert (name, response.status_code, response.json["error_code"]) == (
            name,
            status,
            error_code or response.json["error_code"],
        )
        assert_error(response, status, response.json["error_code"], details=response.json.get("details"))
    for name in refused.keys() & IN_EACH_FORM:
        status, headers = refused[name].refusal(route)[0], refused[name].headers
        prefixed = route._replace(path=f"/auth/v1{route.path}")
        assert (name, prefixed.ask(client, headers=headers).status_code) == (name, status)
        if route.method == "get":
            headed = client.head(route.url, headers=headers)
            assert (name, headed.status_code, headed.data) == (name, status, b"")
    assert database.everything() == before


@each_guarded
def test_guarded_route_lets_in_credentials(client, make_admitted, route):
    # The request may end the session or the user.
    for name, credential in make_admitted().items():
        if not credential.refusal(route):
            response = route.ask(client, headers=credential.headers)
            error_code = response.json["error_code"] if response.status_code >= 400 else None
            assert error_code not in REFUSALS, name


@each_guarded
def test_credential_outside_its_header_is_ignored(client, carol, route):
    token = carol.open_session().access_token
    for name, value in (
        ("access_token", token),
        ("apikey", SERVICE_ROLE_KEY),
        ("authorization", f"Bearer {SERVICE_ROLE_KEY}"),
    ):
        body = {} if route.method == "get" else {"json": {name: value}}
        response = client.open(
            f"{route.url}{'&' if '?' in route.url else '?'}{name}={value}",
            method=route.method.upper(),
            **body,
        )
        assert (name, response.status_code) == (name, 401)
        client.set_cookie(name, value)
        assert (name, client.open(route.url, method=route.method.upper(), **body).status_code) == (name, 401)
        client.delete_cookie(name)


@each_guarded
def test_repeated_credential_is_refused(client, alice, carol, route):
    for one, other in (
        (carol.open_session().access_token, alice.open_session().access_token),
        (SERVICE_ROLE_KEY, SERVICE_ROLE_KEY),
    ):
        response = route.ask(
            client, headers=[("Authorization", f"Bearer {one}"), ("Authorization", f"Bearer {other}")]
        )
        assert_error(response, 400, "validation_failed", details="Authorization: must be given once")


# A few of each guard: the tests above show that all of its routes refuse tokens that it has cached.
ADMIN_ROUTES = ADMIN[:3] + SERVICE[:3]
SAMPLE = [route for route in USER if route.path in ("/user", "/logout", "/sessions")] + ADMIN_ROUTES


class TestChangedRightsApplyToTheNextRequest:
    """On every worker, although workers cache verified tokens."""

    def assert_statuses(
        self, server: ServerClient, session: Session, routes: list[Route], status: int
    ) -> None:
        """Request each route four times, over separate connections."""
        statuses = at_once(
            4, lambda _: [route.ask(server, headers=session.authorization).status_code for route in routes]
        )
        assert {route: set(answered) for route, *answered in zip(routes, *statuses, strict=True)} == {
            route: {status} for route in routes
        }

    @pytest.fixture
    def session(self, server, carol) -> Session:
        """A session of Carol's that every worker has cached."""
        session = carol.sign_in()
        assert {
            answer.status_code for answer in at_once(16, lambda _: session.on(server).get("/admin/users"))
        } == {200}
        return session

    def change(self, server, service_role, carol, **body):
        assert server.put(f"/admin/users/{carol.id}", json=body, headers=service_role).status_code == 200

    def test_demoted_administrator_is_refused_by_admin_routes(self, server, service_role, carol, session):
        self.change(server, service_role, carol, role="authenticated")
        self.assert_statuses(server, session, ADMIN_ROUTES, 403)
        assert session.on(server).get("/user").status_code == 200

    def test_promoted_user_is_let_in_to_admin_routes(self, server, service_role, carol, session):
        self.change(server, service_role, carol, role="authenticated")
        self.change(server, service_role, carol, role="admin")
        self.assert_statuses(server, session, [Route("get", "/admin/users")], 200)

    def test_banned_user_is_refused_whose_session_stays_ended_when_the_ban_is_lifted(
        self, server, service_role, carol, session
    ):
        self.change(server, service_role, carol, ban_duration="1h")
        self.assert_statuses(server, session, SAMPLE, 403)
        self.change(server, service_role, carol, ban_duration=None)
        self.assert_statuses(server, session, SAMPLE, 401)

    @pytest.mark.parametrize("by", ["the user", "the service role", "deletion"])
    def test_user_whose_sessions_ended_is_refused(self, server, service_role, carol, session, by):
        path = f"/admin/users/{carol.id}"
        response = {
            "the user": lambda: session.on(server).post("/logout"),
            "the service role": lambda: server.post(f"{path}/logout", headers=service_role),
            "deletion": lambda: server.delete(path, headers=service_role),
        }[by]()
        assert response.status_code == 200
        self.assert_statuses(server, session, SAMPLE, 401)


# Fields with which an attacker might try to gain rights.
FIELDS = {
    "role": "admin",
    "roles": ["admin"],
    "is_admin": True,
    "is_super_admin": True,
    "admin_since": "2020-01-01T00:00:00Z",
    "admin_details": {"is_admin": True},
    "app_metadata": {"role": "admin", "roles": ["admin"], "is_admin": True, "provider": "google"},
    "user_metadata": {"role": "admin"},
    "raw_app_meta_data": {"role": "admin"},
    "claims": {"role": "admin"},
    "aud": "admin",
    "email_confirm": True,
    "email_confirmed_at": "2020-01-01T00:00:00Z",
    "phone_confirm": True,
    "phone_confirmed_at": "2020-01-01T00:00:00Z",
    "confirmed_at": "2020-01-01T00:00:00Z",
    "banned_until": None,
    "ban_duration": None,
    "id": NO_ID,
    "user_id": NO_ID,
    "made_by": "administrator",
    "email_proved": True,
    "password_hash": "x",
    "service_role": True,
}


class TestUserCannotBecomeAdministrator:
    def assert_no_administrator(self, session):
        user = session.get("/user").json
        assert (user["role"], user["aud"], user["phone_confirmed_at"]) == (
            "authenticated",
            "authenticated",
            None,
        )
        assert user["app_metadata"] == {"provider": "email", "providers": ["email"]}
        assert session.claims["role"] == "authenticated"
        assert_error(session.get("/admin/users"), 403, "not_admin")
        assert_error(
            session.put(f"/admin/users/{user['id']}", json={"role": "admin"}), 403, "insufficient_permissions"
        )

    def assert_unchanged_by(self, session, body):
        before = session.get("/user").json
        response = session.put("/user", json=body)
        assert response.json == before | {"updated_at": response.json["updated_at"]}

    @cases("name", FIELDS)
    def test_by_sending_one_privileged_field(self, mallory, name):
        self.assert_unchanged_by(mallory.open_session(), {name: FIELDS[name]})

    def test_by_sending_all_privileged_fields_or_as_metadata(self, mallory):
        session = mallory.open_session()
        self.assert_unchanged_by(session, FIELDS)
        assert session.put("/user", json={"data": FIELDS}).status_code == 200
        self.assert_no_administrator(session.refreshed())

    def test_by_signing_up(self, make_app):
        client = make_app(AUTH_AUTOCONFIRM="true").test_client()
        body = {"email": "mallory@example.com", "password": PASSWORD, "data": FIELDS}
        made = client.post("/signup", json=FIELDS | body)
        assert (made.status_code, made.json["role"], made.json["app_metadata"]) == (201, "authenticated", {})
        assert made.json["id"] != NO_ID
        self.assert_no_administrator(
            Session(client, made.json["access_token"], made.json["refresh_token"], made.json["user"])
        )

    def test_by_signing_in(self, client, mallory):
        for path in ("/token?grant_type=password", "/login-admin"):
            response = client.post(path, json=FIELDS | {"email": mallory.email, "password": PASSWORD})
            assert response.status_code == (200 if path.startswith("/token") else 403)
        self.assert_no_administrator(session_of(client, sign_in(client, mallory.email)))

    def test_by_sending_a_header(self, client, mallory):
        session = mallory.open_session()
        roles = {"X-Role": "admin", "X-User-Role": "service_role", "Remote-User": "admin"}
        roles |= {"X-Forwarded-User": "carol@example.com", "X-HTTP-Method-Override": "GET"}
        for name, value in (roles | dict.fromkeys(("X-Original-URL", "X-Rewrite-URL"), "/health")).items():
            headers = session.authorization | {name: value}
            assert client.get("/admin/users", headers=headers).status_code == 403


class TestAdministratorCannotMakeAdministrators:
    def test_by_creating_a_user_with_a_role(self, carol, database):
        session = carol.open_session()
        for role in ("admin", "authenticated", "editor", "", 1, ["admin"]):
            response = session.post("/admin/users", json={"email": "dave@example.com", "role": role})
            assert response.status_code in (400, 403)
        assert database.count("users") == 1

    def test_by_creating_a_user_with_other_privileged_fields(self, carol, client, database):
        body = FIELDS | {
            "email": "dave@example.com",
            "password": PASSWORD,
            "password_hash": None,
            "role": None,
            "email_confirm": True,
        }
        session = carol.sign_in()
        assert_error(session.post("/admin/users", json=body), 400, "validation_failed", details=ANYTHING)
        # In the dialect the fields are ignored.
        headers = session.authorization | {"X-Supabase-Api-Version": "2024-01-01"}
        made = client.post("/admin/users", json=body, headers=headers)
        assert (made.status_code, made.json["role"]) == (200, "authenticated")
        assert database.count("users", "role = 'admin' OR admin_since IS NOT NULL") == 1
        assert_error(
            client.post("/login-admin", json={"email": "dave@example.com", "password": PASSWORD}),
            403,
            "not_admin",
        )

    def test_by_creating_or_changing_an_existing_user(self, carol, alice):
        session = carol.open_session()
        response = session.post(
            "/admin/users", json={"email": alice.email, "app_metadata": {"role": "admin"}}
        )
        assert_error(response, 409, "email_exists")
        assert_error(
            session.put(f"/admin/users/{alice.id}", json={"role": "admin"}), 403, "insufficient_permissions"
        )
        assert alice.sign_in().user["role"] == "authenticated"

    def test_by_generating_a_link(self, carol, alice, database):
        session = carol.open_session()
        for path, body in (
            ("/admin/generate_link", {"type": "recovery", "email": alice.email}),
            ("/admin/invite", {"email": "dave@example.com", "options": {"data": {"role": "admin"}}}),
        ):
            assert_error(session.post(path, json=body), 403, "insufficient_permissions")
        assert (database.count("users"), database.count("one_time_tokens")) == (2, 0)


class TestAccessTokenIsNotTheServiceRoleKey:
    @pytest.mark.parametrize("role", ["service_role", "admin", "supabase_admin"])
    def test_token_that_claims_the_role_is_refused(self, client, app, mallory, role):
        session = mallory.open_session()
        claiming = session.user | {"role": role, "app_metadata": {"role": role}}
        token = app.extensions[EXTENSION].access_tokens.issue(
            claiming, session.id, session.claims["iat"], "aal1", []
        )
        assert_error(client.get("/admin/users", headers=bearer(token)), 403, "not_admin")
        for headers in (bearer(token), {"apikey": token}):
            assert client.put(
                f"/admin/users/{mallory.id}", json={"role": "admin"}, headers=headers
            ).status_code in (401, 403)

    def test_token_configured_as_the_key_is_compared_as_a_whole(self, make_app, mallory, client):
        # Other services use a JWT as this key, so an operator may keep it.
        key = mallory.sign_in().access_token
        admin = make_app(AUTH_SERVICE_ROLE_KEY=key).test_client()
        assert admin.get("/admin/users", headers=bearer(key)).status_code == 200
        assert (
            admin.get("/admin/users", headers=bearer(key[:-1] + ("A" if key[-1] != "A" else "B"))).status_code
            == 401
        )
        assert_error(client.get("/admin/users", headers=bearer(key)), 403, "not_admin")
