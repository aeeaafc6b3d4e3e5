"""Mistakes that administrators of customers make on the way to single sign-on end in a sentence that helps."""

import json
from urllib.parse import urlencode, urlsplit

import pytest

from tests.support.fake_provider import Answer
from tests.support.links import SITE
from tests.support.oauth import Service
from tests.support.own_providers import ALICE, DOMAIN, PATH
from tests.support.pages import words

SIGN_IN = f"{PATH}/sign-in"
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def proved(sign_in):
    assert sign_in.prove(DOMAIN).status_code == 200
    return sign_in


@pytest.fixture
def connect(proved, browse, alice, customers):
    """Return what the page says to a form with these fields; the client is Acme's."""

    def connect(at="other", **fields):
        visitor, provider = browse(alice), customers.acme.provider
        visitor.visit(f"{SIGN_IN}/new/{at}")
        values = {"client_id": provider.client_id, "client_secret": provider.client_secret}
        return visitor.press(f"sign-in/new/{at}", **{**values, "issuer": provider.url, **fields})

    return connect


@pytest.fixture
def log(owner, acme):
    """Return the organization's log: actions, reasons and details of refusals."""

    def log():
        entries = owner.get(f"{acme}/audit").json["data"]
        return [(each["action"], each["reason"], each["details"]) for each in entries if each.get("reason")]

    return log


def test_page_shows_the_redirect_uri_before_it_asks_for_anything(proved, browse, alice, customers, database):
    visitor, uri = browse(alice), proved.owner.get(f"{proved.path}/providers").json["next_redirect_uri"]
    for at in ("entra", "okta", "google", "keycloak", "other"):
        visitor.visit(f"{SIGN_IN}/new")
        page = visitor.visit(visitor.link_to(f"{SIGN_IN[1:]}/new/{at}"))
        assert f">{uri}</code>" in page.text
        assert page.text.index(uri) < page.text.index('name="issuer"')
    assert visitor.visit(f"{SIGN_IN}/new/evil").status == 404
    provider = customers.acme.provider
    visitor.visit(f"{SIGN_IN}/new/okta")
    page = visitor.press(
        "sign-in/new/okta",
        issuer=provider.url,
        client_id=provider.client_id,
        client_secret=provider.client_secret,
    )
    assert "Now test the sign\u2011in." in words(page)
    id = urlsplit(uri).path.split("/")[2]
    assert database.one("SELECT id::text, member_role FROM identity_providers") == (id, "member")


def test_page_of_two_owners_gives_the_redirect_uri_to_the_first(proved, browse, alice, customers, database):
    late, provider = browse(alice), customers.acme.provider
    before = late.visit(f"{SIGN_IN}/new/other").text
    assert proved.connect(customers.acme, domains=[]).status_code == 201
    fields = {"issuer": provider.url, "client_id": "x", "client_secret": "x"}
    page = late.press("sign-in/new/other", **fields)
    assert page.status == 409
    assert "An identity provider has been connected in the meantime" in words(page)
    uri = proved.owner.get(f"{proved.path}/providers").json["next_redirect_uri"]
    assert (uri in before, uri in page.text) == (False, True)
    assert database.count("identity_providers") == 1


@pytest.mark.parametrize(
    "spelling", ["  {}/  ", "{}/.well-known/openid-configuration", "{}/.well-known/jwks"]
)
def test_issuer_is_understood_as_people_copy_it(connect, customers, database, spelling):
    page = connect(issuer=spelling.format(customers.acme.provider.url))
    assert page.status == 200
    assert database.value("SELECT issuer FROM identity_providers") == customers.acme.provider.url


@pytest.mark.parametrize("domain", ["https://example.com/", "@example.com", "bob@EXAMPLE.com"])
def test_domains_of_a_provider_are_understood_as_people_type_them(connect, database, domain):
    assert connect(domains=domain).status == 200
    assert database.value("SELECT domain FROM identity_provider_domains") == DOMAIN


class TestWrongTenant:
    @pytest.mark.parametrize("tenant", ["common", "organizations", "Consumers"])
    def test_issuer_of_all_tenants_is_refused_with_the_reason(self, connect, database, tenant):
        page = connect("entra", issuer=f"https://login.microsoftonline.com/{tenant}/v2.0")
        assert (page.status, "Use the one with the ID of your own tenant." in words(page)) == (400, True)
        assert database.count("identity_providers") == 0

    def test_document_that_names_another_issuer_says_which(self, connect, proved, customers, database):
        other = "https://login.acme.example/0f7a"
        customers.acme.provider.metadata = {"issuer": other}
        page = connect()
        assert page.status == 400
        assert f"names another issuer. Use {other} instead." in words(page)
        response = proved.connect(customers.acme)
        details = f"issuer: is {other} in the provider's document; use that one"
        assert (response.status_code, response.json["details"]) == (400, details)
        # A failed fetch is kept for some seconds, and says the same.
        assert proved.connect(customers.acme).json == response.json
        assert database.count("identity_providers") == 0

    @pytest.mark.parametrize(
        "other",
        [
            "http://login.acme.example",
            "https://10.0.0.7/realms/acme",
            "https://[fd00::7]",
            "https://keycloak",
            "https://keycloak.acme.internal",
            "https://keycloak.acme.internal.",
            "https://localhost.localhost",
            f"https://{'a' * 190}.example",
            "https://evil.example/<script>\u2028",
            ["https://login.acme.example"],
            None,
        ],
    )
    def test_issuer_that_is_no_public_url_is_not_named(self, proved, customers, other):
        customers.acme.provider.metadata = {"issuer": other}
        response = proved.connect(customers.acme)
        details = "issuer: must be an OpenID provider that this service can reach"
        assert (response.status_code, response.json["details"]) == (400, details)


def test_test_page_says_what_to_check_where_the_provider_shows_the_error(browse, alice, provider, sign_in):
    page = browse(alice).visit(f"{SIGN_IN}/providers/{provider}/test")
    text = words(page)
    shown = sign_in.owner.get(f"{sign_in.path}/providers/{provider}").json
    for value in (shown["redirect_uri"], shown["client_id"], shown["issuer"]):
        assert f">{value}</code>" in page.text
    assert "Is this redirect URI registered, exactly like this?" in text
    assert "Are the client ID and the issuer those of your own tenant?" in text
    assert "Are you and your colleagues assigned to the application?" in text


@pytest.mark.parametrize("is_on", [False, True])
def test_test_page_promises_what_holds_until_the_provider_is_on_and_then(
    browse, alice, provider, database, is_on
):
    database.run("UPDATE identity_providers SET is_on = %(is_on)s", is_on=is_on)
    text = words(browse(alice).visit(f"{SIGN_IN}/providers/{provider}/test"))
    assert ("Nobody else is affected until you turn it on." in text) is not is_on
    assert ("Nothing changes for anyone else." in text) is is_on


# What spoils a test: the provider's state, what the owner reads, and the cause in the log.
FAILURES = {
    "no email": (
        lambda acme: acme.be("1"),
        "Acme-Idp didn’t send us your email address. Add the claim email to the ID token there",
        "email_missing",
    ),
    "malformed email": (
        lambda acme: acme.be("1", "alice"),
        "Acme-Idp didn’t send us your email address.",
        "email_missing",
    ),
    "unverified": (
        lambda acme: acme.be("1", ALICE, email_verified=False),
        "says that your email address isn’t verified.",
        "email_unverified",
    ),
    "another domain": (
        lambda acme: acme.be("1", "alice@acme.onmicrosoft.example"),
        "sent an address at acme.onmicrosoft.example , which isn’t one of its domains here.",
        "email_elsewhere",
    ),
    "wrong secret": (
        lambda acme: setattr(acme.provider, "client_secret", "another"),
        "The client secret is wrong or has expired.",
        "invalid_client",
    ),
    "refused code": (
        lambda acme: acme.provider.instead.update(
            {acme.provider.TOKEN: Answer(400, json.dumps({"error": "invalid_grant"}).encode(), JSON)}
        ),
        "didn’t accept its own code. Compare the redirect URI",
        "invalid_grant",
    ),
    "somebody else": (
        lambda acme: acme.be("2", f"bob@{DOMAIN}"),
        "Acme-Idp signed you in to a different account.",
        "user_elsewhere",
    ),
    "not assigned": (
        lambda acme: setattr(acme.provider, "response", {"code": None, "error": "access_denied"}),
        "refused the sign\u2011in. If you didn’t cancel it, you may not be assigned",
        "access_denied",
    ),
}


class TestReasonsOfTests:
    @pytest.fixture(params=FAILURES)
    def failure(self, request, customers):
        spoil, sentence, cause = FAILURES[request.param]
        secret = customers.acme.provider.client_secret
        spoil(customers.acme)
        yield sentence, cause
        customers.acme.provider.client_secret = secret

    def test_owner_reads_why_a_test_failed_on_the_page_and_in_the_log(
        self, provider, failure, press, alice, log, database
    ):
        sentence, cause = failure
        page = press(alice).page
        assert urlsplit(page.url).path == SIGN_IN
        assert sentence in words(page)
        assert database.value("SELECT tried_at FROM identity_providers") is None
        ((action, reason, details),) = log()
        assert (action, details["because"], details.keys()) == (
            "oauth_refused",
            cause,
            {"organization", "because"},
        )
        assert reason == ("user_sso_conflict" if cause == "user_elsewhere" else "bad_oauth_callback")

    @pytest.mark.parametrize(
        "answer",
        [
            {"error": "<b>invalid_client</b>", "error_description": "10.0.0.7"},
            {"error": "custom_error", "error_description": "secret-of-the-issuer"},
            {"error": ["invalid_client"]},
        ],
    )
    def test_owner_reads_no_other_word_of_the_token_endpoint(
        self, provider, press, alice, customers, answer, log
    ):
        acme = customers.acme.provider
        acme.instead[acme.TOKEN] = Answer(400, json.dumps(answer).encode(), JSON)
        page = press(alice).page
        assert "The provider didn’t sign you in." in words(page)
        for word in ("invalid_client", "10.0.0.7", "custom_error", "secret-of-the-issuer"):
            assert word not in words(page)
        ((_, _, details),) = log()
        assert details.keys() == {"organization"}

    def test_provider_that_does_not_answer_is_no_reason(self, provider, press, alice, customers, log):
        acme = customers.acme.provider
        acme.instead[acme.TOKEN] = Answer(503)
        assert "The provider didn’t sign you in." in words(press(alice).page)
        assert [details.keys() for _, _, details in log()] == [{"organization"}]

    def test_owner_who_mends_the_secret_passes_the_test(self, provider, press, browse, alice, customers):
        customers.acme.provider.client_secret = "of-today"
        visitor = press(alice)
        assert "The client secret is wrong or has expired." in words(visitor.page)
        path = f"{SIGN_IN[1:]}/providers/{provider}/change"
        visitor.visit(f"/{path}")
        assert visitor.press(path, client_secret="of-today").status == 200
        page = press(alice, "test", visitor).page
        assert f"Test passed. Turn it on for everyone at {DOMAIN} ." in words(page)
        customers.acme.provider.client_secret = "secret-at-acme-idp"


class TestReasonsOfEmployees:
    @pytest.fixture
    def returned(self, on, provider, service: Service):
        """Return what an employee reads whose sign-in began on our page."""

        def returned():
            target = urlencode({"provider": f"custom:{provider}", "redirect_to": f"{SITE}/sign-in"})
            return service.browser().visit(f"{SITE}/authorize?{target}")

        return returned

    @pytest.mark.parametrize(
        ("claims", "sentence", "cause"),
        [
            ({}, "Acme-Idp didn’t send us your email address.", "email_missing"),
            (
                {"email": f"dave@{DOMAIN}", "email_verified": False},
                "says that your email address isn’t verified.",
                "email_unverified",
            ),
            (
                {"email": "dave@elsewhere.example"},
                "Acme-Idp sent us an address at elsewhere.example , which can’t be used here.",
                "email_elsewhere",
            ),
        ],
    )
    def test_employee_reads_what_to_tell_the_administrator(
        self, returned, customers, claims, sentence, cause, log, database
    ):
        customers.acme.be("7", **claims)
        page = returned()
        assert urlsplit(page.url).path == "/sign-in"
        assert sentence in words(page)
        assert "Contact your administrator." in words(page)
        assert [(reason, details["because"]) for _, reason, details in log()] == [
            ("bad_oauth_callback", cause)
        ]
        assert database.count("users", "email LIKE 'dave%%'") == 0

    def test_employee_and_log_read_no_error_of_the_token_endpoint(self, returned, customers, log):
        customers.acme.be("7", f"dave@{DOMAIN}")
        acme = customers.acme.provider
        acme.instead[acme.TOKEN] = Answer(401, json.dumps({"error": "invalid_client"}).encode(), JSON)
        page = returned()
        assert "The provider didn’t sign you in." in words(page)
        assert "secret" not in words(page)
        assert log() == []

    def test_application_gets_the_answer_of_before(self, on, provider, service: Service, customers, log):
        customers.acme.be("7")
        page = service.sign_in(f"custom:{provider}")
        assert "error=server_error&error_code=bad_oauth_callback" in page.url
        for word in ("email_missing", "Acme-Idp", "reader", "cause"):
            assert word not in page.url
        assert [details["because"] for _, _, details in log()] == ["email_missing"]
