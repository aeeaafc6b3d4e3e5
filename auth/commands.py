"""Commands for the operator: `flask create-admin EMAIL`, and `flask explain`."""

import click
from flask import Flask
from flask.cli import with_appcontext

from auth import addresses, explain
from auth.context import latchkey
from auth.flows.user_administration import make_administrator
from auth.passwords import hashing
from auth.passwords.policy import WeakPassword, check_strength


def register(app: Flask) -> None:
    """Add the commands."""
    app.cli.add_command(create_admin)
    app.cli.add_command(explain.explain)


@click.command("create-admin")
@click.argument("email")
@click.option("--password", envvar="LATCHKEY_ADMIN_PASSWORD", help="For a new user; asked for when it is not given.")
@with_appcontext
def create_admin(email: str, password: str | None) -> None:
    """Make the user EMAIL an administrator; create it when there is none, or only somebody who has not proved the address."""
    try:
        email = addresses.canonical_email(email)
    except addresses.InvalidAddress as error:
        raise click.BadParameter(str(error)) from None
    password_hash = None
    known = latchkey.db.one("select_user_by_email", email=email)
    if known is None or not known.email_proved:
        password = hashing.normalize(password or click.prompt("Password of the new administrator", hide_input=True, confirmation_prompt=True))
        try:
            check_strength(latchkey.settings, password, [email])
        except WeakPassword as error:
            raise click.ClickException(f"password: {error}") from None
        password_hash = latchkey.passwords.hash(password)
    row = make_administrator(email, password_hash)
    click.echo(f"{email} is an administrator{' and was created' if row.created else ''}: {row.id}")
