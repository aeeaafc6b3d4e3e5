"""Two people who sign up for one address, in any order, on our pages and by the API.

Both know the address, and only the owner reads its messages. The stranger may guess the owner's password. From the
first sign-up or request for a code on, the owner types any code that arrives into the page that waits for it, and
confirms a link only if its page names the owner's network.
"""

import sys
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from auth.core.tokens import one_time
from auth.web.context import EXTENSION
from tests.support.links import PHONE, SITE, type_in
from tests.support.pages import words
from tests.support.services import ELSEWHERE, HOME
from tests.support.user_agent import UserAgent
from tests.system.attack_model.actors import Device, Environment

EMAIL = "owner@example.com"
OWNERS_PASSWORD, STRANGERS_PASSWORD = "Correct-Horse-1", "Mallorys-Horse-1"
QUOTA = 4
REQUESTS = ("sign up", "sign up on the page", "resend", "resend on the page")
SIGN_IN = "ask for a sign-in code"
GUESSING = "sign up with the owner's password"
MOVES = [
    *(("owner", action) for action in (*REQUESTS, "sign up on the page", SIGN_IN, SIGN_IN, "type", "type")),
    *(("owner", action) for action in ("type on the page", "type on the page", "type on the page")),
    *(("owner", action) for action in ("open a link", "open a link on the phone", "wait")),
    *(("stranger", action) for action in (*REQUESTS, "sign up", GUESSING, "use the quota up", "wait")),
    *(("minutes", minutes) for minutes in (2, 11, 61)),
]

_CONFIRMED = """
SELECT password_hash, user_metadata ->> 'name' AS name
  FROM users
 WHERE coalesce(email_confirmed_at, phone_confirmed_at) IS NOT NULL
"""


_TYPED = """SELECT id::text FROM typed_addresses
            WHERE browser_hash = %(browser_hash)s AND address = %(address)s ORDER BY expires_at DESC LIMIT 1"""


class Person:
    def __init__(self, environment: Environment, network: str, name: str, password: str) -> None:
        self.environment, self.network, self.name, self.password = environment, network, name, password
        self.device = Device(environment.app.test_client(), network)
        self.browser = self.new_browser()
        self.has_signed_up = False
        # The page where the browser waits for a code.
        self.page: str | None = None

    def new_browser(self) -> UserAgent:
        client = self.environment.app.test_client(use_cookies=False)
        client.environ_base["HTTP_X_FORWARDED_FOR"] = self.network
        return UserAgent({SITE: client})

    @property
    def is_in(self) -> bool:
        return self.browser.cookie("latchkey") is not None

    def submit(self, path: str, browser: UserAgent | None = None, **fields: str) -> Any:
        """Submit a form to a path, whether or not a page shows the form."""
        browser = browser or self.browser
        page = browser.visit(f"{SITE}/forgot-password")
        return browser.post(f"{SITE}/{path}", fields | {"form_token": page.forms[0].fields["form_token"]})

    def typed(self, address: str) -> str:
        """Return the id of an address that the browser has typed, or none."""
        cookie = self.browser.cookie("latchkey_waiting")
        hashed = one_time.hash_token(cookie.value) if cookie else None
        rows = self.environment.rows.all(_TYPED, browser_hash=hashed, address=address)
        return rows[0].id if rows else ""

    def request(self, action: str, kind: str, address: str) -> None:
        if action in ("sign up", GUESSING):
            password = OWNERS_PASSWORD if action == GUESSING else self.password
            body = {kind: address, "password": password, "data": {"name": self.name}}
            assert self.device.post("/signup", json=body).status_code in (201, 429)
        elif action == "sign up on the page":
            self.submit("sign-up", email=address, password=self.password)
            self.page = "sign-up"
        elif action == SIGN_IN:
            self.submit("sign-in/code", email=address)
            self.page = "sign-in"
        elif action == "resend":
            self.device.post("/resend", json={"type": "signup" if kind == "email" else "sms", kind: address})
        else:
            self.submit("sign-up/code", email=address, typed=self.typed(address))
            # Only a page that waits after a sign-up has this button.
            self.page = "sign-up" if self.has_signed_up else self.page
        self.has_signed_up |= action.startswith("sign up")


class SignUps(RuleBasedStateMachine):
    """One address, its owner and a stranger. A subclass sets `environment`."""

    environment: Environment

    def __init__(self) -> None:
        super().__init__()
        self.environment.rows.empty()
        self.owner = Person(self.environment, HOME, "Owner", OWNERS_PASSWORD)
        self.stranger = Person(self.environment, ELSEWHERE, "Stranger", STRANGERS_PASSWORD)

    @initialize(kind=st.sampled_from(["email", "phone"]), waits=st.booleans())
    def begin(self, kind: str, waits: bool) -> None:
        self.kind, self.address = kind, EMAIL if kind == "email" else PHONE
        if waits:
            # No code will arrive for this request: the address has no user.
            self.owner.request(SIGN_IN, kind, self.address)

    # One rule, because Hypothesis leaves out most rules of most examples.
    @rule(number=st.integers(0, 3), move=st.sampled_from(MOVES))
    def moves(self, number: int, move: tuple[str, Any]) -> None:
        actor, action = move
        if actor == "minutes":
            self.environment.pass_time(minutes=action)
        elif actor == "stranger":
            self.stranger_acts(action)
        elif not self.owner.is_in:
            self.owner_acts(action, number)
        self.check()

    def stranger_acts(self, action: str) -> None:
        if action == "use the quota up":
            for number in range(QUOTA):
                self.stranger.device.network = f"192.0.2.{number}"
                self.stranger.request("resend", self.kind, self.address)
            self.stranger.device.network = ELSEWHERE
        elif action == "wait":
            self.stranger.browser.visit(f"{SITE}/sign-up/code?typed={self.stranger.typed(self.address)}")
        else:
            self.stranger.request(action, self.kind, self.address)

    def owner_acts(self, action: str, number: int) -> None:
        owner, address = self.owner, self.address
        messages = [message for message in self.environment.outbox.sent(address) if message.code][::-1]
        if action in (*REQUESTS, SIGN_IN):
            owner.request(action, self.kind, address)
        elif action == "wait":
            owner.browser.visit(f"{SITE}/{owner.page or 'sign-up'}/code?typed={owner.typed(address)}")
        elif number < len(messages) and (owner.page if action == "type on the page" else owner.has_signed_up):
            # The newest messages come first.
            self._read(action, messages[number])

    def _read(self, action: str, message: Any) -> None:
        if action == "type":
            kind = "signup" if self.kind == "email" else "sms"
            if type_in(self.owner.device, kind, self.address, message.code).status_code == 200:
                # Check that the owner can also get in later.
                self._recover()
        elif action == "type on the page":
            typed = self.owner.typed(self.address)
            self.owner.submit(f"{self.owner.page}/verify", typed=typed, code=message.code)
        elif message.token:
            browser = self.owner.browser if action == "open a link" else self.owner.new_browser()
            page = browser.visit(f"{SITE}/verify?type={message.kind}&token={message.token}")
            if page.status == 200:
                declines = {} if HOME in words(page) or "from" not in words(page) else {"action": "decline"}
                browser.post(f"{SITE}/verify", page.forms[0].fields | declines)

    def _recover(self) -> None:
        """Sign in by another code, for a new password, in the browser."""
        self.environment.pass_time(hours=25)
        self.owner.submit("forgot-password", email=self.address)
        code = self.environment.outbox.last(self.address).code
        self.owner.submit("forgot-password/verify", typed=self.owner.typed(self.address), code=code)
        assert self.owner.is_in, "the owner is locked out"

    def check(self) -> None:
        """Assert that the stranger has nothing of a confirmed account."""
        assert not self.stranger.is_in, "the stranger is signed in"
        for user in self.environment.rows.all(_CONFIRMED):
            passwords = self.environment.app.extensions[EXTENSION].passwords
            assert not passwords.check(STRANGERS_PASSWORD, user.password_hash), (
                "the stranger's password counts"
            )
            assert user.name != self.stranger.name, "the stranger's data counts"

    def teardown(self) -> None:
        if sys.exc_info()[0] is None and not self.owner.is_in:
            # Whatever the stranger has done, the owner gets in the next day.
            self.environment.pass_time(hours=25)
            self.owner.request("sign up on the page", self.kind, self.address)
            if messages := self.environment.outbox.sent(self.address, "signup"):
                code = messages[-1].code
                self.owner.submit("sign-up/verify", typed=self.owner.typed(self.address), code=code)
            if not self.owner.is_in:
                self._recover()
            self.check()
