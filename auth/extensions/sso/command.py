from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from auth.cli import INPUT_FILE_OR_STDIN, as_operator, ask, json_option, printable, show, yes_option
from auth.core.addresses import canonical_typed_email
from auth.core.text.labels import counted
from auth.extensions.sso.routes import NewProvider
from auth.flows.admin import provider_summary, providers
from auth.flows.admin.provider_actions import ACTIONS
from auth.flows.admin.provider_summary import ProviderSummary
from auth.flows.admin.providers import IDENTIFIER
from auth.flows.admin.schemas import PROVIDER_CHANGE
from auth.flows.history.mentions import called
from auth.web.input import check


@click.group("providers", short_help="Manage the OpenID providers of customers.")
def command() -> None:
    """Manage the OpenID providers of customers, which sign in addresses of their domains.

    PROVIDER is an ID, an identifier with or without custom:, a domain, or a name.
    """


_provider = click.argument("provider")
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
    identifier = provider if provider.startswith(IDENTIFIER) else f"{IDENTIFIER}{provider}"
    name = members.pop("name") or identifier.removeprefix(IDENTIFIER)
    body = {"provider_type": "oidc", "identifier": identifier, "name": name, **_body(members, secret_file)}
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
            name = called(row.name, row.organization)
            line = f"{row.identifier}  {state}  {domains}  {counted(row.users, 'user')}  {name}"
            show(providers.described(asked, row) | {"users": row.users}, printable(line))


@command.command("show")
@_provider
@json_option
def show_provider(provider: str) -> None:
    """Show PROVIDER without its secret: whose it is, who turned it on, and what it has opened.

    \b
    Example: latchkey providers show acme.example
    """
    with as_operator() as asked:
        summary = provider_summary.summary_of(asked, provider_summary.find(asked, provider))
        object = providers.described(asked, summary.row)
        lines = [_line(title, text) for title, text in provider_summary.lines_of(summary)]
        show(object | provider_summary.object_of(summary), *_lines(object), *lines)


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
    with as_operator() as asked:
        row = provider_summary.find(asked, provider)
        if body.get("enabled") is False:
            _ask(provider_summary.summary_of(asked, row), "disable")
        changed = providers.change(asked, row.id, check(PROVIDER_CHANGE, body))
        show(changed, *_lines(changed))


@command.command("disable")
@_provider
@yes_option
@json_option
def disable(provider: str) -> None:
    """Disable PROVIDER, and end what it opened. Says what that is, and asks.

    \b
    Example: latchkey providers disable acme.example
    """
    _act(provider, "disable")


@command.command("enable")
@_provider
@yes_option
@json_option
def enable(provider: str) -> None:
    """Let PROVIDER sign in users again. What has ended stays ended.

    \b
    Example: latchkey providers enable acme.example
    """
    _act(provider, "enable")


@command.command("delete")
@_provider
@yes_option
def delete(provider: str) -> None:
    """Delete PROVIDER with the identities of its users, and end what it opened. Says what that is, and asks.

    \b
    Example: latchkey providers delete acme
    """
    with as_operator() as asked:
        summary = provider_summary.summary_of(asked, provider_summary.find(asked, provider))
        _ask(summary, "delete")
        ACTIONS["delete"].flow(asked, summary.row.id)
    click.echo(printable(f"{summary.name} is deleted."))


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
        row = provider_summary.find(asked, provider)
        providers.adopt(asked, row.id, email)
    click.echo(printable(f"{email} can sign in with {row.identifier}."))


def _act(provider: str, name: str) -> None:
    """Ask, act, and print how far the end of what the provider had opened has come."""
    with as_operator() as asked:
        before = provider_summary.summary_of(asked, provider_summary.find(asked, provider))
        _ask(before, name)
        ACTIONS[name].flow(asked, before.row.id)
        after = provider_summary.summary_of(asked, provider_summary.find(asked, before.row.id))
        object = providers.described(asked, after.row) | provider_summary.object_of(after)
        show(object, ACTIONS[name].done, *([] if after.row.enabled else [after.opened.end]))


def _ask(summary: ProviderSummary, name: str) -> None:
    """Say the effects of an action, and ask for it."""
    if not click.get_current_context().meta["--yes"]:
        for effect in ACTIONS[name].effects(summary):
            click.echo(printable(effect), err=True)
    ask(ACTIONS[name].question)


def _body(members: Mapping[str, object], secret_file: Path | None) -> dict[str, Any]:
    options = {name: value for name, value in members.items() if value not in (None, ())}
    body = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    if secret_file:
        with click.open_file(str(secret_file), encoding="utf-8") as file:
            body["client_secret"] = file.read().strip()
    return body


def _lines(provider: Mapping[str, Any]) -> list[str]:
    lines = {
        "name": provider["name"],
        "identifier": provider["identifier"],
        "id": provider["id"],
        "state": "enabled" if provider["enabled"] else "disabled",
        "issuer": provider["issuer"],
        "client ID": provider["client_id"],
        "domains": ", ".join(provider["domains"]) or "none: it signs in nobody",
        "redirect URI": provider["redirect_uri"],
    }
    return [_line(title, text) for title, text in lines.items()]


def _line(title: str, text: str) -> str:
    return printable(f"{title + ':':<14}{text}")
