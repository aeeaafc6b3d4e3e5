"""A token of each kind that the service makes, for tests of who accepts it."""

import time
from typing import Any

from auth.core.tokens import client_ids
from tests.support.api_keys import make_key, token_of
from tests.support.devices import begin, make_television
from tests.support.documents import CALLBACK, HOST, URL
from tests.support.factors import set_up
from tests.support.openid import (
    GRANT_TYPES,
    REDIRECT_URI,
    RESOURCE,
    Client,
    claims_of,
    grant,
    granted_code,
    make_client,
)
from tests.support.users import Person

# The settings of a service that creates them all.
SETTINGS = {"AUTH_API_KEYS": "true", "AUTH_OAUTH_CLIENT_DOCUMENTS": HOST}
NONCE = "a nonce"
# The kinds whose application sends no resource, so that their tokens are for userinfo.
FOR_USERINFO = {"client", "another client", "client_credentials", "device", "client of a document"}
OTHER_RESOURCE = "https://other.example.com/"
_ALL_SCOPES = "openid profile email phone groups roles"


def make_notes(database: Any) -> Client:
    """Return the application whose ID token is `id token`."""
    return make_client(database, name="Notes", resources=[RESOURCE])


def token_of_each_kind(client: Any, database: Any, alice: Person, notes: Client) -> dict[str, str]:
    """Return tokens of Alice by the names of their kinds, for Notes and another application."""
    first_session = alice.open_session(client=client)
    _key_id, key = make_key(first_session)
    key_token = token_of(client, key)
    _app, session = set_up(first_session)
    other_client = make_client(
        database,
        name="Other",
        grant_types=[*GRANT_TYPES, "client_credentials"],
        scopes=["read", *_ALL_SCOPES.split()],
        resources=[RESOURCE],
    )

    def redeem(application: Any, **columns: Any) -> Any:
        code = granted_code(database, application, session, _ALL_SCOPES, **columns)
        return application.redeem(client, code, redirect_uri=REDIRECT_URI).json

    answer, with_resource = redeem(notes, nonce=NONCE), redeem(notes, resource=RESOURCE)
    of_other, elsewhere = redeem(other_client, nonce=NONCE), redeem(other_client, resource=OTHER_RESOURCE)
    agent = make_client(
        database,
        CALLBACK,
        id=client_ids.row_id(URL),
        token_endpoint_auth_method="none",
        is_dynamic=True,
        metadata_url=URL,
        fetched_until="infinity",
    )
    code = granted_code(database, agent, session, _ALL_SCOPES, nonce=NONCE, redirect_uri=CALLBACK)
    of_document = Client(URL, None, "none").redeem(client, code, redirect_uri=CALLBACK).json
    device = begin(client, make_television(database))
    grant(database, alice.id, device.client.id)
    database.run(
        "UPDATE oauth_requests SET user_id = %(user)s, session_id = %(session)s, decision = 'approved'"
        " WHERE user_code_mac IS NOT NULL",
        user=alice.id,
        session=session.id,
    )
    of_device = device.poll().json
    form = {"grant_type": "client_credentials"}
    logout = {name: claims_of(answer["id_token"])[name] for name in ("sub", "aud", "sid")}
    return {
        "session": session.access_token,
        "second step": alice.sign_in(client=client).access_token,
        "API key": key_token,
        "client": answer["access_token"],
        "client, with resource": with_resource["access_token"],
        "another client": of_other["access_token"],
        "another client, elsewhere": elsewhere["access_token"],
        "client_credentials": other_client.post(client, "/oauth/token", **form).json["access_token"],
        "client_credentials, with resource": other_client.post(
            client, "/oauth/token", **form, resource=RESOURCE
        ).json["access_token"],
        "device": of_device["access_token"],
        "client of a document": of_document["access_token"],
        "id token": answer["id_token"],
        "id token of a device": of_device["id_token"],
        "id token of a document's client": of_document["id_token"],
        "id token of another client": of_other["id_token"],
        "logout token": client.application.extensions["latchkey"].client_tokens.logout_token(
            logout, issued_at=int(time.time()), algorithm="RS256"
        ),
    }
