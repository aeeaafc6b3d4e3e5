from typing import Any

import click

from auth.cli.commands import acting, json_option, show
from auth.openid.gates import registered, snippets
from auth.web.context import latchkey
from sql import queries


@click.group("gates", short_help="Manage gates in front of tools without a login.")
def command() -> None:
    """Manage gates: sign-in for tools that have none, asked by the proxy in front of them."""


@command.command("create", short_help="Create a gate, and print what its proxy needs.")
@click.argument("name")
@click.argument("url")
@click.option(
    "--role", "roles", multiple=True, metavar="ROLE", help="Admit only users with ROLE. Can be repeated."
)
@click.option(
    "--proxy",
    type=click.Choice([*snippets.FILES]),
    help="Print the configuration of this proxy, instead of the one that runs here.",
)
@click.option(
    "--tool",
    default=snippets.TOOL,
    show_default=True,
    metavar="ADDRESS",
    help="Lead to the tool at ADDRESS.",
)
@json_option
def create(name: str, url: str, roles: tuple[str, ...], proxy: str | None, tool: str, as_json: bool) -> None:
    """Create the gate NAME in front of the tool at URL, and print the configuration of its proxy.

    \b
    Example: latchkey gates create docs https://docs.example.com --role staff --tool 127.0.0.1:9090
    """
    with acting() as parts:
        if not parts.settings.gate:
            raise click.ClickException("Gates are off. Set AUTH_GATE=true, and restart the service.")
        gate = registered.create(name, url, list(roles))
        service = f"127.0.0.1:{parts.settings.port}"
        proxies = [proxy] if proxy else snippets.running()
        texts = [snippets.snippet(each, gate["gate_origin"], tool=tool, service=service) for each in proxies]
        show(gate, as_json, "\n".join(texts).rstrip())


@command.command("list", short_help="List the gates, by their URLs.")
@json_option
def list_command(as_json: bool) -> None:
    """List the gates, by their URLs.

    \b
    Example: latchkey gates list
    """
    with acting():
        for row in queries.list_gates(latchkey.db):
            gate: dict[str, Any] = row._asdict()
            roles = " ".join(row.allowed_roles)
            line = f"{row.id}  {row.gate_origin}  {row.name}"
            show(gate, as_json, "  ".join(filter(None, (line, roles, "blocked" * row.is_blocked))))


@command.command("delete")
@click.argument("gate_id")
def delete(gate_id: str) -> None:
    """Delete a gate, and end its sessions.

    \b
    Example: latchkey gates delete 3f2a9c1e-7b54-4d1a-9a65-0d2c9f1b7e44
    """
    with acting():
        registered.delete(gate_id)
    click.echo(f"{gate_id} is deleted, and its sessions have ended.")
