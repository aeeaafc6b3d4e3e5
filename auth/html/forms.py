"""Forms of our own pages, and the page after a form. A cookie binds both.

Other sites must not submit a form (login CSRF), and a link must not report an act that did not happen.
"""

import functools
import hashlib
import hmac
import re
import time

from flask import Response, after_this_request, request
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import ImmutableMultiDict

from auth.core import constants
from auth.core.tokens import one_time
from auth.web import View, accepts_forms, cookies, g
from auth.web.application import FORM
from auth.web.errors import ApiError
from auth.web.input import whole_body

FIELD = "form_token"
# The cookies of a browser with a session on our pages, and of any other browser with a form.
SESSION, VISIT = "latchkey", "latchkey_form"
_SIGNED_VALUE = re.compile(r"(.+)\.([0-9]{10})\.([0-9a-f]{64})", re.DOTALL)
_TOKEN = re.compile(rf"(?:^|&){FIELD}=([0-9a-f]{{64}})(?:&|$)".encode())


def form_secret() -> str:
    """Return the secret that binds the forms of this browser."""
    session = session_cookie()
    return session if one_time.hash_token(session) else cookies.browser_secret(VISIT)


def session_cookie() -> str:
    """Return the cookie of the browser's session, or "". It is the new one if this request has changed it."""
    return g.session_cookie or cookies.read(SESSION)


def remember(response: Response, secret: str) -> None:
    if session_cookie() != secret:
        cookies.set_cookie(response, VISIT, secret)


def token_of(secret: str) -> str:
    # No MAC: an attacker can get a valid pair from our page, but other sites cannot set the cookie.
    return hashlib.sha256(f"form {secret}".encode()).hexdigest()


def signed_query(**values: str) -> dict[str, str]:
    """Return a query that lets a page show the result of an act in this browser only, for ten minutes."""
    secret, until = cookies.browser_secret(VISIT), f"{int(time.time()) + constants.FLOW_LIFETIME}"

    @after_this_request
    def keep(response: Response) -> Response:
        if cookies.read(VISIT) != secret:
            cookies.set_cookie(response, VISIT, secret)
        return response

    return {
        name: f"{value}.{until}.{_signature(secret, name, value, until)}" for name, value in values.items()
    }


def signed_value(name: str) -> str:
    """Return a value of `signed_query`, or an empty one from another browser or after its time."""
    secret, match = cookies.read(VISIT), _SIGNED_VALUE.fullmatch(request.args.get(name, ""))
    # Anyone could sign with a secret that is not random.
    if match is None or one_time.hash_token(secret) is None or int(match[2]) <= time.time():
        return ""
    value, until, signature = match.groups()
    return value if hmac.compare_digest(signature, _signature(secret, name, value, until)) else ""


def _signature(secret: str, name: str, value: str, until: str) -> str:
    return hmac.digest(secret.encode(), f"{name} {value} {until}".encode(), "sha256").hex()


def own_form(view: View) -> View:
    """Refuse forms from other sites before a limit counts them against those sites' visitors.

    A request without a body is refused too: browsers send it from other origins without a preflight.
    """

    @functools.wraps(view)
    def checked(*args: object, **kwargs: object) -> ResponseReturnValue:
        _refuse_foreign()
        return view(*args, **kwargs)

    return accepts_forms(checked)


def own_form_or_json(view: View) -> View:
    """Refuse forms from other sites, but not JSON, which programs send."""
    for_forms = own_form(view)

    @functools.wraps(view)
    def checked(*args: object, **kwargs: object) -> ResponseReturnValue:
        answer = for_forms if request.mimetype == FORM else view
        return answer(*args, **kwargs)

    return accepts_forms(checked)


def is_from_own_page() -> bool:
    """Whether the browser says that a page of ours sent the request. Older browsers do not."""
    return request.headers.get("Sec-Fetch-Site") == "same-origin"


def _refuse_foreign() -> None:
    # The form itself is parsed after a limit has counted it.
    match = _TOKEN.search(whole_body())
    # For a browser without either cookie, the secret is new, and no form has its token.
    if hmac.compare_digest(match[1] if match else b"", token_of(form_secret()).encode()):
        return
    if not is_from_own_page():
        # Show the page again with a valid token, but without the values of another site.
        request.form = ImmutableMultiDict()
    has_cookie = cookies.read(SESSION) or cookies.read(VISIT)
    raise ApiError(f"{'form' if has_cookie else 'cookie'}.insufficient_permissions")
