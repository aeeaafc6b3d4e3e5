"""Errors for clients: the table, the exception and the envelope."""

from collections.abc import Mapping
from typing import Any, TypeVar

from flask import Response, json

from auth.web import g
from auth.web.application import JsonResponse

T = TypeVar("T")
# The realm of challenges in WWW-Authenticate (RFC 9110, section 11.5).
REALM = 'realm="latchkey"'
# Errors of RFC 6749 and RFC 6750 by error_code or HTTP status. Any other is `invalid_request`.
_OAUTH_ERRORS: dict[str | int, str] = {
    "hook_refused": "access_denied",
    "insufficient_scope": "insufficient_scope",
    401: "invalid_token",
    403: "access_denied",
    429: "temporarily_unavailable",
    500: "server_error",
    503: "temporarily_unavailable",
}
_WRONG_CODES = "Too many wrong codes; sign in with an emailed link, try another way or network, or wait"
# HTTP status and message by error_code. A prefix marks a context with another status or message:
# `refresh.user_banned` has error_code `user_banned`.
ERRORS = {
    "bad_json": (400, "The body couldn't be read"),
    "validation_failed": (400, "The request is not valid"),
    "email.validation_failed": (400, "Unable to validate email address: invalid format"),
    "phone.validation_failed": (400, "Invalid phone number format (E.164 required)"),
    "country.validation_failed": (400, "SMS can't be sent to this country"),
    "user_metadata.validation_failed": (400, "User metadata is too large"),
    "app_metadata.validation_failed": (400, "App metadata is too large"),
    "reauthentication.validation_failed": (
        422,
        "Reauthentication requires the user to have an email or a phone number",
    ),
    "anonymous.validation_failed": (
        422,
        "Updating password of an anonymous user without an email or phone is not allowed",
    ),
    "email_by_key.validation_failed": (
        400,
        "An administrative key has set this email: give {user} another one, or delete the user, first",
    ),
    "phone_by_key.validation_failed": (
        400,
        "An administrative key has set this phone: remove it from {user}, or delete the user, first",
    ),
    "all_by_key.validation_failed": (
        400,
        "Administrative keys have set all that signs this user in: delete {user} first",
    ),
    "client.validation_failed": (400, "{problem}"),
    "webhooks.validation_failed": (400, "Webhook limit reached"),
    "admin_keys.validation_failed": (400, "The limit of {most} administrative keys is reached"),
    "disabled_webhook.validation_failed": (400, "The webhook is disabled"),
    "undue.validation_failed": (
        409,
        "This message isn't needed: the address is confirmed, taken or removed, or the user is banned",
    ),
    "message.validation_failed": (409, "This message can't be sent again: {why}"),
    "template.validation_failed": (409, "AUTH_MAIL_TEMPLATES has a template that can't be rendered: {why}"),
    "stale.validation_failed": (409, "This has changed since you opened it"),
    "issuer.validation_failed": (400, "The request is not valid"),
    "tenant.validation_failed": (400, "The request is not valid"),
    "unreachable.validation_failed": (400, "The request is not valid"),
    "redirect_uri.validation_failed": (409, "This is not the next provider's redirect URI"),
    "not_found": (404, "Path not found"),
    "slash.not_found": (404, "Path not found. Leave out the last slash: {path}"),
    "device.not_found": (404, "Session not found"),
    "webhook.not_found": (404, "Webhook or delivery not found"),
    "admin_key.not_found": (404, "Administrative key not found"),
    "message.not_found": (404, "Message not found"),
    "method_not_allowed": (405, "This path doesn't support this method"),
    "request_entity_too_large": (413, "The body is larger than {most} KiB"),
    "url.request_entity_too_large": (414, "The path and query are too long"),
    "headers.request_entity_too_large": (431, "The headers are too large"),
    "http.validation_failed": (400, "The request is not valid HTTP"),
    "unsupported_media_type": (415, "The body must be JSON"),
    "form.unsupported_media_type": (415, "The body must be a form or JSON"),
    "no_authorization": (401, "This endpoint requires a valid Bearer token"),
    "bad_jwt": (401, "invalid JWT: unable to parse or verify signature"),
    "expired.bad_jwt": (401, "invalid JWT: unable to parse or verify signature: it has expired"),
    "malformed.bad_jwt": (401, "invalid JWT: unable to parse or verify signature: it is malformed"),
    "api_key.bad_jwt": (
        401,
        "This is an API key: exchange it at POST /token?grant_type=api_key for an access token",
    ),
    "service_role.bad_jwt": (401, "The service role key is invalid"),
    "admin_key.bad_jwt": (401, "The administrative key is unknown, ended or expired"),
    "session_not_found": (401, "Your session has ended. Please sign in again."),
    "session_expired": (401, "Your session has expired. Please sign in again."),
    "caller.user_not_found": (401, "The user of this access token no longer exists"),
    "user_banned": (403, "User is banned"),
    "insufficient_aal": (403, "This needs a second factor: verify yours, or enrol one"),
    "undo.insufficient_aal": (403, "This needs a second factor that is older than seven days"),
    "not_admin": (403, "Only administrators can do this"),
    "sign_in.not_admin": (403, "Only administrators can sign in here"),
    "insufficient_permissions": (403, "Only the service role key can do this"),
    "target.insufficient_permissions": (403, "Only the service role key can change an administrator"),
    "role.insufficient_permissions": (403, "Only the service role key can set a role"),
    "origin_not_allowed": (403, "This request came from a page of another site"),
    "form.insufficient_permissions": (403, "This form was sent from another site"),
    "cookie.insufficient_permissions": (403, "This form was sent without the cookie of its page"),
    "reauthentication_needed": (400, "This needs reauthentication"),
    "code.reauthentication_needed": (400, "This needs reauthentication with a code"),
    "mfa.reauthentication_needed": (400, "This needs reauthentication with a factor"),
    "organization.reauthentication_needed": (403, "This organization needs a more recent sign-in"),
    "reauthentication_not_valid": (400, "The code is wrong or has expired"),
    "current_password_invalid": (400, "The current password is wrong"),
    "invalid_credentials": (401, "Invalid login credentials"),
    "email_not_confirmed": (403, "Email not confirmed"),
    "phone_not_confirmed": (403, "Phone not confirmed"),
    "unsupported_grant_type": (400, "Unsupported grant type"),
    "signup_disabled": (403, "Signups not allowed for this instance"),
    "email_address_not_authorized": (422, "Signups with this address are not allowed"),
    "email_provider_disabled": (400, "{doing} by email is disabled"),
    "phone_provider_disabled": (400, "{doing} by phone is disabled"),
    "anonymous_provider_disabled": (422, "Anonymous sign-ins are disabled"),
    "saml_provider_disabled": (404, "SAML 2.0 is disabled"),
    "both.validation_failed": (400, "Only one of provider_id or domain supported"),
    "none.validation_failed": (400, "A provider_id or domain needs to be provided"),
    "oauth2.validation_failed": (400, "Only providers of type oidc are supported"),
    "sso_provider_not_found": (404, "No SSO provider assigned for this domain"),
    "id.sso_provider_not_found": (404, "No such SSO provider"),
    "sso_provider_disabled": (404, "This SSO provider is disabled"),
    "owner.sso_provider_disabled": (403, "The operator of this service has disabled this provider"),
    "user_sso_conflict": (
        422,
        "A user with this address signs in another way. Ask an administrator to move the account",
    ),
    "pressed.user_sso_conflict": (422, "The provider signed in somebody else"),
    "admin.user_sso_conflict": (422, "Administrators can't sign in with a customer's provider"),
    "customer.email_address_not_authorized": (422, "This provider doesn't sign in this address"),
    "customer.manual_linking_disabled": (404, "Users can't link or unlink a customer's provider"),
    "custom_provider_not_found": (404, "Custom provider not found"),
    "conflict": (400, "Another provider has this {what}"),
    "admin_key.conflict": (400, "Another key has this name"),
    "sso.feature_disabled": (404, "Customers' providers are disabled"),
    "organizations.feature_disabled": (404, "Organizations are disabled"),
    "organization_not_found": (404, "Organization not found"),
    "invitation_not_found": (404, "Invitation not found"),
    "member.user_not_found": (404, "This user is not a member"),
    "organization.insufficient_permissions": (403, "Your role in this organization doesn't allow this"),
    "founder.insufficient_permissions": (403, "Only the service role key can create an organization"),
    "last_owner": (409, "An organization keeps an owner; make another member an owner first"),
    "already_member": (409, "This address belongs to a member already; change the member's role"),
    "slug_exists": (409, "An organization with this short name already exists"),
    "organization_sign_in_needed": (403, "This organization needs a session that its own provider opened"),
    "own_sign_in_required": (
        409,
        "This is the only way in while the own sign-in is required; lift that first",
    ),
    "provider_not_tried": (403, "Sign in with this provider first, as it is set up now"),
    "domain_not_found": (404, "This organization doesn't name this domain"),
    "domain_not_proved": (422, "This organization hasn't proved this domain"),
    "absent.domain_not_proved": (422, "The TXT record of this domain is not there"),
    "gone.domain_not_proved": (422, "The TXT record of this domain is no longer there"),
    "other.domain_not_proved": (422, "The TXT record of this domain has another value"),
    "misplaced.domain_not_proved": (422, "The TXT record of this domain is at another name"),
    "machine.domain_not_proved": (422, "Here, only a TXT record proves a domain"),
    "unanswered.domain_not_proved": (422, "The name servers of this domain don't answer"),
    "too_many_domains": (422, "Domain limit reached"),
    "too_many_providers": (422, "Provider limit reached"),
    "too_many_organizations": (422, "Organization limit reached"),
    "too_many_memberships": (422, "Membership limit reached"),
    "too_many_invitations": (422, "Invitation limit reached"),
    "web3_provider_disabled": (422, "Web3 provider is disabled"),
    "manual_linking_disabled": (404, "Manual linking is disabled"),
    "weak_password": (422, "Password should {requirement}."),
    "admin.weak_password": (400, "Password should {requirement}."),
    "same_password": (422, "New password should be different from the old password."),
    "user_already_exists": (409, "User already registered"),
    "id.user_already_exists": (409, "A user with this id already exists"),
    "refresh.refresh_token_not_found": (400, "Invalid Refresh Token: Refresh Token Not Found"),
    "refresh.refresh_token_already_used": (400, "Invalid Refresh Token: Already Used"),
    "refresh.session_expired": (400, "Invalid Refresh Token: the session has expired"),
    "refresh.user_banned": (400, "Invalid Refresh Token: this user is banned"),
    "otp_expired": (403, "Token has expired or is invalid"),
    "device.otp_expired": (403, "The code is wrong or has expired"),
    "flow_state_not_found": (404, "The authorization code is invalid, expired or already used"),
    "bad_code_verifier": (400, "The code verifier does not match the code challenge"),
    "user_not_found": (404, "User not found"),
    "email.user_not_found": (404, "No user has this email address"),
    "email_exists": (409, "A user with this email address has already been registered"),
    "phone_exists": (409, "A user with this phone number has already been registered"),
    "identity_not_found": (404, "Identity not found"),
    "single_identity_not_deletable": (422, "This would remove the last way to sign in"),
    "feature_disabled": (404, "OAuth server is disabled"),
    "admin_key.insufficient_scope": (403, "This administrative key may not do this"),
    "insufficient_scope": (403, "Access tokens of applications and API keys may not do this"),
    "openid.insufficient_scope": (403, "This requires the scope openid"),
    "oauth_client_not_found": (404, "OAuth client not found"),
    "authorize.oauth_client_not_found": (400, "invalid client_id"),
    "oauth_authorization_not_found": (404, "authorization not found"),
    "cookie.oauth_authorization_not_found": (404, "authorization not found"),
    "oauth_consent_not_found": (404, "No active grant found for this client"),
    "oauth_dynamic_client_registration_disabled": (403, "Dynamic client registration is disabled"),
    "last_administrator": (409, "This is the last administrator; make another user an administrator first"),
    "passkey_disabled": (404, "Passkeys are disabled"),
    "too_many_passkeys": (422, "Passkey limit reached"),
    "api_keys_disabled": (404, "API keys are disabled"),
    "api_key_not_found": (404, "API key not found"),
    "too_many_api_keys": (422, "API key limit reached"),
    "key.invalid_credentials": (401, "The API key is unknown, removed or expired"),
    "key.session_not_found": (401, "The API key of this access token has been removed or has expired"),
    "webauthn_challenge_not_found": (400, "The challenge is unknown or already used"),
    "webauthn_challenge_expired": (400, "The challenge has expired"),
    "webauthn_verification_failed": (400, "The passkey or security key could not be verified"),
    "unknown.webauthn_verification_failed": (400, "This passkey is not registered here"),
    "removed.webauthn_verification_failed": (400, "The passkey or security key could not be verified"),
    "webauthn_credential_exists": (409, "This passkey or security key is already registered"),
    "webauthn_credential_not_found": (404, "Passkey not found"),
    "oauth_provider_not_supported": (400, "This provider is not set up"),
    "provider_disabled": (400, 'Provider (issuer "{issuer}") is not enabled'),
    "bad_oauth_state": (
        400,
        "This sign-in has expired, is already finished, or was started in another browser",
    ),
    "bad_oauth_callback": (400, "The provider didn't sign you in"),
    "unreachable.bad_oauth_callback": (400, "The provider can't be reached; try again shortly"),
    "id_token.bad_oauth_callback": (400, "Bad ID token"),
    "identity_already_exists": (
        409,
        "This identity belongs to another user, or the user already has one from this provider",
    ),
    "mfa_factor_not_found": (404, "Factor not found"),
    "mfa_factor_name_conflict": (422, "A factor with this name already exists"),
    "too_many_enrolled_mfa_factors": (422, "Factor limit reached"),
    "mfa_totp_enroll_not_enabled": (422, "MFA enroll is disabled for TOTP"),
    "mfa_webauthn_enroll_not_enabled": (422, "MFA enroll is disabled for WebAuthn"),
    "mfa_phone_enroll_not_enabled": (422, "MFA enroll is disabled for Phone"),
    "mfa_challenge_expired": (422, "The challenge is unknown, used or expired; start over"),
    "mfa_verification_failed": (422, "Invalid TOTP code entered"),
    "recovery.mfa_verification_failed": (422, "The recovery code is wrong or already used"),
    "mfa_recovery_codes_sole_factor": (422, "Add an authenticator app, a security key or a passkey first"),
    "mfa_verified_factor_exists": (422, "There are recovery codes already; regenerate them"),
    "mfa_recovery_codes_locked": (429, _WRONG_CODES),
    "factor.over_request_rate_limit": (429, _WRONG_CODES),
    "over_request_rate_limit": (429, "Too many requests; try again later"),
    "sign_in.over_request_rate_limit": (
        429,
        "Too many failed sign-ins; try again later, or sign in with a link",
    ),
    "over_email_send_rate_limit": (429, "Too many messages; try again later"),
    "invited.over_email_send_rate_limit": (429, "Too many messages; try again later"),
    "invitations.over_email_send_rate_limit": (429, "Too many messages; try again later"),
    "over_sms_send_rate_limit": (429, "Too many messages; try again later"),
    "captcha_failed": (400, "captcha protection: request disallowed ({codes})"),
    "hook_refused": (500, "{message}"),
    "hook_failed": (503, "The service isn't available right now; try again shortly"),
    "unexpected_failure": (500, "Something went wrong on our side; the request ID is {request_id}"),
    "service_unavailable": (503, "The service isn't available right now; try again shortly"),
    "messages.service_unavailable": (503, "Too many messages; try again later"),
    "hashing.service_unavailable": (503, "Too many sign-ins at once; try again shortly"),
    "provider.service_unavailable": (503, "The provider can't be reached; try again shortly"),
}


class ApiError(Exception):
    """An error of `ERRORS`; a `status` replaces its own. `members` are added to the envelope, `values`
    formatted into the message. The log gives the `reason`, if the response hides it.

    With a `rule` among the values, forms of the console show its label about the `field` instead.
    """

    def __init__(
        self,
        key: str,
        details: str | None = None,
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, object] | None = None,
        reason: str | None = None,
        **values: str,
    ) -> None:
        self.key = key
        own_status, message = ERRORS[key]
        self.status = status or own_status
        self.error_code = key.rpartition(".")[2]
        self.reason = reason or self.error_code
        self.msg = message.format(**values)
        self.values = values
        self.details = details
        self.headers = headers or {}
        self.members = members or {}
        super().__init__(self.msg)


def unavailable(key: str = "service_unavailable") -> ApiError:
    """Return a 503 that asks the client to retry in two seconds."""
    return ApiError(key, headers={"Retry-After": "2"})


def found(row: T | None, key: str) -> T:
    """Return a row. Refuse None with the error of a key."""
    if row is None:
        raise ApiError(key)
    return row


def oauth_members(error: ApiError) -> dict[str, str]:
    """Return the members of an error that OAuth clients read (RFC 6749, sections 4.1.2.1 and 5.2)."""
    name = _OAUTH_ERRORS.get(error.error_code) or _OAUTH_ERRORS.get(error.status, "invalid_request")
    return {"error": name, "error_description": error.details or error.msg}


def envelope(error: ApiError) -> Response:
    """Return the response of an error, and note the reason for the log."""
    g.refused_because = error.reason
    body: dict[str, Any] = {"code": error.status, "msg": error.msg}
    body |= {"details": error.details} if error.details else {}
    body |= {"error_code": error.error_code, **error.members}
    response = JsonResponse(json.dumps(body), error.status)
    response.headers.extend(error.headers)
    if error.status == 401:
        response.headers["WWW-Authenticate"] = bearer_challenge(error)
    return response


def bearer_challenge(error: ApiError) -> str:
    """Return how to authenticate (RFC 6750, section 3), with an `error` only about a token that was sent."""
    if error.error_code in ("no_authorization", "invalid_credentials", "hook_refused"):
        return f"Bearer {REALM}"
    name = "insufficient_scope" if error.status == 403 else "invalid_token"
    return f'Bearer {REALM}, error="{name}"'
