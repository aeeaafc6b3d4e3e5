"""`latchkey webhooks listen`: a webhook on the developer's own machine, while the command runs."""

import signal
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import click
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from auth.commands import with_parts
from auth.context import Latchkey
from auth.delivery import http, webhooks
from auth.delivery.senders import TryLater
from auth.settings import targets

DESCRIPTION = "latchkey webhooks listen"
_MOST_BYTES = 64 * 1024


@click.group("webhooks")
def command() -> None:
    """Try webhooks out."""


def _url(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _read(targets.http_url, value)


def _secret(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    return webhooks.new_secret() if value is None else _read(targets.webhook_secret, value)


def _read(reader: Any, value: str) -> str:
    try:
        return reader(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@command.command("listen")
@click.option(
    "--forward", metavar="URL", callback=_url, help="Post each event on to this URL, signed as it came."
)
@click.option(
    "--secret",
    metavar="WHSEC",
    callback=_secret,
    envvar="LATCHKEY_WEBHOOK_SECRET",
    help="Sign with this secret instead of a new one.",
)
@with_parts
def listen(latchkey: Latchkey, forward: str | None, secret: str) -> None:
    """Print the events of a service on this machine until SIGTERM or Ctrl-C.

    For development: it registers a webhook that leads to this process, and deletes it at the end. It prints
    what the application answers; an event that the application refuses is not sent again.

    \b Example: latchkey webhooks listen --forward http://localhost:3000/hooks
    """
    if not latchkey.settings.webhook_private_networks:
        raise click.ClickException(
            "AUTH_WEBHOOK_PRIVATE_NETWORKS is false: the service would not post to this machine."
        )
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopped.set())
    with _Receiver(secret, forward) as receiver:
        id = str(uuid.uuid4())
        sealed = latchkey.sealer.seal(secret, id)
        made = {
            "url": receiver.url,
            "description": DESCRIPTION,
            "events": list(webhooks.EVENTS),
            "secret": sealed,
            "most": webhooks.MAX_WEBHOOKS,
        }
        if latchkey.db.one("create_webhook", id=id, **made) is None:
            raise click.ClickException(
                f"There are {webhooks.MAX_WEBHOOKS} webhooks already; delete one first."
            )
        try:
            click.echo(f"Listening. Ctrl-C stops it. Events are signed with {secret}")
            stopped.wait()
        finally:
            latchkey.db.one("delete_webhook", id=id, batch=webhooks.VOIDED_AT_ONCE)
    click.echo("Stopped.")


class _Receiver:
    """Takes events on a free port inside the context, prints a line for each, and posts it on."""

    def __init__(self, secret: str, forward: str | None) -> None:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            timeout = http.TIMEOUT

            def do_POST(self) -> None:
                length = self.headers.get("Content-Length", "")
                body = self.rfile.read(min(int(length), _MOST_BYTES)) if length.isdecimal() else b""
                headers = {name.lower(): value for name, value in self.headers.items()}
                is_ours = receiver.take(body, headers)
                self.send_response(204 if is_ours else 401)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing: each event has its line."""

        self._webhook = Webhook(secret)
        self._forward = forward
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> "_Receiver":
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, body: bytes, headers: dict[str, str]) -> bool:
        """Print an event and post it on; return whether it is one of ours: others can post to this port too."""
        try:
            event = self._webhook.verify(body, headers)
        except (WebhookVerificationError, ValueError):
            return False
        user = event["data"]["user"]
        answered = f"  {self._post(body, headers)}" if self._forward else ""
        click.echo(
            f"{event['timestamp']}  {event['event']:<12}  {user['id']}  {user['email'] or '-'}  {headers['webhook-id']}{answered}"
        )
        return True

    def _post(self, body: bytes, headers: dict[str, str]) -> str:
        passed_on = {
            name: value
            for name, value in headers.items()
            if name.startswith("webhook-") or name == "content-type"
        }
        try:
            return http.post(str(self._forward), body, passed_on, timeout=http.TIMEOUT - 2).status_line
        except TryLater as failure:
            return str(failure)
