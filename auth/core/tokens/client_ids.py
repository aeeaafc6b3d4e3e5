"""Ids of OAuth clients: a UUID, or the URL of a client's metadata document."""

import re
import uuid
from collections.abc import Collection
from contextlib import suppress

HOST = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z](?:[a-z0-9-]*[a-z0-9])?"
# Port, user, query, fragment and escapes are not allowed: parsers read them differently.
_URL = re.compile(rf"https://({HOST})(/[A-Za-z0-9._~!$&'()*+,;=:@/-]+)")


def is_url(client_id: str) -> bool:
    return client_id.startswith("https://")


def row_id(client_id: str) -> str:
    """Return the id of a client's row. Raises `ValueError`.

    The row id of a URL is derived from the URL. It is not accepted as a client id: code that looks for a URL
    would miss it.
    """
    if is_url(client_id):
        return str(uuid.uuid5(uuid.NAMESPACE_URL, client_id))
    id = uuid.UUID(client_id)
    if id.version == 5 or str(id) != client_id.lower():
        raise ValueError("not the id of a client")
    return str(id)


def admitted_row_id(client_id: str, hosts: Collection[str]) -> str | None:
    """Return `row_id`, or None for an invalid id or a URL at another host; `*` is any host."""
    if is_url(client_id):
        host = host_of(client_id)
        if host is None or {host, "*"}.isdisjoint(hosts):
            return None
    with suppress(ValueError):
        return row_id(client_id)
    return None


def host_of(url: str) -> str | None:
    """Return the host of a possible client URL, or None for other texts."""
    parts = _URL.fullmatch(url)
    if not parts or {segment.partition(";")[0] for segment in parts[2].split("/")} & {".", ".."}:
        return None
    return parts[1]
