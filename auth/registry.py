"""The extensions, the settings that turn each on, and the interface of an extension.

The application, the delivery process and commands import the enabled extensions. No extension imports
another.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from auth.core.settings import Settings
from auth.core.settings.values.hooks import NAMES

if TYPE_CHECKING:
    from flask import Blueprint, Flask
    from flask.typing import ResponseReturnValue

    from auth.core.checks import Check
    from auth.core.providers.client import Provider
    from auth.core.sender import Sender
    from auth.core.tokens.derived_keys import Sealer
    from sql import Database, queries


@dataclass(frozen=True)
class Waiting:
    """An application whose request waits until the user has signed in, or has signed in again."""

    name: str
    redirect_uri: str
    login_hint: str | None
    # Whether the sign-in is as recent as the application requires.
    is_fresh: bool
    # The path and the fields of a form that sends the browser back without a sign-in.
    declining: str
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Candidate:
    """A new user, or a user with a first address, and the provider that gives it."""

    id: str
    email: str | None
    phone: str | None
    data: Mapping[str, Any]
    provider: str | None = None


class HookContext(Protocol):
    """The request or command that asks a hook, as the hook knows it."""

    @property
    def client(self) -> Mapping[str, Any]: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def db(self) -> "Database": ...
    def note_details(self, **details: object) -> None:
        """Note details for the audit log, in case the request is refused."""


# Refuses a candidate. Call it outside any transaction.
AdmissionHook = Callable[[HookContext, Candidate], None]
# Returns the claims to sign, from the claims and how the user authenticated. Call it outside any transaction.
TokenHook = Callable[[HookContext, dict[str, Any], str], dict[str, Any]]


class Extension(Protocol):
    """The interface of an extension.

    Everything is optional. Methods import their dependencies when they are called.
    """

    settings: Settings
    # Files of the package with views: those of the JSON API, pages for users, and sections of the console.
    api: Sequence[str] = ()
    pages: Sequence[str] = ()
    sections: Sequence[str] = ()
    # The place, path and title of sections in the console's navigation.
    navigation: Sequence[tuple[int, str, str]] = ()
    # The name of the command in the file `command`. It exists whether the extension is on or not.
    command: str | None = None

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def init_app(self, app: "Flask") -> None:
        """Register the routes."""
        for blueprint in self.blueprints(self.api):
            app.register_blueprint(blueprint)

    def blueprints(self, files: Sequence[str]) -> "list[Blueprint]":
        return [import_module(f"{type(self).__module__}.{file}").blueprint for file in files]

    # The JSON API

    def operation_checks(self) -> Mapping[str, Callable[[], None]]:
        """Return functions, by operation of auth/web/limits.py, that may refuse it once it is counted."""
        return {}

    def grants(self) -> "Mapping[str, Callable[[], ResponseReturnValue]]":
        """Return the views of further grants of POST /token, by name."""
        return {}

    def introspect(self, token: str, client: "queries.SelectClient | None") -> dict[str, Any] | None:
        """Return the claims of a token that is valid now, or None. Without a client, the service role key is
        asking.
        """
        return None

    def introspection_by_client(self) -> "Callable[[], tuple[str, queries.SelectClient]] | None":
        """Return the function that reads a client's introspection: its token and the client's row."""
        return None

    def metadata(self) -> Mapping[str, Any]:
        """Return members of the metadata below /.well-known."""
        return {}

    # Signing up and in

    def admission_hook(self) -> AdmissionHook | None:
        return None

    def token_hook(self) -> TokenHook | None:
        return None

    def find_provider(self, name: str, *, is_test: bool) -> "Provider | None":
        """Return a provider that is not in the settings. Refuse a disabled one, unless an owner tests it."""
        return None

    def provider_of(self, email: str) -> str | None:
        """Return the name of the provider that signs an email in, before its password is read."""
        return None

    # Pages and console

    def next_pages(self) -> Sequence[tuple[str, str]]:
        """Return pages to which a sign-in, a second step or a proof may return.

        Each is the pattern of a parameter `next`, and the page's path, where {} stands for that parameter.
        """
        return ()

    def waiting_behind(self, next_page: str) -> Waiting | None:
        """Return the application that waits behind a page, or None."""
        return None

    def goes_on(self, next_page: str) -> bool:
        """Whether a page asks the caller nothing, but goes on to its application."""
        return False

    def purpose_of(self, next_page: str) -> str | None:
        """Return the table of texts that say what a sign-in before a page is for (`purpose`, `next` and
        `new_here`), or None.
        """
        return None

    def account_tabs(self, person: "queries.SelectPerson") -> Mapping[str, Any]:
        """Return the variables of NAME/tab.html on the account page of a person, below the text `tab` of the
        catalogue NAME."""
        return {}

    def user_tabs(self, user_id: str) -> Mapping[str, Any]:
        """Return the variables of NAME/user_tab.html, which shows a user in the console."""
        return {}

    def data(self) -> Mapping[str, Any]:
        """Return members of the file with the user's data."""
        return {}

    # Delivery and operation

    def senders(self, db: "Database | None", sealer: "Sealer | None") -> "Mapping[str, Sender]":
        """Return senders by channel; without a database, those that do not need it."""
        return {}

    @staticmethod
    def checks() -> "Sequence[Check]":
        """Return the doctor's checks, whether the extension is on or not."""
        return ()


EXTENSIONS: Mapping[str, Callable[[Settings], object]] = {
    "social": lambda _settings: True,
    "webhooks": lambda _settings: True,
    "openid": lambda settings: settings.oauth_server,
    "api_keys": lambda settings: settings.api_keys,
    "hooks": lambda settings: any(settings.hook(name) for name in NAMES),
    "captcha": lambda settings: settings.captcha != "off",
    "sso": lambda settings: settings.sso,
    "organizations": lambda settings: settings.organizations != "off",
    "docs": lambda _settings: True,
    "pages": lambda settings: settings.pages,
    "console": lambda settings: settings.console,
}
# The paths that answer 404 while an extension is off: patterns, which stand for all paths below too, and the
# key of the error.
_WHILE_OFF = [
    ("openid", ("/oauth/", "/admin/oauth/", "/user/oauth/"), "feature_disabled"),
    ("api_keys", ("/user/api_keys/",), "api_keys_disabled"),
    ("sso", ("/sso/",), "saml_provider_disabled"),
    ("sso", ("/admin/custom-providers/",), "sso.feature_disabled"),
    ("organizations", ("/organizations/", "/user/invitations/"), "organizations.feature_disabled"),
    ("sso", ("/organizations/[^/]+/(domains|providers)/",), "sso.feature_disabled"),
]


def error_while_off(settings: Settings, path: str) -> str | None:
    """Return the key of the error for a path of an extension that is off, or None."""
    for name, paths, key in _WHILE_OFF:
        if any(re.match(each, f"{path}/") for each in paths) and not EXTENSIONS[name](settings):
            return key
    return None


def names_on(settings: Settings) -> list[str]:
    return [name for name, is_on in EXTENSIONS.items() if is_on(settings)]


def on(settings: Settings) -> tuple[Extension, ...]:
    return tuple(_class(name)(settings) for name in names_on(settings))


def commands() -> dict[str, str]:
    """Return the modules of commands by name."""
    return {each.command: f"{each.__module__}.command" for each in _classes() if each.command}


def checks() -> "list[Check]":
    return [check for each in _classes() for check in each.checks()]


def _classes() -> Iterator[type[Extension]]:
    return map(_class, EXTENSIONS)


def _class(name: str) -> type[Extension]:
    return import_module(f"auth.extensions.{name}").EXTENSION
