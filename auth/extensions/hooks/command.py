"""`latchkey hooks secret` makes the secret of a hook's requests, and `test` shows a request and its
answer."""

import json
import sys
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import click

from auth.cli import Unusable, as_operator, found_user, json_option, show
from auth.core import constants
from auth.core.net.webhook_urls import new_secret
from auth.core.sender import RenderedMessage
from auth.core.settings.values.hooks import NAMES, Hook
from auth.extensions.hooks import access_token, before_user_created, http_hooks
from auth.extensions.hooks.http_hooks import HookFailed, HookRefused
from auth.extensions.hooks.message_hooks import HookSender
from auth.flows.sessions.issuing import Token, compose
from auth.registry import Candidate
from auth.web.asked import Asked
from auth.web.errors import found
from sql import queries

# The names of their settings, by argument.
_NAMES = {name.replace("_", "-"): name for name in NAMES}


class _Rollback(Exception):
    pass


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
    with as_operator() as asked:
        parts = asked.parts
        hook = parts.settings.hook(setting)
        if hook is None:
            raise click.ClickException(
                f"AUTH_HOOK_{setting.upper()} is not set. Set it to the URL of the hook."
            )
        event = _event(asked, hook, setting, subject)
        timeout = constants.HTTP_TIMEOUT if setting.startswith("send_") else constants.HOOK_TIMEOUT
        result: dict[str, Any] = {"request": event, "answer": None, "verdict": "accepted"}
        try:
            if hook.function:
                with suppress(_Rollback), parts.db.transaction() as tx:
                    result["answer"] = access_token.call_function(tx, hook.name, hook.function, event)
                    raise _Rollback
            else:
                result["answer"] = http_hooks.ask(hook, f"msg_{uuid.uuid4()}", event, timeout)
            if setting == "custom_access_token":
                access_token.checked(hook.name, event["claims"], result["answer"])
        except (HookRefused, HookFailed) as error:
            result["verdict"] = str(error)
    texts = (each if isinstance(each, str) else json.dumps(each, indent=2) for each in result.values())
    show(result, *(f"{member}: {text}" for member, text in zip(result, texts, strict=True)))
    if result["verdict"] != "accepted":
        sys.exit(3)


def _event(asked: Asked, hook: Hook, setting: str, subject: str) -> dict[str, Any]:
    """Return the request to a hook about a user, by a made-up sign-in or message."""
    parts = asked.parts
    row = found_user(parts, subject)
    token_row = found(queries.select_token(parts.db, user_id=row.id, session_id=None), "user_not_found")
    user = json.loads(token_row.user_object)
    if setting == "before_user_created":
        candidate = Candidate(user["id"], row.email, row.phone, user["user_metadata"])
        return before_user_created.event_of(asked, hook, candidate)
    if setting == "custom_access_token":
        now = int(time.time())
        token = Token(
            session_id=str(uuid.uuid4()),
            aal="aal1",
            amr=[{"method": "password", "timestamp": now}],
            lacks_step=False,
            issued_at=now,
            user_object=token_row.user_object,
            memberships=token_row.memberships,
            authenticated_at=token_row.now,
        )
        return access_token.event_of(asked, hook, compose(parts, token), "password")
    address = row.email if setting == "send_email" else row.phone
    if address is None:
        raise Unusable(f"{subject} has no address for {hook.name}. Choose another user.")
    title = f"Test message from {parts.settings.site_url}"
    message = RenderedMessage(str(uuid.uuid4()), "test", datetime.now(UTC), title, f"{title}\n")
    event = HookSender(hook, parts.settings).payload(address, message)
    return event | {"user": user | event["user"]}
