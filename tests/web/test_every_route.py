"""Rules of all routes: each view is limited, and all routes of an operation share its limit."""

import re
import uuid
from collections import defaultdict
from collections.abc import Mapping
from itertools import chain
from typing import Any

from auth.api import sign_in
from auth.core import settings
from auth.web import limits
from auth.web.context import EXTENSION
from auth.web.declarations import route_of
from tests.source.test_contract import OPERATIONS, guard_of, is_limited, views


def test_every_view_that_writes_is_limited_or_for_administrators(whole_app):
    """Views for GET may be limited, too. POST /oauth/userinfo only reads, and POST /oauth/logout leads to a GET."""
    unlimited = {name: guard_of(view) for name, view in views(whole_app).items() if not is_limited(view)}
    assert unlimited.pop("logout_by_form") is None
    guards = {guard for name, guard in unlimited.items() if OPERATIONS[name].method != "get"}
    assert guards <= {"admin", "operator", "introspector", "client_token"}


# The routes of each operation that has several, in the API, the pages and the administrators' log-in.
DOORS = {
    "add_api_key": "/user/api_keys /account/api-keys",
    "add_passkey": "/passkeys/registration/verify /account/passkeys /account/passkeys/offer",
    "answer_invitation": "/user/invitations/<invitation_id> /organizations/<slug>/join",
    "begin_passkey_sign_in": "/passkeys/authentication/options /sign-in/passkey",
    "change_address": "/user /account/email /account/phone",
    "change_member": "/organizations/<name>/members/<user_id> /account/organizations/<slug>/members/<user_id>",
    "change_organization": "/organizations/<name> /account/organizations/<slug>/name"
    " /account/organizations/<slug>/requirement /account/organizations/<slug>/requirement/age"
    " /account/organizations/<slug>/end /account/organizations/<slug>/sign-in/requirement",
    "change_sign_in": "/organizations/<name>/domains /organizations/<name>/domains/<domain>"
    " /organizations/<name>/providers /organizations/<name>/providers/<provider>"
    " /account/organizations/<slug>/sign-in/domains /account/organizations/<slug>/sign-in/domains/<domain>"
    " /account/organizations/<slug>/sign-in/domains/<domain>/remove /account/organizations/<slug>/sign-in/new/<at>"
    " /account/organizations/<slug>/sign-in/providers/<provider>/change"
    " /account/organizations/<slug>/sign-in/providers/<provider>/<act>",
    "change_user": "/user /account/email /account/name /account/phone /join /new-password",
    "continue_sign_in": "/sign-in/continue /account/passkeys/offer/decline",
    "connect_identity": "/user/identities/authorize /account/connect",
    "create_recovery_codes": "/factors/recovery-codes /factors/recovery-codes/regenerate /account/recovery-codes",
    "decide_authorization": "/oauth/authorizations/<authorization_id>/consent /oauth/consent",
    "delete_user": "/user /account/delete",
    "end_session": "/sessions/<session_id> /account/sessions/end",
    "enrol_factor": "/factors /account/two-step",
    "find_provider": "/sso /sign-in/company",
    "found_organization": "/organizations /account/organizations/new",
    "give_proof": "/reauthenticate /account/confirm /account/confirm/passkey /second-step/passkey",
    "invite": "/admin/invite /invite",
    "invite_member": "/organizations/<name>/invitations /account/organizations/<slug>/invite"
    " /account/organizations/<slug>/invitations/<invitation_id>/again",
    "leave_organization": "/organizations/<name>/members/<user_id> /account/organizations/<slug>/leave"
    " /account/organizations/<slug>/members/<user_id>/remove",
    "log_out": "/logout /account/sessions/end-others /oauth/logout/confirm /sign-out",
    "refresh": "/token /oauth/token",
    "remove": "/factors/<factor_id> /factors/recovery-codes /passkeys/<passkey_id> /user/api_keys/<api_key_id> /account/remove"
    " /user/identities/<identity_id:identity_id> /user/oauth/grants",
    "rename": "/passkeys/<passkey_id> /account/rename",
    "request_confirmation": "/resend /sign-up/code",
    "request_proof": "/reauthenticate /account/confirm/code",
    "request_recovery": "/recover /forgot-password",
    "request_sign_in": "/magiclink /otp /sign-in/code",
    "return_from_provider": "/callback /providers/<name>/callback",
    "sign_in_with_passkey": "/passkeys/authentication/verify /sign-in/passkey/verify",
    "sign_in_with_password": "/token /login-admin /sign-in",
    "sign_up": "/signup /sign-up",
    "verify": "/verify /account/email/verify /account/phone/verify /forgot-password/verify /sign-in/verify"
    " /sign-up/verify",
    "verify_factor": "/factors/<factor_id>/verify /account/two-step/verify /second-step /second-step/key",
    "verify_recovery_code": "/factors/recovery-codes/verify /second-step/recovery",
    "withdraw_invitation": "/organizations/<name>/invitations/<invitation_id>"
    " /account/organizations/<slug>/invitations/<invitation_id>/withdraw",
}
# Statements count the first ones; a function counts the second ones, whose views have no operation of their own.
COUNTED_ELSEWHERE = {"refresh", "invite"}
COUNTED_BY_FUNCTIONS = {
    "request_authorization_silently",
    "fetch_client_document",
    "open_challenge",
    "administer",
    "confirm_administration",
}


def test_two_operations_never_share_a_window_and_all_routes_of_one_do(whole_app):
    routes_by_operation: dict[str, set[str]] = defaultdict(set)
    for rule in whole_app.url_map.iter_rules():
        for operation in route_of(whole_app.view_functions[rule.endpoint]).limits:
            routes_by_operation[operation].add(rule.rule)
    assert {operation: paths for operation, paths in routes_by_operation.items() if len(paths) > 1} == {
        operation: set(paths.split()) for operation, paths in DOORS.items()
    }
    operations = list(chain(*limits.OPERATIONS.values()))
    assert len(operations) == len(set(operations))
    assert {*operations} == {*routes_by_operation} - COUNTED_ELSEWHERE | COUNTED_BY_FUNCTIONS
    assert {f"AUTH_RATE_LIMIT_{name.upper()}" for name in limits.OPERATIONS} <= set(settings.names())


def grants_of(app) -> Mapping[str, Any]:
    """Return the views of the grants of POST /token, also of those that extensions add."""
    return dict(
        chain(
            sign_in.GRANTS.items(), *(each.grants().items() for each in app.extensions[EXTENSION].extensions)
        )
    )


def test_allow_lists_exactly_the_methods_of_a_path(whole_app):
    methods: dict[str, set[str]] = defaultdict(set)
    for rule in whole_app.url_map.iter_rules():
        methods[rule.rule] |= rule.methods or set()
    for path, expected in methods.items():
        response = whole_app.test_client().open(re.sub("<[^>]+>", str(uuid.uuid4()), path), method="TRACE")
        assert (response.status_code, {*response.headers["Allow"].split(", ")}) == (405, expected), (
            f"{path}: if Allow has more methods than its views, another rule matches this path too"
        )


def test_every_grant_is_limited_or_counted_by_its_statement(whole_app):
    counts = {name: route_of(grant).limits for name, grant in grants_of(whole_app).items()}
    assert len(counts) > 3
    assert all(counts.values())
    assert {*chain(*counts.values())} == {*route_of(sign_in.token).limits}
