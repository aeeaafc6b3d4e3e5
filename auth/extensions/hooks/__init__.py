"""The operator's own code: hooks that are asked about tokens and users, or that send messages."""

import functools
from typing import TYPE_CHECKING

from auth.core.settings import Settings

if TYPE_CHECKING:
    from auth.core.tokens.derived_keys import Sealer
    from auth.delivery.senders.sender import Sender
    from auth.flows.checks import Check
    from auth.web.context import Lists
    from sql import Database


def init_domain(lists: "Lists", settings: Settings) -> None:
    from auth.extensions.hooks import access_token, before_user_created

    if hook := settings.hook("before_user_created"):
        lists.new_user.append(functools.partial(before_user_created.ask, hook))
    if hook := settings.hook("custom_access_token"):
        lists.claims.append(functools.partial(access_token.ask, hook))


def senders(settings: Settings, db: "Database | None", _sealer: "Sealer | None") -> "dict[str, Sender]":
    """Return the senders of mail and SMS that are hooks, by channel."""
    from auth.extensions.hooks.message_hooks import HookSender

    hooks = {"email": settings.hook("send_email"), "sms": settings.hook("send_sms")}
    return {channel: HookSender(hook, settings, db) for channel, hook in hooks.items() if hook}


def commands() -> dict[str, str]:
    return {"hooks": "auth.extensions.hooks.command"}


def checks() -> "list[Check]":
    from auth.extensions.hooks.checks import CHECKS

    return CHECKS
