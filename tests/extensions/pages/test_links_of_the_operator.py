"""AUTH_TERMS_URL, AUTH_PRIVACY_URL and AUTH_SUPPORT_URL: the operator's links on pages and in mails."""

import re

import pytest

from auth.core.settings import SettingsError
from auth.core.text.catalogues import built_in
from auth.delivery.rendering import Templates
from auth.web.context import EXTENSION
from tests.support.cases import cases
from tests.support.links import path
from tests.support.pages import Visitor
from tests.support.user_agent import Page
from tests.support.users import PASSWORD

TERMS, PRIVACY = "https://acme.example/terms?a=1&b=2", "https://acme.example/legal#privacy"
HELP, HELP_PAGE = "mailto:help@acme.example", "https://acme.example/help"
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


@pytest.fixture
def acme(make_app) -> Visitor:
    """A visitor of a service with the three settings."""
    return Visitor(make_app(**SETTINGS))


def footer(page: Page) -> str:
    return page.text.partition("<footer>")[2]


def hint(page: Page) -> str | None:
    found = re.search('<p class="hint">(By creating.*)</p>', page.text)
    return found and found[1]


def mail(app, kind: str = "recovery", language: str = "en"):
    return Templates(app.extensions[EXTENSION].settings).sample("email", kind, "a@b.c", language)


@cases("url", PAGES)
def test_footer_of_each_page_has_the_links(acme, alice, url):
    acme.with_session_of(alice)
    assert f"<div>{FOOTER}</div>" in footer(acme.visit(url))


@cases("url", PAGES)
def test_no_page_has_a_link_to_another_site_when_nothing_is_set(visitor, alice, url):
    visitor.with_session_of(alice)
    text = visitor.visit(url).text
    assert "noopener" not in text
    assert "<div></div>" not in text


def test_links_speak_the_language_of_the_page(acme):
    acme.plant("latchkey_language", "de")
    page = acme.visit("/sign-up")
    assert [name in footer(page) for name in ("Nutzungsbedingungen<", "Datenschutz<", "Hilfe<")] == [True] * 3
    assert ">den Nutzungsbedingungen</a> und <a " in page.text


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["AUTH_TERMS_URL"], f'<a href="{SHOWN_TERMS}" rel="noopener">the terms</a>'),
        (["AUTH_PRIVACY_URL"], f'<a href="{PRIVACY}" rel="noopener">the privacy policy</a>'),
        (
            ["AUTH_TERMS_URL", "AUTH_PRIVACY_URL"],
            f'<a href="{SHOWN_TERMS}" rel="noopener">the terms</a> and '
            f'<a href="{PRIVACY}" rel="noopener">the privacy policy</a>',
        ),
    ],
    ids=["terms", "privacy", "both"],
)
def test_sign_up_says_what_a_new_user_agrees_to(make_app, names, said):
    page = Visitor(make_app(**{name: SETTINGS[name] for name in names})).visit("/sign-up")
    assert hint(page) == f"By creating an account, you agree to {said}."


def test_sign_up_says_nothing_of_terms_when_only_support_is_set(make_app):
    assert hint(Visitor(make_app(AUTH_SUPPORT_URL=HELP)).visit("/sign-up")) is None


class TestContact:
    def test_text_that_sends_the_user_to_the_operator_links_its_name(self, acme):
        page = acme.visit(path("undo", "x" * 43))
        assert f"If you can’t sign in to your account, contact {CONTACT}." in page.text

    def test_banned_user_is_told_by_a_link_whom_to_contact(self, acme, alice, database):
        database.run("UPDATE users SET banned_until = 'infinity'")
        acme.visit("/sign-in")
        page = acme.submit(email=alice.email, password=PASSWORD)
        said = f"This account is blocked. Contact {CONTACT} if you think this is a mistake."
        assert said in page.text

    def test_name_of_the_brand_is_escaped_in_the_link(self, make_app):
        changes = {"AUTH_BRAND_NAME": "<b>&Co", "AUTH_SUPPORT_URL": f"{HELP_PAGE}?a=1&b=2"}
        page = Visitor(make_app(**changes)).visit(path("undo", "x" * 43))
        assert f'contact <a href="{HELP_PAGE}?a=1&amp;b=2" rel="noopener">&lt;b&gt;&amp;Co</a>.' in page.text

    def test_every_sentence_with_contact_uses_the_link_in_all_languages(self):
        catalogues = built_in("pages")
        linked = {name for name, text in catalogues["en"].items() if "{{ contact }}" in text}
        assert linked == {name for name, text in catalogues["en"].items() if re.search("(?i)contact ", text)}
        for texts in catalogues.values():
            assert {name for name, text in texts.items() if "{{ contact }}" in text} == linked


class TestMails:
    @pytest.mark.parametrize(
        ("url", "shown"), [(HELP, ADDRESS), (HELP_PAGE, HELP_PAGE)], ids=["address", "page"]
    )
    def test_mail_ends_with_the_support(self, make_app, url, shown):
        sent = mail(make_app(AUTH_BRAND_NAME="Acme", AUTH_SUPPORT_URL=url))
        assert sent.text.endswith(f"\n{shown}\n")
        assert f'<br><a href="{url}" style="color: inherit">{shown}</a></p>' in sent.html

    def test_mail_has_no_support_when_it_is_unset(self, make_app):
        with_it, without = (mail(make_app(AUTH_BRAND_NAME="Acme", **each)) for each in (SETTINGS_OF_HELP, {}))
        assert with_it.text.removesuffix(f"{ADDRESS}\n").endswith(without.text[-40:])
        assert "mailto:" not in without.html

    def test_template_of_the_operator_may_use_the_support(self, make_app, tmp_path):
        (tmp_path / "en").mkdir()
        (tmp_path / "en" / "recovery.txt").write_text("Reset\n\n{{ link }}\n{{ support_url or 'none' }}")
        for changes, shown in (({}, "none"), (SETTINGS_OF_HELP, HELP)):
            assert mail(make_app(AUTH_MAIL_TEMPLATES=str(tmp_path), **changes)).text.endswith(f"\n{shown}\n")


SETTINGS_OF_HELP = {"AUTH_SUPPORT_URL": HELP}
REFUSED = [
    "javascript:alert(1)",
    "data:text/html,x",
    "acme.example/terms",
    "http://acme.example",
    'https://acme.example/"onclick="x',
    "https://acme.example/'x",
    "https://acme.example/<x>",
    "https://user:pw@acme.example",
    "https://acme.example/a b",
    "https://acme.example/#a\nb",
    "https://acme.example/#ü",
]
REFUSED_SUPPORT = [
    "help@acme.example",
    "mailto:",
    "mailto:help",
    "mailto:a@acme.example,b@acme.example",
    "mailto:a%2Cb@acme.example",
    "mailto:a@acme.example?bcc=b@acme.example",
    "mailto:Acme <a@acme.example>",
    "mailto:ü@acme.example",
]


class TestRefusals:
    @cases("name", ["AUTH_TERMS_URL", "AUTH_PRIVACY_URL", "AUTH_SUPPORT_URL"])
    @pytest.mark.parametrize("value", ["", *REFUSED])
    def test_value_that_is_no_plain_https_url_stops_the_start(self, make_app, name, value):
        with pytest.raises(SettingsError, match=rf"\A{name}: [^\n]+\Z"):
            make_app(**{name: value})

    @pytest.mark.parametrize("value", REFUSED_SUPPORT)
    def test_support_is_one_address(self, make_app, value):
        with pytest.raises(SettingsError, match=r"\AAUTH_SUPPORT_URL: Must be an https URL, or mailto:"):
            make_app(AUTH_SUPPORT_URL=value)

    def test_address_is_no_page_of_terms(self, make_app):
        with pytest.raises(SettingsError, match=r"\AAUTH_TERMS_URL: Must be an https URL such as"):
            make_app(AUTH_TERMS_URL=HELP)

    def test_page_on_this_machine_may_lack_tls(self, make_app):
        page = Visitor(make_app(AUTH_TERMS_URL="http://localhost:3000/terms")).visit("/sign-in")
        assert '<a href="http://localhost:3000/terms" rel="noopener">Terms</a>' in page.text
