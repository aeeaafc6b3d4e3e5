"""Every door to an account while sign-up is closed, or open to some domains: who gets in, and that no door tells who is
invited.
"""

import base64
import itertools
import json
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support import passkeys
from tests.support.authenticator import Authenticator
from tests.support.checked_rows import statements_run
from tests.support.commands import run_command
from tests.support.links import Outbox, follow, hand_in, type_in
from tests.support.oauth import Service
from tests.support.pages import Visitor, words
from tests.support.users import PASSWORD, sign_up_anonymously

pytest_plugins = ["tests.support.oauth_fixtures"]

SETTINGS = {
    "AUTH_DISABLE_SIGNUP": {"AUTH_DISABLE_SIGNUP": "true"},
    "AUTH_SIGNUP_DOMAINS": {"AUTH_SIGNUP_DOMAINS": "corp.example"},
}
# The domains of the persons. An employee has the domain of the customer's provider at its door.
DOMAINS = {
    "invited": "guest.example",
    "employee": "globex.example",
    "listed": "corp.example",
    "nobody": "other.example",
}
OF_ORGANIZATION = "example.com"
SECRET = "whsec_" + base64.b64encode(bytes(32)).decode()
# Ids and times.
UNIQUE = r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]{4}-[0-9-]+T[0-9:.]+Z"
REFUSED = {"error": {"http_code": 403, "message": "Members of the club only"}}

# A cell has the letters of what lets the person in: nothing in the way (o), although the domain is blocked (b), although
# the hook refuses (h), although sign-in by email and SMS is off (c). A column is a person, whose address is invited, or
# of a domain whose provider is on, or of a domain in AUTH_SIGNUP_DOMAINS, or none of these.
TABLES = {
    "AUTH_DISABLE_SIGNUP": """
                                  invited  employee  listed  nobody
sign-up with a password           -        -         -       -
sign-up without an address        -        -         -       -
code by mail                      o        -         -       -
code on the page                  o        -         -       -
link by mail                      o        -         -       -
code by SMS                       -        -         -       -
provider that verifies            oc       -         -       -
its id_token                      oc       -         -       -
provider that does not verify     -        -         -       -
its id_token, too                 -        -         -       -
customer's provider               -        oc        -       -
its id_token, as well             -        oc        -       -
organization's provider           -        oc        -       -
anonymous user, by code           o        o         o       o
anonymous user, by provider       oc       oc        oc      oc
anonymous user, by passkey        obhc     obhc      obhc    obhc
administrator's invitation        obc      obc       obc     obc
administrator's link              obc      obc       obc     obc
import                            obhc     obhc      obhc    obhc
""",
    "AUTH_SIGNUP_DOMAINS": """
                                  invited  employee  listed  nobody
sign-up with a password           -        -         o       -
sign-up without an address        -        -         -       -
code by mail                      o        -         o       -
code on the page                  o        -         -       -
link by mail                      o        -         o       -
code by SMS                       -        -         -       -
provider that verifies            oc       -         oc      -
its id_token                      oc       -         oc      -
provider that does not verify     -        -         -       -
its id_token, too                 -        -         -       -
customer's provider               -        oc        -       -
its id_token, as well             -        oc        -       -
organization's provider           -        oc        -       -
anonymous user, by code           o        -         o       -
anonymous user, by provider       oc       -         oc      -
anonymous user, by passkey        -        -         -       -
administrator's invitation        obc      obc       obc     obc
administrator's link              obc      obc       obc     obc
import                            obhc     obhc      obhc    obhc
""",
}


class Doors:
    """A service with a setting, and its doors: each returns the token of who came in, or None."""

    def __init__(self, world: "World", service: Service) -> None:
        self.world, self.service, self.client = world, service, service.client
        self.outbox = Outbox(service.parts, world.database)

    def by_code(self, path: str, email: str, body: dict[str, Any], type: str = "email") -> Any:
        response = self.client.post(path, json={"email": email, **body})
        if response.status_code >= 400 or not self.outbox.sent(email):
            return None
        return self.token(type_in(self.client, type, email, self.outbox.last(email).code))

    def token(self, response: Any) -> Any:
        return response.json.get("access_token")

    def sign_up_with_a_password(self, email: str) -> Any:
        return self.by_code("/signup", email, {"password": PASSWORD}, "signup")

    def sign_up_without_an_address(self, email: str) -> Any:
        return self.token(self.client.post("/signup", json={"data": {"email": email}}))

    def code_by_mail(self, email: str) -> Any:
        return self.by_code("/otp", email, {})

    def code_on_the_page(self, email: str) -> Any:
        visitor = Visitor(self.service.app)
        visitor.visit("/sign-in")
        if "sign-in/code" not in visitor.page.text:
            return None
        visitor.press("sign-in/code", email=email)
        if not self.outbox.sent(email):
            return None
        visitor.press("sign-in/verify", code=self.outbox.last(email).code)
        return "Your account" in words(visitor.page)

    def ask_on_the_page(self, email: str) -> str:
        visitor = Visitor(self.service.app)
        visitor.visit("/sign-in")
        visitor.press("sign-in/code", email=email)
        return words(visitor.page)

    def ask_provider(self, email: str) -> str:
        self.world.google.person = {"sub": "1", "email": email, "email_verified": False}
        return self.service.sign_in("google").url

    def ask_with_id_token(self, email: str) -> Any:
        self.world.untrusted.person = {"sub": "1", "email": email, "email_verified": True}
        id_token = self.world.untrusted.id_token(jti=str(uuid.uuid4()))
        body = {"provider": "acme", "id_token": id_token}
        return self.client.post("/token?grant_type=id_token", json=body)

    def link_by_mail(self, email: str) -> Any:
        response = self.client.post("/magiclink", json={"email": email})
        if response.status_code >= 400 or not self.outbox.sent(email):
            return None
        return "access_token" in follow(self.client, "magiclink", self.outbox.last(email).token).location

    def code_by_sms(self, email: str) -> Any:
        phone = f"+49151{self.world.number():08}"
        response = self.client.post("/otp", json={"phone": phone})
        if response.status_code >= 400 or not self.outbox.sent(phone):
            return None
        return self.token(type_in(self.client, "sms", phone, self.outbox.last(phone).code))

    def by_provider(self, fake: Any, name: str, email: str, **claims: Any) -> Any:
        fake.person = {"sub": email, "email": email, **claims}
        return "access_token" in self.service.sign_in(name).url

    def by_id_token(self, fake: Any, name: str, email: str, **claims: Any) -> Any:
        fake.person = {"sub": email, "email": email, **claims}
        body = {"provider": name, "id_token": fake.id_token()}
        return self.token(self.client.post("/token?grant_type=id_token", json=body))

    def provider_that_verifies(self, email: str) -> Any:
        return self.by_provider(self.world.google, "google", email, email_verified=True)

    def its_id_token(self, email: str) -> Any:
        return self.by_id_token(self.world.google, "google", email, email_verified=True)

    def provider_that_does_not_verify(self, email: str) -> Any:
        return self.by_provider(self.world.google, "google", email, email_verified=False)

    def its_id_token_too(self, email: str) -> Any:
        # It says so, but is not trusted to link.
        return self.by_id_token(self.world.untrusted, "acme", email, email_verified=True)

    def customers_provider(self, email: str) -> Any:
        customer = self.world.customer
        return self.by_provider(customer.provider, customer.identifier, email)

    def its_id_token_as_well(self, email: str) -> Any:
        customer = self.world.customer
        return self.by_id_token(customer.provider, customer.identifier, email)

    def organizations_provider(self, email: str) -> Any:
        return self.by_provider(self.world.organizations.provider, f"custom:{self.world.own_id}", email)

    def anonymous(self) -> Any:
        return sign_up_anonymously(self.world.open).on(self.client)

    def is_permanent(self, session: Any) -> bool:
        return not session.get("/user").json["is_anonymous"]

    def anonymous_user_by_code(self, email: str) -> Any:
        session = self.anonymous()
        response = session.put("/user", json={"email": email})
        if response.status_code == 200 and self.outbox.sent(email):
            type_in(self.client, "email_change", email, self.outbox.last(email).code)
        return self.is_permanent(session)

    def anonymous_user_by_provider(self, email: str) -> Any:
        session = self.anonymous()
        self.world.google.person = {"sub": email, "email": email, "email_verified": True}
        body = {"provider": "google", "id_token": self.world.google.id_token(), "link_identity": True}
        session.post("/token?grant_type=id_token", json=body)
        return self.is_permanent(session)

    def anonymous_user_by_passkey(self, email: str) -> Any:
        session = self.anonymous()
        passkeys.register_response(session, Authenticator())
        return self.is_permanent(session)

    def administrators_invitation(self, email: str) -> Any:
        response = self.client.post("/admin/invite", json={"email": email}, headers=self.world.service_role)
        if response.status_code != 200:
            return None
        return self.token(hand_in(self.client, "invite", self.outbox.last(email, "invite").token))

    def administrators_link(self, email: str) -> Any:
        body = {"type": "signup", "email": email, "password": PASSWORD}
        response = self.client.post("/admin/generate_link", json=body, headers=self.world.service_role)
        if response.status_code != 200:
            return None
        return self.token(hand_in(self.client, "signup", response.json["hashed_token"]))

    def by_import(self, email: str) -> Any:
        file = self.world.directory / "users.ndjson"
        file.write_text(json.dumps({"email": email}))
        assert run_command(self.service.app, "users", "import", str(file)).exit_code == 0
        return self.world.database.count("users", f"email = '{email}'") == 1


DOORS: dict[str, Callable[[Doors, str], Any]] = {
    "sign-up with a password": Doors.sign_up_with_a_password,
    "sign-up without an address": Doors.sign_up_without_an_address,
    "code by mail": Doors.code_by_mail,
    "code on the page": Doors.code_on_the_page,
    "link by mail": Doors.link_by_mail,
    "code by SMS": Doors.code_by_sms,
    "provider that verifies": Doors.provider_that_verifies,
    "its id_token": Doors.its_id_token,
    "provider that does not verify": Doors.provider_that_does_not_verify,
    "its id_token, too": Doors.its_id_token_too,
    "customer's provider": Doors.customers_provider,
    "its id_token, as well": Doors.its_id_token_as_well,
    "organization's provider": Doors.organizations_provider,
    "anonymous user, by code": Doors.anonymous_user_by_code,
    "anonymous user, by provider": Doors.anonymous_user_by_provider,
    "anonymous user, by passkey": Doors.anonymous_user_by_passkey,
    "administrator's invitation": Doors.administrators_invitation,
    "administrator's link": Doors.administrators_link,
    "import": Doors.by_import,
}


@dataclass
class World:
    """An organization that invites, two customers whose providers are on, and a hook that refuses."""

    open: Any
    make_service: Any
    google: Any
    untrusted: Any
    customer: Any
    organizations: Any
    own_id: str
    service_role: dict[str, str]
    target: Any
    database: Any
    directory: Path
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def number(self) -> int:
        return next(self.numbers)

    def address(self, person: str, door: str = "") -> str:
        """Return an address of a person that no other case knows."""
        domain = DOMAINS[person]
        if (person, door) == ("employee", "organization's provider"):
            domain = OF_ORGANIZATION
        email = f"{person}{self.number():04}@{domain}"
        if person == "invited":
            self.invite(email)
        return email

    def invite(self, email: str) -> None:
        self.database.run(
            "INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)"
            " SELECT gen_random_uuid(), id, %(email)s, 'member', now() + interval '1 day' FROM organizations",
            email=email,
        )

    def obstacle(self, letter: str) -> dict[str, str]:
        blocked = ",".join([*DOMAINS.values(), OF_ORGANIZATION])
        return {
            "o": {},
            "b": {"AUTH_SIGNUP_BLOCKED_DOMAINS": blocked},
            "h": {
                "AUTH_HOOK_BEFORE_USER_CREATED": self.target.url,
                "AUTH_HOOK_BEFORE_USER_CREATED_SECRETS": SECRET,
            },
            "c": {"AUTH_EMAIL_ENABLED": "false", "AUTH_PHONE_ENABLED": "false"},
        }[letter]

    def doors(self, **settings: str) -> Doors:
        extensions = {"AUTH_ORGANIZATIONS": "users", "AUTH_SSO": "true"}
        return Doors(self, self.make_service(**extensions, **settings))


@pytest.fixture
def world(
    make_app, make_service, on, provider, customers, fakes, service, service_role, target, database, tmp_path
):
    customers.globex.domain = DOMAINS["employee"]
    body = customers.globex.body()
    response = service.client.post("/admin/custom-providers", json=body, headers=service_role)
    assert response.status_code == 201, response.text
    target.answer = lambda _event: REFUSED
    return World(
        open=make_app(AUTH_ANONYMOUS_ENABLED="true").test_client(),
        make_service=make_service,
        google=fakes.google,
        untrusted=fakes.acme,
        customer=customers.globex,
        organizations=customers.acme,
        own_id=provider,
        service_role=service_role,
        target=target,
        database=database,
        directory=tmp_path,
    )


@pytest.mark.parametrize("setting", SETTINGS)
def test_table_says_who_gets_an_account_by_which_door(world, setting):
    cells = {(door, person): "" for door in DOORS for person in DOMAINS}
    for letter in "obhc":
        doors = world.doors(**SETTINGS[setting], **world.obstacle(letter))
        for door, person in cells:
            # Nothing in the way lets in who is not let in without it.
            if letter == "o" or cells[door, person]:
                cells[door, person] += letter if DOORS[door](doors, world.address(person, door)) else ""
    lines = [
        ["", *DOMAINS],
        *([door, *(cells[door, person] or "-" for person in DOMAINS)] for door in DOORS),
    ]
    table = "\n".join("{:34}{:9}{:10}{:8}{}".format(*line) for line in lines)
    assert table == TABLES[setting].strip("\n")


# What anybody can ask about an address before it is proved.
QUESTIONS: dict[str, Callable[[Doors, str, Any], Any]] = {
    "POST /signup": lambda doors, email, _: doors.client.post(
        "/signup", json={"email": email, "password": PASSWORD}
    ),
    "POST /otp": lambda doors, email, _: doors.client.post("/otp", json={"email": email}),
    "POST /otp, no user": lambda doors, email, _: doors.client.post(
        "/otp", json={"email": email, "create_user": False}
    ),
    "POST /magiclink": lambda doors, email, _: doors.client.post("/magiclink", json={"email": email}),
    "POST /recover": lambda doors, email, _: doors.client.post("/recover", json={"email": email}),
    "POST /resend": lambda doors, email, _: doors.client.post(
        "/resend", json={"type": "signup", "email": email}
    ),
    "POST /resend, change": lambda doors, email, _: doors.client.post(
        "/resend", json={"type": "email_change", "email": email}
    ),
    "POST /sign-in/code": lambda doors, email, _: doors.ask_on_the_page(email),
    "PUT /user, anonymous": lambda doors, email, sessions: sessions[0].put("/user", json={"email": email}),
    "PUT /user": lambda doors, email, sessions: sessions[1].put("/user", json={"email": email}),
    "provider that does not verify": lambda doors, email, _: doors.ask_provider(email),
    "its id_token": lambda doors, email, _: doors.ask_with_id_token(email),
}
# These tell whether a user has the address (docs/security.md), or link a proved one.
NOT_OF_TAKEN = ("PUT /user",)
VARYING = ("X-Request-Id", "Date", "Location", "Set-Cookie", "Content-Length", "ETag")


class Answers:
    """What a stranger sees of an answer, and what it cost."""

    def __init__(self, world: World, doors: Doors, sessions: Any) -> None:
        self.world, self.doors, self.sessions = world, doors, sessions

    def cost(self) -> tuple[int, int, int]:
        return statements_run(), self.world.database.count("outbox"), len(self.world.target.requests)

    def of(self, question: str, email: str) -> Any:
        before = self.cost()
        response = QUESTIONS[question](self.doors, email, self.sessions)
        spent = tuple(after - earlier for after, earlier in zip(self.cost(), before, strict=True))
        if isinstance(response, str):
            return response.replace(email, "ADDRESS"), spent
        headers = {name: value for name, value in response.headers.items() if name not in VARYING}
        text = re.sub(UNIQUE, "ID", response.text.replace(email, "ADDRESS"))
        return response.status_code, text, headers, spent


@pytest.mark.parametrize("hook", ["none", "agrees", "refuses"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_no_answer_tells_who_is_invited_before_the_address_is_proved(world, alice, setting, hook):
    hook_settings = world.obstacle("h") if hook != "none" else {}
    world.target.answer = lambda _event: REFUSED if hook == "refuses" else {}
    doors = world.doors(**SETTINGS[setting], **hook_settings)
    for question in QUESTIONS:
        sessions = (doors.anonymous(), alice.open_session(doors.client))
        answers = Answers(world, doors, sessions)
        number = world.number()
        emails = {
            state: f"{state}{number:03}@guest.example" for state in ("invit", "lapse", "other", "taken")
        }
        world.invite(emails["invit"])
        world.invite(emails["lapse"])
        world.database.run(
            "UPDATE organization_invitations SET expires_at = now() WHERE email = %(email)s",
            email=emails["lapse"],
        )
        if question in NOT_OF_TAKEN:
            del emails["taken"]
        else:
            body = {"email": emails["taken"], "email_confirm": True}
            doors.client.post("/admin/users", json=body, headers=world.service_role)
        # Asked again, the invited one may have a user.
        for _ in range(2):
            seen = {state: answers.of(question, email) for state, email in emails.items()}
            different = {state: each for state, each in seen.items() if each != seen["other"]}
            assert not different, (question, different, seen["other"])


def test_provider_that_does_not_verify_gets_the_same_refusal_for_an_invited_address(world):
    doors = world.doors(AUTH_DISABLE_SIGNUP="true")
    urls = set()
    for person in ("invited", "nobody"):
        email = world.address(person)
        world.google.person = {"sub": email, "email": email, "email_verified": False}
        urls.add(doors.service.sign_in("google").url)
    (url,) = urls
    assert "error_code=signup_disabled" in url


def test_provider_lets_in_nobody_of_whom_there_is_only_a_request_for_a_code(world):
    doors, email = world.doors(AUTH_DISABLE_SIGNUP="true"), world.address("invited")
    doors.client.post("/otp", json={"email": email})
    world.database.run("DELETE FROM organization_invitations")
    assert not doors.provider_that_verifies(email)
    assert world.database.count("identities", "provider = 'google'") == 0
    world.invite(email)
    assert doors.provider_that_verifies(email)
