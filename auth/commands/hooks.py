"""`latchkey hooks test`: what a hook is asked, and what it answers."""

import json
import sys
import time
import uuid
from typing import Any

import click

from auth.commands.common import Unusable, acting, json_option, known_user
from auth.context import Latchkey
from auth.hooks import access_token, before_user_created
from auth.senders import hooks
from auth.senders.hooks import HookFailed, HookRefused

# The names of their settings, as arguments. `latchkey mail-test` tries those that send messages.
_NAMES = {"before-user-created": "before_user_created", "custom-access-token": "custom_access_token"}


@click.group("hooks", short_help="Try out hooks.")
def command() -> None:
    """Try out hooks."""


@command.command("test", short_help="Ask a hook about a user.")
@click.argument("name", type=click.Choice(list(_NAMES)))
@click.option(
    "--user", "subject", metavar="EMAIL|PHONE|USER_ID", required=True, help="The user to ask about."
)
@json_option
def test(name: str, subject: str, as_json: bool) -> None:
    """Ask a hook about a user, and print the request, the answer and the verdict.

    Nothing is issued or created, and what a SQL function writes is rolled back. Exits with 3 if the hook
    refuses or fails.

    \b
    Example: latchkey hooks test custom-access-token --user alice@example.com
    """
    setting = _NAMES[name]
    with acting() as parts:
        hook, user = parts.settings.hook(setting), known_user(parts, subject.strip())
        if hook is None:
            raise click.ClickException(f"AUTH_HOOK_{setting.upper()} is not set.")
        if user is None:
            raise Unusable(f"No user has the address or id {subject}.")
        known = json.loads(parts.db.one("select_any_user", id=user.id).user_object)
        if setting == "custom_access_token":
            event = access_token.event_of(hook, _claims(parts, known), "password")
        else:
            about = {"email": user.email, "phone": user.phone, "data": known["user_metadata"]}
            event = before_user_created.event_of(hook, known["id"], **about)
        result: dict[str, Any] = {"request": event, "answer": None, "verdict": "accepted"}
        try:
            if hook.function:
                result["answer"] = access_token.try_function(hook.name, hook.function, event)
            else:
                result["answer"] = hooks.ask(hook, f"msg_{uuid.uuid4()}", event)
            if setting == "custom_access_token":
                access_token.checked(hook.name, event["claims"], result["answer"])
        except (HookRefused, HookFailed) as error:
            result["verdict"] = str(error)
    for member, value in result.items() if not as_json else ():
        click.echo(f"{member}: {value if isinstance(value, str) else json.dumps(value, indent=2)}")
    if as_json:
        click.echo(json.dumps(result))
    if result["verdict"] != "accepted":
        sys.exit(3)


def _claims(parts: Latchkey, user: dict[str, Any]) -> dict[str, Any]:
    now = int(time.time())
    amr = [{"method": "password", "timestamp": now}]
    own = {"session_id": str(uuid.uuid4()), "aal": "aal1", "amr": amr}
    return parts.access_tokens.compose(user, now, own)
