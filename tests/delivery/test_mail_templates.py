"""The text of messages: complete in every language, without text from strangers."""

import dataclasses
import html
import os
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from jinja2 import Environment, meta

from auth.core import settings
from auth.core.settings.brand import logo_in_mails
from auth.core.settings.providers import ProviderSettings
from auth.core.text import languages
from auth.core.text.catalogues import DIRECTORY, built_in
from auth.delivery.rendering import TEMPLATES as LAYOUTS
from auth.delivery.rendering import CannotRender, Templates
from tests.support.cases import cases
from tests.support.environment import clear_settings
from tests.support.outbox import CODE, TOKEN
from tests.support.users import ALICE

BASE, SITE = "https://auth.example.com", "https://app.example.com"


def templates_of(site_url=SITE, **changes):
    with pytest.MonkeyPatch.context() as patch:
        clear_settings(patch)
        patch.setenv("AUTH_SITE_URL", site_url)
        loaded = settings.load(os.devnull, missing_secrets="ignore")
    return Templates(dataclasses.replace(loaded, **({"base_url": BASE} | changes)))


TEMPLATES = templates_of(f"{SITE}:8443/start")
CATALOGUES = built_in("messages")
ENGLISH = CATALOGUES["en"]
NOW = datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SECRETS = {"token": TOKEN, "code": CODE}
AT_0708 = "May 6, 2026, 07:08 UTC"

WITH_UNDO = (
    *("email_changed", "phone_changed", "address_added", "identity_linked", "identity_unlinked"),
    *("passkey_added", "passkey_removed", "factor_added", "factor_removed", "application_added"),
    *("api_key_added", "api_key_removed"),
    *("password_changed", "recovery_codes_created", "recovery_code_used", "new_sign_in"),
)
SIGN_IN = ("organization_sign_in", "organization_domain_missing")
REQUIREMENTS = ("organization_requirement", "organization_session_age")
ABOUT_ORGANIZATIONS = ("membership_removed", "organization_owner_added", *REQUIREMENTS, *SIGN_IN)
WITHOUT_LINK = (
    *("signup_attempt", "reauthentication", "webhook_disabled", "organization_invitation"),
    *ABOUT_ORGANIZATIONS,
)
# The target of the button of a notice without a link.
PAGE_OF_BUTTON = dict.fromkeys((*WITH_UNDO, *WITHOUT_LINK), "forgot-password")
PAGE_OF_BUTTON |= {"signup_attempt": "sign-in", "webhook_disabled": "console/webhooks"}
PAGE_OF_BUTTON |= dict.fromkeys(ABOUT_ORGANIZATIONS, "account/organizations/acme")
PAGE_OF_BUTTON |= dict.fromkeys(SIGN_IN, "account/organizations/acme/sign-in")
PAGE_OF_BUTTON |= {"organization_invitation": "organizations/acme/join"}
del PAGE_OF_BUTTON["reauthentication"], PAGE_OF_BUTTON["membership_removed"]
# The link type of each kind.
LINK_TYPES = {
    **{kind: kind for kind in ("signup", "invite", "magiclink", "recovery", "email_change")},
    **dict.fromkeys(WITH_UNDO, "undo"),
    **dict.fromkeys(WITHOUT_LINK),
}
SMS_KINDS = ("sms", "signup", "phone_change", "reauthentication")

# 3GPP TS 23.038, section 6.2.1, without the characters that count twice.
GSM_7 = set(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§"
    "¿abcdefghijklmnopqrstuvwxyzäöñüà"
)

each_language = cases("language", sorted(CATALOGUES))
each_mail = cases("kind", LINK_TYPES)
each_sms = cases("kind", SMS_KINDS)


def render(kind="magiclink", channel="email", secrets=SECRETS, lifetime=3600, templates=TEMPLATES, **others):
    expires_at = NOW + timedelta(seconds=lifetime) if lifetime else None
    to = others.pop("to", ALICE)
    row = {
        "id": "5",
        "channel": channel,
        "kind": kind,
        "recipient": to,
        "variables": {"slug": "acme"} | others,
    }
    return templates.render(SimpleNamespace(**row, created_at=NOW, expires_at=expires_at), secrets)


def variables_of(text):
    return meta.find_undeclared_variables(Environment(autoescape=True).parse(text))


class RenderedHtml(HTMLParser):
    """The text, links and elements of HTML."""

    def __init__(self, source):
        super().__init__()
        self.text, self.links, self.elements = "", [], set()
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.elements.add(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]

    def handle_data(self, data):
        self.text += data


def test_every_kind_has_a_message():
    sms = {("sms", kind) for kind in (*SMS_KINDS, *WITH_UNDO, *ABOUT_ORGANIZATIONS)}
    assert set(TEMPLATES.kinds) == {("email", kind) for kind in LINK_TYPES} | sms


class TestMails:
    @each_language
    @each_mail
    def test_mail_renders_with_all_variables_and_with_none(self, language, kind):
        variables = {"new_email": "bob@example.org", "new_phone": "+4915112345678", "provider": "github"}
        full = render(kind, locale=language, user_agent=FIREFOX, **variables)
        bare = render(kind, secrets={}, lifetime=None, locale=language)
        for mail in (full, bare):
            assert 5 < len(mail.subject) < 78
            assert "\n" not in mail.subject
            assert len(mail.text) > 60
            for text in (mail.subject, mail.text, mail.html):
                assert not re.search(r"None|\{\{|\}\}|\{%|&amp;amp;|  +\w|\n\n\n", text), text
            html_text = RenderedHtml(mail.html).text
            lines = [mail.subject, *mail.text.replace("-- ", "").splitlines()]
            # A button stands for the URL, and for the sentence that only announces it.
            text_only = {f"email.{kind}.action"} - {f"email.{kind}.action" for kind in WITH_UNDO}
            replaced = {CATALOGUES[language].get(name) for name in text_only}
            lines = [line for line in lines if line not in replaced and not line.startswith(BASE)]
            assert [line for line in lines if line not in html_text] == []
            assert BASE not in html_text
            assert f'<html lang="{language}">' in mail.html

    @each_mail
    def test_mail_has_the_link_of_its_kind(self, kind):
        mail = render(kind, secrets=SECRETS if LINK_TYPES[kind] else {})
        found_links = re.findall(r"^https?://.*$", mail.text, re.MULTILINE)
        link = f"{BASE}/verify?token={TOKEN}&type={LINK_TYPES[kind]}"
        page = [f"{BASE}/{PAGE_OF_BUTTON[kind]}"] if kind in PAGE_OF_BUTTON else []
        assert found_links == ([link] if LINK_TYPES[kind] else page)
        assert RenderedHtml(mail.html).links == found_links

    @each_language
    @cases("kind", PAGE_OF_BUTTON)
    def test_notice_without_a_link_leads_to_the_page_where_its_reader_can_act(self, language, kind):
        mail = render(kind, secrets={}, locale=language)
        assert f"\n\n{BASE}/{PAGE_OF_BUTTON[kind]}\n\n-- " in mail.text
        assert RenderedHtml(mail.html).links == [f"{BASE}/{PAGE_OF_BUTTON[kind]}"]
        without_pages = render(
            kind, secrets={}, locale=language, templates=templates_of(pages=False, console=False)
        )
        assert (BASE in without_pages.text, RenderedHtml(without_pages.html).links) == (False, [])

    @each_language
    @each_mail
    def test_inbox_shows_what_a_mail_is_about_but_not_its_code(self, language, kind):
        text = " ".join(RenderedHtml(render("reauthentication", locale=language).html).text.split())
        shown = text.partition(CATALOGUES[language]["email.common.preheader"])[2][:150]
        assert shown.strip("\u034f\u2007 ") == ""
        mail = render(kind, secrets={}, locale=language)
        shown = RenderedHtml(mail.html.partition("<body")[2]).text.partition(">")[2].strip()
        assert shown.partition("\u034f")[0] == mail.text.splitlines()[0]

    @cases(
        ("inviter", "sentence"),
        [("ada@example.com", "ada@example.com has invited you"), (None, "been invited")],
    )
    def test_invitation_names_the_administrator(self, inviter, sentence):
        mail = render("invite", inviter=inviter)
        assert (sentence in mail.text, sentence in mail.html) == (True, True)

    @cases(("requires", "sentence"), [("aal2", "now requires"), ("aal1", "no longer requires")])
    @cases("channel", ["email", "sms"])
    def test_notice_states_the_requirement_of_an_organization(self, channel, requires, sentence):
        assert sentence in render("organization_requirement", channel, {}, requires=requires).text

    def test_times_are_utc(self):
        text = render("signup", requested_at="2026-05-06T11:30:00.5+05:00", user_agent=FIREFOX).text
        assert "Signed up on May 6, 2026, 06:30 UTC with Firefox on Linux." in text
        assert "Expires in 1 hour (May 6, 2026, 08:08 UTC). Can be used once." in text

    def test_times_are_written_as_in_the_language_of_the_reader(self):
        mail, time = render("signup", locale="de"), "Gültig für 1 Stunde (bis zum 6. Mai 2026, 08:08 Uhr UTC)"
        assert (time in mail.text, time in mail.html) == (True, True)

    @cases(
        ("channel", "address", "masked", "hidden"),
        [
            ("email", "mallory@evil.example.com", "email address. Its new address is m***@e***.com.", "evil"),
            ("phone", "+4915112345678", "The new number ends in 678.", "15112345"),
        ],
    )
    def test_notice_of_a_change_masks_the_new_address(self, channel, address, masked, hidden):
        text = render(f"{channel}_changed", **{f"new_{channel}": address}).text
        assert (masked in text, hidden in text) == (True, False)

    def test_provider_has_the_title_of_the_settings(self):
        fields: dict[str, Any] = {field.name: "" for field in dataclasses.fields(ProviderSettings)}
        acme = ProviderSettings(**(fields | {"title": "Acme ID"}))
        templates = templates_of(providers={"acme": acme})
        assert "with Acme ID." in render("identity_linked", templates=templates, provider="acme").text


class TestGatheredNotice:
    """A notice of several changes of a kind."""

    @each_language
    def test_mail_lists_each_change_with_what_differs(self, language):
        others = [("2026-01-02T03:09:05.000000Z", "github"), ("2026-01-02T03:10:05.000000Z", "google")]
        changes = [{"at": at, "user_agent": None, "provider": provider} for at, provider in others]
        variables = {"times": 3, "others": changes, "provider": "google", "locale": language}
        mail = render("identity_linked", **variables)
        for text in (mail.text, RenderedHtml(mail.html).text):
            assert "3" in text
            # The opening names Google, so the entry of the last change, which is the same, does not.
            assert (text.count("GitHub"), text.count("03:09"), text.count("03:10")) == (1, 1, 1)
        assert not re.search(r"None|\{\{|\n\n\n", mail.text)

    def test_hostile_values_of_further_changes_do_not_appear(self):
        evil = "https://evil.example/<script>alert(1)</script>{{ 7*7 }}\r\nBcc: eve@example.com"
        other = dict.fromkeys(("user_agent", "new_email", "new_phone", "provider", "application"), evil)
        for kind in WITH_UNDO:
            mail = render(kind, times=2, others=[other])
            for text in (mail.subject, mail.text, mail.html):
                assert not re.search("evil.example|<script|49|Bcc:", re.sub(r"#\w+", "", text)), kind


class TestSms:
    @each_language
    @each_sms
    def test_sms_ends_with_the_code_for_browsers(self, language, kind):
        sms = render(kind, "sms", {"code": CODE}, 600, locale=language)
        assert sms.text.startswith(CODE)
        assert sms.text.splitlines()[-1] == f"@app.example.com #{CODE}"
        assert f"07:18 {'Uhr ' if language == 'de' else ''}UTC" in sms.text
        assert (sms.subject, sms.html) == ("", None)

    @each_language
    @cases("kind", WITH_UNDO)
    def test_sms_about_a_change_ends_with_the_link_that_undoes_it(self, language, kind):
        sms = render(kind, "sms", {"token": TOKEN}, locale=language)
        link = f"https://auth.example.com/verify?token={TOKEN}&type=undo"
        assert sms.text.splitlines()[-2:] == ["", link]
        assert "None" not in sms.text
        assert language in ("es", "zh") or set(sms.text) <= GSM_7

    @each_language
    @each_sms
    def test_sms_with_a_code_fits_into_one_part(self, language, kind):
        templates = templates_of(brand_name="Acme")
        text = render(kind, "sms", {"code": CODE}, 600, locale=language, templates=templates).text.strip()
        if language == "zh":  # UCS-2
            assert len(text) <= 70, len(text)
        else:
            assert (set(text) - GSM_7, len(text) <= 160) == (set(), True), len(text)

    @each_language
    def test_sms_that_confirms_a_sign_up_says_so(self, language):
        sentences = {"de": "neues Konto", "en": "new account", "es": "nueva cuenta"}
        sentences |= {"fr": "nouveau compte", "zh": "新账号"}
        for kind, confirms in (("signup", True), ("sms", False)):
            first = render(kind, "sms", {"code": CODE}, 600, locale=language).text.splitlines()[0]
            assert (sentences[language] in first) is confirms


class TestHostileValues:
    """Values that users can set or send are harmless or not shown."""

    EVIL = "https://evil.example/<script>alert(1)</script>{{ 7*7 }}\r\nBcc: eve@example.com"
    NAMES = ("locale", "languages", "user_agent", "new_email", "new_phone", "provider", "organization")

    @each_mail
    def test_hostile_value_does_not_appear(self, kind):
        names = (*self.NAMES, "old_email", "name", "site", "link")
        mail = render(kind, user_metadata={"name": self.EVIL}, **dict.fromkeys(names, self.EVIL))
        for text in (mail.subject, mail.text, mail.html):
            assert not re.search("evil|script|49|Bcc", re.sub(r"#\w+", "", text))

    @each_mail
    @cases("value", [None, 5, True, [], {}, "", "\0", "\ud800", "@", "x" * 10_000])
    def test_values_of_any_type_render(self, kind, value):
        assert render(kind, **dict.fromkeys(self.NAMES, value)).subject == render(kind).subject

    @cases("kind", ["organization_invitation", *ABOUT_ORGANIZATIONS])
    @cases(
        "name",
        [
            "acme.example",
            "acme\uff0eexample",
            "acme\u3002example",
            "\ufe0f",
            "https://evil.example",
            "a@evil.example",
            "x" * 101,
            "A\nB",
        ],
    )
    def test_organization_whose_name_looks_like_a_link_is_not_named(self, kind, name):
        assert render(kind, organization=name).text == render(kind).text
        assert "Acme & Söhne" in render(kind, organization="Acme & Söhne").subject

    @cases("slug", ["../evil", "a/b", 5, None])
    def test_invalid_short_name_leads_to_no_page(self, slug):
        assert BASE not in render("organization_invitation", secrets={}, slug=slug).text

    def test_redirect_cannot_break_out_of_the_link(self):
        mail = render(redirect_to='https://evil.example/"><img src=x>\r\n\r\nhttps://evil.example')
        assert RenderedHtml(mail.html).elements.isdisjoint({"img", "script", "iframe"})
        assert set(RenderedHtml(mail.html).links) == {mail.link}
        assert re.findall(r"https?://[^\s]+", mail.text) == [mail.link]
        assert html.escape(mail.link) in mail.html

    @cases(
        ("user_agent", "shown"),
        [
            (FIREFOX, "Firefox on Linux"),
            ("(Windows NT 10.0; Win64; x64) Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"),
            ("(iPhone; CPU iPhone OS 18_0 like Mac OS X) CriOS/140.0 Mobile Safari/604.1", "Chrome on iOS"),
            *((unknown, None) for unknown in ("python-requests/2.32", "")),
        ],
    )
    def test_browser_is_named_by_family_only(self, user_agent, shown):
        text = render(user_agent=f"Mozilla/5.0 {user_agent} see https://evil.example").text
        assert f"Requested on {AT_0708}{f' with {shown}' if shown else ''}.\n" in text


class TestLanguage:
    @cases(
        ("locale", "accept_language", "language"),
        [
            (None, None, "en"),
            *((locale, "fr", "de") for locale in ("de", "de-CH", "de_AT", "DE")),
            ("zh-Hans-CN", None, "zh"),
            ("nl", "fr", "fr"),
            ("nl", "pt-BR, pt;q=0.9", "en"),
            (None, "pt, en;q=0.5, es-MX;q=0.7, de;q=0.6", "es"),
            (None, "de;q=0, es", "es"),
            *((None, header, "en") for header in ("*", "x" * 1000)),
            *((5, ["de"], "en"), ("common", "../../etc", "en"), ("", "", "en")),
        ],
    )
    def test_language_is_the_users_then_the_browsers_then_english(self, locale, accept_language, language):
        assert languages.choose(sorted(CATALOGUES), locale, accept_language) == language

    def test_mail_is_written_in_the_chosen_language(self):
        assert render(locale="fr", languages="de").subject == "Connexion à app.example.com:8443"


class TestCustomTemplates:
    OWN_LINK = "Come in\n\n{{ site_url }}/auth/confirm?token_hash={{ token_hash }}&type=email\n"
    MESSAGES = (DIRECTORY / "messages" / "en.toml").read_text()

    @pytest.fixture
    def make(self, tmp_path):
        """Return a function that makes templates with files, which must pass the check."""

        def make(files):
            (tmp_path / "en").mkdir(exist_ok=True)
            for name, text in files.items():
                (tmp_path / name).write_text(text)
            templates = templates_of(mail_templates=tmp_path)
            templates.check()
            return templates

        return make

    @cases(("language", "time"), [("sv", "6 maj 2026 07:08 UTC"), ("xx", AT_0708)])
    def test_catalogue_adds_a_language_with_the_times_of_cldr_or_of_english(self, make, language, time):
        texts = self.MESSAGES.replace("Confirm your", "Logga in")
        mail = render("signup", templates=make({f"{language}.toml": texts}), locale=language)
        assert mail.subject.startswith("Logga in")
        assert f"on {time}" in mail.text

    def test_custom_template_replaces_a_kind_in_a_language(self, make):
        text, page = "Come in\n\nHere: {{ link }}\n", "<a href='{{ link }}'>{{ site }}</a>{{ recipient }}"
        templates = make({"en/magiclink.txt": text, "en/magiclink.html": page})
        mail = render(templates=templates, to="<b>@example.com")
        assert (mail.subject, mail.text) == ("Come in", f"Here: {mail.link}\n")
        link = f"<a href='{html.escape(mail.link)}'>app.example.com</a>"
        assert mail.html == f"{link}&lt;b&gt;@example.com"
        assert render(templates=templates, locale="de").subject == "Anmeldung bei app.example.com"
        assert render("recovery", templates=templates).subject == "Reset your password"

    def test_custom_link_leads_to_the_application_with_the_token_and_without_the_built_in_html(self, make):
        mail = render(templates=make({"en/magiclink.txt": self.OWN_LINK}))
        assert parse_qs(urlsplit(mail.link).query)["token"] == [TOKEN]
        assert mail.text == f"https://app.example.com/auth/confirm?token_hash={TOKEN}&type=email\n"
        assert mail.html is None

    def test_custom_sms_template_is_used(self, make):
        templates = make({"en/sms_reauthentication.txt": "{{ code }}?\n"})
        assert render("reauthentication", "sms", templates=templates).text == f"{CODE}?\n"
        assert render("reauthentication", templates=templates).subject == "Your app.example.com code"

    def test_custom_layout_can_use_built_in_strings_and_custom_strings_replace_single_ones(self, make):
        strings = '[email.magiclink]\nsubject = "Hello from {{ site }}"\n'
        templates = make({"layout.html": "<main>{{ say('opening') }}</main>", "en.toml": strings})
        mail = render(templates=templates)
        assert mail.html == "<main>Use this email to sign in to app.example.com.</main>"
        assert mail.subject == "Hello from app.example.com"
        assert "Use this email to sign in" in mail.text

    @pytest.mark.parametrize(
        ("file", "content", "problem"),
        [
            ("en/magiclink.txt", "{{ lnik }}", "en/magiclink: UndefinedError: 'lnik' is undefined"),
            ("en/magiclink.html", "{% if %}", "en/magiclink: TemplateSyntaxError"),
            ("en/magiclink.txt", "{{ link.__class__.__mro__ }}", "en/magiclink: SecurityError"),
            ("en/magiclink.txt", "{{ say('nothing') }}", "en/magiclink: TemplatesNotFound"),
            ("sv.toml", "email.signup.subject = 'Hej'", "sv.toml: the string email.address_added.action is"),
            ("en.toml", "email.signup.subjetc = 'Hello'", "en.toml: there is no string email.signup.subjetc"),
            ("en.toml", "email.signup.subject = 5", "en.toml: must contain strings in tables [channel.kind]"),
            ("en.toml", "[", "en.toml: "),
        ],
    )
    def test_faulty_custom_template_is_refused(self, make, file, content, problem):
        with pytest.raises((CannotRender, ValueError)) as error:
            make({file: content})
        assert str(error.value).startswith(problem)


class TestBrand:
    @cases(
        ("logo", "url"),
        [
            ("/etc/latchkey/logo.png", f"{BASE}/brand/logo"),
            ("https://cdn.example.com/logo.png?v=2", "https://cdn.example.com/logo.png?v=2"),
            *((None, None), ("https://cdn.example.com/logo.SVG?v=2", None)),
        ],
    )
    def test_logo_that_mail_programs_can_show_stands_for_the_name(self, logo, url):
        assert logo_in_mails(logo, BASE) == url
        templates = templates_of(brand_name="Acme & Sons", brand_logo=logo)
        mail = render("password_changed", templates=templates)
        assert (f'<img src="{url}" alt="Acme &amp; Sons"' in mail.html) == ("<img" in mail.html) == bool(url)
        assert (">Acme &amp; Sons</p>" in mail.html) == (url is None)
        assert "Your Acme & Sons account".lower() in mail.text.lower()
        assert mail.text.endswith("-- \nAcme & Sons\napp.example.com\n")

    def test_company_is_at_the_end_of_each_mail(self):
        templates = templates_of(brand_company="Acme <GmbH>, 10115 Berlin")
        mail = render(templates=templates)
        assert mail.text.endswith("-- \nAcme <GmbH>, 10115 Berlin\napp.example.com\n")
        assert "Acme &lt;GmbH&gt;, 10115 Berlin<br>app.example.com</p>" in mail.html
        assert render(templates=templates_of()).text.endswith("-- \napp.example.com\n")


class TestDocumentation:
    PAGE = (Path(__file__).parents[2] / "docs" / "messages.md").read_text()

    def table(self, heading):
        section = self.PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
        cells = re.findall(r"^(?:\| |- )(`.*?)(?: \| |:|$)", section, re.M)
        return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}

    def test_documentation_lists_every_kind(self):
        assert self.table("What is sent") == {kind for _, kind in TEMPLATES.kinds}

    def test_documentation_lists_every_variable(self):
        texts = [path.read_text() for path in LAYOUTS.glob("layout*")]
        texts += [text for name, text in ENGLISH.items() if name != "email.common.browser"]
        variables = set().union(*map(variables_of, texts))
        documented = " ".join(self.table("Your own texts"))
        assert [name for name in variables if not re.search(rf"\b{name}\b", documented)] == []
