"""Forms of our own pages. Their token is bound to a cookie: other sites must not submit them (login CSRF)."""

import functools
import hashlib
import hmac
from collections.abc import Callable
from typing import Any

from flask import request
from flask.typing import ResponseReturnValue

from auth.tokens import one_time
from auth.web import cookies
from auth.web.errors import ApiError
from auth.web.input import FORM, accepts_forms, whole_body

FIELD = "form_token"
COOKIE = "form"

View = Callable[..., ResponseReturnValue]


def token_of(secret: str) -> str:
    return hashlib.sha256(f"form {secret}".encode()).hexdigest()


def own_form(view: View) -> View:
    """Refuse forms of other sites before a limit counts them, which is for the visitors of those sites."""

    @functools.wraps(view)
    def checked(*args: Any, **kwargs: Any) -> ResponseReturnValue:
        if request.mimetype == FORM:
            _check()
        return view(*args, **kwargs)

    return accepts_forms(checked)


def _check() -> None:
    whole_body()
    secret = cookies.sent(COOKIE)
    is_bound = hmac.compare_digest(request.form.get(FIELD, "").encode(), token_of(secret).encode())
    is_own = request.headers.get("Sec-Fetch-Site", "same-origin") == "same-origin"
    if not is_own or not is_bound or one_time.hash_token(secret) is None:
        raise ApiError("form.insufficient_permissions")
