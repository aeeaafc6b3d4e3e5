"""The marshmallow schemas of our pages' forms."""

from collections.abc import Mapping

from marshmallow import pre_load

from auth.core.addresses import looks_like_phone
from auth.web import fields
from auth.web.context import latchkey
from auth.web.schemas import Addressed, Challenged, Input


class AddressForm(Addressed):
    """One field, `email`. It also takes a phone number if phones can sign in."""

    email = fields.TypedEmail()
    phone = fields.TypedPhone()

    @pre_load
    def find_phone(self, data: Mapping[str, str], **_kwargs: object) -> Mapping[str, str]:
        settings, typed = latchkey.settings, data.get("email", "")
        if settings.offers_phone and (looks_like_phone(typed) or not settings.email_enabled):
            return {name: value for name, value in data.items() if name != "email"} | {"phone": typed}
        return data


Destination = Challenged.of(next=fields.Text(), then=fields.Text())
SignInForm = AddressForm.of(password=fields.Password(required=True))
CarriedForm = Input.of(email=fields.TypedText(load_default=""))
PageForm = Input.of(page=fields.Choice("sign-in", "sign-up", "forgot-password", required=True))
EmailForm = Input.of(email=fields.TypedEmail(required=True))
InvitationForm = EmailForm.of(groups=fields.Groups(load_default=list))
PasswordForm = Input.of(password=fields.Password(required=True))
CommonForm = PasswordForm.of(email=fields.TypedText())
NameForm = Input.of(name=fields.Name(required=True))
OptionalNameForm = Input.of(name=fields.OptionalName(required=True))
PhoneForm = Input.of(phone=fields.TypedPhone(required=True))
IdForm = Input.of(id=fields.Text(required=True))
RemovalForm = Input.of(
    kind=fields.Choice(
        "factor", "passkey", "identity", "application", "api_key", "email", "phone", "change",
        required=True,
    ),
    id=fields.Text(),
)  # fmt: skip
ProofForm = Input.of(current_password=fields.Password(), nonce=fields.TypedCode())
DeletionForm = Input.of(confirmed=fields.Choice("yes", required=True))
AppNameForm = Input.of(name=fields.OptionalName(load_default=""))
CodeForm = Input.of(code=fields.TypedCode(required=True))
FirstCodeForm = CodeForm.of(factor_id=fields.Text(required=True))
RecoveryForm = Input.of(recovery_code=fields.Text(required=True))
CredentialForm = Input.of(challenge_id=fields.Text(required=True), credential=fields.JsonText(required=True))
SignOutForm = Input.of(
    scope=fields.Choice("global", "local", load_default="local"), back=fields.Choice("yes")
)
LogoutQuery = Input.of(
    id_token_hint=fields.LongText(),
    client_id=fields.Text(),
    post_logout_redirect_uri=fields.Text(),
    state=fields.Text(),
    ui_locales=fields.Text(),
)
LinkingForm = Input.of(flow=fields.Text(required=True))
UserCodeForm = Input.of(user_code=fields.Text(required=True))
Decision = Input.of(action=fields.Choice("approve", "deny", required=True))
_Consent = Decision.of(organization=fields.TypedText(load_default=""))
DeviceForm = _Consent.of(request=fields.Text(required=True))
ConsentForm = _Consent.of(authorization_id=fields.Text(required=True))
