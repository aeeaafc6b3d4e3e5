"""AUTH_TERMS_URL, AUTH_PRIVACY_URL and AUTH_SUPPORT_URL: the operator's links on pages and in mails."""

import pytest
from markupsafe import Markup, escape

from auth.core.settings import SettingsError
from auth.delivery.rendering import Templates
from auth.web.context import EXTENSION
from tests.support.cases import cases
from tests.support.links import path
from tests.support.pages import Visitor
from tests.support.users import PASSWORD

TERMS, PRIVACY = "https://acme.example/terms?a=1&b=2", "https://acme.example/legal#privacy"
HELP = "mailto:help@acme.example"
SETTINGS = {
    "AUTH_BRAND_NAME": "Acme",
    "AUTH_TERMS_URL": TERMS,
    "AUTH_PRIVACY_URL": PRIVACY,
    "AUTH_SUPPORT_URL": HELP,
}
SHOWN_TERMS = "https://acme.example/terms?a=1&amp;b=2"
CONTACT = f'<a href="{HELP}" rel="noopener">Acme</a>'
FOOTER = "".join(
    f' <a href="{url}" rel="noopener">{text}</a>'
    for url, text in ((SHOWN_TERMS, "Terms"), (PRIVACY, "Privacy"), (HELP, "Support"))
)
# A page of each layout: forms, the page at /, links, the account, an error.
PAGES = ["/sign-in", "/sign-up?redirect_to=/", "/", path("undo", "x" * 43), "/account", "/nothing"]
ADDRESS = "help@acme.example"
REFUSED = [
    *("javascript:alert(1)", "acme.example/terms", "http://acme.example", "https://user:pw@acme.example"),
    *('https://acme.example/"onclick="x', "https://acme.example/<x>", "https://acme.example/#a\nb"),
]
REFUSED_SUPPORT = [
    *(ADDRESS, "mailto:", f"mailto:{ADDRESS},b@acme.example", f"mailto:{ADDRESS}?bcc=b@acme.example"),
    *("mailto:a%2Cb@acme.example", "mailto:Acme <a@acme.example>", "mailto:\u00fc@acme.example"),
]


@pytest.fixture
def acme(make_app) -> Visitor:
    """A visitor of a service with the three settings."""
    return Visitor(make_app(**SETTINGS))


@cases("url", PAGES)
def test_footer_of_each_page_has_the_links(acme, alice, url):
    acme.with_session_of(alice)
    assert f"<div>{FOOTER}</div>" in acme.visit(url).text.partition("<footer>")[2]


@cases("url", PAGES)
def test_no_page_has_a_link_to_another_site_when_nothing_is_set(visitor, alice, url):
    visitor.with_session_of(alice)
    text = visitor.visit(url).text
    assert "noopener" not in text
    assert "<div></div>" not in text


def test_sign_up_says_what_a_new_user_agrees_to(acme, make_app):
    terms, policy = (
        f'<a href="{url}" rel="noopener">the {text}</a>'
        for url, text in ((SHOWN_TERMS, "terms"), (PRIVACY, "privacy policy"))
    )
    sentence = '<p class="hint">By creating an account, you agree to'
    assert f"{sentence} {terms} and {policy}.</p>" in acme.visit("/sign-up").text
    without_policy = Visitor(make_app(AUTH_TERMS_URL=TERMS))
    assert f"{sentence} {terms}.</p>" in without_policy.visit("/sign-up").text


def test_banned_user_is_told_by_a_link_whom_to_contact(acme, alice, database):
    database.run("UPDATE users SET banned_until = 'infinity'")
    acme.visit("/sign-in")
    page = acme.submit(email=alice.email, password=PASSWORD)
    assert f"This account is blocked. Contact {CONTACT} if you think this is a mistake." in page.text


def test_mail_ends_with_the_support_which_own_templates_may_use(make_app, tmp_path):
    def mail(**settings):
        parts = make_app(AUTH_SUPPORT_URL=HELP, **settings).extensions[EXTENSION]
        return Templates(parts.settings).sample("email", "recovery", "a@b.c", "en")

    assert mail().text.endswith(f"\n{ADDRESS}\n")
    assert f'<br><a href="{HELP}" style="color: inherit">{ADDRESS}</a></p>' in mail().html
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "recovery.txt").write_text("Reset\n\n{{ link }}\n{{ support_url }}")
    assert mail(AUTH_MAIL_TEMPLATES=str(tmp_path)).text.endswith(f"\n{HELP}\n")


@cases(
    ("name", "value"),
    [
        *((name, value) for name in ("AUTH_TERMS_URL", "AUTH_SUPPORT_URL") for value in REFUSED),
        *(("AUTH_SUPPORT_URL", value) for value in REFUSED_SUPPORT),
        ("AUTH_PRIVACY_URL", HELP),
    ],
)
def test_value_that_is_no_plain_url_or_one_address_stops_the_start(make_app, name, value):
    with pytest.raises(SettingsError, match=rf"\A{name}: [^\n]+\Z"):
        make_app(**{name: value})


def test_page_on_this_machine_may_lack_tls(make_app):
    page = Visitor(make_app(AUTH_TERMS_URL="http://localhost:3000/terms")).visit("/sign-in")
    assert '<a href="http://localhost:3000/terms" rel="noopener">Terms</a>' in page.text


@cases("contact", ["mailto:help@acme.example", "https://acme.example/help?a=1&b=2"])
def test_each_service_of_a_process_shows_its_own_brand_and_contact(make_app, contact):
    """A worker renders a text once, but a process may serve two settings: after a reload, and here."""
    texts = {}
    for brand in ("Acme & Sons", "Initech"):
        visitor = Visitor(make_app(AUTH_BRAND_NAME=brand, AUTH_SUPPORT_URL=contact))
        heading = visitor.visit("/sign-in").text.partition("<h1>")[2].partition("</h1>")[0]
        assert heading == f"Sign in to {escape(brand)}"
        texts[brand] = visitor.visit(path("undo", "x" * 43)).text
        assert Markup('<a href="{}" rel="noopener">{}</a>').format(contact, brand) in texts[brand]
    assert "Acme" not in texts["Initech"]
