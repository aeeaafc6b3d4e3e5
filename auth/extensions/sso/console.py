"""Customers' providers in the console."""

from functools import partial
from types import SimpleNamespace
from typing import Any

from flask import Blueprint, Response

from auth.core.providers.customers import host_of
from auth.core.text.labels import counted
from auth.extensions.sso.routes import NewProvider
from auth.flows.admin import provider_summary, providers
from auth.flows.admin.provider_actions import ACTIONS
from auth.flows.admin.providers import IDENTIFIER
from auth.flows.admin.schemas import PROVIDER_CHANGE
from auth.html.admin import entries
from auth.html.admin.access import administrator
from auth.html.admin.actions import Action, Subject, notice_of, serve
from auth.html.admin.console_page import MOST, console_page
from auth.html.page import redirect_to_own
from auth.web import fields
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import canonical_id, check, read_query
from auth.web.schemas import Input
from sql import queries

blueprint = Blueprint("providers", __name__)

_PATH = "console/providers"
_ChangeForm = Input.of(
    **{name: fields.TypedText(load_default="") for name in ("name", "issuer", "client_id", "client_secret")},
    **{name: fields.TypedItems(load_default=list) for name in ("domains", "scopes")},
)
_NewForm = _ChangeForm.of(identifier=fields.TypedText(load_default=""))
_AdoptForm = Input.of(email=fields.TypedEmail(required=True))
_PageQuery = Input.of(after=fields.Timestamp(), after_id=fields.Uuid())


@blueprint.get("/console/providers")
@administrator
def show_providers() -> Response:
    """Show the providers, oldest first."""
    place = providers.FIRST | read_query(_PageQuery)
    rows = queries.list_identity_providers(latchkey.db, **place, most=MOST + 1)
    last = rows[MOST - 1] if len(rows) > MOST else None
    return console_page("providers.html", rows=rows[:MOST], last=last, notice=notice_of(_MAKING | _ACTS))


@blueprint.get("/console/providers/<provider_id>")
@administrator
def show_provider(provider_id: str) -> Response:
    subject = _found(provider_id)
    provider = subject.row
    # An operator also disables one that its owners have turned off, so that they cannot turn it on again.
    can_be_disabled = provider.enabled or (provider.organization is not None and not provider.is_blocked)
    states = {"disable": can_be_disabled, "enable": not provider.enabled}
    return console_page(
        "provider.html",
        provider=provider,
        entries=[
            (provider_summary.title_of(entry), entries.actor_of(entry)) for entry in provider.summary.entries
        ],
        acts=_ACTS,
        possible=["change", "adopt", *(act for act, can in states.items() if can), "delete"],
        notice=notice_of(_MAKING | _ACTS),
    )


def _found(provider_id: str) -> Subject:
    asked, id = current_asked(), canonical_id(provider_id, "custom_provider_not_found")
    summary = provider_summary.summary_of(asked, providers.found_provider(asked, id))
    provider = SimpleNamespace(**providers.described(asked, summary.row))
    provider.summary, provider.is_blocked = summary, summary.row.is_blocked
    provider.organization, provider.host = summary.organization, host_of(summary.row.issuer)
    return Subject(summary.row.name, f"{_PATH}/{id}", provider)


def _changed(_subject: Subject, form: dict[str, Any]) -> dict[str, Any]:
    if not form["client_secret"]:
        del form["client_secret"]
    return check(PROVIDER_CHANGE, form)


_act = partial(Action, needs_factor=True)
_MAKING = {
    "new": _act(
        title="Add a provider",
        effects=lambda _subject: ["Creates 1 provider, which signs in the addresses of its domains."],
        undo="You can disable or delete it at any time.",
        do=lambda asked, _subject, body: redirect_to_own(
            f"{_PATH}/{providers.create(asked, body)['id']}", "new"
        ),
        done="Provider added. The customer registers its redirect URI.",
        form=_NewForm,
        check=lambda _subject, form: check(NewProvider, form | {"provider_type": "oidc"}),
        template="act_provider.html",
    ),
}
_ACTS = {
    "change": _act(
        title="Change provider",
        effects=lambda subject: [
            f"Changes 1 provider with {counted(subject.row.summary.opened.users, 'user')}.",
        ],
        undo="You can change it back. The issuer can’t change while it has users.",
        do=lambda asked, subject, body: providers.change(asked, subject.row.id, body),
        done="Provider changed.",
        form=_ChangeForm,
        check=_changed,
        template="act_provider.html",
    ),
    "adopt": _act(
        title="Move a user",
        effects=lambda _subject: [
            "Lets the provider sign in 1 user who has proved an address of its domains.",
            "The user is told, and keeps the password, passkeys and API keys.",
        ],
        undo="You can remove the identity that the next sign-in adds.",
        do=lambda asked, subject, form: providers.adopt(asked, subject.row.id, form["email"]),
        done="User moved.",
        form=_AdoptForm,
        template="act_adopt.html",
    ),
    **{
        name: Action.of(
            action,
            effects=lambda subject, action=action: action.effects(subject.row.summary),
            do=lambda asked, subject, _form, action=action: action.flow(asked, subject.row.id),
            then=_PATH if name == "delete" else "",
        )
        for name, action in ACTIONS.items()
    },
}

_EMPTY = SimpleNamespace(
    id=None, identifier=IDENTIFIER, name="", issuer="", client_id="", domains=[], scopes=[]
)
serve(blueprint, "/console/providers", _MAKING, lambda: Subject("Providers", _PATH, _EMPTY))
serve(blueprint, "/console/providers/<provider_id>", _ACTS, _found)
