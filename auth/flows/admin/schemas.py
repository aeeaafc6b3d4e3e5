"""The schemas of what administrators send, to the API and the console."""

from typing import Any

from marshmallow import ValidationError, validates_schema

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
    def has_one_password(self, data: dict[str, Any], **_kwargs: object) -> None:
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
