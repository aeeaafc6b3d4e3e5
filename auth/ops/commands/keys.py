import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from auth.cli import INPUT_FILE_OR_STDIN, Unusable, json_option, load_settings, open_parts, prints_json, show
from auth.core.keys import fingerprints, rotation
from auth.core.keys.key_kinds import BY_FIELD, KINDS, OPENID, SHARED_SECRET, CannotRotate, KnownKey
from auth.core.keys.openid_keys import KEPT, public_jwks
from auth.core.keys.rotation import StillNeeded
from auth.core.settings import Settings, kept_secrets, name_of, state
from auth.core.settings.values.validators import sentence
from auth.core.tokens.derived_keys import format_time
from auth.core.tokens.signing_keys import ALGORITHMS
from auth.ops.commands import admin_keys
from auth.ops.commands.common import failures, open_database, stopped_database
from auth.ops.connections import single
from sql import schema


@click.group("keys", commands=admin_keys.COMMANDS)
def command() -> None:
    """Manage the keys of the service."""


@command.command("list", short_help="List the keys, and what still needs the old ones.")
@json_option
def list_command() -> None:
    """List the keys: which are in use, when a new one will be used, and what still needs an old one. Then the
    administrative keys: their scopes, and when each was last used.

    \b
    Example: latchkey keys list
    """
    settings, db = open_parts().key_ring.settings, open_database()
    keys = rotation.list_keys(db, settings)
    width = max(len(key.id) for key in keys)
    for key in keys:
        needs = rotation.needs_of(db, settings, key)
        status = "in use" if key.is_used else "waiting" if key.waits else "accepted"
        place = "database"
        if key.id == SHARED_SECRET:
            place = key.id
        elif key.kind != OPENID:
            field = KINDS[key.kind].field
            place = str(settings.key_files.get(field) or name_of(field))
        members = {"kind": key.kind, "id": key.id, "state": status, "active_from": _time(key)}
        since = f", active from {_time(key)}" if key.active_from else ""
        needed = f", needed by {', '.join(needs)}" if needs else ""
        line = f"{key.kind:<13}{key.id:<{width + 2}}{status}{since}{needed} ({place})"
        show(members | {"needed_by": needs, "place": place}, line)
    admin_keys.show_all()


@command.command("public", short_help="Print the keys that verify tokens.")
@click.option(
    "--jwks", "as_set", is_flag=True, help="Print one JWK Set, for a program that reads it from a file."
)
def public(as_set: bool) -> None:
    """Print the public keys that verify access tokens and ID tokens, each as a JWK.

    \b
    Example: latchkey keys public --jwks
    """
    parts = open_parts()
    keys = public_jwks(*parts.access_tokens.keys, *parts.openid_keys.all())
    for printed in [{"keys": keys}] if as_set else keys:
        click.echo(json.dumps(printed))


@command.command("rotate", short_help="Create a new key, to be used after a day.")
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.option("--now", is_flag=True, help="Use the new key in 30 seconds instead of after AUTH_KEY_OVERLAP.")
@click.option(
    "--algorithm",
    type=click.Choice(ALGORITHMS),
    help="Create a signing key of this algorithm. Defaults to that of the key in use.",
)
@json_option
def rotate(kind: str, now: bool, algorithm: str | None) -> None:
    """Create a new key, which is accepted immediately and used after AUTH_KEY_OVERLAP.

    Running services pick it up from the state directory, or an OpenID key from the database. If the key
    comes from the environment, prints the value to set. The old key is accepted until `keys remove`.

    \b
    Example: latchkey keys rotate signing
    """
    if algorithm and kind != "signing":
        raise click.UsageError("--algorithm is only for signing keys. Leave it out.")
    parts = open_parts()
    settings = parts.key_ring.settings
    with _failures(settings):
        key, value = rotation.rotate(parts.db, settings, kind, soon=now, algorithm=algorithm)
    is_shared = kind == "service-role"
    text = f"{key.id} is accepted" + ("." if is_shared else f", and will be used from {_time(key)}.")
    deadline = "" if is_shared else f" before {_time(key)}"
    _report(key, value, text, deadline)


@command.command("add", short_help="Accept a key that this service does not use itself.")
@click.argument("kind", type=click.Choice([kind.name for kind in BY_FIELD.values()]))
@click.argument("file", type=INPUT_FILE_OR_STDIN)
@json_option
def add(kind: str, file: Path) -> None:
    """Accept a key that this service does not use itself: a secret, a JWK or a JWK Set in FILE.

    Tokens that another service signed with it stay valid. FILE can be - for standard input.

    \b
    Example: latchkey keys add signing old-service.jwks.json
    """
    parts = open_parts()
    settings = parts.key_ring.settings
    with _failures(settings), click.open_file(str(file)) as opened:
        text = opened.read().strip()
        if file != Path("-"):
            kept_secrets.check(KINDS[kind].field, text, file)
        key, value = rotation.add(parts.db, settings, kind, text)
    _report(key, value, f"{key.id} is accepted.")


@command.command("remove")
@click.argument("id", metavar="KEY_ID")
@click.option("--force", is_flag=True, help="Remove it even if needed, for example because it leaked.")
@json_option
def remove(id: str, force: bool) -> None:
    """Stop accepting a key. Refuses if a session, code, message, webhook or access token still needs it.

    Exits with 3 if the key is still needed.

    \b
    Example: latchkey keys remove 1f3a9c20
    """
    settings, db = open_parts().key_ring.settings, open_database()
    with _failures(settings):
        key, value = rotation.remove(db, settings, id, force=force)
    _report(key, value, f"{key.id} is no longer accepted.")


@command.command("accept", short_help="Accept these keys in place of lost ones.")
@click.option("--new", "make_missing", is_flag=True, help="Create a key for each lost file.")
def accept(make_missing: bool) -> None:
    """Accept the keys in these settings for a database whose own keys are lost.

    Stop all nodes first. What the lost keys protected stays invalid: refresh tokens, codes, waiting messages
    and the secrets of webhooks.

    \b
    Example: latchkey keys accept
    """
    settings = load_settings(missing_secrets="ignore" if make_missing else "refuse")
    # The service would start the embedded Postgres, but does not start with these keys.
    with failures(settings.state_dir), stopped_database(settings) as url:
        if settings.database_url and make_missing:
            try:
                settings.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
                state.lock(settings.state_dir)
                state.make_directory(settings.state_dir)  # it may exist with another mode
            except OSError as error:
                raise click.ClickException(state.unusable(settings.state_dir, error)) from None
        schema.apply(url)
        with single(url) as db:
            fingerprints.keep(db, settings, fingerprints.any_or_new)
    click.echo("The keys are accepted. Start the service.")


@contextmanager
def _failures(settings: Settings) -> Iterator[None]:
    try:
        yield
    except StillNeeded as error:
        raise Unusable(str(error)) from None
    except CannotRotate as error:
        raise click.ClickException(str(error)) from None
    except ValueError as error:  # raised by a check of settings
        raise click.ClickException(f"The key is refused: {sentence(error)} Name another.") from None
    except OSError as error:
        place = error.filename or settings.state_dir
        raise click.ClickException(state.unusable_place(place, error, "Let this user write there.")) from None


def _report(key: KnownKey, value: str, text: str, deadline: str = "") -> None:
    """Print the outcome. `value` is the new value for the environment, if the key is not in a file."""
    name, _, text_of_value = value.partition("=")
    line = f"{name}={shlex.quote(text_of_value)}" if value else None
    if line and not prints_json():
        click.echo(f"Set this on all nodes, and restart them one at a time{deadline}:", err=True)
    soon = f"{KEPT:.0f}" if key.kind == OPENID else "two"
    outcome = {"kind": key.kind, "id": key.id, "active_from": _time(key), "set": line}
    show(outcome, line or f"{text} Running services pick it up within {soon} seconds.")


def _time(key: KnownKey) -> str | None:
    return format_time(key.active_from) if key.active_from else None
