"""An owner who travels, and two thieves who know the password, sign in, in any order.

One thief runs a proxy in front of our pages, to which a mail has led the owner: it forwards the user agent, but
never gets the cookie by which the owner's browser is known here. The other signs in from another country.
"""

import uuid
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.support.links import Outbox
from tests.support.pages import Visitor
from tests.support.services import ELSEWHERE, HOME, OFFICE
from tests.support.users import PASSWORD, Person, register, sign_in

HOTEL = "203.0.113.77"
AGENTS = {
    "owner": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "thief": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/142.0.0.0 Safari/537.36",
}
# The people who sign in, their networks and user agents.
PLACES = {
    "owner": ((HOME, HOTEL), "owner"),
    "proxy": ((ELSEWHERE, HOTEL), "owner"),
    "thief": ((OFFICE,), "thief"),
}
MOVES = [
    (actor, way, network)
    for actor, (networks, _) in PLACES.items()
    for network in networks
    for way in ("app", "page")
]


class SignIns(RuleBasedStateMachine):
    """A subclass sets the application, a client of it, its messages and the key."""

    app: Any
    client: Any
    outbox: Outbox
    service_role: Any

    def __init__(self) -> None:
        super().__init__()
        email = f"{uuid.uuid4()}@example.com"
        self.owner: Person = register(self.client, self.service_role, email)
        self.browsers = {actor: Visitor(self.app) for actor in PLACES}
        # The networks and browsers of sign-ins, and the number of notices that the owner must get.
        self.networks: set[str] = set()
        self.known_browsers: set[str] = set()
        self.expected_notices = 0
        self.sign_in("owner", "page", HOME)

    @rule(move=st.sampled_from(MOVES))
    def moves(self, move: tuple[str, str, str]) -> None:
        self.sign_in(*move)

    def sign_in(self, actor: str, way: str, network: str) -> None:
        is_first, agent = not self.networks, AGENTS[PLACES[actor][1]]
        is_known = network in self.networks or (way == "page" and actor in self.known_browsers)
        if way == "page":
            browser = self.browsers[actor]
            browser.cookies = [each for each in browser.cookies if each.name != "latchkey"]
            browser.client.environ_base |= {"REMOTE_ADDR": network, "HTTP_USER_AGENT": agent}
            browser.signed_in_as(self.owner)
            self.known_browsers.add(actor)
        else:
            self.client.environ_base |= {"REMOTE_ADDR": network, "HTTP_USER_AGENT": agent}
            assert sign_in(self.client, self.owner.email, PASSWORD).status_code == 200
        self.networks.add(network)
        self.expected_notices += not (is_first or is_known)

    @invariant()
    def owner_is_told_of_each_new_sign_in_and_of_no_other(self) -> None:
        messages = self.outbox.sent(self.owner.email)
        assert {message.kind for message in messages} <= {"new_sign_in"}
        assert sum(message.variables.get("times", 1) for message in messages) == self.expected_notices
        # One at once; the others share a notice.
        assert len(messages) == min(self.expected_notices, 2)
        assert all(message.token for message in messages), "a notice has no link"
