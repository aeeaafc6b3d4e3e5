"""What messages say. Each kind has its strings in the catalogue of a language, and one layout shows them.

A deployment's folder may hold a template of its own for a kind in a language, `de/signup.txt` and `de/signup.html`, and other
layouts. The subject of a mail is the first line of its text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined, Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from auth.delivery import languages, reduce
from auth.delivery.languages import TEMPLATES
from auth.settings import Settings, SettingsError

# The types of the links that messages carry: that of the kind, but for a change that is undone.
_LINK_TYPES = {"email_changed": "email_restore"}
_TIME = "%H:%M UTC"
_DATE_AND_TIME = f"%Y-%m-%d {_TIME}"


@dataclass(frozen=True)
class Message:
    """A message as it is sent. `id` stays the same when it is tried again."""

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
    """The strings and layouts of a deployment. Raises `ValueError`, in words for people, when the folder's are malformed."""

    def __init__(self, base_url: str, site_url: str, folder: Path | None = None) -> None:
        self._base_url = base_url
        self._site_url = site_url
        self._folder = folder
        self._catalogues = languages.load_catalogues(folder)
        self._languages = sorted(self._catalogues)
        loader = ChoiceLoader([FileSystemLoader(directory) for directory in (folder, TEMPLATES) if directory])
        # Strings and templates are the operator's; what users have written comes in as variables, and is escaped in HTML.
        self._environments = {suffix: _environment(loader, is_html=suffix == "html") for suffix in ("txt", "html")}
        self._strings: dict[tuple[str, ...], Template] = {}

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """Channel and kind of all messages there are."""
        return [(channel, kind) for channel, kinds in self._catalogues[languages.DEFAULT].items() for kind in kinds if kind != "common"]

    @property
    def languages(self) -> list[str]:
        """The languages that users may be written to in."""
        return self._languages

    def render(self, waiting: Any, secrets: Mapping[str, str]) -> Message:
        """Return what a row of the outbox says, with the link and the code that it carries. Raises `CannotRender`."""
        variables = waiting.variables
        language = languages.choose(self._languages, variables.get("locale"), variables.get("languages"))
        token = secrets.get("token")
        link = self._link(waiting.kind, token, variables.get("redirect_to")) if token else None
        context = self._context(waiting, language, link, secrets.get("code"))
        try:
            text = self._text(waiting.channel, waiting.kind, language, context)
            html = self._html(waiting.kind, language, context) if waiting.channel == "email" else None
        except (TemplateError, KeyError, TypeError, ArithmeticError, AttributeError, ValueError) as error:
            raise CannotRender(f"{language}/{waiting.kind}: {type(error).__name__}: {error}") from error
        subject = ""
        if waiting.channel == "email":
            subject, _, text = text.partition("\n")
        return Message(waiting.id, waiting.kind, waiting.created_at, " ".join(subject.split()), text.strip("\n") + "\n", html, link, secrets.get("code"))

    def check(self) -> None:
        """Render each kind in each language, with all that may be there and with nothing. Raises `CannotRender`."""
        now = datetime.now(UTC)
        full = {"redirect_to": self._site_url, "new_email": "a@b.c", "new_phone": "+15555550100", "provider": "google", "user_agent": "Firefox/1 Linux"}
        full["webhook_url"] = "https://hooks.example.com/events"
        for language in self._languages:
            for channel, kind in self.kinds:
                for variables, expires_at in ((full, now), ({}, None)):
                    waiting = _Sample(channel, kind, variables | {"locale": language}, now, expires_at)
                    self.render(waiting, {"token": "t" * 43, "code": "123456"} if variables else {"code": "123456"})

    def _link(self, kind: str, token: str, redirect_to: object) -> str:
        query = {"token": token, "type": _LINK_TYPES.get(kind, kind)}
        if isinstance(redirect_to, str) and redirect_to:
            query["redirect_to"] = redirect_to
        return f"{self._base_url}/verify?{urlencode(query)}"

    def _context(self, waiting: Any, language: str, link: str | None, code: str | None) -> dict[str, Any]:
        variables = waiting.variables
        browser, system = reduce.browser_and_system(variables.get("user_agent"))
        if browser and system:
            phrase = self._string(language, "email", "common", "browser", "txt")
            browser = phrase.render(browser_name=browser, system_name=system)
        expires_at = waiting.expires_at.astimezone(UTC) if waiting.expires_at else None
        return {
            "channel": waiting.channel,
            "kind": waiting.kind,
            "language": language,
            "site": urlsplit(self._site_url).netloc,
            "site_host": urlsplit(self._site_url).hostname,
            "site_url": self._site_url,
            "recipient": waiting.recipient,
            "link": link,
            "code": code,
            "valid_until": expires_at.strftime(_DATE_AND_TIME) if expires_at else None,
            "valid_until_time": expires_at.strftime(_TIME) if expires_at else None,
            "moment": reduce.moment(variables.get("requested_at"), waiting.created_at).strftime(_DATE_AND_TIME),
            "browser": browser,
            "new_email": reduce.masked_email(variables.get("new_email")),
            "new_phone": reduce.masked_phone(variables.get("new_phone")),
            "provider": reduce.provider(variables.get("provider")),
            "webhook_host": reduce.host(variables.get("webhook_url")),
        }

    def _text(self, channel: str, kind: str, language: str, context: dict[str, Any]) -> str:
        layout = "layout_sms.txt" if channel == "sms" else "layout.txt"
        own = f"{language}/sms_{kind}.txt" if channel == "sms" and kind != "sms" else f"{language}/{kind}.txt"
        return self._environments["txt"].select_template([own, layout]).render(context | self._speech(channel, kind, language, context, "txt"))

    def _html(self, kind: str, language: str, context: dict[str, Any]) -> str | None:
        own = f"{language}/{kind}.html"
        # Our HTML would contradict a text of the deployment's own.
        if self._folder and (self._folder / f"{language}/{kind}.txt").exists() and not (self._folder / own).exists():
            return None
        return self._environments["html"].select_template([own, "layout.html"]).render(context | self._speech("email", kind, language, context, "html"))

    def _speech(self, channel: str, kind: str, language: str, context: dict[str, Any], suffix: str) -> dict[str, Any]:
        """Return what a layout calls: `say(name)` is a string of this kind, `has(name)` whether there is one."""
        strings = self._catalogues[language][channel]

        def has(name: str) -> bool:
            return name in strings.get(kind, {}) or name in strings.get("common", {})

        def say(name: str) -> Any:
            where = kind if name in strings.get(kind, {}) else "common"
            module = self._string(language, channel, where, name, suffix)
            return self._environments[suffix].filters["safe"](module.render(context)) if suffix == "html" else module.render(context)

        return {"say": say, "has": has}

    def _string(self, language: str, channel: str, kind: str, name: str, suffix: str) -> Template:
        key = (language, channel, kind, name, suffix)
        if key not in self._strings:
            self._strings[key] = self._environments[suffix].from_string(self._catalogues[language][channel][kind][name])
        return self._strings[key]


def load_templates(settings: Settings) -> Templates:
    """Return the templates of this deployment. Raises `SettingsError` when one of its own cannot be rendered."""
    templates = Templates(settings.base_url, settings.site_url, settings.mail_templates)
    if settings.mail_templates:
        try:
            templates.check()
        except (ValueError, CannotRender) as error:
            raise SettingsError(f"AUTH_MAIL_TEMPLATES: Must hold templates that can be rendered ({error}).") from None
    return templates


@dataclass(frozen=True)
class _Sample:
    channel: str
    kind: str
    variables: dict[str, str]
    created_at: datetime
    expires_at: datetime | None
    id: str = "00000000-0000-0000-0000-000000000000"
    recipient: str = "somebody@example.com"


def _environment(loader: ChoiceLoader, is_html: bool) -> Environment:
    # Plain text needs no escaping: nothing in it is markup.
    return ImmutableSandboxedEnvironment(loader=loader, undefined=StrictUndefined, autoescape=is_html, trim_blocks=True, lstrip_blocks=True)
