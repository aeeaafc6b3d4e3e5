"""/admin/custom-providers, and what may be a customer's provider."""

import pytest

from tests.support.answers import A_TIMESTAMP, ANYTHING, assert_error
from tests.support.cases import cases
from tests.support.commands import run_command
from tests.support.fake_provider import Answer
from tests.support.oauth import SITE, assert_failed

MICROSOFT = "https://login.microsoftonline.com"
REFUSED_ISSUERS = [
    *(
        f"{MICROSOFT}/{name}/v2.0"
        for name in ("common", "organizations", "consumers", "{tenantid}", "Common")
    ),
    f"{MICROSOFT}/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0",
    *("https://gitlab.com", "https://appleid.apple.com/", "https://slack.com", "https://vercel.com"),
    *("ftp://acme.example", "https://user@acme.example", "https://acme.example/?x=1", "acme.example"),
]


@pytest.fixture
def refused(sso, acme, database):
    """Return a function that asserts that a body adds no provider, and returns the error."""
    sso.delete(acme)

    def check(error_code="validation_failed", **changes):
        response = sso.admin("POST", **acme.body(**changes))
        assert_error(response, 400, error_code, details=ANYTHING)
        assert database.count("identity_providers") == 1
        return response.json["details"]

    return check


@pytest.mark.parametrize("action", ["disable", "delete"])
def test_provider_whose_domain_became_everybodys_is_disabled_and_deleted_and_not_enabled(
    sso, acme, make_app, service_role, database, action
):
    client = make_app(AUTH_SSO="true", AUTH_SSO_PUBLIC_DOMAINS="acme.example").test_client()
    path = f"/admin/custom-providers/{acme.identifier}"
    if action == "delete":
        assert client.delete(path, headers=service_role).status_code == 204
        return
    assert client.put(path, json={"enabled": False}, headers=service_role).json["enabled"] is False
    details = "domains: acme.example has mailboxes of everybody"
    response = client.put(path, json={"enabled": True}, headers=service_role)
    assert_error(response, 400, "validation_failed", details=details)
    assert database.value("SELECT enabled FROM identity_providers WHERE id = %(id)s", id=acme.id) is False


def test_provider_whose_domain_became_everybodys_gets_another_secret_and_loses_another_domain(
    sso, acme, make_app, service_role, database
):
    sso.change(acme, domains=["acme.example", "acme.test"])
    client = make_app(AUTH_SSO="true", AUTH_SSO_PUBLIC_DOMAINS="acme.example,globex.example").test_client()
    path, before = f"/admin/custom-providers/{acme.identifier}", secret_of(database, acme)
    for body, domains in (
        ({"client_secret": "another"}, ["acme.example", "acme.test"]),
        ({"domains": ["acme.example"]}, ["acme.example"]),
    ):
        response = client.put(path, json=body, headers=service_role)
        assert (response.status_code, response.json.get("domains")) == (200, domains), response.text
    assert secret_of(database, acme) != before
    details = "domains: globex.example has mailboxes of everybody"
    body_with_public_domain = {"domains": ["acme.example", "globex.example"]}
    refused = client.put(path, json=body_with_public_domain, headers=service_role)
    assert_error(refused, 400, "validation_failed", details=details)


def secret_of(database, provider) -> bytes:
    secret = database.value("SELECT client_secret FROM identity_providers WHERE id = %(id)s", id=provider.id)
    return bytes(secret)


class TestApi:
    def test_provider_is_added_read_listed_changed_and_deleted(self, sso, acme, globex, database):
        expected = {
            **{"id": ANYTHING, "provider_type": "oidc", "identifier": "custom:acme-idp", "name": "Acme-Idp"},
            **{"issuer": acme.provider.url, "client_id": acme.provider.client_id},
            **{"domains": ["acme.example"], "redirect_uri": f"{SITE}/providers/{acme.id}/callback"},
            **{name: [] for name in ("acceptable_client_ids", "scopes", "custom_claims_allowlist")},
            **{name: {} for name in ("authorization_params", "attribute_mapping")},
            **{"pkce_enabled": True, "skip_nonce_check": False, "email_optional": False, "enabled": True},
            **{"created_at": A_TIMESTAMP, "updated_at": A_TIMESTAMP},
        }
        assert acme.object == expected
        for name in (acme.identifier, acme.id):
            assert sso.admin("GET", f"/{name}").json == acme.object
        assert sso.admin("GET").json == {"providers": [acme.object, globex.object]}
        assert sso.admin("GET", "?type=oauth2").json == {"providers": []}
        provider = sso.change(acme, name="Acme Inc.", domains=["acme.example", "ACME.test"]).json
        assert (provider["name"], provider["domains"]) == ("Acme Inc.", ["acme.example", "acme.test"])
        sso.delete(acme)
        assert_error(sso.admin("GET", f"/{acme.identifier}"), 404, "custom_provider_not_found")
        rows = database.all(
            "SELECT action FROM audit_log WHERE details ->> 'provider_id' = %(id)s ORDER BY at", id=acme.id
        )
        suffixes = ["added", "changed", "disabled", "deleted"]
        assert [action for (action,) in rows] == [f"provider_{suffix}" for suffix in suffixes]

    def test_secret_is_sealed_and_never_shown(self, sso, acme, database):
        secret = acme.provider.client_secret
        stored = database.value("SELECT client_secret FROM identity_providers WHERE id = %(id)s", id=acme.id)
        assert secret.encode() not in bytes(stored)
        for response in (sso.admin("GET", f"/{acme.identifier}"), sso.change(acme, client_secret=secret)):
            assert secret not in response.text
        assert secret not in str(database.all("SELECT details FROM audit_log"))

    @cases("name", ["custom:none", "custom:acme-idp%00", "%00", "sso:%00", "custom:ACME-IDP"])
    def test_other_name_is_not_found(self, sso, acme, name):
        for method in ("GET", "PUT", "DELETE"):
            response = sso.admin(method, f"/{name}", **({"enabled": False} if method == "PUT" else {}))
            assert_error(response, 404, "custom_provider_not_found")
        assert sso.admin("GET", f"/{acme.identifier}").json["enabled"] is True


class TestWhatIsRefused:
    def test_issuer_of_many_tenants_or_of_everybody_is_refused(self, refused):
        problems = [refused(issuer=issuer) for issuer in REFUSED_ISSUERS]
        assert all(each.startswith("issuer: must") for each in problems)

    @cases(
        ("changes", "problem"),
        [
            ({"domains": ["acme.example", "T-Online.de"]}, "domains: t-online.de has mailboxes of everybody"),
            (
                {"domains": ["*.a.example"]},
                "domains: must be domains of email addresses, such as example.com",
            ),
            ({"scopes": ["openid"]}, "scopes: must have openid and email"),
            ({"authorization_params": {"redirect_uri": "x"}}, "authorization_params: can't set redirect_uri"),
            ({"attribute_mapping": {"role": "x"}}, "attribute_mapping: can't set role"),
            ({"attribute_mapping": {"email_verified": "x"}}, "attribute_mapping: can't set email_verified"),
            ({"discovery_url": "https://evil.example/"}, "discovery_url: must have the origin of the issuer"),
            ({"provider_type": "oauth2"}, "provider_type: must be oidc"),
            ({"discovery_url": "https://[::1"}, "discovery_url: must be an https URL"),
        ],
    )
    def test_value_that_a_customers_provider_may_not_have_is_refused(self, refused, changes, problem):
        assert refused(**changes) == problem

    def test_setting_adds_domains_that_no_customer_may_have(self, make_app, acme, service_role):
        app = make_app(AUTH_SSO="true", AUTH_SSO_PUBLIC_DOMAINS="hey.com,acme.example")
        response = app.test_client().post("/admin/custom-providers", headers=service_role, json=acme.body())
        assert_error(
            response, 400, "validation_failed", details="domains: acme.example has mailboxes of everybody"
        )

    @cases("domains", [["globex.example"], ["acme.example", "GLOBEX.example"]])
    def test_domain_of_another_provider_is_refused(self, sso, acme, domains):
        response = sso.change(acme, domains=domains)
        assert_error(response, 400, "conflict", "Another provider has this domain")
        assert sso.admin("GET", f"/{acme.identifier}").json["domains"] == ["acme.example"]

    def test_identifier_of_another_provider_is_refused(self, sso, acme):
        response = sso.admin("POST", **acme.body(domains=[]))
        assert_error(response, 400, "conflict", "Another provider has this identifier")

    def test_discovery_document_of_another_issuer_or_without_keys_is_refused(
        self, sso, acme, globex, refused
    ):
        acme.provider.metadata = {"issuer": globex.provider.url}
        assert refused() == "issuer: the discovery document is another issuer's"
        acme.provider.metadata = {"issuer": acme.provider.url + "/{tenantid}"}
        assert refused() == "issuer: the discovery document is another issuer's"
        acme.provider.metadata = {"token_endpoint": None}
        assert refused() == "issuer: the discovery document has no token_endpoint"
        acme.provider.metadata, acme.provider.published = {}, []
        assert refused() == "issuer: the issuer publishes no usable key"
        acme.provider.instead["/.well-known/openid-configuration"] = Answer(
            302, headers={"Location": globex.provider.url}
        )
        assert "no document at" in refused()

    @pytest.mark.parametrize("issuer", ["https://10.0.0.1", "https://[fd00::1]", "http://169.254.169.254"])
    def test_issuer_in_a_private_network_is_refused_unless_a_setting_allows_it(
        self, make_app, acme, service_role, issuer
    ):
        app = make_app(AUTH_SSO="true", AUTH_WEBHOOK_PRIVATE_NETWORKS="false")
        body = acme.body(issuer=issuer)
        response = app.test_client().post("/admin/custom-providers", headers=service_role, json=body)
        details = f"issuer: {issuer}/.well-known/openid-configuration: its address is refused"
        assert_error(response, 400, "validation_failed", details=details)

    @cases("path", ["jwks_uri", "token_endpoint", "userinfo_endpoint"])
    def test_metadata_service_of_a_cloud_is_refused(self, sso, acme, path):
        # Its email is that of the userinfo.
        acme.be("1")
        acme.provider.metadata = {path: "http://169.254.169.254/latest"}
        url, secret = f"{acme.provider.url}/.well-known/openid-configuration", acme.provider.client_secret
        sso.change(acme, discovery_url=url, client_secret=secret)
        assert_failed(sso.sign_in(acme.identifier), "bad_oauth_callback", "server_error")

    def test_other_issuer_is_refused_while_the_provider_has_users(self, sso, acme, globex):
        secret = acme.provider.client_secret
        for issuer in (globex.provider.url, acme.provider.url):
            assert sso.change(acme, issuer=issuer, client_secret=secret).status_code == 200
        sso.signed_in(acme.identifier)
        assert sso.change(acme, issuer=f"{acme.provider.url}/").status_code == 200
        details = "issuer: can't change while users sign in with this provider; add another one"
        response = sso.change(acme, issuer=globex.provider.url, client_secret=secret)
        assert_error(response, 400, "validation_failed", details=details)

    def test_google_signs_in_only_the_domain_that_it_names(self, sso, acme, monkeypatch, database):
        monkeypatch.setattr("auth.core.providers.customers._GOOGLE", acme.provider.url)
        response = sso.change(acme, issuer=f"{acme.provider.url}//")
        assert (response.status_code, response.json["issuer"]) == (200, acme.provider.url)
        acme.be("1", "alice@acme.example", email_verified=True)
        assert_failed(sso.sign_in(acme.identifier), "bad_oauth_callback", "server_error")
        acme.be("1", "alice@acme.example", email_verified=True, hd="globex.example")
        assert_failed(sso.sign_in(acme.identifier), "bad_oauth_callback", "server_error")
        causes = database.all("SELECT details ->> 'because' FROM audit_log WHERE action = 'oauth_refused'")
        assert {*causes} == {("workspace_elsewhere",)}
        acme.be("1", "alice@acme.example", email_verified=True, hd="acme.example")
        assert sso.signed_in(acme.identifier).claims["email"] == "alice@acme.example"


class TestCommand:
    def test_issuer_and_domain_are_understood_as_people_copy_them(self, sso, acme, tmp_path):
        sso.delete(acme)
        secret = tmp_path / "secret"
        secret.write_text(acme.provider.client_secret)
        issuer = f" {acme.provider.url}/.well-known/openid-configuration"
        options = ["--issuer", issuer, "--client-id", acme.provider.client_id, "--secret-file", str(secret)]
        options += ["--domain", "https://www.Acme.example/", "--domain", "bob@acme-staff.example"]
        result = run_command(sso.app, "providers", "add", "acme-idp", *options)
        assert result.exit_code == 0, result.output
        assert f"issuer:       {acme.provider.url}\n" in result.output
        assert "domains:      acme-staff.example, acme.example\n" in result.output

    @pytest.mark.parametrize("option", ["add", "change"])
    def test_issuer_that_nobody_serves_is_refused_with_the_reason_alone(
        self, sso, acme, tmp_path, capfd, database, option
    ):
        secret = tmp_path / "secret"
        secret.write_text(acme.provider.client_secret)
        options = ["--issuer", "http://127.0.0.1:9", "--client-id", "x", "--secret-file", str(secret)]
        before = database.everything("identity_providers")
        result = run_command(sso.app, "providers", option, "acme-idp", *options)
        url = "http://127.0.0.1:9/.well-known/openid-configuration"
        assert (result.exit_code, result.output) == (2, f"Error: issuer: {url}: connection refused.\n")
        assert "provider_failed" not in capfd.readouterr().err
        assert database.everything("identity_providers") == before

    def test_identifier_that_is_taken_is_refused_with_the_reason_alone(self, sso, acme, tmp_path):
        secret = tmp_path / "secret"
        secret.write_text(acme.provider.client_secret)
        options = ["--issuer", acme.provider.url, "--client-id", "x", "--secret-file", str(secret)]
        result = run_command(sso.app, "providers", "add", "acme-idp", *options)
        assert (result.exit_code, result.output) == (2, "Error: Another provider has this identifier.\n")

    def test_provider_is_added_listed_and_shown(self, sso, acme, tmp_path):
        sso.delete(acme)
        secret = tmp_path / "secret"
        secret.write_text(f"{acme.provider.client_secret}\n")
        options = ["--issuer", acme.provider.url, "--client-id", acme.provider.client_id]
        options += ["--secret-file", str(secret), "--domain", "acme.example"]
        result = run_command(sso.app, "providers", "add", "acme-idp", *options)
        assert result.exit_code == 0, result.output
        assert "identifier:   custom:acme-idp" in result.output
        sso.signed_in(acme.identifier)
        listed = run_command(sso.app, "providers", "list")
        assert "custom:acme-idp  enabled  acme.example  1 user  acme-idp\n" in listed.output
        assert "client_secret" not in run_command(sso.app, "providers", "show", "acme-idp", "--json").output
