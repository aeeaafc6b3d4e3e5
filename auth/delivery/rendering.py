"""The text of messages: a layout with the strings of a kind, or a template of `AUTH_MAIL_TEMPLATES`."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

from jinja2 import ChoiceLoader, DictLoader, FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from auth.core import constants
from auth.core.sender import RenderedMessage
from auth.core.settings import Settings, SettingsError, brand
from auth.core.settings.logo_size import is_wide
from auth.core.text import catalogues, languages, masking, names
from auth.core.text.user_agents import browser_and_system
from sql import queries

# A row of the outbox, or a sample of one.
Row: TypeAlias = "queries.ClaimMessage | queries.ClaimEvent | SimpleNamespace"

TEMPLATES = Path(__file__).parent / "templates"

# The notices whose link undoes the change, with which owners take back their account.
_WITH_UNDO = (
    "address_added", "email_changed", "phone_changed", "identity_linked", "identity_unlinked",
    "passkey_added", "passkey_removed", "factor_added", "factor_removed", "application_added",
    "api_key_added", "api_key_removed",
    "password_changed", "recovery_codes_created", "recovery_code_used", "new_sign_in",
)  # fmt: skip

# Our pages for the reader of a message without a link. {slug} is a variable of the message.
_ORGANIZATION = "account/organizations/{slug}"
_PAGES = {
    "signup_attempt": "sign-in",
    "organization_invitation": "organizations/{slug}/join",
    "organization_owner_added": _ORGANIZATION,
    "organization_requirement": _ORGANIZATION,
    "organization_session_age": _ORGANIZATION,
    "organization_sign_in": f"{_ORGANIZATION}/sign-in",
    "organization_domain_missing": f"{_ORGANIZATION}/sign-in",
    **dict.fromkeys(_WITH_UNDO, "forgot-password"),
}
_CONSOLE_PAGES = {"webhook_disabled": "console/webhooks"}

_WITH_A_CODE = {"signup", "magiclink", "recovery", "email_change", "reauthentication", "sms", "phone_change"}
_VALID_FOR_A_WEEK = {"invite", *_WITH_UNDO}
_WITH_A_LINK = {
    "email": {"signup", "magiclink", "recovery", "email_change", *_VALID_FOR_A_WEEK},
    "sms": {*_WITH_UNDO},
}

# Variables of all kinds of messages.
_SAMPLE = {
    "new_email": "a@b.c",
    "new_phone": "+15555550100",
    "provider": "google",
    "application": "Grafana",
    "inviter": "Ada Lovelace",
    "organization": "Acme",
    "slug": "acme",
    "requires": "aal2",
    "change": "required",
    "max_age": 43_200,
    "domain": "acme.example",
    "remaining": 9,
    "replaced": True,
    "how": "by_browser",
    "lacks_step": True,
    "added": ["passkey", "password"],
    "sign_in": "joins",
    "by_mailbox_alone": True,
    "may_disconnect": True,
    "may_rejoin": True,
    "user_agent": "Firefox/1 Linux",
    "webhook_url": "https://hooks.example.com/events",
}


# Variables whose displayed form differs from the stored one.
_FORMATS: dict[str, Callable[[Any], object]] = {
    "new_email": masking.masked_email,
    "new_phone": masking.masked_phone,
    "application": names.application,
    "organization": names.organization,
}
_UNFORMATTED = (
    "inviter", "requires", "change", "domain", "remaining", "lacks_step", "replaced", "times",
    "added", "sign_in", "by_mailbox_alone", "may_disconnect", "may_rejoin", "how",
)  # fmt: skip
_SLUG = re.compile("[a-z0-9-]{1,63}")
_OPTIONS: dict[str, Any] = {
    "undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True, "cache_size": -1,
}  # fmt: skip
_SECRETS = {"token": "t" * 43, "code": "123456"}


class CannotRender(Exception):
    """A template is malformed, or a variable is missing."""


class Templates:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        site = urlsplit(settings.site_url)
        # The variables that are the same in all messages.
        self._site = {
            "brand": settings.brand_name,
            "company": settings.brand_company or settings.brand_name,
            "support_url": settings.support_url,
            "palette": brand.palette(settings.brand_color),
            "logo": brand.logo_in_mails(settings.brand_logo, settings.base_url),
            "logo_is_wide": settings.brand_logo and is_wide(settings.brand_logo),
            "site": site.netloc,
            "site_host": site.hostname,
            "site_url": settings.site_url,
        }
        paths = (_PAGES if settings.pages else {}) | (_CONSOLE_PAGES if settings.console else {})
        self._pages = {kind: f"{settings.base_url}/{path}" for kind, path in paths.items()}
        folder = settings.mail_templates
        by_language = catalogues.with_own(folder) if folder else catalogues.built_in("messages")
        self.languages = sorted(by_language)
        self._strings = {
            f"{language}/{name}": text
            for language, catalogue in by_language.items()
            for name, text in catalogue.items()
        }
        files = [FileSystemLoader(directory) for directory in (folder, TEMPLATES) if directory]
        loader = ChoiceLoader([DictLoader(self._strings), *files])
        # Templates are trusted. Values from users are variables and escaped in HTML.
        self._environments = {
            suffix: ImmutableSandboxedEnvironment(loader=loader, autoescape=suffix == "html", **_OPTIONS)
            for suffix in ("txt", "html")
        }

    @property
    def kinds(self) -> set[tuple[str, str]]:
        parts = {tuple(name.partition("/")[2].split(".")) for name in self._strings}
        return {(channel, kind) for channel, kind, _ in parts if kind != "common"}

    def render(self, row: Row, secrets: Mapping[str, str]) -> RenderedMessage:
        """Return the message of a row of the outbox, with its link and code. Raises `CannotRender`."""
        variables, code = row.variables, secrets.get("code")
        language = languages.choose(self.languages, variables.get("locale"), variables.get("languages"))
        token, link = secrets.get("token"), None
        if token:
            query = {"token": token, "type": "undo" if row.kind in _WITH_UNDO else row.kind}
            if target := variables.get("redirect_to"):
                query["redirect_to"] = target
            link = f"{self._settings.base_url}/verify?{urlencode(query)}"
        # Supabase calls the token of a link `token_hash`.
        context = self._context(row, language) | {"link": link, "code": code, "token_hash": token}
        context["page"] = self._page_of(row) if not link else None
        common = {name: getattr(row, name) for name in ("channel", "kind", "recipient", "created_at")}
        context["others"] = [
            self._context(SimpleNamespace(**common, expires_at=None, variables=other), language)
            for other in variables.get("others", ())
        ]
        # The built-in HTML would contradict the operator's text.
        path = self._settings.mail_templates and self._settings.mail_templates / language / row.kind
        is_text_only = path and path.with_suffix(".txt").exists() and not path.with_suffix(".html").exists()
        has_html = row.channel == "email" and not is_text_only
        try:
            text = self._text(row, language, context, "txt")
            html = self._text(row, language, context, "html") if has_html else None
        except (TemplateError, KeyError, TypeError, ArithmeticError, AttributeError, ValueError) as error:
            raise CannotRender(f"{language}/{row.kind}: {type(error).__name__}: {error}") from error
        subject = ""
        if row.channel == "email":
            subject, _, text = text.partition("\n")
        subject, text = " ".join(subject.split()), text.strip("\n") + "\n"
        refused_target = row.variables.get("refused_target")
        return RenderedMessage(
            row.id, row.kind, row.created_at, subject, text, html, link, code, refused_target
        )

    def check(self) -> None:
        """Render each kind in each language, with all variables and with none. Raises `CannotRender`."""
        full = _SAMPLE | {"redirect_to": self._settings.site_url, "code_lifetime": 600}
        full |= {"times": 2, "others": [_SAMPLE]}
        for language in self.languages:
            for channel, kind in sorted(self.kinds):
                row = _sample(channel, kind, "user@example.com", full | {"locale": language})
                self.render(row, _SECRETS)
                row.variables, row.expires_at = {"locale": language}, None
                self.render(row, {"code": _SECRETS["code"]})

    def samples(self, recipient: str, language: str) -> Iterator[RenderedMessage]:
        """Yield an email of each kind, with links and codes that do not work."""
        for channel, kind in sorted(self.kinds):
            if channel == "email":
                yield self.sample(channel, kind, recipient, language)

    def sample(self, channel: str, kind: str, recipient: str, language: str) -> RenderedMessage:
        """Return a message as the API sends it, with a link and a code that do not work.

        Raises `CannotRender`.
        """
        row = _sample(channel, kind, recipient, _SAMPLE | {"locale": language})
        kinds_with = {"token": _WITH_A_LINK[channel], "code": _WITH_A_CODE}
        secrets = {name: _SECRETS[name] for name, kinds in kinds_with.items() if kind in kinds}
        return self.render(row, secrets)

    def _page_of(self, row: Row) -> str | None:
        page, slug = self._pages.get(row.kind), row.variables.get("slug")
        if page is None or "{slug}" not in page:
            return page
        is_slug = isinstance(slug, str) and _SLUG.fullmatch(slug)
        return page.replace("{slug}", slug) if is_slug else None

    def _context(self, row: Row, language: str) -> dict[str, Any]:
        variables = row.variables
        browser, system = browser_and_system(variables.get("user_agent"))
        if browser and system:
            phrase = self._environments["txt"].get_template(f"{language}/email.common.browser")
            browser = phrase.render(browser_name=browser, system_name=system)
        expires_at = row.expires_at.astimezone(UTC) if row.expires_at else None
        seconds = variables.get("code_lifetime")
        code_lifetime = timedelta(seconds=seconds) if seconds else None
        max_age = timedelta(seconds=seconds) if (seconds := variables.get("max_age")) else None
        # A further change that a notice lists has `at` alone.
        requested_at = variables.get("at") or variables.get("requested_at")
        moment = datetime.fromisoformat(requested_at) if requested_at else row.created_at
        return self._site | {
            "channel": row.channel,
            "kind": row.kind,
            "language": language,
            "recipient": row.recipient,
            "valid_until": languages.date_and_time(expires_at, language) if expires_at else None,
            "valid_for": languages.duration(expires_at - row.created_at, language) if expires_at else None,
            "code_valid_until": code_lifetime
            and languages.date_and_time(row.created_at + code_lifetime, language),
            "code_valid_for": code_lifetime and languages.duration(code_lifetime, language),
            "valid_until_time": languages.time_of_day(expires_at, language) if expires_at else None,
            "moment": languages.date_and_time(moment, language),
            "browser": browser,
            "max_age": max_age and languages.duration(max_age, language),
            **{name: shown_form(variables.get(name)) for name, shown_form in _FORMATS.items()},
            "provider": names.organization(variables.get("provider_name"))
            or names.provider(variables.get("provider"), self._settings.providers),
            **{name: variables.get(name) for name in _UNFORMATTED},
            "undoes": row.kind in _WITH_UNDO,
            "webhook_host": urlsplit(variables.get("webhook_url")).hostname,
        }

    def _text(self, row: Row, language: str, context: Mapping[str, object], suffix: str) -> str:
        environment = self._environments[suffix]
        prefixes = tuple(f"{language}/{row.channel}.{kind}." for kind in (row.kind, "common"))
        string_names = {name.rpartition(".")[2] for name in self._strings if name.startswith(prefixes)}

        def say(name: str, **variables: object) -> str:
            candidates = [f"{prefix}{name}" for prefix in prefixes]
            text = environment.select_template(candidates).render(context, **variables, say=say)
            return Markup(text) if suffix == "html" else text  # noqa: S704 (escaped by rendering)

        if row.channel == "sms":
            operators_name, layout = "sms" if row.kind == "sms" else f"sms_{row.kind}", "layout_sms.txt"
        else:
            operators_name, layout = row.kind, f"layout.{suffix}"
        template = environment.select_template([f"{language}/{operators_name}.{suffix}", layout])
        text = template.render(context, say=say, has=string_names.__contains__)
        return languages.without_chinese_spaces(text, language)


def _sample(channel: str, kind: str, recipient: str, variables: Mapping[str, object]) -> SimpleNamespace:
    now = datetime.now(UTC)
    seconds = constants.UNDO_LIFETIME if kind in _VALID_FOR_A_WEEK else constants.LINK_LIFETIME
    if kind not in _WITH_A_LINK[channel]:
        seconds = constants.PAGE_CODE_LIFETIME if channel == "sms" else constants.MAIL_CODE_LIFETIME
    return SimpleNamespace(
        id=str(uuid4()),
        channel=channel,
        kind=kind,
        recipient=recipient,
        variables=variables,
        created_at=now,
        expires_at=now + timedelta(seconds=seconds),
    )


def load_templates(settings: Settings) -> Templates:
    """Return the templates. Raises `SettingsError` if one in `AUTH_MAIL_TEMPLATES` cannot be rendered."""
    try:
        if settings.mail_templates and not settings.mail_templates.is_dir():
            raise SettingsError("AUTH_MAIL_TEMPLATES: Must be a directory.")
        templates = Templates(settings)
        if settings.mail_templates:
            templates.check()
    except (ValueError, OSError, CannotRender) as error:
        raise SettingsError(
            f"AUTH_MAIL_TEMPLATES: Has a template that cannot be rendered. Fix it: {error}."
        ) from None
    return templates
