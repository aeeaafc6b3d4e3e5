"""Acts on organisations, their members and invitations: for the API, pages, console and commands.

A member acts by the role (rule 48), the service role key and administrators of the service without one.
"""

import json
import re
import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from psycopg2.errors import UniqueViolation

from auth.core import promises
from auth.core.json_bodies import JsonObject
from auth.core.text import names
from auth.flows import ends
from auth.flows.admin import targets
from auth.flows.facts import PersonFacts
from auth.flows.messages import outgoing
from auth.flows.organizations import as_seen, listed, record
from auth.flows.sign_in.reauthentication import WantedChange, admit_caller, give_proof
from auth.rules import organizations
from auth.rules.levels import Aal
from auth.rules.organizations import ADMIN, OWNER, Membership, Role
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from auth.web.fields import is_uuid
from sql import acts, queries
from sql.acts import Act

Facts: TypeAlias = "queries.SelectOrganizationFacts"

CHANGE = WantedChange("change", "organization")
# Of the routes of pages.
_RESERVED = {"new", "join", "invitations"}
_LONGEST_FOUND = 40


@dataclass(frozen=True)
class Seen:
    """An organisation that the caller may see. `role` is the caller's, None for an operator."""

    id: str
    slug: str
    name: str
    role: Role
    level: Aal
    object: str


def is_operator(asked: Asked) -> bool:
    """Whether a key of the service's operator, a command or an administrator in the console asks."""
    return asked.actor in ("service_role", "admin_key") or asked.administrator is not None


# What the caller may read.


def see(asked: Asked, name: str, *roles: str) -> Seen:
    """Return an organisation by its id or short name. Refuse who is no member, or has none of these roles."""
    if is_operator(asked):
        known = found(queries.select_organization(asked.db, **_named(name)), "organization_not_found")
        return Seen(known.id, known.slug, known.name, None, known.level, known.organization_object)
    seen = see_own(asked, name)
    membership = Membership(id=seen.id, role=seen.role or "", level=seen.level)
    if not organizations.counts(membership, asked.caller.aal):
        raise ApiError("insufficient_aal")
    if roles and seen.role not in roles:
        raise ApiError("organization.insufficient_permissions")
    return seen


def see_own(asked: Asked, name: str) -> Seen:
    """Return an organisation of the caller, also while the membership does not count."""
    row = asked.admit_reader(queries.select_member(asked.db, **asked.caller_ids, **_named(name)))
    if row.id is None:
        raise ApiError("organization_not_found")
    known = (row.id, row.slug or "", row.name or "", row.membership)
    return Seen(*known, row.level or "aal1", row.organization_object or "")


def own(asked: Asked) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the caller's memberships, as the session sees them, and the open invitations."""
    row = asked.admit_reader(queries.select_own_organizations(asked.db, **asked.caller_ids))
    return [as_seen(each, asked.caller.aal) for each in listed(row.memberships)], json.loads(row.invitations)


def see_by_id(asked: Asked, id: str) -> "queries.SelectOrganization":
    return found(queries.select_organization(asked.db, id=id, slug=None), "organization_not_found")


def see_invitation(asked: Asked, id: str, invitation_id: str) -> "queries.SelectInvitation | None":
    """Return an open invitation of an organisation."""
    row = queries.select_invitation(asked.db, id=invitation_id, user_id=None)
    return row if row and row.organization_id == id and row.expires_at > row.now else None


# Acts on an organisation.


def create(asked: Asked, body: JsonObject, *, id: str | None = None) -> str:
    """Create an organisation, and return its object. The caller owns it; an operator may name an owner.

    `id` is that of an imported one.
    """
    id, slug = id or str(uuid.uuid4()), body.get("slug") or _slug_of(body["name"])
    if _is_reserved(slug):
        raise ApiError("slug_exists")
    owner_id = body.get("owner") if is_operator(asked) else asked.caller.user_id
    if not is_operator(asked) and asked.settings.organizations != "users":
        raise ApiError("founder.insufficient_permissions")
    try:
        with _on_users(asked, owner_id) as (act, caller):
            owner = caller
            if is_operator(asked) and owner_id:
                owner = _addable(asked, act, owner_id)
            if caller:
                number = queries.count_memberships(act, user_id=caller.id)
                if refusal := organizations.refusal_of_founder(caller, number.founded, number.total):
                    raise ApiError(refusal)
            metadata = json.dumps(body.get("app_metadata", {}))
            queries.insert_organization(act, id=id, slug=slug, name=body["name"], app_metadata=metadata)
            known = found(_facts(act, id), "organization_not_found")
            record(act, "organization_created", known, event="organization.created")
            if owner:
                added_by = "founder" if caller else "administrator"
                _write_membership(act, known, owner, OWNER, added_by)
    except UniqueViolation:
        raise ApiError("slug_exists") from None
    return see_by_id(asked, id).organization_object


def change(asked: Asked, name: str, body: JsonObject) -> str:
    """Change the name or the requirement; an operator also the short name and the metadata."""
    seen = see(asked, name, OWNER)
    level = body.get("requires", {}).get("aal")
    if not is_operator(asked):
        if refused := next((each for each in ("slug", "app_metadata") if each in body), None):
            raise ApiError(
                "organization.insufficient_permissions", f"{refused}: only the service role key sets it"
            )
        # A requirement would lock out the session that makes it.
        if level and asked.caller.aal < level:
            raise ApiError("insufficient_aal")
    slug, metadata = body.get("slug"), body.get("app_metadata")
    if slug and _is_reserved(slug):
        raise ApiError("slug_exists")
    try:
        with _on(asked, seen, body=body if level else None) as (act, known, caller):
            _demand(asked, known, OWNER)
            columns = {"slug": slug, "name": body.get("name"), "level": level}
            queries.update_organization(
                act, id=known.id, **columns, app_metadata=None if metadata is None else json.dumps(metadata)
            )
            details = {"requires": level} if level and level != known.level else {}
            record(act, "organization_changed", known, event="organization.updated", **details)
            if details:
                _tell_owners(asked, act, known, caller, "organization_requirement", requires=level)
    except UniqueViolation:
        raise ApiError("slug_exists") from None
    return see_by_id(asked, seen.id).organization_object


def end(asked: Asked, name: str, body: JsonObject) -> None:
    """End an organisation. The janitor removes its members, and then frees the short name."""
    seen = see(asked, name, OWNER)
    with _on(asked, seen, body=body) as (act, known, _):
        _demand(asked, known, OWNER)
        queries.end_organization(act, id=known.id)
        record(act, "organization_ended", known, event="organization.deleted")


# Acts on members.


def set_role(
    asked: Asked, name: str, user_id: str, role: str, body: JsonObject, *, tells: bool = True
) -> JsonObject:
    """Change the role of a member; an operator also adds one. Return the member.

    `tells` the other owners of a new one.
    """
    seen = see(asked, name)
    is_raise = not is_operator(asked) and role in (OWNER, ADMIN)
    with _on(asked, seen, user_id, body=body if is_raise else None) as (act, known, caller):
        member = _member(asked, act, user_id)
        if known.role is None and not is_operator(asked):
            raise ApiError("member.user_not_found")
        _refuse(asked, known, caller, user_id, role)
        if known.role is None:
            added = _addable(asked, act, user_id)
            number = queries.count_memberships(act, user_id=user_id)
            if number.total >= organizations.MOST_MEMBERSHIPS:
                raise ApiError("too_many_memberships")
            _write_membership(act, known, added, role, "administrator")
        elif known.role != role:
            queries.write_membership(
                act, user_id=user_id, organization_id=known.id, role=role, added_by="administrator"
            )
            if organizations.loses_invitations(known.role, role):
                queries.withdraw_invitations_by(act, user_id=user_id, organization_id=known.id)
            changed = {"id": user_id, "email": member.email, "role": role}
            record(act, "membership_changed", known, changed, event="membership.updated", before=known.role)
        if tells and role == OWNER and known.role != OWNER:
            _tell_owners(asked, act, known, caller, "organization_owner_added", but=user_id)
    return {"user_id": user_id, "role": role}


def remove(asked: Asked, name: str, user_id: str) -> None:
    """Remove a member. Members may leave, also while the membership does not count."""
    is_leaving = not is_operator(asked) and user_id == asked.caller.user_id
    seen = see_own(asked, name) if is_leaving else see(asked, name)
    with _on(asked, seen, user_id, is_leaving=is_leaving) as (act, known, caller):
        member = _member(asked, act, user_id)
        if known.role is None:
            raise ApiError("member.user_not_found")
        _refuse(asked, known, caller, user_id, None)
        remove_member(act, known, member)
        if not is_leaving:
            outgoing.notify_without_link(asked, act, member, "membership_removed", organization=known.name)


def remove_member(act: Act, known: Facts, member: PersonFacts) -> None:
    """Remove a locked user from a locked organisation. With the membership end the invitations that the user
    sent, and the sessions of applications that need it (rule 49).
    """
    queries.remove_membership(act, user_id=member.id, organization_id=known.id)
    queries.withdraw_invitations_by(act, user_id=member.id, organization_id=known.id)
    ends.end_refused_sessions(act, member.id)
    lost = {"id": member.id, "email": member.email, "role": known.role}
    record(act, "membership_removed", known, lost, event="membership.deleted")


# Acts on invitations.


def invite(asked: Asked, name: str, email: str, role: str) -> str:
    """Invite an address, whether or not a user has it. Return the invitation's object.

    The same address again gets the new role, and another seven days.
    """
    seen, settings = see(asked, name, OWNER, ADMIN), asked.settings
    if seen.role and not organizations.may_manage(seen.role, None, role):
        raise ApiError("organization.insufficient_permissions")
    windows = [
        outgoing.window("invite", settings.rate_limit_invite_per_address, email),
        outgoing.window("invite", settings.rate_limit_invite),
    ]
    quota = outgoing.take_quota(asked, email, windows)
    with _on(asked, seen) as (act, known, caller):
        again = queries.select_invitation_of_address(act, organization_id=known.id, email=email)
        open_role = again.role if again and again.expires_at > known.now else None
        actor = None if is_operator(asked) else known.actor_role or ""
        if refusal := organizations.refusal_of_invitation(actor, open_role, role, known.invitations):
            raise ApiError(refusal)
        written = queries.write_invitation(
            act,
            id=str(uuid.uuid4()),
            organization_id=known.id,
            email=email,
            role=role,
            invited_by=caller and caller.id,
            lifetime=promises.INVITATION_LIFETIME,
        )
        message = outgoing.Message(asked, email, carries=[])
        message.write(
            act,
            None,
            "organization_invitation",
            organization=known.name,
            slug=known.slug,
            inviter=_inviter(asked, caller),
        )
        record(act, "member_invited", known, invited=email, invited_as=role)
    outgoing.add_quota_headers(asked, quota)
    return written.invitation_object


def withdraw(asked: Asked, name: str, invitation_id: str) -> None:
    """Withdraw an invitation."""
    seen = see(asked, name, OWNER, ADMIN)
    with _on(asked, seen) as (act, known, _):
        row = queries.withdraw_invitation(act, id=invitation_id, organization_id=known.id)
        gone = found(row, "invitation_not_found")
        if not is_operator(asked) and not organizations.may_manage(known.actor_role, gone.role, None):
            raise ApiError("organization.insufficient_permissions")
        record(act, "invitation_withdrawn", known, invited=gone.email)


def accept(asked: Asked, invitation_id: str) -> JsonObject:
    """Join by an invitation for the caller's proved address. Return the membership."""
    with _on_users(asked, asked.caller.user_id) as (act, caller):
        person = found(caller, "session_not_found")
        row = queries.select_invitation(act, id=invitation_id, user_id=person.id)
        number = queries.count_memberships(act, user_id=person.id).total
        refusal = organizations.refusal_of_acceptance(
            person, row, number, is_member=row is not None and row.membership is not None
        )
        if refusal or row is None:
            raise ApiError(refusal or "invitation_not_found")
        # Another request, or who withdrew it, may have been first; sent again, it has another role.
        taken = found(queries.take_invitation(act, id=row.id), "invitation_not_found")
        joined = queries.join_organization(
            act, user_id=person.id, organization_id=row.organization_id, role=taken.role
        )
        role = taken.role if joined else row.membership
        if joined:
            known = found(_facts(act, row.organization_id), "organization_not_found")
            added = {"id": person.id, "email": person.email, "role": taken.role}
            record(act, "membership_added", known, added, event="membership.created", added_by="invitation")
    return {"id": row.organization_id, "slug": row.slug, "name": row.name, "role": role}


def decline(asked: Asked, invitation_id: str) -> None:
    """Decline an invitation for the caller's proved address."""
    with _on_users(asked, asked.caller.user_id) as (act, caller):
        person = found(caller, "session_not_found")
        row = queries.select_invitation(act, id=invitation_id, user_id=person.id)
        refusal = organizations.refusal_of_acceptance(person, row, 0, is_member=True)
        if refusal or row is None or not queries.take_invitation(act, id=row.id):
            raise ApiError("invitation_not_found")
        known = found(_facts(act, row.organization_id), "organization_not_found")
        declined: dict[str, str | None] = {"id": person.id, "email": person.email, "role": row.role}
        record(act, "invitation_declined", known, declined)


# What the acts share.


@contextmanager
def _on_users(asked: Asked, *user_ids: str | None) -> "Iterator[tuple[Act, PersonFacts | None]]":
    """Run an act with users locked, and yield the caller, None for an operator."""
    if is_operator(asked):
        with targets.act(asked) as act:
            act.lock_users(user_ids)
            yield act, None
        return
    with acts.on(asked.db, asked.caller.user_id, *user_ids) as act:
        yield act, admit_caller(asked, act)


@contextmanager
def _on(
    asked: Asked,
    seen: Seen,
    user_id: str | None = None,
    *,
    body: JsonObject | None = None,
    is_leaving: bool = False,
) -> "Iterator[tuple[Act, Facts, PersonFacts | None]]":
    """Run an act on an organisation, which is locked after its caller and a user. With a `body`, the caller
    needs a proof of the last 15 minutes.
    """
    wanted = [] if body is None or is_operator(asked) else [CHANGE]
    given = give_proof(asked, body, CHANGE) if wanted and body else None
    if is_operator(asked):
        with targets.act(asked) as act:
            act.lock_users([user_id])
            act.lock_organizations([seen.id])
            yield act, found(_facts(act, seen.id, user_id), "organization_not_found"), None
        return
    with acts.on(asked.db, asked.caller.user_id, user_id) as act:
        caller = admit_caller(asked, act, *wanted, given=given)
        act.lock_organizations([seen.id])
        known = found(_facts(act, seen.id, user_id, caller.id), "organization_not_found")
        if known.actor_role is None:
            raise ApiError("organization_not_found")
        membership = Membership(id=known.id, role=known.actor_role, level=known.level)
        if not is_leaving and not organizations.counts(membership, asked.caller.aal):
            raise ApiError("insufficient_aal")
        yield act, known, caller


def _facts(act: Act, id: str, user_id: str | None = None, actor_id: str | None = None) -> "Facts | None":
    return act.read(queries.select_organization_facts, id=id, user_id=user_id, actor_id=actor_id)


def _refuse(asked: Asked, known: Facts, caller: "PersonFacts | None", user_id: str, role: Role) -> None:
    """Refuse to give a member this role. Only the service role key may take the last owner (rule 48)."""
    if asked.actor == "service_role":
        return
    refusal = organizations.refusal_of_change(
        known.actor_role if caller else OWNER,
        known.role,
        role,
        known.other_owners,
        is_self=caller is not None and user_id == caller.id,
    )
    if refusal:
        raise ApiError(refusal)


def _demand(asked: Asked, known: Facts, role: str) -> None:
    """Refuse a caller whose role has changed meanwhile."""
    if not is_operator(asked) and known.actor_role != role:
        raise ApiError("organization.insufficient_permissions")


def act_person(act: Act, user_id: str) -> PersonFacts:
    return found(queries.select_person(act, user_id=user_id, session_id=None), "user_not_found")


def _member(asked: Asked, act: Act, user_id: str) -> PersonFacts:
    """Return a user whose membership an act changes. Refuse an operator who may not change the user."""
    person = act_person(act, user_id)
    if is_operator(asked):
        targets.admit(asked, person)
    return person


def _addable(asked: Asked, act: Act, user_id: str) -> PersonFacts:
    """Return a user whom an operator may add: not one whom a stranger may have made."""
    person = _member(asked, act, user_id)
    if not organizations.may_be_added(person):
        raise ApiError("email_not_confirmed")
    return person


def _write_membership(act: Act, known: Facts, user: PersonFacts, role: str, added_by: str) -> None:
    queries.write_membership(act, user_id=user.id, organization_id=known.id, role=role, added_by=added_by)
    added = {"id": user.id, "email": user.email, "role": role}
    record(act, "membership_added", known, added, event="membership.created", added_by=added_by)


def _tell_owners(
    asked: Asked,
    act: Act,
    known: Facts,
    caller: "PersonFacts | None",
    kind: str,
    *,
    but: str | None = None,
    **variables: object,
) -> None:
    variables |= {"organization": known.name, "slug": known.slug}
    for row in queries.list_owners(act, organization_id=known.id):
        if row.id not in (but, caller and caller.id):
            owner = act_person(act, row.id)
            outgoing.notify_without_link(asked, act, owner, kind, **variables)


def _inviter(asked: Asked, caller: "PersonFacts | None") -> str | None:
    if caller is None:
        administrator = asked.administrator
        return administrator and (names.person(administrator.name) or administrator.email)
    return names.person(names.of_user(cast("Any", caller).user_metadata)) or caller.email


def _named(name: str) -> dict[str, str | None]:
    """Return the parameters of an organisation's id or short name."""
    return {"id": name, "slug": None} if is_uuid(name) else {"id": None, "slug": name}


def _is_reserved(slug: str) -> bool:
    """Whether the paths of pages, or ids, could be meant."""
    return slug in _RESERVED or is_uuid(slug)


def _slug_of(name: str) -> str:
    """Return a short name that is free, most likely."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    slug = "-".join(words)[:_LONGEST_FOUND].strip("-")
    return slug if slug and slug not in _RESERVED else f"{slug or 'team'}-{secrets.token_hex(3)}"
