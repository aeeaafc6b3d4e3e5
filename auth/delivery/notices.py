"""Notices to the owners of organizations, which flows write for a request, and the janitor without one."""

from collections.abc import Collection, Iterator
from typing import Protocol

from sql import queries
from sql.acts import Act


class Organization(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def slug(self) -> str: ...


def variables_of(organization: Organization, **others: object) -> dict[str, object]:
    """Return the variables of a notice about an organization."""
    return {"organization": organization.name, "slug": organization.slug, **others}


def owners_of(
    act: Act, organization_id: str, excluded: Collection[str | None] = ()
) -> "Iterator[queries.SelectPerson]":
    """Yield the facts about the owners of an organization."""
    for row in queries.list_owners(act, organization_id=organization_id):
        # An act that does not lock the organization may find an owner who has been deleted.
        if row.id not in excluded and (
            owner := act.read(queries.select_person, user_id=row.id, session_id=None)
        ):
            yield owner
