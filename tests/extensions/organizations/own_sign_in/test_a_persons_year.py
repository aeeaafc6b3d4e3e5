"""A person's year: hired by Acme, whose provider is off for a day; removed; hired again, by Globex, whose provider
is at the same issuer, or by Acme; until the organization ends and the operator deletes the providers. A table after
each step says what the person still has. Bob has an account with a password, which he moves to the provider; Carol's
is made by it. All acts go through HTTP, and only time is moved in rows.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from auth.delivery import janitor
from tests.support import devices
from tests.support.api_keys import make_key, use
from tests.support.links import single
from tests.support.oauth import ALLOW_LIST, Service
from tests.support.openid import Client
from tests.support.openid_flow import Application, make_application
from tests.support.own_providers import DOMAIN, SignIn
from tests.support.pages import Visitor
from tests.support.users import PASSWORD, Session, register, session_of, sign_in

Table = dict[str, Any]
BOB, CAROL = "bob@example.com", "carol@example.com"
OTHER_DOMAIN = "globex.example"
# What a step makes a month older.
AGED = {
    "users": ["created_at"],
    "identities": ["created_at", "last_sign_in_at"],
    "sessions": ["created_at", "reauthenticated_at"],
    "api_keys": ["created_at"],
    "oauth_grants": ["granted_at"],
    "memberships": ["created_at"],
    "outbox": ["created_at", "next_attempt_at"],
}
ASKED_FOR = ("api_key_added", "application_added", "magiclink", "email_change")
LIVES = {"session": 200, "key": 200, "application": 200, "userinfo": 200, "device": 200}
# After a change of the address: of the session that changed it, and of others.
KEPT_OF_OTHER = {"session": 400, "key": 200, "application": 400, "userinfo": 401, "device": 400}
KEPT_OF_OWN = KEPT_OF_OTHER | {"session": 200}
ENDED = {"session": 400, "key": 401, "application": 400, "userinfo": 401, "device": 400}


def in_a_word(statuses: dict[str, int]) -> str | dict[str, int]:
    return "lives" if statuses == LIVES else "ended" if statuses == ENDED else statuses


class Opened:
    """What a session has opened: an API key, and in a browser an application and a device."""

    def __init__(self, session: Session, visitor: Visitor, wiki: Application, television: Client) -> None:
        self.session, self._wiki, self._television = session, wiki, television
        self._key = make_key(session)[1]
        self._tokens = wiki.tokens(visitor, scope="openid offline_access")
        device = devices.begin(wiki.http, television, scope="openid offline_access")
        device.decide(visitor)
        self._of_device = device.poll().json

    def statuses(self) -> dict[str, int]:
        """Use all of it, and return the statuses."""
        refreshed, application = self.session.refresh(), self._wiki.refresh(self._tokens["refresh_token"])
        device = self._television.refresh(self._wiki.http, self._of_device["refresh_token"])
        if refreshed.status_code == 200:
            self.session = session_of(self.session.client, refreshed)
        self._tokens = application.json if application.status_code == 200 else self._tokens
        self._of_device = device.json if device.status_code == 200 else self._of_device
        return {
            "session": refreshed.status_code,
            "key": use(self.session.client, self._key).status_code,
            "application": application.status_code,
            "userinfo": self._wiki.userinfo(self._tokens["access_token"]).status_code,
            "device": device.status_code,
        }


class Year:
    """A person, who has the same subject at the issuer throughout, and what the person has."""

    def __init__(
        self, service: Service, customers: Any, database: Any, outbox: Any, wiki: Application
    ) -> None:
        self.service, self.client, self.issuer = service, service.client, customers.acme
        self.database, self._outbox, self.wiki = database, outbox, wiki
        self._television = devices.make_television(database)
        self.email, self.subject, self.password = "", "", True
        self._addresses: set[str] = set()
        self.providers: dict[str, str] = {}
        self.opened: dict[str, Opened] = {}
        self._told = 0
        self._for_acme: Any = None

    def be(self, email: str, subject: str, *, password: bool) -> None:
        self.email, self.subject, self.password, self._addresses = email, subject, password, {email}
        self.issuer.be(subject, email)

    @property
    def own(self) -> Session:
        return self.opened["own"].session

    def sign_in(self) -> Session:
        """Sign in by password, else by a mailed code."""
        if self.password:
            return session_of(self.client, sign_in(self.client, self.email))
        assert self.client.post("/magiclink", json={"email": self.email}).status_code == 200
        body = {"type": "magiclink", "email": self.email, "token": self._outbox.last(self.email).code}
        return session_of(self.client, self.client.post("/verify", json=body))

    def browse(self) -> Visitor:
        """Return a browser in which the person has signed in by password, else by a mailed code."""
        visitor = Visitor(self.service.app)
        if self.password:
            visitor.visit("/sign-in?way=password")
            visitor.submit(email=self.email, password=PASSWORD)
        else:
            visitor.visit("/sign-in?way=password")
            visitor.press("sign-in/code", email=self.email)
            visitor.press("sign-in/verify", code=self._outbox.last(self.email).code)
        assert visitor.session_cookie, visitor.page
        return visitor

    def browse_by_provider(self) -> Visitor:
        visitor = Visitor(self.service.app)
        visitor.visit("/sign-in")
        visitor.submit(email=self.email)
        assert visitor.session_cookie, visitor.page
        return visitor

    def open(self, name: str, session: Session, visitor: Visitor) -> None:
        self.opened[name] = Opened(session, visitor, self.wiki, self._television)

    def open_by_provider(self, name: str, company: str) -> None:
        """Sign in with a company's provider, by the API and in a browser, and open things."""
        session = self.service.signed_in(f"custom:{self.providers[company]}")
        self.open(name, session, self.browse_by_provider())

    def use_acmes_application(self, visitor: Visitor) -> None:
        """Let the application in for Acme."""
        self._for_acme = self.wiki.tokens(visitor, scope="openid offline_access organization:acme")

    def change_address(self, email: str) -> None:
        """Change the address, here and at the issuer."""
        assert self.own.put("/user", json={"email": email}).status_code == 200
        body = {"type": "email_change", "email": email, "token": self._outbox.last(email).code}
        session = session_of(self.client, self.client.post("/verify", json=body))
        self.email, self.opened["own"].session = email, session
        self._addresses.add(email)
        self.issuer.be(self.subject, email)

    def month_passes(self) -> None:
        for table, columns in AGED.items():
            older = ", ".join(f"{column} = {column} - interval '1 month'" for column in columns)
            self.database.run(f"UPDATE {table} SET {older}")

    def table(self, *companies: str) -> Table:
        """Return what the person has; the sign-in with each company's provider comes last, as it may change
        the memberships.
        """
        opened = {name: in_a_word(each.statuses()) for name, each in self.opened.items()}
        for_acme = self.wiki.refresh(self._for_acme["refresh_token"])
        self._for_acme = for_acme.json if for_acme.status_code == 200 else self._for_acme
        names = {f"sso:{id}": name for name, id in self.providers.items()}
        identities = self.own.get("/user").json["identities"]
        return {
            **opened,
            "for Acme": for_acme.status_code,
            "member of": {each["slug"]: each["role"] for each in self.own.get("/organizations").json["data"]},
            "identities": [names.get(each["provider"], each["provider"]) for each in identities],
            "notices": self.notices(),
            "signs in": {company: self.try_provider(company) for company in companies},
        }

    def notices(self) -> list[str]:
        """Return what the person was told since the last table, but for what the person has opened or asked for."""
        sent = [each for each in self._outbox.sent() if each.to in self._addresses]
        new, self._told = sent[self._told :], len(sent)
        return [each.kind for each in new if each.kind not in ASKED_FOR]

    def try_provider(self, company: str) -> str:
        """Sign in with a provider, and return "yes" or the error code."""
        self.issuer.be(self.subject, self.email)
        name = f"custom:{self.providers[company]}"
        page = self.service.sign_in(name)
        if page.status >= 400:
            # Nothing is sent to a provider that is off or deleted.
            return self.client.get(f"/authorize?provider={name}").json["error_code"]
        answer = single(urlsplit(page.url).fragment)
        return "yes" if "access_token" in answer else answer["error_code"]


def press(visitor: Visitor, slug: str, provider: str, act: str) -> None:
    path = f"account/organizations/{slug}/sign-in/providers/{provider}/{act}"
    path = "account/company" if act == "move" else path
    visitor.visit(f"/{path}")
    visitor.press(path)


@pytest.fixture
def service(make_app: Any) -> Service:
    settings = {"AUTH_ORGANIZATIONS": "users", "AUTH_SSO": "true", "AUTH_API_KEYS": "true"}
    return Service(make_app(**settings, **ALLOW_LIST))


@pytest.fixture
def year(on, provider, service, customers, database, outbox) -> Year:
    wiki = make_application(service.client, database, name="Wiki")
    year = Year(service, customers, database, outbox, wiki)
    year.providers["acme"] = provider
    return year


@pytest.fixture
def invite(year) -> Callable[[SignIn], None]:
    """Have an owner invite the person, who joins."""

    def invite(organization: SignIn) -> None:
        body = {"email": year.email, "role": "member"}
        response = organization.owner.post(f"{organization.path}/invitations", json=body)
        assert response.status_code == 201, response.text
        joined = year.own.post(f"/user/invitations/{response.json['id']}")
        assert joined.status_code == 200, joined.text

    return invite


@pytest.fixture
def turn(sign_in, provider, press, alice, customers, year) -> Callable[[bool], None]:
    """Have Acme's owner turn its provider off, or try it and turn it on."""

    def turn(on: bool) -> None:
        if not on:
            assert sign_in.change(provider, enabled=False).json["enabled"] is False
            return
        year.issuer.be("1", alice.email)
        press(alice, "on", press(alice))
        year.issuer.be(year.subject, year.email)
        assert sign_in.owner.get(f"{sign_in.path}/providers/{provider}").json["enabled"] is True

    return turn


@pytest.fixture
def globex(year, names, service, service_role) -> Callable[[str], SignIn]:
    """Have Gina found Globex, and connect its provider, at Acme's issuer, for a domain."""

    def globex(domain: str) -> SignIn:
        gina = register(service.client, service_role, f"gina@{domain}")
        owner = gina.sign_in()
        response = owner.post("/organizations", json={"name": "Globex", "slug": "globex"})
        organization = SignIn(owner, f"/organizations/{response.json['id']}", names)
        assert organization.prove(domain).status_code == 200
        provider = organization.connect(year.issuer, domains=[domain], member_role="member").json["id"]
        year.issuer.be("2", gina.email)
        visitor = Visitor(service.app).with_session_of(gina)
        press(visitor, "globex", provider, "test")
        press(visitor, "globex", provider, "on")
        year.issuer.be(year.subject, year.email)
        year.providers["globex"] = provider
        return organization

    return globex


@pytest.fixture
def delete_providers(year, service_role) -> Callable[[], None]:
    """Have the operator delete the providers."""

    def delete_providers() -> None:
        for id in year.providers.values():
            response = year.client.delete(f"/admin/custom-providers/{id}", headers=service_role)
            assert response.status_code == 204, response.text

    return delete_providers


@pytest.fixture
def clean_up(service) -> Callable[[], None]:
    return lambda: janitor.keep_house(service.parts.settings, service.parts.db, service.parts.sealer)


@pytest.mark.parametrize("then", ["Globex, with Acme's domain", "Globex, with another domain", "Acme again"])
def test_year_of_an_account_that_moved(
    year, invite, turn, globex, sign_in, provider, bob, then, delete_providers, clean_up
):
    year.be(BOB, "9", password=True)
    year.open("own", year.sign_in(), year.browse())
    founded = {"name": "Initech", "slug": "initech"}
    assert year.own.post("/organizations", json=founded).status_code == 201
    year.month_passes()

    # 1. Hired: he joins by invitation, and moves by the page's button.
    year.opened["own"].session = year.sign_in()
    invite(sign_in)
    press(year.browse(), "acme", provider, "move")
    year.open_by_provider("acme", "acme")
    year.use_acmes_application(year.browse())
    assert year.table("acme") == {
        "own": "lives",
        "acme": "lives",
        "for Acme": 200,
        "member of": {"acme": "member", "initech": "owner"},
        "identities": ["email", "acme"],
        "notices": ["organization_invitation", "identity_linked"],
        "signs in": {"acme": "yes"},
    }

    # 2. Off, and on again: what it opened before does not come back.
    year.month_passes()
    turn(False)
    off: Table = {
        "own": "lives",
        "acme": "ended",
        "for Acme": 200,
        "member of": {"acme": "member", "initech": "owner"},
        "identities": ["email", "acme"],
        "notices": [],
        "signs in": {"acme": "sso_provider_disabled"},
    }
    assert year.table("acme") == off
    turn(True)
    assert year.table("acme") == off | {"signs in": {"acme": "yes"}}
    year.open_by_provider("acme again", "acme")

    # 3. Removed: the identity goes, with what the provider opened.
    year.month_passes()
    assert sign_in.owner.delete(f"{sign_in.path}/members/{bob.id}").status_code == 204
    removed: Table = {
        "own": "lives",
        "acme": "ended",
        "acme again": "ended",
        "for Acme": 400,
        "member of": {"initech": "owner"},
        "identities": ["email"],
        "notices": ["identity_unlinked"],
        "signs in": {"acme": "user_sso_conflict"},
    }
    assert year.table("acme") == removed

    # 4. Hired again: the identity at the issuer is another identity here, which he moves to.
    year.month_passes()
    hired = removed | {"notices": ["organization_invitation", "identity_linked"]}
    if then == "Acme again":
        company, employer, domain = "acme", sign_in, DOMAIN
        hired |= {"signs in": {"acme": "yes"}}
    else:
        company, domain = "globex", DOMAIN if "Acme" in then else OTHER_DOMAIN
        if domain == DOMAIN:
            body = {"current_password": PASSWORD}
            assert sign_in.owner.delete(f"{sign_in.path}/domains/{DOMAIN}", json=body).status_code == 204
        employer = globex(domain)
        hired |= {"signs in": {"acme": "bad_oauth_callback", "globex": "yes"}}
    year.opened["own"].session = year.sign_in()
    if domain == OTHER_DOMAIN:
        # The new address ends the other sessions, with what they opened.
        year.change_address("bob@globex.example")
        hired |= {"own": KEPT_OF_OWN, "notices": ["email_changed", *hired["notices"]]}
    invite(employer)
    before = {name: year.try_provider(name) for name in hired["signs in"]}
    assert before == hired["signs in"] | {company: "user_sso_conflict"}
    press(year.browse(), company, year.providers[company], "move")
    year.open_by_provider("hired again", company)
    hired |= {
        "hired again": "lives",
        "member of": {company: "member", "initech": "owner"},
        "identities": ["email", company],
    }
    assert year.table(*hired["signs in"]) == hired

    # 5. The organization ends: so does what its provider opened.
    year.month_passes()
    assert employer.owner.delete(employer.path, json={"current_password": PASSWORD}).status_code == 204
    ended = hired | {
        "hired again": "ended",
        "member of": {"initech": "owner"},
        "notices": [],
        "signs in": hired["signs in"] | {company: "sso_provider_disabled"},
    }
    assert year.table(*ended["signs in"]) == ended

    # 6. The operator deletes the providers.
    year.month_passes()
    delete_providers()
    gone = dict.fromkeys(hired["signs in"], "oauth_provider_not_supported")
    deleted = ended | {"identities": ["email"], "signs in": gone}
    assert year.table(*gone) == deleted

    # 7. The clean-up removes nothing else, and the password and a mailed code open the account.
    year.month_passes()
    clean_up()
    assert year.table(*gone) == deleted
    assert year.sign_in().get("/user").json["id"] == bob.id
    year.password = False
    assert year.sign_in().get("/user").json["id"] == bob.id


@pytest.mark.parametrize("then", ["Globex, with Acme's domain", "Globex, with another domain", "Acme again"])
def test_year_of_an_employee_whom_the_provider_made(
    year, invite, turn, globex, sign_in, then, delete_providers, clean_up
):
    year.be(CAROL, "10", password=False)

    # 1. Hired: the provider makes the account, and the member. She also signs in by mail.
    year.open_by_provider("acme", "acme")
    year.open("own", year.sign_in(), browser := year.browse())
    founded = {"name": "Hooli", "slug": "hooli"}
    assert year.own.post("/organizations", json=founded).status_code == 201
    carol_id = year.own.get("/user").json["id"]
    year.use_acmes_application(browser)
    assert year.table("acme") == {
        "own": "lives",
        "acme": "lives",
        "for Acme": 200,
        "member of": {"acme": "member", "hooli": "owner"},
        "identities": ["acme", "email"],
        "notices": [],
        "signs in": {"acme": "yes"},
    }

    # 2. Off, and on again.
    year.month_passes()
    turn(False)
    off: Table = {
        "own": "lives",
        "acme": "ended",
        "for Acme": 200,
        "member of": {"acme": "member", "hooli": "owner"},
        "identities": ["acme", "email"],
        "notices": [],
        "signs in": {"acme": "sso_provider_disabled"},
    }
    assert year.table("acme") == off
    turn(True)
    assert year.table("acme") == off | {"signs in": {"acme": "yes"}}
    year.open_by_provider("acme again", "acme")

    # 3. Removed: the provider, which made the account, still opens it, and makes her a member again.
    year.month_passes()
    remove = f"{sign_in.path}/members/{carol_id}"
    assert sign_in.owner.delete(remove).status_code == 204
    removed: Table = off | {
        "acme again": "lives",
        "for Acme": 400,
        "member of": {"hooli": "owner"},
        "notices": ["membership_removed"],
        "signs in": {"acme": "yes"},
    }
    assert year.table("acme") == removed
    assert year.own.get("/organizations").json["data"][0]["slug"] == "acme"
    assert sign_in.owner.delete(remove).status_code == 204

    # 4. Hired again.
    year.month_passes()
    hired = removed | {"notices": ["membership_removed", "organization_invitation", "identity_linked"]}
    if then == "Acme again":
        company, employer = "acme", sign_in
        hired |= {"notices": ["membership_removed"], "identities": ["acme", "email"]}
    else:
        company, domain = "globex", DOMAIN if "Acme" in then else OTHER_DOMAIN
        hired |= {"identities": ["acme", "email", "globex"]}
        if domain == DOMAIN:
            body = {"current_password": PASSWORD}
            assert sign_in.owner.delete(f"{sign_in.path}/domains/{DOMAIN}", json=body).status_code == 204
        employer = globex(domain)
        hired |= {"signs in": {"acme": "bad_oauth_callback", "globex": "yes"}}
        year.opened["own"].session = year.sign_in()
        if domain == OTHER_DOMAIN:
            # The new address ends the other sessions, with what they opened.
            year.change_address("carol@globex.example")
            told = ["membership_removed", "email_changed", "organization_invitation", "identity_linked"]
            hired |= {"own": KEPT_OF_OWN, "acme again": KEPT_OF_OTHER, "notices": told}
        invite(employer)
        before = {name: year.try_provider(name) for name in hired["signs in"]}
        assert before == hired["signs in"] | {"globex": "user_sso_conflict"}
        press(year.browse(), "globex", year.providers["globex"], "move")
    year.open_by_provider("hired again", company)
    hired |= {"hired again": "lives", "member of": {company: "member", "hooli": "owner"}}
    assert year.table(*hired["signs in"]) == hired

    # 5. The organization ends: so does what its provider opened.
    year.month_passes()
    assert employer.owner.delete(employer.path, json={"current_password": PASSWORD}).status_code == 204
    ended = hired | {
        "hired again": "ended",
        "member of": {"hooli": "owner"},
        "notices": [],
        "signs in": hired["signs in"] | {company: "sso_provider_disabled"},
    }
    if company == "acme":
        ended |= {"acme again": "ended"}
    assert year.table(*ended["signs in"]) == ended

    # 6. The operator deletes the providers: also what Acme's had opened ends.
    year.month_passes()
    delete_providers()
    gone = dict.fromkeys(hired["signs in"], "oauth_provider_not_supported")
    deleted = ended | {"acme again": "ended", "identities": ["email"], "signs in": gone}
    assert year.table(*gone) == deleted

    # 7. The clean-up removes nothing else, and a mailed code opens the account.
    year.month_passes()
    clean_up()
    assert year.table(*gone) == deleted
    assert year.sign_in().get("/user").json["id"] == carol_id
