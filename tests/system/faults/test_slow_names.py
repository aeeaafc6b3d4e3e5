"""A name server keeps lookups of names waiting that customers and strangers choose: other names are looked up
meanwhile. A lookup goes on after the service has given it up, and counts until it ends.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from auth.core.tokens import one_time
from auth.html.forms import SESSION
from sql import queries
from tests.support.customers import Customers, SsoService
from tests.support.http_target import HttpTarget
from tests.support.oauth import SITE
from tests.support.openid import authorize_path
from tests.support.server import ServerClient, at_once
from tests.support.slow_names import SLOW, SlowNames
from tests.support.users import Person, session_of

# Requests at once: more than the threads that look names up.
FLOOD = 16
# Lookups at once of the names of one kind.
MOST_LOOKUPS = 3
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HOOK = "AUTH_HOOK_CUSTOM_ACCESS_TOKEN"


class WorkerWithNames:
    """A worker with a hook and customers' providers, at which Alice has signed in."""

    def __init__(self, client: ServerClient, names: SlowNames, alice: Person, customers: Customers) -> None:
        self.client, self.names, self._customers = client, names, customers
        token, session = one_time.new_token(), alice.open_session()
        parts = alice.client.application.extensions["latchkey"]
        queries.insert_browser_session(parts.db, token_hash=one_time.hash_token(token), session_id=session.id)
        self._cookie = {"Cookie": f"{SESSION}={token}"}

    def fetch_document(self, number: int) -> int:
        """Ask for a sign-in at an application whose id is the URL of a document."""
        url = f"https://application{number}{SLOW}/client.json"
        path = authorize_path(url, redirect_uri=f"https://application{number}{SLOW}/callback")
        return self.client.get(path, headers=self._cookie).status_code

    def leave_for(self, identifier: str) -> str:
        """Begin a sign-in at a customer's provider, and return where it leads."""
        response = self.client.get(f"/authorize?provider={identifier}")
        assert response.status_code == 302
        return response.headers["Location"]

    def leave_for_slow(self, number: int) -> str:
        """Begin a sign-in at a provider whose name is not found, and return the beginning of the error."""
        return self.leave_for(f"custom:slow{number}").partition("&")[0]

    def leave_for_acme(self) -> None:
        assert self.leave_for("custom:acme-idp").startswith(self._customers.acme.provider.url)


@pytest.fixture
def worker(make_app, serve, service_role, database, alice) -> Iterator[WorkerWithNames]:
    with Customers() as customers, SlowNames() as names, HttpTarget() as hook:
        hook.answer = lambda event: {"claims": event["claims"] | {"asked": True}}
        add_customers(SsoService(make_app(AUTH_SSO="true"), service_role), customers, database)
        settings = {
            "AUTH_WORKERS": "1",
            "AUTH_SSO": "true",
            "AUTH_OAUTH_SERVER": "true",
            "AUTH_OAUTH_CLIENT_DOCUMENTS": "*",
            HOOK: hook.url,
            f"{HOOK}_SECRETS": SECRET,
        }
        with serve(names.command, **settings, **names.settings) as (_, client):
            yield WorkerWithNames(client, names, alice, customers)
            names.over.set()


def add_customers(service: SsoService, customers: Customers, database: Any) -> None:
    """Add a customer whose provider answers, and customers whose issuers have moved to slow names since."""
    service.add(customers.acme)
    for number in range(FLOOD + 1):
        changes: dict[str, Any] = {"identifier": f"custom:slow{number}", "domains": [f"slow{number}.example"]}
        assert service.admin("POST", **customers.globex.body(**changes)).status_code == 201
    database.run(
        "UPDATE identity_providers SET issuer = 'http://' || substr(identifier, 8) || %(below)s"
        " WHERE identifier LIKE 'custom:slow%%'",
        below=SLOW,
    )


def assert_flood_is_bounded(
    worker: WorkerWithNames,
    person: Person,
    ask: Callable[[int], Any],
    refusal: Any,
    other_lookup: Callable[[], Any],
) -> None:
    names = worker.names
    assert at_once(FLOOD, ask) == [refusal] * FLOOD
    # All have given up, but their lookups continue.
    assert len(names.looked_up) == MOST_LOOKUPS
    for _ in range(3):
        assert session_of(worker.client, person.try_to_sign_in(client=worker.client)).claims["asked"] is True
    # A name of another kind is looked up, too.
    other_lookup()
    # Once they end, others can start, and abandoned lookups are skipped.
    before = len(names.looked_up)
    names.over.set()
    assert ask(FLOOD) == refusal
    assert len(names.looked_up) == before + 1


def test_documents_of_unknown_clients_take_no_thread_from_hooks_and_customers(worker, bob):
    assert_flood_is_bounded(worker, bob, worker.fetch_document, 400, worker.leave_for_acme)


def test_customers_providers_take_no_thread_from_hooks_and_documents(worker, bob):
    refusal = f"{SITE}#error=temporarily_unavailable"
    assert_flood_is_bounded(worker, bob, worker.leave_for_slow, refusal, lambda: worker.fetch_document(FLOOD))


def test_urls_of_webhooks_and_of_clients_take_no_thread_from_hooks_and_documents(worker, bob, service_role):
    def make(number: int) -> int:
        url = f"https://receiver{number}{SLOW}/"
        path, body = (
            ("/admin/webhooks", {"url": url})
            if number % 2
            else ("/admin/oauth/clients", {"redirect_uris": [f"{SITE}/cb"], "backchannel_logout_uri": url})
        )
        return worker.client.post(path, json=body, headers=service_role).status_code

    assert_flood_is_bounded(worker, bob, make, 400, lambda: worker.fetch_document(FLOOD))
