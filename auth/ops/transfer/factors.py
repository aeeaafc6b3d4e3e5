"""Second factors and passkeys as members of a user in a file."""

import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, validates_schema
from webauthn.helpers import bytes_to_base64url

from auth.core.factors import totp, webauthn
from auth.core.tokens.derived_keys import CannotOpen
from auth.web import fields
from auth.web.context import Latchkey
from auth.web.schemas import AdminInput

_CREDENTIAL = ("credential_id", "public_key")
_FLAGS = ("backup_eligible", "backed_up")


class Factor(AdminInput):
    id = fields.Uuid()
    factor_type = fields.Choice("totp", "webauthn", "passkey", required=True)
    friendly_name = fields.ShortText(load_default="")
    created_at = fields.Timestamp()
    verified_at = fields.Timestamp()
    last_used_at = fields.Timestamp()
    secret = fields.Text()
    last_step = fields.Counter()
    rp_id = fields.Text()
    credential_id = fields.Base64Url()
    public_key = fields.Base64Url()
    sign_count = fields.Counter(load_default=0)
    transports = fields.ShortTexts(load_default=list)
    aaguid = fields.Uuid()
    backup_eligible = fields.Flag()
    backed_up = fields.Flag()

    @validates_schema
    def has_its_secret_or_key(self, data: dict[str, Any], **_kwargs: object) -> None:
        is_app = data["factor_type"] == "totp"
        for name in ("secret", "rp_id", *_CREDENTIAL):
            is_needed = is_app == (name == "secret")
            if is_needed and name not in data:
                raise ValidationError("is required", name)
            if name in data and not is_needed:
                raise ValidationError(f"must not be given for a {data['factor_type']}", name)
        if not is_app:
            _check_credential(data)
        elif not totp.is_usable(data["secret"]):
            raise ValidationError("must be base32 of at least 112 bits", "secret")


def _check_credential(data: dict[str, Any]) -> None:
    if len(data["credential_id"]) > webauthn.MOST_ID_BYTES:
        raise ValidationError(f"must be at most {webauthn.MOST_ID_BYTES} bytes", "credential_id")
    try:
        webauthn.check_public_key(data["public_key"])
    except webauthn.InvalidResponse as error:
        raise ValidationError(str(error), "public_key") from None


def exported(factor: Mapping[str, Any], parts: Latchkey) -> dict[str, Any]:
    """Return what `Factor` reads, from a row that Postgres wrote as JSON. Raises `CannotOpen`."""
    left_out = ("user_id", "updated_at", "secret", *_CREDENTIAL)
    members = {name: value for name, value in factor.items() if value is not None and name not in left_out}
    if factor["factor_type"] == "totp":
        return members | {"secret": _opened(factor, parts)}
    keys = {name: bytes_to_base64url(bytes.fromhex(factor[name][2:])) for name in _CREDENTIAL}
    return members | keys | {"rp_id": parts.relying_party.id}


def _opened(factor: Mapping[str, Any], parts: Latchkey) -> str:
    try:
        return parts.sealer.open(bytes.fromhex(factor["secret"][2:]), factor["id"])
    except CannotOpen as error:
        where = f"the secret of the factor {factor['id']} of the user {factor['user_id']}"
        raise CannotOpen(f"{where} cannot be opened: {error}") from None


def row(factor: dict[str, Any], user_id: str, parts: Latchkey) -> dict[str, Any]:
    """Return the row to insert for a loaded `Factor`, as JSON."""
    now = datetime.now(UTC)
    id, created_at = str(factor.get("id") or uuid.uuid4()).lower(), factor.get("created_at") or now
    moments = {
        "created_at": created_at,
        "updated_at": now,
        "verified_at": factor.get("verified_at") or created_at,
        "last_used_at": factor.get("last_used_at"),
    }
    made = {name: moment and moment.isoformat() for name, moment in moments.items()}
    made |= {"id": id, "user_id": user_id}
    made |= {name: factor[name] for name in ("factor_type", "friendly_name")}
    if factor["factor_type"] == "totp":
        sealed = parts.sealer.seal(factor["secret"], id)
        return made | {"secret": _hex(sealed), "last_step": factor.get("last_step")}
    made |= {name: _hex(factor[name]) for name in _CREDENTIAL}
    made |= {name: factor.get(name) for name in ("sign_count", "aaguid", *_FLAGS)}
    return made | {"transports": [each for each in factor["transports"] if each in webauthn.TRANSPORTS]}


def keys(made: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the values that must be unique among a user's factors."""
    for name in ("id", "credential_id", "friendly_name"):
        if made.get(name) and (name != "friendly_name" or made["factor_type"] != "passkey"):
            yield name, made[name]


def _hex(data: bytes) -> str:
    return f"\\x{data.hex()}"
