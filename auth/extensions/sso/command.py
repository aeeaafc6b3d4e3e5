from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from auth.cli import INPUT_FILE_OR_STDIN, as_operator, ask, json_option, show, yes_option
from auth.core.addresses import canonical_typed_email
from auth.core.text.labels import counted
from auth.extensions.sso.lookup import IDENTIFIER
from auth.extensions.sso.routes import NewProvider
from auth.flows.admin import providers
from auth.flows.admin.schemas import PROVIDER_CHANGE
from auth.web.input import check


@click.group("providers", short_help="Manage the OpenID providers of customers.")
def command() -> None:
    """Manage the OpenID providers of customers, which sign in addresses of their domains."""


def _identifier(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    """Return an id, or an identifier, which the operator may write without its prefix."""
    is_whole = name.startswith(IDENTIFIER) or len(name) == 36
    return name if is_whole else f"{IDENTIFIER}{name}"


_provider = click.argument("provider", callback=_identifier)
_secret: dict[str, Any] = {
    "type": INPUT_FILE_OR_STDIN,
    "metavar": "FILE",
    "help": "Read its client secret from FILE, or from standard input with -.",
}
_several = partial(click.option, multiple=True)
_domains = _several(
    "--domain", "domains", metavar="DOMAIN", help="Sign in addresses of DOMAIN. Can be repeated."
)
_scopes = _several("--scope", "scopes", metavar="SCOPE", help="Ask for SCOPE. Can be repeated.")


@command.command("add", short_help="Add the provider of a customer.")
@_provider
@click.option("--issuer", required=True, metavar="URL", help="Name the URL of its issuer.")
@click.option("--client-id", required=True, metavar="ID", help="Name the client ID that it issued.")
@click.option("--secret-file", required=True, **_secret)
@click.option("--name", metavar="NAME", help="Name it in the console.")
@_domains
@_scopes
@json_option
def add(provider: str, secret_file: Path, **members: object) -> None:
    """Add PROVIDER, and print the redirect URI that the customer registers there.

    \b
    Example: latchkey providers add acme --issuer https://login.acme.example --client-id latchkey
             --secret-file acme.secret --domain acme.example
    """
    name = members.pop("name") or provider.removeprefix(IDENTIFIER)
    body = {"provider_type": "oidc", "identifier": provider, "name": name, **_body(members, secret_file)}
    with as_operator() as asked:
        added = providers.create(asked, check(NewProvider, body))
        show(added, *_lines(added))


@command.command("list", short_help="List the providers, oldest first.")
@json_option
def list_command() -> None:
    """List the providers, oldest first, with their domains and the number of their users.

    \b
    Example: latchkey providers list
    """
    with as_operator() as asked:
        for row in providers.listed(asked):
            state = "enabled" if row.enabled else "disabled"
            domains = ", ".join(row.domains) or "no domain"
            line = f"{row.identifier}  {state}  {domains}  {counted(row.users, 'user')}"
            show(providers.described(asked, row) | {"users": row.users}, line)


@command.command("show")
@_provider
@json_option
def show_provider(provider: str) -> None:
    """Show PROVIDER, without its secret.

    \b
    Example: latchkey providers show acme
    """
    with as_operator() as asked:
        object = providers.described(asked, providers.found_provider(asked, provider))
        show(object, *_lines(object))


@command.command("change")
@_provider
@click.option("--issuer", metavar="URL", help="Change its issuer, while it has no user. Needs --secret-file.")
@click.option("--client-id", metavar="ID", help="Change its client ID. Needs --secret-file.")
@click.option("--secret-file", **_secret)
@click.option("--name", metavar="NAME", help="Rename it in the console.")
@_domains
@_scopes
@click.option(
    "--enable/--disable",
    "enabled",
    default=None,
    help="Let it sign in users, or not: that ends what it opened.",
)
@yes_option
@json_option
def change(provider: str, secret_file: Path | None, **members: object) -> None:
    """Change PROVIDER. An option that can be repeated replaces the whole list.

    \b
    Example: latchkey providers change acme --domain acme.example --domain acme.test
    """
    body = _body(members, secret_file)
    if body.get("enabled") is False:
        ask(f"Disable {provider}, and end the sessions, grants and API keys of its users?")
    with as_operator() as asked:
        changed = providers.change(asked, provider, check(PROVIDER_CHANGE, body))
        show(changed, *_lines(changed))


@command.command("delete")
@_provider
@yes_option
def delete(provider: str) -> None:
    """Delete PROVIDER with the identities of its users, and end what it opened.

    \b
    Example: latchkey providers delete acme
    """
    ask(f"Delete {provider}, and end what it opened?")
    with as_operator() as asked:
        providers.delete(asked, provider)
    click.echo(f"{provider} is deleted.")


@command.command("adopt")
@_provider
@click.argument("address")
def adopt(provider: str, address: str) -> None:
    """Let PROVIDER sign in the user with ADDRESS, who has signed in another way until now. The user is told.

    \b
    Example: latchkey providers adopt acme alice@acme.example
    """
    email = canonical_typed_email(address)
    with as_operator() as asked:
        providers.adopt(asked, provider, email)
    click.echo(f"{email} can sign in with {provider}.")


def _body(members: Mapping[str, object], secret_file: Path | None) -> dict[str, Any]:
    options = {name: value for name, value in members.items() if value not in (None, ())}
    body = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    if secret_file:
        with click.open_file(str(secret_file), encoding="utf-8") as file:
            body["client_secret"] = file.read().strip()
    return body


def _lines(provider: Mapping[str, Any]) -> list[str]:
    lines = {
        "identifier": provider["identifier"],
        "id": provider["id"],
        "state": "enabled" if provider["enabled"] else "disabled",
        "issuer": provider["issuer"],
        "client ID": provider["client_id"],
        "domains": ", ".join(provider["domains"]) or "none: it signs in nobody",
        "redirect URI": provider["redirect_uri"],
    }
    return [f"{name + ':':<14}{value}" for name, value in lines.items()]
