"""Organizations as a file of JSON lines, one an organization, with its members, domains and providers.

A file has no client secrets. An operator may add them.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from marshmallow import EXCLUDE
from marshmallow.validate import Regexp

from auth.core import json_bodies
from auth.core.addresses import InvalidAddress, canonical_domain
from auth.extensions.organizations import access, domains, lifecycle, members, sign_in
from auth.extensions.organizations.sign_in_routes import OrganizationProviderChange
from auth.flows.admin import providers
from auth.rules import organizations
from auth.web import fields
from auth.web.asked import Asked
from auth.web.errors import ApiError
from auth.web.input import check
from auth.web.schemas import Input
from sql import queries

_PAGE = 100
_NO_USER = "refused: no user has this ID and has proved this address"
_NO_USERS = "its members are not added: there are no users yet. Import them, then run this again"
_Line = Input.of(
    id=fields.Uuid(required=True),
    slug=fields.Slug(required=True),
    name=fields.OrganizationName(required=True),
    app_metadata=fields.Metadata(load_default=dict),
)
_Requires = Input.of(max_age=fields.SessionAge(load_default=None, allow_none=True))
_Member = Input.of(
    user_id=fields.Uuid(required=True),
    email=fields.Text(load_default=None),
    role=fields.MemberRole(required=True),
)
_Domain = Input.of(
    domain=fields.NonEmptyText(required=True),
    value=fields.Text(required=True, validate=Regexp(rf"{organizations.RECORD}[0-9a-f]{{32}}\Z")),
    proved_at=fields.Text(load_default=None),
)


class _Provider(OrganizationProviderChange):
    class Meta:
        unknown = EXCLUDE

    id = fields.Uuid(required=True)
    issuer = fields.NonEmptyText(required=True)
    client_secret = fields.ClientSecret(load_default="")
    is_blocked = fields.Flag(load_default=False)


class UnreadableLine(Exception):
    """A line that is not an organization, by its number."""


class Imported(NamedTuple):
    """What an import did with an organization, or with its member (`user_id`), domain or provider (an id)."""

    slug: str
    status: Literal["created", "added", "named", "connected", "exists", "refused"]
    user_id: str | None = None
    email: str | None = None
    reason: str | None = None
    domain: str | None = None
    provider: str | None = None


class _Read(NamedTuple):
    """The parts of a line."""

    organization: dict[str, Any]
    requires: dict[str, Any]
    members: list[dict[str, Any]]
    domains: list[dict[str, Any]]
    providers: list[dict[str, Any]]


def lines(asked: Asked) -> Iterator[str]:
    """Yield a line for each organization, by short name."""
    after = ""
    while rows := queries.list_exported(asked.db, after_slug=after, most=_PAGE):
        yield from (row.line for row in rows)
        after = rows[-1].slug


def take(asked: Asked, file: Path) -> Iterator[Imported]:
    """Create the organizations of a file, and add what belongs to them. Raises `UnreadableLine`."""
    has_users = queries.has_users(asked.db).any
    with file.open(encoding="utf-8-sig") as source:
        for number, line in enumerate(source, 1):
            if line.strip():
                yield from _take(asked, _read(number, line), has_users=has_users)


def _read(number: int, line: str) -> _Read:
    try:
        json_bodies.refuse_escapes(line)
        read = json.loads(line)
        required = read.get("requires", {})
        joined = [
            _checked(_Member, {key: each.get(key) for key in ("user_id", "email", "role") if each.get(key)})
            for each in read.get("members", [])
        ]
        return _Read(
            _checked(_Line, read),
            {"aal": "aal1", "own_provider": False} | required | check(_Requires, required),
            joined,
            [check(_Domain, each) for each in read.get("domains", [])],
            [_checked(_Provider, each) for each in read.get("providers", [])],
        )
    except json_bodies.InvalidJson as error:
        raise UnreadableLine(f"{number}: {str(error).removeprefix('the body ')}") from None
    except (ValueError, AttributeError, TypeError) as error:
        raise UnreadableLine(f"{number}: not an organization ({error})") from None
    except ApiError as error:
        raise UnreadableLine(f"{number}: {error.details or error.msg}") from None


def _checked(schema: type[Input], part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a line, with its ids as Postgres writes them."""
    checked = check(schema, part)
    return checked | {name: checked[name].lower() for name in ("id", "user_id") if name in checked}


def _take(asked: Asked, read: _Read, *, has_users: bool) -> Iterator[Imported]:
    organization = _create(asked, read.organization, read.requires)
    yield organization
    if organization.status == "refused":
        return
    id, slug = read.organization["id"], organization.slug
    if has_users:
        for member in read.members:
            yield _add(asked, id, slug, member)
    elif read.members:
        yield Imported(slug, "refused", reason=_NO_USERS)
    for domain in read.domains:
        yield _name(asked, id, slug, domain)
    for provider in read.providers:
        yield _connect(asked, id, slug, provider)


def _create(asked: Asked, line: Mapping[str, Any], requires: Mapping[str, Any]) -> Imported:
    id, slug = line["id"], line["slug"]
    if queries.select_organization(asked.db, id=id, slug=None):
        return Imported(slug, "exists")
    try:
        lifecycle.create(asked, {key: value for key, value in line.items() if key != "id"}, id=id)
    except ApiError as error:
        return Imported(slug, "refused", reason=f"refused: {error.msg}")
    if requires["aal"] == "aal2":
        lifecycle.change(asked, access.find(asked, id), {"requires": {"aal": "aal2"}})
    if requires["max_age"]:
        lifecycle.change(asked, access.find(asked, id), {"requires": {"max_age": requires["max_age"]}})
    if requires["own_provider"]:
        # Its providers are off, so that no session could meet the requirement.
        again = f"latchkey organizations require {slug} own-sign-in"
        return Imported(slug, "created", reason=f"created; once its provider is on, run `{again}`")
    return Imported(slug, "created")


def _add(asked: Asked, id: str, slug: str, member: Mapping[str, Any]) -> Imported:
    """Add a member if the user is that of the file, whose ids may be those of another database."""
    user_id, email = member["user_id"], member["email"]
    user = queries.select_person(asked.db, user_id=user_id, session_id=None)
    if user is None or not user.email_proved or user.email != email:
        return Imported(slug, "refused", user_id, email, _NO_USER)
    if queries.select_member_of(asked.db, organization_id=id, user_id=user_id):
        return Imported(slug, "exists", user_id, email)
    try:
        members.set_role(asked, access.find(asked, id), user_id, member["role"], {}, tells=False)
    except ApiError as error:
        return Imported(slug, "refused", user_id, email, f"refused: {error.msg}")
    return Imported(slug, "added", user_id, email)


def _name(asked: Asked, id: str, slug: str, line: Mapping[str, Any]) -> Imported:
    """Name a domain with the record that it had, and look that up if it was proved."""
    domain, token = _stored(line["domain"]), line["value"].removeprefix(organizations.RECORD)
    present = queries.select_domain(asked.db, organization_id=id, domain=domain)
    if present and (present.proved_at or not line["proved_at"]):
        return Imported(slug, "exists", domain=domain)
    try:
        domains.name_domain(asked, access.find(asked, id), domain, token=token)
    except ApiError as error:
        return Imported(slug, "refused", domain=domain, reason=f"refused: {error.details or error.msg}")
    try:
        if line["proved_at"]:
            domains.prove(asked, access.find(asked, id), domain)
    except ApiError as error:
        again = "once that has changed, import again, or let an owner press Check"
        return Imported(slug, "named", domain=domain, reason=f"named, not proved: {error.msg}; {again}")
    return Imported(slug, "named", domain=domain)


def _connect(asked: Asked, id: str, slug: str, line: Mapping[str, Any]) -> Imported:
    """Connect a provider, off, for those of its domains that are proved here."""
    provider, secret = line["id"], line["client_secret"]
    present = providers.select(asked.db, provider)
    if present and present.organization_id == id:
        return Imported(slug, "exists", provider=provider)
    proved = access.proved_domains(asked, asked.db, id)
    wanted = [_stored(each) for each in line["domains"]]
    try:
        organization, here = access.find(asked, id), [each for each in wanted if each in proved]
        sign_in.restore(asked, organization, provider, {**line, "domains": here})
    except ApiError as error:
        return Imported(slug, "refused", provider=provider, reason=f"refused: {error.details or error.msg}")
    reason = "connected"
    if left_out := ", ".join(each for each in wanted if each not in proved):
        reason += f" without {left_out}, not proved; once it is, add it by `latchkey providers change`"
    if line["is_blocked"]:
        return Imported(slug, "connected", provider=provider, reason=f"{reason}; an operator turned it off")
    needed = "" if secret else "has set its client secret and "
    return Imported(
        slug, "connected", provider=provider, reason=f"{reason}; off until an owner {needed}has tested it"
    )


def _stored(domain: str) -> str:
    """Return a domain as it is stored, and an invalid one as it is, for its refusal."""
    with suppress(InvalidAddress):
        return canonical_domain(domain.strip())
    return domain
