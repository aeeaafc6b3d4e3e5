"""`latchkey keys create` and `end`: administrative keys."""

import click

from auth.cli import NumberRange, Unusable, as_operator, json_option, printable, show
from auth.core import constants
from auth.flows.admin import admin_keys
from auth.flows.admin.admin_keys import SCOPES
from auth.rules.tokens import is_expired
from auth.web import fields
from auth.web.input import check
from auth.web.schemas import Input

_LONGEST = 3650
_NewKey = Input.of(name=fields.Name(required=True))


@click.command("create", short_help="Create an administrative key, and print it once.")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    required=True,
    help="What the key opens. Repeat it for each scope.",
)
@click.option(
    "--days",
    type=NumberRange(1, _LONGEST),
    metavar="DAYS",
    help="End the key after DAYS days. It works until then, or without end.",
)
@json_option
def create(name: str, scopes: tuple[str, ...], days: int | None) -> None:
    """Create a key that opens the administrative operations of its scopes, for the program NAME.

    docs/api-keys.md lists the operations of each scope. The audit log names the key.

    \b
    Example: latchkey keys create billing --scope users:read --days 90
    """
    with as_operator() as asked:
        name = check(_NewKey, {"name": name.strip()})["name"]
        in_order = [scope for scope in SCOPES if scope in scopes]
        id, key = admin_keys.create(asked, name, in_order, days * constants.DAY if days else None)
    show({"id": id, "name": name, "scopes": in_order, "key": key}, key)


@click.command("end", short_help="End an administrative key.")
@click.argument("name", metavar="NAME|KEY_ID")
@json_option
def end(name: str) -> None:
    """End an administrative key. Programs that use it lose their access at once.

    \b
    Example: latchkey keys end billing
    """
    with as_operator() as asked:
        key = next((key for key in admin_keys.listed(asked) if name in (key.name, key.id)), None)
        if key is None:
            raise Unusable(
                f"No administrative key is called {printable(name)}. Find it by: latchkey keys list"
            )
        admin_keys.end(asked, key.id)
    show({"id": key.id, "name": key.name}, printable(f"{key.name} is ended."))


def show_all() -> None:
    """Print the administrative keys."""
    with as_operator() as asked:
        for key in admin_keys.listed(asked):
            state = "expired" if is_expired(key) else "in use"
            until = key.expires_at.date().isoformat() if key.expires_at else None
            ends = f", until {until}" if until else ""
            last_use = f"last used {key.last_used_on}" if key.last_used_on else "never used"
            # The members of keys of any kind, then those of administrative keys.
            members: dict[str, object] = {"kind": "admin", "id": key.id, "state": state, "active_from": None}
            members |= {"needed_by": [], "place": "database", "name": key.name, "scopes": key.scopes}
            members |= {"expires_at": until, "last_used_on": key.last_used_on}
            line = f"{'admin':<13}{key.name}  {state}{ends}, {' '.join(key.scopes)}, {last_use} (database)"
            show(members, printable(line))


COMMANDS = (create, end)
