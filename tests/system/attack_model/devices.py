"""A stranger sends a victim the code of the stranger's own device, and both act in any order."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.devices import AGE_POLLS, Device, begin
from tests.support.openid import grant
from tests.support.pages import Visitor, words
from tests.support.user_agent import Page
from tests.support.users import PASSWORD, Person

WARNING = "Only continue if you started this on a device in front of you."
VICTIMS_ACTIONS = ("open the link", "press on", "type the code", "deny", "sign out", "sign in", "allow")
STRANGERS_ACTIONS = ("begin", "poll", "enter", "allow", "allow the victim's")
MOVES = [
    *[("victim", action) for action in VICTIMS_ACTIONS],
    *[("stranger", action) for action in STRANGERS_ACTIONS],
    ("time", "20 minutes"),
]
_LATER = (
    "UPDATE sessions SET created_at = created_at - interval '20 minutes',"
    " reauthenticated_at = reauthenticated_at - interval '20 minutes'"
)
# Counts the sessions of a device that were opened with its newest codes.
_OPENED = """
SELECT count(*) FROM sessions AS s JOIN oauth_requests AS r ON r.opened_session_id = s.id
 WHERE s.user_id = %(id)s AND r.created_at = (SELECT max(created_at) FROM oauth_requests)
"""
_PROVED = """
SELECT greatest(s.created_at, s.reauthenticated_at) > now() - interval '15 minutes' FROM sessions AS s
 WHERE s.user_id = %(id)s AND s.ended_at IS NULL AND s.grant_id IS NULL
 ORDER BY s.created_at DESC LIMIT 1
"""


class SentCodes(RuleBasedStateMachine):
    """A subclass sets the application, the rows and the people."""

    app: Any
    rows: Any
    victim: Person
    stranger: Person
    client: Any

    def __init__(self) -> None:
        super().__init__()
        self.rows.run("DELETE FROM oauth_requests; DELETE FROM oauth_grants; DELETE FROM sessions")
        self.victims_browser = Visitor(self.app).with_session_of(self.victim)
        self.strangers_browser = Visitor(self.app).with_session_of(self.stranger)
        self.device: Device = begin(self.app.test_client(), self.client)
        self.has_allowed = False
        self.consent_url = ""
        self.tokens: list[str] = []

    @initialize(is_granted=st.booleans(), skips_consent=st.booleans())
    def begin(self, is_granted: bool, skips_consent: bool) -> None:
        if is_granted:
            grant(self.rows, self.victim.id, self.client.id)
        self.rows.run("UPDATE oauth_clients SET skip_consent = %(skips)s", skips=skips_consent)

    @rule(move=st.sampled_from(MOVES))
    def moves(self, move: tuple[str, str]) -> None:
        actor, action = move
        if actor == "time":
            self.rows.run(_LATER)
        elif actor == "victim":
            self.victim_acts(action)
        else:
            self.stranger_acts(action)

    def victim_acts(self, action: str) -> None:
        browser = self.victims_browser
        if action == "open the link":
            browser.visit(self.device.codes["verification_uri_complete"])
        elif action == "sign out":
            browser.visit("/account")
            _press(browser, "sign-out")
        elif action == "sign in":
            browser.visit("/sign-in")
            _press(browser, "sign-in", email=self.victim.email, password=PASSWORD)
        elif action == "press on":
            _press(browser, "device")
        elif action == "type the code":
            browser.visit("/device")
            _press(browser, "device", user_code=self.device.codes["user_code"])
        elif self._is_warned(browser.page):
            is_fresh = self._is_fresh()
            _press(browser, "device/consent", action="approve" if action == "allow" else "deny")
            is_connected = "Your device is connected" in browser.page.text
            assert is_fresh or not is_connected, "an old session has allowed a device"
            self.has_allowed |= is_connected
        if "device/consent?" in browser.page.url:
            self.consent_url = browser.page.url

    def stranger_acts(self, action: str) -> None:
        browser = self.strangers_browser
        if action == "begin":
            self.device, self.has_allowed = begin(self.app.test_client(), self.client), False
        elif action == "poll":
            self.rows.run(AGE_POLLS)
            response = self.device.poll()
            self.tokens += [response.json["access_token"]] if response.status_code == 200 else []
        elif action == "enter":
            browser.visit("/device")
            _press(browser, "device", user_code=self.device.codes["user_code"])
        elif action == "allow":
            _press(browser, "device/consent", action="approve")
        elif self.consent_url:
            # The stranger has read the victim's screen.
            browser.visit("/device")
            if browser.page.forms:
                request = self.consent_url.partition("=")[2]
                browser.send("/device/consent", request=request, action="approve")

    @invariant()
    def no_device_is_let_in_without_a_decision(self) -> None:
        opened = self.rows.value(_OPENED, id=self.victim.id)
        assert self.has_allowed or opened == 0, (
            "a stranger's device has a session that the victim did not allow"
        )

    def _is_warned(self, page: Page) -> bool:
        is_asked = "Allow</button>" in page.text
        assert not is_asked or WARNING in words(page), "the page does not warn"
        return is_asked

    def _is_fresh(self) -> bool:
        return bool(self.rows.value(_PROVED, id=self.victim.id))


def _press(browser: Visitor, target: str, /, **fields: str) -> None:
    """Press a button, if the page has it."""
    if any(form.action.endswith(target) for form in browser.page.forms):
        browser.press(target, **fields)
