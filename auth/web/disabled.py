"""The routes of the OpenID provider, API keys and customers' providers while those are off: 404, and no limit
counts.

The decorators are those of the extension's routes, so the edge lets the same requests pass.
"""

from typing import NoReturn

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

openid = Blueprint("openid_disabled", __name__)
api_keys = Blueprint("api_keys_disabled", __name__)
sso = Blueprint("sso_disabled", __name__)
# Blueprints by the name of the extension.
BLUEPRINTS = {"openid": openid, "api_keys": api_keys, "sso": sso}
_METHODS = ["GET", "POST", "PUT", "DELETE"]
# A request that carries credentials may have no body.
_guarded = says(guard="disabled")


@openid.route("/oauth/<path:_rest>", methods=_METHODS)
@accepts_forms
@refuses_by_page
def refuse_page(_rest: str) -> NoReturn:
    raise ApiError("feature_disabled")


@openid.route("/oauth/authorize", methods=_METHODS)
@takes_foreign_forms
@answers_frames
@refuses_by_page
def refuse_authorization() -> NoReturn:
    raise ApiError("feature_disabled")


@openid.route("/oauth/logout", methods=_METHODS)
@takes_foreign_forms
@refuses_by_page
def refuse_logout() -> NoReturn:
    raise ApiError("feature_disabled")


@openid.route("/oauth/clients/register", methods=_METHODS)
@any_origin
def refuse_registration() -> NoReturn:
    raise ApiError("feature_disabled")


@openid.route("/oauth/token", methods=_METHODS)
@openid.route("/oauth/userinfo", methods=_METHODS)
@any_origin
@accepts_forms
@_guarded
def refuse_client() -> NoReturn:
    raise ApiError("feature_disabled")


@openid.route("/oauth/device_authorization", methods=_METHODS)
@accepts_forms
@_guarded
def refuse_device() -> NoReturn:
    raise ApiError("feature_disabled")


@openid.route("/oauth/revoke", methods=_METHODS)
@any_origin
@accepts_forms
@takes_tokens
@_guarded
def refuse_revocation() -> NoReturn:
    raise ApiError("feature_disabled")


@openid.route("/oauth/authorizations/<path:_rest>", methods=_METHODS)
@openid.route("/user/oauth/<path:_rest>", methods=_METHODS)
@_guarded
def refuse_user(_rest: str) -> NoReturn:
    raise ApiError("feature_disabled")


@openid.route("/admin/oauth/<path:_rest>", methods=_METHODS)
@_guarded
@audited("admin_refused")
def refuse_administrator(_rest: str) -> NoReturn:
    raise ApiError("feature_disabled")


@api_keys.get("/user/api_keys")
@api_keys.post("/user/api_keys")
@api_keys.delete("/user/api_keys/<_id>")
@guard.access_token(Level.SESSION)
def refuse_api_keys(_id: str = "") -> NoReturn:
    raise ApiError("api_keys_disabled")


@sso.post("/sso")
def refuse_sso() -> NoReturn:
    raise ApiError("saml_provider_disabled")


@sso.route("/admin/custom-providers", methods=_METHODS)
@sso.route("/admin/custom-providers/<path:_rest>", methods=_METHODS)
@_guarded
@audited("admin_refused")
def refuse_providers(_rest: str = "") -> NoReturn:
    raise ApiError("sso.feature_disabled")
