"""Mail and SMS through the hooks send-email and send-sms, with GoTrue's requests and the finished message."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg2

from auth.core import constants
from auth.core.sender import RefusedByServer, RenderedMessage, Sender, TryLater
from auth.core.settings import Settings
from auth.core.settings.values.hooks import Hook
from auth.extensions.hooks import http_hooks
from auth.extensions.hooks.http_hooks import HookFailed, HookRefused
from sql import Database, queries

# GoTrue's names of messages with a link or code that the hook may put into its own text. The rest are
# notices.
_ACTIONS = ("signup", "invite", "magiclink", "recovery", "email_change", "reauthentication")
_NOTICES = {"factor_added": "mfa_factor_enrolled", "factor_removed": "mfa_factor_unenrolled"}


@dataclass(eq=False, repr=False)
class HookSender(Sender):
    hook: Hook
    settings: Settings
    # None for a command, whose messages have no user.
    db: Database | None = None

    def send(self, recipient: str, message: RenderedMessage) -> str:
        try:
            payload = self.payload(recipient, message)
            http_hooks.ask(self.hook, f"msg_{message.id}", payload, constants.HTTP_TIMEOUT)
        except HookRefused as refusal:
            is_for_later = refusal.status == 429 or refusal.status >= 500
            raise TryLater(refusal.reason) if is_for_later else RefusedByServer(refusal.reason) from None
        except HookFailed as failure:
            raise TryLater(failure.reason, is_down=failure.is_down) from failure
        return f"the hook {self.hook.name}"

    def payload(self, recipient: str, message: RenderedMessage) -> dict[str, Any]:
        try:
            row = queries.select_message_for_hook(self.db, id=message.id) if self.db else None
        except psycopg2.Error as error:
            raise TryLater(f"the database isn't responding: {error}", is_down=True) from error
        user = json.loads(row.user_object) if row and row.user_object else {}
        now = datetime.now(UTC).isoformat()
        metadata = {"uuid": message.id, "time": now, "name": self.hook.name, "ip_address": ""}
        # GoTrue's hooks send to the address of the user, but a message may go to another one, such as the
        # previous address.
        if self.hook.name == "send-sms":
            phone = recipient.removeprefix("+")
            # GoTrue's requests do not contain the channel.
            channel = (row and row.variables.get("channel")) or "sms"
            sms = {"otp": message.code or "", "phone": phone, "channel": channel}
            sms["message"] = message.text.strip()
            return {"metadata": metadata, "user": user | {"phone": phone}, "sms": sms}
        phone = (user.get("phone") or "").removeprefix("+")
        data = self._email_data(recipient, message, row.variables if row else {})
        return {"metadata": metadata, "user": user | {"email": recipient, "phone": phone}, "email_data": data}

    def _email_data(
        self, recipient: str, message: RenderedMessage, variables: Mapping[str, str]
    ) -> dict[str, str]:
        kind = message.kind
        is_action = kind in _ACTIONS
        return {
            "token": (message.code or "") if is_action else "",
            "token_hash": message.token if is_action else "",
            "redirect_to": variables.get("redirect_to") or self.settings.site_url,
            "email_action_type": kind if is_action else f"{_NOTICES.get(kind, kind)}_notification",
            "site_url": self.settings.base_url,
            "token_new": "",
            "token_hash_new": "",
            "old_email": recipient if kind == "email_changed" else "",
            "old_phone": "",
            "provider": variables.get("provider") or "",
            "factor_type": "",
            # GoTrue's requests lack these members, the message as we would send it.
            "subject": message.subject,
            "text": message.text,
            "html": message.html or "",
            "link": message.link or "",
        }
