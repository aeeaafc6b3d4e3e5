"""The actions of administrators on a customer's provider, declared once for the console and the commands."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from auth.core.text.labels import quoted
from auth.flows.admin import providers
from auth.flows.admin.actions import AdminAction
from auth.flows.admin.provider_summary import ProviderSummary
from auth.web.asked import Asked


@dataclass(frozen=True, kw_only=True)
class ProviderAction(AdminAction):
    """An action on a provider. `effects` returns sentences about the effects, in numbers."""

    flow: Callable[[Asked, str], object]
    effects: Callable[[ProviderSummary], Iterator[str]]
    question: str


def _disabling(summary: ProviderSummary) -> Iterator[str]:
    yield f"Disables 1 provider, {summary.name}. Nobody can sign in with it any more."
    yield from _ends(summary)
    yield "Members stay members, and passwords, passkeys and emailed links still sign in."
    yield from _locks_out(summary)
    if summary.organization:
        yield "Its owners are told, and can’t turn it on again."


def _enabling(summary: ProviderSummary) -> Iterator[str]:
    yield f"Enables 1 provider, {summary.name}: users can sign in with it again."
    yield "What it had opened before stays ended."


def _deleting(summary: ProviderSummary) -> Iterator[str]:
    users = summary.opened.counted(summary.opened.users, "user")
    yield f"Deletes 1 provider, {summary.name}, and the identities of {users} there."
    yield from _ends(summary)
    if summary.opened.members:
        members = summary.opened.counted(summary.opened.members, "member")
        yield f"Removes {members} whom it has added to the organization."
    yield "They can no longer sign in with it. Their accounts stay."
    yield from _locks_out(summary)


def _ends(summary: ProviderSummary) -> Iterator[str]:
    opened = summary.opened
    if opened.is_any:
        yield (
            f"Ends {opened.in_words}. None of them gives a token from that moment on; they are ended in"
            " batches."
        )
    else:
        yield "It has opened no session and no API key that is still good."


def _locks_out(summary: ProviderSummary) -> Iterator[str]:
    requirement = summary.requirement
    if summary.organization and requirement and requirement.needs_own_provider:
        until = (
            "they sign in with another of its providers" if requirement.has_another else "it is enabled again"
        )
        name = quoted(summary.organization.name)
        yield (
            f"{name} requires its own sign-in: its members lose access until {until}, or the requirement is"
            " lifted."
        )


def _turn(*, on: bool) -> Callable[[Asked, str], object]:
    return lambda asked, id: providers.change(asked, id, {"enabled": on})


ACTIONS = {
    "disable": ProviderAction(
        title="Disable",
        question="Disable it?",
        effects=_disabling,
        undo="You can enable it again. What has ended stays ended.",
        flow=_turn(on=False),
        done="Provider disabled.",
        needs_factor=True,
        is_destructive=True,
    ),
    "enable": ProviderAction(
        title="Enable",
        question="Enable it?",
        effects=_enabling,
        undo="You can disable it again.",
        flow=_turn(on=True),
        done="Provider enabled.",
        needs_factor=True,
    ),
    "delete": ProviderAction(
        title="Delete",
        question="Delete it?",
        effects=_deleting,
        undo="This can’t be undone. A new provider doesn’t get these users.",
        flow=providers.delete,
        done="Provider deleted.",
        needs_factor=True,
        is_destructive=True,
    ),
}
