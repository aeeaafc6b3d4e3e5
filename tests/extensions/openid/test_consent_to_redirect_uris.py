"""A consent is for the redirect URIs on the host that its page showed, as the application had them at that time. One that
it gets later, or has on another host, asks again.
"""

from urllib.parse import urlsplit

import pytest

from tests.support.admin_keys import make_admin_key
from tests.support.devices import begin as begin_device
from tests.support.devices import make_television
from tests.support.openid import answer, authorize_path, insert_client
from tests.support.openid_flow import Application, allow, make_application
from tests.support.pages import Visitor, words
from tests.support.tables import Rows

CALLBACK, RENEWAL = "https://wiki.example/callback", "https://wiki.example/renewal"
FOREIGN = "https://evil.example/callback"


@pytest.fixture
def wiki(client, database) -> Application:
    return make_application(client, database, name="Wiki", redirect_uris=[CALLBACK])


@pytest.fixture
def visitor(app, alice) -> Visitor:
    return Visitor(app).with_session_of(alice)


@pytest.fixture
def change(client, service_role):
    """Let the operator, or a key, give an application these redirect URIs."""

    def change(application, *redirect_uris, headers=service_role):
        path = f"/admin/oauth/clients/{application.client.id}"
        response = client.put(path, json={"redirect_uris": list(redirect_uris)}, headers=headers)
        assert response.status_code == 200, response.text

    return change


def at(application: Application, redirect_uri: str) -> Application:
    return Application(application.http, application.client, redirect_uri)


def silent(application: Application, visitor: Visitor, redirect_uri: str = CALLBACK) -> str:
    """Return the error of a request without a page, or "code"."""
    members = answer(at(application, redirect_uri).begin(visitor, prompt="none").url, redirect_uri)
    return members.get("error", "code")


def asks(application: Application, visitor: Visitor, redirect_uri: str = CALLBACK) -> bool:
    page = at(application, redirect_uri).begin(visitor)
    if is_asked := urlsplit(page.url).path == "/oauth/consent":
        assert urlsplit(redirect_uri).netloc in words(page)
    return is_asked


@pytest.mark.parametrize("who", ["operator", "key"])
def test_uri_of_another_host_that_was_added_before_the_first_consent_asks(wiki, visitor, change, parts, who):
    headers = {"headers": make_admin_key(parts, "clients").headers} if who == "key" else {}
    change(wiki, CALLBACK, FOREIGN, **headers)
    wiki.tokens(visitor)
    assert (silent(wiki, visitor), silent(wiki, visitor, FOREIGN)) == ("code", "consent_required")
    assert (asks(wiki, visitor), asks(wiki, visitor, FOREIGN)) == (False, True)


@pytest.mark.parametrize("uri", [FOREIGN, RENEWAL])
def test_uri_that_is_added_while_the_page_is_open_asks(wiki, visitor, change, parts, uri):
    wiki.begin(visitor)
    change(wiki, CALLBACK, uri, headers=make_admin_key(parts, "clients").headers)
    assert "code" in wiki.returned(allow(visitor))
    assert (silent(wiki, visitor), silent(wiki, visitor, uri)) == ("code", "consent_required")
    assert asks(wiki, visitor, uri)


@pytest.mark.parametrize("uri", [FOREIGN, RENEWAL])
def test_uri_that_is_added_later_asks_once(wiki, visitor, change, database: Rows, uri):
    wiki.tokens(visitor)
    change(wiki, CALLBACK, uri)
    assert silent(wiki, visitor, uri) == "consent_required"
    assert asks(wiki, visitor, uri)
    assert "code" in at(wiki, uri).returned(allow(visitor))
    assert (silent(wiki, visitor), silent(wiki, visitor, uri)) == ("code", "code")
    assert database.count("audit_log", "action = 'grant_added'") == 2
    # The notice is about a new application.
    assert database.count("outbox", "kind = 'application_added'") <= 1


def test_denied_page_of_a_new_uri_allows_nothing(wiki, visitor, change):
    wiki.tokens(visitor)
    change(wiki, CALLBACK, FOREIGN)
    at(wiki, FOREIGN).begin(visitor)
    assert at(wiki, FOREIGN).returned(visitor.submit(action="deny"))["error"] == "access_denied"
    assert (silent(wiki, visitor), silent(wiki, visitor, FOREIGN)) == ("code", "consent_required")


def test_silent_request_uses_another_uri_of_the_host_that_the_page_showed(wiki, visitor, change):
    """Libraries renew tokens in a frame at a URI of its own, where no page can ask."""
    change(wiki, CALLBACK, RENEWAL)
    wiki.tokens(visitor)
    assert silent(wiki, visitor, RENEWAL) == "code"


def test_code_without_a_page_allows_no_uri_that_the_host_has_got_since(wiki, visitor, change):
    wiki.tokens(visitor)
    change(wiki, CALLBACK, RENEWAL)
    assert (asks(wiki, visitor), silent(wiki, visitor)) == (False, "code")
    assert (silent(wiki, visitor, RENEWAL), asks(wiki, visitor, RENEWAL)) == ("consent_required", True)


def test_page_that_was_asked_for_allows_what_the_host_has_got_since(wiki, visitor, change):
    wiki.tokens(visitor)
    change(wiki, CALLBACK, RENEWAL)
    assert silent(wiki, visitor, RENEWAL) == "consent_required"
    wiki.begin(visitor, prompt="consent")
    assert "code" in wiki.returned(allow(visitor))
    assert silent(wiki, visitor, RENEWAL) == "code"


def test_uri_that_was_removed_and_comes_back_after_another_consent_asks(wiki, visitor, change):
    change(wiki, CALLBACK, FOREIGN)
    for uri in (CALLBACK, FOREIGN):
        at(wiki, uri).tokens(visitor)
    change(wiki, CALLBACK)
    wiki.begin(visitor, prompt="consent", scope="openid email profile")
    assert "code" in wiki.returned(allow(visitor))
    change(wiki, CALLBACK, FOREIGN)
    assert silent(wiki, visitor, FOREIGN) == "consent_required"


def test_grant_that_a_node_of_the_former_release_wrote_asks_once(wiki, visitor, database):
    wiki.tokens(visitor)
    database.run("UPDATE oauth_grants SET redirect_uris = NULL")
    assert silent(wiki, visitor) == "consent_required"
    assert asks(wiki, visitor)
    assert "code" in wiki.returned(allow(visitor))
    assert silent(wiki, visitor) == "code"


def test_request_that_a_node_of_the_former_release_wrote_allows_its_uri(wiki, visitor, change, database):
    change(wiki, CALLBACK, RENEWAL)
    wiki.begin(visitor)
    database.run("UPDATE oauth_requests SET client_redirect_uris = NULL")
    assert "code" in wiki.returned(allow(visitor))
    assert (silent(wiki, visitor), silent(wiki, visitor, RENEWAL)) == ("code", "consent_required")


def test_page_of_the_application_is_asked_too(make_app, database, alice, service_role):
    client = make_app(AUTH_OAUTH_CONSENT_URL="https://app.example.com/consent").test_client()
    wiki = make_application(client, database, name="Wiki", redirect_uris=[CALLBACK])
    visitor = Visitor(client.application).with_session_of(alice)
    session = alice.open_session(client)

    def agree(redirect_uri):
        """Return whether the page has to ask, and agree."""
        url = at(wiki, redirect_uri).begin(visitor).url
        path = f"/oauth/authorizations/{url.rpartition('=')[2]}"
        if is_asked := "redirect_url" not in (request := session.get(path).json):
            assert request["redirect_uri"] == redirect_uri
            request = session.post(f"{path}/consent", json={"action": "approve"}).json
        assert "code=" in visitor.visit(request["redirect_url"], stop=lambda url: "code=" in url).url
        return is_asked

    assert (agree(CALLBACK), agree(CALLBACK)) == (True, False)
    path, both = f"/admin/oauth/clients/{wiki.client.id}", {"redirect_uris": [CALLBACK, FOREIGN]}
    assert client.put(path, json=both, headers=service_role).status_code == 200
    assert (agree(FOREIGN), agree(FOREIGN), agree(CALLBACK)) == (True, False, False)
    # A code without a question allows no URI that the host has got since.
    more = {"redirect_uris": [CALLBACK, RENEWAL, FOREIGN]}
    assert client.put(path, json=more, headers=service_role).status_code == 200
    assert (agree(CALLBACK), agree(RENEWAL), agree(RENEWAL)) == (False, True, False)


def test_application_that_skips_the_consent_asks_nobody(client, database, visitor, change):
    wiki = make_application(client, database, name="Wiki", redirect_uris=[CALLBACK], skip_consent=True)
    wiki.tokens(visitor)
    change(wiki, CALLBACK, FOREIGN)
    for _ in range(2):
        assert (silent(wiki, visitor), silent(wiki, visitor, FOREIGN)) == ("code", "code")
    assert database.count("audit_log", "action = 'grant_added'") == 1


@pytest.mark.parametrize("has_allowed", [True, False])
def test_use_without_a_question_is_no_consent_once_the_application_asks(
    client, database, visitor, change, has_allowed
):
    """Its users have seen no page, or one that showed another host or less."""
    wiki = make_application(
        client, database, name="Wiki", redirect_uris=[CALLBACK, FOREIGN], skip_consent=not has_allowed
    )
    if has_allowed:
        wiki.tokens(visitor, scope="openid")
        database.run("UPDATE oauth_clients SET skip_consent = true")
    for uri in (CALLBACK, FOREIGN, CALLBACK):
        at(wiki, uri).tokens(visitor, scope="openid email")
    database.run("UPDATE oauth_clients SET skip_consent = false")
    assert silent(wiki, visitor, FOREIGN) == "consent_required"
    assert silent(wiki, visitor) == "consent_required"
    assert asks(wiki, visitor)
    assert "code" in wiki.returned(allow(visitor))
    assert (silent(wiki, visitor), silent(wiki, visitor, FOREIGN)) == ("code", "consent_required")


def test_use_without_a_question_takes_no_consent_away(client, database, visitor, wiki):
    wiki.tokens(visitor)
    database.run("UPDATE oauth_clients SET skip_consent = true")
    assert silent(wiki, visitor) == "code"
    database.run("UPDATE oauth_clients SET skip_consent = false")
    assert silent(wiki, visitor) == "code"


@pytest.mark.parametrize("has_allowed", [True, False])
def test_request_that_was_written_beside_the_removal_of_its_uri_gets_no_code(
    wiki, visitor, change, database, has_allowed
):
    """The URI was still there when the request was checked, and the request not when the URI was removed."""
    change(wiki, CALLBACK, FOREIGN)
    if has_allowed:
        for uri in (CALLBACK, FOREIGN):
            at(wiki, uri).tokens(visitor)
    at(wiki, FOREIGN).begin(visitor, prompt="consent")
    database.run("UPDATE oauth_clients SET redirect_uris = %(kept)s", kept=[CALLBACK])
    page = allow(visitor)
    assert (page.status, "code=" in page.url) == (404, False)
    assert database.count("oauth_grants") == int(has_allowed)
    assert silent(wiki, visitor) == ("code" if has_allowed else "consent_required")


def test_port_of_the_device_is_any(database, visitor):
    """A confidential program on a device takes the port that is free."""
    local = ["http://127.0.0.1/callback", "http://127.0.0.1/renewal"]
    client_id = insert_client(database, redirect_uris=local)

    def at_port(uri, **parameters):
        path = authorize_path(client_id, redirect_uri=uri, **parameters)
        return visitor.visit(path, stop=lambda url: url.startswith(uri))

    at_port("http://127.0.0.1:5000/callback")
    visitor.submit(action="approve", stop=lambda url: url.startswith("http://127.0.0.1:5000"))
    for uri in ("http://127.0.0.1:5001/callback", "http://127.0.0.1:5002/renewal"):
        assert "code" in answer(at_port(uri, prompt="none").url, uri)
    assert database.value("SELECT redirect_uris FROM oauth_grants") == local


@pytest.mark.parametrize(
    ("uri", "other", "is_one_place"),
    [
        ("https://wiki.example/a", "https://WIKI.example/b?c=d", True),
        ("https://wiki.example/a", "https://wiki.example:8443/b", False),
        ("https://wiki.example/a", "https://wiki.example:443/b", False),
        ("https://wiki.example/a", "https://wiki.example./b", False),
        ("https://wiki.example/a", "https://evil.wiki.example/b", False),
        ("https://wiki.example/a", "https://xn--wki-yqa.example/b", False),
        ("https://wiki.example/a", "wiki.app://wiki.example/b", False),
        ("wiki.app:/a", "wiki.app:/b", True),
        ("wiki.app:/a", "wiki.app://evil/b", False),
        ("wiki.app:/a", "wiki.other:/b", False),
        ("http://127.0.0.1/a", "http://127.0.0.1:9000/b", True),
        ("http://127.0.0.1/a", "http://localhost/b", False),
        ("http://127.0.0.1/a", "http://[::1]/b", False),
        ("http://localhost/a", "https://localhost/b", False),
        ("https://localhost:3000/a", "https://localhost:4000/b", False),
    ],
)
def test_consent_is_for_one_place(database, visitor, uri, other, is_one_place):
    """The page names a host with its port, or the scheme of an application, which may have no host."""
    client_id = insert_client(database, redirect_uris=[uri, other])
    visitor.visit(authorize_path(client_id, redirect_uri=uri))
    assert visitor.submit(action="approve", stop=lambda url: url.startswith(f"{uri}?code=")).url
    allowed = [uri, other] if is_one_place else [uri]
    assert database.value("SELECT redirect_uris FROM oauth_grants") == allowed
    path = authorize_path(client_id, redirect_uri=other, prompt="none")
    page = visitor.visit(path, stop=lambda url: url.startswith(other))
    assert answer(page.url, other.partition("?")[0]).get("error", "code") == (
        "code" if is_one_place else "consent_required"
    )


def test_consent_to_a_device_is_for_no_redirect(client, database, visitor):
    grants = ["urn:ietf:params:oauth:grant-type:device_code", "authorization_code", "refresh_token"]
    television = make_television(
        database,
        redirect_uris=[CALLBACK],
        grant_types=grants,
        token_endpoint_auth_method="client_secret_basic",
    )
    device = begin_device(client, television)
    device.decide(visitor)
    assert device.poll().status_code == 200
    application = Application(client, television, CALLBACK)
    assert silent(application, visitor) == "consent_required"
    application.tokens(visitor)
    # Nor does a device take away what a page has allowed.
    begin_device(client, television).decide(visitor)
    assert silent(application, visitor) == "code"
