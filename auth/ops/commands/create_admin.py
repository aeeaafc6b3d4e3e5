import getpass
import os
import sys
import warnings

import click

from auth.cli import as_operator, ask, json_option, printable, show, yes_option
from auth.core import addresses
from auth.core.passwords import hashing
from auth.core.passwords.policy import WeakPassword, check_strength
from auth.core.settings.values import texts
from auth.core.text.labels import label
from auth.flows.admin import administrators
from auth.web.context import Latchkey


@click.command("create-admin", short_help="Make a user an administrator.")
@click.argument("email")
@json_option
@yes_option
def command(email: str) -> None:
    """Make the user EMAIL an administrator. Ends the user's sessions, API keys and applications' access.

    First lists everything that signs the user in, with its age, and asks; with --yes, it does not ask.

    Creates the user if missing, and replaces one that never proved the address. Takes the password of a new
    user from LATCHKEY_ADMIN_PASSWORD, or asks for it, or without a terminal reads a line of standard input.
    If the user has no second factor or passkey, prints a code to set up the first one.

    \b
    Example: latchkey create-admin carol@example.com
    """
    email = addresses.canonical_typed_email(email)
    with as_operator() as asked:
        if anew := administrators.foreseen(asked, email):
            click.echo(f"{email} signs in with:", err=True)
            for way in anew.ways:
                kind, age = label("factors", way["type"]), way["added_at"] or "before 0.7.1"
                text = f"  {kind} {way['label'] or ''}".rstrip()
                click.echo(printable(f"{text}, added {age}"), err=True)
            if anew.removed:
                ends = ", ".join(anew.removed)
                click.echo(printable(f"Removed, because an administrative key has set it: {ends}"), err=True)
            ask("If one of these is not the user's own, remove it or delete the user first. Go ahead?")
        password_hash = None
        if administrators.needs_password(asked, email):
            password_hash = asked.parts.passwords.hash(_password(asked.parts, email))
        user = administrators.appoint(asked, email, password_hash, anew and anew.ways)
        code = administrators.write_code(asked, user["id"], email)
    console = f"{asked.settings.base_url}/console" if asked.settings.console else None
    was_created = " (new user)" if user["created"] else ""
    lines = [f"{user['email']} is an administrator{was_created}: {user['id']}"]
    if console:
        lines.append(f"Sign in to the console: {console}")
    if code:
        lines.append(f"Use this code within an hour to set up the first authenticator app or passkey: {code}")
    show(user | {"console": console, "code": code}, *lines)


def _password(latchkey: Latchkey, email: str) -> str:
    """Return a strong password. Other users would see an argument, and systemd and sudo would log it."""
    password = os.environ.get("LATCHKEY_ADMIN_PASSWORD", "")
    try:
        if not password and sys.stdin.isatty():
            password = _ask()
        elif not password:
            # As from a file that was saved on Windows.
            text = sys.stdin.read().removeprefix(texts.MARK).replace("\r\n", "\n")
            password, _, more = text.partition("\n")
            if more:
                raise click.ClickException(
                    "Standard input has more than one line. Give it only the password."
                )
        password.encode()
    except UnicodeError:
        raise click.ClickException("The password is not UTF-8. Choose another.") from None
    if not password:
        raise click.ClickException("No password was given. Set LATCHKEY_ADMIN_PASSWORD, or use a terminal.")
    if "\0" in password:
        raise click.ClickException("The password contains NUL characters. Choose another.")
    password = hashing.normalize(password)
    try:
        check_strength(latchkey.settings, password, [email], latchkey.leaked_passwords)
    except WeakPassword as error:
        raise click.ClickException(f"The password {error}. Choose another.") from None
    return password


def _ask() -> str:
    try:
        with warnings.catch_warnings():
            # If the terminal cannot hide the password, raise it instead of echoing the password.
            warnings.simplefilter("error", getpass.GetPassWarning)
            text = "Password of the new administrator"
            return click.prompt(text, hide_input=True, confirmation_prompt=True, err=True)
    except (click.Abort, getpass.GetPassWarning):
        return ""
