"""The marshmallow schema of each body and query. Unknown members are ignored; `null` means absent."""

from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, pre_load, validates_schema
from marshmallow.fields import Nested

from auth.delivery import webhooks
from auth.tokens import one_time
from auth.web.fields import (
    MAX_PAGE,
    MAX_PAGE_SIZE,
    PAGE_SIZE,
    BanDuration,
    Choice,
    Choices,
    CodeChallenge,
    CodeVerifier,
    Email,
    Flag,
    LongText,
    Metadata,
    PageNumber,
    Password,
    Phone,
    Role,
    Text,
    Timestamp,
    Uuid,
)


class Input(Schema):
    class Meta:
        unknown = EXCLUDE

    @pre_load
    def leave_out_null(self, data: Any, **_kwargs: Any) -> Any:
        if not isinstance(data, dict):
            return data
        nullable = {name for name, field in self.fields.items() if field.allow_none}
        return {name: value for name, value in data.items() if value is not None or name in nullable}


class Addressed(Input):
    email = Email()
    phone = Phone()

    @validates_schema
    def has_one_address(self, data: dict[str, Any], **_kwargs: Any) -> None:
        if ("email" in data) == ("phone" in data):
            raise ValidationError("give either an email or a phone", "email")


class Challenged(Input):
    """A request that may ask for an authorization code instead of tokens (RFC 7636)."""

    redirect_to = Text()
    code_challenge = CodeChallenge()
    code_challenge_method = Text()

    @validates_schema
    def is_hashed(self, data: dict[str, Any], **_kwargs: Any) -> None:
        if "code_challenge" in data and data.get("code_challenge_method", "s256").lower() != "s256":
            raise ValidationError("must be s256", "code_challenge_method")
        if "code_challenge_method" in data and "code_challenge" not in data:
            raise ValidationError("must be given with code_challenge_method", "code_challenge")


class Signup(Addressed, Challenged):
    password = Password(required=True)
    data = Metadata(load_default=dict)


class Otp(Addressed, Challenged):
    create_user = Flag(load_default=True)
    data = Metadata(load_default=dict)


class Magiclink(Challenged):
    email = Email(required=True)
    create_user = Flag(load_default=True)
    data = Metadata(load_default=dict)


class Resend(Addressed, Challenged):
    type = Choice("signup", "email_change", "sms", "phone_change", required=True)

    @validates_schema
    def has_the_types_address(self, data: dict[str, Any], **_kwargs: Any) -> None:
        wanted = "phone" if data.get("type") in ("sms", "phone_change") else "email"
        if wanted not in data:
            raise ValidationError(f"must be given for type {data.get('type')}", wanted)


Recover = Challenged.from_dict({"email": Email(required=True)})
RedirectQuery = Input.from_dict({"redirect_to": Text()})
Introspection = Input.from_dict({"token": LongText(required=True)})
LogoutQuery = Input.from_dict({"scope": Choice("global", "local", "others", load_default="global")})

TokenQuery = Input.from_dict({"grant_type": Text(required=True)})
PasswordGrant = Addressed.from_dict({"password": Password(required=True)})
RefreshGrant = Input.from_dict({"refresh_token": Text(required=True)})
PkceGrant = Input.from_dict({"auth_code": Text(required=True), "code_verifier": CodeVerifier(required=True)})
IdTokenGrant = Input.from_dict(
    {"provider": Text(required=True), "id_token": LongText(required=True), "nonce": Text()}
)

AuthorizeQuery = Challenged.from_dict(
    {"provider": Text(required=True), "scopes": Text(), "skip_http_redirect": Text()}
)
LinkingForm = Input.from_dict({"flow": Text(required=True)})
LinkingQuery = Input.from_dict(
    {"provider": Text(required=True), "redirect_to": Text(), "scopes": Text(), "nonce": Text()}
)
CallbackQuery = Input.from_dict(
    {"state": Text(), "code": LongText(), "error": Text(), "iss": Text(), "user": LongText()}
)


class Reauthentication(Input):
    current_password = Password()
    nonce = Text()


class UserChange(Reauthentication, Challenged):
    email = Email()
    phone = Phone()
    password = Password()
    data = Metadata()


class VerifyQuery(Input):
    token = Text(required=True)
    type = Text(required=True)
    redirect_to = Text()


VerifyForm = VerifyQuery.from_dict({"action": Text()})


class Verification(Input):
    type = Choice(*one_time.PURPOSES, required=True)
    token = Text()
    token_hash = Text()
    email = Email()
    phone = Phone()

    @validates_schema
    def names_what_was_sent(self, data: dict[str, Any], **_kwargs: Any) -> None:
        if "token_hash" in data:
            return
        if "token" not in data:
            raise ValidationError("give a token with an email or a phone, or a token_hash", "token")
        if ("email" in data) == ("phone" in data):
            raise ValidationError("give either an email or a phone", "email")


class NewLink(Input):
    type = Choice(
        *("signup", "magiclink", "recovery", "invite"),
        *("email_change", "email_change_current", "email_change_new"),
        required=True,
    )
    email = Email(required=True)
    new_email = Email()
    password = Password()
    data = Metadata(load_default=dict)
    redirect_to = Text()

    @validates_schema
    def has_what_its_type_needs(self, data: dict[str, Any], **_kwargs: Any) -> None:
        if str(data.get("type", "")).startswith("email_change") and "new_email" not in data:
            raise ValidationError("must be given for a change of email", "new_email")
        if data.get("type") == "signup" and "password" not in data:
            raise ValidationError("must be given for a sign-up", "password")


InviteOptions = Input.from_dict({"captcha_token": Text(), "data": Metadata(load_default=dict)})


class Invitation(Input):
    email = Email(required=True)
    data = Metadata(load_default=dict)
    options = Nested(InviteOptions, load_default=lambda: {"data": {}})
    redirect_to = Text()


class NewUser(Input):
    email = Email(required=True)
    phone = Phone()
    password = Password()
    role = Role()
    email_confirm = Flag(load_default=False)
    phone_confirm = Flag(load_default=False)
    user_metadata = Metadata(load_default=dict)
    app_metadata = Metadata(load_default=dict)


class AnyUserChange(NewUser):
    email = Email()
    email_confirm = Flag()
    phone_confirm = Flag()
    email_confirmed_at = Timestamp(allow_none=True)
    phone_confirmed_at = Timestamp(allow_none=True)
    ban_duration = BanDuration()


class PageQuery(Input):
    page = PageNumber(default=1, most=MAX_PAGE)
    per_page = PageNumber(default=PAGE_SIZE, most=MAX_PAGE_SIZE)


class UsersQuery(PageQuery):
    email = Email()
    role = Text()
    q = Text()
    sort = Choice("created_at", "updated_at", "last_sign_in_at", "email", load_default="created_at")
    order = Choice("asc", "desc", load_default="desc")


class AuditQuery(PageQuery):
    user = Uuid()
    action = Text()
    since = Timestamp()
    until = Timestamp()
    request_id = Text()


class NewWebhook(Input):
    url = Text(required=True)
    events = Choices(*webhooks.EVENTS, load_default=lambda: list(webhooks.EVENTS))
    description = Text(allow_none=True, load_default=None)


class WebhookChange(Input):
    url = Text()
    events = Choices(*webhooks.EVENTS)
    description = Text(allow_none=True)
    disabled = Flag()
    rotate_secret = Flag(load_default=False)


TestEvent = Input.from_dict({"event": Choice(*webhooks.EVENTS, load_default="user.updated")})
