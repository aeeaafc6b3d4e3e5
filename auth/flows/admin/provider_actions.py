"""The actions of administrators on a customer's provider, declared once for the console and the commands."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from auth.core.text.labels import quoted
from auth.flows.admin import providers
from auth.flows.admin.actions import AdminAction
from auth.flows.admin.provider_reach import ProviderStory
from auth.web.asked import Asked


@dataclass(frozen=True, kw_only=True)
class ProviderAction(AdminAction):
    """An action on a provider. `effects` returns sentences about the effects, in numbers."""

    flow: Callable[[Asked, str], object]
    effects: Callable[[ProviderStory], Iterator[str]]
    question: str


def _disabling(story: ProviderStory) -> Iterator[str]:
    yield f"Disables 1 provider, {story.name}. Nobody can sign in with it any more."
    yield from _ends(story)
    yield "Members stay members, and passwords, passkeys and emailed links still sign in."
    yield from _locks_out(story)
    if story.organization:
        yield "Its owners are told, and can’t turn it on again."


def _enabling(story: ProviderStory) -> Iterator[str]:
    yield f"Enables 1 provider, {story.name}: users can sign in with it again."
    yield "What it had opened before stays ended."


def _deleting(story: ProviderStory) -> Iterator[str]:
    users = story.opened.said("users", "user")
    yield f"Deletes 1 provider, {story.name}, and the identities of {users} there."
    yield from _ends(story)
    if story.opened.members:
        yield f"Removes {story.opened.said('members', 'member')} whom it has added to the organization."
    yield "They can no longer sign in with it. Their accounts stay."
    yield from _locks_out(story)


def _ends(story: ProviderStory) -> Iterator[str]:
    opened = story.opened
    if opened.is_any:
        yield (
            f"Ends {opened.in_words}. From the moment of the act none of them gives a token; they are ended"
            " in batches."
        )
    else:
        yield "It has opened no session and no API key that is still good."


def _locks_out(story: ProviderStory) -> Iterator[str]:
    needs = story.requirement
    if story.organization and needs and needs.needs_own_provider:
        until = "they sign in with another of its providers" if needs.has_another else "it is enabled again"
        name = quoted(story.organization.name)
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
