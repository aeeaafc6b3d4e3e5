"""Organisations as a file of JSON lines, one an organisation, with the ids and addresses of its members."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from auth.extensions.organizations import acts, members
from auth.web import fields
from auth.web.asked import Asked
from auth.web.errors import ApiError
from auth.web.input import check
from auth.web.schemas import Input
from sql import queries

_PAGE = 100
_NO_USER = "refused: no user has this ID and has proved this address"
_Line = Input.of(
    id=fields.Uuid(required=True),
    slug=fields.Slug(required=True),
    name=fields.OrganizationName(required=True),
    app_metadata=fields.Metadata(load_default=dict),
)
_Member = Input.of(
    user_id=fields.Uuid(required=True),
    email=fields.Text(load_default=None),
    role=fields.MemberRole(required=True),
)


class UnreadableLine(Exception):
    """A line that is no organisation, by its number."""


class Imported(NamedTuple):
    """What an import did with an organisation, or with a member (`user_id`)."""

    slug: str
    status: Literal["created", "added", "exists", "refused"]
    user_id: str | None = None
    email: str | None = None
    reason: str | None = None


def lines(asked: Asked) -> Iterator[str]:
    """Yield a line for each organisation, by short name."""
    after = ""
    while rows := queries.list_exported(asked.db, after_slug=after, most=_PAGE):
        yield from (row.line for row in rows)
        after = rows[-1].slug


def take(asked: Asked, file: Path) -> Iterator[Imported]:
    """Create the organisations of a file, and add their members. Raises `UnreadableLine`."""
    with file.open(encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            if line.strip():
                yield from _take(asked, *_read(number, line))


def _read(number: int, line: str) -> tuple[dict[str, Any], str, list[dict[str, Any]]]:
    """Return an organisation, its level, and its members."""
    try:
        read = json.loads(line)
        members = [
            check(_Member, {key: each.get(key) for key in ("user_id", "email", "role") if each.get(key)})
            for each in read.get("members", [])
        ]
        level = read.get("requires", {}).get("aal", "aal1")
        known = {key: read[key] for key in ("id", "slug", "name", "app_metadata") if key in read}
        return check(_Line, known), level, members
    except (ValueError, AttributeError, TypeError) as error:
        raise UnreadableLine(f"{number}: not an organization ({error})") from None
    except ApiError as error:
        raise UnreadableLine(f"{number}: {error.details or error.msg}") from None


def _take(
    asked: Asked, line: dict[str, Any], level: str, members: list[dict[str, Any]]
) -> Iterator[Imported]:
    id, slug = line.pop("id"), line["slug"]
    if queries.select_organization(asked.db, id=id, slug=None):
        yield Imported(slug, "exists")
    else:
        try:
            acts.create(asked, line, id=id)
        except ApiError as error:
            yield Imported(slug, "refused", reason=f"refused: {error.msg}")
            return
        if level == "aal2":
            acts.change(asked, id, {"requires": {"aal": level}})
        yield Imported(slug, "created")
    for member in members:
        yield _add(asked, id, slug, member)


def _add(asked: Asked, id: str, slug: str, member: Mapping[str, Any]) -> Imported:
    """Add a member if the user here is that of the file: ids may be another database's."""
    user_id, email = member["user_id"], member["email"]
    user = queries.select_person(asked.db, user_id=user_id, session_id=None)
    if user is None or not user.email_proved or user.email != email:
        return Imported(slug, "refused", user_id, email, _NO_USER)
    if queries.select_member_of(asked.db, organization_id=id, user_id=user_id):
        return Imported(slug, "exists", user_id, email)
    try:
        members.set_role(asked, id, user_id, member["role"], {}, tells=False)
    except ApiError as error:
        return Imported(slug, "refused", user_id, email, f"refused: {error.msg}")
    return Imported(slug, "added", user_id, email)
