"""The marshmallow schemas of second factors and recovery codes."""

from auth.web import fields
from auth.web.schemas import Input, Reauthentication


class FactorEnrolment(Reauthentication):
    factor_type = fields.Choice("totp", required=True)
    friendly_name = fields.ShortText(load_default="")
    issuer = fields.ShortText()


FactorVerification = Input.from_dict(
    {"challenge_id": fields.Uuid(required=True), "code": fields.ShortText(required=True)}
)
RecoveryCode = Input.from_dict({"code": fields.ShortText(required=True)})
