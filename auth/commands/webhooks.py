import json
import signal
import threading
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import click
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from auth.commands import open_parts
from auth.commands.common import json_option
from auth.senders import http, webhooks
from auth.senders.sender import TryLater
from auth.settings.values import targets

DESCRIPTION = "latchkey webhooks listen"
_MOST_BYTES = 64 * 1024
_STOPS = {signal.SIGTERM, signal.SIGINT}


@click.group("webhooks")
def command() -> None:
    """Try out webhooks."""


def _checked(read: Callable[[str], str]) -> Callable[[Any, Any, str | None], str | None]:
    def check(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
        try:
            return None if value is None else read(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return check


@command.command("listen", short_help="Print the events of a service on this machine.")
@click.option(
    "--forward",
    metavar="URL",
    callback=_checked(targets.http_url),
    help="Forward each event to this URL, with its signature.",
)
@click.option(
    "--secret",
    metavar="WHSEC",
    callback=_checked(targets.webhook_secret),
    envvar="LATCHKEY_WEBHOOK_SECRET",
    help="Sign with this secret, or LATCHKEY_WEBHOOK_SECRET, instead of a new one.",
)
@json_option
def listen(forward: str | None, secret: str | None, as_json: bool) -> None:
    """Print the events of a service on this machine until SIGTERM or Ctrl-C.

    For development: registers a webhook for this process, and deletes it on exit. Prints the application's
    response; events that it refuses are not sent again.

    \b
    Example: latchkey webhooks listen --forward http://localhost:3000/hooks
    """
    latchkey = open_parts()
    if not latchkey.settings.webhook_private_networks:
        raise click.ClickException(
            "AUTH_WEBHOOK_PRIVATE_NETWORKS is false, so the service won't post to this machine."
        )
    # In all threads: the system may give a signal to any, and a handler would not wake the main one.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    secret = secret or webhooks.new_secret()
    with _Receiver(secret, forward, as_json) as receiver:
        threading.Thread(target=receiver.serve_forever, args=(0.1,), daemon=True).start()
        id = str(uuid.uuid4())
        try:
            made = latchkey.db.one(
                "create_webhook",
                id=id,
                url=f"http://127.0.0.1:{receiver.server_port}/",
                description=DESCRIPTION,
                events=list(webhooks.EVENTS),
                secret=latchkey.sealer.seal(secret, id),
                most=webhooks.MAX_WEBHOOKS,
            )
            if made is None:
                limit = f"The limit of {webhooks.MAX_WEBHOOKS} webhooks is reached; delete one first."
                raise click.ClickException(limit)
            click.echo(f"Listening. Press Ctrl-C to stop. Events are signed with {secret}", err=as_json)
            signal.sigwait(_STOPS)
        finally:
            latchkey.db.one("delete_webhook", id=id, batch=webhooks.VOIDED_AT_ONCE)
            receiver.shutdown()
    click.echo("Stopped.", err=as_json)


class _Receiver(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, secret: str, forward: str | None, as_json: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.webhook = Webhook(secret)
        self.forward = forward
        self.as_json = as_json


class _Handler(BaseHTTPRequestHandler):
    timeout = http.TIMEOUT
    server: _Receiver

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        body = self.rfile.read(min(int(length), _MOST_BYTES)) if length.isdecimal() else b""
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            event = self.server.webhook.verify(body, headers)
        except (WebhookVerificationError, ValueError):
            self.send_response(401)  # any process on this machine can post here
        else:
            forward = self.server.forward
            answer = _post(forward, body, headers) if forward else None
            click.echo(_line(event, headers["webhook-id"], answer, self.server.as_json))
            self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def _line(event: dict[str, Any], id: str, answer: str | None, as_json: bool) -> str:
    if as_json:
        return json.dumps({"id": id, "event": event, "response": answer})
    user = event["data"]["user"]
    parts = [event["timestamp"], f"{event['event']:<12}", user["id"], user["email"] or "-", id, answer]
    return "  ".join(filter(None, parts))


def _post(url: str, body: bytes, headers: dict[str, str]) -> str:
    passed_on = {name: headers[name] for name in headers if name.startswith(("webhook-", "content-type"))}
    try:
        return http.post(url, body, passed_on, timeout=http.TIMEOUT - 2).status_line
    except TryLater as failure:
        return str(failure)
