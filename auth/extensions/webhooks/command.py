import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import click
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from auth.cli import as_operator, ask, json_option, open_parts, prints_json, show, yes_option
from auth.core import constants
from auth.core.net import webhook_urls
from auth.core.sender import TryLater
from auth.core.settings.values import urls
from auth.core.settings.values.validators import sentence
from auth.core.text.labels import label
from auth.core.text.moments import clock
from auth.delivery.senders import http_post
from auth.flows.admin import webhooks
from auth.web.errors import ApiError
from sql import queries

_id = click.argument("webhook_id")
# Seconds within which the delivery process answers.
_PATIENCE = 20
# The most waiting events to count.
_COUNTED = 1000
_MOST_BYTES = 64 * 1024
_STOPS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


@click.group("webhooks", short_help="List, enable, disable and try out webhooks.")
def command() -> None:
    """List, enable, disable and try out webhooks."""


@command.command("list", short_help="List the webhooks and their state.")
@json_option
def list_command() -> None:
    """List the webhooks, oldest first, with their state. Of a URL, only the origin is shown.

    \b
    Example: latchkey webhooks list
    """
    for webhook in queries.list_webhook_states(open_parts().db, id=None, most=_COUNTED):
        state = f"failing since {clock(webhook.failing_since)}" if webhook.failing_since else "works"
        if webhook.disabled_at and webhook.disabled_reason:
            state = f"disabled {clock(webhook.disabled_at)}: {label('disabled', webhook.disabled_reason)}"
        line = f"{webhook.id}  {webhook.origin}  {state}; {webhook.waiting} waiting"
        show(webhook._asdict(), line)


@command.command("enable", short_help="Enable a webhook that was disabled.")
@_id
@yes_option
@json_option
def enable(webhook_id: str) -> None:
    """Enable a webhook that was disabled, and send its waiting events.

    \b
    Example: latchkey webhooks enable 3f2a9c1e-7b54-4d1a-9a65-0d2c9f1b7e44
    """
    ask(f"Send events to {webhook_id}?")
    _change(webhook_id, disabled=False)


@command.command("disable", short_help="Send a webhook no more events.")
@_id
@yes_option
@json_option
def disable(webhook_id: str) -> None:
    """Disable a webhook. Events that wait for it are sent once it is enabled.

    \b
    Example: latchkey webhooks disable 3f2a9c1e-7b54-4d1a-9a65-0d2c9f1b7e44
    """
    ask(f"Send no more events to {webhook_id}?")
    _change(webhook_id, disabled=True)


def _change(webhook_id: str, *, disabled: bool) -> None:
    with as_operator() as asked:
        webhook, _secret = webhooks.change(asked, webhook_id, {"disabled": disabled})
    state = "disabled" if disabled else "enabled"
    click.echo(webhook if prints_json() else f"{webhook_id} is {state}.")


@command.command("test", short_help="Send a test event, and print the response.")
@_id
@click.option(
    "--event",
    type=click.Choice(webhook_urls.EVENTS),
    default=webhook_urls.EVENTS[0],
    show_default=True,
    help="Send this event.",
)
@yes_option
@json_option
def test(webhook_id: str, event: str) -> None:
    """Send an event about a made-up user, through the delivery process, and print the response.

    Exits with 3 if the event was not accepted within 20 seconds.

    \b
    Example: latchkey webhooks test 3f2a9c1e-7b54-4d1a-9a65-0d2c9f1b7e44
    """
    ask(f"Send a test event to {webhook_id}?")
    with as_operator() as asked:
        delivery = json.loads(webhooks.send_test(asked, webhook_id, event))
        deadline, pause = time.monotonic() + _PATIENCE, 0.1
        while time.monotonic() < deadline:
            if delivery["status"] != "waiting" or delivery["last_error"]:
                break
            time.sleep(pause)
            pause = min(pause * 2, 1.6)
            row = queries.select_delivery(asked.db, webhook_id=webhook_id, id=delivery["id"])
            delivery = row.details if row else delivery
    result = delivery["response"] or delivery["last_error"] or "nothing sent it; see latchkey doctor"
    show(delivery, f"{delivery['status']}: {result}")
    if delivery["status"] != "sent":
        sys.exit(3)


def _http_url(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else urls.http_url(value)
    except ValueError as error:
        raise click.BadParameter(sentence(error)) from None


def _secret() -> str:
    """Return a secret that is not an argument: other users could see it."""
    text = os.environ.get("LATCHKEY_WEBHOOK_SECRET")
    try:
        return urls.webhook_secret(text) if text else webhook_urls.new_secret()
    except ValueError as error:
        raise click.BadParameter(sentence(error), param_hint="'LATCHKEY_WEBHOOK_SECRET'") from None


@command.command("listen", short_help="Print the events of a service on this machine.")
@click.option(
    "--forward", metavar="URL", callback=_http_url, help="Forward each event to this URL, with its signature."
)
@json_option
def listen(forward: str | None) -> None:
    """Print the events of a service on this machine until SIGTERM or Ctrl-C.

    For development: registers a webhook for this process, and deletes it on exit. Prints the application's
    response; events that it refuses are not sent again. Signs with LATCHKEY_WEBHOOK_SECRET or a new secret.

    \b
    Example: latchkey webhooks listen --forward http://localhost:3000/hooks
    """
    secret = _secret()
    with as_operator() as asked, _EventReceiver(secret, forward) as receiver:
        if not asked.settings.webhook_private_networks:
            raise click.ClickException(
                "AUTH_WEBHOOK_PRIVATE_NETWORKS is false, so the service won't post to this machine. Set it to"
                " true, and restart the service."
            )
        # Block it in all threads: the system may deliver a signal to any, and a handler would not wake the
        # main one.
        stops = {each for each in _STOPS if signal.getsignal(each) is not signal.SIG_IGN}  # as nohup sets it
        signal.pthread_sigmask(signal.SIG_BLOCK, stops)
        threading.Thread(target=receiver.serve_forever, args=(0.1,), daemon=True).start()
        url = f"http://127.0.0.1:{receiver.server_port}/"
        body = {"url": url, "description": "latchkey webhooks listen", "events": list(webhook_urls.EVENTS)}
        id = json.loads(webhooks.create(asked, body, secret)[0])["id"]
        try:
            click.echo(f"Listening. Press Ctrl-C to stop. Events are signed with {secret}", err=prints_json())
            signal.sigwait(stops)
        finally:
            with suppress(ApiError):
                webhooks.delete(asked, id)
            receiver.shutdown()
    click.echo("Stopped.", err=prints_json())


class _EventReceiver(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, secret: str, forward: str | None) -> None:
        super().__init__(("127.0.0.1", 0), _EventHandler)
        self.webhook = Webhook(secret)
        self.forward = forward
        # Click's context is that of the main thread.
        self.prints_json = prints_json()


class _EventHandler(BaseHTTPRequestHandler):
    timeout = constants.HTTP_TIMEOUT
    server: _EventReceiver

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        body = self.rfile.read(min(int(length), _MOST_BYTES)) if length.isdecimal() else b""
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            event = self.server.webhook.verify(body, headers)
        except (WebhookVerificationError, ValueError):
            self.send_response(401)  # any process on this machine can post here
        else:
            forward, id, user = self.server.forward, headers["webhook-id"], event["data"]["user"]
            answer = _post(forward, body, headers) if forward else None
            parts = event["timestamp"], f"{event['event']:<12}", user["id"], user["email"] or "-", id, answer
            outcome = {"id": id, "event": event, "response": answer}
            click.echo(json.dumps(outcome) if self.server.prints_json else "  ".join(filter(None, parts)))
            self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def _post(url: str, body: bytes, headers: dict[str, str]) -> str:
    passed_on = {name: headers[name] for name in headers if name.startswith(("webhook-", "content-type"))}
    try:
        return http_post.post(url, body, passed_on, timeout=constants.HTTP_TIMEOUT - 2).status_line
    except TryLater as failure:
        return str(failure)
