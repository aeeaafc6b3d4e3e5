"""/admin/oauth/clients: the applications that sign users in here."""

import hashlib
import json
from typing import Any

import pytest

from auth.core.tokens import signing_keys
from auth.extensions.openid import uris
from auth.extensions.openid.clients import DEVICE_CODE
from tests.support.answers import (
    A_CLIENT_SECRET,
    A_SENTENCE,
    NO_ID,
    Like,
    assert_error,
    assert_ok,
    oauth_client,
)
from tests.support.cases import cases
from tests.support.openid import grant
from tests.support.server import at_once

PATH = "/admin/oauth/clients"
APP = "https://app.example.com/callback"  # as in the expected client
SESSION = (
    "INSERT INTO sessions (user_id, method, grant_id) SELECT user_id, 'oauth_client', id FROM oauth_grants"
)
REQUEST = """
    INSERT INTO oauth_requests (id_hash, client_id, browser_hash, redirect_uri, scopes, expires_at)
    VALUES (%(uri)s::text::bytea, %(client)s, '', %(uri)s, '{openid}', now() + interval '10 minutes')
"""


PUBLIC = {"client_type": "public", "token_endpoint_auth_method": "none"}


@pytest.fixture
def ask(client, service_role):
    def ask(method: str, path: str = "", prefix: str = "", **body: Any) -> Any:
        body = {"json": body} if method in ("post", "put") else {}
        return client.open(f"{prefix}{PATH}{path}", method=method.upper(), headers=service_role, **body)

    return ask


@pytest.fixture
def create(ask):
    def create(**body: Any) -> Any:
        response = ask("post", **{"redirect_uris": [APP]} | body)
        assert response.status_code == 201, response.json
        return response.json

    return create


def assert_invalid(response, msg):
    assert_error(response, 400, "validation_failed", msg)


class TestCreating:
    def test_secret_is_shown_once_and_only_its_hash_is_kept(self, ask, database):
        response = ask("post", client_name="Grafana", redirect_uris=[APP])
        assert_ok(response, oauth_client(client_name="Grafana", client_secret=A_CLIENT_SECRET), 201)
        application = response.json
        secret_hash = bytes(database.value("SELECT secret_hash FROM oauth_clients"))
        assert secret_hash == hashlib.sha256(application["client_secret"].encode()).digest()
        assert application["client_secret"] not in str(database.everything("oauth_clients", "audit_log"))
        assert_ok(ask("get", f"/{application['client_id']}"), oauth_client(client_name="Grafana"))
        assert ask("get").json["clients"] == [oauth_client(client_name="Grafana")]

    def test_all_members_are_kept(self, ask, create):
        members = {
            "client_name": "Reports",
            "client_uri": "https://app.example.com",
            "logo_uri": "https://app.example.com/logo.svg",
            "token_endpoint_auth_method": "client_secret_post",
            "redirect_uris": [APP, "https://app.example.com/a,b?x=1"],
            "post_logout_redirect_uris": ["https://app.example.com/"],
            "grant_types": ["authorization_code", "client_credentials"],
            "scopes": ["reports:read"],
            "resources": ["https://api.example.com/", "urn:example:api"],
            "allowed_roles": ["admin", "Sales team"],
            "require_pkce": False,
            "skip_consent": True,
            "introspects_sessions": True,
            "token_lifetime": 30,
            "id_token_signed_response_alg": "ES256",
        }
        application = create(**members)
        assert application == oauth_client(**members, client_secret=A_CLIENT_SECRET)
        assert ask("get", f"/{application['client_id']}").json == oauth_client(**members)

    def test_client_without_redirects_has_client_credentials_alone(self, ask, create):
        machine = {"grant_types": ["client_credentials"], "redirect_uris": []}
        assert create(**machine) == oauth_client(**machine, client_secret=A_CLIENT_SECRET)

    @cases(
        ("body", "expected"),
        [
            ({"client_type": "public"}, PUBLIC),
            ({"token_endpoint_auth_method": "none"}, PUBLIC),
            ({"client_type": "confidential"}, {}),
            ({"token_endpoint_auth_method": "client_secret_post"}, None),
            (dict.fromkeys(["client_type", "token_endpoint_auth_method", "client_uri"]), {}),
            ({"response_types": ["token"], "scope": "openid email"}, {}),
        ],
    )
    def test_type_and_method_follow_from_each_other(self, create, body, expected):
        expected = body if expected is None else expected
        secret = {} if expected is PUBLIC else {"client_secret": A_CLIENT_SECRET}
        assert create(**body) == oauth_client(**expected, **secret)

    @cases(
        ("body", "problem"),
        [
            ({"redirect_uris": []}, "redirect_uris is required"),
            ({"redirect_uris": [APP] * 11}, "redirect_uris cannot exceed 10 items"),
            ({"redirect_uris": [APP, "/callback"]}, "invalid redirect_uri '/callback'"),
            ({"post_logout_redirect_uris": ["http://app.example.com"]}, "invalid post_logout_redirect_uri "),
            ({"client_name": "x" * 1025}, "client_name: "),
            ({"client_name": "Grafana\u202e"}, "client_name: must be 1 to 1024 visible characters"),
            ({"client_name": 5}, "client_name: "),
            ({"client_uri": "javascript:alert(1)"}, "invalid client_uri "),
            ({"logo_uri": "data:image/png;base64,AAAA"}, "invalid logo_uri "),
            ({"grant_types": []}, "grant_types: "),
            ({"grant_types": ["implicit"]}, "grant_types: "),
            ({"grant_types": ["client_credentials"], "client_type": "public"}, "grant_types: "),
            (
                {"client_type": "public", "token_endpoint_auth_method": "client_secret_post"},
                "token_endpoint_",
            ),
            ({"client_type": "confidential", "token_endpoint_auth_method": "none"}, "token_endpoint_"),
            ({"token_endpoint_auth_method": "private_key_jwt"}, "token_endpoint_auth_method: "),
            ({"require_pkce": False, "client_type": "public"}, "require_pkce: "),
            ({"introspects_sessions": True, "client_type": "public"}, "introspects_sessions: "),
            ({"skip_consent": True, "redirect_uris": [APP, "http://127.0.0.1/"]}, "skip_consent: "),
            ({"skip_consent": True, "redirect_uris": ["com.example.app:/callback"]}, "skip_consent: "),
            ({"skip_consent": "true"}, "skip_consent: "),
            ({"token_lifetime": 29}, "token_lifetime: "),
            ({"token_lifetime": 86_401}, "token_lifetime: "),
            ({"resources": ["api"]}, "invalid resource 'api'"),
            ({"resources": ["http://localhost:8000/oauth/token"]}, "invalid resource "),
            ({"grant_types": ["authorization_code", DEVICE_CODE], "redirect_uris": []}, "redirect_uris is"),
            ({"resources": ["urn:api"] * 11}, "resources cannot exceed 10 items"),
            ({"scopes": ["two words"]}, "scopes: "),
            ({"allowed_roles": [5]}, "allowed_roles: "),
            ({"id_token_signed_response_alg": "none"}, "id_token_signed_response_alg: "),
            ({"is_dynamic": True}, "is_dynamic: is not a member of this body"),
        ],
    )
    def test_members_that_do_not_fit_are_refused(self, ask, database, body, problem):
        response = ask("post", **{"redirect_uris": [APP]} | body)
        assert_invalid(response, Like("the problem", f"{problem}.*"))
        assert database.count("oauth_clients") == database.count("audit_log") == 0

    def test_es256_needs_a_key_that_signs_with_it(self, make_app, service_role):
        keys = json.dumps({"keys": [signing_keys.new_jwk("EdDSA")]})
        client = make_app(AUTH_JWT_KEYS=keys).test_client()
        body = {"redirect_uris": [APP], "id_token_signed_response_alg": "ES256"}
        response = client.post(PATH, json=body, headers=service_role)
        text = "id_token_signed_response_alg: must be RS256, because no ES256 key is in use"
        assert_invalid(response, text)


REGISTERED = """
https://app.example.com https://app.example.com:8443/a?b=c,d https://[2001:db8::1]/ https://xn--a.example
http://localhost:3000/callback http://127.0.0.1 http://[::1]:8080/?x cursor://a.b/c myapp://callback
com.example.app:/callback com.example.app:///callback
"""
REFUSED = r"""
app //app.example.com https: https:///x https:// https:/app.example.com HTTPS://app.example.com
http://app.example.com/ http://localhost.example.com/ http://127.0.0.1.example.com/ http://127.0.0.2/
http://localhost@example.com/ http://0.0.0.0/ https://app.example.com/# https://app.example.com/#a
https://u:p@app.example.com/ https://app.example.com\@evil.example/ https://app.example.com:99999/
https://a:/ https://app.example.com/é https://ex%61mple.com/ https://app.example.com/" https://[::1
javascript:alert(1) javascript://app.example.com/%0aalert(1) data:text/html,x file:///etc/passwd
vbscript://x/y about:blank blob:https://app.example.com/x mailto:a@example.com myapp:/callback
com.example.app:callback com.example.app: urn:ietf:wg:oauth:2.0:oob localhost:3000/callback
"""
WITH_SPACES = [
    *("", "https://app.example.com/ x", "https://app.example.com/\t", " https://app.example.com/"),
    "https://a b.example/",
]


class TestRedirectUris:
    @cases("uri", REGISTERED.split())
    def test_https_loopback_and_schemes_of_applications_are_registered(self, uri):
        uris.check_redirect(uri)

    @cases("uri", [*REFUSED.split(), *WITH_SPACES])
    def test_other_redirect_uris_are_refused(self, uri):
        with pytest.raises(uris.InvalidUri):
            uris.check_redirect(uri)


class TestListing:
    def test_dialect_has_the_audience_and_only_the_grants_that_its_clients_know(self, ask, create):
        client_id = create(grant_types=["authorization_code", "client_credentials"])["client_id"]
        answer = ask("get", prefix="/auth/v1").json
        assert answer == {
            "clients": [oauth_client(client_id=client_id, grant_types=["authorization_code"])],
            "aud": "authenticated",
        }
        assert ask("get", f"/{client_id}", prefix="/auth/v1").json["grant_types"] == ["authorization_code"]


class TestUpdating:
    def test_absent_members_stay_and_lists_are_replaced(self, ask, create):
        application = create(client_name="A", token_lifetime=60, allowed_roles=["admin"])
        expected = oauth_client(client_name="A", token_lifetime=60, allowed_roles=["admin"])
        changes: tuple[dict[str, Any], ...] = (
            {"client_name": "B"},
            {"token_lifetime": None},
            {"allowed_roles": []},
            {"redirect_uris": ["com.example.app:/cb"]},
            {"token_endpoint_auth_method": "client_secret_post", "accepts_either_method": False},
            {"client_name": ""},
        )
        for change in changes:
            expected |= change
            change.pop("accepts_either_method", None)
            assert_ok(ask("put", f"/{application['client_id']}", **change), expected)

    @cases(
        ("body", "msg"),
        [
            ({}, "No fields provided for update"),
            ({"client_name": None}, "No fields provided for update"),
            ({"client_type": "public"}, "client_type: is not a member of this body"),
            (
                {"token_endpoint_auth_method": "none"},
                "token_endpoint_auth_method does not fit the client's type, which can't change",
            ),
            ({"redirect_uris": []}, "redirect_uris is required"),
            # Each of the two members fits alone.
            ({"redirect_uris": ["http://localhost/"]}, Like("skip_consent", "skip_consent: .*")),
        ],
    )
    def test_change_that_does_not_fit_is_refused(self, ask, create, database, body, msg):
        application = create(skip_consent=True)
        before = database.everything("oauth_clients")
        assert_invalid(ask("put", f"/{application['client_id']}", **body), msg)
        assert database.everything("oauth_clients") == before

    def test_redirect_uri_that_is_taken_away_gets_no_code(self, ask, create, database):
        client_id = create(redirect_uris=[APP, "https://old.example.com/"])["client_id"]
        for uri in (APP, "https://old.example.com/"):
            database.run(REQUEST, client=client_id, uri=uri)
        assert ask("put", f"/{client_id}", redirect_uris=[APP]).status_code == 200
        assert database.all("SELECT redirect_uri FROM oauth_requests") == [(APP,)]

    def test_changes_at_once_are_all_kept(self, ask, create):
        client_id = create()["client_id"]
        changes = {"client_name": "A", "token_lifetime": 60, "allowed_roles": ["x"], "skip_consent": True}
        bodies = [{name: value} for name, value in changes.items()]
        at_once(4, lambda number: ask("put", f"/{client_id}", **bodies[number]))
        assert ask("get", f"/{client_id}").json == oauth_client(**changes)


class TestSecret:
    def test_public_client_has_no_secret(self, ask, create):
        application = create(client_type="public")
        assert "client_secret" not in application
        response = ask("post", f"/{application['client_id']}/regenerate_secret")
        assert_invalid(response, "Cannot regenerate secret for public client")


def test_grant_that_a_change_waited_for_is_older_than_the_change(ask, create, alice, database):
    """A consent must not cover what a document says later."""
    client_id = create()["client_id"]
    lock_shared = "SELECT FROM oauth_clients WHERE id = %s FOR SHARE"
    with database.locked("oauth_clients", client_id, lock_shared) as lock:
        request = lock.start(lambda: ask("put", f"/{client_id}", client_name="Another"))
        grant(database, alice.id, client_id)
    assert request.result().status_code == 200
    is_older = "SELECT g.granted_at < c.updated_at FROM oauth_grants AS g JOIN oauth_clients AS c ON c.id = g.client_id"
    assert database.value(is_older) is True


class TestDeleting:
    def test_grants_requests_and_sessions_go_with_their_client(self, ask, create, alice, database):
        client_id, other = create()["client_id"], create()["client_id"]
        for each in (client_id, other):
            grant(database, alice.id, each)
        database.run(SESSION)
        database.run(REQUEST, client=client_id, uri=APP)
        response = ask("delete", f"/{client_id}")
        assert (response.status_code, response.data) == (204, b"")
        assert database.all("SELECT client_id FROM oauth_grants") == [(other,)]
        assert (database.count("sessions"), database.count("oauth_requests")) == (1, 0)
        assert_error(ask("delete", f"/{client_id}"), 404, "oauth_client_not_found", "OAuth client not found")

    def test_deletion_waits_for_users_that_change(self, ask, create, alice, database):
        client_id = create()["client_id"]
        grant(database, alice.id, client_id)
        with database.locked("users", alice.id) as lock:
            request = lock.start(lambda: ask("delete", f"/{client_id}"))
        assert request.result().status_code == 204


@cases("route", ["get", "put", "delete", "post /regenerate_secret", "delete /previous_secret"])
def test_unknown_client_is_not_found_and_other_text_refused(ask, route):
    method, _, path = route.partition(" ")
    body = {"client_name": "x"} if method == "put" else {}
    assert_error(ask(method, f"/{NO_ID}{path}", **body), 404, "oauth_client_not_found", A_SENTENCE)
    assert_invalid(ask(method, f"/x{path}", **body), "client_id: must be a UUID")


@pytest.mark.usefixtures("no_openid_keys")
def test_key_of_id_tokens_is_not_made_for_a_refused_client(ask, database):
    ask("post")
    assert database.count("openid_keys") == 0
