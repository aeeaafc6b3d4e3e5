"""Providers that were set up to try sign-in on one machine, at a service that other machines reach."""

from collections.abc import Iterator

from auth.core.checks import Context, Failure, check
from auth.core.providers.customers import is_on_this_machine, is_out_of_place
from auth.core.settings import Settings
from sql import Database, acts, queries


@check("providers", "Customers' providers sign in users of this service")
def _providers(context: Context) -> Failure | None:
    rows = _out_of_place(context.settings, context.db)
    first = next((row for row in rows if row.enabled), None)
    if first is None:
        return None
    others = sum(row.enabled for row in rows) - 1
    more = f" Others like it: {others}." if others else ""
    return Failure(f"{_problem(context.settings, first)}.{more}", _remedy(first))


def leave_machine(settings: Settings, db: Database) -> Iterator[str]:
    """End what providers have opened that are out of place, before the service starts. Yield a line for each
    that is on. Raises `psycopg2.Error`.
    """
    rows = _out_of_place(settings, db)
    if rows:
        with acts.begin(db) as act:
            for id in sorted(row.id for row in rows):
                act.lock_provider(id)
                queries.begin_term(act, id=id)
    for row in rows:
        if row.enabled:
            yield f"{_problem(settings, row)}, and what it had opened has ended. {_remedy(row)}"


def _out_of_place(settings: Settings, db: Database) -> "list[queries.ListAllProviders]":
    return [row for row in queries.list_all_providers(db) if is_out_of_place(settings, row)]


def _problem(settings: Settings, row: "queries.ListAllProviders") -> str:
    # repr, because a terminal would obey the control characters of a name.
    name = f"The provider {row.name!r}" + (f" of the organization {row.slug}" if row.slug else "")
    why = "a command proved its domain without DNS"
    if is_on_this_machine(row.issuer):
        why = f"its issuer {row.issuer} is this machine"
    other = f"AUTH_BIND is {settings.bind}" if settings.is_local else f"AUTH_BASE_URL is {settings.base_url}"
    return f"{name} signs in nobody: {why}, but {other}"


def _remedy(row: "queries.ListAllProviders") -> str:
    # Otherwise its owners, who need a session of the provider, have no way in.
    lift = f"Run: latchkey organizations require {row.slug} any-sign-in. " if row.is_required else ""
    delete = f"latchkey providers delete {row.id}"
    if is_on_this_machine(row.issuer):
        return f"{lift}Run: {delete}"
    return f"{lift}Let an owner of {row.slug} set the domain's TXT record and press Check, or run: {delete}"


CHECKS = [_providers]
