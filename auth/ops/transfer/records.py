"""A user as a line of JSON, which `users export` writes and `users import` reads (docs/moving-in.md)."""

import json
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError
from marshmallow.fields import List, Nested
from marshmallow.validate import OneOf

from auth.ops.transfer import factors
from auth.rules.users import ADDRESS_KINDS
from auth.web import fields
from auth.web.context import Latchkey
from auth.web.schemas import AdminInput
from sql import Database, queries

_PAGE = 1000
_PROVIDER = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# marshmallow's messages, reworded to follow the name of a field.
_MESSAGES = {"Unknown field.": "is not a known field", "Missing data for required field.": "is required"}
_TIMES = ("invited_at", "last_sign_in_at", "banned_until", "admin_since")


class InvalidRecord(ValueError):
    """The message is for operators."""


@dataclass(frozen=True)
class Choices:
    """The options of an import."""

    trust_addresses: bool = False
    allow_admins: bool = False
    without_passwords: bool = False
    without_factors: bool = False


class _Identity(AdminInput):
    provider = fields.Text(required=True)
    subject = fields.Text(required=True)
    identity_data = fields.Metadata(load_default=dict)
    created_at = fields.Timestamp()
    last_sign_in_at = fields.Timestamp()


class _ApiKey(AdminInput):
    id = fields.Uuid(required=True)
    name = fields.KeyName(required=True)
    key_mac = fields.KeyMac(required=True)
    scopes = fields.KeyScopes(load_default=list)
    created_at = fields.Timestamp()
    expires_at = fields.Timestamp(allow_none=True)
    # Exports of 0.3.0 do not contain the level.
    aal = fields.Text(validate=OneOf(["aal1", "aal2"]), load_default="aal1")


class _Record(AdminInput):
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
    api_keys = List(Nested(_ApiKey), load_default=list)


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


def row(record: dict[str, Any], parts: Latchkey, choices: Choices) -> dict[str, Any]:
    """Return the row to insert for a record. Raises `InvalidRecord` and `UnusableHash`."""
    user = _validated(record)
    id = str(user.get("id") or uuid.uuid4()).lower()
    created_at = user.get("created_at") or datetime.now(UTC)
    if user["role"] == "admin" and not choices.allow_admins:
        raise InvalidRecord("role: is an administrator, which needs --allow-admins")
    made: dict[str, Any] = {"id": id, "created_at": created_at.isoformat(), "role": user["role"]}
    for kind in ADDRESS_KINDS:
        confirmed_at, is_proved = _confirmation(user, kind, created_at, choices)
        made |= {kind: user.get(kind), f"{kind}_confirmed_at": confirmed_at, f"{kind}_proved": is_proved}
    made["identities"] = list(_identities(user, id, created_at))
    made["factors"] = [] if choices.without_factors else _factors(user, id, parts)
    made["api_keys"] = list(_api_keys(user, id, created_at, parts))
    if not made["identities"] and not any(each["factor_type"] == "passkey" for each in made["factors"]):
        raise InvalidRecord("has no email, phone, provider identity or passkey")
    made |= {name: _text(user.get(name)) for name in _TIMES}
    if user["role"] == "admin":
        made["admin_since"] = made["admin_since"] or datetime.now(UTC).isoformat()
    made |= {name: user[name] for name in ("user_metadata", "app_metadata")}
    made["password_hash"] = None
    if user.get("password_hash") and not choices.without_passwords:
        made["password_hash"] = parts.passwords.stored_form(user["password_hash"])
    return made


def keys(made: dict[str, Any]) -> Iterator[str]:
    """Yield the values that must be unique among all users."""
    for name in ("id", *ADDRESS_KINDS):
        if made[name]:
            yield made[name]
    for identity in made["identities"]:
        yield f"{identity['provider']} {identity['subject']}"
    for credential_id in credential_ids(made):
        yield f"credential {credential_id}"


def credential_ids(made: dict[str, Any]) -> list[str]:
    """Return the ids of the credentials of a row, as Postgres writes them."""
    return [factor["credential_id"] for factor in made["factors"] if "credential_id" in factor]


def _validated(record: dict[str, Any]) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = _RECORD.load(record)
    except ValidationError as error:
        raise InvalidRecord("; ".join(_problems(error.normalized_messages()))) from None
    return loaded


def _problems(messages: Any, path: str = "") -> Iterator[str]:
    if isinstance(messages, dict):
        for name, below in messages.items():
            yield from _problems(below, f"{path}.{name}" if path else str(name))
    else:
        yield from (f"{path}: {_MESSAGES.get(message, message)}" for message in messages)


def _confirmation(
    user: dict[str, Any], kind: str, created_at: datetime, choices: Choices
) -> tuple[str | None, bool]:
    verified, confirmed_at = user.get(f"{kind}_verified"), user.get(f"{kind}_confirmed_at")
    if verified is None:
        verified = confirmed_at is not None or choices.trust_addresses
    if kind not in user or not verified:
        return None, False
    return _text(confirmed_at or created_at), choices.trust_addresses and user[f"{kind}_proved"]


def _identities(user: dict[str, Any], id: str, created_at: datetime) -> Iterator[dict[str, Any]]:
    given = {identity["provider"]: identity for identity in user["identities"]}
    if len(given) < len(user["identities"]):
        raise InvalidRecord("identities: must be at most one per provider")
    for kind in ADDRESS_KINDS:
        known = given.pop(kind, {})
        if kind in user:
            yield _identity(
                {**known, "provider": kind, "subject": id, "identity_data": {"sub": id, kind: user[kind]}},
                created_at,
            )
    for identity in given.values():
        if not _PROVIDER.fullmatch(identity["provider"]):
            raise InvalidRecord("identities.provider: must be lower-case letters, digits, - and _")
        data = {"sub": identity["subject"]} | identity["identity_data"]
        yield _identity(identity | {"identity_data": data}, created_at)


def _factors(user: dict[str, Any], id: str, parts: Latchkey) -> list[dict[str, Any]]:
    for position, factor in enumerate(user["factors"]):
        own, given = parts.relying_party.id, factor.get("rp_id")
        if given not in (None, own):
            reason = f"is {given}, but credentials only work under {own}, unless you use --without-factors"
            raise InvalidRecord(f"factors.{position}.rp_id: {reason}")
        if given and "id" not in user:
            raise InvalidRecord("id: is required, because the credentials contain it")
    rows = [factors.row(factor, id, parts) for factor in user["factors"]]
    found = [key for made in rows for key in factors.keys(made)]
    if len(set(found)) < len(found):
        raise InvalidRecord("factors: two have the same id, name or credential")
    return rows


def _api_keys(
    user: dict[str, Any], id: str, created_at: datetime, parts: Latchkey
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the keys that a secret of this deployment made. Other keys would not work."""
    for key in user["api_keys"]:
        if parts.api_keys.made(bytes.fromhex(key["key_mac"])):
            own = {"id": key["id"], "user_id": id, "key_mac": f"\\x{key['key_mac']}"}
            yield own | _members(key, ("name", "scopes", "aal"), "expires_at", created_at)


def _identity(identity: dict[str, Any], created_at: datetime) -> dict[str, Any]:
    return _members(identity, ("provider", "subject", "identity_data"), "last_sign_in_at", created_at)


def _members(
    given: dict[str, Any], names: tuple[str, ...], moment: str, created_at: datetime
) -> dict[str, Any]:
    moments = {"created_at": given.get("created_at") or created_at, moment: given.get(moment)}
    return {name: given[name] for name in names} | {name: _text(at) for name, at in moments.items()}


def _text(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
