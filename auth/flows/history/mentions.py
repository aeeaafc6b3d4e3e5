"""The customers' providers and the organizations that entries of the audit log name, for operators."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from auth.core.text.labels import quoted
from auth.core.text.names import PREFIX
from auth.web.fields import is_uuid
from sql import Runner, queries

_PROVIDER, _ORGANIZATION = "provider", "organization"


@dataclass(frozen=True)
class Mention:
    """`text` is the name in sentences; `path` that of the page in the console, if there is one."""

    text: str
    title: str
    path: str | None = None


@dataclass(frozen=True)
class Mentions:
    """What some entries mention: providers by the id in their method `sso:<id>`, organizations by id."""

    providers: Mapping[str, Mention] = field(default_factory=dict)
    organizations: Mapping[str, Mention] = field(default_factory=dict)

    def provider(self, method: object) -> Mention | None:
        """Return the customer's provider that is a method of signing in."""
        id = _id_of(method)
        return self.providers.get(id) if id else None

    def of(self, details: Mapping[str, Any]) -> list[Mention]:
        """Return what the details of an entry mention."""
        provider = self.providers.get(provider_id_of(details) or "")
        organization = self.organizations.get(organization_id_of(details) or "")
        return [mention for mention in (provider, organization) if mention]


NO_MENTIONS = Mentions()


def mentions_of(
    on: Runner, entries: Sequence[Mapping[str, Any]] = (), methods: Iterable[object] = ()
) -> Mentions:
    """Return what the details of entries, and methods of signing in, mention.

    Runs one statement, or none if there is nothing.
    """
    ids = {*map(provider_id_of, entries), *map(_id_of, methods)}
    slugs = {id: details[_ORGANIZATION]["slug"] for details in entries if (id := organization_id_of(details))}
    return _mentions(on, {id for id in ids if id}, slugs)


def provider_id_of(details: Mapping[str, Any]) -> str | None:
    """Return the id of the customer's provider that an entry is about."""
    id = details.get("provider_id")
    return id if isinstance(id, str) and is_uuid(id) else _id_of(details.get(_PROVIDER))


def organization_id_of(details: Mapping[str, Any]) -> str | None:
    organization = details.get(_ORGANIZATION)
    id = organization.get("id") if isinstance(organization, dict) else None
    return id if isinstance(id, str) and is_uuid(id) else None


def _id_of(method: object) -> str | None:
    id = method.removeprefix(PREFIX) if isinstance(method, str) and method.startswith(PREFIX) else ""
    return id if is_uuid(id) else None


def _mentions(on: Runner, providers: set[str], slugs: Mapping[str, str]) -> Mentions:
    if not providers and not slugs:
        return NO_MENTIONS
    mentions = queries.list_mentions(on, providers=sorted(providers), organizations=sorted(slugs))
    rows = {(row.kind, row.id): row for row in mentions}
    return Mentions(
        {id: _provider(id, rows.get((_PROVIDER, id))) for id in providers},
        {id: _organization(id, slug, rows.get((_ORGANIZATION, id))) for id, slug in slugs.items()},
    )


def called(name: str, organization: str | None) -> str:
    """Return the names of a provider and its organization, which owners chose: `“Acme Login” (Acme)`."""
    return f"{quoted(name)} ({quoted(organization)})" if organization else quoted(name)


def _provider(id: str, row: "queries.ListMentions | None") -> Mention:
    title = f"The provider {id}"
    if row and row.is_present:
        return Mention(called(row.name or "", row.organization), title, f"console/providers/{id}")
    name = f"{quoted(row.name)}, deleted" if row and row.name else "a deleted provider"
    organization = f" ({quoted(row.organization)})" if row and row.organization else ""
    return Mention(f"{name}{organization}", title)


def _organization(id: str, slug: str, row: "queries.ListMentions | None") -> Mention:
    """The text is the short name of the log, which is nobody else's."""
    if row and row.is_present:
        return Mention(slug, f"{row.name}, {id}", f"console/organizations/{id}")
    return Mention(slug, f"An organization that has ended, {id}", f"console/audit?organization={id}")
