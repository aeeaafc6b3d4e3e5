"""The wings, and the settings that each is on by.

The application, the delivery process and the commands import those that are on. A wing is a package with some
of these functions: `init_app(app)` adds its routes, `init_lists(lists, settings)` what the house shows,
`init_domain(lists, settings)` what the domain asks, also in commands, `senders(settings, db, sealer)` its
senders by channel, without the database those that need none. `commands()` are the modules of its commands by
name, and `checks()` those of the doctor, whether it is on or not.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from auth.core.settings import Settings

if TYPE_CHECKING:
    from flask import Flask

_HOOKS = ("before_user_created", "custom_access_token", "send_email", "send_sms")
# The pages and the console come last: they show what the others have added to the lists.
WINGS: dict[str, Callable[[Settings], object]] = {
    "social": lambda _settings: True,
    "webhooks": lambda _settings: True,
    "openid": lambda settings: settings.oauth_server,
    "api_keys": lambda settings: settings.api_keys,
    "hooks": lambda settings: any(settings.hook(name) for name in _HOOKS),
    "captcha": lambda settings: settings.captcha != "off",
    "sso": lambda settings: settings.sso,
    "docs": lambda _settings: True,
    "pages": lambda settings: settings.pages,
    "console": lambda settings: settings.console,
}


def init_domain(parts: Any) -> None:
    """Let the wings add what the domain asks. Imports no page, so that commands start quickly."""
    for add in functions(on(parts.settings), "init_domain"):
        add(parts.lists, parts.settings)


def init_app(app: "Flask", parts: Any) -> None:
    """Let the wings add what the house shows, and their routes."""
    for add in functions(on(parts.settings), "init_lists"):
        add(parts.lists, parts.settings)
    for add in functions(on(parts.settings), "init_app"):
        add(app)


def commands() -> dict[str, str]:
    """Return the modules of the wings' commands by name."""
    return dict(chain.from_iterable(each().items() for each in functions(WINGS, "commands")))


def checks() -> list[Any]:
    """Return the wings' checks of a deployment."""
    return list(chain.from_iterable(each() for each in functions(WINGS, "checks")))


def on(settings: Settings) -> list[str]:
    """Return the names of the wings that are on."""
    return [wing for wing, is_on in WINGS.items() if is_on(settings)]


def functions(names: Iterable[str], name: str) -> Iterator[Callable[..., Any]]:
    """Yield what these wings have of a name."""
    for wing in names:
        if found := getattr(importlib.import_module(f"auth.extensions.{wing}"), name, None):
            yield found
