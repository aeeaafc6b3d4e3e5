"""Mail and SMS by the hooks send-email and send-sms, with GoTrue's requests and the finished message."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg2

from auth.senders import hooks, http
from auth.senders.hooks import HookFailed, HookRefused
from auth.senders.sender import Message, Refused, Sender, TryLater, one_line
from auth.settings import Settings
from auth.settings.values.hooks import Hook
from sql import Database

# GoTrue's names of messages with a link or code that the hook may put into its own text. Others are notices.
_ACTIONS = ("signup", "invite", "magiclink", "recovery", "email_change", "reauthentication")
_NOTICES = {"factor_added": "mfa_factor_enrolled", "factor_removed": "mfa_factor_unenrolled"}


@dataclass(eq=False, repr=False)
class HookSender(Sender):
    hook: Hook
    settings: Settings
    # None for a command: its messages have no user.
    db: Database | None = None
    timeout: float = http.TIMEOUT

    def send(self, recipient: str, message: Message) -> str:
        token = parse_qs(urlsplit(message.link or "").query).get("token", [""])[0]
        try:
            hooks.ask(self.hook, f"msg_{message.id}", self._payload(recipient, message, token), self.timeout)
        except HookRefused as refusal:
            reason = one_line(str(refusal), message.link, token, message.code)
            is_for_later = refusal.status == 429 or refusal.status >= 500
            raise TryLater(reason) if is_for_later else Refused(reason) from None
        except HookFailed as failure:
            reason = one_line(failure.reason, message.link, token, message.code)
            raise TryLater(reason, is_down=failure.is_down) from failure
        return f"the hook {self.hook.name}"

    def _payload(self, recipient: str, message: Message, token: str) -> dict[str, Any]:
        row = self._row(message)
        user = json.loads(row.user_object) if row and row.user_object else {}
        now = datetime.now(UTC).isoformat()
        metadata = {"uuid": message.id, "time": now, "name": self.hook.name, "ip_address": ""}
        # GoTrue's hooks send to the address of the user, which may be another one: that of a notice before a
        # change, for example.
        if self.hook.name == "send-sms":
            phone = recipient.removeprefix("+")
            sms = {"otp": message.code or "", "phone": phone, "message": message.text.strip()}
            return {"metadata": metadata, "user": user | {"phone": phone}, "sms": sms}
        phone = (user.get("phone") or "").removeprefix("+")
        data = self._email_data(recipient, message, token, row.variables if row else {})
        return {"metadata": metadata, "user": user | {"email": recipient, "phone": phone}, "email_data": data}

    def _email_data(
        self, recipient: str, message: Message, token: str, variables: dict[str, Any]
    ) -> dict[str, str]:
        kind = message.kind
        is_action = kind in _ACTIONS
        return {
            "token": (message.code or "") if is_action else "",
            "token_hash": token if is_action else "",
            "redirect_to": variables.get("redirect_to") or self.settings.site_url,
            "email_action_type": kind if is_action else f"{_NOTICES.get(kind, kind)}_notification",
            "site_url": self.settings.base_url,
            "token_new": "",
            "token_hash_new": "",
            "old_email": recipient if kind == "email_changed" else "",
            "old_phone": "",
            "provider": variables.get("provider") or "",
            "factor_type": "",
            # Not GoTrue's: the message as we would send it.
            "subject": message.subject,
            "text": message.text,
            "html": message.html or "",
            "link": message.link or "",
        }

    def _row(self, message: Message) -> Any:
        try:
            return self.db.one("select_message_for_hook", id=message.id) if self.db else None
        except psycopg2.Error as error:
            raise TryLater(f"the database isn't responding: {one_line(str(error))}", is_down=True) from error
