"""What the typed Supabase clients decode of each answer, from their sources: the members that they demand, and types.

A decoder of these languages gives up the whole response for one member that has another type. Left out are members
that no client reads, and the models that are the same text in all of them.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.answers import A_UUID

Check = Callable[[Any], None]


def text(value: Any) -> None:
    assert type(value) is str, f"not a string: {value!r}"


def number(value: Any) -> None:
    assert type(value) in (int, float), f"not a number: {value!r}"


def whole_number(value: Any) -> None:
    assert type(value) is int, f"not a whole number: {value!r}"


def boolean(value: Any) -> None:
    assert type(value) is bool, f"not a boolean: {value!r}"


def any_object(value: Any) -> None:
    assert type(value) is dict, f"not an object: {value!r}"


def uuid(value: Any) -> None:
    assert value == A_UUID, f"not a UUID: {value!r}"


def url(value: Any) -> None:
    """Foundation makes no URL of an empty string."""
    text(value)
    assert re.fullmatch(r"[^\s<>\"\\^`{|}]+", value), f"not a URL: {value!r}"


def time(value: Any) -> None:
    """ISO 8601, with up to nine digits of a second or none. Swift's format has no offset, so it must be UTC."""
    text(value)
    form = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|\+00:00)"
    assert re.fullmatch(form, value), f"not a time in UTC: {value!r}"


def one_of(*values: str) -> Check:
    def check(value: Any) -> None:
        assert value in values, f"not one of {values}: {value!r}"

    return check


def list_of(item: Check) -> Check:
    def check(value: Any) -> None:
        assert type(value) is list, f"not a list: {value!r}"
        for number, each in enumerate(value):
            _within(str(number), item, each)

    return check


def map_of(item: Check) -> Check:
    def check(value: Any) -> None:
        any_object(value)
        for name, each in value.items():
            _within(name, item, each)

    return check


def model(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Return a check of an object. An optional member may be missing or null."""

    def check(value: Any) -> None:
        any_object(value)
        for name, member in required.items():
            assert value.get(name) is not None, f"{name} is missing"
            _within(name, member, value[name])
        for name, member in (optional or {}).items():
            if value.get(name) is not None:
                _within(name, member, value[name])

    return check


def either(*models: Check) -> Check:
    """Return a check that the first model that fits decides, as a decoder does."""

    def check(value: Any) -> None:
        problems = []
        for each in models:
            try:
                return each(value)
            except AssertionError as error:
                problems.append(str(error))
        raise AssertionError(" and ".join(problems))

    return check


def both(*models: Check) -> Check:
    """Return a check of an object that is decoded twice."""

    def check(value: Any) -> None:
        for each in models:
            each(value)

    return check


def _within(name: str, check: Check, value: Any) -> None:
    try:
        check(value)
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from None


_SENT_TIMES = dict.fromkeys(
    (
        *("confirmation_sent_at", "recovery_sent_at", "email_change_sent_at", "invited_at"),
        *("email_confirmed_at", "phone_confirmed_at", "last_sign_in_at"),
    ),
    time,
)
_USER_TEXTS = dict.fromkeys(("new_email", "action_link", "email", "phone", "role"), text)
_ENROLMENT = {"id": text, "type": text}
_TOTP = model({"qr_code": text, "secret": text, "uri": text})
_LINK_TYPES = one_of("signup", "invite", "magiclink", "recovery", "email_change_current", "email_change_new")
_AUTH_METHODS = one_of("none", "client_secret_basic", "client_secret_post")
_OPTIONS = model({"challenge_id": text, "options": any_object, "expires_at": number})
_ONLY_ID = model({"id": text})


def _swift() -> dict[str, Check]:
    """supabase-swift, Sources/Auth (52eec30c, August 2026): Types.swift, AuthAdmin.swift, AuthMFA.swift, WebAuthn."""
    factor = model(
        {"id": text, "factor_type": text, "status": text, "created_at": time, "updated_at": time},
        {"friendly_name": text},
    )
    identity = model(
        {"id": text, "user_id": uuid, "provider": text},
        {"identity_id": uuid, "identity_data": any_object}
        | dict.fromkeys(("created_at", "last_sign_in_at", "updated_at"), time),
    )
    user = model(
        {"id": uuid, "aud": text, "created_at": time, "updated_at": time},
        {
            **_SENT_TIMES,
            **_USER_TEXTS,
            **{"confirmed_at": time, "app_metadata": any_object, "user_metadata": any_object},
            **{"identities": list_of(identity), "is_anonymous": boolean, "factors": list_of(factor)},
        },
    )
    session = model(
        {"access_token": text, "token_type": text, "expires_in": number, "expires_at": number}
        | {"refresh_token": text, "user": user},
        {"provider_token": text, "provider_refresh_token": text}
        | {"weak_password": model({"reasons": list_of(text)})},
    )
    application = model({"id": uuid, "name": text}, {"uri": url, "logo_uri": url})
    details = model(
        {"authorization_id": text, "redirect_uri": url, "client": application, "scope": text}
        | {"user": model({"id": uuid, "email": text})}
    )
    client = model(
        {"client_id": uuid, "client_name": text, "client_type": text, "token_endpoint_auth_method": text}
        | {"registration_type": text, "redirect_uris": list_of(text), "grant_types": list_of(text)}
        | {"response_types": list_of(text), "created_at": time, "updated_at": time},
        dict.fromkeys(("client_secret", "client_uri", "logo_uri", "scope"), text),
    )
    passkey = model({"id": uuid, "created_at": time}, {"friendly_name": text, "last_used_at": time})
    link = {"action_link": url, "email_otp": text, "hashed_token": text, "redirect_to": url}
    key = model({"kty": text}, {"key_ops": list_of(text)} | dict.fromkeys(("alg", "kid", "crv", "x"), text))
    return {
        "session": session,
        "session or user": either(session, user),
        "session or pending change": either(session, model({"msg": text, "code": text})),
        "user": user,
        "url": model({"url": url}),
        "message id": model({}, {"message_id": text}),
        "enrolled factor": model(_ENROLMENT, {"totp": _TOTP, "friendly_name": text, "phone": text}),
        "challenge": model(
            {"id": text, "type": text, "expires_at": number},
            {"webauthn": model({"type": text, "credential_options": any_object})},
        ),
        "removed factor": _ONLY_ID,
        "passkey options": _OPTIONS,
        "passkey": passkey,
        "passkeys": list_of(passkey),
        "authorization": either(details, model({"redirect_url": url})),
        "consent": model({"redirect_url": url}),
        "grants": list_of(model({"client": application, "scopes": list_of(text), "granted_at": time})),
        "users": model({"users": list_of(user), "aud": text}),
        "link": both(model(link | {"verification_type": text}), user),
        "client": client,
        "clients": model({"clients": list_of(client), "aud": text}),
        "keys": model({"keys": list_of(key)}),
        "claims": model(
            {},
            dict.fromkeys(("iss", "sub", "jti", "role", "aal", "session_id", "email", "phone"), text)
            | dict.fromkeys(("exp", "iat", "nbf"), number)
            | {"aud": either(text, list_of(text))}
            | dict.fromkeys(("app_metadata", "user_metadata"), any_object),
        ),
    }


def _dart() -> dict[str, Check]:
    """supabase-flutter, packages/supabase_auth/lib/src (6969eb38, August 2026): types, auth_*_api.dart."""
    factor = model(
        {"id": text, "created_at": time, "updated_at": time},
        {"friendly_name": text, "factor_type": text, "status": text},
    )
    identity = model(
        {"id": text, "user_id": text, "provider": text},
        {"identity_id": text, "identity_data": any_object}
        | dict.fromkeys(("created_at", "last_sign_in_at", "updated_at"), time),
    )
    user = model(
        {"id": text, "created_at": time},
        {
            **_SENT_TIMES,
            **_USER_TEXTS,
            **{"aud": text, "updated_at": time, "app_metadata": any_object, "user_metadata": any_object},
            **{"identities": list_of(identity), "is_anonymous": boolean, "factors": list_of(factor)},
        },
    )
    session = model(
        {"access_token": text, "token_type": text, "user": user, "expires_in": number, "refresh_token": text},
        {"provider_token": text, "provider_refresh_token": text},
    )
    application = model({"id": text}, dict.fromkeys(("name", "uri", "logo_uri"), text))
    details = model(
        {"authorization_id": text, "redirect_uri": text, "client": application}
        | {"user": model({"id": text, "email": text})},
        {"scope": text},
    )
    # An unknown value of one of these ends in a StateError.
    client = model(
        {
            **{"client_id": text, "client_name": text, "client_type": one_of("public", "confidential")},
            **{"token_endpoint_auth_method": text, "registration_type": one_of("dynamic", "manual")},
            **{"redirect_uris": list_of(text), "response_types": list_of(one_of("code"))},
            **{"grant_types": list_of(one_of("authorization_code", "refresh_token"))},
            **{"created_at": time, "updated_at": time},
        },
        dict.fromkeys(("client_secret", "client_uri", "scope"), text),
    )
    passkey = model({"id": text, "created_at": time}, {"friendly_name": text, "last_used_at": time})
    provider = model(
        {
            **{"id": text, "provider_type": one_of("oauth2", "oidc"), "identifier": text, "name": text},
            **{"client_id": text, "created_at": time, "updated_at": time},
        },
        {
            **dict.fromkeys(("acceptable_client_ids", "scopes", "custom_claims_allowlist"), list_of(text)),
            **dict.fromkeys(("pkce_enabled", "enabled", "email_optional", "skip_nonce_check"), boolean),
            **{"attribute_mapping": any_object, "authorization_params": map_of(text)},
            **{"issuer": text, "discovery_url": text, "jwks_uri": text},
        },
    )
    return {
        "session": session,
        "session or user": either(session, user),
        "session or pending change": either(session, model({}, {"msg": text})),
        "user": user,
        "url": model({"url": text}),
        "message id": model({}, {"message_id": text}),
        "enrolled factor": model({"id": text}, {"totp": _TOTP, "phone": text}),
        "challenge": model({"id": text, "expires_at": number}),
        "removed factor": _ONLY_ID,
        "passkey options": _OPTIONS,
        "passkey": passkey,
        "passkeys": list_of(passkey),
        "authorization": either(model({"redirect_url": text}), details),
        "consent": model({}, {"redirect_url": text}),
        "grants": list_of(model({"client": application, "granted_at": time}, {"scopes": list_of(text)})),
        "users": model({"users": list_of(user)}, {"aud": text}),
        "link": both(model({"verification_type": _LINK_TYPES}), user),
        "client": client,
        "clients": model({"clients": list_of(client)}, {"aud": text, "total": number}),
        "factors": list_of(factor),
        "provider": provider,
        "providers": model({"providers": list_of(provider)}),
        "claims": model({"amr": list_of(model({"timestamp": number}, {"method": text}))}),
    }


def _kotlin() -> dict[str, Check]:
    """supabase-kt, Auth (dbe9ba2c, August 2026), whose other models the tests of the package itself decode."""
    # A value that an enumeration lacks ends in a SerializationException.
    client = model(
        {"client_id": text, "client_name": text},
        {
            **dict.fromkeys(("client_secret", "client_uri", "logo_uri", "scope"), text),
            **{"client_type": one_of("public", "confidential"), "redirect_uris": list_of(text)},
            **{"grant_types": list_of(one_of("authorization_code", "refresh_token"))},
            **{"response_types": list_of(one_of("code")), "token_endpoint_auth_method": _AUTH_METHODS},
            **{"registration_type": one_of("dynamic", "manual"), "created_at": text, "updated_at": text},
        },
    )
    application = model({"id": text, "name": text}, {"uri": text, "logo_uri": text})
    details = model(
        {"authorization_id": text, "redirect_uri": text, "client": application, "scope": text}
        | {"user": model({"id": text, "email": text})}
    )
    return {
        "authorization": either(details, model({"redirect_url": text})),
        "consent": model({"redirect_url": text}),
        "grants": list_of(model({"client": application, "scopes": list_of(text), "granted_at": time})),
        "client": client,
        "clients": model({}, {"clients": list_of(client)}),
    }


MODELS = {"Swift": _swift(), "Dart": _dart(), "Kotlin": _kotlin()}


def swift_pages(link: str) -> dict[str, int]:
    """Return the pages that supabase-swift reads of the header Link; it ends the application if a part is missing."""
    pages = {}
    for each in link.split(","):
        parts = each.split(";")
        digits = re.match(r"\d*", parts[0].split("=")[1])
        relation = parts[1].split("=")[1]
        if digits and digits[0]:
            pages[relation.strip('"') if re.fullmatch(r'"\w+"', relation) else relation] = int(digits[0])
    return pages


def dart_pages(link: str) -> dict[str, int]:
    found = re.findall(r'<[^>]*[?&]page=(\d+)[^>]*>\s*;\s*rel="([^"]+)"', link)
    return {relation: int(page) for page, relation in found}
