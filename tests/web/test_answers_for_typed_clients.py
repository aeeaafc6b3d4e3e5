"""What the Supabase clients for Swift, Dart and Kotlin decode of each response: their models refuse a whole response for one
member that is missing or has another type.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyotp
import pytest

from tests.support.answers import DIALECT
from tests.support.authenticator import Authenticator
from tests.support.cases import cases
from tests.support.client_models import MODELS, dart_pages, swift_pages
from tests.support.customers import Customers
from tests.support.factors import set_up
from tests.support.links import DIGITS, PHONE, VERIFIER, WITH_CHALLENGE, Outbox, follow, query
from tests.support.oauth import ALLOW_LIST
from tests.support.openid import allow, authorize_path, insert_client
from tests.support.pages import Visitor
from tests.support.passkeys import register as register_passkey
from tests.support.security_keys import answer as answer_of_key
from tests.support.security_keys import enrol as enrol_key
from tests.support.users import PASSWORD, Person, Session, register

NEW = {"email": "dave@example.com", "password": PASSWORD}
SETTINGS = {
    **{"AUTH_SSO": "true", "AUTH_ANONYMOUS_ENABLED": "true", "AUTH_SMS_PROVIDER": "console"},
    **{"AUTH_OAUTH_CONSENT_URL": "https://app.example.com/consent", "AUTH_PROVIDER_GITHUB_CLIENT_ID": "x"},
    **{"AUTH_PROVIDER_GITHUB_CLIENT_SECRET": "x"},
    **ALLOW_LIST,
}


@dataclass
class Application:
    """An application that uses one of the clients, and what it was answered."""

    app: Any
    database: Any
    outbox: Outbox
    service_role: dict[str, str]
    customers: Customers

    def send(self, method: str, path: str, body: Any = None, session: Any = None, **headers: str) -> Any:
        sent = DIALECT | headers | (session.authorization if session else {})
        options = {} if body is None else {"json": body}
        return self.app.test_client().open(f"/auth/v1{path}", method=method, headers=sent, **options)

    def read(self, *arguments: Any, **headers: str) -> Any:
        """Send a request that succeeds, and return its body."""
        response = self.send(*arguments, **headers)
        assert response.status_code == 200, response.text
        return response.json

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        return self.read(method, f"/admin/{path}", body, **self.service_role)

    def person(self, **changes: Any) -> Person:
        person = register(self.app.test_client(), self.service_role, "alice@example.com")
        if changes:
            self.admin("PUT", f"users/{person.id}", changes)
        return person

    def session(self) -> Session:
        return self.person().open_session()

    def with_app(self) -> Session:
        return set_up(self.session(), "Phone")[1]

    def code(self, recipient: str = NEW["email"]) -> str:
        return self.outbox.last(recipient).code

    def sign_up(self) -> Any:
        return self.read("POST", "/signup", NEW | WITH_CHALLENGE)

    def client_id(self, **columns: Any) -> str:
        return insert_client(self.database, **columns)

    def authorization(self, client_id: str) -> str:
        """Begin a request for consent in a browser, and return its path."""
        url = Visitor(self.app).visit(authorize_path(client_id)).url
        return f"/oauth/authorizations/{parse_qs(urlsplit(url).query)['authorization_id'][0]}"


@pytest.fixture(scope="session")
def _customers() -> Iterator[Customers]:
    with Customers() as customers:
        yield customers


@pytest.fixture
def application(make_app, database, service_role, _customers) -> Application:
    app = make_app(**SETTINGS)
    parts = app.extensions["latchkey"]
    return Application(app, database, Outbox(parts, database), service_role, _customers)


def sign_in(application: Application, **credentials: str) -> Any:
    return application.read("POST", "/token?grant_type=password", {"password": PASSWORD} | credentials)


def by_code_of_a_link(application: Application) -> Any:
    """Follow the link of a sign-up with PKCE in the same browser, and exchange its code."""
    application.sign_up()
    token = application.outbox.last(NEW["email"]).token
    code = query(follow(application.app.test_client(), "signup", token))["code"]
    return application.read("POST", "/token?grant_type=pkce", {"auth_code": code, "code_verifier": VERIFIER})


def confirm_sign_up(application: Application) -> Any:
    application.sign_up()
    return application.read(
        "POST", "/verify", {"type": "signup", "email": NEW["email"], "token": application.code()}
    )


def sign_in_by_phone(application: Application) -> Any:
    application.read("POST", "/otp", {"phone": DIGITS, "create_user": True, "channel": "sms"})
    return application.read(
        "POST", "/verify", {"type": "sms", "phone": DIGITS, "token": application.code(PHONE)}
    )


def change_by_a_link(application: Application) -> Any:
    application.read("PUT", "/user", {"email": "new@example.com"}, application.session())
    token_hash = application.outbox.last("new@example.com").token
    return application.read("POST", "/verify", {"type": "email_change", "token_hash": token_hash})


def with_everything(application: Application) -> Session:
    """A session of a user with an address and a number to come, an app, a key, metadata, and a ban that has ended."""
    person = application.person(
        user_metadata={"name": "Alice", "tags": ["a"], "none": None}, phone="491700000000"
    )
    _app, session = set_up(person.open_session(), "Phone")
    enrol_key(session)
    application.read("PUT", "/user", {"email": "new@example.com"}, session)
    application.database.run("UPDATE users SET banned_until = now() - interval '1 day', invited_at = now()")
    return session


def challenge(application: Application, session: Session, factor_id: str, **site: Any) -> Any:
    return application.read("POST", f"/factors/{factor_id}/challenge", site or None, session)


def verify_key(application: Application) -> Any:
    session = application.session()
    factor_id, key = enrol_key(session), Authenticator(is_verified=False)
    body = answer_of_key(session, factor_id, key)
    return application.read("POST", f"/factors/{factor_id}/verify", {"factor_id": factor_id} | body, session)


def verify_app(application: Application) -> Any:
    session = application.session()
    factor = application.read("POST", "/factors", {"factor_type": "totp", "issuer": "Acme"}, session)
    body = {"factor_id": factor["id"], "challenge_id": challenge(application, session, factor["id"])["id"]}
    code = pyotp.TOTP(factor["totp"]["secret"]).now()
    return application.read("POST", f"/factors/{factor['id']}/verify", body | {"code": code}, session)


def register_a_passkey(application: Application, session: Session) -> Any:
    """Register as supabase-swift does, which names no passkey."""
    options = application.read("POST", "/passkeys/registration/options", None, session)
    credential = Authenticator().create(options["options"])
    body = {"challenge_id": options["challenge_id"], "credential": credential}
    return application.read("POST", "/passkeys/registration/verify", body, session)


def passkeys(application: Application) -> Any:
    session = application.session()
    register_a_passkey(application, session)
    return application.read("GET", "/passkeys/", None, session)


def rename_a_passkey(application: Application) -> Any:
    session = application.session()
    id = register_a_passkey(application, session)["id"]
    return application.read("PATCH", f"/passkeys/{id}", {"friendly_name": "Laptop"}, session)


def sign_in_by_passkey(application: Application) -> Any:
    key, _ = register_passkey(application.session())
    options = application.read("POST", "/passkeys/authentication/options", {"gotrue_meta_security": {}})
    body = {"challenge_id": options["challenge_id"], "credential": key.get(options["options"])}
    return application.read("POST", "/passkeys/authentication/verify", body)


def authorization(application: Application, **columns: Any) -> Any:
    session, path = application.session(), application.authorization(application.client_id(**columns))
    return application.read("GET", path, None, session)


def authorization_of_a_user_without_email(application: Application) -> Any:
    session = sign_in_by_phone(application)
    path = application.authorization(application.client_id())
    return application.read("GET", path, None, Session(None, session["access_token"], "", {}))


def allowed_authorization(application: Application) -> Any:
    person, client_id = application.person(), application.client_id()
    session = person.open_session()
    allow(application.database, person.id, client_id)
    return application.read("GET", application.authorization(client_id), None, session)


def consent(action: str) -> Callable[[Application], Any]:
    def decide(application: Application) -> Any:
        session, path = application.session(), application.authorization(application.client_id())
        application.read("GET", path, None, session)
        return application.read("POST", f"{path}/consent", {"action": action}, session)

    return decide


def grants(application: Application) -> Any:
    person = application.person()
    allow(application.database, person.id, application.client_id())
    return application.read("GET", "/user/oauth/grants", None, person.open_session())


def users_of_all_kinds(application: Application) -> Any:
    application.read("POST", "/signup", {})
    application.sign_up()
    sign_in_by_phone(application)
    with_everything(application)
    users = application.admin("GET", "users?page=&per_page=")
    assert len(users["users"]) == 4
    return users


def generated_link(kind: str, **members: str) -> Callable[[Application], Any]:
    def generate(application: Application) -> Any:
        body = {"type": kind, "email": "dave@example.com"} | members
        if kind not in ("signup", "invite"):
            body["email"] = application.person().email
        return application.admin("POST", "generate_link", body)

    return generate


def client_of_applications(method: str) -> Callable[[Application], Any]:
    """Create a client with all grants as an administrator of ours does, and answer as the method says."""

    def respond(application: Application) -> Any:
        body = {"client_name": "Notes", "redirect_uris": ["https://notes.example/"]}
        grant_types = ["authorization_code", "refresh_token", "client_credentials"]
        plain = application.app.test_client().post(
            "/admin/oauth/clients",
            json=body | {"grant_types": grant_types, "scopes": ["notes"]},
            headers=application.service_role,
        )
        assert plain.status_code == 201, plain.text
        path = f"oauth/clients/{plain.json['client_id']}"
        if method == "list":
            return application.admin("GET", "oauth/clients?page=&per_page=")
        if method == "renew":
            return application.admin("POST", f"{path}/regenerate_secret")
        return application.admin(method, path, {"client_name": "Notes 2"} if method == "PUT" else None)

    return respond


def create_client(application: Application) -> Any:
    body = {"client_name": "Notes", "redirect_uris": ["https://notes.example/"]}
    response = application.send("POST", "/admin/oauth/clients", body, **application.service_role)
    assert response.status_code == 201, response.text
    return response.json


def connect_customer(application: Application) -> Any:
    body = application.customers.acme.body()
    response = application.send("POST", "/admin/custom-providers", body, **application.service_role)
    assert response.status_code == 201, response.text
    return response.json


def sign_in_with_the_company(application: Application) -> Any:
    connect_customer(application)
    body = {"domain": "acme.example", "redirect_to": "https://app.example.com/"} | WITH_CHALLENGE
    return application.read("POST", "/sso", body | {"skip_http_redirect": True})


def user_path(application: Application) -> str:
    return f"users/{with_everything(application).user['id']}"


def remove_factor(application: Application) -> Any:
    session = application.with_app()
    factor_id = session.user["factors"][0]["id"]
    return application.read("DELETE", f"/factors/{factor_id}", None, session)


# What the clients ask for: the model that decodes the answer, and the requests.
ANSWERS: dict[str, tuple[str, Callable[[Application], Any]]] = {
    "sign-up": ("session or user", Application.sign_up),
    "anonymous sign-in": ("session", lambda a: a.read("POST", "/signup", {"data": {}})),
    "password": ("session", lambda a: sign_in(a, email=a.person().email)),
    "password of a phone": (
        "session",
        lambda a: (a.person(phone=DIGITS, phone_confirm=True), sign_in(a, phone=DIGITS))[1],
    ),
    "refresh": (
        "session",
        lambda a: a.read(
            "POST", "/token?grant_type=refresh_token", {"refresh_token": a.session().refresh_token}
        ),
    ),
    "code of a link": ("session", by_code_of_a_link),
    "code of a sign-up": ("session or pending change", confirm_sign_up),
    "code of a phone": ("session or pending change", sign_in_by_phone),
    "change by a link": ("session or pending change", change_by_a_link),
    "code by SMS": ("message id", lambda a: a.read("POST", "/otp", {"phone": DIGITS, "create_user": True})),
    "user": ("user", lambda a: a.read("GET", "/user", None, with_everything(a))),
    "change": ("user", lambda a: a.read("PUT", "/user", {"data": {"name": "Alice"}}, a.session())),
    "link to a provider": (
        "url",
        lambda a: a.read(
            "GET", "/user/identities/authorize?provider=github&skip_http_redirect=true", None, a.session()
        ),
    ),
    "company": ("url", sign_in_with_the_company),
    "app": ("enrolled factor", lambda a: a.read("POST", "/factors", {"factor_type": "totp"}, a.session())),
    "security key": (
        "enrolled factor",
        lambda a: a.read(
            "POST", "/factors", {"factor_type": "webauthn", "friendly_name": "Key"}, a.session()
        ),
    ),
    "challenge of an app": (
        "challenge",
        lambda a: (s := a.with_app()) and challenge(a, s, s.user["factors"][0]["id"]),
    ),
    "challenge of a security key": (
        "challenge",
        lambda a: (
            (s := a.session())
            and challenge(
                a, s, enrol_key(s), webauthn={"rp_id": "localhost", "rp_origins": ["http://localhost:8000"]}
            )
        ),
    ),
    "verified app": ("session", verify_app),
    "verified security key": ("session", verify_key),
    "removed factor": ("removed factor", remove_factor),
    "passkey options": (
        "passkey options",
        lambda a: a.read("POST", "/passkeys/registration/options", None, a.session()),
    ),
    "passkey options of a sign-in": (
        "passkey options",
        lambda a: a.read("POST", "/passkeys/authentication/options"),
    ),
    "passkey": ("passkey", lambda a: register_a_passkey(a, a.session())),
    "passkeys": ("passkeys", passkeys),
    "renamed passkey": ("passkey", rename_a_passkey),
    "sign-in by passkey": ("session", sign_in_by_passkey),
    "authorization": ("authorization", authorization),
    "authorization for an application with a page and a logo": (
        "authorization",
        lambda a: authorization(a, uri="https://notes.example/", logo_uri="https://notes.example/logo.png"),
    ),
    "authorization by a user without email": ("authorization", authorization_of_a_user_without_email),
    "authorization that was allowed": ("authorization", allowed_authorization),
    "approval": ("consent", consent("approve")),
    "denial": ("consent", consent("deny")),
    "grants": ("grants", grants),
    "users": ("users", users_of_all_kinds),
    "user of an administrator": ("user", lambda a: a.admin("GET", user_path(a))),
    "created user": ("user", lambda a: a.admin("POST", "users", NEW | {"email_confirm": True})),
    "created user without email": ("user", lambda a: a.admin("POST", "users", {"phone": DIGITS})),
    "changed user": ("user", lambda a: a.admin("PUT", user_path(a), {"ban_duration": "24h"})),
    "invited user": ("user", lambda a: a.admin("POST", "invite", {"email": NEW["email"], "data": None})),
    "invited user at the other path": (
        "user",
        lambda a: a.read("POST", "/invite", {"email": NEW["email"]}, **a.service_role),
    ),
    "factors": (
        "factors",
        lambda a: a.admin("GET", f"{user_path(a)}/factors"),
    ),
    "link of a sign-up": ("link", generated_link("signup", password=PASSWORD)),
    "link of an invitation": ("link", generated_link("invite")),
    "magic link": ("link", generated_link("magiclink")),
    "link of a recovery": ("link", generated_link("recovery", redirect_to="https://app.example.com/reset")),
    "link of a change": ("link", generated_link("email_change_new", new_email="new@example.com")),
    "client": ("client", client_of_applications("GET")),
    "created client": ("client", create_client),
    "changed client": ("client", client_of_applications("PUT")),
    "client with a new secret": ("client", client_of_applications("renew")),
    "clients": ("clients", client_of_applications("list")),
    "customer's provider": ("provider", connect_customer),
    "customers' providers": (
        "providers",
        lambda a: (connect_customer(a), a.admin("GET", "custom-providers"))[1],
    ),
    "keys": ("keys", lambda a: a.read("GET", "/.well-known/jwks.json")),
    "claims": ("claims", lambda a: a.with_app().claims),
}


@cases("name", list(ANSWERS))
def test_each_client_decodes_each_answer(application, name):
    model, request = ANSWERS[name]
    application.database.empty()
    body = request(application)
    readers = {client: models[model] for client, models in MODELS.items() if model in models}
    assert readers
    for client, read in readers.items():
        try:
            read(body)
        except AssertionError as error:
            pytest.fail(f"{client} does not decode this: {error}")


@cases("body", [None, {}])
def test_what_has_no_answer_succeeds_with_and_without_a_body(application, body):
    """The client for Dart sends an empty object with each request but GET, that for Swift nothing."""
    application.database.empty()
    person = application.person(phone=DIGITS, phone_confirm=True)
    _app, session = set_up(person.open_session())
    passkey = register_a_passkey(application, session)
    client_id, admin = application.client_id(), application.service_role
    allow(application.database, person.id, client_id)
    identities = {each["provider"]: each["identity_id"] for each in session.get("/user").json["identities"]}
    statuses = {
        "grant": application.send("DELETE", f"/user/oauth/grants?client_id={client_id}", body, session),
        "identity": application.send("DELETE", f"/user/identities/{identities['phone']}", body, session),
        "passkey": application.send("DELETE", f"/passkeys/{passkey['id']}", body, session),
        "code": application.send("GET", "/reauthenticate", None, session),
        "others": application.send("POST", "/logout?scope=others", body, session),
        "client": application.send("DELETE", f"/admin/oauth/clients/{client_id}", body, **admin),
        "sign-out": application.send("POST", "/logout?scope=global", body, session),
        "user": application.send(
            "DELETE",
            f"/admin/users/{person.id}",
            {"should_soft_delete": False} if body == {} else None,
            **admin,
        ),
    }
    assert {
        name: response.status_code for name, response in statuses.items() if response.status_code > 204
    } == {}
    assert application.database.count("users") == 0


@cases("path", ["users", "oauth/clients"])
def test_clients_read_the_pages_of_lists_from_their_links(application, path):
    """supabase-swift splits the header at each comma and sign of equality, and takes what stands first for the page."""
    application.database.empty()
    for number in range(5):
        application.client_id(name=f"Notes {number}")
        register(application.app.test_client(), application.service_role, f"{number},x=1@example.com")
    for parameters, pages in (
        ("page=2&per_page=2", {"first": 1, "prev": 1, "next": 3, "last": 3}),
        ("page=&per_page=", {"first": 1, "last": 1}),
        ("filter=a,b%3Bc%3Dd&page=1&per_page=2", {"first": 1, "last": 1} if path == "users" else None),
    ):
        response = application.send("GET", f"/admin/{path}?{parameters}", **application.service_role)
        assert response.status_code == 200, response.text
        for read in (swift_pages, dart_pages):
            assert pages is None or read(response.headers["Link"]) == pages
    empty = application.send("GET", "/admin/users?filter=nobody", **application.service_role)
    assert swift_pages(empty.headers["Link"]) == {"first": 1, "last": 1}
