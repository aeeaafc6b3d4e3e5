import getpass
import warnings

import click

from auth.cli.commands import acting, json_option, show
from auth.core import addresses
from auth.core.passwords import hashing
from auth.core.passwords.policy import WeakPassword, check_strength
from auth.domain.admin import administrators
from auth.web.context import Latchkey


@click.command("create-admin", short_help="Make a user an administrator.")
@click.argument("email")
@click.option(
    "--password",
    envvar="LATCHKEY_ADMIN_PASSWORD",
    show_envvar=True,
    metavar="PASSWORD",
    help="Give a new user this password. Asks for it if missing.",
)
@json_option
def command(email: str, password: str | None, as_json: bool) -> None:
    """Make the user EMAIL an administrator.

    Creates the user if missing, and replaces one that never proved the address. If the user has no second
    factor or passkey, prints a code to set up the first one.

    \b
    Example: latchkey create-admin carol@example.com
    """
    email = addresses.canonical_email(email)
    with acting() as parts:
        password_hash = _hash(parts, email, password) if administrators.needs_password(email) else None
        user = administrators.appoint(email, password_hash)
        code = administrators.write_code(user["id"], email)
    console = f"{parts.settings.base_url}/console" if parts.settings.console else None
    was_created = " (new user)" if user["created"] else ""
    lines = [f"{user['email']} is an administrator{was_created}: {user['id']}"]
    if console:
        lines.append(f"Sign in to the console: {console}")
    if code:
        lines.append(f"Use this code within an hour to set up the first authenticator app or passkey: {code}")
    show(user | {"console": console, "code": code}, as_json, *lines)


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
        check_strength(latchkey.settings, password, [email], latchkey.leaked_passwords)
    except WeakPassword as error:
        raise click.ClickException(f"The password {error}. Choose another.") from None
    return latchkey.passwords.hash(password)
