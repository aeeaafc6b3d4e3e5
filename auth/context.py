"""What a request works with: the parts of the application that serves it, made once by `create_app`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from flask import current_app

from auth.net.redirects import AllowList
from auth.passwords.hashing import Passwords
from auth.providers.client import Provider
from auth.settings import Settings
from auth.tokens.access_tokens import AccessTokens
from auth.tokens.keys import Sealer
from auth.tokens.one_time import Codes
from auth.tokens.refresh_tokens import RefreshTokens
from sql import Database

EXTENSION = "latchkey"


@dataclass(frozen=True)
class Latchkey:
    """The parts of one application."""

    settings: Settings
    db: Database
    access_tokens: AccessTokens
    refresh_tokens: RefreshTokens
    passwords: Passwords
    sealer: Sealer
    codes: Codes
    redirects: AllowList
    providers: Mapping[str, Provider]


class _Current:
    """The parts of the application that serves the request."""

    def __getattr__(self, name: str) -> Any:
        return getattr(current_app.extensions[EXTENSION], name)


latchkey = cast(Latchkey, _Current())
