"""A user as a line of JSON, which `users export` writes and `users import` reads (docs/moving-in.md)."""

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from marshmallow import ValidationError
from marshmallow.fields import List, Nested
from marshmallow.validate import OneOf

from auth.core.text import names
from auth.ops.transfer import InvalidRecord, Loaded, factors
from auth.rules.users import ADDRESS_KINDS
from auth.web import fields
from auth.web.context import Latchkey
from sql import Database, queries

_PAGE = 1000
_PROVIDER = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,63}}|{names.PREFIX}[0-9a-f-]{{36}}")
# marshmallow's messages, reworded to follow the name of a field.
_MESSAGES = {"Unknown field.": "is not a known field", "Missing data for required field.": "is required"}


_Messages = Mapping[str, "_Messages"] | list[str]  # as marshmallow nests them


@dataclass(frozen=True)
class Choices:
    """The options of an import."""

    trust_addresses: bool = False
    allow_admins: bool = False
    without_passwords: bool = False
    without_factors: bool = False


class _Identity(factors.Part):
    provider = fields.Text(required=True)
    subject = fields.Text(required=True)
    identity_data = fields.Metadata(load_default=dict)
    created_at = fields.Timestamp()
    last_sign_in_at = fields.Timestamp()


class _ApiKeyRecord(factors.Part):
    id = fields.Uuid(required=True)
    name = fields.Name(required=True)
    key_mac = fields.KeyMac(required=True)
    scopes = fields.KeyScopes(load_default=list)
    created_at = fields.Timestamp()
    expires_at = fields.Timestamp(allow_none=True)
    aal = fields.Text(validate=OneOf(["aal1", "aal2"]), load_default="aal1")


class _Record(factors.Part):
    id = fields.Uuid()
    email = fields.Email()
    email_verified = fields.Flag()
    email_confirmed_at = fields.Timestamp()
    email_proved = fields.Flag(load_default=True)
    phone = fields.Phone()
    phone_verified = fields.Flag()
    phone_confirmed_at = fields.Timestamp()
    phone_proved = fields.Flag(load_default=True)
    password_hash = fields.Text()
    role = fields.Role(load_default="authenticated")
    user_metadata = fields.Metadata(load_default=dict)
    app_metadata = fields.Metadata(load_default=dict)
    invited_at = fields.Timestamp()
    last_sign_in_at = fields.Timestamp()
    banned_until = fields.Timestamp()
    admin_since = fields.Timestamp()
    created_at = fields.Timestamp()
    identities = List(Nested(_Identity), load_default=list)
    factors = List(Nested(factors.Factor), load_default=list)
    api_keys = List(Nested(_ApiKeyRecord), load_default=list)


_RECORD = _Record()


def export(database: Database, parts: Latchkey, count: Callable[[int], object]) -> Iterator[bytes]:
    """Yield the lines of all users in pages. Call `count` with their number. Raises `CannotOpen`."""
    after = None
    while rows := queries.export_users(database, after=after, page_size=_PAGE):
        yield "".join(f"{_exported(row, parts)}\n" for row in rows).encode()
        count(len(rows))
        after = rows[-1].id


def _exported(row: "queries.ExportUsers", parts: Latchkey) -> str:
    # Postgres has written the rest as JSON.
    record = row.record[:-1]
    if row.factors:
        exported = [factors.exported(factor, parts) for factor in json.loads(row.factors)]
        record += f', "factors": {json.dumps(exported)}'
    if row.api_keys:
        record += f', "api_keys": {row.api_keys}'
    return f"{record}}}"


def row(record: Mapping[str, object], parts: Latchkey, choices: Choices) -> Loaded:
    """Return the JSON of a record's user, factors and API keys. Raises `InvalidRecord` and `UnusableHash`."""
    try:
        user: Loaded = _RECORD.load(record)
    except ValidationError as error:
        raise InvalidRecord("; ".join(_problems(error.normalized_messages()))) from None
    now = datetime.now(UTC).isoformat()
    id, created_at = str(user.get("id") or uuid.uuid4()).lower(), user.get("created_at", now)
    if user["role"] == "admin":
        if not choices.allow_admins:
            raise InvalidRecord("role: is an administrator, which needs --allow-admins")
        user.setdefault("admin_since", now)
    identities = list(_identities(user, id, created_at))
    own_factors = [] if choices.without_factors else _factors(user, id, parts)
    # A customer's provider may not be here.
    has_identity = any(not each["provider"].startswith(names.PREFIX) for each in identities)
    if not has_identity and not any(each["factor_type"] == "passkey" for each in own_factors):
        raise InvalidRecord("has no email, phone, provider identity or passkey")
    password_hash = None
    if user.get("password_hash") and not choices.without_passwords:
        password_hash = parts.passwords.stored_form(user["password_hash"])
    addresses = {"email": user.get("email"), "phone": user.get("phone")}
    for kind in ADDRESS_KINDS:
        addresses |= _confirmation(user, kind, created_at, choices)
    return (
        user
        | addresses
        | {
            "id": id,
            "created_at": created_at,
            "password_hash": password_hash,
            "identities": identities,
            "factors": own_factors,
            "api_keys": list(_api_keys(user, id, created_at, parts)),
        }
    )


def keys(row: Loaded) -> Iterator[str]:
    """Yield the values that must be unique among all users."""
    yield from filter(None, (row["id"], row["email"], row["phone"]))
    for identity in row["identities"]:
        yield f"{identity['provider']} {identity['subject']}"
    for credential_id in credential_ids(row):
        yield f"credential {credential_id}"


def ways_to_sign_in(row: Loaded) -> list[str]:
    """Return what of a row signs its user in or is a step of it, with its age."""
    password = ["password"] if row["password_hash"] else []
    identities = [f"{each['provider']} of {each['created_at']}" for each in row["identities"]]
    own_factors = [f"{each['factor_type']} of {each['verified_at']}" for each in row["factors"]]
    api_keys = [f"API key of {each['created_at']}" for each in row["api_keys"]]
    return password + identities + own_factors + api_keys


def credential_ids(row: Loaded) -> list[str]:
    """Return the ids of the credentials of a row, as Postgres writes them."""
    return [factor["credential_id"] for factor in row["factors"] if "credential_id" in factor]


def _problems(messages: _Messages, path: str = "") -> Iterator[str]:
    if isinstance(messages, Mapping):
        for name, below in messages.items():
            yield from _problems(below, f"{path}.{name}" if path else str(name))
    else:
        yield from (f"{path}: {_MESSAGES.get(message, message)}" for message in messages)


def _confirmation(user: Loaded, kind: str, created_at: str, choices: Choices) -> Loaded:
    verified, confirmed_at = user.get(f"{kind}_verified"), user.get(f"{kind}_confirmed_at")
    if verified is None:
        verified = confirmed_at is not None or choices.trust_addresses
    is_confirmed = kind in user and verified
    return {
        f"{kind}_confirmed_at": (confirmed_at or created_at) if is_confirmed else None,
        f"{kind}_proved": is_confirmed and choices.trust_addresses and user[f"{kind}_proved"],
    }


def _identities(user: Loaded, id: str, created_at: str) -> Iterator[Loaded]:
    by_provider = {identity["provider"]: identity for identity in user["identities"]}
    if len(by_provider) < len(user["identities"]):
        raise InvalidRecord("identities: must be at most one per provider")
    for kind in ADDRESS_KINDS:
        identity = by_provider.pop(kind, {})
        if kind in user:
            data = {"sub": id, kind: user[kind]}
            own = {"provider": kind, "subject": id, "identity_data": data}
            yield {"created_at": created_at} | identity | own
    for identity in by_provider.values():
        if not _PROVIDER.fullmatch(identity["provider"]):
            raise InvalidRecord("identities.provider: must be lower-case letters, digits, - and _")
        data = {"sub": identity["subject"]} | identity["identity_data"]
        yield {"created_at": created_at} | identity | {"identity_data": data}


def _factors(user: Loaded, id: str, parts: Latchkey) -> list[Loaded]:
    for position, factor in enumerate(user["factors"]):
        own_id, rp_id = parts.relying_party.id, factor.get("rp_id")
        if rp_id not in (None, own_id):
            reason = f"is {rp_id}, but credentials only work under {own_id}, unless you use --without-factors"
            raise InvalidRecord(f"factors.{position}.rp_id: {reason}")
        if rp_id and "id" not in user:
            raise InvalidRecord("id: is required, because the credentials contain it")
    rows = [factors.row(factor, id, parts) for factor in user["factors"]]
    unique = [key for row in rows for key in factors.keys(row)]
    if len(set(unique)) < len(unique):
        raise InvalidRecord("factors: two have the same id, name or credential")
    return rows


def _api_keys(user: Loaded, id: str, created_at: str, parts: Latchkey) -> Iterator[Loaded]:
    """Yield the rows of the keys that a secret of this deployment made. Other keys would not work."""
    for key in user["api_keys"]:
        if parts.api_keys.has_key_of(bytes.fromhex(key["key_mac"])):
            yield {"created_at": created_at} | key | {"user_id": id, "key_mac": f"\\x{key['key_mac']}"}
