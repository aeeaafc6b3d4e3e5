"""Second factors and passkeys as members of a user in a file."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

from marshmallow import ValidationError, post_load, validates_schema
from webauthn.helpers import bytes_to_base64url

from auth.core.factors import totp, webauthn
from auth.core.tokens.derived_keys import CannotOpen
from auth.ops.transfer import Loaded
from auth.web import fields
from auth.web.context import Latchkey
from auth.web.schemas import AdminInput

_CREDENTIAL = ("credential_id", "public_key")
_OF_APPS = {"secret", "last_step"}
_OF_KEYS = {*_CREDENTIAL, "sign_count", "transports", "aaguid", "backup_eligible", "backed_up"}


class Part(AdminInput):
    """A user of a file, or a part of one. Times are loaded as texts in ISO 8601."""

    @post_load
    def write_times(self, data: Loaded, **_kwargs: object) -> Loaded:
        return {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in data.items()
        }


class Factor(Part):
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
    def has_its_secret_or_key(self, data: Loaded, **_kwargs: object) -> None:
        is_app = data["factor_type"] == "totp"
        for name in ("secret", "rp_id", *_CREDENTIAL):
            is_needed = is_app == (name == "secret")
            if is_needed and name not in data:
                raise ValidationError("is required", name)
            if name in data and not is_needed:
                raise ValidationError(f"must not be given for a {data['factor_type']}", name)
        if is_app:
            if not totp.is_usable(data["secret"]):
                raise ValidationError("must be base32 of at least 112 bits", "secret")
            return
        if len(data["credential_id"]) > webauthn.MOST_ID_BYTES:
            raise ValidationError(f"must be at most {webauthn.MOST_ID_BYTES} bytes", "credential_id")
        try:
            webauthn.check_public_key(data["public_key"])
        except webauthn.InvalidResponse as error:
            raise ValidationError(str(error), "public_key") from None


def exported(factor: Loaded, parts: Latchkey) -> dict[str, object]:
    """Return what `Factor` reads, from a row that Postgres wrote as JSON. Raises `CannotOpen`."""
    left_out = ("user_id", "updated_at", "secret", *_CREDENTIAL)
    members = {name: value for name, value in factor.items() if value is not None and name not in left_out}
    if factor["factor_type"] == "totp":
        try:
            secret = parts.sealer.open(bytes.fromhex(factor["secret"][2:]), factor["id"])
        except CannotOpen as error:
            where = f"the secret of the factor {factor['id']} of the user {factor['user_id']}"
            raise CannotOpen(f"{where} cannot be opened: {error}") from None
        return members | {"secret": secret}
    keys = {name: bytes_to_base64url(bytes.fromhex(factor[name][2:])) for name in _CREDENTIAL}
    return members | keys | {"rp_id": parts.relying_party.id}


def row(factor: Loaded, user_id: str, parts: Latchkey) -> Loaded:
    """Return the row to insert for a loaded `Factor`, without members that its type does not have."""
    now, is_app = datetime.now(UTC).isoformat(), factor["factor_type"] == "totp"
    id = str(factor.get("id") or uuid.uuid4()).lower()
    others = _OF_KEYS if is_app else _OF_APPS
    members = {"created_at": now} | {name: value for name, value in factor.items() if name not in others}
    members = (
        {"verified_at": members["created_at"]} | members | {"id": id, "user_id": user_id, "updated_at": now}
    )
    if is_app:
        return members | {"secret": _hex(parts.sealer.seal(factor["secret"], id))}
    return members | {
        "credential_id": _hex(factor["credential_id"]),
        "public_key": _hex(factor["public_key"]),
        "transports": [each for each in factor["transports"] if each in webauthn.TRANSPORTS],
    }


def keys(factor: Loaded) -> Iterator[tuple[str, str]]:
    """Yield the values that must be unique among a user's factors."""
    yield "id", factor["id"]
    if "credential_id" in factor:
        yield "credential_id", factor["credential_id"]
    if factor["friendly_name"] and factor["factor_type"] != "passkey":
        yield "friendly_name", factor["friendly_name"]


def _hex(data: bytes) -> str:
    return f"\\x{data.hex()}"
