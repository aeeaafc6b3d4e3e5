"""API keys, which let programs act for a user."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from auth.registry import Extension

if TYPE_CHECKING:
    from flask.typing import ResponseReturnValue

    from sql import queries


class ApiKeys(Extension):
    api = ("routes",)
    pages = ("pages",)
    sections = ("console",)

    def grants(self) -> "Mapping[str, Callable[[], ResponseReturnValue]]":
        from auth.extensions.api_keys import routes

        return {"api_key": routes.sign_in_with_api_key}

    def introspect(self, token: str, client: "queries.SelectClient | None") -> dict[str, Any] | None:
        from auth.extensions.api_keys import routes

        return routes.claims_now(token, client)

    def next_pages(self) -> Sequence[tuple[str, str]]:
        return (("api-keys", "account/{}"),)

    def account_tabs(self, person: "queries.SelectPerson") -> Mapping[str, Any]:
        from auth.extensions.api_keys import pages

        return {"api_keys": pages.shown_keys()}

    def user_tabs(self, user_id: str) -> Mapping[str, Any]:
        from auth.extensions.api_keys import console

        return {"api_keys": console.keys_of(user_id)}


EXTENSION = ApiKeys
