"""Clients whose id is the URL of a document with their metadata (Client ID Metadata Documents, draft 02).

A document is fetched once a day, for a signed-in user, and only at /oauth/authorize.
"""

import re

from urllib3.exceptions import HTTPError

from auth.core import constants, json_bodies
from auth.core.net.bounded_http import BoundedSession
from auth.core.net.networks import reach
from auth.core.net.sockets import DOCUMENTS, Deadline, why
from auth.core.tokens import client_ids
from auth.extensions.openid import clients
from auth.extensions.openid.authorization_requests import refusal
from auth.extensions.openid.clients import ClientColumns
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import acts, queries

_SECONDS = 3
_MOST_BYTES = 16 * 1024
_MEMBERS = ("client_name", "redirect_uris", "grant_types")
_JSON = re.compile(r"application/(?:[a-z0-9.-]+\+)?json", re.IGNORECASE)


class _UnusableDocument(Exception):
    """The message describes the problem of a document."""


def id_of(asked: Asked, url: str) -> str:
    """Return the id of the client whose document has a URL. Raises `RequestRefused`."""
    id = client_ids.admitted_row_id(url, asked.settings.oauth_client_documents)
    if id is None:
        problem = "its URL is not one of a document, or its host is not in AUTH_OAUTH_CLIENT_DOCUMENTS"
        raise refusal(url, problem)
    return id


def is_current(asked: Asked, id: str) -> bool:
    """Whether the document of a client need not be fetched now."""
    client = queries.select_client(asked.db, id=id)
    return client is not None and (client.is_current or client.is_blocked)


def fetch(asked: Asked, url: str, id: str) -> None:
    """Fetch a client's document, and write its client. Raises `RequestRefused`."""
    try:
        described = _read(asked, url, id, _fetch(url))
    except _UnusableDocument as error:
        raise refusal(url, f"its document: {error}") from None
    with acts.begin(asked.db) as act:
        act.lock_client(id)
        row = queries.select_client(act, id=id)
        before = ClientColumns.of(row._asdict()) if row else None
        client = described
        if before:
            # What an administrator has set stays.
            client = before._replace(
                name=described.name,
                redirect_uris=described.redirect_uris,
                grant_types=described.grant_types,
            )
        if client != before:
            queries.write_client(act, **client._asdict())
            # A consent must not cover changes after the page was shown.
            queries.delete_requests_to_other_uris(act, client_id=id, redirect_uris=[])
            change = "client_changed" if before else "client_created"
            audit.record(act, None, None, [change], [], client_id=id, client=client.name, url=url)
        queries.keep_client_document(act, id=id, metadata_url=url, lifetime=constants.DAY)
        if before is None:
            queries.delete_surplus_clients(act)


def _fetch(url: str) -> bytes:
    """Return a document from a public address. Raises `_UnusableDocument`."""
    headers = {"User-Agent": "latchkey", "Accept": "application/json"}
    with (
        Deadline(_SECONDS, lambda address: reach(address) == "public", DOCUMENTS) as deadline,
        BoundedSession() as http,
    ):
        try:
            body = b""
            with http.get(url, headers=headers, stream=True) as response:
                content_type = response.headers.get("Content-Type", "")[:100].partition(";")[0].strip()
                if response.status_code != 200 or not _JSON.fullmatch(content_type):
                    raise _UnusableDocument(
                        f"{response.status_code} {content_type} instead of 200 application/json"
                    )
                while len(body) <= _MOST_BYTES and (chunk := response.raw.read(_MOST_BYTES + 1 - len(body))):
                    body += chunk
        except (HTTPError, OSError, ValueError) as error:
            reason = f"not read within {_SECONDS} s" if deadline.has_passed else why(error)
            raise _UnusableDocument(reason) from error
    if len(body) > _MOST_BYTES:
        raise _UnusableDocument("it has more than 16 KiB")
    return body


def _read(asked: Asked, url: str, id: str, body: bytes) -> ClientColumns:
    """Return the client of a document. Raises `_UnusableDocument`."""
    try:
        document = json_bodies.decode(body)
    except json_bodies.InvalidJson as error:
        raise _UnusableDocument(str(error)) from None
    if document.get("client_id") != url:
        raise _UnusableDocument("its client_id is not its URL")
    method = document.get("token_endpoint_auth_method", clients.PUBLIC)
    methods = document.get("token_endpoint_auth_methods_supported", [])
    if method != clients.PUBLIC and not (isinstance(methods, list) and clients.PUBLIC in methods):
        raise _UnusableDocument(
            f"it needs a token_endpoint_auth_method that is not supported; only {clients.PUBLIC} is"
        )
    if not document.get("client_name"):
        raise _UnusableDocument("it has no client_name")
    chosen = {name: document[name] for name in _MEMBERS if name in document}
    try:
        registered = chosen | {"token_endpoint_auth_method": clients.PUBLIC}
        values = clients.load_registration(asked, registered)
        client = ClientColumns(id=id, secret_hash=None, accepts_either_method=False, **values)
        clients.check_members(asked, client)
        return client
    except ApiError as error:
        raise _UnusableDocument(error.details or error.msg) from None
