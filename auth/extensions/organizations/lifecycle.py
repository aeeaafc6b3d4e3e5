"""Acts on an organization: its creation, changes and end."""

import json
import re
import secrets
import unicodedata
import uuid

from auth.core.json_bodies import JsonObject
from auth.extensions.organizations import access, members
from auth.extensions.organizations.access import VisibleOrganization
from auth.flows import ends
from auth.flows.facts import PersonFacts
from auth.flows.organizations import OrganizationFacts, facts_of, record, refuse_key, tell_owners
from auth.rules import organizations
from auth.rules.organizations import OWNER
from auth.web import callers
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from auth.web.fields import is_uuid
from sql import queries

# Segments of the paths of pages.
_RESERVED = {"new", "join", "invitations"}
_LONGEST_FOUND = 40


def create(asked: Asked, body: JsonObject, *, id: str | None = None) -> str:
    """Create an organization of the caller, or of an owner whom an operator names. An import has its `id`.

    Without a short name in the body, it gets one from its name, with a suffix if that is taken.
    """
    access.demand_operator(asked, body, "owner", "app_metadata")
    id = id or str(uuid.uuid4())
    if slug := body.get("slug"):
        return _create(asked, body, id, slug)
    slug = _slug_of(body["name"])
    try:
        return _create(asked, body, id, slug)
    except ApiError as error:
        if error.key != "slug_exists":
            raise
    return _create(asked, body, id, _with_suffix(slug))


def _create(asked: Asked, body: JsonObject, id: str, slug: str) -> str:
    if _is_reserved(slug):
        raise ApiError("slug_exists")
    owner_id = body.get("owner") if access.is_operator(asked) else asked.caller.user_id
    if not access.is_operator(asked) and asked.settings.organizations != "users":
        raise ApiError("founder.insufficient_permissions")
    with access.refusing_taken(ApiError("slug_exists")), access.begin(asked) as act:
        owner = caller = access.lock_caller(asked, act, owner_id)
        if caller:
            founded = queries.count_founded(act, user_id=caller.id).total
            if refusal := organizations.refusal_of_founder(caller, founded):
                raise ApiError(refusal)
        elif owner_id:
            owner = members.addable(members.target(asked, act, owner_id))
        columns = {"slug": slug, "name": body["name"], "founded_by": caller and caller.id}
        metadata = json.dumps(body.get("app_metadata", {}))
        queries.insert_organization(act, id=id, **columns, app_metadata=metadata)
        organization = found(facts_of(act, id), "organization_not_found")
        record(act, "organization_created", organization, event="organization.created")
        if owner:
            added_by = "founder" if caller else "administrator"
            members.write_membership(act, organization, owner, OWNER, added_by)
    return access.find_row(asked, id).organization_object


def change(asked: Asked, organization: VisibleOrganization, body: JsonObject) -> str:
    """Change the name or the requirements; an operator also the short name and the metadata."""
    organization = access.admit(asked, organization, OWNER)
    access.demand_operator(asked, body, "slug", "app_metadata")
    slug, metadata, required = body.get("slug"), body.get("app_metadata"), body.get("requires", {})
    level, own_provider = required.get("aal"), required.get("own_provider")
    # The statement takes 0 for null, which lifts the requirement.
    max_age = required["max_age"] or 0 if "max_age" in required else None
    # A requirement would lock out the session that makes it.
    if level and organization.standing and organization.standing.aal < level:
        raise ApiError("insufficient_aal")
    if slug and _is_reserved(slug):
        raise ApiError("slug_exists")
    wanted = [access.CHANGE] if required else []
    proof = access.give_proof(asked, organization, body, *wanted)
    with access.refusing_taken(ApiError("slug_exists")), access.begin(asked) as act:
        if own_provider:
            # One that is on stays on until the requirement is committed.
            act.lock_providers_of(organization.id)
        facts, caller = access.lock(asked, act, organization, *wanted, proof=proof)
        _check_own_session(asked, facts, caller, own_provider=own_provider, max_age=max_age)
        if own_provider and not access.has_way_in(asked, act, facts.id):
            # Only an operator could lift it.
            why = "requires.own_provider: needs a provider that is on, with a domain"
            raise ApiError("validation_failed", why)
        is_changed = queries.update_organization(
            act,
            id=facts.id,
            slug=slug,
            name=body.get("name"),
            level=level,
            needs_own_provider=own_provider,
            max_age=max_age,
            app_metadata=None if metadata is None else json.dumps(metadata),
        )
        demands = {"requires": level} if level not in (None, facts.level) else {}
        if own_provider not in (None, facts.needs_own_provider):
            demands["requires_own_provider"] = own_provider
        if max_age not in (None, facts.max_age or 0):
            demands["requires_max_age"] = max_age
        if is_changed:
            record(act, "organization_changed", facts, event="organization.updated", **demands)
        if "requires" in demands:
            tell_owners(asked, act, facts, "organization_requirement", requires=level)
        if "requires_own_provider" in demands:
            notice = "required" if own_provider else "lifted"
            tell_owners(asked, act, facts, "organization_sign_in", change=notice)
        if "requires_max_age" in demands:
            tell_owners(asked, act, facts, "organization_session_age", max_age=max_age)
    return access.find_row(asked, organization.id).organization_object


def _check_own_session(
    asked: Asked,
    organization: OrganizationFacts,
    caller: "PersonFacts | None",
    *,
    own_provider: bool | None,
    max_age: int | None,
) -> None:
    """Refuse a new requirement that the session of the owner who makes it does not meet."""
    if caller is None:
        return
    demanded = dict(organization.requires)
    if own_provider is not None:
        demanded["providers"] = organization.providers if own_provider else None
    if max_age is not None:
        demanded["max_age"] = max_age or None
    access.admit_session(callers.standing_of(caller, asked.caller), organization, OWNER, demanded)


def end(asked: Asked, organization: VisibleOrganization, body: JsonObject) -> None:
    """End an organization. The janitor removes its members, and then frees the short name."""
    organization = access.admit(asked, organization, OWNER)
    proof = access.give_proof(asked, organization, body, access.CHANGE)
    with access.begin(asked) as act:
        act.lock_providers_of(organization.id)
        facts, _ = access.lock(asked, act, organization, access.CHANGE, proof=proof)
        refuse_key(asked, act, facts.id)
        queries.end_organization(act, id=facts.id)
        queries.disable_providers_of_organization(act, organization_id=facts.id)
        record(act, "organization_ended", facts, event="organization.deleted")
    ends.end_what_is_over(asked.db)


def _is_reserved(slug: str) -> bool:
    """Whether a short name could be a page or an id."""
    return slug in _RESERVED or is_uuid(slug)


def _slug_of(name: str) -> str:
    """Return the short name that is made from a name: `muller-gmbh` from `Müller GmbH`."""
    # NFKD separates accents from their letters.
    letters = unicodedata.normalize("NFKD", name).casefold()
    words = re.findall(r"[a-z0-9]+", "".join(each for each in letters if not unicodedata.combining(each)))
    slug = "-".join(words)[:_LONGEST_FOUND].strip("-")
    return slug or _with_suffix("team")


def _with_suffix(slug: str) -> str:
    return f"{slug}-{secrets.token_hex(3)}"
