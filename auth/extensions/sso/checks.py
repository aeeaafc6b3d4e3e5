"""The doctor's check of customers' providers."""

from auth.core.checks import Context, Failure, check
from auth.flows.admin import providers_out_of_place
from auth.flows.admin.providers_out_of_place import problem_of, remedy_of


@check("providers", "Customers' providers sign in users of this service")
def _providers(context: Context) -> Failure | None:
    providers = [row for row in providers_out_of_place.find(context.settings, context.db) if row.enabled]
    if not providers:
        return None
    first, *others = providers
    more = f" Others like it: {len(others)}." if others else ""
    return Failure(f"{problem_of(context.settings, first)}.{more}", remedy_of(first))


CHECKS = [_providers]
