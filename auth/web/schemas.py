"""A marshmallow schema for each body and query.

Unknown members are ignored, and `null` means absent.
"""

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
    """The base of all schemas."""

    class Meta:
        unknown = EXCLUDE

    @pre_load
    def leave_out_null(self, data: Any, **_kwargs: Any) -> Any:
        if not isinstance(data, dict):
            return data
        nullable = {name for name, field in self.fields.items() if field.allow_none}
        return {name: value for name, value in data.items() if value is not None or name in nullable}


class Addressed(Input):
    """A request about one address: an email or a phone."""

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


class Magiclink(Challenged):
    email = Email(required=True)
    create_user = Flag(load_default=True)
    data = Metadata(load_default=dict)


class Otp(Addressed, Challenged):
    create_user = Flag(load_default=True)
    data = Metadata(load_default=dict)


class Recover(Challenged):
    email = Email(required=True)


class Resend(Addressed, Challenged):
    type = Choice("signup", "email_change", "sms", "phone_change", required=True)

    @validates_schema
    def has_the_types_address(self, data: dict[str, Any], **_kwargs: Any) -> None:
        wanted = "phone" if data.get("type") in ("sms", "phone_change") else "email"
        if wanted not in data:
            raise ValidationError(f"must be given for type {data.get('type')}", wanted)


class RedirectQuery(Input):
    redirect_to = Text()


class TokenQuery(Input):
    grant_type = Text(required=True)


class PasswordGrant(Addressed):
    password = Password(required=True)


class PkceGrant(Input):
    auth_code = Text(required=True)
    code_verifier = CodeVerifier(required=True)


class IdTokenGrant(Input):
    provider = Text(required=True)
    id_token = LongText(required=True)
    nonce = Text()


class AuthorizeQuery(Challenged):
    provider = Text(required=True)
    scopes = Text()
    skip_http_redirect = Text()


class LinkingQuery(Input):
    provider = Text(required=True)
    redirect_to = Text()
    scopes = Text()
    nonce = Text()


class CallbackQuery(Input):
    state = Text()
    code = LongText()
    error = Text()
    iss = Text()
    user = LongText()


class LinkingForm(Input):
    flow = Text(required=True)


class RefreshGrant(Input):
    refresh_token = Text(required=True)


class Reauthentication(Input):
    current_password = Password()
    nonce = Text()


class UserChange(Reauthentication, Challenged):
    email = Email()
    phone = Phone()
    password = Password()
    data = Metadata()


class LogoutQuery(Input):
    scope = Choice("global", "local", "others", load_default="global")


class PageQuery(Input):
    page = PageNumber(default=1, most=MAX_PAGE)
    per_page = PageNumber(default=PAGE_SIZE, most=MAX_PAGE_SIZE)


class VerifyQuery(Input):
    token = Text(required=True)
    type = Text(required=True)
    redirect_to = Text()


class VerifyForm(VerifyQuery):
    action = Text()


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


class NewUser(Input):
    email = Email(required=True)
    phone = Phone()
    password = Password()
    role = Role()
    email_confirm = Flag(load_default=False)
    phone_confirm = Flag(load_default=False)
    user_metadata = Metadata(load_default=dict)
    app_metadata = Metadata(load_default=dict)


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


class InviteOptions(Input):
    captcha_token = Text()
    data = Metadata(load_default=dict)


class Invitation(Input):
    email = Email(required=True)
    data = Metadata(load_default=dict)
    options = Nested(InviteOptions, load_default=lambda: {"data": {}})
    redirect_to = Text()


class AnyUserChange(Input):
    email = Email()
    phone = Phone()
    password = Password()
    role = Role()
    email_confirm = Flag()
    phone_confirm = Flag()
    email_confirmed_at = Timestamp(allow_none=True)
    phone_confirmed_at = Timestamp(allow_none=True)
    user_metadata = Metadata(load_default=dict)
    app_metadata = Metadata(load_default=dict)
    ban_duration = BanDuration()


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


class Introspection(Input):
    token = LongText(required=True)


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


class TestEvent(Input):
    event = Choice(*webhooks.EVENTS, load_default="user.updated")
