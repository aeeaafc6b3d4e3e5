"""A malicious customer, who runs a provider and owns a domain, tries to open users of others, in any order of actions."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.commands import run_command
from tests.support.customers import ACME, GLOBEX, Customer, SsoService
from tests.support.oauth import fragment
from tests.support.tables import Rows
from tests.support.users import Session, register

# The users before the customer acts. Another customer's provider made Alice; Bob and Carol, an administrator, have a
# proved password, and addresses of the malicious customer's domain.
ALICE, BOB, CAROL = f"alice@{ACME}", f"bob@{GLOBEX}", f"carol@{GLOBEX}"
EMAILS = (ALICE, BOB, CAROL, f"mallory@{GLOBEX}", f"dave@{GLOBEX}", f"x@sub.{GLOBEX}", f"new@{ACME}", "")
CLAIMS: tuple[dict[str, Any], ...] = (
    {},
    {"email_verified": True},
    {"email_verified": False},
    {"preferred_username": ALICE, "upn": ALICE},
    {"hd": ACME, "tid": "x"},
)
WAYS = ("page", "id_token", "redirect URI of the other", "id_token for the other")
OPERATORS_ACTIONS = ("disable", "enable", "make again", "swap the domains", "adopt bob", "adopt carol")
MOVES = [
    *[("customer", way) for way in WAYS * 2],
    *[("operator", action) for action in OPERATORS_ACTIONS],
    *[("customer", action) for action in ("sign up as dave", "take an address", "make an API key")],
    ("alice", "sign in"),
]


class MaliciousCustomer(RuleBasedStateMachine):
    """A subclass sets the service, the rows and the customers."""

    sso: SsoService
    rows: Rows
    acme: Customer
    evil: Customer

    def __init__(self) -> None:
        super().__init__()
        self.rows.empty()
        for customer in (self.acme, self.evil):
            customer.provider.reset()
            self.sso.add(customer)
        self.sessions: list[Session] = []
        self.adopted: set[str] = set()
        self.alice = ""

    @initialize()
    def begin(self) -> None:
        self.alice = self._alices()
        people = [register(self.sso.client, self.sso.service_role, email) for email in (BOB, CAROL)]
        self.bob, self.carol = (person.id for person in people)
        self.rows.run("UPDATE users SET email_proved = true")
        self.rows.run("UPDATE users SET role = 'admin' WHERE id = %(id)s", id=self.carol)

    @rule(
        move=st.sampled_from(MOVES),
        subject=st.sampled_from(["1", "2", "alice"]),
        email=st.sampled_from(EMAILS),
        claims=st.sampled_from(CLAIMS),
    )
    def moves(self, move: tuple[str, str], subject: str, email: str, claims: dict[str, Any]) -> None:
        actor, action = move
        if actor == "operator":
            self._operate(action)
        elif actor == "alice":
            can = self._domains(self.acme) == [ACME]
            assert not can or self._alices() == self.alice, "alice has lost her account"
        elif action in WAYS:
            self.evil.be(self.alice if subject == "alice" else subject, email, **claims)
            self._enter(action)
        else:
            self._misuse(action, email)

    def _alices(self) -> str:
        self.acme.be("1", ALICE)
        return self.sso.signed_in(self.acme.identifier).claims["sub"]

    def _domains(self, customer: Customer) -> list[str]:
        return self.sso.admin("GET", f"/{customer.identifier}").json["domains"]

    def _operate(self, action: str) -> None:
        if action in ("disable", "enable"):
            assert self.sso.change(self.evil, enabled=action == "enable").status_code == 200
        elif action == "make again":
            domains = self._domains(self.evil)
            self.sso.delete(self.evil)
            self.sso.add(self.evil, domains=domains)
            self.adopted = set()
        elif action == "swap the domains":
            of_acme, of_evil = self._domains(self.acme), self._domains(self.evil)
            nothing: list[str] = []
            for customer, domains_of_customer in (
                (self.acme, nothing),
                (self.evil, of_acme),
                (self.acme, of_evil),
            ):
                assert self.sso.change(customer, domains=domains_of_customer).status_code == 200
        else:
            self._adopt(action.removeprefix("adopt "))

    def _adopt(self, name: str) -> None:
        arguments = ("providers", "adopt", self.evil.identifier, f"{name}@{GLOBEX}")
        if run_command(self.sso.app, *arguments).exit_code == 0:
            assert name == "bob", "an administrator was moved"
            self.adopted.add(self.bob)

    def _enter(self, way: str) -> None:
        """Sign in with the customer's provider, and keep the session if there is one."""
        name = self.acme.identifier if way == "id_token for the other" else self.evil.identifier
        if "id_token" in way:
            issuer = self.acme.provider.url if name == self.acme.identifier else self.evil.provider.url
            body = {"provider": name, "id_token": self.evil.provider.id_token(iss=issuer)}
            response = self.sso.client.post("/token?grant_type=id_token", json=body)
            token = response.json.get("access_token")
        elif way == "page":
            token = fragment(self.sso.sign_in(name)).get("access_token") if self._is_enabled() else None
        else:
            token = self._cross()
        if token:
            self._keep(token)

    def _is_enabled(self) -> bool:
        return self.sso.admin("GET", f"/{self.evil.identifier}").json["enabled"]

    def _cross(self) -> str | None:
        """Bring the customer's code to the redirect URI of the other provider, with the state of its flow."""
        if not self._is_enabled():
            return None
        browser = self.sso.browser()
        request = self.sso.leave(browser, self.acme.identifier)
        code = (
            self.sso.return_url(self.sso.browser(), self.evil.identifier)
            .partition("code=")[2]
            .partition("&")[0]
        )
        page = browser.visit(
            f"{self.sso.callback(self.acme.identifier)}?code={code}&state={request['state']}"
        )
        return fragment(page).get("access_token")

    def _keep(self, token: str) -> None:
        response = self.sso.client.get("/user", headers={"Authorization": f"Bearer {token}"})
        assert response.status_code == 200
        user = response.json
        assert user["id"] not in {self.alice, self.carol}, "the customer opens a user of others"
        assert user["id"] != self.bob or self.bob in self.adopted, (
            "the customer opens a user who was not moved"
        )
        assert user["email"].rpartition("@")[2] in self._domains(self.evil), "not of the customer's domains"
        assert user["role"] != "admin"
        self.sessions.append(Session(self.sso.client, token, "", user))

    def _misuse(self, action: str, email: str) -> None:
        if action == "sign up as dave":
            body = {"email": f"dave@{GLOBEX}", "password": "Mallorys-Horse-1"}
            self.sso.client.post("/signup", json=body)
        for session in self.sessions[-1:]:
            if action == "take an address" and email:
                session.put("/user", json={"email": email})
            elif action == "make an API key":
                session.post("/user/api_keys", json={"name": "x"})

    @invariant()
    def nothing_of_a_disabled_provider_lives(self) -> None:
        if not self._is_enabled():
            assert not any(each.get("/user").status_code == 200 for each in self.sessions)
            self.sessions = []
            keys = "SELECT count(*) FROM api_keys AS k JOIN identities AS i USING (user_id) WHERE i.provider = %(name)s"
            assert self.rows.value(keys, name=f"sso:{self.evil.id}") == 0

    @invariant()
    def users_of_others_have_no_identity_of_the_customer(self) -> None:
        identities = self.rows.all(
            "SELECT user_id::text FROM identities WHERE provider = %(name)s", name=f"sso:{self.evil.id}"
        )
        protected = {self.alice, self.carol} | ({self.bob} - self.adopted)
        assert {row.user_id for row in identities}.isdisjoint(protected)
