"""Webhooks: their permitted URLs, and their secrets."""

import base64
import os
import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from auth.core.net.networks import is_loopback, reach
from auth.core.net.sockets import CUSTOMERS, Deadline

EVENTS = (
    "user.created", "user.updated", "user.deleted", "auth.login", "auth.logout",
    "organization.created", "organization.updated", "organization.deleted",
    "membership.created", "membership.updated", "membership.deleted",
)  # fmt: skip
VOIDED_AT_ONCE = 2_000  # waiting deliveries, when a webhook is deleted
_SECRET_BYTES = 32
_LOOKUP_SECONDS = 5.0
# Printable ASCII without the backslash, which URL parsers disagree about.
_URL = re.compile(r"[!-\[\]-~]+")


class InvalidWebhookUrl(Exception):
    """The message is for the client."""


def check_url(url: str, private_networks: bool) -> None:
    """Check a webhook's URL and the addresses that its name resolves to. Raises `InvalidWebhookUrl`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidWebhookUrl("must be an http or https URL") from None
    if not _URL.fullmatch(url) or parts.scheme not in ("http", "https") or not host or port == 0:
        raise InvalidWebhookUrl("must be an http or https URL")
    if "@" in parts.netloc or "%" in parts.netloc or parts.fragment:
        raise InvalidWebhookUrl("must not have a user, zone or fragment")
    try:
        with Deadline(_LOOKUP_SECONDS, lookups=CUSTOMERS) as deadline:
            addresses = deadline.resolve(host, port or (443 if parts.scheme == "https" else 80))
    except (OSError, UnicodeError):
        addresses = []
    if not addresses:
        raise InvalidWebhookUrl("must have a host that can be resolved")
    reaches = {reach(str(address[0])) for *_, address in addresses}
    if "forbidden" in reaches:
        raise InvalidWebhookUrl("must not be in a private network")
    if "private" in reaches and not private_networks:
        raise InvalidWebhookUrl(
            "must not be in a private network unless AUTH_WEBHOOK_PRIVATE_NETWORKS is true"
        )
    if parts.scheme == "http" and "public" in reaches:
        raise InvalidWebhookUrl("must be https, except in a private network")


def allowed_addresses(url: str, private_networks: bool) -> Callable[[str], bool]:
    """Return a check of the addresses of deliveries: DNS may have changed after `check_url`."""
    is_allowed = {"private": private_networks, "public": urlsplit(url).scheme == "https", "forbidden": False}
    return lambda address: is_allowed[reach(address)]


def allowed_for_operator(url: str, private_networks: bool) -> Callable[[str], bool]:
    """Return such a check for a URL of the settings. If its host is this machine, it allows no other."""
    if is_loopback(urlsplit(url).hostname or ""):
        return is_loopback
    return allowed_addresses(url, private_networks)


def body(event: str, variables: Mapping[str, object]) -> dict[str, object]:
    """Return the body of an event's request."""
    return {"event": event, "timestamp": variables["timestamp"], "data": variables["data"]}


def new_secret() -> str:
    return "whsec_" + base64.b64encode(os.urandom(_SECRET_BYTES)).decode()
