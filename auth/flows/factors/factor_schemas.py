"""The marshmallow schemas of second factors, passkeys, recovery codes and proofs."""

from marshmallow import ValidationError, validates_schema
from marshmallow.fields import Nested

from auth.core.json_bodies import JsonObject
from auth.web import fields
from auth.web.schemas import AdminInput, Input, Reauthentication


class FactorEnrolment(Reauthentication):
    factor_type = fields.Choice("totp", "webauthn", "phone", required=True)
    friendly_name = fields.OptionalFriendlyName(load_default="")
    issuer = fields.Issuer()


class Site(Input):
    rpId = fields.ShortText()
    rpOrigins = fields.ShortTexts()


class SecurityKeyResponse(Site):
    type = fields.Choice("create", "request", required=True)
    credential_response = fields.Credential(required=True)


FactorChallenge = Input.of(webauthn=Nested(Site))


class FactorVerification(Input):
    challenge_id = fields.Uuid(required=True)
    code = fields.ShortCode()
    webauthn = Nested(SecurityKeyResponse)

    @validates_schema
    def has_one_response(self, data: JsonObject, **_kwargs: object) -> None:
        if ("code" in data) == ("webauthn" in data):
            raise ValidationError("give either a code or webauthn", "code")


class RecoveryCodesBody(Reauthentication):
    friendly_name = fields.OptionalFriendlyName()


RecoveryCode = Input.of(code=fields.ShortText(required=True))


class PasskeyOptionsRequest(Reauthentication):
    mediation = fields.Choice("conditional")


PasskeyResponse = Input.of(
    challenge_id=fields.Uuid(required=True), credential=fields.Credential(required=True)
)
FactorChange = AdminInput.of(friendly_name=fields.FriendlyName(required=True))
PasskeyChange = Input.of(friendly_name=fields.FriendlyName(required=True))


class ProofBody(Reauthentication):
    challenge_id = fields.Uuid()
    credential = fields.Credential()

    @validates_schema
    def has_a_credential(self, data: JsonObject, **_kwargs: object) -> None:
        if not data:
            raise ValidationError(
                "give current_password, nonce, factor_code or a passkey's credential", "current_password"
            )
        if ("challenge_id" in data) != ("credential" in data):
            raise ValidationError("must be given with credential", "challenge_id")
