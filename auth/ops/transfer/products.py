"""Translates users from the exports of other products into records (see records.py).

`app_metadata` keeps the user's id there. If it is a UUID, it is also the id here.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from auth.core.passwords import legacy
from auth.core.passwords.legacy import UnusableHash
from auth.core.settings.presets import ALIASES
from auth.ops.transfer import InvalidRecord

ForeignUser = Mapping[str, Any]
Record = dict[str, Any]

FOREVER = "9999-12-31T23:59:59+00:00"
_TIMES = ("created_at", "last_sign_in_at")
_NOT_EXTERNAL = {"auth0", "email", "sms", "password", "phone"}
_HAS_ZONE = re.compile(r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$")


def detect(user: ForeignUser) -> str:
    """Return the name of the product that wrote an entry, or `latchkey`."""
    return next((product for product, is_its in _MARKS.items() if is_its(user)), "latchkey")


def auth0(user: ForeignUser, _hash_config: Mapping[str, str]) -> Record:
    identifiers = {each["type"]: each for each in user.get("identifiers", [])}
    email = identifiers.get("email", {})
    hash_only_id = user.get("alt_id") or user.get("_id", {}).get("$oid")
    id = user.get("user_id") or (hash_only_id and f"auth0|{hash_only_id}")
    custom = user.get("custom_password_hash") or {}
    return {
        "email": user.get("email") or email.get("value"),
        "email_verified": user.get("email_verified", email.get("verified", False)),
        "phone": user.get("phone_number"),
        "phone_verified": user.get("phone_verified", False),
        "password_hash": user.get("passwordHash")
        or user.get("password_hash")
        or custom.get("hash", {}).get("value"),
        "user_metadata": _named(user.get("user_metadata"), user.get("name"), user.get("picture")),
        "app_metadata": {**(user.get("app_metadata") or {}), "auth0_id": id},
        "banned_until": FOREVER if user.get("blocked") in (True, "true") else None,
        "created_at": _moment(user.get("created_at")),
        "last_sign_in_at": _moment(user.get("last_login")),
        "identities": [
            _identity(each["provider"], each["user_id"], each.get("profileData"))
            for each in user.get("identities", [])
            if each["provider"] not in _NOT_EXTERNAL
        ],
    }


def firebase(user: ForeignUser, hash_config: Mapping[str, str]) -> Record:
    value = user.get("passwordHash")
    if value and not hash_config:
        raise UnusableHash("password_hash: needs the project's hash parameters, --firebase-hash-config")
    return {
        "email": user.get("email"),
        "email_verified": user.get("emailVerified", False),
        "phone": user.get("phoneNumber"),
        "phone_verified": bool(user.get("phoneNumber")),
        "password_hash": value and legacy.from_firebase(value, user.get("salt", ""), hash_config),
        "user_metadata": _named({}, user.get("displayName"), user.get("photoUrl")),
        "app_metadata": json.loads(user.get("customAttributes") or "{}") | {"firebase_id": user["localId"]},
        "banned_until": FOREVER if user.get("disabled") else None,
        "created_at": _moment(user.get("createdAt")),
        "last_sign_in_at": _moment(user.get("lastSignedInAt") or user.get("lastLoginAt")),
        "identities": [
            _identity(each["providerId"].removesuffix(".com"), each["rawId"], each)
            for each in user.get("providerUserInfo", [])
            if each["providerId"] not in _NOT_EXTERNAL
        ],
    }


def supabase(user: ForeignUser, _hash_config: Mapping[str, str]) -> Record:
    if user.get("deleted_at"):
        raise InvalidRecord("was deleted in Supabase")
    phone, app_metadata = user.get("phone"), user.get("raw_app_meta_data") or {}
    same = ("email_confirmed_at", "phone_confirmed_at", "banned_until", "invited_at", *_TIMES)
    moments = {name: _moment(user.get(name)) for name in same}
    return moments | {
        "id": user["id"],
        "email": user.get("email") or None,
        "email_verified": moments["email_confirmed_at"] is not None,
        "phone": f"+{phone.lstrip('+')}" if phone else None,
        "phone_verified": moments["phone_confirmed_at"] is not None,
        "password_hash": user.get("encrypted_password") or None,
        "role": user.get("role") or None,
        "user_metadata": user.get("raw_user_meta_data") or {},
        "app_metadata": {
            name: value for name, value in app_metadata.items() if name not in ("provider", "providers")
        },
        "identities": [
            # Before 2023 the subject was the id of the row.
            _identity(
                each["provider"],
                each.get("provider_id") or (each.get("identity_data") or {}).get("sub") or each["id"],
                each.get("identity_data"),
            )
            | {name: _moment(each.get(name)) for name in _TIMES}
            for each in user.get("identities") or []
            if each["provider"] not in _NOT_EXTERNAL
        ],
    }


def keycloak(user: ForeignUser, _hash_config: Mapping[str, str]) -> Record:
    if user.get("serviceAccountClientId"):
        raise InvalidRecord("is a service account")
    hashes = [each for each in user.get("credentials", []) if each["type"] == "password"]
    lists = (user.get("attributes") or {}).items()
    attributes = {name: values[0] if len(values) == 1 else values for name, values in lists}
    name = " ".join(filter(None, [user.get("firstName"), user.get("lastName")]))
    is_named = user.get("username") and user["username"] != (user.get("email") or "").lower()
    username = {"username": user["username"]} if is_named else {}
    roles = {"roles": user["realmRoles"]} if user.get("realmRoles") else {}
    return {
        "id": user.get("id"),
        "email": user.get("email"),
        "email_verified": user.get("emailVerified", False),
        "password_hash": legacy.from_keycloak(hashes[0]) if hashes else None,
        "user_metadata": _named(attributes | username, name, None),
        "app_metadata": roles,
        "banned_until": None if user.get("enabled", True) else FOREVER,
        "created_at": _moment(user.get("createdTimestamp")),
        "identities": [
            _identity(each["identityProvider"], each["userId"], {"name": each.get("userName")})
            for each in user.get("federatedIdentities", [])
        ],
    }


def django(entry: ForeignUser, _hash_config: Mapping[str, str]) -> Record:
    user = entry["fields"]
    password = user["password"]
    name = " ".join(filter(None, [user.get("first_name"), user.get("last_name")]))
    username = {"username": user["username"]} if user.get("username") else {}
    flags = {flag: True for flag in ("is_staff", "is_superuser") if user.get(flag)}
    return {
        "email": user.get("email") or None,
        # An exclamation mark stands for no password.
        "password_hash": None if password.startswith("!") else password or None,
        "user_metadata": _named(username, name, None),
        "app_metadata": {"django_id": entry["pk"], **flags},
        "banned_until": None if user.get("is_active", True) else FOREVER,
        "created_at": _moment(user.get("date_joined")),
        "last_sign_in_at": _moment(user.get("last_login")),
    }


def latchkey(user: ForeignUser, _hash_config: Mapping[str, str]) -> Record:
    record = dict(user)
    name, metadata = record.pop("name", None), record.get("user_metadata") or {}
    if name and isinstance(metadata, Mapping):
        record["user_metadata"] = _named(metadata, name, None)
    return record


def wordpress(user: ForeignUser, _hash_config: Mapping[str, str]) -> Record:
    roles = user.get("roles") or []
    roles = roles.split(",") if isinstance(roles, str) else roles
    registered = user.get("user_registered")
    has_date = registered and not registered.startswith("0000")
    return {
        "email": user.get("user_email") or None,
        "password_hash": user.get("user_pass") or None,
        "user_metadata": _named({"username": user["user_login"]}, user.get("display_name"), None),
        "app_metadata": {"wordpress_id": int(user["ID"])} | ({"roles": roles} if roles else {}),
        "created_at": _moment(registered) if has_date else None,
    }


PRODUCTS: Mapping[str, Callable[[ForeignUser, Mapping[str, str]], Record]] = {
    "latchkey": latchkey,
    "auth0": auth0,
    "firebase": firebase,
    "supabase": supabase,
    "keycloak": keycloak,
    "django": django,
    "wordpress": wordpress,
}
_MARKS: Mapping[str, Callable[[ForeignUser], bool]] = {
    "firebase": lambda user: "localId" in user,
    "supabase": lambda user: "encrypted_password" in user or "raw_user_meta_data" in user,
    "django": lambda user: {"model", "fields"} <= user.keys(),
    "wordpress": lambda user: "user_login" in user,
    "keycloak": lambda user: "username" in user and ("credentials" in user or "createdTimestamp" in user),
    "auth0": lambda user: "passwordHash" in user or "|" in str(user.get("user_id", "")),
}


def _identity(provider: str, subject: object, data: Mapping[str, object] | None) -> Record:
    provider, subject = provider.lower(), str(subject)
    names_of = {
        "name": ("name", "displayName"),
        "email": ("email",),
        "avatar_url": ("avatar_url", "photoUrl"),
    }
    values = {
        key: next((text for name in names if isinstance(text := (data or {}).get(name), str) and text), None)
        for key, names in names_of.items()
    }
    return {
        "provider": ALIASES.get(provider, provider),
        "subject": subject,
        "identity_data": {"sub": subject} | {key: value for key, value in values.items() if value},
    }


def _named(metadata: Mapping[str, object] | None, name: str | None, picture: str | None) -> Record:
    members = {"name": name, "avatar_url": picture}
    return {key: value for key, value in members.items() if value} | dict(metadata or {})


def _moment(value: str | int | None) -> str | None:
    """Return a time in ISO 8601. Numbers are milliseconds of Unix time; times without a zone are in UTC."""
    if value in (None, ""):
        return None
    if isinstance(value, int) or str(value).isdecimal():
        return datetime.fromtimestamp(int(value) / 1000, UTC).isoformat()
    return value if _HAS_ZONE.search(value) else f"{value}+00:00"
