"""What organisations change elsewhere: the user object of a session, its claim, and the deletion of a user.

Everything else about organisations is in auth/extensions/organizations.
"""

import json
from collections.abc import Mapping
from typing import Any

from auth.core.json_bodies import JsonObject
from auth.core.settings import Settings
from auth.rules import organizations
from auth.rules.levels import Aal
from auth.rules.organizations import Membership
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import queries
from sql.acts import Act

CLAIM = "organizations"
# How the user object of a user with memberships begins.
_FIRST = f'{{"{CLAIM}": '


def is_on(settings: Settings) -> bool:
    return settings.organizations != "off"


def shown(user_object: str, aal: Aal) -> str:
    """Return the user object as a session of this level sees it.

    A membership that does not count in it has no role, but says what it requires (rule 47).
    """
    if not user_object.startswith(_FIRST):
        return user_object
    # The rest stays as Postgres has written it: parsed, numbers of metadata would lose digits.
    listed, end = json.JSONDecoder().raw_decode(user_object, len(_FIRST))
    seen = json.dumps([as_seen(each, aal) for each in listed], ensure_ascii=False)
    return f"{_FIRST}{seen}{user_object[end:]}"


def as_seen(listed: JsonObject, aal: Aal) -> JsonObject:
    """Return a membership of a user object as a session of this level sees it."""
    hidden = "requires" if organizations.counts(membership_of(listed), aal) else "role"
    return {name: value for name, value in listed.items() if name != hidden}


def listed(member: str) -> list[JsonObject]:
    """Return the memberships in a column of `memberships_of`."""
    parsed: list[JsonObject] = json.loads("{" + member.removesuffix(", ") + "}")[CLAIM] if member else []
    return parsed


def counting(member: str, aal: Aal) -> dict[str, str]:
    """Return the roles in a column of `memberships_of` that count at this level, by organisation."""
    return organizations.roles_in_token(map(membership_of, listed(member)), aal)


def claim(user: Mapping[str, Any], aal: Aal) -> JsonObject:
    """Return the claim of a token of this level, from a parsed user object; none without a role."""
    roles = organizations.roles_in_token(map(membership_of, user.get(CLAIM, ())), aal)
    return {CLAIM: roles} if roles else {}


def still_said(claims: JsonObject, user_object: str, aal: Aal) -> JsonObject:
    """Return the claims of an introspection with the memberships that still count, and present roles."""
    told = claims.get(CLAIM)
    if not isinstance(told, dict):
        return claims
    roles = claim(json.loads(user_object), aal).get(CLAIM, {})
    return claims | {CLAIM: {id: roles[id] for id in told if id in roles}}


def membership_of(listed: Mapping[str, Any]) -> Membership:
    """Return a membership of a user object as the rules take it."""
    level = listed.get("requires", {}).get("aal", "aal1")
    return Membership(id=listed["id"], role=listed["role"], level=level)


def leave_all(asked: Asked, act: Act, user_id: str) -> None:
    """Take a locked user out of all organisations, before the user is deleted.

    Refuse for the last owner of an organisation with other members (rule 48); one without others ends.
    """
    if not is_on(asked.settings):
        return
    ids = [row.id for row in queries.list_memberships(act, user_id=user_id)]
    if not ids:
        return
    act.lock_organizations(ids)
    for id in sorted(ids):
        known = queries.select_organization_facts(act, id=id, user_id=user_id, actor_id=None)
        done = known and organizations.what_deletion_does(known.role, known.members, known.other_owners)
        if done == "refuse" and asked.actor != "service_role":
            raise ApiError("last_owner")
        if known and done == "end":
            queries.end_organization(act, id=id)
            record(act, "organization_ended", known, event="organization.deleted")
        elif known:
            lost = {"id": user_id, "email": known.email, "role": known.role}
            record(act, "membership_removed", known, lost, event="membership.deleted")


def record(
    act: Act,
    entry: str,
    organization: "queries.SelectOrganizationFacts | queries.SelectOrganization",
    user: Mapping[str, str | None] | None = None,
    *,
    event: str | None = None,
    **details: object,
) -> None:
    """Write an entry of the audit log about an organisation, and an event.

    `user` has the `id`, `email` and `role` of a member.
    """
    about = {"id": organization.id, "slug": organization.slug}
    known = user or {"id": None, "email": None, "role": None}
    said = {"organization": about, "role": known["role"]} | details
    act.later(
        queries.record_organization_act,
        user_id=known["id"],
        email=known["email"],
        entry=entry,
        event=event,
        organization=json.dumps(about),
        role=known["role"],
        details=json.dumps(said),
    )
