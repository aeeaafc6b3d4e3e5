"""The marshmallow schema of each form of our pages."""

from typing import Any

from marshmallow import pre_load

from auth.addresses import looks_like_phone
from auth.context import latchkey
from auth.web import fields
from auth.web.schemas import Addressed, Challenged, Input


class AddressForm(Addressed):
    """One field, `email`, which takes a phone number too where phones can sign in."""

    @pre_load
    def find_phone(self, data: Any, **_kwargs: Any) -> Any:
        settings, typed = latchkey.settings, data.get("email", "")
        if settings.offers_phone and (looks_like_phone(typed) or not settings.email_enabled):
            return {name: value for name, value in data.items() if name != "email"} | {"phone": typed}
        return data


Arrival = Challenged.from_dict({"next": fields.Text(), "then": fields.Text()})
SignInForm = AddressForm.from_dict({"password": fields.Password(required=True)})
CodeForm = AddressForm.from_dict({"code": fields.TypedCode(required=True)})
WaitingForm = Input.from_dict(
    {
        "email": fields.Email(required=True),
        "page": fields.Choice("sign-in", "sign-up", "forgot-password", required=True),
    }
)
EmailForm = Input.from_dict({"email": fields.Email(required=True)})
EmailCodeForm = Input.from_dict(
    {"email": fields.Email(required=True), "code": fields.TypedCode(required=True)}
)
PasswordForm = Input.from_dict({"password": fields.Password(required=True)})
NameForm = Input.from_dict({"name": fields.Name(required=True)})
PhoneForm = Input.from_dict({"phone": fields.Phone(required=True)})
PhoneCodeForm = Input.from_dict(
    {"phone": fields.Phone(required=True), "code": fields.TypedCode(required=True)}
)
IdForm = Input.from_dict({"id": fields.Text(required=True)})
ProofForm = Input.from_dict({"current_password": fields.Password(), "nonce": fields.TypedCode()})
DeletionForm = Input.from_dict({"confirmed": fields.Choice("yes", required=True)})
FactorForm = Input.from_dict(
    {"factor_id": fields.Text(required=True), "code": fields.TypedCode(required=True)}
)
RecoveryForm = Input.from_dict({"recovery_code": fields.Text(required=True)})
CredentialForm = Input.from_dict(
    {"challenge_id": fields.Text(required=True), "credential": fields.JsonText(required=True)}
)
SignOutForm = Input.from_dict({"scope": fields.Choice("global", "local", load_default="local")})
