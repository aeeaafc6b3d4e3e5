"""The marshmallow schemas of bodies and queries. `null` means absent."""

from typing import Any, Self, cast

from marshmallow import EXCLUDE, RAISE, Schema, ValidationError, pre_load, validates_schema
from marshmallow.fields import Field, Nested

from auth.core.net import webhook_urls as webhooks
from auth.core.tokens import one_time
from auth.web import fields, g


class Input(Schema):
    class Meta:
        unknown = EXCLUDE

    @classmethod
    def of(cls, **members: Field) -> type[Self]:
        return cast("type[Self]", cls.from_dict(members))

    @pre_load
    def leave_out_null(self, data: object, **_kwargs: Any) -> object:
        if not isinstance(data, dict):
            return data
        nullable = {name for name, field in self.fields.items() if field.allow_none}
        return {name: value for name, value in data.items() if value is not None or name in nullable}


class AdminInput(Input):
    """A body of an administrative operation. Unknown members are refused, except in the dialect."""

    class Meta:
        unknown = RAISE


class Addressed(Input):
    email = fields.Email()
    phone = fields.Phone()

    @validates_schema
    def has_one_address(self, data: dict[str, Any], **_kwargs: Any) -> None:
        if ("email" in data) == ("phone" in data):
            raise ValidationError("give either an email or a phone", "email")


class Challenged(Input):
    """A request that may ask for an authorization code instead of tokens (RFC 7636)."""

    redirect_to = fields.Text()
    code_challenge = fields.CodeChallenge()
    code_challenge_method = fields.Text()

    @validates_schema
    def is_hashed(self, data: dict[str, Any], **_kwargs: Any) -> None:
        if "code_challenge" in data and data.get("code_challenge_method", "s256").lower() != "s256":
            raise ValidationError("must be s256", "code_challenge_method")
        if "code_challenge_method" in data and "code_challenge" not in data:
            raise ValidationError("must be given with code_challenge_method", "code_challenge")


class Signup(Addressed, Challenged):
    password = fields.Password(required=True)
    channel = fields.Channel()
    data = fields.StrangersMetadata(load_default=dict)


AnonymousSignup = Input.of(data=fields.StrangersMetadata(load_default=dict))


class Otp(Addressed, Challenged):
    channel = fields.Channel()
    create_user = fields.Flag(load_default=True)
    data = fields.StrangersMetadata(load_default=dict)


class Resend(Addressed, Challenged):
    type = fields.Choice("signup", "email_change", "sms", "phone_change", required=True)
    channel = fields.Channel()

    @validates_schema
    def has_the_types_address(self, data: dict[str, Any], **_kwargs: Any) -> None:
        wanted = "phone" if data.get("type") in ("sms", "phone_change") else "email"
        if wanted not in data:
            raise ValidationError(f"must be given for type {data.get('type')}", wanted)


Recover = Challenged.of(email=fields.Email(required=True))
Magiclink = Recover.of(
    create_user=fields.Flag(load_default=True), data=fields.StrangersMetadata(load_default=dict)
)
RedirectQuery = Input.of(redirect_to=fields.Text())
Introspection = Input.of(token=fields.LongText(required=True))
LogoutQuery = Input.of(scope=fields.Choice("global", "local", "others", load_default="global"))
PasswordGrant = Addressed.of(password=fields.Password(required=True))
RefreshGrant = Input.of(refresh_token=fields.Text(required=True))
ApiKeyGrant = Input.of(api_key=fields.Text(required=True))
PkceGrant = Input.of(
    auth_code=fields.NonEmptyText(required=True), code_verifier=fields.CodeVerifier(required=True)
)
AuthorizeQuery = Challenged.of(
    provider=fields.Text(required=True),
    scopes=fields.Text(),
    skip_http_redirect=fields.Text(),
    prompt=fields.Text(),
)


class IdTokenGrant(Input):
    provider = fields.Text(required=True)
    id_token = fields.LongText(required=True)
    nonce = fields.Text()
    link_identity = fields.Flag(load_default=False)


LinkingQuery = Input.of(
    provider=fields.Text(required=True), redirect_to=fields.Text(), scopes=fields.Text(), nonce=fields.Code()
)
CallbackQuery = Input.of(
    state=fields.Text(),
    code=fields.LongText(),
    error=fields.Text(),
    error_description=fields.LongText(),
    iss=fields.Text(),
    user=fields.LongText(),
)


class Reauthentication(Input):
    current_password = fields.Password()
    nonce = fields.Code()
    factor_code = fields.Code()


class UserChange(Reauthentication, Challenged):
    email = fields.Email()
    phone = fields.Phone()
    channel = fields.Channel()
    remove = fields.Uuids()
    password = fields.Password()
    data = fields.Metadata()


class VerifyQuery(Input):
    token = fields.Text(required=True)
    type = fields.Text(required=True)
    redirect_to = fields.Text()


class Verification(Input):
    # The link of a notice works only on our page.
    type = fields.Choice(*(name for name in one_time.PURPOSES if name != "undo"), required=True)
    token = fields.Code()
    token_hash = fields.Text()
    email = fields.Email()
    phone = fields.Phone()

    @validates_schema
    def names_what_was_sent(self, data: dict[str, Any], **_kwargs: Any) -> None:
        if "token_hash" in data:
            return
        if "token" not in data:
            raise ValidationError("give a token with an email or a phone, or a token_hash", "token")
        if ("email" in data) == ("phone" in data):
            raise ValidationError("give either an email or a phone", "email")


_CHANGES = ("email_change", "email_change_current", "email_change_new")
_LINKS = ("signup", "magiclink", "recovery", "invite", *_CHANGES)


class NewLink(AdminInput):
    type = fields.Choice(*_LINKS, required=True)
    email = fields.Email(required=True)
    new_email = fields.Email()
    password = fields.Password()
    data = fields.Metadata(load_default=dict)
    redirect_to = fields.Text()

    @validates_schema
    def has_what_its_type_needs(self, data: dict[str, Any], **_kwargs: Any) -> None:
        if data.get("type") in _CHANGES and "new_email" not in data:
            raise ValidationError("must be given for a change of email", "new_email")
        if data.get("type") == "signup" and "password" not in data:
            raise ValidationError("must be given for a sign-up", "password")


InviteOptions = AdminInput.of(captcha_token=fields.Text(), data=fields.Metadata(load_default=dict))


class Invitation(AdminInput):
    email = fields.Email(required=True)
    data = fields.Metadata(load_default=dict)
    options = Nested(InviteOptions, load_default=lambda: {"data": {}})
    redirect_to = fields.Text()


class AnyUser(AdminInput):
    email = fields.Email()
    phone = fields.Phone()
    password = fields.Password()
    password_hash = fields.Text()
    role = fields.Role()
    email_confirm = fields.Flag()
    phone_confirm = fields.Flag()
    user_metadata = fields.Metadata(load_default=dict)
    app_metadata = fields.Metadata(load_default=dict)
    ban_duration = fields.BanDuration()

    @validates_schema
    def has_one_password(self, data: dict[str, Any], **_kwargs: Any) -> None:
        if "password" in data and "password_hash" in data:
            raise ValidationError("must be absent if there is a password", "password_hash")


class NewUser(AnyUser):
    id = fields.Uuid()
    email = fields.Email(required=True)
    email_confirm = fields.Flag(load_default=False)
    phone_confirm = fields.Flag(load_default=False)

    @pre_load
    def may_have_only_a_phone(self, data: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
        if g.in_dialect and data.get("phone"):
            self.fields["email"].required = False
        return data


class AnyUserChange(AnyUser):
    email = fields.Email(allow_none=True)
    phone = fields.Phone(allow_none=True)
    remove = fields.Uuids()
    email_confirmed_at = fields.Timestamp(allow_none=True)
    phone_confirmed_at = fields.Timestamp(allow_none=True)


Deletion = AdminInput.of(should_soft_delete=fields.NotTrue())


class PageQuery(Input):
    # The offset of the last page must fit into a bigint.
    page = fields.PageNumber(1, most=2**31)
    per_page = fields.PageNumber(20, most=100, most_in_dialect=1000)


class AdminPageQuery(PageQuery):
    """The query of an administrative list. Unknown parameters are refused, except in the dialect."""

    class Meta:
        unknown = RAISE

    error_messages = {"unknown": "is not a parameter of this list"}  # noqa: RUF012 (so does the base class)


class UsersQuery(AdminPageQuery):
    email = fields.Email()
    role = fields.Text()
    is_anonymous = fields.Choice("true", "false")
    q = fields.Text()
    filter = fields.Text()  # the dialect's name of `q`
    sort = fields.Choice("created_at", "updated_at", "last_sign_in_at", "email", load_default="created_at")
    order = fields.Choice("asc", "desc", load_default="desc")

    @validates_schema
    def has_filter_in_the_dialect(self, data: dict[str, Any], **_kwargs: Any) -> None:
        if "filter" in data and not g.in_dialect:
            raise ValidationError("is not a parameter of this list; use q", "filter")


class AuditQuery(AdminPageQuery):
    user = fields.Uuid()
    action = fields.Text()
    since = fields.Timestamp()
    until = fields.Timestamp()
    request_id = fields.Text()


TimelineQuery = Input.of(
    kind=fields.Choice("act", "refusal", "session", "message", "event"), before=fields.EntryOfTimeline()
)


class NewWebhook(AdminInput):
    url = fields.Text(required=True)
    events = fields.Choices(*webhooks.EVENTS, load_default=lambda: list(webhooks.EVENTS))
    description = fields.Text(allow_none=True, load_default=None)


class WebhookChange(AdminInput):
    url = fields.Text()
    events = fields.Choices(*webhooks.EVENTS)
    description = fields.Text(allow_none=True)
    disabled = fields.Flag()
    rotate_secret = fields.Flag(load_default=False)


Decision = Input.of(action=fields.Choice("approve", "deny", required=True))
TestEvent = AdminInput.of(event=fields.Choice(*webhooks.EVENTS, load_default="user.updated"))
