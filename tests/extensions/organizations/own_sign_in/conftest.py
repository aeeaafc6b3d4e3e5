"""The fixtures of an organization that sets up its sign-in, for all tests of this folder."""

from tests.support.own_providers import (
    browse,
    client,
    customers,
    names,
    near,
    on,
    press,
    provider,
    running_customers,
    service,
    sign_in,
    tried,
)

__all__ = [
    "browse", "client", "customers", "names", "near", "on", "press", "provider", "running_customers", "service",
    "sign_in", "tried",
]  # fmt: skip
