"""Hooks of the operator, which decide about tokens and users, or send messages."""

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from auth.registry import AdmissionHook, Extension, TokenHook

if TYPE_CHECKING:
    from auth.core.checks import Check
    from auth.core.sender import Sender
    from auth.core.tokens.derived_keys import Sealer
    from sql import Database


class Hooks(Extension):
    command = "hooks"

    def admission_hook(self) -> AdmissionHook | None:
        from auth.extensions.hooks import before_user_created

        hook = self.settings.hook("before_user_created")
        return functools.partial(before_user_created.ask, hook) if hook else None

    def token_hook(self) -> TokenHook | None:
        from auth.extensions.hooks import access_token

        hook = self.settings.hook("custom_access_token")
        return functools.partial(access_token.ask, hook) if hook else None

    def senders(self, db: "Database | None", sealer: "Sealer | None") -> "Mapping[str, Sender]":
        """Return the senders of mail and SMS that are hooks."""
        from auth.extensions.hooks.message_hooks import HookSender

        hooks = {"email": self.settings.hook("send_email"), "sms": self.settings.hook("send_sms")}
        return {channel: HookSender(hook, self.settings, db) for channel, hook in hooks.items() if hook}

    @staticmethod
    def checks() -> "Sequence[Check]":
        from auth.extensions.hooks.checks import CHECKS

        return CHECKS


EXTENSION = Hooks
