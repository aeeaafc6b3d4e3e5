"""The base classes of the schemas of bodies, queries and pages of lists. `null` means absent."""

from collections.abc import Mapping
from typing import Self, TypedDict, cast

from marshmallow import EXCLUDE, RAISE, Schema, ValidationError, pre_load, validates_schema
from marshmallow.fields import Field

from auth.web import fields


class Input(Schema):
    class Meta:
        unknown = EXCLUDE

    @classmethod
    def of(cls, **members: Field) -> type[Self]:
        return cast("type[Self]", cls.from_dict(members))

    @pre_load
    def leave_out_null(self, data: object, **_kwargs: object) -> object:
        if not isinstance(data, dict):
            return data
        return {
            name: value
            for name, value in data.items()
            if value is not None or (name in self.fields and self.fields[name].allow_none)
        }


class AdminInput(Input):
    """A body of an administrative operation. Unknown members are refused, except in the dialect."""

    class Meta:
        unknown = RAISE


class Addressed(Input):
    email = fields.Email()
    phone = fields.Phone()

    @validates_schema
    def has_one_address(self, data: Mapping[str, object], **_kwargs: object) -> None:
        if ("email" in data) == ("phone" in data):
            raise ValidationError("give either an email or a phone", "email")


class Challenged(Input):
    """A request that may ask for an authorization code instead of tokens (RFC 7636)."""

    redirect_to = fields.Text()
    code_challenge = fields.CodeChallenge()
    code_challenge_method = fields.Text()

    @validates_schema
    def is_hashed(self, data: Mapping[str, str], **_kwargs: object) -> None:
        if "code_challenge" in data and data.get("code_challenge_method", "s256").lower() != "s256":
            raise ValidationError("must be s256", "code_challenge_method")
        if "code_challenge_method" in data and "code_challenge" not in data:
            raise ValidationError("must be given with code_challenge_method", "code_challenge")


class Reauthentication(Input):
    current_password = fields.Password()
    nonce = fields.Code()
    factor_code = fields.Code()


# The last row of a log or a timeline that paging reaches. `until` reaches older ones, where it is a filter.
MOST_EVENTS = 100_000


class PageQuery(Input):
    page = fields.PageNumber()
    per_page = fields.PageSize(20, most=100, most_in_dialect=1000)


class AdminPageQuery(PageQuery):
    """The query of an administrative list. Unknown parameters are refused, except in the dialect."""

    class Meta:
        unknown = RAISE

    error_messages = {"unknown": "is not a parameter of this list"}  # noqa: RUF012 (so does the base class)


class Bounds(TypedDict):
    page_size: int
    page_offset: int


def bounds(query: Mapping[str, int]) -> Bounds:
    return {"page_size": query["per_page"], "page_offset": (query["page"] - 1) * query["per_page"]}
