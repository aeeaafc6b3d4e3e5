import getpass
import uuid
import warnings
from typing import Any

import click

from auth.cli.commands import json_option, open_parts, show
from auth.core import addresses, promises
from auth.core.passwords import hashing
from auth.core.passwords.policy import WeakPassword, check_strength
from auth.core.tokens import one_time
from auth.domain.messages.outgoing import TOKEN_COLUMNS
from auth.web.context import Latchkey
from sql import queries


@click.command("create-admin", short_help="Make a user an administrator.")
@click.argument("email")
@click.option(
    "--password",
    envvar="LATCHKEY_ADMIN_PASSWORD",
    show_envvar=True,
    help="For a new user. Prompts if missing.",
)
@json_option
def command(email: str, password: str | None, as_json: bool) -> None:
    """Make the user EMAIL an administrator.

    Creates the user if missing, and replaces one that never proved the address. If the user has no second
    factor or passkey, prints a code to set up the first one.

    \b
    Example: latchkey create-admin carol@example.com
    """
    latchkey = open_parts()
    user = _make_administrator(latchkey, addresses.canonical_email(email), password)
    settings = latchkey.settings
    console = f"{settings.base_url}/console" if settings.console else None
    code = _write_code(latchkey, user)
    was_created = " (new user)" if user["created"] else ""
    lines = [f"{user['email']} is an administrator{was_created}: {user['id']}"]
    if console:
        lines.append(f"Sign in to the console: {console}")
    if code:
        lines.append(f"Use this code within an hour to set up the first authenticator app or passkey: {code}")
    show(user | {"console": console, "code": code}, as_json, *lines)


def _make_administrator(latchkey: Latchkey, email: str, password: str | None) -> dict[str, Any]:
    known = queries.select_user_of_address(latchkey.db, address=email)
    is_proved = known is not None and known.email_proved
    password_hash = None if is_proved else _hash(latchkey, email, password)
    with latchkey.db.transaction() as tx:
        if password_hash:
            queries.delete_unproved_user(tx, email=email)
        if known:
            queries.end_lost_access_of_user(tx, user_id=known.id)
        user = queries.make_administrator(tx, email=email, password_hash=password_hash)
        if user is None:
            return {"id": known and known.id, "email": email, "created": False}
        if user.created:
            queries.write_address_identity(tx, user_id=user.id, provider="email", address=email)
        queries.end_lost_access_of_user(tx, user_id=user.id)
        queries.record_acts(
            tx,
            user_id=user.id,
            email=email,
            acts=["user_created" if user.created else "role_changed"],
            events=["user.created" if user.created else "user.updated"],
            details={"by": "administrator", "role": "admin"},
        )
    return {"id": user.id, "email": email, "created": user.created}


def _write_code(latchkey: Latchkey, user: dict[str, Any]) -> str | None:
    """Return a code that lets an administrator without a second factor add one, like an emailed one."""
    email, code = user["email"], one_time.new_code()
    with latchkey.db.transaction() as tx:
        if queries.count_verified_factors(tx, user_id=user["id"]).total:
            return None
        queries.write_token(
            tx,
            token_id=str(uuid.uuid4()),
            user_id=user["id"],
            purpose="reauthentication",
            target=email,
            code_mac=latchkey.codes.macs(email, code)[0],
            code_lifetime=promises.MAIL_CODE_LIFETIME,
            token_hash=None,
            link_lifetime=None,
            **TOKEN_COLUMNS,
        )
    return code


def _hash(latchkey: Latchkey, email: str, password: str | None) -> str:
    if not password:
        text = "Password of the new administrator"
        try:
            with warnings.catch_warnings():
                # Without a terminal, raise it instead of reading and echoing the password.
                warnings.simplefilter("error", getpass.GetPassWarning)
                password = click.prompt(text, hide_input=True, confirmation_prompt=True)
        except (click.Abort, getpass.GetPassWarning):
            missing = "No password was given. Without a terminal, set LATCHKEY_ADMIN_PASSWORD."
            raise click.ClickException(missing) from None
    password = hashing.normalize(password)
    try:
        check_strength(latchkey.settings, password, [email])
    except WeakPassword as error:
        raise click.ClickException(f"password: {error}") from None
    return latchkey.passwords.hash(password)
