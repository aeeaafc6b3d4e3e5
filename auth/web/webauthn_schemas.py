"""The marshmallow schemas of bodies with credentials of WebAuthn."""

from typing import Any

from marshmallow import ValidationError, validates_schema

from auth.web import fields
from auth.web.schemas import Input, Reauthentication


class PasskeyResponse(Input):
    challenge_id = fields.Uuid(required=True)
    credential = fields.Credential(required=True)


PasskeyChange = Input.from_dict({"friendly_name": fields.FriendlyName(required=True)})


class Proof(Reauthentication):
    challenge_id = fields.Uuid()
    credential = fields.Credential()

    @validates_schema
    def has_a_credential(self, data: dict[str, Any], **_kwargs: Any) -> None:
        if not data:
            raise ValidationError(
                "give current_password, nonce, factor_code or a passkey's credential", "current_password"
            )
        if ("challenge_id" in data) != ("credential" in data):
            raise ValidationError("must be given with credential", "challenge_id")
