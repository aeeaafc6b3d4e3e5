"""`latchkey hooks secret` makes the secret of a hook's requests, and `test` shows a request and its
answer."""

import json
import sys
import time
import uuid
from datetime import UTC, datetime
from typing import Any

import click

from auth.core import promises
from auth.core.net.webhook_urls import new_secret
from auth.core.settings.values.hooks import NAMES, Hook
from auth.delivery.senders.sender import Message
from auth.extensions.hooks import access_token, before_user_created
from auth.extensions.hooks import http_hooks as hooks
from auth.extensions.hooks.http_hooks import HookFailed, HookRefused
from auth.extensions.hooks.message_hooks import HookSender
from auth.flows.commands import Unusable, acting, found_user, json_option, show
from auth.web.context import Latchkey
from auth.web.errors import found
from sql import queries

# The names of their settings, by argument.
_NAMES = {name.replace("_", "-"): name for name in NAMES}


@click.group("hooks", short_help="Make secrets of hooks, and try hooks out.")
def command() -> None:
    """Make secrets of hooks, and try hooks out."""


@command.command("secret", short_help="Make the secret that signs the requests of a hook.")
def secret() -> None:
    """Print a new secret for AUTH_HOOK_…_SECRETS and the server of the hook, which verifies requests with it.

    It has the form of Standard Webhooks. Nothing is changed.

    \b
    Example: latchkey hooks secret
    """
    click.echo(f"v1,{new_secret()}")


@command.command("test", short_help="Ask a hook about a user.")
@click.argument("name", metavar="HOOK", type=click.Choice(list(_NAMES)))
@click.option("--user", "subject", metavar="EMAIL|PHONE|USER_ID", required=True, help="Ask about this user.")
@json_option
def test(name: str, subject: str) -> None:
    """Ask HOOK about a user, and print the request, the answer and the verdict.

    HOOK is before-user-created, custom-access-token, send-email or send-sms. Nothing is issued or created,
    and what a SQL function writes is rolled back. send-email and send-sms send the user a test message.

    Exits with 3 if the hook refuses or fails.

    \b
    Example: latchkey hooks test custom-access-token --user alice@example.com
    """
    setting = _NAMES[name]
    with acting() as asked:
        parts = asked.parts
        hook = parts.settings.hook(setting)
        if hook is None:
            raise click.ClickException(
                f"AUTH_HOOK_{setting.upper()} is not set. Set it to the URL of the hook."
            )
        user = found_user(parts, subject)
        known = json.loads(found(queries.select_any_user(parts.db, id=user.id), "user_not_found").user_object)
        timeout: float = promises.HOOK_TIMEOUT
        if setting == "custom_access_token":
            event = access_token.event_of(hook, _claims(parts, known), "password")
        elif setting.startswith("send_"):
            address = user.email if setting == "send_email" else user.phone
            if address is None:
                raise Unusable(f"{subject} has no address for {name}. Choose another user.")
            event, timeout = _message(parts, hook, known, address), promises.HTTP_TIMEOUT
        else:
            about = {"email": user.email, "phone": user.phone, "data": known["user_metadata"]}
            event = before_user_created.event_of(hook, known["id"], **about)
        result: dict[str, Any] = {"request": event, "answer": None, "verdict": "accepted"}
        try:
            if hook.function:
                result["answer"] = access_token.try_function(hook.name, hook.function, event)
            else:
                result["answer"] = hooks.ask(hook, f"msg_{uuid.uuid4()}", event, timeout)
            if setting == "custom_access_token":
                access_token.checked(hook.name, event["claims"], result["answer"])
        except (HookRefused, HookFailed) as error:
            result["verdict"] = str(error)
    show(result, *(f"{member}: {_text(value)}" for member, value in result.items()))
    if result["verdict"] != "accepted":
        sys.exit(3)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2)


def _message(parts: Latchkey, hook: Hook, user: dict[str, Any], address: str) -> dict[str, Any]:
    subject = f"Test message from {parts.settings.site_url}"
    message = Message(str(uuid.uuid4()), "test", datetime.now(UTC), subject, f"{subject}\n")
    event = HookSender(hook, parts.settings).payload(address, message)
    return event | {"user": user | event["user"]}


def _claims(parts: Latchkey, user: dict[str, Any]) -> dict[str, Any]:
    now = int(time.time())
    amr = [{"method": "password", "timestamp": now}]
    own = {"session_id": str(uuid.uuid4()), "aal": "aal1", "amr": amr}
    return parts.access_tokens.compose(user, now, own)
