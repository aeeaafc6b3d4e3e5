"""Who may change what: the table of docs/security.md, compared with the rule that decides, and with
each request of the API and the pages that asks the rule.
"""

import functools
import itertools
import json
import re
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest

from auth.core.tokens import one_time
from auth.flows import facts
from auth.html.forms import FIELD, SESSION, token_of
from auth.rules import proofs
from auth.web.context import EXTENSION
from auth.web.errors import found
from sql import queries
from tests.support.apps import new_app
from tests.support.contract import OPENAPI
from tests.support.links import PHONE, SITE
from tests.support.openid import allow, authorize_path, insert_public_client
from tests.support.pages import Visitor
from tests.support.user_agent import Page
from tests.support.users import Session, issue_token, register

ANSWERS = ("allowed", "insufficient_aal", "reauthentication_needed")
SESSIONS = ("password", "link or provider", "application", "recovery")
METHODS = {"password": "password", "link or provider": "otp"}
# How long ago the session was proved, and how long ago by a factor.
PROOFS = {
    "factor": ("1 minute", "1 minute"),
    "fresh": ("1 minute", "1 hour"),
    "stale": ("1 hour", "1 hour"),
    "none": ("2 days", "2 days"),
}
RECENT, OLD, NEVER = "3 days", "8 days", None
KINDS = ("email", "phone", "identity", "factor", "passkey")
# The words of the table: verb, kind, and the age of the credential.
CHANGES: dict[str, list[tuple[str, str, str | None]]] = {
    "change metadata": [("change", "metadata", NEVER)],
    "change password": [("change", "password", NEVER)],
    "add address": [("add", "email", NEVER), ("add", "phone", NEVER)],
    "add identity": [("add", "identity", NEVER)],
    "add factor": [("add", "factor", NEVER)],
    "add passkey": [("add", "passkey", NEVER)],
    "add or remove recovery codes": [("add", "recovery_codes", NEVER), ("remove", "recovery_codes", NEVER)],
    "remove account": [("remove", "account", NEVER)],
    "add API key": [("add", "api_key", NEVER)],
    "change organization": [("change", "organization", NEVER)],
    "add grant": [("add", "grant", NEVER)],
    "add device": [("add", "device", NEVER)],
    "remove recent grant": [("remove", "grant", RECENT), ("remove", "api_key", RECENT)],
    "remove old grant": [("remove", "grant", OLD), ("remove", "api_key", OLD)],
    "remove unverified factor": [("remove", "factor", NEVER)],
    "remove recent credential": [("remove", kind, RECENT) for kind in KINDS],
    "remove old credential": [("remove", kind, NEVER if kind == "email" else OLD) for kind in KINDS],
}


class Situation(NamedTuple):
    session: str
    level: str
    proof: str
    factors: str

    def __str__(self) -> str:
        return " ".join(self)


SITUATIONS = [
    Situation(*parts)
    for parts in itertools.product(SESSIONS, ("aal1", "aal2"), PROOFS, ("none", "recent", "old"))
    if parts[3] != "none" or (parts[1] == "aal1" and parts[2] != "factor")
]


def rows() -> list[list[set[str]]]:
    """Return the rows of the table: the sets of sessions, levels, proofs, factors, acts and answers."""
    page = (OPENAPI.parent / "docs" / "security.md").read_text()
    definitions = re.findall(r"An? \*\*(addition|removal)\*\*: ([^.]+)\.", page)
    meanings = {name: " ".join(changes.split()) for name, changes in definitions}
    text = page.partition("| Session | Level | Proof |")[2].partition("\n\n")[0]
    table = re.sub("addition|removal", lambda name: meanings[name[0]], text).splitlines()[2:]
    return [[{word.strip() for word in cell.split(",")} for cell in line.split("|")[1:7]] for line in table]


ROWS = rows()


def rows_of(situation: Situation) -> list[list[set[str]]]:
    matches = [[{word, "any"} & cell for word, cell in zip(situation, row, strict=False)] for row in ROWS]
    return [row for row, match in zip(ROWS, matches, strict=True) if all(match)]


def answer_of_table(situation: Situation, change: str) -> str:
    """Return what the one row of the table says about a change."""
    (row,) = (row for row in rows_of(situation) if change in row[4])
    (answer,) = row[5]
    assert answer in ANSWERS
    return answer


class Subject:
    """A user of a month ago, with old and recent credentials, and the session of a situation."""

    numbers = itertools.count()

    def __init__(
        self, client: Any, service_role: dict[str, str], database: Any, situation: Situation
    ) -> None:
        self.client, self.database, self.situation = client, database, situation
        number = next(self.numbers)
        self.email, self.phone = f"user{number}@example.com", f"+4917{number:08}"
        self.id = register(client, service_role, self.email).id
        self.ids = {name: str(uuid.uuid4()) for name in ("google", "github", "phone", "session", "acme")}
        times = "created_at = now() - %(age)s::interval, updated_at = now() - %(age)s::interval"
        self.run(f"UPDATE users SET {times} WHERE id = %(user)s", age="30 days")
        self.run(f"UPDATE identities SET {times} WHERE user_id = %(user)s", age="30 days")
        self.add_identity("google", "30 days", self.email)
        self.add_identity("github", RECENT, self.email)
        self.add_identity("phone", RECENT, self.id, phone=self.phone)
        phone = "UPDATE users SET phone = %(phone)s, phone_proved = true WHERE id = %(user)s"
        self.run(phone, phone=self.phone)
        if situation.factors != "none":
            self.add_factor("app", RECENT)
            self.add_factor("passkey", RECENT)
        if situation.factors == "old":
            self.add_factor("old app", OLD)
        for name, age in (("grafana", RECENT), ("gitea", OLD)):
            self.ids[name] = insert_public_client(database)
            allow(database, self.id, self.ids[name], age=age)
        grant = "SELECT id::text FROM oauth_grants WHERE client_id = %(client)s"
        self.ids["grant"] = database.value(grant, client=self.ids["grafana"])
        for name, age in (("key", RECENT), ("old key", OLD)):
            self.ids[name] = str(uuid.uuid4())
            self.run(
                "INSERT INTO api_keys (id, user_id, name, key_mac, scopes, created_at)"
                " VALUES (%(id)s, %(user)s, 'CI', '', '{}', now() - %(age)s::interval)",
                id=self.ids[name],
                age=age,
            )
        self.run(
            "WITH made AS (INSERT INTO organizations (id, slug, name) VALUES (%(id)s, 'team-' || %(id)s, 'Acme')"
            " RETURNING id) INSERT INTO memberships (user_id, organization_id, role, added_by)"
            " SELECT %(user)s, id, 'owner', 'founder' FROM made",
            id=self.ids["acme"],
        )
        self.open_session()

    def run(self, statement: str, **values: Any) -> None:
        self.database.run(statement, user=self.id, **values)

    def add_identity(self, provider: str, age: str, subject: str, **data: str) -> None:
        self.run(
            "INSERT INTO identities (id, user_id, provider, subject, identity_data, created_at, updated_at)"
            " VALUES (%(id)s, %(user)s, %(provider)s, %(subject)s, %(data)s, now() - %(age)s::interval,"
            " now() - %(age)s::interval)",
            id=self.ids[provider],
            provider=provider,
            subject=subject,
            data=json.dumps({"sub": subject} | data),
            age=age,
        )

    def add_factor(self, name: str, age: str) -> None:
        is_app, self.ids[name] = name != "passkey", str(uuid.uuid4())
        self.run(
            "INSERT INTO factors (id, user_id, factor_type, verified_at, created_at, secret, credential_id,"
            " public_key, sign_count, transports) VALUES (%(id)s, %(user)s, %(type)s, now() - %(age)s::interval,"
            " now(), %(secret)s, %(key)s::bytea, %(key)s::bytea, %(count)s, '{}')",
            id=self.ids[name],
            type="totp" if is_app else "passkey",
            age=age,
            secret=b"x" if is_app else None,
            key=None if is_app else self.id.encode(),
            count=None if is_app else 0,
        )

    def open_session(self) -> None:
        session, level, proof, _ = self.situation
        self.run(
            "INSERT INTO sessions (id, user_id, method, aal, created_at, reauthenticated_at, opened_by,"
            " factor_proved_at) VALUES (%(id)s, %(user)s, %(method)s, %(aal)s,"
            " now() - %(age)s::interval, now() - %(age)s::interval, %(opened_by)s,"
            " now() - %(factor_age)s::interval)",
            id=self.ids["session"],
            method=METHODS.get(session, "recovery"),
            aal=level,
            age=PROOFS[proof][0],
            factor_age=PROOFS[proof][1],
            opened_by=self.ids["session"] if session == "application" else None,
        )

    @functools.cached_property
    def parts(self) -> Any:
        return self.client.application.extensions[EXTENSION]

    @property
    def session(self) -> Session:
        user = {"id": self.id, "role": "authenticated", "email": self.email, "app_metadata": {}}
        claims: dict[str, Any] = {"phone": None, "user_metadata": {}, "is_anonymous": False}
        issued_at = self.database.value("SELECT extract(epoch FROM now())::bigint")
        arguments = user | claims, self.ids["session"], issued_at, self.situation.level
        return Session(self.client, issue_token(self.client.application, *arguments), "", user)

    @functools.cached_property
    def visitor(self) -> Visitor:
        """A browser with the session."""
        visitor, token = Visitor(self.client.application), one_time.new_token()
        hashed = one_time.hash_token(token)
        queries.insert_browser_session(self.parts.db, token_hash=hashed, session_id=self.ids["session"])
        visitor.plant(SESSION, token)
        return visitor

    def credentials(self) -> dict[str, Any]:
        return self.database.everything(
            "users", "identities", "factors", "recovery_codes", "oauth_grants", "api_keys"
        )


# The routes of the API by which a change is asked for.
ROUTES: set[tuple[str, str]] = set()


def by_body(method: str, path: str, body: dict[str, Any]) -> Any:
    def ask(subject: Subject) -> str:
        request = re.sub(r"<(.+?)>", lambda match: subject.ids[match[1]], json.dumps([path, body]))
        filled_path, filled_body = json.loads(request)
        response = getattr(subject.session, method)(filled_path, json=filled_body)
        if response.status_code in (200, 201, 204):
            return "allowed"
        assert response.status_code in (400, 403), response.text
        return response.json["error_code"]

    ROUTES.add((method, path.partition("?")[0]))
    return ask


def by_consent(subject: Subject) -> str:
    """Ask to allow an application that the user has not allowed yet."""
    client_id = insert_public_client(subject.database)
    location = subject.client.get(authorize_path(client_id)).location
    request = f"/oauth/authorizations/{location.partition('authorization_id=')[2]}"
    for response in (
        subject.session.get(request),
        subject.session.post(f"{request}/consent", json={"action": "approve"}),
    ):
        if response.status_code != 200:
            return response.json["error_code"]
    return "allowed"


def by_page(path: str, name: str | None = None, **others: str) -> Any:
    def ask(subject: Subject) -> str:
        visitor, url = subject.visitor, SITE + path
        visitor.be_at(url)
        fields = {FIELD: token_of(visitor.cookies[0].value), **others}
        fields |= {"id": subject.ids[name]} if name else {}
        return answer_of_page(visitor.post(url, fields, stop=lambda target: target != url))

    return ask


def by_link(path: str) -> Any:
    url = SITE + path
    return lambda subject: answer_of_page(subject.visitor.visit(url, stop=lambda target: target != url))


def answer_of_page(page: Page) -> str:
    """Return why a form or link leads elsewhere, before the page there leads on."""
    first = [*page.trail, ""][1]
    assert page.status in (0, 200), page.text
    assert "/sign-in" not in first
    if "/second-step" in first:
        return "insufficient_aal"
    return "reauthentication_needed" if "/confirm" in first else "allowed"


# Changes, the credential that must exist, and the request for the change.
REMOVE_RECENT, REMOVE_OLD = "remove recent credential", "remove old credential"
RECOVERY_CODES = "add or remove recovery codes"
REMOVE_RECENT_GRANT, REMOVE_OLD_GRANT = "remove recent grant", "remove old grant"
REMOVE = "/account/remove"
PATHS = [
    ("change metadata", None, by_body("put", "/user", {"data": {"a": 1}})),
    ("change password", None, by_body("put", "/user", {"password": "Another-Horse-1"})),
    ("remove account", None, by_body("delete", "/user", {})),
    ("add address", None, by_body("put", "/user", {"email": "new@example.com"})),
    ("add address", None, by_body("put", "/user", {"phone": PHONE})),
    ("add identity", None, by_body("get", "/user/identities/authorize?provider=github", {})),
    ("add factor", None, by_body("post", "/factors", {"factor_type": "totp"})),
    ("add passkey", None, by_body("post", "/passkeys/registration/options", {})),
    (RECOVERY_CODES, None, by_body("post", "/factors/recovery-codes", {})),
    (RECOVERY_CODES, "codes", by_body("post", "/factors/recovery-codes/regenerate", {})),
    (RECOVERY_CODES, "codes", by_body("delete", "/factors/recovery-codes", {})),
    (REMOVE_RECENT, "github", by_body("put", "/user", {"remove": ["<github>"]})),
    (REMOVE_RECENT, "app", by_body("put", "/user", {"remove": ["<app>"]})),
    (REMOVE_RECENT, "passkey", by_body("put", "/user", {"remove": ["<passkey>", "<app>"]})),
    (REMOVE_RECENT, "app", by_body("delete", "/factors/<app>", {})),
    (REMOVE_RECENT, "passkey", by_body("delete", "/passkeys/<passkey>", {})),
    (REMOVE_RECENT, "github", by_body("delete", "/user/identities/<github>", {})),
    (REMOVE_RECENT, None, by_body("delete", "/user/identities/<phone>", {})),
    (REMOVE_OLD, None, by_body("delete", "/user/identities/<google>", {})),
    (REMOVE_OLD, "old app", by_body("delete", "/factors/<old app>", {})),
    *((REMOVE_RECENT, name, by_page(REMOVE, name, kind="change")) for name in ("app", "passkey", "github")),
    (REMOVE_RECENT, "app", by_page(REMOVE, "app", kind="factor")),
    (REMOVE_RECENT, "passkey", by_page(REMOVE, "passkey", kind="passkey")),
    (REMOVE_RECENT, "github", by_page(REMOVE, "github", kind="identity")),
    (REMOVE_RECENT, None, by_page(REMOVE, kind="phone")),
    (REMOVE_OLD, "old app", by_page(REMOVE, "old app", kind="factor")),
    ("add API key", None, by_body("post", "/user/api_keys", {"name": "CI"})),
    ("change organization", None, by_body("delete", "/organizations/<acme>", {})),
    (REMOVE_RECENT_GRANT, None, by_body("put", "/user", {"remove": ["<key>"]})),
    (REMOVE_RECENT_GRANT, None, by_body("delete", "/user/api_keys/<key>", {})),
    (REMOVE_RECENT_GRANT, None, by_page(REMOVE, "key", kind="api_key")),
    (REMOVE_OLD_GRANT, None, by_body("delete", "/user/api_keys/<old key>", {})),
    (REMOVE_OLD_GRANT, None, by_page(REMOVE, "old key", kind="api_key")),
    ("add grant", None, by_consent),
    (REMOVE_RECENT_GRANT, None, by_body("put", "/user", {"remove": ["<grant>"]})),
    (REMOVE_RECENT_GRANT, None, by_body("delete", "/user/oauth/grants?client_id=<grafana>", {})),
    (REMOVE_RECENT_GRANT, None, by_page(REMOVE, "grant", kind="change")),
    (REMOVE_RECENT_GRANT, None, by_page(REMOVE, "grafana", kind="application")),
    (REMOVE_OLD_GRANT, None, by_body("delete", "/user/oauth/grants?client_id=<gitea>", {})),
    (REMOVE_OLD_GRANT, None, by_page(REMOVE, "gitea", kind="application")),
    ("add device", None, by_link("/device")),
    ("add factor", None, by_page("/account/two-step")),
    ("add passkey", None, by_link("/account/passkeys/new")),
    (RECOVERY_CODES, None, by_page("/account/recovery-codes")),
]


@pytest.fixture(scope="module")
def default_app(environment) -> Iterator[Any]:
    """An application with providers, whose identities count as ways to sign in."""
    clients = [f"AUTH_PROVIDER_{name}_CLIENT" for name in ("GITHUB", "GOOGLE")]
    ids = {"AUTH_API_KEYS": "true", "AUTH_ORGANIZATIONS": "users"} | {
        f"{client}_ID": "latchkey" for client in clients
    }
    app = new_app(environment | ids | {f"{client}_SECRET": "a secret" for client in clients})
    yield app
    app.extensions[EXTENSION].db.close()


@pytest.fixture
def subject(client, service_role, database):
    return lambda situation: Subject(client, service_role, database, situation)


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_rule_answers_as_the_table(subject, situation):
    user = subject(situation)
    ids = {"user_id": user.id, "session_id": user.ids["session"]}
    person = found(queries.select_person(user.parts.db, **ids), "user_not_found")
    session = found(facts.own_session_of(person), "session_not_found")
    situation_facts = person, session, situation.level, None, user.parts.policy
    answers = {
        (name, *change): proofs.refusal_of_change(rule_of(*change, person.now), *situation_facts) or "allowed"
        for name, changes in CHANGES.items()
        for change in changes
    }
    # At `aal2`, the proof that is missing is one by a factor.
    missing = {"reauthentication_needed": "mfa.reauthentication_needed"} if situation.level == "aal2" else {}
    expected = {change: answer_of_table(situation, change[0]) for change in answers}
    assert answers == {change: missing.get(error, error) for change, error in expected.items()}


def rule_of(verb: Any, kind: Any, age: str | None, now: datetime) -> proofs.Change:
    return proofs.Change(
        verb=verb, kind=kind, added_at=now - timedelta(days=int(age.split()[0])) if age else None
    )


# Without a sufficient proof, the sessions differ only in the recovery.
PATH_SITUATIONS = [
    each
    for each in SITUATIONS
    if each.proof == ("factor" if each.level == "aal2" else "fresh")
    or (each.proof in ("fresh", "stale") and each.session in ("password", "recovery"))
]


@pytest.mark.parametrize("situation", PATH_SITUATIONS, ids=str)
def test_each_path_answers_as_the_table(subject, database, situation):
    refused_user = subject(situation)
    before = refused_user.credentials()
    for change, credential, ask in PATHS:
        expected = answer_of_table(situation, change)
        if credential is None or credential in refused_user.ids:
            user = refused_user if expected != "allowed" else subject(situation)
            assert (change, credential, ask(user)) == (change, credential, expected)
            if user is not refused_user:
                database.run("DELETE FROM users WHERE id <> %(id)s", id=refused_user.id)
    assert database.count("users") == 1
    assert refused_user.credentials() == before


def test_every_row_of_the_table_is_about_something():
    assert [row for row in ROWS if not any(row in rows_of(situation) for situation in SITUATIONS)] == []
    assert set().union(*(row[4] for row in ROWS)) == set(CHANGES)


def test_token_from_before_the_second_step_of_a_recovery_removes_nothing(subject, database):
    """Additions of the recovery itself stay."""
    user = subject(Situation("recovery", "aal1", "fresh", "recent"))
    database.run("UPDATE sessions SET aal = 'aal2'")
    for change, credential, ask in PATHS:
        # A browser on the pages has no token from before.
        is_page = "by_page" in ask.__qualname__
        if change == REMOVE_RECENT and credential in ("app", "passkey") and not is_page:
            assert (credential, ask(user)) == (credential, "insufficient_aal")
    database.run("UPDATE sessions SET aal = 'aal1'")
    database.run("UPDATE factors SET verified_at = now() - interval '30 seconds'")
    assert by_body("delete", "/factors/<app>", {})(user) == "insufficient_aal"
