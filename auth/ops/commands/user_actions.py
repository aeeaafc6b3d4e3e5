"""`latchkey users find`, `show`, `ban` and others: users, as in the console."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import click
from marshmallow import ValidationError
from psycopg2.errors import CheckViolation, UniqueViolation

from auth.cli import (
    Unusable,
    as_operator,
    ask,
    found_user,
    json_option,
    printable,
    prints_json,
    show,
    yes_option,
)
from auth.core import json_bodies
from auth.core.json_bodies import JsonObject
from auth.flows import failure_counts
from auth.flows.admin import lists, messages, searches, users
from auth.flows.admin.schemas import AnyUserChange
from auth.flows.admin.user_actions import ACTIONS, UserAction, name_of
from auth.html import form_schemas
from auth.ops.commands.common import failures
from auth.ops.commands.explain import lines_of_summary, summary_of
from auth.rules.users import ADDRESS_KINDS
from auth.web import fields
from auth.web.asked import Asked
from auth.web.error_handlers import key_of_constraint
from auth.web.errors import ApiError, found
from auth.web.input import check
from sql import queries

_MOST_FOUND = 500
_EXAMPLE = '{"plan": "free"}'
_subject = click.argument("subject", metavar="EMAIL|PHONE|USER_ID")


@contextmanager
def _acting_on(subject: str) -> Iterator[tuple[Asked, "queries.SelectSummary"]]:
    with as_operator() as asked:
        yield asked, found_user(asked.parts, subject)


def _duration(_context: click.Context, _parameter: click.Parameter, value: str) -> float:
    try:
        return fields.BanDuration().deserialize(value) or math.inf
    except ValidationError:
        raise click.BadParameter("Must be a duration such as 90m, 24h or 30d, or permanent.") from None


@click.command("show", short_help="Show a user.")
@_subject
@json_option
def show_user(subject: str) -> None:
    """Show a user: addresses, factors, sessions and applications. `latchkey explain` shows the history too.

    \b
    Example: latchkey users show alice@example.com
    """
    with _acting_on(subject) as (asked, user):
        if prints_json():
            click.echo(found(queries.select_any_user(asked.db, id=user.id), "user_not_found").user_object)
            return
        for line in lines_of_summary(summary_of(asked.settings, asked.db, user)):
            click.echo(line)


@click.command("find", short_help="Find users by name, email or domain.")
@click.argument("text", metavar="TEXT")
@json_option
def find(text: str) -> None:
    """Find up to 500 users by words of the name or email, or by the start of an email, phone, id or @domain.

    \b
    Example: latchkey users find "ada lov"
             latchkey users find @spam.example --json
    """
    with as_operator() as asked:
        ids: list[str] | None = []
        for filters in searches.readings(text).values():
            if ids == [] and any(filters.values()):
                ids = queries.few_users(asked.db, filters=filters, few=_MOST_FOUND).ids
        if not ids:
            if ids is None:
                raise Unusable(
                    f"More than {_MOST_FOUND} users match {text}. Add a word, or the whole address."
                )
            raise Unusable(f"No users match {text}. Try the start of a name or an address.")
        rows = queries.describe_users(asked.db, ids=ids, locks=failure_counts.locks(asked.settings))
        for user in sorted(rows, key=name_of):
            _show_line(user)


def _show_line(user: "queries.DescribeUsers") -> None:
    columns = {name: getattr(user, name) for name in ("id", "email", "phone", "name")}
    states = ("banned" if user.is_banned else None, "locked" if user.is_locked else None)
    parts = (user.id, name_of(user), user.name, *states)
    show(
        columns | {"banned": user.is_banned, "locked": user.is_locked},
        printable("  ".join(filter(None, parts))),
    )


@click.command("list", short_help="List all users.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the file that the console exports.")
@json_option
def list_command(as_csv: bool) -> None:
    """List all users, in the order of their ids.

    \b
    Example: latchkey users list --csv > users.csv
    """
    with as_operator() as asked:
        if as_csv:
            for piece in lists.export(asked, {}):
                click.echo(piece, nl=False)
            return
        for user in chain.from_iterable(lists.pages(asked, {})):
            _show_line(user)


@click.command("invite", short_help="Invite users by email.")
@click.argument("emails", nargs=-1, required=True, metavar="EMAIL...|FILE")
@click.option("--groups", default="", metavar="NAME,NAME", help="Put the users into these groups.")
@json_option
def invite(emails: tuple[str, ...], groups: str) -> None:
    """Create a user for each email, up to 500, and send a link that is valid for seven days.

    FILE has one email per line. Exits with 3 if an invitation was refused. AUTH_RATE_LIMIT_INVITE counts.

    \b
    Example: latchkey users invite ada@example.com
             latchkey users invite team.txt --groups staff,ops
    """
    has_refused = False
    with as_operator() as asked, failures(Path(emails[0])):
        texts = [
            Path(each).read_text(encoding="utf-8-sig", errors="replace") if Path(each).is_file() else each
            for each in emails
        ]
        group_names = check(form_schemas.InvitationForm(only=["groups"]), {"groups": groups})["groups"]
        for email in lists.emails_in("\n".join(texts)):
            reason = None
            try:
                messages.invite(asked, messages.invitation(email, group_names))
            except ApiError as error:
                has_refused, reason = True, error.details or error.msg
            text = f"{email}: refused: {reason}" if reason else f"{email} is invited."
            show({"email": email, "reason": reason}, printable(text))
    if has_refused:
        raise click.exceptions.Exit(3)


def _object(_context: click.Context, _parameter: click.Parameter, text: str | None) -> JsonObject | None:
    try:
        return None if text is None else json_bodies.decode(text.encode())
    except json_bodies.InvalidJson as error:
        reason = str(error).removeprefix("the body ")
        raise click.BadParameter(f"It {reason}. Give an object such as {_EXAMPLE}.") from None


@click.command("change", short_help="Change a user's role, addresses or app metadata.")
@_subject
@click.option("--role", metavar="ROLE", help="Give the user ROLE. create-admin makes administrators.")
@click.option("--email", help="Set this email address as confirmed, or remove it with an empty text.")
@click.option("--phone", help="Set this phone number as confirmed, or remove it with an empty text.")
@click.option(
    "--app-metadata", metavar="JSON", callback=_object, help="Merge this object; null removes a member."
)
@click.option("--void-password", is_flag=True, help="Void the password. “Forgot password?” sets another.")
@json_option
def change(subject: str, app_metadata: JsonObject | None, void_password: bool, **options: str | None) -> None:
    """Change a user as PUT /admin/users/{id} does. A new address or a void password ends everything.

    \b
    Example: latchkey users change bob@example.com --role authenticated
             latchkey users change bob@example.com --email bob@example.org --void-password
    """
    texts = {name: value for name, value in options.items() if value is not None}
    if texts.get("role") == "":
        raise click.UsageError("--role must not be empty. Name a role, such as --role authenticated.")
    body: JsonObject = {name: value or None for name, value in texts.items()}
    body |= {f"{kind}_confirm": True for kind in ADDRESS_KINDS if body.get(kind)}
    if app_metadata is not None:
        body["app_metadata"] = app_metadata
    if body.get("role") == "admin":
        raise click.UsageError(
            "--role admin: Run latchkey create-admin EMAIL instead, which says what signs in."
        )
    if not body and not void_password:
        raise click.UsageError("There is nothing to change. Add an option, such as --role authenticated.")
    with _acting_on(subject) as (asked, user):
        password, password_hash = users.void_password(asked, user.id) if void_password else ({}, None)
        try:
            changed = users.update_user(asked, user.id, check(AnyUserChange, body) | password, password_hash)
        except (UniqueViolation, CheckViolation) as error:
            if key := key_of_constraint(error):
                raise ApiError(key) from None
            raise
        show(json.loads(changed), f"{name_of(user)} is changed.")


# The options of commands whose flow takes more than the user.
_OPTIONS = {
    "ban": click.option(
        "--for",
        "ban_duration",
        metavar="DURATION",
        default="permanent",
        show_default=True,
        callback=_duration,
        help="Ban the user for DURATION, such as 90m, 24h or 30d.",
    ),
    "unban": click.option(
        "--void-password",
        is_flag=True,
        help="Void the password, which a thief may know. “Forgot password?” sets another.",
    ),
}


def _command(action: UserAction) -> click.Command:
    words = action.command

    def do(subject: str, **options: object) -> None:
        with _acting_on(subject) as (asked, user):
            if question := words.question and words.question(user):
                ask(printable(question))
            outcome = action.flow(asked, user.id, options)
            addresses = {"id": user.id, "email": user.email, "phone": user.phone}
            show({**addresses, **outcome}, f"{name_of(user)} {words.said(outcome)}")

    parameters = [json_option, *([yes_option] if words.question else [])]
    parameters += [_OPTIONS[words.name]] if words.name in _OPTIONS else []
    for parameter in (*parameters, _subject):
        do = parameter(do)
    help = f"{words.help}\n\n\b\nExample: latchkey users {words.name} {words.example}"
    return click.command(words.name, short_help=words.summary, help=help)(do)


COMMANDS = (find, list_command, show_user, invite, change, *map(_command, ACTIONS.values()))
