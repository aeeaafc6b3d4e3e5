"""The marshmallow schemas of second factors and recovery codes."""

from typing import Any

from marshmallow import ValidationError, validates_schema
from marshmallow.fields import Nested

from auth.web import fields
from auth.web.schemas import Input, Reauthentication


class FactorEnrolment(Reauthentication):
    factor_type = fields.Choice("totp", "webauthn", "phone", required=True)
    friendly_name = fields.ShortText(load_default="")
    issuer = fields.Issuer()


class Site(Input):
    rpId = fields.ShortText()
    rpOrigins = fields.ShortTexts()


class SecurityKeyResponse(Site):
    type = fields.Choice("create", "request", required=True)
    credential_response = fields.Credential(required=True)


FactorChallenge = Input.from_dict({"webauthn": Nested(Site)})


class FactorVerification(Input):
    challenge_id = fields.Uuid(required=True)
    code = fields.ShortText()
    webauthn = Nested(SecurityKeyResponse)

    @validates_schema
    def has_one_response(self, data: dict[str, Any], **_kwargs: Any) -> None:
        if ("code" in data) == ("webauthn" in data):
            raise ValidationError("give either a code or webauthn", "code")


RecoveryCode = Input.from_dict({"code": fields.ShortText(required=True)})
