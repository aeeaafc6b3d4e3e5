"""Whatever a foreign server answers, the worker that asked serves other requests meanwhile, and refuses the answer.

tests/core/net/test_bounded_http.py tests which answers are accepted.
"""

import itertools
import ssl
import statistics
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from auth.core.tokens import one_time
from auth.html.forms import SESSION
from sql import queries
from tests.support import documents
from tests.support.awake import awake
from tests.support.hostile_server import (
    ANSWERS,
    Answer,
    HostileServer,
    document,
    drip,
    key_sets,
    whole,
)
from tests.support.openid import authorize_path
from tests.support.processes import GUNICORN
from tests.support.server import ServerClient
from tests.support.smtp_server import Certificate
from tests.support.users import PASSWORD

# Seconds that other requests may wait, and that the request to the hostile server may take.
PATIENCE, LONGEST = 1.0, 15.0
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
DISCOVERY = "/.well-known/openid-configuration"
# The slowest input of NFKC: it sorts these marks of two classes.
LONG_ADDRESS = "a" + "\u0301\u0327" * 60_000 + "@example.com"


class Worker:
    """A service with one worker; every server that it asks is `server`, with the answers of `server.answers`."""

    def __init__(self, client: ServerClient, server: HostileServer, service_role: dict[str, str]) -> None:
        self.client, self.server = client, server
        self._service_role, self._numbers = service_role, itertools.count()

    def while_it_serves(self, *calls: Callable[[], Any]) -> list[Any]:
        """Return the results of concurrent calls, and assert that GET /health is answered promptly meanwhile."""
        started_at, waits = awake(), [self._wait()]
        with ThreadPoolExecutor(len(calls)) as threads:
            results: list[Future[Any]] = [threads.submit(call) for call in calls]
            while not all(each.done() for each in results) and max(waits) < PATIENCE:
                waits.append(self._wait())
        assert max(waits) < PATIENCE, f"{waits[-1]:.1f} s, {statistics.median(waits):.3f} s before"
        assert awake() - started_at < LONGEST
        return [each.result() for each in results]

    def _wait(self) -> float:
        started_at = awake()
        assert self.client.get("/health").status_code == 200
        return awake() - started_at

    def add_provider(
        self,
        discovery: Answer | None,
        keys: Answer = ANSWERS["deep JSON"],
        server: HostileServer | None = None,
    ) -> Any:
        """Add a provider with this discovery document, or a good one, and these keys; return the response."""
        server, number = server or self.server, next(self._numbers)
        issuer = f"{server.url}/issuer{number}"
        endpoints = {
            "issuer": issuer,
            **{f"{name}_endpoint": f"{issuer}/{name}" for name in ("authorization", "token", "userinfo")},
            "jwks_uri": f"{issuer}/keys",
        }
        path = urlsplit(issuer).path
        server.answers |= {f"{path}{DISCOVERY}": discovery or document(endpoints), f"{path}/keys": keys}
        body = {
            "provider_type": "oidc",
            "identifier": f"custom:hostile{number}",
            "name": "Hostile",
            "client_id": "x",
            "client_secret": "x",
            "issuer": issuer,
            "domains": [f"hostile{number}.example"],
        }
        return self.client.post("/admin/custom-providers", json=body, headers=self._service_role)

    def sign_in(self, token: Answer, userinfo: Answer = ANSWERS["deep JSON"]) -> str:
        """Sign in at a provider with these answers, and return where that leads."""
        self.server.answers |= {"/token": token, "/userinfo": userinfo}
        with httpx.Client(
            base_url=f"http://127.0.0.1:{self.client.port}", timeout=60, trust_env=False
        ) as http:
            redirect = http.get("/authorize?provider=plain")
            query_of_provider = parse_qs(urlsplit(redirect.headers["Location"]).query)
            cookies = "; ".join(f"{name}={value}" for name, value in redirect.cookies.items())
            path = urlsplit(query_of_provider["redirect_uri"][0]).path
            query = {"code": "x", "state": query_of_provider["state"][0]}
            callback_response = http.get(path, params=query, headers={"Cookie": cookies})
        return str(callback_response.headers["Location"])

    def sign_up(self, email: str = "new@example.com") -> Any:
        proof = {"gotrue_meta_security": {"captcha_token": "a-token"}}
        return self.client.post("/signup", json={"email": email, "password": PASSWORD} | proof)


@dataclass(frozen=True)
class Servers:
    """Hostile servers: of HTTP, and of TLS with a million session tickets, or a chain of two thousand certificates."""

    plain: HostileServer
    tickets: HostileServer
    chain: HostileServer
    certificate: Certificate


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    directory: Path = tmp_path_factory.mktemp("certificates")
    certificate = Certificate(directory)
    tickets = certificate.server_context
    tickets.num_tickets = 1_000_000
    chain = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (directory / "chain.pem").write_bytes(certificate.path.read_bytes() * 2000)
    chain.load_cert_chain(directory / "chain.pem", certificate.path)
    with HostileServer() as plain, HostileServer(tickets) as of_tickets, HostileServer(chain) as of_chain:
        yield Servers(plain, of_tickets, of_chain, certificate)


@pytest.fixture(scope="module")
def running(serve, servers: Servers) -> Iterator[ServerClient]:
    url = servers.plain.url
    plain = {"CLIENT_ID": "x", "CLIENT_SECRET": "x", "AUTHORIZE_URL": f"{url}/authorize"}
    plain |= {"TOKEN_URL": f"{url}/token", "USERINFO_URL": f"{url}/userinfo"}
    settings = {
        "SSL_CERT_FILE": str(servers.certificate.path),
        "AUTH_WORKERS": "1",
        "AUTH_SSO": "true",
        "AUTH_WEBHOOK_PRIVATE_NETWORKS": "true",
        "AUTH_CAPTCHA": f"{url}/captcha",
        "AUTH_CAPTCHA_SECRET": "x",
        "AUTH_PASSWORD_LEAKED": f"{url}/range",
        "AUTH_HOOK_BEFORE_USER_CREATED": f"{url}/hook",
        "AUTH_HOOK_BEFORE_USER_CREATED_SECRETS": SECRET,
        **{f"AUTH_PROVIDER_PLAIN_{name}": value for name, value in plain.items()},
    }
    with serve(**settings) as (_, client):
        yield client


@pytest.fixture
def worker(running: ServerClient, servers: Servers, database, service_role) -> Worker:
    # Good answers to the requests of a sign-up, in their order.
    good_answers = {"/captcha": document({"success": True}), "/hook": document({})}
    servers.plain.answers = good_answers | {"/range/CA466": whole(b"0" * 35 + b":0", "text/plain")}
    return Worker(running, servers.plain, service_role)


def assert_refused(response: Any) -> None:
    assert (response.status_code, response.json["error_code"]) == (400, "validation_failed")


@pytest.mark.parametrize("name", ANSWERS)
def test_hostile_discovery_document_is_refused_while_other_requests_are_served(worker, name):
    (response,) = worker.while_it_serves(lambda: worker.add_provider(ANSWERS[name]))
    assert_refused(response)


def test_discovery_document_that_drips_is_refused_at_the_deadline_while_other_requests_are_served(worker):
    (response,) = worker.while_it_serves(lambda: worker.add_provider(drip))
    assert_refused(response)


@pytest.mark.parametrize("kind", ["tickets", "chain"])
def test_costly_tls_of_an_issuer_delays_no_other_request(worker, servers, kind):
    server = getattr(servers, kind)
    (response,) = worker.while_it_serves(lambda: worker.add_provider(ANSWERS["a body"], server=server))
    assert_refused(response)


@pytest.mark.parametrize("name", ["a body", "packets of one byte", "interim responses"])
def test_answer_in_tls_is_bounded_too(worker, servers, name, monkeypatch):
    monkeypatch.setattr(servers.certificate.server_context, "num_tickets", 2)
    server = servers.tickets
    (response,) = worker.while_it_serves(lambda: worker.add_provider(ANSWERS[name], server=server))
    assert_refused(response)


@pytest.mark.parametrize("name", key_sets())
def test_costly_keys_of_an_issuer_delay_no_other_request(worker, name):
    (response,) = worker.while_it_serves(lambda: worker.add_provider(None, key_sets()[name]))
    assert response.status_code in (201, 400)


@pytest.mark.parametrize("name", ANSWERS)
def test_hostile_token_response_fails_the_sign_in_while_other_requests_are_served(worker, name):
    (location,) = worker.while_it_serves(lambda: worker.sign_in(ANSWERS[name]))
    assert "error=server_error" in location
    assert "/token" in worker.server.paths


TOKEN = document({"access_token": "x", "token_type": "bearer"})
PROFILES = {
    "an address of 240 KB": document({"sub": "1", "email": LONG_ADDRESS}),
    "a name of 240 KB": document({"sub": "1", "name": LONG_ADDRESS}),
    "a subject of 240 KB": document({"sub": LONG_ADDRESS}),
    "a number of 4,000 digits": document({"sub": int("1" * 4000)}),
    "infinity": whole(b'{"sub": 1e400}'),
}


@pytest.mark.parametrize("name", [*PROFILES, "interim responses", "empty members of gzip"])
def test_hostile_profile_ends_the_sign_in_while_other_requests_are_served(worker, name):
    answer = PROFILES.get(name) or ANSWERS[name]
    (location,) = worker.while_it_serves(lambda: worker.sign_in(TOKEN, answer))
    assert "/userinfo" in worker.server.paths
    # An address or a name that is too long is left out, and the sign-in succeeds.
    assert "error=server_error" in location or name in ("an address of 240 KB", "a name of 240 KB")


@pytest.mark.parametrize(
    "name",
    ["interim responses", "chunks of one byte", "packets of one byte", "trailers", "deep JSON", "wide JSON"],
)
@pytest.mark.parametrize(("path", "status"), [("/captcha", 503), ("/hook", 503), ("/range/CA466", 201)])
def test_sign_up_gets_a_hostile_answer_while_other_requests_are_served(worker, path, status, name):
    worker.server.answers[path] = ANSWERS[name]
    (response,) = worker.while_it_serves(worker.sign_up)
    assert path in worker.server.paths
    assert response.status_code == status


def test_twelve_hostile_answers_at_once_delay_no_other_request(worker):
    names = [
        "interim responses",
        "packets of one byte",
        "chunks of one byte",
        "wide JSON",
        "trailers",
        "a body",
    ]
    private = key_sets()["private keys"]
    calls: list[Callable[[], Any]] = [partial(worker.add_provider, ANSWERS[name]) for name in names]
    calls += [partial(worker.add_provider, None, private), partial(worker.add_provider, drip)] * 3
    responses = worker.while_it_serves(*calls)
    assert [response.status_code for response in responses] == [400] * 6 + [201, 400] * 3


@pytest.fixture(scope="module")
def agents(serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerClient, HostileServer]]:
    """A worker that accepts documents of applications, and the server of these."""
    certificate = Certificate(tmp_path_factory.mktemp("agents"), documents.HOST)
    with HostileServer(certificate.server_context) as server:
        settings = {
            "SSL_CERT_FILE": str(certificate.path),
            "DOCUMENTS_PORT": str(server.port),
            "AUTH_WORKERS": "1",
            "AUTH_OAUTH_SERVER": "true",
            "AUTH_OAUTH_CLIENT_DOCUMENTS": documents.HOST,
        }
        command = [sys.executable, *GUNICORN, "--config", "tests/support/documents.conf.py"]
        with serve(command, **settings) as (_, client):
            yield client, server


@pytest.mark.parametrize(
    "name", ["interim responses", "packets of one byte", "trailers", "a body", "deep JSON"]
)
def test_hostile_document_of_an_application_is_refused_while_other_requests_are_served(
    agents, database, service_role, alice, parts, name
):
    client, server = agents
    token = one_time.new_token()
    session = alice.open_session()
    queries.insert_browser_session(parts.db, token_hash=one_time.hash_token(token), session_id=session.id)
    server.answers[urlsplit(documents.URL).path] = ANSWERS[name]
    path = authorize_path(documents.URL, redirect_uri=documents.CALLBACK)
    cookie = {"Cookie": f"{SESSION}={token}"}
    worker = Worker(client, server, service_role)
    before = len(server.paths)
    (response,) = worker.while_it_serves(lambda: client.get(path, headers=cookie))
    assert (response.status_code, len(server.paths)) == (400, before + 1)
