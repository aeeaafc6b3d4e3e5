"""Providers of customers: what disabling one ends, and whom an administrator may move to one."""

from collections.abc import Collection
from datetime import datetime

from auth.rules.refusals import Refusal
from auth.rules.users import User


def disabled_at(
    *, was_enabled: bool, is_enabled: bool, ended_before: datetime, now: datetime
) -> datetime | None:
    """When a provider was disabled: everything of its users from before that ends. Another change of a
    disabled provider ends nothing more.
    """
    if is_enabled:
        return None
    return now if was_enabled else ended_before


def refusal_of_adoption(user: User, domain: str, domains: Collection[str]) -> Refusal | None:
    """A provider signs in no administrator, and only addresses of its domains."""
    if user.role == "admin":
        return "admin.user_sso_conflict"
    return None if domain in domains else "customer.email_address_not_authorized"
