"""Acts on an organization: its creation, changes and end."""

import json
import re
import secrets
import uuid
from functools import partial

from psycopg2.errors import UniqueViolation

from auth.core.json_bodies import JsonObject
from auth.extensions.organizations import access, members
from auth.extensions.organizations.access import Seen
from auth.flows.admin import providers
from auth.flows.organizations import OrganizationFacts, facts_of, record, refuse_key, tell_owners
from auth.rules import organizations
from auth.rules.organizations import OWNER
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from auth.web.fields import is_uuid
from sql import queries
from sql.acts import Act

# Of the routes of pages.
_RESERVED = {"new", "join", "invitations"}
_LONGEST_FOUND = 40


def create(asked: Asked, body: JsonObject, *, id: str | None = None) -> str:
    """Create an organization, and return its object. The caller owns it; an operator may name an owner.

    `id` is that of an imported one.
    """
    access.demand_operator(asked, body, "owner", "app_metadata")
    id, slug = id or str(uuid.uuid4()), body.get("slug") or _slug_of(body["name"])
    if _is_reserved(slug):
        raise ApiError("slug_exists")
    owner_id = body.get("owner") if access.is_operator(asked) else asked.caller.user_id
    if not access.is_operator(asked) and asked.settings.organizations != "users":
        raise ApiError("founder.insufficient_permissions")
    try:
        with access.on_user(asked, owner_id) as (act, caller):
            owner = caller
            if caller:
                founded = queries.count_founded(act, user_id=caller.id).total
                if refusal := organizations.refusal_of_founder(caller, founded):
                    raise ApiError(refusal)
            elif owner_id:
                owner = members.addable(members.target(asked, act, owner_id))
            columns = {"slug": slug, "name": body["name"], "founded_by": caller and caller.id}
            metadata = json.dumps(body.get("app_metadata", {}))
            queries.insert_organization(act, id=id, **columns, app_metadata=metadata)
            known = found(facts_of(act, id), "organization_not_found")
            record(act, "organization_created", known, event="organization.created")
            if owner:
                added_by = "founder" if caller else "administrator"
                members.write_membership(act, known, owner, OWNER, added_by)
    except UniqueViolation:
        raise ApiError("slug_exists") from None
    return access.see_by_id(asked, id).organization_object


def change(asked: Asked, name: str, body: JsonObject) -> str:
    """Change the name or the requirement; an operator also the short name and the metadata."""
    seen = access.see(asked, name, OWNER)
    access.demand_operator(asked, body, "slug", "app_metadata")
    slug, metadata, required = body.get("slug"), body.get("app_metadata"), body.get("requires", {})
    level, own_provider = required.get("aal"), required.get("own_provider")
    # A requirement would lock out the session that makes it.
    if level and seen.aal is not None and seen.aal < level:
        raise ApiError("insufficient_aal")
    if slug and _is_reserved(slug):
        raise ApiError("slug_exists")

    def keep_providers(act: Act) -> None:
        # One that is on stays on until the requirement is committed.
        if own_provider:
            act.lock_providers_of(seen.id)

    try:
        sent = body if required else None
        with access.locked(asked, seen, body=sent, before=keep_providers) as (act, known, _):
            if own_provider:
                _check_own_sign_in(asked, act, known, seen)
            columns = {"slug": slug, "name": body.get("name"), "level": level}
            columns |= {"needs_own_provider": own_provider}
            is_changed = queries.update_organization(
                act, id=known.id, **columns, app_metadata=None if metadata is None else json.dumps(metadata)
            )
            demands = {"requires": level} if level not in (None, known.level) else {}
            if own_provider not in (None, known.needs_own_provider):
                demands["requires_own_provider"] = own_provider
            if is_changed:
                record(act, "organization_changed", known, event="organization.updated", **demands)
            if "requires" in demands:
                tell_owners(asked, act, known, "organization_requirement", requires=level)
            if "requires_own_provider" in demands:
                done = "required" if own_provider else "lifted"
                tell_owners(asked, act, known, "organization_sign_in", change=done)
    except UniqueViolation:
        raise ApiError("slug_exists") from None
    return access.see_by_id(asked, seen.id).organization_object


def _check_own_sign_in(asked: Asked, act: Act, known: OrganizationFacts, seen: Seen) -> None:
    """Refuse the requirement unless the caller signed in with a provider that can sign others in, too."""
    if not access.is_operator(asked):
        demanded = known.requires | {"providers": known.providers}
        access.admit_session(asked, seen.aal, known.id, OWNER, demanded)
    if not queries.select_way_in(act, organization_id=known.id).is_there:
        # Only an operator could lift it.
        why = "requires.own_provider: needs a provider that is on, with a domain"
        raise ApiError("validation_failed", why)


def end(asked: Asked, name: str, body: JsonObject) -> None:
    """End an organization. The janitor removes its members, and then frees the short name."""
    seen = access.see(asked, name, OWNER)
    before = partial(Act.lock_providers_of, organization_id=seen.id)
    with access.locked(asked, seen, body=body, before=before) as (act, known, _):
        refuse_key(asked, act, known.id)
        queries.end_organization(act, id=known.id)
        queries.disable_providers_of_organization(act, organization_id=known.id)
        record(act, "organization_ended", known, event="organization.deleted")
    providers.end_users_of_disabled(asked)


def _is_reserved(slug: str) -> bool:
    """Whether the paths of pages, or ids, could be meant."""
    return slug in _RESERVED or is_uuid(slug)


def _slug_of(name: str) -> str:
    """Return a short name that is free, most likely."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    slug = "-".join(words)[:_LONGEST_FOUND].strip("-")
    return slug if slug and slug not in _RESERVED else f"{slug or 'team'}-{secrets.token_hex(3)}"
