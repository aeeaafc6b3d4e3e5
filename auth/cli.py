"""The common code of commands: the parts of the service, options, failures and output."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
from dotenv import dotenv_values

from auth.core import addresses, logs, normalize, settings
from auth.core.keys import fingerprints
from auth.core.settings import running, state
from auth.core.settings.kept_secrets import Missing
from auth.rules.refusals import Refusal
from sql import queries

if TYPE_CHECKING:
    from auth.web.asked import Asked
    from auth.web.context import Latchkey
    from auth.web.errors import ApiError


def load_settings(*, missing_secrets: Missing = "refuse") -> settings.Settings:
    if parts := click.get_current_context().obj:
        return parts.settings
    _take_settings()
    loaded = settings.load(missing_secrets=missing_secrets)
    logs.configure(loaded)
    for warning in loaded.warnings:
        click.echo(warning, err=True)
    return loaded


def _take_settings() -> None:
    """Set the settings that the running service has and this command lacks, until the command ends.

    Raises `SettingsError` for secrets in the environment of the service, which no command reads.
    """
    try:
        own = {**dotenv_values(".env"), **os.environ}
    except (OSError, ValueError):
        return  # which `load` reports
    state_dir = state.directory_of(own)
    values = running.environment(state_dir)
    for name, value in values.items():
        if name not in own:
            os.environ[name] = value
            click.get_current_context().call_on_close(partial(os.environ.pop, name, None))
    if lines := running.withheld(state_dir, own.keys() | values):
        raise settings.SettingsError("\n".join(lines))


def load_service_settings(*, missing_secrets: Missing = "refuse") -> settings.Settings:
    """Refuse to act with other settings than the running service of this state directory."""
    loaded = load_settings(missing_secrets=missing_secrets)
    if problem := running.difference(loaded):
        raise click.ClickException(problem)
    return loaded


def open_parts() -> "Latchkey":
    """Return the parts of the service, whose database is closed when the command ends."""
    from auth.web import audit
    from auth.web.context import Latchkey

    parts: Latchkey | None = click.get_current_context().obj
    if parts is None:
        parts = Latchkey(load_service_settings(), audit.command_origin)
        click.get_current_context().call_on_close(parts.db.close)
        fingerprints.check(parts.db, parts.settings)
    return parts


# Refusals for what another row has, or the server of a provider answers.
_ABOUT_OTHERS = ("conflict", "issuer.validation_failed", "unreachable.validation_failed")

FC = TypeVar("FC", bound=Callable[..., Any])


class Unreadable(click.ClickException):
    """An unreadable input, an unusable key or a refusal. Exits with 2, like a wrong argument."""

    exit_code = 2


class _InputFile(click.Path):
    """Reports a missing file in one line, like all failures, without click's usage message."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            remedy = f"Name a file that this user can read. The command runs in {Path.cwd()}."
            raise Unreadable(f"{error.message} {remedy}") from None


class NumberRange(click.IntRange):
    # In errors: 'x' is not a valid number.
    name = "number"

    def _describe_range(self) -> str:
        return f"{self.min} to {self.max}"


INPUT_FILE = _InputFile(exists=True, dir_okay=False, path_type=Path)
INPUT_FILE_OR_STDIN = _InputFile(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


def _common_option(name: str, help: str) -> Callable[[FC], FC]:
    """An option for the functions below instead of the command, which finds it in click's context."""

    def keep(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
        context.meta[name] = value

    return click.option(name, is_flag=True, expose_value=False, callback=keep, help=help)


json_option = _common_option("--json", "Print the result as JSON.")
yes_option = _common_option("--yes", "Do not ask.")


def prints_json() -> bool:
    return bool(click.get_current_context().meta["--json"])


class Unusable(click.ClickException):
    exit_code = 3


@contextmanager
def as_operator() -> Iterator["Asked"]:
    """Act with the rights of the service role key."""
    from auth.web.asked import Asked
    from auth.web.errors import ApiError

    try:
        yield Asked(open_parts(), dict.fromkeys(("ip", "network", "user_agent")), "service_role")
    except ApiError as error:
        # Click's usage helps with a wrong argument, not with the refusal of a rule that names none or
        # with the answer of another server.
        is_rules = error.key in get_args(Refusal) and error.details is None
        wrong = Unreadable if is_rules or error.key in _ABOUT_OTHERS else click.BadParameter
        kind = wrong if error.status == 400 else Unusable
        raise kind(f"{str(error.details or error.msg).rstrip('.')}.{_way_to_find(error)}") from None


def _way_to_find(error: "ApiError") -> str:
    group = click.get_current_context().parent
    # The list is of other things than users.
    if error.status != 404 or error.error_code == "user_not_found":
        return ""
    if group is None or "list" not in getattr(group.command, "commands", ()):
        return ""
    return f" Find its ID by: {group.command_path} list"


def ask(question: str) -> None:
    """Ask for confirmation of an act for which the console asks for a factor, unless `--yes` was given."""
    try:
        agreed = click.get_current_context().meta["--yes"] or click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        raise click.ClickException("Nothing was changed. Without a terminal, add --yes.") from None
    if not agreed:
        raise click.ClickException("Nothing was changed. To go ahead, answer y, or add --yes.")


def show(outcome: Mapping[str, object], *lines: str) -> None:
    """Print an outcome as a line of JSON or as text."""
    for line in (json.dumps(outcome),) if prints_json() else lines:
        click.echo(line)


def printable(text: str) -> str:
    """Return text from users, files or servers without control characters for the terminal."""
    return "".join(character if character.isprintable() else " " for character in text)


def address_of(text: str) -> dict[str, str | None] | None:
    if addresses.is_email(text):
        return {"email": addresses.canonical_typed_email(text), "phone": None}
    # Digits with hyphens may be a request id.
    return {"email": None, "phone": addresses.canonical_typed_phone(text)} if text.startswith("+") else None


def find_user(parts: "Latchkey", subject: str) -> "queries.SelectSummary | None":
    """Return the row of `select_summary` of the user with an address or id, or None."""
    from auth.web.fields import is_uuid

    if address := address_of(subject):
        return queries.select_summary(parts.db, id=None, **address)
    if is_uuid(subject):
        return queries.select_summary(parts.db, id=subject, email=None, phone=None)
    return None


def found_user(parts: "Latchkey", subject: str) -> "queries.SelectSummary":
    """Return the row of a user. Refuse if there is none."""
    user = find_user(parts, normalize.trimmed(subject))
    if user is None:
        raise Unusable(f"No user has the address or ID {subject}. Find the user by: latchkey users find TEXT")
    return user
