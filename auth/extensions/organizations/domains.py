"""Acts on the domains of an organization, which a TXT record proves (rule 50).

While no other machine reaches the service, an operator may prove one without.
"""

import secrets
from collections.abc import Mapping

from auth.core.json_bodies import JsonObject
from auth.core.net import text_records
from auth.core.settings import Settings
from auth.extensions.organizations import access
from auth.extensions.organizations.access import VisibleOrganization
from auth.flows.admin.provider_settings import checked_domain
from auth.flows.organizations import record, tell_owners
from auth.rules import organizations
from auth.rules.organizations import OWNER
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import queries
from sql.acts import Act

_TOKEN_BYTES = 16  # 32 hexadecimal characters


def name_domain(
    asked: Asked, organization: VisibleOrganization, domain: str, *, token: str | None = None
) -> str:
    """Name a domain, and return its object. A domain keeps its record; an import has the record's `token`."""
    organization = access.admit(asked, organization, OWNER)
    here = {"organization_id": organization.id, "domain": checked_domain(asked, domain, "domain")}
    with access.begin(asked) as act:
        access.lock(asked, act, organization)
        _insert(act, here, token)
    return _object(asked, **here)


def _insert(act: Act, here: Mapping[str, str], token: str | None = None) -> None:
    """Name a domain of a locked organization that does not name it yet."""
    if queries.select_domain(act, **here):
        return
    number = queries.count_domains(act, organization_id=here["organization_id"]).total
    if number >= organizations.MOST_DOMAINS:
        raise ApiError("too_many_domains")
    queries.insert_domain(act, **here, token=token or secrets.token_hex(_TOKEN_BYTES))


def named(asked: Asked, id: str, domain: str) -> str:
    """Return a domain of a path, which the organization has named, as it is stored."""
    domain = _of_path(domain)
    _object(asked, id, domain)
    return domain


def prove(asked: Asked, organization: VisibleOrganization, domain: str) -> str:
    """Look up the record of a domain, and return the domain's object if the record proves it."""
    organization = access.admit(asked, organization, OWNER)
    here = {"organization_id": organization.id, "domain": _of_path(domain)}
    row = found(queries.select_domain(asked.db, **here), "domain_not_found")
    _check_record(here["domain"], row.token, was_proved=row.proved_at is not None)
    holder = queries.select_holder_by_command(asked.db, **here)
    with access.refusing_taken(ApiError("conflict", what="domain")), access.begin(asked) as act:
        if holder:
            act.lock_providers_of(holder.id)
        facts, _ = access.lock(asked, act, organization)
        present = found(queries.select_domain(act, **here), "domain_not_found")
        if present.token != row.token:
            raise ApiError("domain_not_proved")
        if queries.select_domain_of_others(act, **here).is_taken:
            raise ApiError("conflict", what="domain")
        queries.record_lookup(act, **here, is_held=True, is_missing=False)
        if holder:
            _take_from_holder(asked, act, holder.id, here["domain"])
        if present.proved_at is None:
            record(act, "domain_proved", facts, domain=here["domain"])
    return _object(asked, organization.id, here["domain"])


def _take_from_holder(asked: Asked, act: Act, holder_id: str, domain: str) -> None:
    """Take a domain from the locked providers of an organization that a command gave it. A record beats
    that: otherwise the organization would keep the domain from its owner on another machine.
    """
    holder = queries.select_organization(act, id=holder_id, slug=None)
    provider = queries.take_domain_from_provider(act, organization_id=holder_id, domain=domain)
    if holder and provider:
        record(act, "domain_lost", holder, domain=domain, by_record=True)
        tell_owners(asked, act, holder, "organization_sign_in", change="domain_lost", domain=domain)


def prove_by_command(asked: Asked, organization: VisibleOrganization, domain: str) -> str:
    """Name a domain, and prove it without a lookup, for an operator of a service that no other machine
    reaches. Return its object.
    """
    if problem := _problem_of_place(asked.settings):
        raise ApiError("machine.domain_not_proved", problem)
    here = {"organization_id": organization.id, "domain": checked_domain(asked, domain, "domain")}
    with access.refusing_taken(ApiError("conflict", what="domain")), access.begin(asked) as act:
        facts, _ = access.lock(asked, act, organization)
        _insert(act, here)
        if queries.select_domain_of_others(act, **here).is_taken:
            raise ApiError("conflict", what="domain")
        if queries.prove_domain_by_command(act, **here):
            record(act, "domain_proved", facts, domain=here["domain"], by_command=True)
    return _object(asked, **here)


def _problem_of_place(settings: Settings) -> str | None:
    """Return why a domain needs a record, and what to do, or None."""
    if settings.serves_this_machine:
        return None
    if settings.is_local:
        why = f"AUTH_BIND is {settings.bind}, so other machines reach the service"
    else:
        why = f"AUTH_BASE_URL is {settings.base_url}, not this machine"
    return f"{why}: set the TXT record, and press Check at Single sign-on (SSO) of the organization"


def _check_record(domain: str, token: str, *, was_proved: bool) -> None:
    """Refuse a domain whose record does not prove it, and say what there is instead."""
    lookups, name = text_records.Lookups(), text_records.name_of(domain)
    records = lookups.at(name)
    if records is None:
        details = f"the name servers of {domain} do not answer"
        raise ApiError("unanswered.domain_not_proved", details, name=name)
    if organizations.is_proof_of_domain(records, token):
        return
    for place in text_records.wrong_names_of(domain):
        if organizations.is_proof_of_domain(lookups.at(place) or (), token):
            details = f"the TXT record is at {place}; move it to {name}"
            raise ApiError("misplaced.domain_not_proved", details, name=name, place=place)
    if records:
        details = f"the TXT record at {name} has another value"
        raise ApiError("other.domain_not_proved", details, name=name)
    key = "gone.domain_not_proved" if was_proved else "absent.domain_not_proved"
    raise ApiError(key, f"there is no TXT record at {name}", name=name)


def forget(asked: Asked, organization: VisibleOrganization, domain: str, body: JsonObject) -> None:
    """Give a domain up: the providers of the organization sign in none of its addresses any more."""
    organization = access.admit(asked, organization, OWNER)
    here = {"organization_id": organization.id, "domain": _of_path(domain)}
    proof = access.give_proof(asked, organization, body, access.CHANGE)
    with access.begin(asked) as act:
        act.lock_providers_of(organization.id)
        facts, _ = access.lock(asked, act, organization, access.CHANGE, proof=proof)
        with access.keeping_a_way_in(asked, act, facts):
            before = found(queries.delete_domain(act, **here), "domain_not_found")
            provider = queries.take_domain_from_provider(act, **here)
        if provider and provider.is_blocked and not access.is_operator(asked):
            # Another provider would get the domain.
            raise ApiError("owner.sso_provider_disabled")
        if before.proved_at:
            record(act, "domain_lost", facts, domain=here["domain"])
            notice = {"change": "domain_lost", "domain": here["domain"]}
            tell_owners(asked, act, facts, "organization_sign_in", **notice)


def _of_path(domain: str) -> str:
    """Return a domain of a path as it is stored."""
    if "\0" in domain:  # which Postgres refuses
        raise ApiError("domain_not_found")
    return domain.lower()


def _object(asked: Asked, organization_id: str, domain: str) -> str:
    row = queries.select_domain(asked.db, organization_id=organization_id, domain=domain)
    return found(row, "domain_not_found").domain_object
