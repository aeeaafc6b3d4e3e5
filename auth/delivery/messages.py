"""The text of messages. Each kind has strings in the catalogue of a language, which a common layout shows.

The operator's folder may hold templates for a kind in a language, `de/signup.txt` and `de/signup.html`, and
other layouts. The subject of a mail is the first line of its text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined, Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from auth.delivery import languages, sanitize
from auth.delivery.languages import TEMPLATES
from auth.settings import Settings, SettingsError

# Kinds whose links have another type.
_LINK_TYPES = {"email_changed": "email_restore"}
_TIME = "%H:%M UTC"
_DATE_AND_TIME = f"%Y-%m-%d {_TIME}"


@dataclass(frozen=True)
class Message:
    """A message as it is sent. Its id is the same in every attempt."""

    id: str
    kind: str
    created_at: datetime
    subject: str
    text: str
    html: str | None = None
    link: str | None = None
    code: str | None = None


class CannotRender(Exception):
    """A template or its variables are at fault."""


class Templates:
    """Strings and layouts. Raises `ValueError`, with a message for the operator, for malformed ones."""

    def __init__(self, base_url: str, site_url: str, folder: Path | None = None) -> None:
        self._base_url = base_url
        self._site_url = site_url
        self._folder = folder
        self._catalogues = languages.load_catalogues(folder)
        self._languages = sorted(self._catalogues)
        loader = ChoiceLoader([FileSystemLoader(directory) for directory in (folder, TEMPLATES) if directory])
        # Templates are trusted. Values from users are variables, escaped in HTML.
        self._environments = {
            suffix: _environment(loader, is_html=suffix == "html") for suffix in ("txt", "html")
        }
        self._strings: dict[tuple[str, ...], Template] = {}

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """Channel and kind of all messages."""
        return [
            (channel, kind)
            for channel, kinds in self._catalogues[languages.DEFAULT].items()
            for kind in kinds
            if kind != "common"
        ]

    @property
    def languages(self) -> list[str]:
        """The languages that have a catalogue."""
        return self._languages

    def render(self, row: Any, secrets: Mapping[str, str]) -> Message:
        """Return the message of a row of the outbox, with its link and code. Raises `CannotRender`."""
        variables = row.variables
        language = languages.choose(self._languages, variables.get("locale"), variables.get("languages"))
        token = secrets.get("token")
        link = self._link(row.kind, token, variables.get("redirect_to")) if token else None
        context = self._context(row, language, link, secrets.get("code"))
        try:
            text = self._text(row.channel, row.kind, language, context)
            html = self._html(row.kind, language, context) if row.channel == "email" else None
        except (TemplateError, KeyError, TypeError, ArithmeticError, AttributeError, ValueError) as error:
            raise CannotRender(f"{language}/{row.kind}: {type(error).__name__}: {error}") from error
        subject = ""
        if row.channel == "email":
            subject, _, text = text.partition("\n")
        return Message(
            row.id,
            row.kind,
            row.created_at,
            " ".join(subject.split()),
            text.strip("\n") + "\n",
            html,
            link,
            secrets.get("code"),
        )

    def check(self) -> None:
        """Render each kind in each language, with all variables and with none. Raises `CannotRender`."""
        now = datetime.now(UTC)
        full = {
            "redirect_to": self._site_url,
            "new_email": "a@b.c",
            "new_phone": "+15555550100",
            "provider": "google",
            "user_agent": "Firefox/1 Linux",
        }
        full["webhook_url"] = "https://hooks.example.com/events"
        for language in self._languages:
            for channel, kind in self.kinds:
                for variables, expires_at in ((full, now), ({}, None)):
                    row = _Sample(channel, kind, variables | {"locale": language}, now, expires_at)
                    self.render(
                        row, {"token": "t" * 43, "code": "123456"} if variables else {"code": "123456"}
                    )

    def _link(self, kind: str, token: str, redirect_to: object) -> str:
        query = {"token": token, "type": _LINK_TYPES.get(kind, kind)}
        if isinstance(redirect_to, str) and redirect_to:
            query["redirect_to"] = redirect_to
        return f"{self._base_url}/verify?{urlencode(query)}"

    def _context(self, row: Any, language: str, link: str | None, code: str | None) -> dict[str, Any]:
        variables = row.variables
        browser, system = sanitize.browser_and_system(variables.get("user_agent"))
        if browser and system:
            phrase = self._string(language, "email", "common", "browser", "txt")
            browser = phrase.render(browser_name=browser, system_name=system)
        expires_at = row.expires_at.astimezone(UTC) if row.expires_at else None
        return {
            "channel": row.channel,
            "kind": row.kind,
            "language": language,
            "site": urlsplit(self._site_url).netloc,
            "site_host": urlsplit(self._site_url).hostname,
            "site_url": self._site_url,
            "recipient": row.recipient,
            "link": link,
            "code": code,
            "valid_until": expires_at.strftime(_DATE_AND_TIME) if expires_at else None,
            "valid_until_time": expires_at.strftime(_TIME) if expires_at else None,
            "moment": sanitize.moment(variables.get("requested_at"), row.created_at).strftime(_DATE_AND_TIME),
            "browser": browser,
            "new_email": sanitize.masked_email(variables.get("new_email")),
            "new_phone": sanitize.masked_phone(variables.get("new_phone")),
            "provider": sanitize.provider(variables.get("provider")),
            "webhook_host": sanitize.host(variables.get("webhook_url")),
        }

    def _text(self, channel: str, kind: str, language: str, context: dict[str, Any]) -> str:
        layout = "layout_sms.txt" if channel == "sms" else "layout.txt"
        own = f"{language}/sms_{kind}.txt" if channel == "sms" and kind != "sms" else f"{language}/{kind}.txt"
        return (
            self._environments["txt"]
            .select_template([own, layout])
            .render(context | self._speech(channel, kind, language, context, "txt"))
        )

    def _html(self, kind: str, language: str, context: dict[str, Any]) -> str | None:
        own = f"{language}/{kind}.html"
        # The built-in HTML would contradict the operator's text.
        if (
            self._folder
            and (self._folder / f"{language}/{kind}.txt").exists()
            and not (self._folder / own).exists()
        ):
            return None
        return (
            self._environments["html"]
            .select_template([own, "layout.html"])
            .render(context | self._speech("email", kind, language, context, "html"))
        )

    def _speech(
        self, channel: str, kind: str, language: str, context: dict[str, Any], suffix: str
    ) -> dict[str, Any]:
        """Return the functions that layouts call: `say(name)` renders a string, `has(name)` looks for it."""
        strings = self._catalogues[language][channel]

        def has(name: str) -> bool:
            return name in strings.get(kind, {}) or name in strings.get("common", {})

        def say(name: str) -> Any:
            where = kind if name in strings.get(kind, {}) else "common"
            module = self._string(language, channel, where, name, suffix)
            return (
                self._environments[suffix].filters["safe"](module.render(context))
                if suffix == "html"
                else module.render(context)
            )

        return {"say": say, "has": has}

    def _string(self, language: str, channel: str, kind: str, name: str, suffix: str) -> Template:
        key = (language, channel, kind, name, suffix)
        if key not in self._strings:
            self._strings[key] = self._environments[suffix].from_string(
                self._catalogues[language][channel][kind][name]
            )
        return self._strings[key]


def load_templates(settings: Settings) -> Templates:
    """Return the templates. Raises `SettingsError` if one in `AUTH_MAIL_TEMPLATES` cannot be rendered."""
    templates = Templates(settings.base_url, settings.site_url, settings.mail_templates)
    if settings.mail_templates:
        try:
            templates.check()
        except (ValueError, CannotRender) as error:
            raise SettingsError(
                f"AUTH_MAIL_TEMPLATES: Must hold templates that can be rendered ({error})."
            ) from None
    return templates


@dataclass(frozen=True)
class _Sample:
    channel: str
    kind: str
    variables: dict[str, str]
    created_at: datetime
    expires_at: datetime | None
    id: str = "00000000-0000-0000-0000-000000000000"
    recipient: str = "user@example.com"


def _environment(loader: ChoiceLoader, is_html: bool) -> Environment:
    return ImmutableSandboxedEnvironment(
        loader=loader, undefined=StrictUndefined, autoescape=is_html, trim_blocks=True, lstrip_blocks=True
    )
