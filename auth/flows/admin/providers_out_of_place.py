"""Providers that were set up to try sign-in on one machine, at a service that other machines reach."""

from auth.core.providers.places import is_on_this_machine, is_out_of_place
from auth.core.settings import Settings
from sql import Database, acts, queries


def find(settings: Settings, db: Database) -> "list[queries.ListAllProviders]":
    return [row for row in queries.list_all_providers(db) if is_out_of_place(settings, row)]


def end_terms(settings: Settings, db: Database) -> "list[queries.ListAllProviders]":
    """End what these providers have opened, and return them. Raises `psycopg2.Error`."""
    providers = find(settings, db)
    if providers:
        with acts.begin(db) as act:
            for id in sorted(provider.id for provider in providers):
                act.lock_provider(id)
                queries.begin_term(act, id=id)
    return providers


def problem_of(settings: Settings, provider: "queries.ListAllProviders") -> str:
    """Return why a provider that is on signs in nobody, for the operator."""
    # repr, because a terminal would obey the control characters of a name.
    name = f"The provider {provider.name!r}"
    if provider.slug:
        name += f" of the organization {provider.slug}"
    why = "a command proved its domain without DNS"
    if is_on_this_machine(provider.issuer):
        why = f"its issuer {provider.issuer} is this machine"
    other = f"AUTH_BIND is {settings.bind}" if settings.is_local else f"AUTH_BASE_URL is {settings.base_url}"
    return f"{name} cannot sign users in: {why}, but {other}"


def remedy_of(provider: "queries.ListAllProviders") -> str:
    # Otherwise its owners, who need a session of the provider, have no way in.
    lift = (
        f"Run: latchkey organizations require {provider.slug} any-sign-in. " if provider.is_required else ""
    )
    delete = f"latchkey providers delete {provider.id}"
    if is_on_this_machine(provider.issuer):
        return f"{lift}Run: {delete}"
    return (
        f"{lift}Let an owner of {provider.slug} set the domain's TXT record and press Check, or run: {delete}"
    )
