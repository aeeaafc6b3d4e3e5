"""Links and codes as users get them: read from the outbox, then opened or entered.

They are read directly from the table, so that these tests need no mail or SMS.
"""

import base64
import hashlib
import html
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin

from auth.html.forms import token_of
from tests.support.answers import A_SENTENCE, A_UUID, token_response
from tests.support.tables import Rows
from tests.support.users import PASSWORD, Session, register, session_of

SITE = "http://localhost:8000"
PHONE = "+491701234567"
DIGITS = PHONE.removeprefix("+")
OTHER_PHONE = "+491707654321"
# The whole response to a request for a message.
ON_ITS_WAY = {"message": A_SENTENCE, "message_id": A_UUID}
EXPIRED = {
    "error": "access_denied",
    "error_code": "otp_expired",
    "error_description": "Token has expired or is invalid",
}
# The headers of a browser that follows a link in a mail.
BROWSER = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Site": "cross-site",
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
}
VERIFIER = "a-code-verifier-of-these-tests-0123456789-abcdef"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
WITH_CHALLENGE = {"code_challenge": CHALLENGE, "code_challenge_method": "s256"}


@dataclass(frozen=True)
class Sent:
    """A message with its kind, recipient, link and code."""

    kind: str
    channel: str
    to: str
    token: Any
    code: Any
    variables: dict[str, Any]
    lifetime: float | None
    user_id: str | None

    @property
    def wrong_code(self) -> str:
        """A different code."""
        return f"{(int(self.code) + 1) % 1_000_000:06}"


class Outbox:
    """The messages in the application's outbox."""

    def __init__(self, parts: Any, database: Rows) -> None:
        self._sealer = parts.sealer
        self._database = database

    def sent(self, to: str | None = None, kind: str | None = None) -> list[Sent]:
        """Return the messages to be sent, oldest first."""
        rows = self._database.all(
            """SELECT id, user_id, kind, channel, recipient, secret, variables, extract(epoch FROM expires_at - coalesce(
                        (SELECT t.created_at FROM one_time_tokens AS t WHERE t.id = one_time_token_id), created_at))::float AS lifetime
                 FROM outbox
                WHERE kind <> 'none' AND (%(to)s IS NULL OR recipient = %(to)s) AND (%(kind)s IS NULL OR kind = %(kind)s)
                ORDER BY created_at, kind""",
            to=to,
            kind=kind,
        )
        return [self._sent(row) for row in rows]

    def last(self, to: str | None = None, kind: str | None = None) -> Sent:
        """Return the newest message."""
        messages = self.sent(to, kind)
        assert messages, f"nothing was sent (to {to}, of kind {kind})"
        return messages[-1]

    def kinds(self) -> list[tuple[str, str]]:
        """Return kind and recipient of each message, oldest first."""
        return [(message.kind, message.to) for message in self.sent()]

    def suppressed(self) -> int:
        """Return the number of messages that send nothing, written to hide that an address is unknown or over
        its quota.
        """
        return self._database.count(
            "outbox", "kind = 'none' AND outcome = 'none' AND recipient IS NULL AND secret IS NULL"
        )

    def _sent(self, row: Any) -> Sent:
        secret = json.loads(self._sealer.open(bytes(row.secret), row.id)) if row.secret else {}
        return Sent(
            row.kind,
            row.channel,
            row.recipient,
            secret.get("token"),
            secret.get("code"),
            row.variables,
            row.lifetime,
            row.user_id,
        )


# For each type of verification: the recipient of its message, and the purpose of its link.
TYPES = {
    "signup": ("dave@example.com", "signup"),
    "invite": ("dave@example.com", "invite"),
    "magiclink": ("erin@example.com", "magiclink"),
    "email": ("erin@example.com", "magiclink"),
    "recovery": ("erin@example.com", "recovery"),
    "email_change": ("new@example.com", "email_change"),
    "sms": (PHONE, "sms"),
    "phone_change": (PHONE, "phone_change"),
}
# For each purpose: the types that accept what was sent for it.
ACCEPTING = {
    "signup": {"signup", "email"},
    "invite": {"invite", "email"},
    "magiclink": {"magiclink", "email"},
    "recovery": {"recovery", "magiclink", "email"},
    "email_change": {"email_change"},
    "sms": {"sms"},
    "phone_change": {"phone_change"},
}
BY_LINK = ["signup", "invite", "magiclink", "email", "recovery", "email_change"]
BY_CODE = ["signup", "magiclink", "email", "recovery", "email_change", "sms", "phone_change"]


def send(type: str, client: Any, service_role: dict[str, str], outbox: Outbox) -> Sent:
    """Send the message of a type of verification: to Dave, a new user, or to Erin, an existing one."""
    address, purpose = TYPES[type]
    erin = (
        register(client, service_role, "erin@example.com")
        if type not in ("signup", "invite", "sms")
        else None
    )
    if type == "signup":
        response = client.post("/signup", json={"email": address, "password": PASSWORD})
    elif type == "invite":
        response = client.post("/admin/invite", json={"email": address}, headers=service_role)
    elif type == "sms":
        response = client.post("/otp", json={"phone": address})
    elif erin and type in ("email_change", "phone_change"):
        response = erin.sign_in().put("/user", json={type.removesuffix("_change"): address})
    else:
        response = client.post("/recover" if type == "recovery" else "/magiclink", json={"email": address})
    assert response.status_code in (200, 201), response.text
    return outbox.last(address, purpose)


def path(type: str, token: str | None, **query: str) -> str:
    """Return the path and query of a link."""
    return "/verify?" + urlencode({"token": token, "type": type, **query})


def follow(client: Any, type: str, token: str | None, **query: str) -> Any:
    """Open a link as a program does."""
    return client.get(path(type, token, **_to_site(type) | query))


def press(client: Any, type: str, token: str | None, **fields: str) -> Any:
    """Press the button of the page that a browser shows for a link."""
    return client.post(
        "/verify",
        data={"token": token, "type": type, **own_form(client), **_to_site(type), **fields},
        headers=BROWSER | {"Sec-Fetch-Site": "same-origin"},
    )


def decline(client: Any, type: str, token: str | None) -> Any:
    """Press "This wasn't me" on the page of a link, and return the page that says what this has done."""
    response = press(client, type, token, action="decline")
    assert response.status_code == 303, response.text
    return client.get(urljoin("/verify", response.location), headers=BROWSER)


def _to_site(type: str) -> dict[str, str]:
    # Otherwise these open the page for a new password, see tests/flows/links/test_link_targets.py.
    return {"redirect_to": SITE} if type in ("invite", "recovery") else {}


def own_form(client: Any) -> dict[str, str]:
    """Give a client the cookie of our pages, and return the token that their forms carry."""
    secret = "a" * 43
    client.set_cookie("latchkey_form", secret)
    return {"form_token": token_of(secret)}


def type_in(client: Any, type: str, address: str, code: str | None) -> Any:
    """Type in a code that was sent to an address."""
    return client.post(
        "/verify",
        json={"type": type, "phone" if address.startswith("+") else "email": address, "token": code},
    )


def hand_in(client: Any, type: str, token: str | None) -> Any:
    """Post the token of a link as JSON, as an application's server does."""
    return client.post("/verify", json={"type": type, "token_hash": token})


def location(response: Any) -> str:
    """Return the target of a redirect, or that of the page which leads a browser to another website."""
    text = response.data.decode()
    refresh = re.findall(r'<meta http-equiv="refresh" content="0;url=([^"]+)">', text)
    if not refresh:
        assert (response.status_code, text) == (303, ""), text
        return response.location
    links = re.findall(r'<a class="button" href="([^"]+)">', text)
    assert (response.status_code, "Location" in response.headers, links) == (200, False, refresh)
    return html.unescape(links[0])


def fragment(response: Any, target: str = SITE) -> dict[str, str]:
    """Return the parameters in the fragment of a redirect to a target."""
    url, _, parameters = location(response).partition("#")
    assert url == target
    return single(parameters)


def query(response: Any, target: str = SITE) -> dict[str, str]:
    """Return the parameters in the query of a redirect to a target."""
    url, _, parameters = location(response).partition("?")
    assert url == target
    return single(parameters)


def single(parameters: str) -> dict[str, str]:
    """Return the parameters, each of which must be there once."""
    values = parse_qs(parameters, strict_parsing=True, keep_blank_values=True)
    assert all(len(value) == 1 for value in values.values()), parameters
    return {name: value[0] for name, value in values.items()}


def tokens_for(type: str) -> dict[str, Any]:
    """Return the expected fragment of a link that signs in."""
    tokens = token_response({})
    del tokens["user"]
    return tokens | {"expires_in": "3600", "type": type}


def assert_signed_in(client: Any, response: Any, expected: dict[str, Any], **members: Any) -> Session:
    """Assert the whole token response for a user, with further members, and return its live session."""
    assert (response.status_code, response.json) == (200, token_response(expected) | members)
    session = session_of(client, response)
    assert session.get("/user").json == expected
    return session


def assert_signs_in(client: Any, type: str, token: str | None, target: str = SITE) -> Session:
    """Open a link, assert the whole redirect, and return the session, which must be live."""
    tokens = fragment(follow(client, type, token), target)
    assert tokens == tokens_for(type)
    session = Session(client, tokens["access_token"], tokens["refresh_token"], {})
    assert session.get("/user").status_code == 200
    return session


def assert_dead(client: Any, type: str, token: str | None) -> None:
    """Assert that a link has no effect, however it is opened."""
    assert fragment(follow(client, type, token)) == EXPIRED
    assert hand_in(client, type, token).status_code == 403
    assert fragment(press(client, type, token)) == EXPIRED


def later(database: Rows, **interval: int) -> None:
    """Age links, codes, authorization codes and counters."""
    for table, column in (
        ("one_time_tokens", "expires_at"),
        ("one_time_tokens", "code_expires_at"),
        ("typed_addresses", "expires_at"),
        ("authorization_codes", "expires_at"),
        ("failure_counts", "expires_at"),
        ("request_counts", "expires_at"),
    ):
        parts = ", ".join(f"{unit} => {amount}" for unit, amount in interval.items())
        database.run(f"UPDATE {table} SET {column} = {column} - make_interval({parts})")


def counted(database: Rows, key: str) -> int:
    """Return a count that must survive a crash; 0 if there is none."""
    return database.value(
        "SELECT coalesce(sum(count), 0)::int FROM failure_counts WHERE key = %(key)s", key=key
    )
