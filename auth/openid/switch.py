"""`AUTH_OAUTH_SERVER`: without it, the routes of the provider do not exist."""

import functools
from typing import Any

from flask.typing import ResponseReturnValue

from auth.web import View
from auth.web.context import latchkey
from auth.web.errors import ApiError


def provider(view: View) -> View:
    """Answer 404 while the provider is off. The outermost decorator: no guard or limit comes first."""

    @functools.wraps(view)
    def switched(*args: Any, **kwargs: Any) -> ResponseReturnValue:
        if not latchkey.settings.oauth_server:
            raise ApiError("feature_disabled")
        return view(*args, **kwargs)

    return switched
