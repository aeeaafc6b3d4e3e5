"""All pages in all their states, by HTTP: every form works without JavaScript, and the HTML is valid.

html-validate, which has the rules of the W3C's checker, is installed by `npm ci` in tests/system/clients.
"""

import html
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import dns.resolver
import pytest
from flask import Flask, template_rendered
from jinja2 import Template
from markupsafe import Markup

from auth.core.settings import Settings
from auth.core.text.catalogues import built_in
from auth.html.page import _say
from tests.support import security_keys
from tests.support.answered_forms import answers_to_forms, check_answers
from tests.support.authenticator import Authenticator
from tests.support.cases import cases
from tests.support.contract import page_routes
from tests.support.customers import Customers
from tests.support.dns_server import DnsServer
from tests.support.openid import authorize_path, insert_public_client
from tests.support.page_clients import HttpPageClient
from tests.support.page_tour import ALICE, BOB, NEW, tour_all
from tests.support.pages import Visitor, words
from tests.support.user_agent import Page
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.tour_fixtures"]

# A download and a redirect are not pages.
APART = {"/account/data", "/.well-known/change-password", "/.well-known/passkey-endpoints"}
# Markup, a setting, a route, and a name of the API.
NO_SENTENCE = re.compile(r"<|&\w+;|\bAUTH_|(?:^|\s)/\w|\w_\w|\{")
# Texts that the tour does not show, as regular expressions.
NOT_SHOWN = (
    # They stand where the tour shows others of their kind.
    r"(errors|ended|done)\.\w+",
    r"(ago|wait|expires)\.\w+|time\.of_day",
    r"api_keys\.(expired|used_today)",
    r"single_sign_on\.(owner|employee)_\w+",
    *(r"history\.\w+", r"members\.(next|previous|range|(no|too_many)_emails)"),
    *(
        r"account\.(api_key|connected_state|not_connected|unconfirmed|unnamed_application)",
        r"removal\.(factor|last_factor)|second_step\.others(_text)?",
    ),
    *(
        r"consent\.(native|resource|policy_uri|tos_uri)",
        r"logout\.unregistered",
        r"code\.(forgot_password|unconfirmed)_phone|new_password\.removed",
        r"undo\.(taken|totp|webauthn|wrong_key)",
    ),
    r"(confirmed|change_declined|undone)\.\w+|email_change\.decline",
    # An application, an administrator, another setting, a hook, a refused message or an older factor shows them.
    *(
        r"common\.(language|site_link)",
        r"signed_in\.application",
        r"welcome\.(hello|opens_here)",
        r"single_sign_on\.state_out_of_place",
        r"error\.\w+",
        r"captcha\.\w+",
    ),
    *(
        r"two_step\.(ends_keys|required)",
        r"account\.(console|password_leaked)",
        r"confirm\.(act|code|console)",
        r"code\.again_in",
        r"undo\.use_key",
    ),
    r"forms\.listed",
    r"organizations\.unnamed",
    r"organization_settings\.(all|no_step_here|cause_(unproved|otherwise))",
    # Sign-up is closed.
    r"invitation\.new_here",
)


def by_script(page_client: HttpPageClient, database) -> None:
    """Send the requests of scripts: responses of authenticators, and questions about links and passwords."""
    visitor, device, alice = page_client.visitor, Authenticator(), page_client.person()

    def press(action: str, authenticator: Authenticator = device) -> None:
        creates = action.startswith("account/passkeys")
        answer = authenticator.create if creates else authenticator.get
        visitor.press(action, credential=json.dumps(answer(visitor.passkey_options)))

    page_client.sign_in(is_offered=True)
    press("account/passkeys/offer")
    database.run("DELETE FROM factors")
    page_client.sign_in()
    visitor.visit("/account/passkeys/new")
    press("account/passkeys")
    page_client.sign_in()
    press("second-step/passkey")
    visitor.visit(f"/sign-in?{urlencode({'redirect_to': page_client.application})}")
    visitor.press("sign-out")
    visitor.press("sign-in", email=ALICE, password=PASSWORD)
    visitor.press("second-step/skip")
    visitor.visit("/account/confirm")
    press("account/confirm/passkey")
    page_client.forget()
    visitor.visit("/sign-in")
    visitor.press("sign-in/passkey")
    press("sign-in/passkey/verify")
    database.run("DELETE FROM factors")
    key, _key_id, _session = security_keys.set_up(alice.open_session())
    page_client.sign_in()
    press("second-step/key", key)
    visitor.visit("/account/email")
    visitor.press("account/email", email="new@example.com")
    visitor.send("/account/email/waiting/state", typed=visitor.typed("new@example.com"))
    visitor.page = visitor.visit("/new-password")
    visitor.send("/new-password/common", password=PASSWORD)
    page_client.forget()
    visitor.visit("/sign-in")
    visitor.send("/waiting/state", typed=visitor.typed(ALICE), page="sign-in")


def from_other_sites(page_client: HttpPageClient, _database) -> None:
    """Send the forms of providers and applications."""
    visitor, origin = page_client.visitor, page_client.origin
    visitor.visit("/sign-in")
    link = visitor.link_to("authorize?provider=google")
    page = visitor.visit(link, stop=lambda url: "/callback?" in url)
    visitor.post(page.url.partition("?")[0], dict(parse_qsl(urlsplit(page.url).query)))
    uri = page_client.application
    authorize = authorize_path(insert_public_client(page_client.rows, uri), redirect_uri=uri)
    visitor.post(f"{origin}/oauth/authorize", dict(parse_qsl(urlsplit(authorize).query)))
    visitor.post(f"{origin}/oauth/logout", {"state": "x"})


def check_headers(name: str, page: Page) -> None:
    """Check that the page runs only our files, cannot be framed, and does not leak its URL."""
    policy = page.headers["Content-Security-Policy"]
    for directive in ("default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert directive in policy, name
    assert "unsafe" not in policy, name
    assert page.headers["Referrer-Policy"] == "no-referrer", name
    assert page.headers["Cache-Control"] == "no-store", name
    assert PASSWORD not in page.text, name


def check_way_out(name: str, page: Page) -> None:
    """Check that a page of the account, if it shows a form, leads to the account, which has a way to sign out."""
    targets = {form.action.rpartition("../")[2] for form in page.forms} - {"preferences"}
    if targets and urlsplit(page.url).path.startswith(("/account", "/new-password", "/join")):
        assert "sign-out" in targets or re.search(r'href="[./]*account["#/]', page.text), name


def check_sentences(name: str, page: Page) -> None:
    """Check that the title of the tab and the error messages are sentences for people."""
    title = html.unescape(page.text.partition("<title>")[2].partition("</title>")[0])
    assert title.strip(), name
    assert not NO_SENTENCE.search(title), (name, title)
    for alert in re.findall(r'role="alert"[^>]*>(.*?)</p>', page.text, re.DOTALL):
        text = html.unescape(re.sub("<[^>]*>", "", alert.partition("<code")[0]))
        assert not NO_SENTENCE.search(text), (name, text)


@contextmanager
def names_shown_by(app: Flask, monkeypatch) -> Iterator[set[str]]:
    """Collect the names of the templates and texts that pages show."""
    shown_names: set[str] = set()

    def render(_sender: Flask, template: Template, **_rest: Any) -> None:
        shown_names.add(template.name or "")

    def say(settings: Settings, language: str, table: str, name: str, /, **variables: object) -> Markup:
        shown_names.add(f"{table}.{name}")
        return _say(settings, language, table, name, **variables)

    # Most texts are rendered once, but every page asks for them here.
    monkeypatch.setattr("auth.html.page._say", say)
    with template_rendered.connected_to(render, app):
        yield shown_names


def check_shown(app: Flask, shown_names: set[str]) -> None:
    """Check that the tour shows each page and its states, so that the other tests of the tour see new ones, too."""
    loader = app.jinja_env.loader
    assert loader
    names = [name for name in loader.list_templates() if not re.match("console/|docs/", name)]
    sources = {name: loader.get_source(app.jinja_env, name)[0] for name in names}
    extended = re.findall(r'{%-? extends "([\w/.]+)"', "".join(sources.values()))
    pages = {name for name, source in sources.items() if "{% extends " in source} - set(extended)
    assert len(pages) > 35
    assert pages - shown_names == set()
    texts = built_in("pages")["en"].keys() - shown_names
    unshown = [name for name in texts if not any(re.fullmatch(each, name) for each in NOT_SHOWN)]
    assert [f"tests/support/page_tour.py visits no page with the text {name}" for name in unshown] == []
    assert [each for each in NOT_SHOWN if not any(re.fullmatch(each, name) for name in texts)] == []


def by_own_provider(page_client, database, company, names):
    """Alice sets up the sign-in of her organization, and Bob moves to it."""
    path, provider = "/account/organizations/acme/sign-in", company.provider
    page_client.person()
    page_client.person(BOB)
    page_client.sign_in()
    page_client.visit("/account/organizations/new")
    page_client.press("account/organizations/new", name="Acme", slug="acme")
    page_client.visit(path)
    page_client.press("sign-in/domains", domain="example.com")
    page_client.press("sign-in/domains/example.com")
    page_client.shows("domain, no record", "There’s no TXT record at")
    token = database.value("SELECT token FROM organization_domains")
    names.texts["_latchkey.example.com"] = f"latchkey={token}"
    page_client.press("sign-in/domains/example.com")
    page_client.shows("domain, proved", "The domain has been verified.")
    database.run(
        "UPDATE organization_domains SET proved_at = NULL, checked_at = NULL, proved_by_command_at = now()"
    )
    page_client.visit(path)
    page_client.shows("domain, proved by command", "It counts only on this computer.")
    page_client.press("sign-in/domains/example.com")
    page_client.press("sign-in/domains/example.com")
    page_client.shows("domain, checked again", "Checked just now. The record is there.")
    record = names.texts.pop("_latchkey.example.com")
    page_client.press("sign-in/domains/example.com")
    page_client.shows("domain, without its record", "stays verified for now")
    names.texts["_latchkey.example.com"] = record
    page_client.visit(f"{path}/new/other")
    client = {"client_id": provider.client_id, "client_secret": provider.client_secret}
    page_client.press("sign-in/new/other", issuer=provider.url, **client)
    id = database.value("SELECT id::text FROM identity_providers")
    page_client.visit(f"{path}/providers/{id}/change")
    page_client.press(f"providers/{id}/change", name="Acme")
    page_client.shows("provider, changed", "The identity provider has been changed.")
    company.be("1", ALICE)
    page_client.visit(f"{path}/providers/{id}/test")
    page_client.press(f"providers/{id}/test")
    page_client.shows("provider, tested", "Test passed. Turn it on for everyone at")
    page_client.visit(f"{path}/providers/{id}/on")
    page_client.shows("turn a provider on", "From now on")
    page_client.press(f"providers/{id}/on")
    page_client.shows("provider, on", "Single sign\u2011on is on.")
    database.run("UPDATE organizations SET needs_own_provider = true")
    page_client.visit("/account/organizations/acme/requirement/age")
    page_client.shows("age of sign-ins, own sign-in", "Only sign\u2011ins with your identity provider count.")
    database.run("UPDATE organizations SET needs_own_provider = false")
    page_client.visit("/account/organizations/acme/leave")
    page_client.shows("leave, moved account", "will no longer open your account")
    database.run("UPDATE identities SET is_first_proof = true WHERE provider LIKE 'sso:%%'")
    for role, sentence in (
        ("NULL", "can still open your account."),
        ("'member'", "makes you a member again"),
    ):
        database.run(f"UPDATE identity_providers SET member_role = {role}")
        page_client.visit("/account/organizations/acme/leave")
        page_client.shows("leave, account that the provider made", sentence)
    database.run("CREATE TEMPORARY TABLE kept AS SELECT * FROM memberships; DELETE FROM memberships")
    page_client.visit("/account")
    page_client.shows("account, former employee", "To disconnect it, sign in another way first")
    database.run("INSERT INTO memberships SELECT * FROM kept; DROP TABLE kept")
    page_client.visit(f"{path}/requirement")
    database.run("DELETE FROM identity_provider_domains")
    page_client.press("sign-in/requirement")
    page_client.shows("require it without a domain", "An identity provider must be on, with a domain,")
    database.run(
        "INSERT INTO identity_provider_domains SELECT domain, %(id)s FROM organization_domains", id=id
    )
    page_client.visit(f"{path}/requirement")
    page_client.shows("require the own sign-in", "All members can sign in this way.")
    page_client.press("sign-in/requirement")
    page_client.shows("own sign-in, required", "Required for all members.")
    page_client.visit(f"{path}/requirement")
    page_client.shows("lift the own sign-in", "Members will have access however they sign in.")
    database.run(
        "INSERT INTO memberships (user_id, organization_id, role, added_by)"
        " SELECT u.id, o.id, 'member', 'administrator' FROM users AS u, organizations AS o"
        " WHERE u.email = 'bob@example.com';"
        " UPDATE organization_domains SET missing_since = now()"
    )
    page_client.visit("/account/organizations/acme/end")
    page_client.shows("delete an organization, its sign-in", "everyone it signed in is signed out")
    page_client.visit(path)
    page_client.shows("domain, missing", "The record is missing.")
    for action, sentence in (
        ("off", "stays a member"),
        ("delete", "the members it added will be removed"),
    ):
        page_client.visit(f"{path}/providers/{id}/{action}")
        page_client.shows(f"{action} a provider", sentence)
    page_client.forget()
    page_client.visit("/sign-in")
    page_client.press("sign-in/code", email=BOB)
    page_client.shows("sign-in, company", "example.com signs in with its company")
    company.be("2", BOB)
    page_client.press("sign-in/company")
    page_client.shows("sign-in, asked for the own way", "Sign in once as before")
    page_client.press("sign-in", password=PASSWORD)
    page_client.shows("account, move to a company", "Your other ways to sign in stay.")
    company.be("3", "eve@example.com")
    page_client.press("account/company")
    page_client.shows("account, someone else at the company", "Your company signed in a different account.")
    page_client.visit("/account")
    page_client.shows(
        "account, asked for the own sign-in", "Acme asks you to sign in with your company’s account."
    )
    database.run("UPDATE identity_providers SET is_on = false")
    page_client.visit("/account")
    page_client.shows("account, asked for an own sign-in that is off", "This account can’t do that")
    database.run("UPDATE identity_providers SET is_on = true")
    page_client.visit("/account/company")
    company.be("2", BOB)
    page_client.press("account/company")
    page_client.shows("account, moved to a company", "Your company now signs you in.")
    page_client.visit("/account/company")
    page_client.shows("account, sign in with the company again", "Sign in with your company")
    database.run("DELETE FROM memberships")
    page_client.forget()
    page_client.visit("/sign-in?way=password")
    page_client.press("sign-in", email=BOB, password=PASSWORD)
    page_client.remove("identity", "It will no longer be able to open this account")
    page_client.shows(
        "account, provider of a former organization removed", "The account has been disconnected."
    )
    database.run("UPDATE identity_providers SET is_on = false")
    page_client.visit("/account/company")
    page_client.shows(
        "account, no company", "No company has connected the domain of your email address here."
    )
    database.run(
        "UPDATE identity_providers SET organization_id = NULL, member_role = NULL, enabled = true, disabled_at = NULL"
    )
    page_client.visit("/account/company")
    page_client.shows("account, move to an operator's provider", "Only your administrator can undo this.")


def test_every_form_works_without_javascript(page_client, database, monkeypatch):
    def check(name: str) -> None:
        check_headers(name, page_client.visitor.page)
        check_way_out(name, page_client.visitor.page)
        check_sentences(name, page_client.visitor.page)

    page_client.check = check
    app = page_client.app
    with answers_to_forms(app) as answers, names_shown_by(app, monkeypatch) as shown_names:
        tour_all(page_client, database)
        for play in (by_script, from_other_sites):
            database.empty()
            page_client.forget()
            play(page_client, database)
        database.empty()
        page_client.forget()
        with Customers() as customers, DnsServer({}) as names:
            monkeypatch.setattr(dns.resolver, "default_resolver", names.resolver)
            by_own_provider(page_client, database, customers.acme, names)
    secrets = (PASSWORD, NEW, "form_token", "access_token=")
    assert not [url for _, url, _ in page_client.visitor.requests if any(secret in url for secret in secrets)]
    check_answers(app, answers, of_console=False)
    check_shown(app, shown_names)
    visited = {
        urlsplit(url).path for method, url, _headers in page_client.visitor.requests if method == "GET"
    }
    pages = {path for method, path, _view in page_routes(app) if method == "get"} - APART
    patterns = {path: re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)) for path in pages}
    missed = {
        path for path, pattern in patterns.items() if not any(re.fullmatch(pattern, url) for url in visited)
    }
    assert {path for path in missed if not path.startswith("/brand")} == set()


@pytest.mark.parametrize("language", sorted(built_in("pages")))
def test_sentence_of_each_error_has_no_markup_route_or_setting(language):
    texts = {
        name: text
        for name, text in built_in("pages")[language].items()
        if re.match(r"errors|error|ended", name)
    }
    assert len(texts) > 50
    sentences = {name: re.sub(r"\{[{%].*?[%}]\}", "x", text) for name, text in texts.items()}
    assert {name: text for name, text in sentences.items() if NO_SENTENCE.search(text)} == {}


@cases(
    ("settings", "links"),
    [
        ({"AUTH_SITE_URL": "https://app.example.com/start"}, ["sign-in", "https://app.example.com/start"]),
        ({"AUTH_SITE_URL": "https://app.example.com/", "AUTH_PAGES": "false"}, ["https://app.example.com/"]),
    ],
)
def test_first_page_of_a_public_service_links_to_the_sign_in(make_app, settings, links):
    app = make_app(AUTH_BASE_URL="http://auth.example.com", **settings)
    page = Visitor(app).visit("/")
    assert "This is where you sign in to" in words(page)
    assert re.findall(r'<a class="button[^"]*" href="([^"]+)"', page.text) == [
        link if ":" in link else f"/{link}" for link in links
    ]
