"""Signing in with OAuth and OpenID providers."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from auth.registry import Extension

if TYPE_CHECKING:
    from flask.typing import ResponseReturnValue


class Social(Extension):
    api = ("oauth", "linking")

    def grants(self) -> "Mapping[str, Callable[[], ResponseReturnValue]]":
        from auth.extensions.social import oauth

        return {"id_token": oauth.exchange_id_token}


EXTENSION = Social
