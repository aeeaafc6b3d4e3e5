"""The schemas of what administrators send, to the API and the console."""

from marshmallow import ValidationError, validates_schema

from auth.core.json_bodies import JsonObject
from auth.core.net import webhook_urls
from auth.web import fields
from auth.web.schemas import AdminInput, Input

Ban = Input.of(ban_duration=fields.BanDuration(required=True))


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
    def has_one_password(self, data: JsonObject, **_kwargs: object) -> None:
        if "password" in data and "password_hash" in data:
            raise ValidationError("must be absent if there is a password", "password_hash")


class AnyUserChange(AnyUser):
    email = fields.Email(allow_none=True)
    phone = fields.Phone(allow_none=True)
    remove = fields.Uuids()
    email_confirmed_at = fields.Timestamp(allow_none=True)
    phone_confirmed_at = fields.Timestamp(allow_none=True)


class NewWebhook(AdminInput):
    url = fields.Text(required=True)
    events = fields.Choices(*webhook_urls.EVENTS, load_default=lambda: list(webhook_urls.EVENTS))
    description = fields.Text(allow_none=True, load_default=None)


class WebhookChange(AdminInput):
    url = fields.Text()
    events = fields.Choices(*webhook_urls.EVENTS)
    description = fields.Text(allow_none=True)
    disabled = fields.Flag()
    rotate_secret = fields.Flag(load_default=False)


class ProviderChange(AdminInput):
    """Load it by `PROVIDER_CHANGE`. Otherwise absent members get the values of a new provider."""

    name = fields.ProviderName(required=True)
    client_id = fields.ClientId(required=True)
    client_secret = fields.ClientSecret(required=True)
    issuer = fields.NonEmptyText()
    discovery_url = fields.Text(load_default="")
    acceptable_client_ids = fields.ShortTexts(load_default=list)
    scopes = fields.ShortTexts(load_default=list)
    authorization_params = fields.ShortTextsByName(load_default=dict)
    attribute_mapping = fields.ShortTextsByName(load_default=dict)
    custom_claims_allowlist = fields.ShortTexts(load_default=list)
    domains = fields.ShortTexts(load_default=list)
    enabled = fields.Flag(load_default=True)
    # Members of GoTrue. We always use nonce and PKCE, and always need an email.
    email_optional = fields.Flag()
    skip_nonce_check = fields.Flag()
    pkce_enabled = fields.Flag()


PROVIDER_CHANGE = ProviderChange(partial=True)
