from collections.abc import Callable, Mapping
from typing import Any

import click

from auth.cli import NumberRange, as_operator, json_option, prints_json, show
from auth.core.text.moments import until
from auth.extensions.openid import clients
from auth.extensions.openid.command.products import PRODUCTS, endpoints, settings_of


@click.group("clients", short_help="Manage the applications that sign users in here.")
def command() -> None:
    """Manage OAuth clients: the applications that sign users in here."""


_Option = Callable[[Callable[..., None]], Callable[..., None]]
_client_id = click.argument("client_id")


def _several(
    flag: str, member: str, metavar: str | None, text: str, type: click.ParamType | None = None
) -> _Option:
    return click.option(
        flag, member, multiple=True, metavar=metavar, help=f"{text} Can be repeated.", type=type
    )


def _whether(flags: str, member: str, text: str) -> _Option:
    return click.option(flags, member, default=None, help=text)


_options: list[_Option] = [
    _several("--role", "allowed_roles", "ROLE", "Admit only users with ROLE."),
    click.option(
        "--organization",
        "organization_id",
        metavar="NAME",
        help="Admit only members of the organization with this short name or id.",
    ),
    _whether(
        "--pkce/--no-pkce",
        "require_pkce",
        "Require a code challenge, or not. Public clients always need one.",
    ),
    _whether(
        "--skip-consent/--ask-consent",
        "skip_consent",
        "Sign users in to an application of your own without asking them, or ask.",
    ),
    _several(
        "--logout-uri", "post_logout_redirect_uris", "URI", "Let it send users to URI after signing them out."
    ),
    click.option(
        "--backchannel-logout-uri",
        "backchannel_logout_uri",
        metavar="URL",
        help="Tell it at URL that a user's session has ended.",
    ),
    _several("--resource", "resources", "URI", "Let it ask for tokens with the audience URI."),
    _several(
        "--grant",
        "grant_types",
        None,
        "Let it use this grant, instead of the first two.",
        type=click.Choice(clients.GRANT_TYPES),
    ),
    _several("--scope", "scopes", "SCOPE", "Let it have SCOPE, of a user or by client_credentials."),
    _whether(
        "--introspects-sessions/--no-introspects-sessions",
        "introspects_sessions",
        "Let it introspect session tokens, or not.",
    ),
    _whether(
        "--block/--unblock", "is_blocked", "Admit no user to it and end its sessions, or admit them again."
    ),
    click.option(
        "--method",
        "token_endpoint_auth_method",
        type=click.Choice(clients.AUTH_METHODS[1:]),
        help="Take its secret in this way alone.",
    ),
    click.option(
        "--alg",
        "id_token_signed_response_alg",
        type=click.Choice(clients.ALGORITHMS),
        help="Sign its ID tokens with this algorithm.",
    ),
    click.option(
        "--lifetime",
        "token_lifetime",
        metavar="SECONDS",
        type=NumberRange(0, 86_400),
        help="Make its access tokens valid for SECONDS, 30 or more, and its ID tokens for no longer."
        " 0 means AUTH_ACCESS_TOKEN_LIFETIME.",
    ),
    click.option("--website", "client_uri", metavar="URL", help="Name its website."),
    click.option("--logo", "logo_uri", metavar="URL", help="Name its logo."),
]


def _member_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_options):
        function = option(function)
    return function


@command.command("create", short_help="Create a client, and print its secret once.")
@click.argument("name")
@click.argument("redirect_uris", nargs=-1, metavar="[REDIRECT_URI]...")
@click.option("--public", is_flag=True, help="Create a client without a secret, for a browser or a device.")
@click.option("--device", is_flag=True, help="Create a client for a device whose user types a code.")
@_member_options
@click.option(
    "--for",
    "product_name",
    type=click.Choice([*PRODUCTS]),
    help="Check the REDIRECT_URI of this application, set what it needs, and print its settings.",
)
@json_option
def create(
    name: str,
    redirect_uris: tuple[str, ...],
    public: bool,
    device: bool,
    product_name: str | None,
    **members: object,
) -> None:
    """Create the client NAME, to which users return at one of the REDIRECT_URIs.

    Prints its id, the endpoints, and its secret, which is not shown again.

    \b
    Example: latchkey clients create grafana https://grafana.example.com/login/generic_oauth --role admin
    """
    product = PRODUCTS[product_name] if product_name else None
    body = _body(members)
    if product:
        if not redirect_uris or not all(uri.endswith(product.callback) for uri in redirect_uris):
            raise click.UsageError(f"The REDIRECT_URI of {product_name} must end with {product.callback}.")
        public = public or product.is_public
        own = {"require_pkce": product.sends_challenge, "token_lifetime": product.token_lifetime}
        body = own | body
    if device:
        with_browser = ["authorization_code"] if redirect_uris else []
        body = {"grant_types": [*with_browser, "refresh_token", clients.DEVICE_CODE]} | body
    body = {"client_name": name, "redirect_uris": list(redirect_uris)} | body
    if public:
        body["client_type"] = "public"
    with as_operator() as asked:
        client = clients.create(asked, body)
        names = ("client_id", "client_secret")
        credentials: dict[str, str] = {name: client[name] for name in names if name in client}
        urls = endpoints(asked.settings)
        lines = _table(credentials | urls)
        if product:
            lines = [settings_of(product, credentials, redirect_uris[0], asked.settings)]
        show(client | urls, *lines)


@command.command("list", short_help="List the clients, newest first.")
@json_option
def list_command() -> None:
    """List the clients, newest first.

    \b
    Example: latchkey clients list
    """
    with as_operator() as asked:
        for client in clients.listed(asked):
            line = "{client_id}  {registration_type:<8}  {client_type:<12}  {client_name}"
            others = [
                _old_secret(client.get("previous_secret_expires_at")),
                client.get("metadata_url", ""),
                "blocked" if client["is_blocked"] else "",
            ]
            show(client, "  ".join(filter(None, (line.format_map(client).rstrip(), *others))))


@command.command("show")
@_client_id
@json_option
def show_client(client_id: str) -> None:
    """Show a client, without its secret.

    \b
    Example: latchkey clients show 3f2a9c1e-7b54-4d1a-9a65-0d2c9f1b7e44
    """
    with as_operator() as asked:
        client = clients.get(asked, client_id)
        show(client, *_table(client))


@command.command("update")
@_client_id
@click.option("--name", "client_name", metavar="NAME", help="Rename it.")
@_several("--redirect-uri", "redirect_uris", "URI", "Replace all its redirect URIs.")
@_member_options
@json_option
def update(client_id: str, **members: object) -> None:
    """Change a client. An option that can be repeated replaces the whole list. An empty value clears it.

    \b
    Example: latchkey clients update 3f2a9c1e-7b54-4d1a-9a65-0d2c9f1b7e44 --role admin --lifetime 600
    """
    with as_operator() as asked:
        client = clients.update(asked, client_id, _body(members))
        show(client, *_table(client))


@command.command("delete")
@_client_id
def delete(client_id: str) -> None:
    """Delete a client, and end its sessions.

    \b
    Example: latchkey clients delete 3f2a9c1e-7b54-4d1a-9a65-0d2c9f1b7e44
    """
    with as_operator() as asked:
        clients.delete(asked, client_id)
    click.echo(f"{client_id} is deleted, and its sessions have ended.")


@command.command("rotate", short_help="Replace the secret of a client, and print the new one.")
@_client_id
@click.option("--overlap", is_flag=True, help="Accept the old secret for a day more.")
@json_option
def rotate(client_id: str, overlap: bool) -> None:
    """Replace the secret of a client, and print the new one. The old one is refused at once.

    With --overlap the old one is accepted for a day more, and ends earlier by `clients end-old-secret` or the
    next rotation. Do not use it if the old secret has leaked.

    \b
    Example: latchkey clients rotate 3f2a9c1e-7b54-4d1a-9a65-0d2c9f1b7e44 --overlap
    """
    with as_operator() as asked:
        client = clients.replace_secret(asked, client_id, clients.OVERLAP if overlap else None)
    show(client, client["client_secret"])
    if overlap and not prints_json():
        click.echo(_old_secret(client["previous_secret_expires_at"]), err=True)


@command.command("end-old-secret", short_help="End the old secret of a client.")
@_client_id
def end_old_secret(client_id: str) -> None:
    """End the old secret of a client, which `clients rotate --overlap` has kept.

    \b
    Example: latchkey clients end-old-secret 3f2a9c1e-7b54-4d1a-9a65-0d2c9f1b7e44
    """
    with as_operator() as asked:
        clients.end_previous_secret(asked, client_id)
    click.echo(f"{client_id} has no old secret anymore.")


def _old_secret(expires_at: str | None) -> str:
    return f"The old secret works {until(expires_at)}." if expires_at else ""


def _body(members: Mapping[str, object]) -> dict[str, Any]:
    """Return the members that the options set. An empty text clears a list; 0 means the usual lifetime."""
    body: dict[str, Any] = {}
    for name, value in members.items():
        if value is None or value == ():
            continue
        body[name] = [item for item in value if item] if isinstance(value, tuple) else value
    if body.get("token_lifetime") == 0:
        body["token_lifetime"] = None
    return body


def _table(members: Mapping[str, object]) -> list[str]:
    width, lines = max(map(len, members)), []
    for name, value in members.items():
        text = " ".join(value) if isinstance(value, list) else "" if value is None else str(value)
        lines.append(f"{name:<{width}}  {text.lower() if isinstance(value, bool) else text}".rstrip())
    return lines
