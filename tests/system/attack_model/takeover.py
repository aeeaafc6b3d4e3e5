"""An owner, an operator, a thief, a malicious client and strangers act in any order on what gives tokens.

`Theft` tests changes of the user; this tests what a credential is good for, and when it ends.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.checked_rows import statements_run
from tests.support.links import hand_in, type_in
from tests.support.openid import make_client
from tests.support.services import ELSEWHERE, HOME
from tests.support.users import Session, session_of, sign_in
from tests.system.attack_model.actors import LONG_AN_ADMINISTRATOR, Actor, Device, Environment
from tests.system.attack_model.doors import Credential, Doors
from tests.system.attack_model.invariants import INVARIANTS, assert_opens_all
from tests.system.attack_model.model import NOTICES

EMAIL, THIEFS_EMAIL = "owner@example.com", "thief@evil.example"
PASSWORD = "Correct-Horse-1"
# The owner's credentials in the beginning, and the thief's share of them.
BELONGINGS = ("application", "malicious application", "API key", "authenticator app")
LOOT = ("session", "password", "mailbox", "API key")
OWNERS_ACTIONS = (
    *("sign in", "enrol_app", "enrol_key", "register_passkey", "make an API key", "change the email"),
    *("allow Wiki", "allow Evil", "prove"),
)
DEFENCES = (
    *("log in", "change the password", "recover", "undo", "sign out the others", "remove a session"),
    *("remove the API keys", "withdraw the applications"),
)
OPERATORS_ACTIONS = (
    *["recovery link", "new password", "address", "admins", "all"] * 2,
    *("none", "promote", "demote"),
)
THIEFS_ACTIONS = (
    *("sign in", "sign in", "make an API key", "make an API key", "allow Evil", "allow Evil", "redeem"),
    *("enrol_app", "register_passkey", "change the email", "link an identity", "guess", "guess codes"),
)
STRANGERS_ACTIONS = ("guess from many networks", "ask", "ask")
# Strangers' requests about an address.
_REQUESTS: dict[str, dict[str, Any]] = {
    "recover": {},
    "magiclink": {"create_user": False},
    "otp": {"create_user": False},
    "resend": {"type": "signup"},
    "signup": {"password": "Strangers-Horse-1"},
    "token?grant_type=password": {"password": "Wrong-Horse-1"},
}
MOVES = [
    *(("owner", action) for action in (*OWNERS_ACTIONS, *DEFENCES)),
    *(("operator", action) for action in OPERATORS_ACTIONS),
    *(("thief", action) for action in THIEFS_ACTIONS),
    *(("strangers", action) for action in STRANGERS_ACTIONS),
    *(("hours", hours) for hours in (0.3, 24)),
]

_ADDITIONS = """
SELECT 'a ' || factor_type AS what, id::text, verified_at AS at
  FROM factors WHERE user_id = %(id)s AND verified_at IS NOT NULL
 UNION ALL
SELECT 'an identity of ' || provider, id::text, created_at
  FROM identities WHERE user_id = %(id)s AND provider NOT IN ('email', 'phone')
 UNION ALL
SELECT 'the email', identity_data ->> 'email', updated_at
  FROM identities WHERE user_id = %(id)s AND provider = 'email'
 UNION ALL
SELECT 'an API key', id::text, created_at FROM api_keys WHERE user_id = %(id)s
 UNION ALL
SELECT 'a grant', id::text, granted_at FROM oauth_grants WHERE user_id = %(id)s
"""
_PROVED = """
SELECT array_remove(ARRAY[CASE WHEN email_proved THEN email END, CASE WHEN phone_proved THEN phone END], NULL)
  FROM users WHERE id = %(id)s
"""
# A message has the time of the transaction that wrote the row; so has the change if it joined an earlier notice.
_RECIPIENTS = """
SELECT array_agg(recipient) FROM outbox
 WHERE user_id = %(id)s AND recipient = ANY (%(proved)s) AND kind = ANY (%(kinds)s)
   AND (created_at = %(at)s
        OR variables -> 'others' @> jsonb_build_array(jsonb_build_object('at', iso_8601(%(at)s))))
"""
# Ids and times.
_VARYING = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]*Z")


def _twin(email: str) -> str:
    """Return an address without a user, for which strangers repeat each request for this one."""
    return email.replace("@", ".twin@")


class Takeover(RuleBasedStateMachine):
    """A subclass sets `environment`, the applications by AUTH_MFA_REQUIRED, and the assertions."""

    environment: Environment
    applications: dict[str, Any]
    # The application whose hook for access tokens fails.
    failing_hook: Any
    asserted: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.environment.begin()
        self.environment.user_id = ""
        self.required = "none"
        self.owner, self.thief = self._actor(HOME, "owner"), self._actor(ELSEWHERE, "thief")
        self.owner.emails, self.thief.emails = [EMAIL], [THIEFS_EMAIL]
        self.owner.password = PASSWORD
        self.anyone = Device(self._client, "192.0.2.200")
        self.doors = Doors(self.environment.service_role, self.environment.wiki)
        self.credentials: list[Credential] = []
        # The session that acted last: adding the first factor does not end it.
        self.acting: Credential | None = None
        self.is_over = False
        # Additions of the last step, and the recipients of the notice of each.
        self.additions: list[tuple[str, Any]] = []
        # The requests at which the owner got "too many" or "unavailable".
        self.refusals: list[str] = []
        # Verdicts about passwords of the last quarter of an hour, by address and network.
        self.verdicts: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        # The answers to the same request for the owner's address and for a free one.
        self.twins: list[tuple[str, Any, Any]] = []
        self.strangers = 0

    @property
    def _client(self) -> Any:
        return self.applications[self.required].test_client()

    def _actor(self, network: str, name: str) -> Actor:
        return Actor(self.environment, Device(self._client, network), subjects={"acme": name})

    # The existing objects.

    def living(self, *kinds: str) -> list[Credential]:
        alive = (each for each in self.credentials if not each.ended_by)
        return [each for each in alive if not kinds or each.kind in kinds]

    def demanded_level(self) -> str:
        """Return the level that is demanded of the user at this moment."""
        row = self.environment.rows.one(
            "SELECT role, EXISTS (SELECT FROM factors WHERE user_id = users.id AND factor_type <> 'passkey'"
            " AND verified_at IS NOT NULL) AS has_step FROM users WHERE id = %(id)s",
            id=self.environment.user_id,
        )
        is_required = self.required == "all" or (self.required == "admins" and row.role == "admin")
        return "aal2" if row.has_step or is_required else "aal1"

    def role(self) -> str:
        return self._rows("SELECT role FROM users WHERE id = %(id)s")[0].role

    def _rows(self, statement: str, **parameters: Any) -> list[Any]:
        return self.environment.rows.all(statement, id=self.environment.user_id, **parameters)

    def _added(self) -> dict[tuple[str, str], Any]:
        return {(row.what, row.id): row.at for row in self._rows(_ADDITIONS)}

    # The beginning.

    @initialize(
        has=st.sets(st.sampled_from(BELONGINGS)),
        knows=st.sets(st.sampled_from(LOOT), min_size=1, max_size=2),
        is_admin=st.booleans(),
        age=st.sampled_from([0, 30]),
    )
    def begin(self, has: set[str], knows: set[str], is_admin: bool, age: int) -> None:
        device = self.owner.device
        device.post("/signup", json={"email": EMAIL, "password": PASSWORD})
        code = self.environment.outbox.last(EMAIL).code
        session = session_of(device, type_in(device, "signup", EMAIL, code))
        self.environment.user_id = session.user["id"]
        self.owner.sessions.append(session)
        self._collect(self.owner)
        if "authenticator app" in has:
            self.owner.enrol_app(session)
            self._collect(self.owner)
        for belonging, action in (
            ("API key", "make an API key"),
            ("application", "allow Wiki"),
            ("malicious application", "allow Evil"),
        ):
            if belonging in has:
                self.act_in_session(self.owner, action)
        self._redeem()
        for credential in [
            *self.living("session", "client's session", "API key"),
            self._client_credentials(),
        ]:
            assert_opens_all(self, credential)
        if is_admin:
            self.environment.rows.run(LONG_AN_ADMINISTRATOR)
        self.environment.pass_time(hours=age * 24)
        self._let_thief_learn(knows)

    def _client_credentials(self) -> Credential:
        """Return the token of a program without a user."""
        client = make_client(self.environment.rows, grant_types=["client_credentials"], scopes=["reports"])
        response = client.post(self.anyone, "/oauth/token", grant_type="client_credentials")
        token = response.json["access_token"]
        return Credential("client credentials", "program", "aal1", token, access_tokens=[token])

    def _let_thief_learn(self, knows: set[str]) -> None:
        if "password" in knows:
            self.thief.password = PASSWORD
        if "mailbox" in knows:
            self.thief.emails.append(EMAIL)
        for credential in self.living():
            if credential.kind in knows:
                credential.holder = "thief"

    # Moves. One rule, because Hypothesis leaves out most rules of most examples.

    @rule(move=st.sampled_from(MOVES))
    def moves(self, move: tuple[str, Any]) -> None:
        actor, action = move
        before, proved = self._added(), self._rows(_PROVED)[0][0]
        self.additions, self.twins = [], []
        if actor == "hours":
            self.time_passes(action)
        elif actor == "operator":
            self.operator_acts(action)
        elif actor == "strangers":
            self.strangers_act(action)
        else:
            self._act_as(self.owner if actor == "owner" else self.thief, action)
        self._end_by_first_factor(before)
        # An undo restores an address, without a notice.
        if actor in ("owner", "thief") and action != "undo" and proved:
            for (kind, id), at in self._added().items() - before.items():
                messages = self._rows(_RECIPIENTS, at=at, proved=proved, kinds=[*NOTICES])[0][0]
                self.additions.append((f"{kind} ({id})", messages))

    def _act_as(self, person: Actor, action: str) -> None:
        if person is self.owner and action in DEFENCES:
            self.defend(action)
        elif action == "guess":
            self.guess(ELSEWHERE, 6)
        elif action == "guess codes":
            self._guess_codes()
        elif action == "redeem":
            self._redeem()
        else:
            self.act_in_session(person, action)

    def act_in_session(self, person: Actor, action: str) -> None:
        """Have a person do something in a session, raised to `aal2` if the person can."""
        credential = None if action == "sign in" else self._session(person)
        credential = credential or self._sign_in(person)
        if credential is None or action == "sign in":
            return
        self.acting, session = credential, credential.session(person.device)
        if action == "make an API key":
            self._make_key(person, session)
        elif action.startswith("allow "):
            is_evil = action == "allow Evil"
            person.allow(session, self.environment.evil if is_evil else self.environment.wiki)
            holder = "thief" if is_evil else self._name(person)
            for client_id, code in person.client_codes:
                level = session.claims["aal"]
                self.credentials.append(Credential("code", holder, level, code, credential.id, client_id))
            person.client_codes = []
        elif action == "prove":
            if person.prove(session):
                self._end_codes(credential.id)
        elif action == "change the email":
            new_email = THIEFS_EMAIL if person is self.thief else f"owner{len(self.credentials)}@example.com"
            person.change_address(session, "email", new_email)
        elif action == "link an identity":
            person.link(session, "acme")
        else:
            getattr(person, action)(session)
        self._collect(person)

    def _name(self, person: Actor) -> str:
        return "owner" if person is self.owner else "thief"

    def _session(self, person: Actor) -> Credential | None:
        """Return the person's newest session that works."""
        for credential in reversed(self.living("session")):
            if credential.holder == self._name(person):
                if not credential.access_tokens:
                    credential.ask(person.device)
                if (
                    credential.access_tokens
                    and credential.session(person.device).get("/user").status_code == 200
                ):
                    return credential
        return None

    def _sign_in(self, person: Actor) -> Credential | None:
        ways = (way for way in person.ways() if way in ("password", "recovery", "passkey"))
        session = next((opened for way in ways if (opened := person.enter(way))), None)
        if session is None:
            return None
        self._step_up(person, session)
        self._collect(person)
        return self._session(person)

    def _step_up(self, person: Actor, session: Session) -> Session:
        """Raise a session to `aal2` if the person can. Note if the owner cannot."""
        raised = person.step_up(session)
        has_factor = not set(person.factor_ids).isdisjoint(self.environment.state().factors)
        if person is self.owner and raised is None and has_factor:
            self.refusals.append("the second step")
        return raised or session

    def _collect(self, person: Actor) -> None:
        """Note the sessions that a person has got, or raised."""
        for session in person.sessions:
            credentials = [each for each in self.living("session") if each.id == session.id]
            if credentials:
                if session.claims["aal"] > credentials[0].level:
                    self._end_codes(session.id)
                credentials[0].keep(session)
            else:
                self.credentials.append(Credential.of(session, self._name(person)))
        person.sessions = []

    def _make_key(self, person: Actor, session: Session) -> None:
        response = person.send(session, "POST", "/user/api_keys", name=person.unique())
        if response.status_code == 201:
            id, key = response.json["id"], response.json["key"]
            credential = Credential("API key", self._name(person), session.claims["aal"], key, id)
            self.credentials.append(credential)
            credential.ask(self.anyone)

    def _redeem(self) -> None:
        """Have the applications redeem their codes."""
        for code in self.living("code"):
            response = code.ask(self.anyone)
            if response.status_code == 200:
                session = Credential(
                    "client's session", code.holder, code.level, response.json["refresh_token"]
                )
                session.client_id, session.access_tokens = code.client_id, code.access_tokens
                self.credentials.append(session)
            # Using the code again would end the session that it opened.
            self.credentials.remove(code)

    def time_passes(self, hours: float) -> None:
        self.environment.pass_time(hours=hours)
        self.verdicts.clear()
        for credential in self.credentials:
            if hours > 1 or credential.kind == "API key":
                credential.access_tokens, credential.tried = [], 0

    # What ends credentials.

    def _end(self, reason: str, ends: Callable[[Credential], bool]) -> None:
        for credential in self.living():
            if ends(credential):
                credential.ended_by.add(reason)

    def _end_thiefs(self, reason: str) -> None:
        self._end(reason, lambda each: each.holder == "thief")

    def _end_application(self, client_id: str) -> None:
        self._end("its removal", lambda each: each.client_id == client_id)

    def _end_codes(self, session_id: str) -> None:
        """End the codes that a session gave before it was raised, or proved who uses it."""
        self._end("a second step", lambda each: each.kind == "code" and each.id == session_id)

    def _end_by_first_factor(self, before: dict[tuple[str, str], Any]) -> None:
        # No sign-in asks for a passkey.
        factors = {"a totp", "a webauthn"}
        new_factors = {kind for kind, _ in self._added()} & factors
        if new_factors and not factors & {kind for kind, _ in before}:
            acting = self.acting
            self._end("the first factor", lambda each: each.level < "aal2" and each is not acting)

    # The owner defends.

    def defend(self, action: str) -> None:
        owner = self.owner
        if action == "recover":
            self._recover()
            return
        if action == "log in":
            email = self.environment.state().email
            self._succeeded(action, sign_in(owner.device, email, owner.password or ""))
            return
        if action == "undo":
            for message in self.environment.outbox.sent(EMAIL):
                if message.kind in NOTICES and message.token and owner.undo(message.token):
                    self._end_thiefs("an undo")
                    return
            return
        credential = self._session(owner) or self._sign_in(owner)
        if credential is None:
            return
        session = credential.session(owner.device)
        if action == "change the password":
            self._succeeded(action, owner.change_password(session))
        elif action == "sign out the others":
            if self._succeeded(action, session.post("/logout?scope=others")):
                self._end("its removal", lambda each: each.kind == "session" and each is not credential)
        elif action == "remove a session":
            for session_to_end in self.living("session"):
                path = f"/sessions/{session_to_end.id}"
                if session_to_end is not credential and self._succeeded(action, session.delete(path)):
                    session_to_end.ended_by.add("its removal")
                    break
        elif action == "remove the API keys":
            for key in self.living("API key"):
                if self._succeeded(action, session.delete(f"/user/api_keys/{key.id}")):
                    key.ended_by.add("its removal")
        else:
            for client_id in (self.environment.wiki, self.environment.evil):
                if self._succeeded(action, session.delete(f"/user/oauth/grants?client_id={client_id}")):
                    self._end_application(client_id)

    def _succeeded(self, action: str, response: Any) -> bool:
        """Return whether an action of the owner succeeded, and note a refusal because of a limit."""
        if response.status_code in (429, 503):
            self.refusals.append(f"{action}: {response.status_code} {response.text}")
        return response.status_code in (200, 204)

    def _recover(self, token: str | None = None) -> None:
        """Recover by a mailed link, or by the operator's, and choose a password."""
        owner, email, is_operators = self.owner, self.environment.state().email, bool(token)
        if token is None:
            if email not in owner.emails:
                return
            self._succeeded("recover", owner.device.post("/recover", json={"email": email}))
            token = self.environment.outbox.last(email, "recovery").token
        response = hand_in(owner.device, "recovery", token)
        if not self._succeeded("recover", response):
            return
        session = session_of(owner.device, response)
        session = self._step_up(owner, session)
        if self._succeeded("recover", owner.change_password(session)):
            owner.sessions.append(session)
            self._collect(owner)
            self._end_thiefs("an operator's reset" if is_operators else "a recovery")

    # The operator.

    def _administer(self, method: str, path: str, **body: Any) -> Any:
        response = self.anyone.open(path, method, headers=self.environment.service_role, json=body)
        assert response.status_code == 200, response.text
        return response

    def operator_acts(self, action: str) -> None:
        user, state = f"/admin/users/{self.environment.user_id}", self.environment.state()
        if action in self.applications:
            self.required = action
            for device in (self.owner.device, self.thief.device, self.anyone):
                device.client = self._client
        elif action in ("promote", "demote"):
            self._administer("PUT", user, role="admin" if action == "promote" else "authenticated")
        elif action == "recovery link":
            link = self._administer("POST", "/admin/generate_link", type="recovery", email=state.email).json
            self._recover(link["hashed_token"])
        elif action == "new password":
            self.owner.password = f"Operators-{self.owner.unique()}"
            self._administer("PUT", user, password=self.owner.password)
            self._end_thiefs("an operator's reset")
        elif state.email not in self.owner.emails:
            self._administer("PUT", user, email=EMAIL, email_confirm=True)
            self._end_thiefs("an operator's reset")

    # Strangers.

    def guess(self, network: str, times: int) -> None:
        """Guess passwords, the last of which is right, while a hook for access tokens fails.

        The same number of guesses goes to the address without a user.
        """
        email = self.environment.state().email
        client = self.failing_hook.test_client()
        for address in (email, _twin(email)):
            for password in [*(f"Wrong-Horse-{number}" for number in range(times)), self.owner.password]:
                # The hook's failure is 500 or 503, which Device refuses.
                response = client.post(
                    "/token?grant_type=password",
                    json={"email": address, "password": password},
                    headers={"X-Forwarded-For": network},
                )
                if response.status_code != 429:
                    self.verdicts[address, network].append(
                        "wrong" if response.status_code == 401 else "right"
                    )

    def _guess_codes(self) -> None:
        """Use up the thief's tries for the second step, without a right one."""
        verdicts = self.verdicts["codes", self._network()]
        credential = self._session(self.thief) or self._sign_in(self.thief)
        for _ in range(25 if credential and self.owner.apps else 0):
            body = {"factor_code": self.owner.apps[-1].wrong_code()}
            session = credential.session(self.thief.device) if credential else None
            if session is None or session.post("/reauthenticate", json=body).status_code == 429:
                break
            verdicts.append("wrong")

    def strangers_act(self, action: str) -> None:
        email = self.environment.state().email
        if action == "guess from many networks":
            for _ in range(4):
                self.guess(self._network(), 6)
        else:
            for kind in _REQUESTS:
                self.twins.append((kind, self._ask(kind, email), self._ask(kind, _twin(email))))

    def _network(self) -> str:
        self.strangers += 1
        return f"198.18.{self.strangers // 250}.{self.strangers % 250 + 1}"

    def _ask(self, kind: str, email: str) -> tuple[int, str, int]:
        """Send a stranger's request from a new network; return status, body and the number of statements."""
        before = statements_run()
        response = Device(self._client, self._network()).post(
            f"/{kind}", json={"email": email} | _REQUESTS[kind]
        )
        body = _VARYING.sub("…", json.dumps(response.json).replace(email, "…"))
        return response.status_code, body, statements_run() - before

    # The invariants.

    @invariant()
    def holds(self) -> None:
        for name in self.asserted if self.environment.user_id else ():
            INVARIANTS[name](self)
        for credential in self.credentials:
            credential.is_tried = bool(credential.ended_by)

    def teardown(self) -> None:
        if sys.exc_info()[0] is None:
            self.is_over = True
            self.holds()
