"""`latchkey create-admin EMAIL`."""

from typing import Any

import click

from auth import addresses
from auth.commands import with_parts
from auth.context import Latchkey
from auth.passwords import hashing
from auth.passwords.policy import WeakPassword, check_strength
from sql import Database


@click.command("create-admin")
@click.argument("email")
@click.option(
    "--password", envvar="LATCHKEY_ADMIN_PASSWORD", help="For a new user; asked for when it is not given."
)
@with_parts
def command(latchkey: Latchkey, email: str, password: str | None) -> None:
    """Make the user EMAIL an administrator.

    A user without a proved address is replaced, and a missing one created, with the password.

    \b
    Example: latchkey create-admin carol@example.com
    """
    try:
        email = addresses.canonical_email(email)
    except addresses.InvalidAddress as error:
        raise click.BadParameter(str(error)) from None
    known = latchkey.db.one("select_user_by_email", email=email)
    needs_password = known is None or not known.email_proved
    password_hash = _hash(latchkey, email, password) if needs_password else None
    row = _make_administrator(latchkey.db, email, password_hash)
    click.echo(f"{email} is an administrator{' and was created' if row.created else ''}: {row.id}")


def _hash(latchkey: Latchkey, email: str, password: str | None) -> str:
    question = "Password of the new administrator"
    password = hashing.normalize(
        password or click.prompt(question, hide_input=True, confirmation_prompt=True)
    )
    try:
        check_strength(latchkey.settings, password, [email])
    except WeakPassword as error:
        raise click.ClickException(f"password: {error}") from None
    return latchkey.passwords.hash(password)


def _make_administrator(db: Database, email: str, password_hash: str | None) -> Any:
    """Make the user of an email an administrator, and return a row with `id` and `created`.

    With a password hash, a user who has not proved the email is replaced by a new one.
    """
    with db.transaction() as tx:
        if password_hash:
            tx.run("delete_unproved_user", email=email)
        user = tx.one("make_administrator", email=email, password_hash=password_hash)
        if user.created:
            tx.run("write_address_identity", user_id=user.id, provider="email", address=email)
        tx.run(
            "record_acts",
            user_id=user.id,
            email=email,
            acts=["user_created" if user.created else "role_changed"],
            events=["user.created" if user.created else "user.updated"],
            details={"by": "administrator", "role": "admin"},
        )
        return user
