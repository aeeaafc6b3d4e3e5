"""The possible actions of an owner and a thief of one user, in any order, and the promises of docs/security.md.

The thief has some of these: the password, old tokens, the mailbox, the mailbox of an earlier address, the phone, one
recovery code, the network.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.support.links import SITE, type_in
from tests.support.services import ELSEWHERE, HOME, OFFICE
from tests.support.users import Session, session_of, sign_in
from tests.system.attack_model.actors import LONG_AN_ADMINISTRATOR, Actor, Device, Environment

# In a longer run, Hypothesis makes most examples by changing earlier ones: 50 would begin in 16 ways, not 40.
EXAMPLES = 10
EMAIL, OLDER_EMAIL, PHONE = "owner@example.com", "older@example.com", "+491701234567"
THIEFS_EMAIL, THIEFS_PHONE = "thief@evil.example", "+15005550006"
NUMBERS = st.integers(0, 7)
KINDS = ("email", "email", "email", "passkey", "provider", "phone", "anonymous")
WAYS = ("password", "magiclink", "recovery", "sms", "provider", "passkey")
KNOWLEDGE = (
    *("password", "access token", "refresh token", "mailbox", "older mailbox", "phone", "recovery code"),
    "network",
)
PAGES = (
    *("second-step", "account/changes", "account/two-step", "account", "account/email", "account/phone"),
    "account/api-keys",
    *("new-password", "account/delete"),
)
SUBSETS = [subset for size in range(1, 9) for subset in combinations(KNOWLEDGE, size)]
CHANGES = ("factor", "password", "email", "phone", "identity", "application", "API key")
ADDITIONS = ("enrol_app", "enrol_key", "register_passkey", "make_codes")
# The factors that the owner has in the beginning.
COLLECTIONS = [("enrol_app",), ("enrol_key",), ("register_passkey",), ("enrol_app", "make_codes"), ADDITIONS]
NOTICES = {
    *("email_changed", "phone_changed", "identity_linked", "identity_unlinked"),
    *("factor_added", "factor_removed", "passkey_added", "passkey_removed", "application_added"),
    *("api_key_added", "api_key_removed"),
}
Action = Callable[[Actor, Session], Any]


def _remove_factors(person: Actor, session: Session) -> None:
    for id in person.environment.state().factors:
        if id not in person.factor_ids:
            person.remove_factor(session, id)


# The thief's possible actions in a session, except deleting the user.
ACTIONS: dict[str, Action] = {
    "remove recent changes": lambda thief, session: thief.remove_recent(session, set(thief.factor_ids)),
    "remove factors": _remove_factors,
    "change the password": Actor.change_password,
    "change the email": lambda thief, session: thief.change_address(session, "email", THIEFS_EMAIL),
    "begin to change the email": lambda thief, session: thief.change_address(
        session, "email", THIEFS_EMAIL, confirms=False
    ),
    "change the phone": lambda thief, session: thief.change_address(session, "phone", THIEFS_PHONE),
    "remove the email": lambda thief, session: thief.remove_address(session, "email"),
    "remove the phone": lambda thief, session: thief.remove_address(session, "phone"),
    "enrol an app": Actor.enrol_app,
    "enrol a key": Actor.enrol_key,
    "register a passkey": Actor.register_passkey,
    "have the browser make a passkey": lambda thief, session: thief.register_passkey(
        session, mediation="conditional"
    ),
    "make recovery codes": Actor.make_codes,
    "link an identity": lambda thief, session: thief.link(session, "acme"),
    "unlink identities": Actor.unlink,
    "allow an application": lambda thief, session: thief.allow(session, thief.environment.evil),
    "use an application": lambda thief, session: thief.allow(session, thief.environment.evil, redeems=True),
    "make an API key": Actor.make_key,
    "remove API keys": Actor.remove_keys,
    "sign out": lambda thief, session: session.post("/logout?scope=others"),
}


MOVES = [
    *(("owner", action) for action in ("return", "return", "sign in", "sign in", *ADDITIONS, *CHANGES)),
    *(
        ("thief", action)
        for action in (*["everything"] * 6, "steal", "steal", "use messages", "use messages")
    ),
    *(("thief", action) for action in ("use an application", "use an application", "use applications")),
    *(("thief", action) for action in (*ACTIONS, *PAGES)),
    *(("hours", hours) for hours in (0.3, 2, 24, 8 * 24)),
]


class Theft(RuleBasedStateMachine):
    """One user, its owner and a thief. A subclass sets `environment`."""

    environment: Environment

    def __init__(self) -> None:
        super().__init__()
        self.environment.begin()
        client = self.environment.app.test_client()
        self.owner = Actor(self.environment, Device(client, HOME), subjects={"google": "owner"})
        self.thief = Actor(self.environment, Device(client, ELSEWHERE), subjects={"acme": "thief"})
        self.thief.emails, self.thief.phones = [THIEFS_EMAIL], [THIEFS_PHONE]
        self.stolen: list[Session] = []
        # Undo links about the thief's changes, and how many days ago the first change was.
        self.alarms: list[str] = []
        self.days_since_change: float | None = None
        self.old_then: set[str] = set()
        self.emails_then: list[str] = []

    # The beginning.

    @initialize(
        kind=st.sampled_from(KINDS),
        additions=st.sampled_from([(), (), *COLLECTIONS]),
        has_phone=st.booleans(),
        is_admin=st.booleans(),
        age=st.sampled_from([0, 30]),
        knows=st.sampled_from(SUBSETS),
        both_steps=st.booleans(),
    )
    def begin(
        self,
        kind: str,
        additions: tuple[str, ...],
        has_phone: bool,
        is_admin: bool,
        age: int,
        knows: tuple[str, ...],
        both_steps: bool,
    ) -> None:
        """Sign a user up, let the factors become `age` days old, and open a session to steal."""
        self.knows = set(knows)
        self._sign_up(kind, has_phone, is_admin)
        session = self.owner.sessions[-1]
        if kind == "email" and "older mailbox" in knows:
            self.owner.change_address(session, "email", EMAIL)
            session = self.owner.sessions[-1]
        for addition in additions:
            session = self.owner.step_up(session) or session
            getattr(self.owner, addition)(session)
            session = self.owner.sessions[-1]
        self.time_passes(age * 24)
        self._let_thief_learn()
        if ways := self.owner.ways():
            self.owner.enter(ways[0])
        self.thief_steals_tokens()
        if both_steps and self.owner.sessions:
            self.owner.step_up(self.owner.sessions[-1])

    def _let_thief_learn(self) -> None:
        self.thiefs_actions = 0
        self.thief.password = self.owner.password if "password" in self.knows else None
        for email in self.owner.emails:
            if ("older mailbox" if email == OLDER_EMAIL else "mailbox") in self.knows:
                self.thief.emails.append(email)
        self.thief.phones += self.owner.phones if "phone" in self.knows else []
        self.thief.device.network = HOME if "network" in self.knows else ELSEWHERE

    def _sign_up(self, kind: str, has_phone: bool, is_admin: bool) -> None:
        owner, device, key = self.owner, self.owner.device, self.environment.service_role
        if kind in ("email", "phone"):
            owner.password = "Correct-Horse-1"
            owner.emails += (
                [OLDER_EMAIL if "older mailbox" in self.knows else EMAIL] if kind == "email" else []
            )
            owner.phones += [PHONE] if kind == "phone" or has_phone else []
        if kind == "email":
            body = {"email": owner.emails[0], "email_confirm": True, "password": owner.password}
            body |= {"phone": PHONE, "phone_confirm": True} if owner.phones else {}
            assert device.post("/admin/users", json=body, headers=key).status_code == 200
            response = sign_in(device, owner.emails[0], owner.password or "")
        elif kind == "phone":
            device.post("/signup", json={"phone": PHONE, "password": owner.password})
            response = type_in(device, "sms", PHONE, self.environment.outbox.last(PHONE).code)
        elif kind == "provider":
            response = owner.hand_in_id_token(device, "google")
        else:
            response = device.post("/signup", json={})
        session = session_of(device, response, response.status_code)
        self.environment.user_id = session.user["id"]
        owner.sessions.append(session)
        if kind == "passkey":
            owner.register_passkey(session)
        if is_admin:
            self.environment.rows.run(LONG_AN_ADMINISTRATOR)

    # The owner.

    def _own_session(self) -> Session | None:
        """Return the owner's newest live session, except those whose `aal2` tokens the thief has."""
        compromised = {session.id for session in self.stolen if session.claims["aal"] == "aal2"}
        safe = (each for each in reversed(self.owner.sessions) if each.id not in compromised)
        return next((each for each in safe if each.get("/user").status_code == 200), None)

    # One rule, because Hypothesis leaves out most rules of most examples.
    @rule(number=NUMBERS, move=st.sampled_from(MOVES))
    def moves(self, number: int, move: tuple[str, Any]) -> None:
        actor, action = move
        if actor == "owner":
            self.owner_acts(number, action)
        elif actor == "thief":
            self.thief_acts(number, action)
        else:
            self.time_passes(action)

    def owner_acts(self, number: int, action: str) -> None:
        if action == "return":
            self.owner_returns()
            return
        owner, session, ways = self.owner, self._own_session(), self.owner.ways()
        if session is None or action == "sign in":
            session = owner.enter(ways[number % len(ways)]) if ways else None
        if session is None or (action == "sign in" and number % 2):
            return
        session = owner.step_up(session) or session
        if action in ADDITIONS:
            getattr(owner, action)(session)
            if action == "register_passkey" and session in self.stolen:
                # The first passkey gives all tokens of its session 15 minutes.
                self.time_passes(0.3)
        elif action == "password":
            owner.change_password(session)
        elif action == "identity":
            owner.link(session, "google")
        elif action == "application":
            owner.allow(session, self.environment.wiki)
        elif action == "API key":
            owner.make_key(session)
        elif action == "factor":
            for id in owner.factor_ids[number : number + 1]:
                owner.remove_factor(session, id)
        elif action in ("email", "phone"):
            address = f"owner{number}@example.com" if action == "email" else f"+49170123456{number}"
            owner.change_address(session, action, address)

    def time_passes(self, hours: float) -> None:
        self.environment.pass_time(hours=hours)
        if self.days_since_change is not None:
            self.days_since_change += hours / 24
        if hours > 1:
            # Access tokens have expired.
            self.thief.sessions = []
            self.owner.sessions = []

    # The thief.

    def thief_steals_tokens(self) -> None:
        """Steal the tokens of the owner's newest session, 15 minutes after its second step."""
        session = self._own_session()
        if session and {"access token", "refresh token"} & self.knows:
            self.stolen.append(session)
            self.time_passes(0.3)
        if "recovery code" in self.knows:
            self.thief.codes = self.owner.codes[-1:]

    def _thiefs_sessions(self, number: int) -> list[Session]:
        """Open sessions in one of the ways that the thief has, by its number, or use stolen tokens."""
        ways = (
            self.thief.ways()
            + ["stolen tokens"] * bool(self.stolen)
            + ["earlier"] * bool(self.thief.sessions)
        )
        way = ways[number % len(ways)] if ways else "earlier"
        if way in WAYS:
            session = self.thief.enter(way)
            if session and self.thief.codes + self.thief.apps + self.thief.passkeys:
                session = self.thief.step_up(session) or session
            return [session] if session else []
        if way == "stolen tokens":
            refreshed = [self.thief.refresh(each) for each in self.stolen if "refresh token" in self.knows]
            with_access_tokens = self.stolen if "access token" in self.knows else []
            return [each for each in [*refreshed, *with_access_tokens] if each]
        return self.thief.sessions[-2:]

    def is_protected(self) -> bool:
        """Whether a factor of the owner keeps out what the thief knows."""
        state = self.environment.state()
        if not state.factors or not set(self.owner.factor_ids).issuperset(
            [*state.factors, *state.unused_passkeys]
        ):
            return False
        # The code is a factor, even in a stolen session.
        if "recovery code" in self.knows:
            return False
        if any(session.claims["aal"] == "aal2" for session in self.thief.sessions):
            return False
        links = "user_id = %(id)s AND purpose = 'undo' AND spent_at IS NULL AND expires_at > now()"
        rows = self.environment.rows.all(
            f"SELECT target FROM one_time_tokens WHERE {links}", id=self.environment.user_id
        )
        if self._reads({state.email, state.phone, *(row.target for row in rows)}):
            return bool(self.environment.old_factors().intersection(self.owner.factor_ids))
        return True

    def _reads(self, addresses: set[str]) -> bool:
        return not addresses.isdisjoint([*self.thief.emails, *self.thief.phones])

    @contextmanager
    def watched(self, action: str) -> Iterator[None]:
        """Assert that an action of the thief changes nothing that a factor protects, and keep the alarms."""
        self.thiefs_actions += 1
        is_protected, before = self.is_protected(), self.environment.state()
        old_factors, count_before = self.environment.old_factors(), len(self.environment.outbox.sent())
        yield
        after = self.environment.state()
        # An application needs no factor again, nor does the removal of an API key.
        assert not is_protected or set(after.api_keys) <= set(before.api_keys), f"the thief can {action}"
        allowed = before._replace(grants=after.grants, api_keys=after.api_keys)
        assert not is_protected or after == allowed, f"the thief can {action}"
        if after != before or self.thief.pending:
            if self.days_since_change is None:
                self.days_since_change, self.old_then = 0, old_factors.intersection(self.owner.factor_ids)
                self.emails_then = [
                    each for each in self.owner.emails if not self.environment.is_recent(each)
                ]
            for message in self.environment.outbox.sent()[count_before:]:
                if (
                    message.kind in NOTICES
                    and message.token
                    and message.to in [*self.owner.emails, *self.owner.phones]
                ):
                    self.alarms.append(message.token)

    def thief_acts(self, way: int, action: str) -> None:
        if action == "steal":
            self.thief_steals_tokens()
        elif action == "use messages":
            self._use_messages()
        elif action == "use applications":
            self.thief.redeem()
        elif action in PAGES:
            self._browse("recovery" if way % 2 else "password", action)
        elif action in ACTIONS:
            for session in self._thiefs_sessions(way):
                self._try(action, session)
        elif self.is_protected():
            for session in self._thiefs_sessions(way):
                for each in ACTIONS:
                    self._try(each, session)
                with self.watched("delete the user"):
                    self.thief.send(session, "DELETE", "/user")

    def _try(self, action: str, session: Session) -> None:
        with self.watched(action):
            ACTIONS[action](self.thief, session)

    def _browse(self, way: str, page: str) -> None:
        browser = self.thief.browse(way) if self.is_protected() else None
        if browser:
            with self.watched(f"submit the forms of /{page}"):
                self.thief.submit_all(browser, page)
            console = browser.visit(f"{SITE}/console")
            assert (console.status, console.url) != (200, f"{SITE}/console"), "the thief can read the console"

    def _use_messages(self) -> None:
        """Confirm addresses, and use the undo links in messages to the thief."""
        with self.watched("confirm an address"):
            self.thief.confirm_changes()
        for message in self.environment.outbox.sent():
            if message.kind in NOTICES and message.token and self._reads({message.to}):
                with self.watched(f"undo: {message.kind}"):
                    self.thief.undo(message.token)

    # The return.

    def may_return(self) -> bool:
        """Whether the owner has something that the thief does not have, and comes in time to use it."""
        in_time = self.days_since_change is None or self.days_since_change < 6
        # Only addresses from before the thief's first change count: later ones could be the thief's.
        emails = self.owner.emails if self.days_since_change is None else self.emails_then
        has_mailbox = bool(emails) and not self._reads(set(emails))
        old_factors = self.environment.old_factors().intersection(self.owner.factor_ids)
        can_undo = self.old_then and self.owner.emails
        return bool(
            (has_mailbox and in_time) or (old_factors and self.owner.ways()) or (can_undo and in_time)
        )

    def owner_returns(self) -> None:
        if not self.thiefs_actions or not self.may_return():
            return
        assert any(self._returns(network, days) for days in (0, 1) for network in (HOME, OFFICE)), (
            "locked out"
        )
        self._assert_thief_keeps_nothing()
        self.alarms, self.days_since_change, self.old_then, self.stolen = [], None, set(), []
        self.thief.sessions, self.thief.codes = [], []
        self.thief.client_codes, self.thief.client_sessions = [], []
        self._let_thief_learn()

    def teardown(self) -> None:
        if sys.exc_info()[0] is None:
            self.owner_returns()

    def _returns(self, network: str, days: float) -> bool:
        if days and network == HOME:
            self.time_passes(24)
        self._use_up_tries()
        self.owner.device.network = network
        # The oldest link that works undoes the most.
        is_undone = any(self.owner.undo(token) for token in self.alarms)
        assert not is_undone or not self.environment.state().grants, "an application survives an undo"
        old_grants, tried_ways = self.environment.old_grants() - {self.environment.evil}, []
        for way in self.owner.ways():
            tried_ways.append(way)
            if self._enters_and_cleans(way):
                break
        else:
            return False
        # A recovery ends everything, grants too.
        has_kept_grants = "recovery" in tried_ways or old_grants.issubset(self.environment.state().grants)
        assert has_kept_grants, "an old application was removed"
        return True

    def _enters_and_cleans(self, way: str) -> bool:
        """Sign in, remove what is not the owner's, choose a password, and sign out the others."""
        owner, session = self.owner, self.owner.enter(way)
        if session is None:
            return False
        session = owner.step_up(session) or session
        owner.remove_recent(
            session, {*owner.factor_ids, *owner.emails, *owner.phones, "google", "Wiki", *owner.api_keys}
        )
        self._remove_older(session)
        if self.environment.state().email or self.environment.state().phone:
            owner.change_password(session)
        if session.post("/logout?scope=others").status_code != 200:
            return False
        owner.make_codes(session)
        state = self.environment.state()
        return (
            session.get("/user").status_code == 200
            and set(owner.factor_ids).issuperset(state.factors)
            and {f"acme {self.thief.subjects['acme']}"}.isdisjoint(state.identities)
            and self.environment.evil not in state.grants
            and set(owner.api_keys).issuperset(state.api_keys)
            and {state.email, state.phone} <= {None, *owner.emails, *owner.phones}
        )

    def _remove_older(self, session: Session) -> None:
        """Let the late owner remove unknown additions that are no longer recent."""
        owner = self.owner
        _remove_factors(owner, session)
        owner.unlink(session, but=("email", "phone", "google"))
        owner.remove_keys(session)
        if self.environment.evil in self.environment.old_grants():
            owner.withdraw(session, self.environment.evil)
        for kind, addresses in (("email", owner.emails), ("phone", owner.phones)):
            if getattr(self.environment.state(), kind) not in [None, *addresses]:
                owner.remove_address(session, kind)

    def _use_up_tries(self) -> None:
        """Have the thief use up the tries for codes, if the thief can sign in."""
        session = next(
            (session_of_way for way in self.thief.ways() if (session_of_way := self.thief.enter(way))), None
        )
        for _ in range(25 if session and self.owner.apps else 0):
            code = self.owner.apps[-1].wrong_code()
            if session and session.post("/reauthenticate", json={"factor_code": code}).status_code == 429:
                break

    def _assert_thief_keeps_nothing(self) -> None:
        thief, before = self.thief, self.environment.state()
        for session in [*thief.sessions, *self.stolen]:
            assert session.get("/user").status_code != 200, "a session of the thief is alive"
            assert session.refresh().status_code != 200, "a refresh token of the thief is good"
        assert not thief.serves_application(), "an application of the thief sees the user"
        assert not thief.use_keys(), "an API key of the thief is good"
        thief.confirm_changes()
        for message in self.environment.outbox.sent():
            if message.to in (THIEFS_EMAIL, THIEFS_PHONE) and message.token:
                thief.undo(message.token)
        assert self.environment.state() == before, "a link or code of the thief is good"
        for way in thief.ways():
            new_session = thief.enter(way)
            assert not new_session or not thief.step_up(new_session), (
                f"the thief passes the second step, by {way}"
            )
            # The thief may still read the mailbox or the phone.
            is_known = way in ("magiclink", "recovery", "sms") and self._reads({before.email, before.phone})
            assert not new_session or is_known, f"the thief signs in by {way}"
