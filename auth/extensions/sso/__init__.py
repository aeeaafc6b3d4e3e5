"""Customers' sign-in: OpenID providers in the database, each for the addresses of its own domains."""

from typing import TYPE_CHECKING

from auth.registry import Extension

if TYPE_CHECKING:
    from auth.core.providers.client import Provider


class Sso(Extension):
    api = ("routes",)
    sections = ("console",)
    navigation = ((35, "console/providers", "Providers"),)
    command = "providers"

    def find_provider(self, name: str, *, is_tried: bool) -> "Provider | None":
        from auth.extensions.sso import lookup
        from auth.web.context import latchkey

        return lookup.find(latchkey, name, is_tried=is_tried)

    def provider_of(self, email: str) -> str | None:
        from auth.extensions.sso import lookup
        from auth.web.context import latchkey

        return lookup.provider_of(latchkey, email)


EXTENSION = Sso
