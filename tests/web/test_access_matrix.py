"""Access control: each route with each credential, and how soon changed rights apply.

The security of openapi.yaml says who may use a route.
"""

import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from auth.web.context import EXTENSION
from tests.extensions.console.test_console_routes import TABLES
from tests.source.test_contract import OPERATIONS, SCHEMES, STATIC
from tests.support.answers import ANYTHING, NO_ID, assert_error
from tests.support.apps import new_app
from tests.support.cases import cases
from tests.support.contract import console_routes, page_routes
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.extensions import EVERY_EXTENSION
from tests.support.openid import bearer, make_client, tokens_of
from tests.support.server import ServerClient, at_once
from tests.support.users import PASSWORD, Session, issue_token, register

# The codes of a credential that is not let in. A route may refuse others: an empty body, or an unknown id.
REFUSALS = {"no_authorization", "bad_jwt", "session_not_found", "not_admin", "insufficient_permissions"}


# Queries that are checked before the session.
QUERIES = {"authorize_identity": "?provider=github", "delete_grant": f"?client_id={NO_ID}"}


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
        Route(operation.method, operation.path, QUERIES.get(name, ""))
        for name, operation in OPERATIONS.items()
        if name != STATIC and operation.schemes() == SCHEMES[guard]
    ]


# Routes where credentials make no difference.
PUBLIC = [
    *(route for route in open_to(None) if route.path not in ("/token", "/oauth/clients/register")),
    Route("post", "/token", "?grant_type=password"),
    Route("post", "/token", "?grant_type=refresh_token"),
]
# Access tokens of users; the service role key, and access tokens of administrators; the key alone.
USER, SERVICE = open_to("access_token"), open_to("operator")
# The service role key, and access tokens of all users, who need a role there.
MEMBERS = [route for route in open_to("access_token_or_operator") if route.path.startswith("/organizations")]
ADMIN = [route for route in open_to("admin") if route not in MEMBERS]

each_guarded = cases("route", USER + MEMBERS + ADMIN + SERVICE)


Refusal = tuple[int, str] | None


class Credential(NamedTuple):
    """Headers, and the status and error_code of each kind of route; None where they are let in."""

    headers: dict[str, str]
    by_user_routes: Refusal
    by_admin_routes: Refusal
    by_service_routes: Refusal

    def refusal(self, route: Route) -> Refusal:
        if route in USER:
            return self.by_user_routes
        if route in MEMBERS:
            return self.by_admin_routes and self.by_user_routes
        return self.by_admin_routes if route in ADMIN else self.by_service_routes


def with_token(session: Session, app: Any, age: int = 0, **changes: Any) -> dict[str, str]:
    """Return headers with another token of a live session."""
    return bearer(issue_token(app, session.user | changes, session.id, session.claims["iat"] - age))


def refused_everywhere(headers: dict[str, str], status: int, error_code: str) -> Credential:
    return Credential(headers, *[(status, error_code)] * 3)


@pytest.fixture(scope="module")
def default_app(environment):
    """An application with every extension, and a provider, to link identities of."""
    provider = "AUTH_PROVIDER_GITHUB_CLIENT"
    credentials = {f"{provider}_ID": "latchkey", f"{provider}_SECRET": "a secret"}
    app = new_app(environment | EVERY_EXTENSION | credentials)
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
    refusals_of_user = (None, (403, "not_admin"), (403, "insufficient_permissions"))
    refusals_of_admin = (None, None, (403, "insufficient_permissions"))

    def make() -> dict[str, Credential]:
        former, public = open_session("admin"), {"apikey": "public"}
        demotion = "UPDATE users SET role = 'authenticated', admin_since = NULL WHERE id = %(id)s"
        database.run(demotion, id=former.user["id"])
        user, other = open_session().authorization, open_session().authorization
        admin, second = (open_session("admin").prepared().authorization for _ in range(2))
        return {
            "a user": Credential(user, *refusals_of_user),
            "a former administrator": Credential(former.authorization, *refusals_of_user),
            "an administrator": Credential(admin, *refusals_of_admin),
            "the service role key": Credential(bearer(SERVICE_ROLE_KEY), (401, "bad_jwt"), None, None),
            "the service role key as apikey": Credential({"apikey": SERVICE_ROLE_KEY}, (401, ""), None, None),
            "a user with a public apikey": Credential(other | public, *refusals_of_user),
            "an administrator with a public apikey": Credential(second | public, *refusals_of_admin),
        }

    return make


@pytest.fixture
def applications(client, database, service_role) -> dict[str, tuple[dict[str, str], int, str]]:
    """Applications' rights on users, even administrators: least privilege, at each route."""
    app_client = make_client(database)
    service = make_client(database, grant_types=["client_credentials"], scopes=["openid"])
    carol, dave = (register(client, service_role, f"{name}@example.com", "admin") for name in ("c", "d"))
    of_admin = tokens_of(client, database, app_client, carol)
    former = tokens_of(client, database, app_client, dave)["access_token"]
    database.run("DELETE FROM oauth_grants WHERE user_id = %(id)s", id=dave.id)
    service_token = service.post(client, "/oauth/token", grant_type="client_credentials").json["access_token"]
    tokens = {
        "an application's": of_admin["access_token"],
        "without its grant": former,
        "of no user": service_token,
    }
    return {
        **{name: (bearer(token), 403, "insufficient_scope") for name, token in tokens.items()},
        "an ID token": (bearer(of_admin["id_token"]), 401, "bad_jwt"),
        "an application's refresh token": (bearer(of_admin["refresh_token"]), 401, "bad_jwt"),
    }


@pytest.fixture
def credentials(app, database, open_session, make_admitted, applications) -> dict[str, Credential]:
    """All kinds of credentials."""
    deleted_user, banned, signed_out = open_session(), open_session(), open_session("admin")
    database.run("DELETE FROM users WHERE id = %(id)s", id=deleted_user.user["id"])
    database.run("UPDATE users SET banned_until = 'infinity' WHERE id = %(id)s", id=banned.user["id"])
    statement = "UPDATE sessions SET ended_at = now(), end_reason = 'logout' WHERE id = %(id)s"
    database.run(statement, id=signed_out.id)
    invalid = {
        "garbage": bearer("nonsense"),
        "another scheme": {"Authorization": f"Basic {SERVICE_ROLE_KEY}"},
        "no scheme": {"Authorization": SERVICE_ROLE_KEY},
        "a refresh token": bearer(open_session("admin").refresh_token),
        "a longer key": bearer(SERVICE_ROLE_KEY + "x"),
        "a shorter key": bearer(SERVICE_ROLE_KEY[:-1]),
        "an expired token": with_token(open_session("admin"), app, age=3601),
    }
    refusals: dict[str, tuple[dict[str, str], int, str]] = {
        **applications,
        "no credential": ({}, 401, "no_authorization"),
        "an empty one": ({"Authorization": "", "apikey": ""}, 401, "no_authorization"),
        **{name: (headers, 401, "bad_jwt") for name, headers in invalid.items()},
        "an ended session of an administrator": (signed_out.authorization, 401, "session_not_found"),
        "a deleted user": (deleted_user.authorization, 401, "user_not_found"),
        "a banned user": (banned.authorization, 403, "user_banned"),
    }
    return {name: refused_everywhere(*each) for name, each in refusals.items()} | make_admitted()


# These are refused under the prefix and for HEAD, too, since such requests reach the same guards.
IN_EACH_FORM = {"no credential", "a banned user", "a user", "the service role key", "an application's"}


def test_public_routes_ignore_credentials(client, credentials):
    names = IN_EACH_FORM | {"an ID token", "an empty one", "garbage", "an expired token", "an administrator"}
    chosen = {name: credentials[name] for name in names}
    for route in PUBLIC:
        expected = route.ask(client).status_code
        assert expected not in (401, 403, 429), route
        answers = {route.ask(client, headers=each.headers).status_code for each in chosen.values()}
        assert answers == {expected}, route


def test_pages_and_console_ignore_what_applications_have(client, app, applications, database):
    # The page of a passkey writes a challenge for every visitor.
    tables = set(TABLES) - {"factor_challenges"}
    before = database.everything(*tables)
    for method, path, _ in (*page_routes(app), *console_routes(app)):
        route = Route(method, path)
        expected = route.ask(client).status_code
        answers = {route.ask(client, headers=headers).status_code for headers, *_ in applications.values()}
        assert answers == {expected}, route
    assert database.everything(*tables) == before


@each_guarded
def test_guarded_route_refuses_credentials(client, credentials, database, route):
    before = database.everything()
    for name, credential in credentials.items():
        if (refusal := credential.refusal(route)) is None:
            continue
        status, error_code = refusal
        headers = credential.headers
        response = route.ask(client, headers=headers)
        code = response.json["error_code"]
        assert (name, response.status_code, code) == (name, status, error_code or code)
        assert_error(response, status, code, details=response.json.get("details"))
        if name in IN_EACH_FORM:
            prefixed = route._replace(path=f"/auth/v1{route.path}")
            assert (name, prefixed.ask(client, headers=headers).status_code) == (name, status)
            headed = client.head(route.url, headers=headers) if route.method == "get" else None
            assert headed is None or (name, headed.status_code, headed.data) == (name, status, b"")
    assert database.everything() == before


@each_guarded
def test_guarded_route_lets_in_credentials(client, make_admitted, route):
    # The request may end the session or the user.
    for name, credential in make_admitted().items():
        if not credential.refusal(route):
            response = route.ask(client, headers=credential.headers)
            assert response.status_code < 400 or response.json["error_code"] not in REFUSALS, name


@each_guarded
def test_credential_outside_its_header_is_ignored(client, carol, route):
    token = carol.open_session().access_token
    for name, value in (
        ("access_token", token),
        ("apikey", SERVICE_ROLE_KEY),
        ("authorization", f"Bearer {SERVICE_ROLE_KEY}"),
    ):
        body = {} if route.method == "get" else {"json": {name: value}}
        url = f"{route.url}{'&' if '?' in route.url else '?'}{name}={value}"
        assert (name, client.open(url, method=route.method.upper(), **body).status_code) == (name, 401)
        client.set_cookie(name, value)
        assert (name, client.open(route.url, method=route.method.upper(), **body).status_code) == (name, 401)
        client.delete_cookie(name)


@cases("scheme", ["bearer", "BEARER", "Bearer  "])
def test_authorization_scheme_is_case_insensitive(client, alice, scheme):
    headers = {"Authorization": f"{scheme} {alice.open_session().access_token}"}
    assert client.get("/user", headers=headers).status_code == 200


@each_guarded
def test_repeated_credential_is_refused(client, alice, carol, route):
    for first, second in (
        (carol.open_session().access_token, alice.open_session().access_token),
        (SERVICE_ROLE_KEY, SERVICE_ROLE_KEY),
    ):
        repeated = [("Authorization", f"Bearer {token}") for token in (first, second)]
        response = route.ask(client, headers=repeated)
        assert_error(response, 400, "validation_failed", details="Authorization: must be given once")


# A few routes of each guard; the tests above ask all of them.
ADMIN_ROUTES = ADMIN[:3] + SERVICE[:3]
SAMPLE = [route for route in USER if route.path in ("/user", "/logout", "/sessions")] + ADMIN_ROUTES


class TestChangedRightsApplyToTheNextRequest:
    """On every worker, although workers cache verified tokens."""

    def assert_statuses(self, server: ServerClient, session: Session, routes: list[Route], status: int):
        """Request each route four times, over separate connections."""

        def ask(_: int) -> list[int]:
            return [route.ask(server, headers=session.authorization).status_code for route in routes]

        assert at_once(4, ask) == [[status] * len(routes)] * 4

    @pytest.fixture
    def session(self, server, carol) -> Session:
        """A session of Carol's that every worker has cached."""
        session = carol.sign_in()
        answers = at_once(16, lambda _: session.on(server).get("/admin/users").status_code)
        assert set(answers) == {200}
        return session

    def change(self, server, service_role, carol, **body):
        assert server.put(f"/admin/users/{carol.id}", json=body, headers=service_role).status_code == 200

    def test_demoted_administrator_is_refused_until_promoted_and_signed_in_anew(
        self, server, service_role, carol, session
    ):
        self.change(server, service_role, carol, role="authenticated")
        self.assert_statuses(server, session, ADMIN_ROUTES, 403)
        assert session.on(server).get("/user").status_code == 200
        self.change(server, service_role, carol, role="admin")
        self.assert_statuses(server, session, [Route("get", "/admin/users")], 401)
        self.assert_statuses(server, carol.sign_in(), [Route("get", "/admin/users")], 200)

    def test_banned_user_is_refused_whose_session_stays_ended_when_the_ban_is_lifted(
        self, server, service_role, carol, session
    ):
        self.change(server, service_role, carol, ban_duration="1h")
        self.assert_statuses(server, session, SAMPLE, 403)
        self.change(server, service_role, carol, ban_duration=None)
        self.assert_statuses(server, session, SAMPLE, 401)

    @pytest.mark.parametrize("ended_by", ["the user", "the service role", "deletion"])
    def test_user_whose_sessions_ended_is_refused(self, server, service_role, carol, session, ended_by):
        path = f"/admin/users/{carol.id}"
        response = {
            "the user": lambda: session.on(server).post("/logout"),
            "the service role": lambda: server.post(f"{path}/logout", headers=service_role),
            "deletion": lambda: server.delete(path, headers=service_role),
        }[ended_by]()
        assert response.status_code == 200
        self.assert_statuses(server, session, SAMPLE, 401)


# Fields with which an attacker might try to gain rights.
FIELDS = {
    **dict.fromkeys(("role", "aud"), "admin"),
    **dict.fromkeys(
        ("is_super_admin", "service_role", "email_confirm", "phone_confirm", "email_proved"), True
    ),
    **dict.fromkeys(("admin_since", "email_confirmed_at", "phone_confirmed_at"), "2020-01-01T00:00:00Z"),
    "app_metadata": {"role": "admin", "roles": ["admin"], "is_admin": True, "provider": "google"},
    **{name: {"role": "admin"} for name in ("user_metadata", "raw_app_meta_data", "claims")},
    **dict.fromkeys(("banned_until", "ban_duration")),
    **dict.fromkeys(("id", "user_id"), NO_ID),
    "made_by": "administrator",
    "password_hash": "x",
}


class TestUserCannotBecomeAdministrator:
    def assert_no_administrator(self, session):
        user = session.get("/user").json
        assert (user["role"], user["aud"], session.claims["role"]) == ("authenticated",) * 3
        assert user["phone_confirmed_at"] is None
        assert user["app_metadata"] == {"provider": "email", "providers": ["email"]}
        assert_error(session.get("/admin/users"), 403, "not_admin")
        response = session.put(f"/admin/users/{user['id']}", json={"role": "admin"})
        assert_error(response, 403, "insufficient_permissions")

    @cases("body", [*({name: value} for name, value in FIELDS.items()), FIELDS])
    def test_user_gains_no_role_by_sending_privileged_fields(self, mallory, body):
        session = mallory.open_session()
        before = session.get("/user").json
        response = session.put("/user", json=body)
        assert response.json == before | {"updated_at": response.json["updated_at"]}

    def test_user_gains_no_role_by_sending_privileged_fields_as_metadata(self, mallory):
        session = mallory.open_session()
        assert session.put("/user", json={"data": FIELDS}).status_code == 200
        self.assert_no_administrator(session.refreshed())

    def test_user_gains_no_role_by_sending_a_header(self, client, mallory):
        authorization = mallory.open_session().authorization
        forged = dict.fromkeys(("X-Role", "X-User-Role", "Remote-User", "X-Forwarded-User"), "admin")
        forged |= dict.fromkeys(("X-Original-URL", "X-Rewrite-URL"), "/health")
        for name, value in forged.items():
            assert client.get("/admin/users", headers=authorization | {name: value}).status_code == 403


class TestAdministratorCannotMakeAdministrators:
    def test_administrator_creates_no_user_with_a_role(self, carol, database):
        session = carol.open_session()
        for role in ("admin", "authenticated", "editor", "", 1, ["admin"]):
            response = session.post("/admin/users", json={"email": "dave@example.com", "role": role})
            assert response.status_code in (400, 403)
        assert database.count("users") == 1

    def test_administrator_creates_no_user_with_other_privileged_fields(self, carol, client, database):
        credentials = {"email": "dave@example.com", "password": PASSWORD}
        body = FIELDS | credentials | {"password_hash": None, "role": None}
        session = carol.sign_in()
        assert_error(session.post("/admin/users", json=body), 400, "validation_failed", details=ANYTHING)
        # In the dialect the fields are ignored.
        headers = session.authorization | {"X-Supabase-Api-Version": "2024-01-01"}
        response = client.post("/admin/users", json=body, headers=headers)
        assert (response.status_code, response.json["role"]) == (200, "authenticated")
        assert database.count("users", "role = 'admin' OR admin_since IS NOT NULL") == 1
        assert_error(client.post("/login-admin", json=credentials), 403, "not_admin")


@pytest.mark.parametrize("role", ["service_role", "admin", "supabase_admin"])
def test_access_token_that_claims_a_role_is_refused(client, app, mallory, role):
    headers = with_token(mallory.open_session(), app, role=role, app_metadata={"role": role})
    assert_error(client.get("/admin/users", headers=headers), 403, "not_admin")
    for credential in (headers, {"apikey": headers["Authorization"].removeprefix("Bearer ")}):
        response = client.put(f"/admin/users/{mallory.id}", json={"role": "admin"}, headers=credential)
        assert response.status_code in (401, 403)
