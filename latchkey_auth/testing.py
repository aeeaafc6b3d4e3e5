"""Tests of applications against a real service; docs/testing.md.

Needs the standard library only, and `mint` the package `cryptography`.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, cast
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from latchkey_auth.minting import jwks, mint

__all__ = ["Control", "Inbox", "Latchkey", "LatchkeyError", "Organization", "User", "jwks", "launch", "mint"]

# Never by a proxy of the environment.
_open = build_opener(ProxyHandler({})).open
_WAIT = 5  # seconds for a message, which a browser may not have asked for yet


class LatchkeyError(Exception):
    """The test server refused, or did not start. The message is for the developer."""


class Control:
    """The HTTP interface of a test server, or of one of its services."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self._key = url, key

    def call(self, act: str, **arguments: Any) -> Any:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        request = Request(f"{self.url}/{act}", json.dumps(arguments).encode(), headers)  # noqa: S310
        try:
            with _open(request) as response:
                return json.load(response)
        except HTTPError as error:
            with error:
                raise LatchkeyError(json.load(error)["error"]) from None

    def start(self, settings: Mapping[str, str]) -> "Latchkey":
        """Start a service with an empty database."""
        started = self.call("start", settings=dict(settings))
        return Latchkey(Control(started.pop("control"), self._key), **started)


def launch(
    command: str | None, lifeline: IO[bytes] | int, log: Path
) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """Start a test server that ends with its standard input, and return its process, URL and key."""
    program = shlex.split(command or "") or [
        sys.executable,
        "-P",
        str(Path(__file__).with_name("__main__.py")),
    ]
    # The application's modules must not come before those that the service imports.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with log.open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603
            [*program, "test-server", "--json"],
            env=environment,
            stdin=lifeline,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # Ctrl-C ends pytest, which ends this
        )
    with cast(IO[str], process.stdout) as output:
        line = output.readline()
    if not line:
        process.wait()
        raise LatchkeyError(f"latchkey test-server did not start:\n{log.read_text(encoding='utf-8')[-2000:]}")
    return process, json.loads(line)


class Latchkey:
    """A running service with a database of its own."""

    def __init__(
        self, control: Control, url: str, service_role_key: str, webhook_secret: str, hook_secret: str
    ) -> None:
        self.url, self.service_role_key = url, service_role_key
        self.webhook_secret, self.hook_secret = webhook_secret, hook_secret
        self.inbox = Inbox(control)
        self._control = control

    def user(
        self,
        *,
        email: str | None = None,
        phone: str | None = None,
        password: str | None = None,
        confirmed: bool = True,
        role: str | None = None,
        factors: list[str] | None = None,
        anonymous: bool = False,
        app_metadata: dict[str, Any] | None = None,
        user_metadata: dict[str, Any] | None = None,
    ) -> "User":
        """Create a user, by default with a new confirmed email. `factors` may be `["totp"]`."""
        parameters = {name: value for name, value in locals().items() if name != "self"}
        return User(self, **self._control.call("user", **parameters))

    def users(self, count: int) -> "list[User]":
        """Create many users with one password."""
        return [User(self, **user) for user in self._control.call("users", count=count)]

    def organization(
        self, name: str, *, owner: "User | None" = None, members: "Mapping[User, str] | None" = None
    ) -> "Organization":
        """Create an organization. `members` are roles of users, besides that of the owner.

        It needs the setting AUTH_ORGANIZATIONS.
        """
        roles = {user.id: role for user, role in (members or {}).items()}
        act = {"name": name, "owner": owner and owner.id, "members": roles}
        return Organization(self, **self._control.call("organization", **act))

    @property
    def webhooks(self) -> list[Any]:
        """The events so far, each with `headers`, `text` and `body` as a webhook receives them."""
        return [SimpleNamespace(**event) for event in self._control.call("webhooks")]

    @property
    def hooks(self) -> list[Any]:
        """The calls of hooks whose setting is `capture`: `hook` is the name, such as `send-email`."""
        return [SimpleNamespace(**call) for call in self._control.call("hooks")]

    def answer(self, hook: str, body: Any, status: int = 200) -> None:
        """Set what a captured hook answers in this test."""
        self._control.call("answer", hook=hook, body=body, status=status)

    def fail(self, request: str, status: int = 503, times: int = 1) -> None:
        """Fail the next requests: `refresh`, or a method and a path with wildcards, such as `PUT /user`."""
        self._control.call("fail", request=request, status=status, times=times)

    def age(
        self, user: "User", *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Let time pass for a user's rows: sessions, links, codes, bans. Issued tokens keep their expiry."""
        self._control.call(
            "age", user_id=user.id, seconds=((days * 24 + hours) * 60 + minutes) * 60 + seconds
        )

    def reset(self) -> None:
        """Remove everything; the fixture does so before each test."""
        self._control.call("reset")

    def act(self, name: str, **arguments: Any) -> Any:
        return self._control.call(name, **arguments)


class Inbox:
    """Mail and SMS."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def all(self, to: "User | str | None" = None) -> list[Any]:
        """Return the messages, oldest first, with `to kind subject text html link code`."""
        return self._fetch(to, 0)

    def last(self, to: "User | str") -> Any:
        """Return the newest message to a user or an address; wait if there is none yet."""
        if messages := self._fetch(to, _WAIT):
            return messages[-1]
        raise LatchkeyError(f"No message was sent to {_address(to)}")

    def _fetch(self, to: "User | str | None", wait: float) -> list[Any]:
        return [SimpleNamespace(**each) for each in self._control.call("inbox", to=_address(to), wait=wait)]


def _address(to: "User | str | None") -> str | None:
    return (to.email or to.phone) if isinstance(to, User) else to


class Organization:
    """An organization. Tokens that its members got before a change have their former role."""

    def __init__(self, latchkey: Latchkey, id: str, slug: str, name: str) -> None:
        self.id, self.slug, self.name = id, slug, name
        self._latchkey = latchkey

    def add(self, user: "User", role: str = "member") -> None:
        """Add a user, or change the role of a member."""
        self._latchkey.act("member", organization_id=self.id, user_id=user.id, role=role)

    def remove(self, user: "User") -> None:
        self._latchkey.act("member", organization_id=self.id, user_id=user.id, role=None)


class User:
    """A user. Each token and cookie is of a new session."""

    def __init__(
        self,
        latchkey: Latchkey,
        id: str,
        email: str | None = None,
        phone: str | None = None,
        password: str | None = None,
    ) -> None:
        self.id, self.email, self.phone, self.password = id, email, phone, password
        self._latchkey = latchkey

    def session(
        self,
        *,
        aal: str | None = None,
        expires_in: int | None = None,
        claims: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Sign in and return the token response, with `access_token` and `refresh_token`.

        A user with a factor is at `aal2`; `aal="aal1"` leaves the second step out. `expires_in` is in
        seconds, negative for an expired access token. `claims` are added to it, or removed if None.
        """
        options = {"aal": aal, "expires_in": expires_in, "claims": claims and dict(claims)}
        return dict(self._latchkey.act("token", user_id=self.id, **options))

    def token(self, **options: Any) -> str:
        """Return an access token. Takes what `session` takes."""
        return str(self.session(**options)["access_token"])

    def headers(self, **options: Any) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(**options)}"}

    def cookies(self, *, aal: str | None = None) -> list[dict[str, Any]]:
        """Sign a browser in on Latchkey's pages: return cookies for Playwright's `add_cookies`."""
        return list(self._latchkey.act("cookies", user_id=self.id, aal=aal))

    def totp(self) -> str:
        """Return a code of the user's authenticator app. The service accepts it once."""
        return str(self._latchkey.act("totp", user_id=self.id))

    def supabase(self, **options: Any) -> Any:
        """Return a client of the package `supabase`, signed in."""
        import supabase

        client = supabase.create_client(self._latchkey.url, "anon")
        session = self.session(**options)
        client.auth.set_session(session["access_token"], session["refresh_token"])
        return client
