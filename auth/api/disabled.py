"""The routes of the OpenID provider and of API keys while their wing is off: 404, and no limit counts.

What a route of the provider says of itself lets in what the edge lets in while the wing is on.
"""

from typing import Any, NoReturn

from flask import Blueprint

from auth.web import (
    Level,
    accepts_forms,
    answers_frames,
    any_origin,
    audited,
    guard,
    refuses_by_page,
    takes_foreign_forms,
    takes_tokens,
)
from auth.web.declarations import says
from auth.web.errors import ApiError

_METHODS = ["GET", "POST", "PUT", "DELETE"]
openid = Blueprint("openid_disabled", __name__)
api_keys = Blueprint("api_keys_disabled", __name__)
# By the name of the wing.
BLUEPRINTS = {"openid": openid, "api_keys": api_keys}
# A request that carries credentials may have no body.
_guarded = says(guard="disabled")
_OF_PROVIDER: dict[str, list[Any]] = {
    "/oauth/<path:_rest>": [accepts_forms, refuses_by_page],
    "/oauth/authorize": [takes_foreign_forms, answers_frames, refuses_by_page],
    "/oauth/logout": [takes_foreign_forms, refuses_by_page],
    "/oauth/clients/register": [any_origin],
    "/oauth/token": [any_origin, accepts_forms, _guarded],
    "/oauth/revoke": [any_origin, accepts_forms, _guarded, takes_tokens],
    "/oauth/userinfo": [any_origin, accepts_forms, _guarded],
    "/oauth/authorizations/<path:_rest>": [_guarded],
    "/user/oauth/<path:_rest>": [_guarded],
    "/admin/oauth/<path:_rest>": [_guarded, audited("admin_refused")],
}


def _disable(path: str, attributes: list[Any]) -> None:
    def refuse(_rest: str = "") -> NoReturn:
        raise ApiError("feature_disabled")

    for say in attributes:
        say(refuse)
    openid.add_url_rule(path, path, refuse, methods=_METHODS)


for each, attributes in _OF_PROVIDER.items():
    _disable(each, attributes)


@api_keys.get("/user/api_keys")
@api_keys.post("/user/api_keys")
@api_keys.delete("/user/api_keys/<_id>")
@guard.access_token(Level.SESSION)
def refuse_api_keys(_id: str = "") -> NoReturn:
    raise ApiError("api_keys_disabled")
