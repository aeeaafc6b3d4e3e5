"""The text of messages: complete in every language, without text from strangers."""

import html
import re
import urllib.parse
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from jinja2 import Environment, meta

from auth.delivery.messages import TEMPLATES as LAYOUTS
from auth.delivery.messages import CannotRender, Templates
from auth.text import languages
from auth.text.catalogues import ROOM, built_in
from tests.support.cases import cases
from tests.support.outbox import CODE, TOKEN

TEMPLATES = Templates("https://auth.example.com", "https://app.example.com:8443/start")
CATALOGUES = built_in("messages")
ENGLISH = CATALOGUES["en"]
NOW = datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SECRETS = {"token": TOKEN, "code": CODE}

# The link type of each kind.
MAILS = {
    "signup": "signup",
    "signup_attempt": None,
    "invite": "invite",
    "magiclink": "magiclink",
    "recovery": "recovery",
    "email_change": "email_change",
    "reauthentication": None,
    "password_changed": None,
    "email_changed": "undo",
    "phone_changed": "undo",
    "address_added": "undo",
    "identity_linked": "undo",
    "identity_unlinked": "undo",
    "passkey_added": "undo",
    "passkey_removed": "undo",
    "factor_added": "undo",
    "factor_removed": "undo",
    "recovery_codes_created": None,
    "recovery_code_used": None,
    "webhook_disabled": None,
}
SMS = ("sms", "signup", "phone_change", "reauthentication")
SMS_NOTICES = (
    *("address_added", "email_changed", "phone_changed", "identity_linked", "identity_unlinked"),
    *("passkey_added", "passkey_removed", "factor_added", "factor_removed"),
)

each_language = cases("language", sorted(CATALOGUES))
each_mail = cases("kind", MAILS)
each_sms = cases("kind", SMS)


def render(
    kind="magiclink",
    channel="email",
    secrets=SECRETS,
    lifetime=3600,
    templates=TEMPLATES,
    recipient="alice@example.com",
    **variables,
):
    expires_at = NOW + timedelta(seconds=lifetime) if lifetime else None
    waiting = SimpleNamespace(
        id="5",
        channel=channel,
        kind=kind,
        recipient=recipient,
        variables=variables,
        created_at=NOW,
        expires_at=expires_at,
    )
    return templates.render(waiting, secrets)


def variables_of(text):
    return meta.find_undeclared_variables(Environment(autoescape=True).parse(text))


def string(language, name):
    return CATALOGUES[language][name]


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
    sms = {("sms", kind) for kind in (*SMS, *SMS_NOTICES)}
    assert set(TEMPLATES.kinds) == {("email", kind) for kind in MAILS} | sms


class TestMails:
    @each_language
    @each_mail
    def test_mail_renders_with_all_variables_and_with_none(self, language, kind):
        full = render(
            kind,
            locale=language,
            user_agent=FIREFOX,
            new_email="bob@example.org",
            new_phone="+4915112345678",
            provider="github",
        )
        bare = render(kind, secrets={}, lifetime=None, locale=language)
        for mail in (full, bare):
            assert 5 < len(mail.subject) < 78
            assert "\n" not in mail.subject
            assert len(mail.text) > 60
            for text in (mail.subject, mail.text, mail.html):
                assert not re.search(r"None|\{\{|\}\}|\{%|&amp;amp;|  +\w|\n\n\n", text), text

    @each_language
    @each_mail
    def test_html_and_text_have_the_same_content(self, language, kind):
        mail = render(
            kind, locale=language, user_agent=FIREFOX, new_email="bob@example.org", provider="github"
        )
        shown = RenderedHtml(mail.html)
        for line in filter(None, mail.text.splitlines()):
            if line != "-- ":
                assert line in shown.text
        assert mail.subject in shown.text
        assert f'<html lang="{language}">' in mail.html

    @each_mail
    def test_mail_has_the_link_of_its_kind(self, kind):
        mail = render(kind)
        expected = (
            f"https://auth.example.com/verify?token={TOKEN}&type={MAILS[kind]}" if MAILS[kind] else None
        )
        found = re.findall(r"^https?://.*$", mail.text, re.MULTILINE)
        assert found == ([expected] if expected else [])
        assert set(RenderedHtml(mail.html).links) == set(found)

    def test_code_is_on_its_own_line(self):
        assert CODE in render("magiclink").text.splitlines()

    @each_language
    def test_inbox_shows_that_a_code_is_inside_but_not_the_code(self, language):
        text = " ".join(RenderedHtml(render("reauthentication", locale=language).html).text.split())
        shown = text.partition(string(language, "email.common.preheader"))[2][:150]
        assert shown.strip("\u034f\u2007 ") == ""

    @each_language
    @each_mail
    def test_inbox_shows_what_a_mail_without_a_code_is_about(self, language, kind):
        mail = render(kind, secrets={}, locale=language)
        shown = RenderedHtml(mail.html.partition("<body")[2]).text.partition(">")[2].strip()
        assert shown.partition("\u034f")[0] == mail.text.splitlines()[0]

    def test_code_without_link_is_not_called_an_alternative(self):
        assert "Your code:" in render("reauthentication", secrets={"code": CODE}).text
        assert "Or enter this code:" in render("magiclink").text
        assert "code" not in render("magiclink", secrets={"token": TOKEN}).text

    def test_link_contains_the_redirect_target(self):
        link = render(redirect_to="https://app.example.com/a?b=c&d=é").link
        assert (
            dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(link).query))["redirect_to"]
            == "https://app.example.com/a?b=c&d=é"
        )
        assert link.count("https://") == 1

    def test_times_are_utc(self):
        text = render("signup", requested_at="2026-05-06T11:30:00.5+05:00", user_agent=FIREFOX).text
        assert "Signed up on May 6, 2026, 06:30 UTC, with Firefox on Linux." in text
        assert "Valid for 1 hour (until May 6, 2026, 08:08 UTC), for one use only." in text

    @pytest.mark.parametrize(
        ("language", "time"),
        [
            ("de", "Gültig für 1 Stunde (bis 6. Mai 2026, 08:08 UTC)"),
            ("fr", "au 6 mai 2026, 08:08 UTC)"),
            ("es", "durante 1 hora (hasta el 6 de mayo de 2026, 08:08 UTC)"),
            ("zh", "2026年5月6日 08:08 UTC"),
        ],
    )
    def test_times_are_written_as_in_the_language_of_the_reader(self, language, time):
        message = render("signup", locale=language)
        assert time in message.text
        assert time in message.html

    @pytest.mark.parametrize("requested_at", [None, "yesterday", 5, "9999-12-31T23:59:59-23:59", ["2026"]])
    def test_invalid_request_time_is_replaced_by_the_message_time(self, requested_at):
        assert "May 6, 2026, 07:08 UTC" in render("signup", requested_at=requested_at).text

    def test_mail_names_the_site(self):
        assert render().subject == "Sign in to app.example.com:8443"

    def test_notice_of_a_changed_email_masks_the_new_address(self):
        text = render("email_changed", secrets={"token": TOKEN}, new_email="mallory@evil.example.com").text
        assert "no longer uses this email address. Its new address is m***@e***.com." in text
        assert "evil" not in text

    def test_notice_of_a_changed_phone_shows_the_last_digits(self):
        text = render("phone_changed", new_phone="+4915112345678").text
        assert "The new number ends in 678." in text
        assert "15112345" not in text

    @pytest.mark.parametrize(
        ("name", "shown"), [("github", "GitHub"), ("azure", "Microsoft"), ("my-company", "my-company")]
    )
    def test_provider_has_its_display_name(self, name, shown):
        assert f"with {shown}." in render("identity_linked", provider=name).text


class TestSms:
    @each_language
    @each_sms
    def test_sms_ends_with_the_code_for_browsers(self, language, kind):
        sms = render(kind, "sms", {"code": CODE}, 600, locale=language)
        assert sms.text.startswith(CODE) or language == "zh"
        assert sms.text.splitlines()[-1] == f"@app.example.com #{CODE}"
        assert "07:18 UTC" in sms.text
        assert sms.subject == ""
        assert sms.html is None

    @each_language
    @cases("kind", SMS_NOTICES)
    def test_sms_about_a_change_ends_with_the_link_that_undoes_it(self, language, kind):
        sms = render(kind, "sms", {"token": TOKEN}, locale=language)
        link = f"https://auth.example.com/verify?token={TOKEN}&type=undo"
        assert sms.text.splitlines()[-2:] == ["", link]
        assert "None" not in sms.text

    @each_sms
    def test_english_sms_fits_into_one_part(self, kind):
        assert len(render(kind, "sms", {"code": CODE}, 600).text.strip()) <= 160

    @each_language
    def test_sms_that_confirms_a_sign_up_says_so(self, language):
        sign_up, sign_in = (
            render(kind, "sms", {"code": CODE}, 600, locale=language).text.splitlines()[0]
            for kind in ("signup", "sms")
        )
        said = {
            "de": "neue Konto",
            "en": "new account",
            "es": "nueva cuenta",
            "fr": "nouveau compte",
            "zh": "新账号",
        }
        assert said[language] in sign_up
        assert said[language] not in sign_in


class TestHostileValues:
    """Values that users can set or send are harmless or not shown."""

    EVIL = "https://evil.example/<script>alert(1)</script>{{ 7*7 }}\r\nBcc: eve@example.com"

    @each_mail
    def test_hostile_value_does_not_appear(self, kind):
        evil = self.EVIL
        mail = render(
            kind, locale=evil, languages=evil, user_agent=evil, requested_at=evil, new_email=evil, new_phone=evil, old_email=evil, provider=evil,
            user_metadata={"name": evil}, name=evil, site=evil, link=evil,
        )  # fmt: skip
        for text in (mail.subject, mail.text, mail.html):
            assert "evil" not in text
            assert "script" not in text
            assert "49" not in re.sub(r"#\w+", "", text)
            assert "Bcc" not in text

    @each_mail
    @cases("value", [None, 5, True, [], {}, "", "\0", "\ud800", "@", "x" * 10_000])
    def test_values_of_any_type_render(self, kind, value):
        names = ("locale", "languages", "user_agent", "requested_at", "new_email", "new_phone", "provider")
        assert render(kind, **dict.fromkeys(names, value)).subject == render(kind).subject

    def test_redirect_cannot_break_out_of_the_link(self):
        mail = render(redirect_to='https://evil.example/"><img src=x>\r\n\r\nhttps://evil.example')
        assert RenderedHtml(mail.html).elements.isdisjoint({"img", "script", "iframe"})
        assert set(RenderedHtml(mail.html).links) == {mail.link}
        assert re.findall(r"https?://[^\s]+", mail.text) == [mail.link]
        assert html.escape(mail.link) in mail.html

    @pytest.mark.parametrize(
        ("user_agent", "shown"),
        [
            (FIREFOX, "Firefox on Linux"),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15",
                "Safari on macOS",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile Safari/604.1",
                "Chrome on iOS",
            ),
            (
                "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36",
                "Chrome on Android",
            ),
            (
                "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/140.0 Mobile",
                "Samsung Internet on Android",
            ),
            (
                "Mozilla/5.0 (X11; CrOS x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 OPR/120.0",
                "Opera on ChromeOS",
            ),
        ],
    )
    def test_browser_is_named_by_family_only(self, user_agent, shown):
        assert (
            f"Requested on May 6, 2026, 07:08 UTC, with {shown}."
            in render(user_agent=user_agent + " see https://evil.example").text
        )

    @pytest.mark.parametrize("user_agent", ["python-requests/2.32", "", "curl/8 https://evil.example"])
    def test_unknown_programs_are_not_named(self, user_agent):
        assert "Requested on May 6, 2026, 07:08 UTC.\n" in render(user_agent=user_agent).text


class TestLanguage:
    @pytest.mark.parametrize(
        ("locale", "accept_language", "language"),
        [
            (None, None, "en"),
            ("de", None, "de"),
            ("de-CH", "fr", "de"),
            ("de_AT", "fr", "de"),
            ("DE", "fr", "de"),
            ("zh-Hans-CN", None, "zh"),
            ("nl", "fr", "fr"),
            ("nl", "pt-BR, pt;q=0.9", "en"),
            (None, "fr-CA,fr;q=0.9,en;q=0.8", "fr"),
            (None, "en;q=0.5, de;q=0.9", "de"),
            (None, "pt, es-MX;q=0.7, de;q=0.6", "es"),
            (None, "de;q=0, es", "es"),
            (None, "*", "en"),
            (None, "x" * 1000, "en"),
            (5, ["de"], "en"),
            ("common", "../../etc", "en"),
            ("", "", "en"),
        ],
    )
    def test_language_is_the_users_then_the_browsers_then_english(self, locale, accept_language, language):
        assert languages.choose(sorted(CATALOGUES), locale, accept_language) == language

    def test_mail_is_written_in_the_chosen_language(self):
        assert render(locale="fr", languages="de").subject == "Connexion à app.example.com:8443"


class TestCustomTemplates:
    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "en").mkdir()
        (tmp_path / "sv").mkdir()
        return tmp_path

    def templates(self, folder):
        return Templates("https://auth.example.com", "https://app.example.com", folder)

    def test_valid_custom_templates_pass_the_check(self, folder):
        link = "{{ site_url }}/auth/confirm?token_hash={{ token_hash }}&type=email"
        texts = {
            "en/magiclink.txt": f"Come in\n\n{link}\n",
            "en/magiclink.html": "<a href='{{ link }}'>{{ site }}</a> {{ recipient }}",
            "en/recovery.txt": "Come in\n\n{{ link }}\n",
            "en/sms.txt": "{{ code }}!\n",
            "layout.html": "<main>{{ say('opening') }}</main>",
            "en.toml": '[email.magiclink]\nsubject = "Hello from {{ site }}"\n',
            "sv.toml": (ROOM / "messages" / "en.toml").read_text(),
        }
        for name, text in texts.items():
            (folder / name).write_text(text)
        self.templates(folder).check()

    @pytest.mark.parametrize(
        ("language", "time"), [("sv", "6 maj 2026 07:08 UTC"), ("xx", "May 6, 2026, 07:08 UTC")]
    )
    def test_times_of_a_language_of_ones_own_are_those_of_cldr_or_english(self, folder, language, time):
        (folder / f"{language}.toml").write_text((ROOM / "messages" / "en.toml").read_text())
        assert f"on {time}" in render("signup", templates=self.templates(folder), locale=language).text

    def test_custom_template_replaces_a_kind_in_a_language(self, folder):
        (folder / "en" / "magiclink.txt").write_text("Come in\n\nHere: {{ link }}\n")
        (folder / "en" / "magiclink.html").write_text("<a href='{{ link }}'>{{ site }}</a>")
        templates = self.templates(folder)
        mail = render(templates=templates)
        assert (mail.subject, mail.text) == ("Come in", f"Here: {mail.link}\n")
        assert mail.html == f"<a href='{html.escape(mail.link)}'>app.example.com</a>"
        assert render(templates=templates, locale="de").subject == "Anmeldung bei app.example.com"
        assert render("recovery", templates=templates).subject == "Reset your password"

    def test_custom_text_suppresses_the_built_in_html(self, folder):
        (folder / "en" / "magiclink.txt").write_text("Come in\n\n{{ link }}\n")
        assert render(templates=self.templates(folder)).html is None

    def test_custom_link_leads_to_the_application_with_the_token(self, folder):
        link = "{{ site_url }}/auth/confirm?token_hash={{ token_hash }}&type=email"
        (folder / "en" / "magiclink.txt").write_text(f"Come in\n\n{link}\n")
        mail = render(templates=self.templates(folder))
        token = parse_qs(urlsplit(mail.link).query)["token"][0]
        assert mail.text == f"https://app.example.com/auth/confirm?token_hash={token}&type=email\n"

    def test_custom_sms_template_is_used(self, folder):
        (folder / "en" / "sms.txt").write_text("{{ code }}!\n")
        (folder / "en" / "sms_reauthentication.txt").write_text("{{ code }}?\n")
        templates = self.templates(folder)
        assert render("sms", "sms", templates=templates).text == f"{CODE}!\n"
        assert render("reauthentication", "sms", templates=templates).text == f"{CODE}?\n"
        assert render("reauthentication", templates=templates).subject == "Your code for app.example.com"

    def test_custom_layout_can_use_built_in_strings(self, folder):
        (folder / "layout.html").write_text("<main>{{ say('opening') }}</main>")
        assert (
            render(templates=self.templates(folder)).html
            == "<main>Use this email to sign in to app.example.com.</main>"
        )

    def test_custom_catalogue_replaces_single_strings(self, folder):
        (folder / "en.toml").write_text('[email.magiclink]\nsubject = "Hello from {{ site }}"\n')
        mail = render(templates=self.templates(folder))
        assert mail.subject == "Hello from app.example.com"
        assert "Use this email to sign in" in mail.text

    def test_custom_catalogue_adds_a_language(self, folder):
        (folder / "sv.toml").write_text(
            (ROOM / "messages" / "en.toml").read_text().replace("Sign in to", "Logga in på")
        )
        assert render(templates=self.templates(folder), locale="sv").subject == "Logga in på app.example.com"

    def test_variables_in_custom_templates_are_escaped(self, folder):
        (folder / "en" / "magiclink.html").write_text("{{ recipient }}")
        assert (
            render(templates=self.templates(folder), recipient="<b>@example.com").html
            == "&lt;b&gt;@example.com"
        )

    @pytest.mark.parametrize(
        ("file", "content", "problem"),
        [
            ("en/magiclink.txt", "{{ lnik }}", "en/magiclink: UndefinedError: 'lnik' is undefined"),
            ("en/magiclink.html", "{% if %}", "en/magiclink: TemplateSyntaxError"),
            ("en/magiclink.txt", "{{ link.__class__.__mro__ }}", "en/magiclink: SecurityError"),
            ("en/magiclink.txt", "{{ say('nothing') }}", "en/magiclink: TemplatesNotFound"),
            (
                "sv.toml",
                '[email.signup]\nsubject = "Hej"',
                "sv.toml: the string email.address_added.action is missing",
            ),
            (
                "en.toml",
                '[email.signup]\nsubjetc = "Hello"',
                "en.toml: there is no string email.signup.subjetc",
            ),
            (
                "en.toml",
                "[email.signup]\nsubject = 5",
                "en.toml: must contain strings in tables [channel.kind]",
            ),
            ("en.toml", "subject = 'Hello'", "en.toml: must contain strings in tables [channel.kind]"),
            ("en.toml", "[", "en.toml: "),
        ],
    )
    def test_faulty_custom_template_is_refused(self, folder, file, content, problem):
        (folder / file).write_text(content)
        with pytest.raises((CannotRender, ValueError)) as error:
            self.templates(folder).check()
        assert str(error.value).startswith(problem)


class TestDocumentation:
    PAGE = (Path(__file__).parents[2] / "docs" / "messages.md").read_text()

    def table(self, heading):
        section = self.PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
        return {
            name
            for line in section.splitlines()
            if line.startswith("| `")
            for name in re.findall(r"`([^`]+)`", line.split(" | ")[0])
        }

    def test_documentation_lists_every_kind(self):
        assert self.table("What is sent") == {kind for _, kind in TEMPLATES.kinds}

    def test_samples_carry_what_the_documentation_says(self):
        rows = re.findall(r"^\| (`.+?) \| (.*?) \|(.*?)\|", self.PAGE, re.M)
        carried = {
            kind: ("link" in what, "code" in what)
            for kinds, to, what in rows
            if "email" in to
            for kind in re.findall("`(.+?)`", kinds)
        }
        samples = {message.kind: message for message in TEMPLATES.samples("alice@example.com", "en")}
        assert set(samples) == set(MAILS)
        for kind, message in samples.items():
            found = "/verify?token=" in message.text, bool(re.search(r"^\d{6}$", message.text, re.M))
            assert (kind, found) == (kind, carried[kind])
        assert "Valid for 1 week" in samples["invite"].text

    def test_documentation_lists_every_variable(self):
        used = set().union(*(variables_of(path.read_text()) for path in LAYOUTS.glob("layout*")))
        used |= set().union(
            *(variables_of(string("en", name)) for name in ENGLISH if name != "email.common.browser")
        )
        named = " ".join(self.table("Your own texts"))
        assert [name for name in used if not re.search(rf"\b{name}\b", named)] == []
